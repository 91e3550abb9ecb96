"""Agents end to end: terminals, processes, kill -9, and a scope that three use at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from scrubjay import Kind, settings
from scrubjay.surfaces.initrunner import role_agent, roles
from scrubjay.surfaces.initrunner.roles import MemoryType
from tests.acceptance.screen import showing
from tests.support.chat_server import Call, ChatServer, results, said, serve_chat

SCRUBJAY = (sys.executable, "-m", "scrubjay")


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with serve_chat() as running:
        yield running


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The environment of commands, and of this process, on one home."""
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TERM", "dumb")
    return dict(os.environ)


def write_role(folder: Path, model: ChatServer, name: str = "assistant", **memory: Any) -> Path:
    path = folder / f"{name}.yaml"
    spec = {
        "role": "You help.",
        "model": {"provider": "openai", "name": "m", "base_url": model.url},
        "memory": {"embeddings": {"provider": "local"}, **memory},
    }
    document = {"kind": "Agent", "metadata": {"name": name}, "spec": spec}
    path.write_text(yaml.safe_dump(document))
    return path


def remembering(asked: dict[str, Any]) -> str | Call:
    """A model that remembers what it is told with `Note:`, and recalls what it is asked."""
    words, found = said(asked), results(asked)
    if found:
        return f"({found[-1]})"
    if words.startswith("Note: "):
        return Call("remember", {"content": words[6:]})
    return Call("recall", {"query": words}) if words.endswith("?") else "All right."


def test_a_fact_told_in_the_first_session_is_used_in_the_second(
    tmp_path: Path, model: ChatServer, env: Mapping[str, str]
) -> None:
    role, model.says = write_role(tmp_path, model), remembering
    with showing(*SCRUBJAY, "chat", str(role), folder=tmp_path, env=env) as screen:
        screen.until("> ")
        screen.press(b"Note: Alice drinks oolong\n")
        screen.until("(Remembered (id=1, category=general))")
        screen.press(b"exit\n")
        screen.until("Goodbye!")
        assert screen.end() == 0
    with showing(*SCRUBJAY, "chat", str(role), "--resume", folder=tmp_path, env=env) as screen:
        screen.until("Resumed session with 4 messages.")
        screen.press(b"What does Alice drink?\n")
        screen.until("Alice drinks oolong)\n> ")
        screen.press(b"\x04")  # the end of the input leaves, too
        screen.until("Goodbye!")
        assert screen.end() == 0
    told = json.dumps(model.requests[-1])
    assert "Note: Alice drinks oolong" in told  # the session
    assert "[Type: semantic" in told  # the memory


def test_a_kill_in_mid_conversation_loses_the_unfinished_turn_alone(
    tmp_path: Path, model: ChatServer, env: Mapping[str, str]
) -> None:
    role = write_role(tmp_path, model)

    def thinking(asked: dict[str, Any]) -> str:
        if said(asked) == "Third":
            model.closing.wait(60)
        return "Noted."

    model.says = thinking
    with showing(*SCRUBJAY, "chat", str(role), folder=tmp_path, env=env) as screen:
        for number, words in enumerate((b"First\n", b"Second\n"), 1):
            screen.press(words)
            while screen.text.count("Noted.") < number:
                screen._read()
        # The prompt that comes after an answer says that the turn is stored.
        while screen.text.count("> ") < 3:
            screen._read()
        screen.press(b"Third\n")
        while len(model.requests) < 3:
            model.closing.wait(0.01)
        os.kill(screen._running.pid, signal.SIGKILL)
        screen.end()
    with showing(*SCRUBJAY, "chat", str(role), "--resume", folder=tmp_path, env=env) as screen:
        screen.until("Resumed session with 4 messages.")
        screen.press(b"exit\n")
        assert screen.end() == 0


def test_ctrl_c_gives_up_the_turn_and_not_the_conversation(
    tmp_path: Path, model: ChatServer, env: Mapping[str, str]
) -> None:
    role = write_role(tmp_path, model)

    def thinking(asked: dict[str, Any]) -> str:
        if said(asked) == "Slow":
            model.closing.wait(60)
        return "Noted."

    model.says = thinking
    with showing(*SCRUBJAY, "chat", str(role), folder=tmp_path, env=env) as screen:
        screen.until("> ")
        screen.press(b"Slow\n")
        while not model.requests:
            model.closing.wait(0.01)
        screen.press(b"\x03")
        screen.until("Interrupted")
        screen.press(b"Quick\n")
        screen.until("Noted.")
        screen.press(b"exit\n")
        assert screen.end() == 0


def test_the_first_answer_has_no_banner_of_the_library_in_it(
    tmp_path: Path, model: ChatServer, env: Mapping[str, str]
) -> None:
    role = write_role(tmp_path, model)
    quiet = ("PYTEST", "CI", "PYDANTIC", "GITHUB", "CLAUDE", "CODEX")  # where it shows none anyway
    plain = {name: value for name, value in env.items() if not name.startswith(quiet)}
    with showing(*SCRUBJAY, "chat", str(role), folder=tmp_path, env=plain) as screen:
        screen.until("> ")
        screen.press(b"Hello\n")
        assert "ydantic" not in screen.until("Noted.")
        screen.press(b"exit\n")
        assert screen.end() == 0


WRITER = """
import sys
from pathlib import Path
from scrubjay import settings
from scrubjay.surfaces.initrunner import role_agent, roles
role = roles.load(Path(sys.argv[1]))
with role_agent.opened(role, settings.read(), settings.variable) as agent:
    for number in range(int(sys.argv[3])):
        agent.memory.record_episode(f"{sys.argv[2]} met guest {number}")
        agent.memory.recall("guest")
"""
EPISODES = 15


def test_a_terminal_is_asked_whether_another_model_may_embed_anew(
    tmp_path: Path, model: ChatServer, env: Mapping[str, str]
) -> None:
    for name in ("one", "two"):
        embeddings = {"provider": "openai", "base_url": model.url, "model": name}
        role = write_role(tmp_path, model, embeddings=embeddings)
        if name == "one":
            with role_agent.opened(roles.load(role), settings.read(), settings.variable) as agent:
                agent.memory.remember("Alice drinks oolong")
    with showing(*SCRUBJAY, "chat", str(role), folder=tmp_path, env=env) as screen:
        screen.until("Embed them anew with the present model? [y/N]: ")
        screen.press(b"y\n")
        screen.until("Embedded 1 memories.")
        screen.until("> ")
        screen.press(b"/memories oolong\n")
        screen.until("Alice drinks oolong")
        screen.press(b"exit\n")
        assert screen.end() == 0


def test_the_example_runs_as_it_stands(tmp_path: Path, env: Mapping[str, str]) -> None:
    example = Path(__file__).parents[2] / "examples" / "agent.py"
    done = subprocess.run(
        [sys.executable, example], env=env, capture_output=True, text=True, check=True
    )
    assert "Remembered (id=1, category=drinks)" in done.stdout
    assert "Alice drinks oolong in the morning" in done.stdout


def test_two_write_to_a_scope_while_a_third_consolidates_it(
    tmp_path: Path, model: ChatServer, env: Mapping[str, str], more: bool
) -> None:
    number = EPISODES * (20 if more else 1)
    shared: dict[str, Any] = {
        "store_path": str(tmp_path / "team.db"),
        "consolidation": {"interval": "manual"},
        "episodic": {"max_episodes": 10_000},
    }
    files = {name: write_role(tmp_path, model, name, **shared) for name in ("ann", "bob", "eve")}

    def says(asked: dict[str, Any]) -> str:
        material = json.loads(asked["messages"][-1]["content"])
        lines = (f"guest: {one['text'].split(') ')[1]} [{one['number']}]" for one in material)
        return "\n".join(lines)

    model.says = says
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, files[name], name, str(number)], env=env)
        for name in ("ann", "bob")
    ]
    role = roles.load(files["eve"])
    with role_agent.opened(role, settings.read(), settings.variable) as agent:
        while any(one.poll() is None for one in writers):
            if agent.memory.exists():
                agent.consolidate()
        assert [one.wait() for one in writers] == [0, 0]
        for _ in range(number):  # far more often than it takes
            if not agent.consolidate().done:
                break
        else:
            pytest.fail("episodes are asked about again and again")
        found = list(agent.memory.present())
    episodes = sorted(one.content for one in found if one.kind is Kind.EPISODE)
    facts = sorted(one.content for one in found if one.kind is MemoryType.SEMANTIC.kind)
    expected = sorted(f"{name} met guest {n}" for name in ("ann", "bob") for n in range(number))
    assert episodes == expected
    assert facts == expected
    assert len({one.number for one in found}) == len(found)
