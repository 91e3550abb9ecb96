"""The threads of a service share one heap: what one of them freed is there for the others."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_THREADS = """
import ctypes, threading
from scrubjay import bootstrap
{bound}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
threads = [threading.Thread(target=libc.malloc, args=(100_000,)) for _ in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
libc.malloc_stats()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have no heap for each thread")
@pytest.mark.parametrize(("bound", "alone"), [("bootstrap.bound_heap()", True), ("", False)])
def test_the_threads_of_a_service_share_one_heap(bound: str, *, alone: bool) -> None:
    command = [sys.executable, "-c", _THREADS.format(bound=bound)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stderr.count("Arena ") == 1) is alone
