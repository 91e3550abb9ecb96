"""Real S3 servers of our own: one that is exact, and one whose objects are files to search.

moto keeps what was put in memory and replaces it at once, as S3 does. rclone keeps each object in
a file, whose readers are disturbed if it is replaced; the engine never puts a name twice.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

import pytest

from tests.support.postgres import REFUSED

VARIABLES: Final = {"AWS_ACCESS_KEY_ID": "scrubjay", "AWS_SECRET_ACCESS_KEY": "a secret of tests"}
_PATIENCE: Final = 60.0
_ASIDE: Final = Path(__file__).parents[2] / "build" / "s3_server"


class ObjectServer(ABC):
    """An S3 server; each `address` is that of a bucket of its own."""

    def __init__(self) -> None:
        self._holder = tempfile.TemporaryDirectory(prefix="scrubjay-objects-")
        self.folder = Path(self._holder.name)
        self._numbers = itertools.count(1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    @abstractmethod
    def command(self) -> list[str | Path]:
        """What starts it."""

    @abstractmethod
    def make(self, bucket: str) -> None:
        """Make a bucket."""

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(
            self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(_ASIDE)},
        )  # fmt: skip
        until = time.monotonic() + _PATIENCE
        while True:
            assert self._process.poll() is None, "the S3 server has ended"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < until, "the S3 server does not listen"
                time.sleep(0.02)

    def stop(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait(_PATIENCE)

    def end(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        self._holder.cleanup()

    def address(self) -> str:
        """The address of blobs in a new bucket."""
        bucket = f"bucket{next(self._numbers)}"
        self.make(bucket)
        return f"s3://{bucket}/blobs?endpoint=http://127.0.0.1:{self.port}"


class MotoServer(ObjectServer):
    """moto in server mode; skips where it could not be installed."""

    def command(self) -> list[str | Path]:
        refused = REFUSED / "s3_server"
        if refused.exists():
            pytest.skip(f"The S3 server is not installable here: {refused.read_text()[-500:]}")
        program = _ASIDE / "bin" / "moto_server"
        return [sys.executable, program, "-H", "127.0.0.1", "-p", str(self.port)]

    def make(self, bucket: str) -> None:
        urlopen(Request(f"http://127.0.0.1:{self.port}/{bucket}", method="PUT")).close()


class FileServer(ObjectServer):
    """rclone; `folder` has a folder for each bucket, and a file for each object."""

    def command(self) -> list[str | Path]:
        keys = ",".join(VARIABLES.values())
        return [
            Path(sys.executable).with_name("rclone"), "serve", "s3", self.folder,
            "--auth-key", keys, "--addr", f"127.0.0.1:{self.port}",
            "--config", "/dev/null", "--dir-cache-time", "0",
        ]  # fmt: skip

    def make(self, bucket: str) -> None:
        (self.folder / bucket).mkdir()
