"""Error translation: SQLite and system errors as `StoreError`."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from scrubjay.adapters.disk import DENIED, NO_SPACE, busy, no_locks
from scrubjay.model.errors import Damaged, Full, NotFound, StoreError


def absent() -> NotFound:
    """The error for a scope that is not there."""
    return NotFound("There is no such scope in this store.")


def closed() -> StoreError:
    """The error for a store that was closed."""
    return StoreError("The store is closed.", hint="Open it again.")


def full() -> Full:
    """The error for a disk without space."""
    return Full("No space is left to write.")


def damaged() -> Damaged:
    """The error for a file that is not what was written."""
    return Damaged("A file of the store is damaged.")


def foreign() -> Damaged:
    """The error for a file that scrubjay did not make."""
    return Damaged("A file in the place of a store file is not one of scrubjay's.")


def fault(error: apsw.Error | OSError, system: int = 0) -> StoreError:
    """`StoreError` for an error of SQLite or the system; `system` is SQLite's last errno."""
    code: int | None = getattr(error, "extendedresult", None)
    if isinstance(error, OSError):
        system = error.errno or 0
    if isinstance(error, apsw.FullError) or code == apsw.SQLITE_IOERR_SHMSIZE:
        return full()
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return busy()
    if isinstance(error, apsw.NotADBError):
        return foreign()
    if isinstance(error, apsw.CorruptError | apsw.FormatError):
        return damaged()
    if system == errno.ENOLCK:
        return no_locks()
    refused = isinstance(error, apsw.CantOpenError | apsw.PermissionsError | apsw.ReadOnlyError)
    if not refused and not isinstance(error, apsw.IOError | OSError):
        return StoreError(f"The store failed in an unexpected way (code {code}).")
    if system in NO_SPACE:
        return full()
    if refused or system in DENIED:
        return StoreError(
            "A file of the store cannot be opened or written.",
            hint="Check who owns the data folder, its permissions, and that it is writable.",
        )
    return StoreError(
        "The disk failed to read or write a file of the store.",
        hint="Check the disk; what was acknowledged before is not affected.",
    )


@contextmanager
def translated() -> Iterator[None]:
    """Context manager: errors of SQLite or the system inside are raised as `StoreError`."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise fault(error) from error
