"""What the documents show is run, and what they point to is there."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from scrubjay import settings
from scrubjay.service.telemetry import Metrics
from tests import processes
from tests.support.chat_server import ChatServer, serve_chat

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


@pytest.fixture(scope="module", autouse=True)
def model() -> Iterator[ChatServer]:
    """A model for the pages that ask one, by the variables that its clients read."""
    with serve_chat() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("ANTHROPIC_BASE_URL", server.url.removesuffix("/v1"))
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            patch.setenv(name, "none")
        yield server


def _environment(folder: Path) -> dict[str, str]:
    """What a new user has, and the model."""
    given = {name: os.environ[name] for name in os.environ if name.startswith(("OPENAI_", "ANTH"))}
    return given | {
        "SCRUBJAY_HOME": str(folder / "home"),
        "HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(("name", "block"), _blocks(), ids=[name for name, _ in _blocks()])
def test_every_python_example_runs_as_it_stands(name: str, block: str, tmp_path: Path) -> None:
    _run([sys.executable, "-c", block], tmp_path)


def test_the_chat_agents_put_what_was_said_before_into_the_next_request(
    model: ChatServer, tmp_path: Path
) -> None:
    wanted = ("dentist is Dr. Wu in Lyon", "prefers trains to planes", "lives in Lyon")
    programs = [block for name, block in _blocks() if name.startswith("docs/chat.md")][:3]
    for program, fact in zip(programs, wanted, strict=True):
        for _ in range(2):  # another process, too
            _run([sys.executable, "-c", program], tmp_path)
            assert fact in json.dumps(model.requests[-1])
        assert fact in json.dumps(model.requests[-2])  # of the process before


def test_no_two_pages_share_a_scope() -> None:
    """Who follows one page after another finds in each what it shows."""
    opened = re.compile(r'(?:scrubjay\.open|AgentMemory|AsyncJay)\("([^"]+)"')
    pages: dict[str, set[str]] = {}
    for name, block in _blocks():
        for scope in opened.findall(block):
            pages.setdefault(scope, set()).add(name.partition(":")[0])
    assert pages
    assert [scope for scope, names in pages.items() if len(names) > 1] == []


@pytest.mark.parametrize(
    "page", ["README.md", "docs/chat.md", "docs/service.md", "clients/js/README.md"]
)
def test_where_a_key_is_made_it_is_said_whose_words_it_writes(page: str) -> None:
    told = re.split(r"\n\n|\n\|", (ROOT / page).read_text())
    assert any("acts as an agent" in one or "an agent's words" in one for one in told)
    assert any("--actor user`" in one for one in told)


def test_the_types_of_the_chat_agents_are_sound(tmp_path: Path) -> None:
    programs = [block for name, block in _blocks() if name.startswith("docs/chat.md")][:3]
    names = [f"program_{number}.py" for number in range(len(programs))]
    for name, program in zip(names, programs, strict=True):
        (tmp_path / name).write_text(program)
    _run([sys.executable, "-m", "mypy", "--strict", *names], tmp_path)


def _refused(port: int) -> bool:
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port)) != 0


def test_the_web_app_of_two_workers_remembers_each_user(model: ChatServer, tmp_path: Path) -> None:
    *_, program = [block for name, block in _blocks() if name.startswith("docs/chat.md")]
    (tmp_path / "app.py").write_text(program)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "app:app", "--workers", "2", "--port", str(port)]
    environment = _environment(tmp_path)

    def ask(user: str, said: str) -> str:
        raw = json.dumps({"said": said}).encode()
        url = f"http://127.0.0.1:{port}/chat/{user}"
        with urlopen(Request(url, raw), timeout=60) as response:
            assert json.load(response) == {"answer": "Noted."}
        return json.dumps(model.requests[-1])

    with processes.running(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stderr is not None
            while "startup complete" not in running.stderr.readline():
                assert running.poll() is None
            while _refused(port):  # it is said a moment before
                assert running.poll() is None
            ask("ann", "I prefer trains to planes.")
            for _ in range(6):  # whichever worker answers
                assert "prefers trains" in ask("ann", "How should I travel to Rome?")
                assert "trains" not in ask("ben", "How should I travel to Rome?")
        finally:
            running.terminate()


def test_the_alerts_look_at_metrics_that_there_are() -> None:
    metrics = Metrics()
    metrics.ended("recall", 200, 0.1)
    there = set(re.findall(r"[a-z_]+", metrics.render(depth=0, age=0)))
    rules = (ROOT / "examples" / "service" / "alerts.yml").read_text()
    asked = set(re.findall(r"\bmemory_[a-z_]+", rules))
    assert asked
    assert asked <= there


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
