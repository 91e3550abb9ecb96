"""Problem details (RFC 9457): the table from errors to status codes, and their JSON form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta, MsgspecError, Struct, ValidationError

from scrubjay.bridge import TooLate
from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError

TYPE: Final = "application/problem+json"
STATUS: Final[Mapping[type[ScrubjayError], int]] = {
    errors.InvalidRequest: 422,
    errors.NotFound: 404,
    errors.Forbidden: 403,
    errors.LimitReached: 429,
    errors.Frozen: 423,
    errors.NeedsConfirmation: 428,
    errors.Conflict: 409,
    errors.Stale: 412,
    errors.Destroyed: 410,
    errors.Busy: 503,
    errors.Full: 507,
    errors.KeyUnavailable: 503,
    errors.OutcomeUnknown: 503,
    errors.Changed: 409,
    errors.Timeout: 504,
    errors.EmbedderError: 502,
    errors.ExtractorError: 502,
    errors.Locked: 503,
    errors.UserLocked: 423,
}
"""HTTP status of each error; a subclass that is not listed has that of its base, else 500."""
REFUSALS: Final = frozenset({400, 401, 405, 408, 413, 415, 431, 500, 503})
"""Statuses of a request that the service refuses before the verb, whatever the verb."""
_AGAIN: Final = {429: "60", 503: "1"}
"""Retry-After in seconds, by status; an allowance may take longer."""
_PART: Final = re.compile(r"[^.\[\]]+")
"""A step of the path in which msgspec names a field: `$.tags[0]`."""
_NAMED: Final = re.compile(r"(?:unknown|required) field `([^`]*)`")
_TITLES: Final = {
    400: "The request is not well formed",
    401: "A key is needed",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "The request cannot be carried out as it was written",
    431: "The headers are too large",
    500: "Something went wrong here",
}


class InvalidField(Struct, frozen=True, kw_only=True):
    """One invalid field of a request."""

    pointer: Annotated[str, Meta(description="The JSON pointer of the field.")]
    detail: Annotated[str, Meta(description="What is wrong with it.")]


class ProblemDocument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as problem+json (RFC 9457): what went wrong, and what to do about it."""

    type: Annotated[str, Meta(description="Always about:blank; `code` tells the kind.")]
    title: Annotated[str, Meta(description="The kind of problem in words.")]
    status: Annotated[int, Meta(description="The HTTP status.")]
    detail: Annotated[str, Meta(description="What went wrong, in a sentence.")]
    code: Annotated[str, Meta(description="The error code; stable across versions.")]
    # Not its path: that may hold what a person said.
    instance: Annotated[str, Meta(description="The request as a URN.")] = ""
    hint: Annotated[str, Meta(description="What to do about it.")] = ""
    request_id: Annotated[str, Meta(description="The request's id in the log.")] = ""
    errors: Annotated[tuple[InvalidField, ...], Meta(description="The fields that are wrong.")] = ()


class Problem(Exception):  # the name RFC 9457 gives it
    """A request that the service refuses before it reaches the engine."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str | None = None,
        places: Sequence[InvalidField] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.places = places
        self.headers = dict(headers or {})
        self.logged: dict[str, str] = {}
        """Facts for the log alone."""

    def document(self, request_id: str) -> ProblemDocument:
        """The problem as a document."""
        return ProblemDocument(
            type="about:blank",
            title=_TITLES.get(self.status, HTTPStatus(self.status).phrase),
            status=self.status,
            detail=self.detail,
            code=self.code,
            instance=f"urn:scrubjay:request:{request_id}",
            hint=self.hint or "",
            request_id=request_id,
            errors=tuple(self.places),
        )


def of(error: Exception) -> Problem:
    """Map an exception to a problem; an internal error reveals no details."""
    match error:
        case Problem():
            return error
        case errors.KeyMissing():  # its sentence names a folder of this machine
            detail, hint = "The service has not the keys to this.", "Its log says where it looked."
            problem = Problem(500, error.code, detail, hint=hint)
            problem.logged["reason"] = error.message
            return problem
        case ScrubjayError():
            status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
            again = {"Retry-After": _AGAIN[status]} if status in _AGAIN else None
            return Problem(status, error.code, error.message, hint=error.hint, headers=again)
        case TooLate():
            return Problem(503, "too_late", "The deadline passed.", headers={"Retry-After": "1"})
        case ValidationError():
            return of_field(error)
        case MsgspecError():
            return Problem(400, "malformed", "The body is not valid JSON.")
    return Problem(500, "internal", "Something went wrong; the log of the service says what.")


def of_field(error: ValidationError, refused: ScrubjayError | None = None) -> Problem:
    """The problem of a request by its first wrong field, in the words of a refusal if there is."""
    message, _, path = str(error).partition(" - at `$")
    parts = _PART.findall(path.rstrip("`"))
    if named := _NAMED.search(message):
        parts.append(named[1])
    pointer = "#/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in parts)
    if refused is None:
        refused = errors.InvalidRequest("One field is not as described.")
    place = InvalidField(pointer=pointer, detail=refused.message)
    return Problem(422, refused.code, refused.message, hint=refused.hint, places=[place])


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Problem:
    """The problem of an unknown path or method."""
    phrase = HTTPStatus(status).phrase
    return Problem(status, phrase.lower().replace(" ", "_"), f"{phrase}.", headers=headers)
