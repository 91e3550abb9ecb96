"""Exit codes: what a script learns of an error."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError


class Exit(IntEnum):
    """Every exit code there is."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    FORBIDDEN = 4
    CONFLICT = 5
    FROZEN = 6
    UNAVAILABLE = 7
    INTERRUPT = 130


_BY_CLASS: Final[tuple[tuple[type[ScrubjayError], Exit], ...]] = (
    (errors.InvalidRequest, Exit.USAGE),
    (errors.NeedsConfirmation, Exit.USAGE),
    (errors.NotFound, Exit.NOT_FOUND),
    (errors.Forbidden, Exit.FORBIDDEN),
    (errors.LimitReached, Exit.FORBIDDEN),
    (errors.Conflict, Exit.CONFLICT),
    (errors.Destroyed, Exit.CONFLICT),
    (errors.Changed, Exit.CONFLICT),
    (errors.Frozen, Exit.FROZEN),
    (errors.Busy, Exit.UNAVAILABLE),
    (errors.Full, Exit.UNAVAILABLE),
    (errors.EmbedderError, Exit.UNAVAILABLE),
    (errors.ExtractorError, Exit.UNAVAILABLE),
    (errors.KeyMissing, Exit.UNAVAILABLE),
    (errors.Locked, Exit.UNAVAILABLE),
)


def exit_code(error: ScrubjayError) -> Exit:
    """The exit code of an error, by its class; the first that fits."""
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), Exit.FAILURE)
