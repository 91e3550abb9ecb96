"""docs/cli.md is made of the code, and says what the code does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "cli_page.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
