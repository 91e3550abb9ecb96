"""What needs an extra says which one to install, where that is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AGENTS = ("yaml", "pydantic_ai")
SERVER = ("starlette", "uvicorn", "jwt", "httpx2")
ROLE = "role.yaml"
COMMANDS = [
    ("agents", AGENTS, "init --name helper"),
    ("agents", AGENTS, f"chat {ROLE}"),
    ("agents", AGENTS, f"run {ROLE} --task tidy"),
    ("agents", AGENTS, f"memory list {ROLE} --type semantic"),
    ("agents", AGENTS, f"memory clear {ROLE} --force"),
    ("agents", AGENTS, f"memory export {ROLE}"),
    ("agents", AGENTS, f"memory import {ROLE} {ROLE}"),
    ("agents", AGENTS, f"memory consolidate {ROLE}"),
    ("agents", AGENTS, f"memory reembed {ROLE}"),
    ("server", SERVER, "serve"),
    ("mcp", ("mcp", "mcp_types"), "mcp"),
]
MODULES = [
    ("agents", AGENTS, "import scrubjay.pydantic_ai"),
    ("server", ("httpx2",), "import scrubjay; scrubjay.connect"),
    ("server", ("httpx2",), "import scrubjay.client"),
]


def _without(module: str, statement: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A statement in an interpreter that has no such module, with a role file beside it."""
    (folder / ROLE).write_text("kind: Agent\n")
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules[{module!r}] = None; {statement}"],
        cwd=folder,
        env={"HOME": str(folder), "SCRUBJAY_HOME": str(folder / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("extra", "module", "command"),
    [(extra, one, command) for extra, blocked, command in COMMANDS for one in blocked[:2]],
)
def test_a_command_without_its_extra_says_what_to_install(
    extra: str, module: str, command: str, tmp_path: Path
) -> None:
    run = f"sys.argv[1:] = {command.split()!r}; from scrubjay.cli import main; main()"
    done = _without(module, run, tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"pip install 'scrubjay[{extra}]' brings it." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("extra", "module", "statement"),
    [(extra, one, statement) for extra, blocked, statement in MODULES for one in blocked],
)
def test_a_module_without_its_extra_says_what_to_install(
    extra: str, module: str, statement: str, tmp_path: Path
) -> None:
    said = _without(module, statement, tmp_path).stderr.splitlines()[-1]
    assert said.startswith("ModuleNotFoundError: scrubjay.")
    assert said.endswith(f" needs more: pip install 'scrubjay[{extra}]'.")
