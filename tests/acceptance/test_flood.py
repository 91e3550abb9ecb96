"""Half-open connections: thousands of begun requests keep nobody else out."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from scrubjay import connect
from scrubjay.engine import Kernel
from scrubjay.model.scope import Scope
from scrubjay.service.server import most_connections
from tests import processes
from tests.serving import Running, serving
from tests.support.engines import SqliteHome

ALICE = Scope("acme", "alice")
HALF_OPEN = 2_200
_FLOOD = r"""
import resource, socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
said = (
    *(b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: local") * 3,
    b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{",
    b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
)
held = []
for number in range(count * len(said) // 9):  # of eleven, nine have not even their headers
    held.append(socket.create_connection(("127.0.0.1", port)))
    held[-1].sendall(said[number % len(said)])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def service(ram: Path) -> Iterator[Running]:
    engine: Kernel = SqliteHome(ram / "home").engine()
    engine.open(ALICE)
    with serving(engine, engine._ports.clock) as running:
        yield running
    engine.close()


@contextmanager
def flood(port: int, count: int) -> Iterator[None]:
    """So many begun requests from another process, held open."""
    command = [sys.executable, "-c", _FLOOD, str(port), str(count)]
    with processes.running(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield
        process.communicate()


def test_thousands_of_begun_requests_keep_nobody_out(service: Running) -> None:
    """Neither another peer, nor a new request of the same one, nor who was connected before."""
    port = int(service.url.rpartition(":")[2])
    assert most_connections() < HALF_OPEN
    elsewhere = httpx2.HTTPTransport(local_address="127.0.0.2")
    with (
        connect(service.url, service.key(str(ALICE))) as jay,
        httpx2.Client(transport=elsewhere, base_url=service.url, timeout=30) as neighbor,
    ):
        jay.retain("Alice prefers green tea")
        assert neighbor.get("/healthz").status_code == 200
        with flood(port, HALF_OPEN):
            for _ in range(20):
                assert neighbor.get("/healthz").status_code == 200
                assert httpx2.get(f"{service.url}/healthz", timeout=30).status_code == 200
                assert len(jay.recall("tea")) == 1
            with socket.create_connection(("127.0.0.1", port), timeout=30) as alone:
                alone.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b" 200 " in alone.recv(1000)
