"""A real S3 server of our own: moto in server mode, installed aside by `tools/setup.sh`."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

import pytest

from tests.processes import free_ports, until_it_listens
from tests.support.postgres import REFUSED

VARIABLES: Final = {"AWS_ACCESS_KEY_ID": "scrubjay", "AWS_SECRET_ACCESS_KEY": "a secret of tests"}
_PATIENCE: Final = 60.0
ASIDE: Final = Path(__file__).parents[2] / "build" / "s3_server"


class ObjectServer:
    """The server; it keeps what was put in memory, and replaces it at once, as S3 does."""

    def __init__(self) -> None:
        refused = REFUSED / "s3_server"
        if refused.exists():
            pytest.skip(f"The S3 server is not installable here: {refused.read_text()[-500:]}")
        self._numbers = itertools.count(1)
        self.port = free_ports()
        program = ASIDE / "bin" / "moto_server"
        self._process = subprocess.Popen(
            [sys.executable, program, "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ASIDE)},
        )  # fmt: skip
        until_it_listens(self._process, self.port)

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait(_PATIENCE)

    def address(self) -> str:
        """The address of blobs in a new bucket."""
        bucket = f"bucket{next(self._numbers)}"
        urlopen(Request(f"http://127.0.0.1:{self.port}/{bucket}", method="PUT")).close()
        return f"s3://{bucket}/blobs?endpoint=http://127.0.0.1:{self.port}"
