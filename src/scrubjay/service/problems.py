"""Everything that goes wrong, as problem+json (RFC 9457): one form, whoever noticed it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError
from scrubjay.service.issuer import Trust

TYPE: Final = "application/problem+json"
_STATUS: Final[Mapping[type[ScrubjayError], int]] = {
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
    errors.Changed: 409,
    errors.Timeout: 504,
    errors.EmbedderError: 502,
    errors.ExtractorError: 502,
    errors.Locked: 503,
}
_AGAIN: Final = {429: "60", 503: "1"}
"""After how many seconds it may be worth trying again; a budget may take longer to fill."""
_TITLES: Final = {
    400: "The request is not well formed",
    401: "A key is needed",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "The request cannot be carried out as it was written",
    431: "The headers are too large",
    500: "Something went wrong here",
}


class Place(BaseModel):
    """One field of a request that is wrong."""

    pointer: str
    detail: str


class ProblemDocument(BaseModel):
    """What went wrong, and what to do about it."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    """Which request it was, as a URN. Not its path: that may hold what somebody said."""
    code: str
    hint: str | None = None
    request_id: str | None = None
    errors: list[Place] | None = None


class Problem(Exception):  # the name RFC 9457 gives it
    """A request that is refused by the service itself, before the engine hears of it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str | None = None,
        places: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.places = places
        self.headers = dict(headers or {})


def of_error(error: ScrubjayError) -> Problem:
    """The problem an error of the engine is."""
    status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)
    headers = {"Retry-After": _AGAIN[status]} if status in _AGAIN else None
    return Problem(status, error.code, error.message, hint=error.hint, headers=headers)


def of_validation(error: ValidationError) -> Problem:
    """The problem of a request whose fields are not what they should be."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    if any(one["type"] == "json_invalid" for one in found):
        return Problem(400, "malformed", "The body is not valid JSON.")
    places = [
        {"pointer": _pointer(one["loc"]), "detail": str(one["msg"])[:200]} for one in found[:20]
    ]
    number = "One field is" if len(found) == 1 else f"{len(found)} fields are"
    detail = f"{number} not as described."
    return Problem(422, errors.InvalidRequest.code, detail, places=places)


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Problem:
    """The problem of a path or method that is not here."""
    phrase = HTTPStatus(status).phrase
    return Problem(status, phrase.lower().replace(" ", "_"), f"{phrase}.", headers=headers)


def unexpected() -> Problem:
    """The problem of a mistake of ours: it says nothing of what happened inside."""
    return Problem(500, "internal", "Something went wrong; the log of the service says what.")


def response(problem: Problem, request_id: str | None = None) -> Response:
    """The problem as it is sent."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": _TITLES.get(problem.status, HTTPStatus(problem.status).phrase),
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
    }
    if problem.hint:
        body["hint"] = problem.hint
    if request_id:
        body["instance"] = f"urn:scrubjay:request:{request_id}"
        body["request_id"] = request_id
    if problem.places:
        body["errors"] = list(problem.places)
    return Response(
        json.dumps(body, ensure_ascii=False).encode(),
        status_code=problem.status,
        media_type=TYPE,
        headers=problem.headers,
    )


def _pointer(location: tuple[int | str, ...]) -> str:
    return "#/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in location)


METADATA: Final = "/.well-known/oauth-protected-resource"
INVALID: Final = "invalid_token"
_NO_HOST: Final = re.compile(r"[^A-Za-z0-9.:\[\]-]")


def unauthorized(
    request: Request, trust: Trust | None, detail: str, *, hint: str, error: str | None = None
) -> Problem:
    """The problem of a request without anything good; `error` if it had something."""
    told = {"realm": "scrubjay"}
    if error is not None:
        told["error"] = error
    if trust is not None:
        told["resource_metadata"] = resource(request, trust) + METADATA
    words = ", ".join(f'{name}="{value}"' for name, value in told.items())
    headers = {"WWW-Authenticate": f"Bearer {words}"}
    return Problem(401, "unauthorized", detail, hint=hint, headers=headers)


def resource(request: Request, trust: Trust) -> str:
    """Where clients find this service: as the operator says, or as they found it."""
    # The gate knows the name; what follows it may still be anything.
    host = _NO_HOST.sub("", request.headers["host"])
    return trust.resource or f"{request.url.scheme}://{host}"
