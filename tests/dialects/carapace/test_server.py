"""The socket: a client with the frames of Carapace's own, over real ZeroMQ."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq

from scrubjay.model.errors import Conflict, InvalidRequest
from scrubjay.surfaces.carapace.call_audit import lines
from scrubjay.surfaces.carapace.pipeline import Rules
from scrubjay.surfaces.carapace.server import Directory, Server, session_name
from scrubjay.surfaces.carapace.wire import AgentSession
from tests.dialects.carapace.scene import Stage, home_without_vectors
from tests.processes import default_signals

WAIT_MS = 10_000
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
BRIEF = b'{"topic": "tool.invoke.memory_brief", "correlation": "%s", "arguments": {}}'
READY = b"\x04\x06\x05READY"
MEBIBYTE = 1024 * 1024


class Ipc:
    """What Carapace's client does: connect for each call, send [empty, payload], read the last."""

    def __init__(self, address: str, identity: bytes | None = b"agent-1") -> None:
        self.address = address
        self.identity = identity

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """A new connection."""
        context = zmq.Context()
        dealer = context.socket(zmq.DEALER)
        try:
            if self.identity is not None:
                dealer.setsockopt(zmq.ROUTING_ID, self.identity)
            dealer.connect(self.address)
            yield dealer
        finally:
            dealer.close(linger=0)
            context.term()

    def frames(self, *frames: bytes) -> dict[str, Any]:
        """Send frames from a new connection; the reply's envelope."""
        with self.connected() as dealer:
            dealer.send_multipart(frames)
            assert dealer.poll(WAIT_MS), "no reply"
            empty, payload = dealer.recv_multipart()
            assert empty == b""
            reply: dict[str, Any] = json.loads(payload)
            return reply

    def __call__(self, topic: str, arguments: Any) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of `ipc <topic> <json>`."""
        correlation = str(uuid.uuid4())
        message = {"topic": topic, "correlation": correlation, "arguments": arguments}
        reply = self.frames(b"", json.dumps(message).encode())
        assert reply["correlation"] == correlation
        error, result = reply["payload"]["error"], reply["payload"]["result"]
        return (1, "", json.dumps(error)) if error else (0, json.dumps(result), "")


def correlation(dealer: Any) -> str:
    """That of the next reply."""
    assert dealer.poll(WAIT_MS), "no reply"
    return str(json.loads(dealer.recv_multipart()[1])["correlation"])


@contextmanager
def serving(stage: Stage, folder: Path, directory: Directory | None = None) -> Iterator[str]:
    address = f"ipc://{folder}/carapace.sock"
    server = Server(stage.host, address, stage.home.clock, directory)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield address
    finally:
        server.stop()
        thread.join()
        server.close()


@pytest.fixture
def address(stage: Stage, tmp_path: Path) -> Iterator[str]:
    with serving(stage, tmp_path) as found:
        yield found


def test_the_whole_conversation_of_an_agent(stage: Stage, address: str) -> None:
    ipc = Ipc(address)
    code, out, err = ipc("tool.invoke.memory_store", {"type": "fact", "content": "Luna is a dog"})
    assert (code, err) == (0, "")
    first = json.loads(out)
    assert (first["session_id"], first["group"]) == ("agent-1", "main")
    _, out, _ = ipc(
        "tool.invoke.memory_store",
        {"type": "fact", "content": "Luna is a cat", "supersedes": first["id"]},
    )
    second = json.loads(out)
    _, out, _ = ipc("tool.invoke.memory_search", {"query": "Luna"})
    assert [one["id"] for one in json.loads(out)["results"]] == [second["id"]]
    _, out, _ = ipc("tool.invoke.memory_brief", {})
    assert json.loads(out)["entry_count"] == 2
    _, out, _ = ipc("tool.invoke.memory_delete", {"id": second["id"]})
    assert json.loads(out) == {"deleted": True, "id": second["id"]}
    code, out, err = ipc("tool.invoke.memory_delete", {"id": second["id"]})
    assert (code, out) == (1, "")
    assert json.loads(err)["code"] == "HANDLER_ERROR"
    assert len(list(lines(stage.engine, "main"))) == 6


def test_limits_are_counted_by_identity_across_connections(stage: Stage, address: str) -> None:
    ipc = Ipc(address)
    for number in range(20):
        assert ipc("tool.invoke.memory_store", {"type": "fact", "content": f"{number}"})[0] == 0
    code, _, err = ipc("tool.invoke.memory_store", {"type": "fact", "content": "x"})
    assert (code, json.loads(err)["code"]) == (1, "RATE_LIMITED")
    other = Ipc(address, b"agent-2")
    assert other("tool.invoke.memory_store", {"type": "fact", "content": "x"})[0] == 0


def test_an_identity_in_the_payload_changes_nothing(address: str) -> None:
    message = {
        "topic": "tool.invoke.memory_store",
        "correlation": "c",
        "arguments": {"type": "fact", "content": "x"},
        "source": "root",
        "group": "other",
    }
    reply = Ipc(address).frames(b"", json.dumps(message).encode())
    entry = reply["payload"]["result"]
    assert (entry["session_id"], entry["group"]) == ("agent-1", "main")


CALLS = 32


def test_connections_that_overlap_under_one_identity_all_get_their_replies(address: str) -> None:
    ipc, ready = Ipc(address), threading.Barrier(CALLS)

    def call(number: int) -> int:
        ready.wait()
        return ipc("tool.invoke.memory_search", {"query": f"tea {number}"})[0]

    with ThreadPoolExecutor(CALLS) as pool:
        assert list(pool.map(call, range(CALLS))) == [0] * CALLS


@pytest.mark.parametrize("early", [False, True], ids=["later", "there already"])
def test_a_reply_whose_connection_ended_is_given_to_a_newer_one_of_its_identity(
    stage: Stage, tmp_path: Path, *, early: bool
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    answer = stage.host.answer

    def slowly(payload: bytes, session: AgentSession) -> Any:
        if b"first" in payload:
            begun.set()
            assert go_on.wait(30)
        return answer(payload, session)

    stage.host.answer = slowly  # type: ignore[assignment,method-assign]
    with serving(stage, tmp_path) as address:
        with Ipc(address).connected() as dealer:
            dealer.send_multipart([b"", BRIEF % b"first"])
            assert begun.wait(30)
        with Ipc(address).connected() as newer:
            if early:
                newer.send_multipart([b"", BRIEF % b"second"])
                assert correlation(newer) == "second"
            go_on.set()
            if not early:
                newer.send_multipart([b"", BRIEF % b"third"])
            found = {correlation(newer)} | ({correlation(newer)} if not early else set())
            assert "first" in found


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, GREETING, GREETING + b"\x00\x00",
     GREETING + READY + b"\x02" + b"\xff" * 8, GREETING + READY + b"\x01\x00\x04\x00" * 90],
    ids=["http", "noise", "greeting", "no ready", "too long", "too many"],
)  # fmt: skip
def test_who_does_not_speak_the_protocol_disturbs_nobody(address: str, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(address.removeprefix("ipc://"))
        peer.sendall(sent)
        assert Ipc(address)("tool.invoke.memory_brief", {})[0] == 0
        peer.shutdown(socket.SHUT_WR)
        peer.settimeout(30)
        while peer.recv(4_096):
            pass


def test_a_client_without_an_identity_has_a_session_of_its_own(address: str) -> None:
    code, out, _ = Ipc(address, None)("tool.invoke.memory_store", {"type": "fact", "content": "x"})
    assert code == 0
    assert json.loads(out)["session_id"].startswith("zmq-")


@pytest.mark.parametrize(
    "frames",
    [
        (b"",),
        (b"", b""),
        (b"", b"\xff\xfe"),
        (b"", b"{"),
        (b"", b"[]"),
        (b"", b"{}"),
        (b"not empty", b"{}"),
        (b"", b"{}", b"{}"),
        (b"", b"[" * 200_000),
        (b"", b" " * (MEBIBYTE + 1)),
        (b"", b"x" * (2 * MEBIBYTE)),
    ],
    ids=range(11),
)
def test_a_malformed_frame_gets_an_error_and_the_server_lives(
    address: str, frames: tuple[bytes, ...]
) -> None:
    ipc = Ipc(address)
    error = ipc.frames(*frames)["payload"]["error"]
    assert (error["code"], error["retriable"]) == ("VALIDATION_FAILED", False)
    assert ipc("tool.invoke.memory_brief", {})[0] == 0


def test_who_is_not_in_the_table_is_nobody(stage: Stage, tmp_path: Path) -> None:
    table = Directory(groups={"agent-1": "main", "agent-2": "other"})
    with serving(stage, tmp_path, table) as address:
        fact = {"type": "fact", "content": "of main"}
        assert Ipc(address)("tool.invoke.memory_store", fact)[0] == 0
        _, out, _ = Ipc(address, b"agent-2")("tool.invoke.memory_search", {})
        assert json.loads(out)["results"] == []
        code, _, err = Ipc(address, b"stranger")("tool.invoke.memory_search", {})
        assert (code, json.loads(err)["code"]) == (1, "UNAUTHORIZED")
    assert stage.found() == ["of main"]


def test_a_fast_session_is_slowed_down(tmp_path: Path) -> None:
    stage = Stage(home_without_vectors(), rules=Rules(calls_per_minute=2))
    with serving(stage, tmp_path) as address:
        codes = [Ipc(address)("tool.invoke.memory_brief", {})[0] for _ in range(3)]
    assert codes == [0, 0, 1]


def test_the_socket_is_for_its_owner_alone(stage: Stage, tmp_path: Path) -> None:
    with serving(stage, tmp_path):
        mode = (tmp_path / "carapace.sock").stat().st_mode
        assert stat.S_IMODE(mode) & 0o077 == 0


@pytest.mark.parametrize(
    "address", ["nonsense", "ipc:///nowhere/at/all/x.sock", "ftp://x", "tcp://127.0.0.1:0"]
)
def test_an_address_that_cannot_be_served_is_refused(stage: Stage, address: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be served"):
        Server(stage.host, address, stage.home.clock)


def test_an_address_is_not_taken_from_who_serves_it(stage: Stage, address: str) -> None:
    with pytest.raises(Conflict, match="already"):
        Server(stage.host, address, stage.home.clock)
    assert Ipc(address)("tool.invoke.memory_brief", {})[0] == 0


def test_a_socket_left_behind_is_no_obstacle(stage: Stage, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "carapace.sock"))
    with serving(stage, tmp_path) as address:
        assert Ipc(address)("tool.invoke.memory_brief", {})[0] == 0


@pytest.mark.parametrize("group", ["", "../x", "-x"])
def test_a_table_with_a_name_that_is_no_group_is_refused(group: str) -> None:
    with pytest.raises(InvalidRequest):
        Directory(groups={"agent-1": group})


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        (b"agent-1", "agent-1"),
        (b"\x00\x01\x02", "zmq-000102"),
        (b"with space", "zmq-77697468207370616365"),
        (b"zmq-00", "zmq-7a6d712d3030"),
        ("ä".encode(), "zmq-c3a4"),
        (b"", "zmq-"),
    ],
)
def test_no_two_identities_are_the_same_session(identity: bytes, name: str) -> None:
    assert session_name(identity) == name


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    address = f"ipc://{tmp_path}/carapace.sock"
    environment = {**os.environ, "SCRUBJAY_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "scrubjay", "carapace", "serve", "--socket", address]
    process = subprocess.Popen(
        default_signals([*command, "--group", "main"]),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"Serving main on {address}.\n"
        fact = {"type": "fact", "content": "kept on disk"}
        assert Ipc(address)("tool.invoke.memory_store", fact)[0] == 0
    finally:
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    assert "carapace.purged group=main superseded=0" in log
    assert "kept on disk" not in log
