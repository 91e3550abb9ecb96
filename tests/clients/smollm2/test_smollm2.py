"""A real language model: what is told in one session is in its request of the next.

A model this small answers nonsense, so nothing here looks at what it says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests import processes
from tests.support import loopback
from tests.support.loopback import Failure


class Relay:
    """Passes requests on to the model, and keeps them."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.port = 0
        self.requests: list[dict[str, Any]] = []
        self.statuses: list[int] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/v1"


@pytest.fixture(scope="module")
def relay(client_home: Path) -> Iterator[Relay]:
    """The running model, behind a relay."""
    command = [client_home / "bin" / "python", Path(__file__).with_name("serve.py")]
    with processes.running(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as model:
        assert model.stdout is not None
        state = Relay(f"http://127.0.0.1:{int(model.stdout.readline())}")

        class Handler(loopback.Handler):
            def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                state.requests.append(json.loads(raw))
                told = {"Content-Type": "application/json"}
                answer = httpx2.post(
                    f"{state.target}{self.path}", content=raw, headers=told, timeout=300
                )
                state.statuses.append(answer.status_code)
                kind = (("Content-Type", answer.headers["Content-Type"]),)
                self.answer(Failure(headers=kind, status=answer.status_code), answer.content)

        with loopback.running(Handler, threading.Event()) as state.port:
            yield state
        model.terminate()


def test_what_is_told_in_one_session_is_in_the_request_of_the_next(
    relay: Relay, tmp_path: Path
) -> None:
    role = tmp_path / "role.yaml"
    spec = {
        "role": "You answer in one short sentence.",
        "model": {"provider": "openai", "name": "smollm2", "base_url": relay.url, "max_tokens": 24},
        "memory": {"embeddings": {"provider": "local"}, "consolidation": {"enabled": False}},
    }
    document = {"kind": "Agent", "metadata": {"name": "assistant"}, "spec": spec}
    role.write_text(yaml.safe_dump(document))

    def chat(*words: str, typed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "scrubjay", "chat", str(role), *words],
            env={**os.environ, "SCRUBJAY_HOME": str(tmp_path / "home")},
            input=typed,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "did not answer" not in done.stderr
        return done.stdout

    chat(typed="My name is Alice and I drink oolong.\nexit\n")
    out = chat("--resume", typed="What do I drink?\nexit\n")
    assert "Resumed session with 2 messages." in out
    assert set(relay.statuses) == {200}
    assert "My name is Alice and I drink oolong." in json.dumps(relay.requests[-1]["messages"])
