"""Draw docs/terminal.svg: real commands in a real pseudo-terminal, on a throw-away home.

.venv/bin/python tools/terminal_picture.py
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 96
TARGET = Path(__file__).parents[1] / "docs" / "terminal.svg"
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""What would be fetched from a network; a font of the reader's machine does."""
BEFORE = (
    'scrubjay remember "Bob is visiting on Friday" --tag family',
    'scrubjay remember "Never book flights before 9" --kind instruction',
    'scrubjay remember "The cello lesson is on Tuesday at six"',
)
COMMANDS = (
    'scrubjay remember "Alice is allergic to peanuts" --tag health',
    'scrubjay remember "my token is ghp_{}" --tag work',
    'scrubjay recall "what may I cook for Alice?" --limit 2 --explain',
    "scrubjay forget --query peanuts --yes",
    "scrubjay verify",
)


def main() -> None:
    """Run the commands and draw what they printed."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    token = "a1B2c3D4e5F6" * 3
    with tempfile.TemporaryDirectory() as home:
        for command in BEFORE:
            run(command, home)
        for command in COMMANDS:
            console.print(
                Text.assemble(("$ ", "bold green"), (command.format(token[:12] + "…"), ""))
            )
            console.print(Text.from_ansi(run(command.format(token), home).rstrip("\n")))
    drawn = console.export_svg(title="scrubjay")
    TARGET.write_text(FONTS.sub("", drawn), "utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


def run(command: str, home: str) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    environment = {
        "SCRUBJAY_HOME": home,
        "HOME": home,
        "TERM": "xterm-256color",
        "COLUMNS": str(WIDTH),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    process = subprocess.Popen(
        ["bash", "-c", command], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    printed = b""
    while piece := _read(ours):
        printed += piece
    process.wait()
    os.close(ours)
    return printed.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side was closed
        return b""


if __name__ == "__main__":
    main()
