"""The command that serves a pod: where it listens, what it asks for, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scrubjay.testing.model_server import note, serve_model
from tests.dialects.clawdapus.pod import START, Manifest, entry, post, send, user

LINE = entry([user("Which warehouse holds the blue paint?")], "Warehouse nine.", START)


@contextmanager
def served(home: Path, *arguments: str, **environment: str) -> Iterator[tuple[str, str]]:
    """The command in a process of its own; yields where it serves and its first words."""
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay", "plane", "serve", *arguments],
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


def test_it_serves_the_port_of_the_environment_and_keeps_what_it_acknowledged(
    tmp_path: Path,
) -> None:
    body = {"agent_id": "analyst", "entry": LINE}
    asked = {"agent_id": "analyst", "messages": [user("Where is the blue paint?")]}
    with served(tmp_path) as (url, words):
        assert words.startswith("scrubjay serves http://127.0.0.1:")
        assert send(url, "GET", "/health").status == 200
        assert post(Manifest(url), "retain", body, seconds=10).status == 202
    with served(tmp_path) as (url, _):
        answer = post(Manifest(url), "recall", asked, seconds=10)
        assert b"Warehouse nine" in answer.body


def test_the_token_of_the_environment_is_asked_for(tmp_path: Path) -> None:
    with served(tmp_path, SCRUBJAY_PLANE_TOKEN="secret") as (url, _):
        for token, status in ((None, 401), ("secret", 200)):
            answer = post(Manifest(url, token=token), "recall", {"agent_id": "a"}, seconds=10)
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
