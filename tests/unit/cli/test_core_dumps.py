"""A server leaves no core dump, whatever program collects them."""

from __future__ import annotations

import subprocess
import sys

import pytest

_ASKED = """
import ctypes, resource
from scrubjay import bootstrap
bootstrap.forbid_core_dumps()
print(resource.getrlimit(resource.RLIMIT_CORE)[0], ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the second half is Linux's own")
def test_a_process_that_forbids_core_dumps_is_not_dumpable() -> None:
    command = [sys.executable, "-c", _ASKED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]
