"""An advisory lock per file: writers of all processes queue on it, so that no write is unlucky.

SQLite's own lock is polled, and with many writers some never get it in time. This one is the
kernel's queue: whoever cannot have it at once waits in a thread of its own, which can be left
behind when the time is up.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from scrubjay.adapters.stores.sqlite import connections

NEW: Final = ".new"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class FileLock:
    """One holder's handle on a lock file; not to be shared by threads at the same time."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = os.open(path, _FLAGS, 0o600)

    def acquire(self, timeout: float) -> None:
        """Take the lock; Busy if somebody else has it for longer than `timeout` seconds."""
        if self._fd is None:
            self._fd = os.open(self._path, _FLAGS, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._queue(timeout)

    def release(self) -> None:
        """Give the lock back; the file stays open."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file, and of the lock with it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def is_named(self) -> bool:
        """Whether the locked file is still the one its path leads to."""
        return self._fd is not None and os.fstat(self._fd).st_nlink > 0

    def _queue(self, timeout: float) -> None:
        waiter = _Waiter(self._path)
        fd = waiter.wait(timeout)
        self.close()
        self._fd = fd


class _Waiter:
    """A thread in the kernel's queue; it has a file of its own, so it can be left behind."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, _FLAGS, 0o600)
        self._mutex = threading.Lock()
        self._done = threading.Event()
        self._abandoned = False
        self._failure: OSError | None = None
        threading.Thread(target=self._run, name="scrubjay-lock", daemon=True).start()

    def wait(self, timeout: float) -> int:
        """The locked file; Busy if it was not to be had in time."""
        try:
            self._done.wait(max(0.0, timeout))
        except BaseException:  # seam: the lock may come yet, and nobody would give it back
            self._leave()
            raise
        if self._leave(unless_done=True):
            raise connections.busy()
        if self._failure is not None:
            raise self._failure
        return self._fd

    def _leave(self, *, unless_done: bool = False) -> bool:
        with self._mutex:
            if self._done.is_set():
                if not unless_done and self._failure is None:
                    os.close(self._fd)
                return False
            self._abandoned = True
            return True

    def _run(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            self._failure = error
        with self._mutex:
            if self._abandoned or self._failure is not None:
                os.close(self._fd)
            self._done.set()


class Anchor:
    """An open lock file, to tell whether a database is still the one that was opened.

    A lock file is unlinked with its database, and made anew with a new one.
    """

    __slots__ = ("_fd",)

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, _FLAGS, 0o600)

    def holds(self) -> bool:
        """Whether the file is not unlinked."""
        return os.fstat(self._fd).st_nlink > 0

    def close(self) -> None:
        """Let go of the file; once is enough."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


@contextmanager
def renewed(path: str) -> Iterator[None]:
    """Put a new lock file, locked, in the place of the one at `path`, which the caller holds."""
    fd = os.open(path + NEW, _FLAGS, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        # Locked before it has its name: whoever opens it there waits like those at the old one.
        os.rename(path + NEW, path)
        yield
    finally:
        os.close(fd)


@contextmanager
def held(path: str, timeout: float) -> Iterator[None]:
    """Hold the lock of `path` for once; the file locked has that name while it is held."""
    deadline = monotonic() + timeout
    lock = FileLock(path)
    try:
        lock.acquire(timeout)
        while not lock.is_named():  # its last holder removed the file together with the scope
            lock.close()
            lock.acquire(deadline - monotonic())
        yield
    finally:
        lock.close()
