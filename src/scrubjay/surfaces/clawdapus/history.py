"""HTTP client of the history of a pod: one streamed request per page.

The token goes to the address it was given for and to no other: a redirect is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final
from urllib.parse import quote, urlsplit

from scrubjay.conversation.replay import PAGE, Line, ReplayReport, replay
from scrubjay.engine import Kernel
from scrubjay.model.errors import Forbidden, InvalidRequest, NotFound, ScrubjayError
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.surfaces.clawdapus import entries
from scrubjay.surfaces.clawdapus.entries import EntryRefused

URL_VARIABLE: Final = "CLAW_HISTORY_URL"
TOKEN_VARIABLE: Final = "CLAW_HISTORY_TOKEN"  # noqa: S105  # its name, not its value
AGENTS_VARIABLE: Final = "CLAW_HISTORY_AGENT_IDS"
LINE_BYTES: Final = 8 * 1024 * 1024
"""Maximum length of a line, as in the proxy."""
_SECONDS: Final = 60.0
AgentFetch = Callable[[str, datetime | None], Iterator[bytes | None]]
"""The lines of one agent after a time; None for one that is longer than a line may be."""


def pull(
    engine: Kernel,
    agent: str,
    fetch: AgentFetch,
    *,
    scope: Scope,
    after: datetime | None = None,
    progress: Callable[[ReplayReport], None] = lambda _: None,
) -> ReplayReport:
    """Replay an agent's history; known turns are skipped, so it is idempotent."""

    def read(line: Line) -> Record | None:
        try:
            record = entries.told({"agent_id": agent, "entry": line}).record
            return None if record is None or record.silent else record
        except EntryRefused:
            return None

    fetch_of_agent = partial(fetch, agent)
    return replay(
        engine, scope, ReplayReport(agent), fetch_of_agent, read, after=after, progress=progress
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySource:
    """Address and token of the history."""

    url: str
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest("The address of the history needs a scheme and a host.")

    def fetch(self, agent: str, after: datetime | None) -> Iterator[bytes | None]:
        """One page of lines as they come; None for one that is too long."""
        import httpx2

        where = urlsplit(self.url)
        url = f"{where.scheme}://{where.netloc}{where.path.rstrip('/')}/{quote(agent, safe='')}"
        asked = {"limit": str(PAGE)}
        if after is not None:
            asked["after"] = f"{after.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        headers = {"Accept": "application/x-ndjson", "Accept-Encoding": "identity"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        # Where there is no TLS there is nothing to verify, and reading all certificates takes long.
        tls = where.scheme == "https"
        client = httpx2.Client(
            verify=tls, trust_env=False, follow_redirects=False, timeout=_SECONDS
        )
        try:
            with client, client.stream("GET", url, params=asked, headers=headers) as response:
                if response.status_code != 200:
                    raise _refusal(response.status_code, agent, where.path)
                framed = {"content-length", "transfer-encoding"} & set(response.headers)
                yield from lines(response.iter_raw(), framed=bool(framed))
        except (httpx2.HTTPError, EOFError) as error:
            raise InvalidRequest(
                "The history cannot be reached, or was cut off.",
                hint="Check the address, and that the pod is up; then repeat it.",
            ) from error


def _refusal(status: int, agent: str, path: str) -> ScrubjayError:
    if status in (404, 405) and not path.rstrip("/").endswith("/history"):
        return NotFound(
            f"There is no history at this address: its path is {path or '/'}, not /history.",
            hint=f"Set {URL_VARIABLE} to the address with /history at its end.",
        )
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


def lines(pieces: Iterator[bytes], *, framed: bool) -> Iterator[bytes | None]:
    """The lines of an answer, blank ones left out.

    Where nothing but its last line says that an answer is whole, EOFError if that does not end.
    """
    begun, skipping = bytearray(), False
    for piece in pieces:
        begun += piece
        if b"\n" in piece:  # else nothing is copied: a line may come byte by byte
            *ended, rest = bytes(begun).split(b"\n")
            begun = bytearray(rest)
            for line in ended:
                if skipping or len(line) > LINE_BYTES:
                    yield None
                elif line.strip():
                    yield line
                skipping = False
        if len(begun) > LINE_BYTES:
            begun, skipping = bytearray(), True
    if begun and not framed:
        raise EOFError("the answer was cut off")
    if skipping or begun.strip():
        yield None if skipping else bytes(begun)
