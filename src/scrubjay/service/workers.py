"""Worker processes of one service: one listening socket, and metrics held in common.

The parent opens nothing of the home while it has workers: it forks them, starts one again that
died, and ends with them. A worker whose parent died ends by itself.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, Final

from scrubjay.model.errors import StoreError

_LENGTH: Final = struct.Struct("<Q")
_BOARD_BYTES: Final = 256 * 1024
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
_STARTED: Final = 5.0
"""A worker that ends by itself sooner is not started again: the next one would end alike."""
_log = logging.getLogger(__name__)


class Lock:
    """Locks by number between processes; one is given up by a process that is killed."""

    def __init__(self) -> None:
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115  # closed with the crew
        self.close = self._file.close

    @contextmanager
    def held(self, number: int) -> Iterator[None]:
        """Hold one of the locks."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, number)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)


class Boards:
    """A board for each worker, on which it writes its metrics for the others to read."""

    def __init__(self, workers: int, lock: Lock) -> None:
        self._lock = lock
        self._boards = [mmap.mmap(-1, _BOARD_BYTES) for _ in range(workers)]

    def write(self, worker: int, told: bytes) -> None:
        """Replace what a worker told; what is too long stays untold."""
        if len(told) <= _BOARD_BYTES - _LENGTH.size:
            with self._lock.held(worker):
                self._boards[worker][: _LENGTH.size] = _LENGTH.pack(len(told))
                self._boards[worker][_LENGTH.size : _LENGTH.size + len(told)] = told

    def others(self, worker: int) -> list[bytes]:
        """What the other workers told last."""
        found = []
        for number, board in enumerate(self._boards):
            if number != worker:
                with self._lock.held(number):
                    (size,) = _LENGTH.unpack_from(board)
                    found.append(board[_LENGTH.size : _LENGTH.size + size])
        return [told for told in found if told]


class Crew:
    """The workers of one service, by their numbers from 0."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = Lock()
        self.boards = Boards(workers, self._lock)
        self._born: dict[int, tuple[int, float]] = {}
        self._ending = False
        for number in _ENDING:
            signal.signal(number, self._end)

    def run(self, work: Callable[[int], None]) -> None:
        """Run `work` in each worker until SIGTERM or Ctrl-C; StoreError if they fail at once."""
        alive, guard = os.pipe()
        failed = False
        for worker in range(self.workers):
            self._fork(worker, work, alive, guard)
        while self._born:
            pid, status = os.wait()
            worker, at = self._born.pop(pid)
            if self._ending:
                continue
            _log.error("worker.died", extra={"worker": worker, "status": status})
            if os.WIFEXITED(status) and monotonic() - at < _STARTED:
                failed = True
                self._end()
            else:
                self._fork(worker, work, alive, guard)
        self._lock.close()
        if failed:
            raise StoreError("The workers failed as they began.", hint="The log says why.")

    def _end(self, *_: object) -> None:
        self._ending = True
        for pid in list(self._born):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _fork(self, worker: int, work: Callable[[int], None], alive: int, guard: int) -> None:
        if self._ending:
            return
        # A signal waits meanwhile: this process would not know of a worker that is being made, and
        # the worker would take it for its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        pid = os.fork()
        if pid:
            self._born[pid] = worker, monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            return
        status = 1
        try:
            for number in _ENDING:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            os.close(guard)
            threading.Thread(target=_follow, args=(alive,), daemon=True).start()
            work(worker)
            status = 0
        except BaseException:  # seam: a worker never goes on with what its parent does
            _log.exception("worker.failed")
        finally:
            os._exit(status)


def _follow(alive: int) -> None:
    """End this process when its parent is gone: nobody would be left to end it."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)
