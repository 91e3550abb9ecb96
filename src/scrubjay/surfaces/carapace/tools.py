"""The four tools: from arguments that were checked to one verb of the engine, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import expm1
from typing import Any, Final, Literal

from scrubjay.engine import Engine
from scrubjay.engine.search.ranking import WEIGHTS
from scrubjay.guard.clean import one_line
from scrubjay.model.errors import Conflict, Forbidden, InvalidRequest, LimitReached, NotFound
from scrubjay.model.memory import Json, Kind, Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import (
    AGENT,
    Allowance,
    BriefRequest,
    Browse,
    Caller,
    Forget,
    Get,
    History,
    Recall,
    Retain,
    Supersede,
)
from scrubjay.model.results import Brief
from scrubjay.model.scope import Scope
from scrubjay.surfaces.carapace import schemas
from scrubjay.surfaces.carapace.config import Config, Provider
from scrubjay.surfaces.carapace.errors import Code, ToolError
from scrubjay.surfaces.carapace.validation import faults, quoted

CHANNEL: Final = "carapace"
_FOUND_BYTES: Final = schemas.PAYLOAD_BYTES // 2
"""How much content a search brings at most: a reply has a limit, and JSON may double a text."""
_TRIES: Final = 5
WORD_SHARE: Final = 0.75
"""As much of a session's evidence are words; see rank/features.py, which would load numpy."""
_USED_UP: Final[Mapping[str, tuple[int, str]]] = {
    "stores": (schemas.STORES, "memory_store calls"),
    "supersedes": (schemas.SUPERSEDES, "supersedes"),
    "deletes": (schemas.DELETES, "memory_delete calls"),
}
"""What is counted, how often it may be done, and how a refusal calls it."""

_CEILING: Final = sum(weight for _, weight in WEIGHTS.items() if weight > 0)
_BY_WORDS: Final = (WEIGHTS.words + WEIGHTS.coverage + WORD_SHARE * WEIGHTS.session) / _CEILING
"""What the words of an entry can give it at most of the engine's score."""
_BY_BOTH: Final = (WEIGHTS.words + WEIGHTS.coverage + WEIGHTS.meaning + WEIGHTS.session) / _CEILING

Counted = Literal["stores", "supersedes", "deletes"]
_WRITING: Final[tuple[Counted, ...]] = ("stores", "supersedes")
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a call is carried out: for whom, and on which memory."""

    engine: Engine
    scope: Scope
    session: str
    config: Config

    @property
    def group(self) -> str:
        """The group as Carapace calls it."""
        return self.scope.owner

    def allowance(self, name: Counted) -> Allowance:
        """What a success of this kind is counted against."""
        return Allowance(session=self.session, name=name, limit=_USED_UP[name][0])


def stamp(time: datetime) -> str:
    """A time as JavaScript writes it: UTC, with milliseconds."""
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def _store(desk: Desk, given: Arguments) -> Json:
    if given.get("supersedes") is None:
        caller = Caller(actor=Actor.AGENT, allowances=(desk.allowance("stores"),))
        public_id = desk.engine.retain(desk.scope, _retain(desk, given), caller).id
    else:
        public_id = _supersede(desk, given)
    memory = desk.engine.get(desk.scope, Get(public_id), AGENT)
    return {
        **_entry(memory),
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "session_id": desk.session,
        "group": desk.group,
        "created_at": stamp(memory.recorded_at),
    }


def _retain(desk: Desk, given: Arguments) -> Retain:
    return Retain(
        content=given["content"],
        kind=Kind(given["type"]),
        tags=tuple(given.get("tags", ())),
        session=desk.session,
        channel=CHANNEL,
        origin=Origin.AGENT,
    )


def _supersede(desk: Desk, given: Arguments) -> str:
    """Replace an entry; one that was replaced already stands for the newest of its versions.

    Of two that replace the same entry at once, one finds that it has become the older version.
    """
    for _ in range(_TRIES):
        request = Supersede(
            id=_newest(desk, given["supersedes"]),
            content=given["content"],
            kind=Kind(given["type"]),
            tags=tuple(given.get("tags", ())),
            session=desk.session,
            origin=Origin.AGENT,
        )
        allowances = (desk.allowance("stores"), desk.allowance("supersedes"))
        caller = Caller(actor=Actor.AGENT, allowances=allowances)
        try:
            return desk.engine.supersede(desk.scope, request, caller).id
        except Forbidden as error:
            raise ToolError(
                Code.HANDLER_ERROR,
                f"Entry {quoted(request.id)} comes from somebody trusted more than this session; "
                "only they can replace it. Store a new entry, or ask the user.",
            ) from error
        except Conflict:
            continue
    raise ToolError(
        Code.HANDLER_ERROR,
        f"Entry {quoted(given['supersedes'])} was replaced by one that is gone. "
        "Store a new entry without supersedes.",
    )


def _newest(desk: Desk, public_id: str) -> str:
    try:
        return desk.engine.history(desk.scope, History(public_id), AGENT)[-1].id
    except (NotFound, InvalidRequest) as error:
        message = f"Superseded entry {quoted(public_id)} not found"
        raise ToolError(Code.HANDLER_ERROR, message) from error


def _search(desk: Desk, given: Arguments) -> Json:
    query, limit = given.get("query", "").strip(), int(given.get("limit", schemas.SEARCH_DEFAULT))
    if limit < 1:
        raise ToolError(
            Code.HANDLER_ERROR, f"The limit is a number from 1 to {schemas.SEARCH_LIMIT}."
        )
    wanted: dict[str, Any] = {
        "kinds": frozenset({Kind(given["type"])} if "type" in given else ()),
        "tags": frozenset(given.get("tags", ())),
        "superseded": given.get("include_superseded", False),
        "limit": limit,
    }
    if not query:
        page = desk.engine.browse(desk.scope, Browse(**wanted), AGENT)
        return {"results": [_result(memory, 0.0) for memory in page]}
    # Without vectors an entry that holds none of the words has nothing to do with them.
    by_words = desk.config.embedding_provider is Provider.NONE
    request = Recall(query=query, worded=by_words, max_bytes=_FOUND_BYTES, **wanted)
    found = desk.engine.recall(desk.scope, request, AGENT)
    best = _BY_WORDS if by_words else _BY_BOTH
    return {"results": [_result(hit.memory, _relevance(hit.score, best)) for hit in found]}


def _relevance(score: float, best: float) -> float:
    """A score from 0 to 1 that uses this range, and never makes two entries equal by cutting off.

    An entry that holds all that was asked for, as well as any does, has about 0.86.
    """
    return round(-expm1(-2 * score / best), 4)


def _entry(memory: Memory) -> dict[str, Json]:
    return {
        "id": memory.id,
        "type": memory.kind.value,
        "content": memory.content,
        "behavioral": memory.kind.behavioral,
        "tags": list(memory.tags),
    }


def _result(memory: Memory, score: float) -> Json:
    return {
        **_entry(memory),
        "created_at": stamp(memory.recorded_at),
        "relevance_score": score,
    }


def _brief(desk: Desk, given: Arguments) -> Json:
    return brief(desk, include_provenance=given.get("include_provenance", False))


def brief(desk: Desk, *, include_provenance: bool = False) -> dict[str, Json]:
    """What the agent should know before its first word, within both limits."""
    config = desk.config
    request = BriefRequest(limit=config.max_brief_entries, max_chars=config.max_brief_chars)
    found = desk.engine.brief(desk.scope, request, AGENT)
    assert found.made_at is not None
    return {
        "entries": [
            {**entry, **(_provenance(memory, desk) if include_provenance else {})}
            for memory, entry in _lines(found, found.made_at)
        ],
        "generated_at": stamp(found.made_at),
        "entry_count": found.total,
        "brief_count": len(found),
    }


def _lines(found: Brief, now: datetime) -> list[tuple[Memory, dict[str, Json]]]:
    return [
        (memory, {**_entry(memory), "content": one_line(memory.content), "age_days": age})
        for memory in found
        for age in (memory.age_days(now),)
    ]


def _provenance(memory: Memory, desk: Desk) -> dict[str, Json]:
    return {"session_id": memory.provenance.session, "group": desk.group}


def _delete(desk: Desk, given: Arguments) -> Json:
    public_id = given["id"]
    missing = ToolError(Code.HANDLER_ERROR, f"Memory entry {quoted(public_id)} not found.")
    try:
        caller = Caller(actor=Actor.AGENT, allowances=(desk.allowance("deletes"),))
        receipt = desk.engine.forget(desk.scope, Forget((public_id,)), caller)
    except (NotFound, InvalidRequest) as error:
        raise missing from error
    if not receipt.erased:
        raise missing
    return {"deleted": True, "id": public_id}


_TOOLS: Final[Mapping[str, Callable[[Desk, Arguments], Json]]] = {
    "memory_store": _store,
    "memory_search": _search,
    "memory_brief": _brief,
    "memory_delete": _delete,
}


def carry_out(desk: Desk, tool: str, given: Arguments) -> Json:
    """The result of a call; a ToolError, or an error of the engine, if there is none."""
    work = _TOOLS.get(tool)
    if work is None:
        raise ToolError(Code.HANDLER_ERROR, f"Unknown tool: {quoted(tool)}")
    _check(tool, given)
    try:
        return work(desk, given)
    except LimitReached as error:
        raise _used_up(desk, ("deletes",) if tool == "memory_delete" else _WRITING) from error


def _check(tool: str, given: Arguments) -> None:
    """What a host has checked already, checked again: this plugin does not depend on its host."""
    kind = given.get("type")
    if isinstance(kind, str) and kind not in schemas.TYPES:
        raise ToolError(Code.HANDLER_ERROR, f"Invalid entry type: {quoted(kind)}")
    if wrong := list(faults(given, schemas.ARGUMENTS[tool])):
        raise ToolError(
            Code.HANDLER_ERROR, f"Argument validation failed: {'; '.join(map(str, wrong))}"
        )


def _used_up(desk: Desk, counted: Sequence[Counted]) -> ToolError:
    """Which allowance it was. Trying again is no use: only another session has more."""
    spent = desk.engine.spent(desk.scope, desk.session)
    reached = [name for name in counted if spent.get(name, 0) >= _USED_UP[name][0]]
    limit, called = _USED_UP[reached[0] if reached else counted[0]]
    message = f"Maximum {limit} {called} per session reached."
    return ToolError(Code.RATE_LIMITED, message, retriable=False)
