"""Child processes of tests, which end by signals whatever the tests themselves ignore."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

_PATIENCE: Final = 60.0

_DEFAULT_SIGNALS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def default_signals(command: Sequence[str]) -> list[str]:
    """The command with SIGINT and SIGTERM at their default disposition, in the same process.

    A child inherits an ignored signal, and a job in the background (nohup, `sh -c '... &'`) ignores
    SIGINT. This is no `preexec_fn`, because a fork beside threads is a warning from Python 3.12 on.
    """
    return [sys.executable, "-IS", "-c", _DEFAULT_SIGNALS, *command]


@contextmanager
def running(command: Sequence[Any], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Context manager: a child that has ended when the block is left, by itself or by force.

    `with Popen(…)` waits for it instead: a failed assertion inside would hang the tests for ever.
    """
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        except BaseException:
            process.terminate()
            raise
        finally:
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its own children, too


def until_it_listens(process: subprocess.Popen[Any], port: int) -> None:
    """Wait until a server on this machine takes connections; it must not end before."""
    until = time.monotonic() + _PATIENCE
    while True:
        assert process.poll() is None, "the server has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < until, "the server does not listen"
            time.sleep(0.02)


def free_ports(count: int = 1) -> int:
    """The first of this many ports in a row that nobody listens on, nor connects from.

    Processes that look at once begin elsewhere: what one of them found does not listen yet.
    """
    rows = 12_000 // count
    begin = os.getpid() * 101 % rows
    for turn in range(rows):
        first = 20_000 + (begin + turn) % rows * count
        if all(map(_is_free, range(first, first + count))):
            return first
    raise AssertionError("no ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0
