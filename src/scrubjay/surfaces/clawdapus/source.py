"""Where the history of a pod is read: one request a page, as it streams in.

The token goes to the address it was given for and to no other: a redirect is refused.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from scrubjay.model.errors import Forbidden, InvalidRequest, NotFound, ScrubjayError
from scrubjay.surfaces.clawdapus.history import PAGE

URL_VARIABLE: Final = "CLAW_HISTORY_URL"
TOKEN_VARIABLE: Final = "CLAW_HISTORY_TOKEN"  # noqa: S105  # its name, not its value
AGENTS_VARIABLE: Final = "CLAW_HISTORY_AGENT_IDS"
LINE_BYTES: Final = 8 * 1024 * 1024
"""The longest line the proxy itself would read."""
_PIECE: Final = 64 * 1024
_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the history is, and what opens it."""

    url: str
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest("The address of the history needs a scheme and a host.")

    def fetch(self, agent: str, after: datetime | None) -> Iterator[bytes | None]:
        """One page of lines as they come; None for one that is too long."""
        where = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(where.hostname or "", where.port, timeout=_SECONDS)
        try:
            connection.request("GET", self._path(agent, after), headers=self._headers())
            response = connection.getresponse()
            if response.status != 200:
                raise _refusal(response.status, agent)
            yield from lines(response)
        except (OSError, http.client.HTTPException) as error:
            raise InvalidRequest(
                "The history cannot be reached, or was cut off.",
                hint="Check the address, and that the pod is up; then repeat it.",
            ) from error
        finally:
            connection.close()

    def _path(self, agent: str, after: datetime | None) -> str:
        asked = {"limit": str(PAGE)} | ({"after": _stamp(after)} if after else {})
        path = urlsplit(self.url).path.rstrip("/")
        return f"{path}/{quote(agent, safe='')}?{urlencode(asked)}"

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/x-ndjson"}
        return headers | ({"Authorization": f"Bearer {self.token}"} if self.token else {})


def _refusal(status: int, agent: str) -> ScrubjayError:
    if status in (401, 403):
        return Forbidden(f"The history of {agent} is not open to this token.")
    if status == 404:
        return NotFound(f"The pod keeps no history of {agent}.", hint="Check the agent's id.")
    if 300 <= status < 400:
        return Forbidden(
            "The history was answered with a redirect, which is not followed.",
            hint="The token would go along. Set CLAW_HISTORY_URL to where it really is.",
        )
    return InvalidRequest(f"The history of {agent} was answered with status {status}.")


def lines(response: http.client.HTTPResponse) -> Iterator[bytes | None]:
    """The lines of an answer, blank ones left out; IncompleteRead if it was cut short."""
    begun, skipping = b"", False
    while piece := response.read(_PIECE):
        *ended, begun = (begun + piece).split(b"\n")
        for line in ended:
            if skipping or len(line) > LINE_BYTES:
                yield None
            elif line.strip():
                yield line
            skipping = False
        if len(begun) > LINE_BYTES:
            begun, skipping = b"", True
    unended = response.length is None and not response.chunked  # only its last line says so
    if response.length or (unended and begun):
        raise http.client.IncompleteRead(b"", response.length)
    if skipping or begun.strip():
        yield None if skipping else begun


def _stamp(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
