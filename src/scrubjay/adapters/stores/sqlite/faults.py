"""What SQLite and the system report, as errors of the domain. No path and no SQL gets through."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from scrubjay.domain.errors import Busy, Full, NotFound, StoreError

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_HINT_DENIED: Final = "Check who owns the data folder, its permissions, and that it is writable."
_HINT_DAMAGED: Final = "Run verify to see what is affected; restore it from a backup."
_HINT_DISK: Final = "Check the disk; what was acknowledged before is not affected."


def absent() -> NotFound:
    """The error for a scope that is not there."""
    return NotFound("There is no such scope in this store.")


def closed() -> StoreError:
    """The error for a store that was closed."""
    return StoreError("The store is closed.", hint="Open it again.")


def busy() -> Busy:
    """The error for a lock that somebody held too long."""
    return Busy("Another writer held the lock for too long; nothing was written.")


def full() -> Full:
    """The error for a disk without space."""
    return Full("No space is left to write.")


def damaged() -> StoreError:
    """The error for a file that is not what was written."""
    return StoreError("A file of the store is damaged.", hint=_HINT_DAMAGED)


def foreign() -> StoreError:
    """The error for a file that scrubjay did not make."""
    return StoreError(
        "A file in the place of a store file is not one of scrubjay's.", hint=_HINT_DAMAGED
    )


def denied() -> StoreError:
    """The error for a file that the system keeps from us."""
    return StoreError("A file of the store cannot be opened or written.", hint=_HINT_DENIED)


def unexpected(code: int | None) -> StoreError:
    """The error for what has no better one."""
    return StoreError(f"The store failed in an unexpected way (code {code}).")


def fault(error: apsw.Error | OSError, system: int = 0) -> StoreError:
    """The domain's error for what SQLite or the system raised; `system` is SQLite's last errno."""
    if isinstance(error, OSError):
        return _system_fault(error.errno or 0)
    code: int | None = getattr(error, "extendedresult", None)
    if isinstance(error, apsw.FullError) or code == apsw.SQLITE_IOERR_SHMSIZE:
        return full()
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return busy()
    if isinstance(error, apsw.NotADBError):
        return foreign()
    if isinstance(error, apsw.CorruptError | apsw.FormatError):
        return damaged()
    if isinstance(error, apsw.CantOpenError | apsw.PermissionsError | apsw.ReadOnlyError):
        return full() if system in _NO_SPACE else denied()
    if isinstance(error, apsw.IOError):
        return _system_fault(system)
    return unexpected(code)


def _system_fault(code: int) -> StoreError:
    if code in _NO_SPACE:
        return full()
    if code in _DENIED:
        return denied()
    return StoreError("The disk failed to read or write a file of the store.", hint=_HINT_DISK)


def is_passing(error: StoreError) -> bool:
    """Whether the connection is as good as before: nothing but space or a lock was missing."""
    return isinstance(error.__cause__, apsw.FullError | apsw.BusyError)


@contextmanager
def translated() -> Iterator[None]:
    """Whatever SQLite or the system refuses inside, raised as an error of the domain."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise fault(error) from error
