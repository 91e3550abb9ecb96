"""The command that serves a pod: where it listens, what it asks for, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scrubjay.cli.app import run
from scrubjay.cli.exits import Exit
from scrubjay.cli.serve import hosts_of
from tests.dialects.clawdapus.pod import START, Manifest, entry, post, send, user
from tests.processes import default_signals
from tests.support.model_server import note, serve_model

LINE = entry([user("Which warehouse holds the blue paint?")], "Warehouse nine.", START)


@contextmanager
def served(
    home: Path, *arguments: str, command: str = "plane serve", **environment: str
) -> Iterator[tuple[str, str]]:
    """The command in a process of its own; yields where it serves and its first words."""
    port = ("--port", "0") if command == "serve" else ()
    process = subprocess.Popen(
        default_signals([sys.executable, "-m", "scrubjay", *command.split(), *port, *arguments]),
        env={**os.environ, "SCRUBJAY_HOME": str(home), "PORT": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        words = process.stdout.readline()
        yield words.split()[-1], words
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        process.stdout.close()


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_it_serves_the_port_of_the_environment_and_keeps_what_it_acknowledged(
    tmp_path: Path,
) -> None:
    body = {"agent_id": "analyst", "entry": LINE}
    asked = {"agent_id": "analyst", "messages": [user("Where is the blue paint?")]}
    port = free_port()
    with served(tmp_path, PORT=str(port)) as (url, words):
        assert words == f"scrubjay serves http://127.0.0.1:{port}\n"
        assert send(url, "GET", "/health").status == 200
        assert post(Manifest(url), "retain", body, seconds=30).status == 202
    with served(tmp_path, "--recall-ms", "30000") as (url, _):
        answer = post(Manifest(url), "recall", asked, seconds=30)
        assert b"Warehouse nine" in answer.body


def test_only_the_pods_of_the_environment_are_served(tmp_path: Path) -> None:
    with served(tmp_path, SCRUBJAY_PLANE_PODS="desk lab") as (url, _):
        for pod, status in (("desk", 202), ("lab", 202), ("other", 403)):
            body = {"agent_id": "analyst", "pod": pod, "entry": LINE}
            assert post(Manifest(url), "retain", body, seconds=30).status == status


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7"])
def test_beyond_loopback_it_wants_tls_or_to_be_told_that_it_needs_none(
    tmp_path: Path,
    host: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path))
    assert run(["plane", "serve", "--host", host, "--port", "0"]) == Exit.FORBIDDEN
    assert "--insecure-http" in capsys.readouterr().err


def test_told_that_it_needs_no_tls_it_serves_the_network_of_the_pod(tmp_path: Path) -> None:
    options = ("--host", "0.0.0.0", "--insecure-http", "--allow-host", "mem-svc")
    with served(tmp_path, *options) as (url, _):
        here = url.replace("0.0.0.0", "127.0.0.1")
        answer = send(here, "GET", "/health", headers={"Host": "mem-svc:8080"})
        assert answer.status == 200


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("192.0.2.7", {"192.0.2.7"}),
        ("fd00::1", {"[fd00::1]"}),
        ("fd00:0:0::1", {"[fd00::1]"}),
        ("0.0.0.0", set()),
        ("::", set()),
    ],
)
def test_it_answers_to_the_address_it_listens_on(host: str, allowed: set[str]) -> None:
    assert hosts_of(host, ["mem-svc", "[fd00::2]"]) == allowed | {"mem-svc", "[fd00::2]"}


def test_the_service_offers_the_modes_of_the_plane_and_health_without_one(tmp_path: Path) -> None:
    recall, asked = ("--plane-recall-only", "--recall-ms", "30000"), {"agent_id": "analyst"}
    with served(tmp_path, *recall, command="serve", SCRUBJAY_PLANE_TOKEN="t") as (url, _):
        manifest = Manifest(url, token="t")
        assert post(manifest, "recall", asked, seconds=30).status == 200
        body = {"agent_id": "analyst", "entry": LINE}
        assert post(manifest, "retain", body, seconds=30).status == 404
    with served(tmp_path, command="serve") as (url, _):
        assert (send(url, "GET", "/health").status, send(url, "GET", "/health").body) == (200, b"")
        assert post(Manifest(url), "recall", asked, seconds=30).status == 404


def test_the_token_of_the_environment_is_asked_for(tmp_path: Path) -> None:
    with served(tmp_path, SCRUBJAY_PLANE_TOKEN="secret") as (url, _):
        for token, status in ((None, 401), ("secret", 200)):
            answer = post(Manifest(url, token=token), "recall", {"agent_id": "a"}, seconds=30)
            assert answer.status == status
        assert b"secret" not in send(url, "GET", "/.claw-describe.json").body


@pytest.mark.parametrize(("host", "let_in"), [("mem-svc", True), ("elsewhere.example", False)])
def test_it_answers_to_the_name_the_pod_gives_it_and_to_no_other(
    tmp_path: Path, host: str, let_in: bool
) -> None:
    with served(tmp_path, "--allow-host", "mem-svc", "--recall-only") as (url, _):
        answer = send(url, "GET", "/health", headers={"Host": f"{host}:8080"})
        assert (answer.status == 200) is let_in


def test_it_ends_soon_while_a_model_thinks_and_has_the_turn_read_after_the_next_start(
    tmp_path: Path,
) -> None:
    body = {"agent_id": "analyst", "entry": LINE}
    with serve_model(note("The blue paint is in warehouse nine.")) as model:
        asked, answered = threading.Event(), threading.Event()

        def think(_: object) -> None:
            asked.set()
            answered.wait(20)

        model.thinking = think
        settings = {
            "SCRUBJAY_EXTRACTION_URL": model.openai_url,
            "SCRUBJAY_EXTRACTION_MODEL": "small",
        }
        with served(tmp_path, **settings) as (url, _):
            assert post(Manifest(url), "retain", body, seconds=10).status == 202
            assert asked.wait(20)
            begun = time.monotonic()
        assert time.monotonic() - begun < 8
        answered.set()
        model.thinking = None
        recalled = {"agent_id": "analyst", "messages": [user("Where is the blue paint?")]}
        with served(tmp_path, **settings) as (url, _):
            found = b""
            while b"is in warehouse nine" not in found:
                assert time.monotonic() - begun < 60
                found = post(Manifest(url), "recall", recalled, seconds=10).body
