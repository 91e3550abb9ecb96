"""What the documents show is run, and what they point to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scrubjay import settings

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def _blocks() -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{number}", block)
        for page in PAGES
        for number, block in enumerate(_BLOCK.findall(page.read_text()), start=1)
    ]


def _commands(session: str) -> list[str]:
    return re.findall(r"^\$ (.+)$", session, re.MULTILINE)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            "SCRUBJAY_HOME": str(folder / "home"),
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(("name", "block"), _blocks(), ids=[name for name, _ in _blocks()])
def test_every_python_example_runs_as_it_stands(name: str, block: str, tmp_path: Path) -> None:
    _run([sys.executable, "-c", block], tmp_path)


def _sessions() -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{number}", block)
        for page in PAGES
        for number, block in enumerate(_CONSOLE.findall(page.read_text()), start=1)
    ]


@pytest.mark.parametrize(("name", "block"), _sessions(), ids=[name for name, _ in _sessions()])
def test_every_command_shown_works_in_its_turn(name: str, block: str, tmp_path: Path) -> None:
    for command in _commands(block):
        _run(["bash", "-c", command], tmp_path)


def test_the_pages_for_users_work_pasted_one_after_another_into_one_home(tmp_path: Path) -> None:
    for name in ("README.md", "docs/quickstart.md", "docs/howto.md"):
        for page, block in _blocks():
            if page.startswith(f"{name}:"):
                _run([sys.executable, "-c", block], tmp_path)
        for page, block in _sessions():
            if page.startswith(f"{name}:"):
                _run(["bash", "-e", "-c", "\n".join(_commands(block))], tmp_path)


def _configurations() -> list[str]:
    return [block for page in PAGES for block in _TOML.findall(page.read_text())]


@pytest.mark.parametrize("block", _configurations())
def test_every_configuration_shown_is_one(block: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(block)
    settings.read({"SCRUBJAY_HOME": str(tmp_path)})


def test_the_readme_shows_the_library_and_the_command_line_in_ten_lines_each() -> None:
    (python,) = [block for name, block in _blocks() if name.startswith("README.md")]
    (console,) = [block for name, block in _sessions() if name.startswith("README.md")]
    code = [line for line in python.splitlines() if line]
    assert len(code) == len(console.splitlines()) == 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_documents_leads_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert broken == []


def test_every_promise_has_a_test_and_the_page_says_so() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "promises.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
