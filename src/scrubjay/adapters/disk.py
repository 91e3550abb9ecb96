"""Atomic, durable file operations for the file-based adapters.

A file is written under a hidden name, synced, and only then linked or renamed to its own; the
folder is synced after that. Every step is announced first, so that tests can stop, fail or record
at each of them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Final

from msgspec import Struct

from scrubjay.model.errors import Busy, Full, StoreError
from scrubjay.ports import patient, waited

LEFTOVER: Final = ".new."
Noise = Callable[[int], bytes]
NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


class Step(StrEnum):
    """One operation on the disk."""

    READ = "read"
    FOLDER = "folder"
    CREATE = "create"
    CLAIM = "claim"
    WRITE = "write"
    SYNC = "sync"
    LINK = "link"
    RENAME = "rename"
    OVERWRITE = "overwrite"
    UNLINK = "unlink"
    SYNC_FOLDER = "sync-folder"
    REMOVE_FOLDER = "remove-folder"


Watch = Callable[[Step, Path], None]


def unwatched(_: Step, __: Path) -> None:
    """Observer of steps that does nothing: the default outside tests."""


@contextmanager
def failures(place: str) -> Iterator[None]:
    """Context manager: system errors inside are raised as `ScrubjayError`."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            raise Full(f"No space is left for the {place}.") from error
        if error.errno in DENIED:
            raise StoreError(
                f"The system does not allow this in the {place}.",
                hint=f"Check who owns the {place}, its permissions, and that it is not read-only.",
            ) from error
        if error.errno == errno.ENOLCK:
            raise no_locks() from error
        reason = os.strerror(error.errno or errno.EIO)
        raise StoreError(f"The {place} failed: {reason}.") from error


def no_locks() -> StoreError:
    """The error for a file system on which files cannot be locked."""
    return StoreError(
        "The file system gives no locks on files.",
        hint="Keep data and keys on a local disk; a network share needs its lock service.",
    )


class Disk(Struct, frozen=True):
    """Durable file operations; all of them raise OSError."""

    watch: Watch = unwatched
    lock_seconds: float = 30.0

    def read(self, path: Path) -> bytes | None:
        """The content of a file; None if it is not there."""
        self.watch(Step.READ, path)
        with suppress(FileNotFoundError):
            return path.read_bytes()
        return None

    def names(self, folder: Path) -> list[str]:
        """What a folder holds, sorted, leftovers included; nothing if it is not there."""
        with suppress(FileNotFoundError):
            return sorted(path.name for path in folder.iterdir())
        return []

    def make_folder(self, folder: Path) -> None:
        """Create a folder with mode 0700, durable together with those above it."""
        if not folder.parent.is_dir():
            self.make_folder(folder.parent)
        self.watch(Step.FOLDER, folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        # Also when it was there: whoever made it may have died before this sync.
        self.sync_folder(folder.parent)

    def replace(self, path: Path, content: bytes) -> None:
        """Write or replace a file, atomically."""
        with self._draft(path, content) as draft:
            self.watch(Step.RENAME, path)
            draft.replace(path)
        self.sync_folder(path.parent)

    def add(self, path: Path, content: bytes, noise: Noise) -> bool:
        """Write a file unless it exists; returns whether it was written.

        Either way the file is durable on return. An unused draft is overwritten.
        """
        with self._draft(path, content) as draft:
            self.watch(Step.LINK, path)
            try:
                path.hardlink_to(draft)
            except FileExistsError:
                added = False
                self.shred(draft, noise)
            else:
                added = True
                self._unlink(draft)
        self.sync_folder(path.parent)
        return added

    def exchange(self, path: Path, content: bytes, noise: Noise) -> None:
        """Write a file like `replace`, then overwrite the old content."""
        with ExitStack() as old:
            fd = None
            with suppress(FileNotFoundError):
                fd = old.enter_context(_opened(path, os.O_WRONLY | os.O_NOFOLLOW))
            self.replace(path, content)
            if fd is not None:
                self._drown(fd, path, noise)

    def shred(self, path: Path, noise: Noise) -> None:
        """Overwrite a file and unlink it; an absent one is fine. The folder is not synced."""
        with suppress(FileNotFoundError):
            with _opened(path, os.O_WRONLY | os.O_NOFOLLOW) as fd:
                self._drown(fd, path, noise)
            self._unlink(path)

    def delete(self, path: Path) -> None:
        """Unlink a file, durably; an absent one is fine."""
        self._unlink(path)
        if path.parent.is_dir():
            self.sync_folder(path.parent)

    def remove_folder(self, folder: Path) -> None:
        """Remove an empty folder, durably; one that is absent or in use again is fine."""
        self.watch(Step.REMOVE_FOLDER, folder)
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                raise
        if folder.parent.is_dir():
            self.sync_folder(folder.parent)

    def sweep(self, folder: Path) -> None:
        """Unlink drafts of dead writers in a folder; drafts in use are locked and stay."""
        for name in self.names(folder):
            if not name.startswith(LEFTOVER):
                continue
            with (
                suppress(FileNotFoundError, BlockingIOError),
                _opened(folder / name, os.O_WRONLY | os.O_NOFOLLOW) as fd,
            ):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The name may belong to a newer file by now; its writer holds the lock on it.
                if os.fstat(fd).st_ino == (folder / name).stat().st_ino:
                    self._unlink(folder / name)

    def sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        self.watch(Step.SYNC_FOLDER, folder)
        with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as fd:
            _sync(fd)

    @contextmanager
    def locked(self, path: Path, *, shared: bool = False) -> Iterator[None]:
        """Hold an advisory lock on a file, exclusive or shared; the file is created if missing.

        Busy if another process holds it for longer than `lock_seconds`.
        """
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fd = LockWait(os.fspath(path), how).wait(patient(self.lock_seconds))
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def _draft(self, path: Path, content: bytes) -> Iterator[Path]:
        """Write the content, synced, to a hidden draft beside `path`; locked while it is in use."""
        fd, draft = self._claim(path)
        try:
            self.watch(Step.WRITE, draft)
            _write(fd, content)
            self.watch(Step.SYNC, draft)
            _sync(fd)
            yield draft
        except Exception:  # seam: whatever failed, a half-written file must not keep its space
            draft.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def _claim(self, path: Path) -> tuple[int, Path]:
        for number in count():
            draft = path.with_name(f"{LEFTOVER}{path.name}.{number}")
            self.watch(Step.CREATE, draft)
            try:
                fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                continue
            try:
                self.watch(Step.CLAIM, draft)
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)  # a sweep is about to take it for a leftover
                continue
            except OSError:
                os.close(fd)
                draft.unlink(missing_ok=True)
                raise
            if os.fstat(fd).st_nlink > 0:
                return fd, draft
            # A sweep took it for a leftover before it was locked.
            os.close(fd)
        raise AssertionError("unreachable: count() does not end")

    def _drown(self, fd: int, path: Path, noise: Noise) -> None:
        self.watch(Step.OVERWRITE, path)
        _write(fd, noise(os.fstat(fd).st_size))
        self.watch(Step.SYNC, path)
        _sync(fd)

    def _unlink(self, path: Path) -> None:
        self.watch(Step.UNLINK, path)
        path.unlink(missing_ok=True)


class LockWait:
    """A thread in the kernel's queue for a lock; left behind when the time is up.

    It has a file of its own, so that a lock that comes too late is given back by closing it.
    """

    def __init__(self, path: str, how: int = fcntl.LOCK_EX) -> None:
        self._path = path
        self._how = how
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._mutex = threading.Lock()
        self._done = threading.Event()
        self._abandoned = False
        self._failure: OSError | None = None
        try:
            fcntl.flock(self._fd, how | fcntl.LOCK_NB)
            self._done.set()
        except BlockingIOError:
            threading.Thread(target=self._run, name="scrubjay-lock", daemon=True).start()
        except OSError:
            os.close(self._fd)
            raise

    def wait(self, timeout: float) -> int:
        """The locked file; Busy if it was not to be had in time."""
        begun = monotonic()
        try:
            self._done.wait(max(0.0, timeout))
        except BaseException:  # seam: the lock may come yet, and nobody would give it back
            self._leave()
            raise
        finally:
            waited(monotonic() - begun)
        if self._leave(unless_done=True):
            raise busy(self._path)
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
            fcntl.flock(self._fd, self._how)
        except OSError as error:
            self._failure = error
        with self._mutex:
            if self._abandoned or self._failure is not None:
                os.close(self._fd)
            self._done.set()


def busy(path: str | None = None) -> Busy:
    """The error for a lock that somebody held too long: it names the process if the system does."""
    holder = "" if path is None else _holder(path)
    return Busy(f"Another process{holder} held the lock of the store for too long.")


def _holder(path: str) -> str:
    with suppress(OSError, ValueError):
        number = str(os.stat(path).st_ino)
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            _, kind, _, _, pid, place, *_ = line.split()  # who waits has an arrow for its kind
            if kind == "FLOCK" and place.rpartition(":")[2] == number and int(pid) > 0:
                return f" (process {pid})"
    return ""


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def _write(fd: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]


def _sync(fd: int) -> None:
    if _FULL_SYNC is None:
        os.fsync(fd)
    else:
        # On macOS fsync leaves the bytes in the drive's cache.
        fcntl.fcntl(fd, _FULL_SYNC)
