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


@pytest.mark.parametrize(("name", "block"), _blocks(), ids=[name for name, _ in _blocks()])
def test_every_python_example_runs_as_it_stands(name: str, block: str, tmp_path: Path) -> None:
    environment = {"SCRUBJAY_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _sessions() -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{number}", block)
        for page in PAGES
        for number, block in enumerate(_CONSOLE.findall(page.read_text()), start=1)
    ]


@pytest.mark.parametrize(("name", "block"), _sessions(), ids=[name for name, _ in _sessions()])
def test_every_command_shown_works_in_its_turn(name: str, block: str, tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    environment = {
        "SCRUBJAY_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "PATH": f"{scripts}:/usr/bin:/bin",
    }
    for command in re.findall(r"^\$ (.+)$", block, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


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
