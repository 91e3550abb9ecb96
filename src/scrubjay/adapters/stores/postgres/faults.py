"""Error translation: failures of PostgreSQL and of the way to it as `StoreError`."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors

from scrubjay.adapters.disk import busy
from scrubjay.model.errors import Busy, Damaged, Full, NotFound, StoreError

_GONE: Final = ("08", "57P0", "25006", "53300")
"""States in which another try, perhaps on another connection, may find the primary."""
_ABORTED: Final = (errors.SerializationFailure, errors.DeadlockDetected)

_HINTS: Final = {
    "certificate": "Its certificate must be for this host name; `sslrootcert` names the authority.",
    "SSL": "Beyond this machine it must speak TLS: set `ssl = on` there.",
    "authentication": "It refuses this user: check the name, and the password in libpq's file.",
    "role": "It does not know this user: check the name in the address.",
    "does not exist": "There is no such database on that server: make it with createdb.",
    "": "Try again; if it persists, check the server, its address and the network.",
}
"""What to do, by a word of what libpq says of a connection that was not made."""


def is_lost(error: BaseException) -> bool:
    """Whether the connection, or the primary behind it, is lost: what was asked may have happened.

    Errors without a state are the client's own: the server closed the connection, or is silent.
    """
    if not isinstance(error, psycopg.OperationalError | errors.ReadOnlySqlTransaction):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_GONE)


def is_passing(error: BaseException) -> bool:
    """Whether another try may succeed: a lost connection, a deadlock, a failed serialization."""
    return is_lost(error) or isinstance(error, _ABORTED)


def absent() -> NotFound:
    """The error for a scope that is not there."""
    return NotFound("There is no such scope in this store.")


def unreachable(error: psycopg.Error | None = None) -> Busy:
    """The error for a database that does not answer, or lets nobody in."""
    said = str(error)
    hint = next((hint for word, hint in _HINTS.items() if word in said), _HINTS[""])
    return Busy("The database does not answer.", hint=hint)


def fault(error: psycopg.Error) -> StoreError:
    """`StoreError` for an error of PostgreSQL; its text, which may quote rows, is not repeated."""
    if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled):
        return busy()
    if is_passing(error):
        return unreachable(error)
    if isinstance(error, errors.DiskFull | errors.OutOfMemory):
        return Full("No space is left to write.")
    if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
        return Damaged("The database reports damaged data.")
    if isinstance(error, errors.InsufficientPrivilege | errors.InvalidAuthorizationSpecification):
        return StoreError(
            "The database refuses this user.",
            hint="The user of the URL must own the database, or be granted its schema scrubjay.",
        )
    return StoreError(f"The database failed in an unexpected way (state {error.sqlstate}).")
