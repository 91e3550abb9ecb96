"""The rights of a person end to end: two keys, and a service that is killed between two calls."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pyrage
import pytest

from tests.processes import default_signals

NEEDLE = "zanzibar"
READER = pyrage.x25519.Identity.generate()
_SERVE = (sys.executable, "-m", "scrubjay", "serve", "--port", "0", "--json")


class MortalService:
    """A service that is killed with SIGKILL before each call, and started again for it."""

    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "SCRUBJAY_HOME": str(home)}
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        self.kills = 0

    def run(self, *words: str) -> Any:
        """What a command says as JSON."""
        done = subprocess.run(
            [sys.executable, "-m", "scrubjay", *words, "--json"],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return json.loads(done.stdout)

    def begin(self) -> None:
        """Kill the process there is, and start another."""
        self.end()
        self._process = subprocess.Popen(
            default_signals(_SERVE),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = json.loads(self._process.stdout.readline())["url"]

    def end(self) -> None:
        """Kill it."""
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self.kills += 1
        self._process = None


class Holder:
    """The holder of a key: each call meets a fresh process."""

    def __init__(self, service: MortalService, token: str) -> None:
        self._service = service
        self._headers = {"Authorization": f"Bearer {token}"}

    def call(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """The answer of a call that ends with this status."""
        self._service.begin()
        return self.again(method, path, body, status)

    def again(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """The same, of the process there is."""
        url = path if path.startswith("/v1/") else f"/v1/personal/{path}"
        response = httpx2.request(
            method, self._service.url + url, json=body, headers=self._headers, timeout=60
        )
        assert response.status_code == status, response.text
        return response.json()


@pytest.fixture
def service(ram: Path) -> Iterator[MortalService]:
    service = MortalService(ram / "home")
    yield service
    service.end()


def exported(service: MortalService, owner: Holder) -> bytes:
    """The file of an export, of which each step is another process's."""
    job = owner.call("POST", "export", {"recipient": str(READER.to_public())}, 202)
    for _ in range(200):
        state = owner.call("GET", f"exports/{job['export_id']}")
        if state["state"] == "ready":
            break
    service.begin()
    sealed = httpx2.get(service.url + state["download_url"], timeout=60).content
    told = json.loads(pyrage.decrypt(sealed, [READER]))
    assert told["record_count"] == 3
    service.begin()
    assert httpx2.get(service.url + state["download_url"], timeout=60).status_code == 404
    return sealed


def test_the_rights_hold_for_two_keys_while_the_service_is_killed_between_two_calls(
    service: MortalService, ram: Path
) -> None:
    scope = ("--scope", "acme/alice")
    grants = [word for one in ("read", "write", "forget", "export") for word in ("-g", one)]
    made = service.run("keys", "create", "owner", *scope, *grants, "--actor", "user")
    owner = Holder(service, made["token"])
    made = service.run("keys", "create", "admin", *scope, "-g", "admin", "--actor", "operator")
    admin = Holder(service, made["token"])
    fact = {"category": "learned_context", "content_type": "fact"}

    # store, retrieve, and what an administrator sees of it
    tea = owner.call("POST", "store", fact | {"content": f"Alice drinks {NEEDLE} tea"}, 201)
    rome = owner.call("POST", "store", fact | {"content": "Alice lives in Rome"}, 201)
    found = owner.call("POST", "retrieve", {"query": NEEDLE})
    assert [one["memory_id"] for one in found["memories"]] == [tea["memory_id"]]
    admin.call("POST", "retrieve", {"query": NEEDLE}, 403)
    assert NEEDLE not in str(admin.call("GET", "status"))

    # rectify
    fixed = owner.call(
        "POST",
        "rectify",
        {"memory_id": rome["memory_id"], "content": "Alice lives in Milan", "reason": "moved"},
    )
    assert fixed["replaces"] == rome["memory_id"]

    # restrict by the administrator; lifted only once the owner was informed
    assert admin.call("POST", "restrict", {})["level"] == "all"
    owner.call("POST", "retrieve", {"query": NEEDLE}, 423)
    assert len(owner.call("GET", "memories")["data"]) == 3
    notice = admin.call("POST", "lift", {})["notice_id"]
    admin.call("POST", "lift", {"notice_id": notice}, 428)
    assert [one["id"] for one in owner.call("GET", "notices")["data"]] == [notice]
    assert admin.call("POST", "lift", {"notice_id": notice})["level"] == "none"

    # purposes
    assert owner.call("POST", "purposes", {"purpose": "patterns", "on": False})
    states = {one["purpose"]: one["on"] for one in owner.call("GET", "purposes")["data"]}
    assert states["patterns"] is False

    sealed = exported(service, owner)

    # forget in two steps
    asked = owner.call("POST", "forget", {"target": {"query": NEEDLE}})
    target = {"query": NEEDLE, "confirm_matches": True}
    body = {"target": target, "confirmation_token": asked["confirmation_token"]}
    gone = owner.call("POST", "forget", body)
    assert tea["memory_id"] in gone["memory_ids"]
    assert NEEDLE not in str(owner.call("GET", "memories"))

    # what was forgotten does not come back by an import
    content = base64.b64encode(sealed).decode()
    loaded = owner.call("POST", "import", {"content": content, "identity": str(READER)})
    assert loaded["forgotten"] >= 1
    assert NEEDLE not in str(owner.call("GET", "memories"))

    # destroy in two steps; the second call again gives the same receipt
    token = owner.call("POST", "destroy", {})["confirmation_token"]
    first = owner.call("POST", "destroy", {"confirmation_token": token})
    assert first["destroyed"] is True
    assert owner.call("POST", "destroy", {"confirmation_token": token}) == first
    owner.call("POST", "retrieve", {"query": NEEDLE}, 410)
    service.end()
    assert service.kills >= 25
    files = [path for path in (ram / "home").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if NEEDLE.encode() in path.read_bytes()]
