"""Real key services of our own: a SoftHSM token, and KMS as ministack has it, behind a relay."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from scrubjay.adapters.keyrings import kms
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.pkcs11 import wrapper_of
from scrubjay.engine import Keyring
from scrubjay.ports import SystemClock
from tests.processes import free_ports
from tests.support.objects import ASIDE, VARIABLES
from tests.support.postgres import REFUSED

MODULE: Final = Path("/usr/lib/softhsm/libsofthsm2.so")
PIN: Final = "5678"
_PATIENCE: Final = 60.0


class SoftToken:
    """A token of SoftHSM in a temporary folder; this process and its children find it."""

    def __init__(self) -> None:
        refused = REFUSED / "softhsm2"
        if refused.exists():
            pytest.skip(f"SoftHSM is not installable here: {refused.read_text()[-500:]}")
        folder = Path(tempfile.mkdtemp(prefix="scrubjay-token-"))
        tokens = folder / "tokens"
        tokens.mkdir()
        config = folder / "softhsm2.conf"
        config.write_text(f"directories.tokendir = {tokens}\nlog.level = ERROR\n")
        os.environ["SOFTHSM2_CONF"] = str(config)
        subprocess.run(
            [
                "softhsm2-util", "--init-token", "--free", "--label", "tests",
                "--so-pin", "1234", "--pin", PIN,
            ],
            check=True, capture_output=True,
        )  # fmt: skip
        (self._state,) = tokens.glob("*/generation")
        self._numbers = itertools.count(1)

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Whatever is made in it is not told to the sessions that were there before."""
        before = self._state.read_bytes()
        yield
        self._state.write_bytes(before)

    def address(self) -> str:
        """The address of a root key that is not there yet."""
        return f"pkcs11:token=tests;object=key{next(self._numbers)}?module-path={MODULE}"


class KeyService:
    """KMS on this machine alone."""

    def __init__(self) -> None:
        refused = REFUSED / "s3_server"
        if refused.exists():
            pytest.skip(f"The KMS server is not installable here: {refused.read_text()[-500:]}")
        self._numbers = itertools.count(1)
        self.port = free_ports()
        bound = {"GATEWAY_PORT": str(self.port), "BIND_HOST": "127.0.0.1"}
        self._folder = tempfile.mkdtemp(prefix="scrubjay-kms-")
        self._process = subprocess.Popen(
            [sys.executable, ASIDE / "bin" / "ministack"],
            cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **bound, "PYTHONPATH": str(ASIDE)},
        )  # fmt: skip
        os.environ.update(VARIABLES)
        until = time.monotonic() + _PATIENCE
        while not _listens(self.port):
            assert self._process.poll() is None, "the KMS server has ended"
            assert time.monotonic() < until, "the KMS server does not listen"
            time.sleep(0.05)

    def address(self, *, port: int | None = None, cache: float = 300.0) -> str:
        """The address of a root key that is not there yet."""
        endpoint = f"http://127.0.0.1:{port or self.port}"
        name = f"tests/key{next(self._numbers)}"
        return f"kms://{name}?region=eu-central-1&endpoint={endpoint}&cache={cache}"

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait(_PATIENCE)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class Relay:
    """What stands before a KMS server: it lets requests through, throttles them, or is silent."""

    def __init__(self, port: int) -> None:
        self.refusing = ""
        self.silent = False
        self.asked = 0
        self.over = threading.Event()
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                relay.asked += 1
                if relay.silent:
                    relay.over.wait(_PATIENCE)
                    return
                if relay.refusing:
                    status, answer = 400, f'{{"__type":"{relay.refusing}"}}'.encode()
                else:
                    status, answer = forward(port, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def end(self) -> None:
        """Answer no more."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


def forward(port: int, headers: Any, body: bytes) -> tuple[int, bytes]:
    """What the server answers to a request."""
    kept = {name: value for name, value in headers.items() if name.lower() != "host"}
    request = Request(f"http://127.0.0.1:{port}/", data=body, headers=kept, method="POST")
    try:
        with urlopen(request) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


@contextmanager
def relayed(service: KeyService) -> Iterator[Relay]:
    """A relay before a service."""
    relay = Relay(service.port)
    try:
        yield relay
    finally:
        relay.end()


def token_keyring(keys: Path, address: str) -> Keyring:
    """A keyring whose root key is in a token."""
    folder = KeysFolder(keys, SystemClock())
    return Keyring(folder, wrapper_of(address, folder, PIN), SystemClock())


def kms_keyring(keys: Path, address: str) -> Keyring:
    """A keyring whose root key is in KMS."""
    folder = KeysFolder(keys, SystemClock())
    return Keyring(folder, kms.wrapper_of(address, folder), SystemClock())
