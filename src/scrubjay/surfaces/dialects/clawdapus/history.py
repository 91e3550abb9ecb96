"""The history of a pod, read over the proxy's own interface and replayed into memory.

It is a list of JSON lines, in pages that begin after a time. A line is written when its turn ends
but bears the time it began, so pages overlap: a long turn must not fall between two of them.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from scrubjay.domain.errors import Forbidden, InvalidRequest, NotFound
from scrubjay.domain.results import Outcome
from scrubjay.engine import Engine
from scrubjay.surfaces.dialects.clawdapus import entries
from scrubjay.surfaces.dialects.clawdapus.entries import Refused

URL_VARIABLE: Final = "CLAW_HISTORY_URL"
TOKEN_VARIABLE: Final = "CLAW_HISTORY_TOKEN"  # noqa: S105  # its name, not its value
AGENTS_VARIABLE: Final = "CLAW_HISTORY_AGENT_IDS"
PAGE: Final = 1_000
"""The most lines the proxy gives at once."""
_LINE_BYTES: Final = 8 * 1024 * 1024
_SECONDS: Final = 60.0
_OVERLAPS: Final = (timedelta(minutes=10), timedelta(seconds=1), timedelta())
"""By how much a page reaches back behind the last; less where that would be no step on."""
Line = dict[str, Any]
Fetch = Callable[[str, datetime | None], list[bytes]]
"""The lines of one agent after a time."""


@dataclass(slots=True)
class Pulled:
    """What became of the lines of one agent."""

    agent: str
    stored: int = 0
    known: int = 0
    forgotten: int = 0
    ignored: int = 0
    """Turns that failed, and lines that are none."""
    last: datetime | None = None

    @property
    def seen(self) -> int:
        """How many lines were read."""
        return self.stored + self.known + self.forgotten + self.ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the history is, and what opens it."""

    url: str
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InvalidRequest("The address of the history needs a scheme and a host.")

    def fetch(self, agent: str, after: datetime | None) -> list[bytes]:
        """One page of lines."""
        asked = {"limit": str(PAGE)} | ({"after": _stamp(after)} if after else {})
        url = f"{self.url.rstrip('/')}/{quote(agent, safe='')}?{urlencode(asked)}"
        headers = {"Accept": "application/x-ndjson"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  # checked above
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
                return [line for line in response if line.strip()]
        except urllib.error.HTTPError as error:
            raise _refusal(error.code, agent) from error
        except OSError as error:
            raise InvalidRequest(
                "The history cannot be reached.", hint="Check the address, and that the pod is up."
            ) from error


def _refusal(status: int, agent: str) -> Exception:
    if status in (401, 403):
        return Forbidden(f"The history of {agent} is not open to this token.")
    if status == 404:
        return NotFound(f"The pod keeps no history of {agent}.", hint="Check the agent's id.")
    return InvalidRequest(f"The history of {agent} was answered with status {status}.")


def pull(
    engine: Engine,
    agent: str,
    fetch: Fetch,
    *,
    pod: str = "",
    after: datetime | None = None,
    progress: Callable[[Pulled], None] = lambda _: None,
) -> Pulled:
    """Replay an agent's history; what is known already is passed over, so it can be repeated."""
    pulled = Pulled(agent)
    for raw in _lines(agent, fetch, after):
        line = _parsed(raw)
        if line is None:
            pulled.ignored += 1
            continue
        _replay(engine, line, pulled, pod)
        progress(pulled)
    return pulled


def _replay(engine: Engine, line: Line, pulled: Pulled, pod: str) -> None:
    try:
        told = entries.told({"agent_id": pulled.agent, "pod": pod, "entry": line})
    except Refused:
        pulled.ignored += 1
        return
    pulled.last = time_of(line) or pulled.last
    if told.record is None:
        pulled.ignored += 1
        return
    match engine.record(told.scope, told.record).outcome:
        case Outcome.STORED:
            pulled.stored += 1
        case Outcome.KNOWN:
            pulled.known += 1
        case Outcome.FORGOTTEN:
            pulled.forgotten += 1


def _lines(agent: str, fetch: Fetch, after: datetime | None) -> Iterator[bytes]:
    """All lines after a time, each once, page by page."""
    seen: set[bytes] = set()
    while True:
        page = fetch(agent, after)
        yield from (raw for raw in page if raw not in seen)
        if len(page) < PAGE:
            return
        times = [time for raw in page if (time := time_of(_parsed(raw)))]
        steps = [max(times) - overlap for overlap in _OVERLAPS] if times else []
        onward = [time for time in steps if after is None or time > after]
        if not onward:
            return
        after, seen = onward[0], set(page)


def _parsed(raw: bytes) -> Line | None:
    if len(raw) > _LINE_BYTES:
        return None
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def time_of(line: Line | None) -> datetime | None:
    """When the turn of a line began."""
    stamp = line.get("ts") if line else None
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC) if isinstance(stamp, str) else None
    except (ValueError, OverflowError):
        return None


def _stamp(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
