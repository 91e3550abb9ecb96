"""A node in a network namespace of its own: its cable is pulled, and nobody is told."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrubjay.ports import Failpoint
from tests.acceptance.peers import Peer
from tests.certificates import certificate_for_address
from tests.support.postgres import PostgresServer

NAMESPACE = "scrubjay-node"
HERE, THERE = "10.254.17.1", "10.254.17.2"
Record = Callable[[str, object], None]


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


@pytest.fixture
def cable() -> Iterator[str]:
    """The end of a cable that leads to the namespace; the other end is there."""
    ip(f"netns add {NAMESPACE}")
    ip(f"link add sj-here type veth peer name sj-there netns {NAMESPACE}")
    ip(f"address add {HERE}/30 dev sj-here")
    ip("link set sj-here up")
    ip(f"-n {NAMESPACE} address add {THERE}/30 dev sj-there")
    ip(f"-n {NAMESPACE} link set sj-there up")
    yield "sj-here"
    ip("link delete sj-here")
    ip(f"netns delete {NAMESPACE}")


@pytest.fixture
def home(cable: str, tmp_path: Path) -> Iterator[Path]:
    """A home on a server at the near end, which speaks TLS with a certificate for its address."""
    cert, key = certificate_for_address(HERE, tmp_path)
    server = PostgresServer(address=HERE, cert=cert, key=key)
    home = tmp_path / "home"
    home.mkdir()
    address = f"postgres://postgres@{HERE}:{server.port}/postgres?sslrootcert={cert}"
    (home / "store").write_text(address)
    yield home
    server.end()


def test_a_node_whose_cable_is_pulled_in_mid_commit_locks_the_others_out_for_seconds(
    home: Path, cable: str, record_property: Record
) -> None:
    """When it is back, what it was about to write is there once, and so is what others wrote."""
    with Peer() as near, Peer(["ip", "netns", "exec", NAMESPACE]) as far:
        near.on(home).ask("retain", "before")
        far.on(home).ask("open")
        far.begin("retain", "in the middle", key="k", stop_at=Failpoint.STORE_BEFORE_COMMIT)
        far.until(Failpoint.STORE_BEFORE_COMMIT)
        ip(f"link set {cable} down")
        begun = time.monotonic()
        near.ask("retain", "meanwhile")
        record_property("seconds until another node wrote", round(time.monotonic() - begun, 1))
        ip(f"link set {cable} up")
        far.go_on()
        assert far.answer() == "stored"
        assert near.ask("browse") == ["in the middle", "meanwhile", "before"]
        assert far.ask("browse") == near.ask("browse")
