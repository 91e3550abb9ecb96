"""Every verb of conversations, documents, batches, retention and jobs states its errors.

A cell of the table is a call and the error it must meet; nothing is written by it. Where a verb has
no such error, the reason stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.model.batches import BATCH_LIMIT, RetainMany
from scrubjay.model.compaction import Compact
from scrubjay.model.conversations import (
    APPEND_LIMIT,
    READ_LIMIT,
    Append,
    Branch,
    DeleteConversation,
    ListConversations,
    ReadConversation,
    Rewind,
)
from scrubjay.model.documents import (
    PARTS,
    ListDocuments,
    Move,
    Put,
    ReadDocument,
    Remove,
)
from scrubjay.model.errors import (
    Conflict,
    Frozen,
    InvalidRequest,
    LimitReached,
    NotFound,
    ScrubjayError,
    Stale,
)
from scrubjay.model.filters import Filter
from scrubjay.model.jobs import AllowJobs, Work
from scrubjay.model.memory import Kind
from scrubjay.model.pages import PAGE_LIMIT, Paged
from scrubjay.model.requests import (
    COUNTERS_LIMIT,
    Amend,
    BriefRequest,
    CountersRequest,
    FreezeRequest,
    History,
    LineageRequest,
    StatisticsRequest,
)
from scrubjay.model.retention import NUMBER_LIMIT, KindLimit, SetRetention
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Quota
from scrubjay.model.text import CONTENT_BYTES, NAME_CHARS, TURN_BYTES
from scrubjay.verbs import VERBS as EVERY
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, retain

Call = Callable[[Kernel], object]
BIG: Final = "x" * (TURN_BYTES + 1)
READS: Final = "It only reads, which a scope that is frozen for writes allows."
GIVES: Final = "It makes nothing larger."
ANY: Final = "It compares nothing: no revision is read before it."
NO_NAME: Final = "It names nothing that could be missing."
MADE: Final = "What is missing is made by it."
SMALL: Final = "It writes a note of bounded size."

VERBS: dict[str, dict[type[ScrubjayError] | str, Call | str]] = {
    "append": {
        Frozen: lambda one: one.append(ALICE, Append("c", ({"body": 1},))),
        Stale: lambda one: one.append(ALICE, Append("c", ({"body": 1},), expected_revision="x")),
        NotFound: lambda one: one.append(ALICE, Append("c", ({"body": 1},), parent="ent-none")),
        "too large": lambda one: one.append(ALICE, Append("c", ({"body": BIG},))),
        "too many": lambda one: one.append(ALICE, Append("c", ({"body": 1},) * (APPEND_LIMIT + 1))),
        LimitReached: lambda one: one.append(ALICE, Append("c", ({"body": 1},))),
    },
    "conversation": {
        Frozen: READS,
        Stale: ANY,
        NotFound: lambda one: one.conversation(ALICE, ReadConversation("none")),
        "too large": lambda one: one.conversation(ALICE, ReadConversation("x" * (NAME_CHARS + 1))),
        "too many": lambda one: one.conversation(
            ALICE, ReadConversation("c", limit=READ_LIMIT + 1)
        ),
        LimitReached: READS,
    },
    "conversations": {
        Frozen: READS,
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": NO_NAME,
        "too many": lambda one: one.conversations(ALICE, ListConversations(PAGE_LIMIT + 1)),
        LimitReached: READS,
    },
    "branch": {
        Frozen: lambda one: one.branch(ALICE, Branch("c", into="d")),
        Stale: lambda one: one.branch(ALICE, Branch("c", into="d", expected_revision="x")),
        NotFound: lambda one: one.branch(ALICE, Branch("none", into="d")),
        "too large": lambda one: one.branch(ALICE, Branch("c", into="d", metadata={"a": BIG})),
        "too many": "It shares the entries; their number does not grow.",
        Conflict: lambda one: one.branch(ALICE, Branch("c", into="c")),
        LimitReached: lambda one: one.branch(ALICE, Branch("c", into="d")),
    },
    "rewind": {
        Frozen: lambda one: one.rewind(ALICE, Rewind("c", at=0)),
        Stale: lambda one: one.rewind(ALICE, Rewind("c", at=0, expected_revision="x")),
        NotFound: lambda one: one.rewind(ALICE, Rewind("c", entry="ent-none")),
        "too large": GIVES,
        "too many": lambda one: one.rewind(ALICE, Rewind("c", at=-1)),
        LimitReached: lambda one: one.rewind(ALICE, Rewind("c", at=0)),
    },
    "delete_conversation": {
        Frozen: "It forgets, with the grant for it and a receipt, also in a frozen scope.",
        Stale: lambda one: one.delete_conversation(
            ALICE, DeleteConversation("c", expected_revision="x")
        ),
        NotFound: lambda one: one.delete_conversation(ALICE, DeleteConversation("none")),
        "too large": GIVES,
        "too many": GIVES,
        LimitReached: GIVES,
    },
    "put": {
        Frozen: lambda one: one.put(ALICE, Put("b", 1)),
        Stale: lambda one: one.put(ALICE, Put("a", 1, expected_revision="x")),
        NotFound: MADE,
        "too large": lambda one: one.put(ALICE, Put("b", BIG)),
        "too many": lambda one: one.put(ALICE, Put(("x",) * (PARTS + 1), 1)),
        LimitReached: lambda one: one.put(ALICE, Put("b", 1)),
    },
    "document": {
        Frozen: READS,
        Stale: ANY,
        NotFound: lambda one: one.document(ALICE, ReadDocument("none")),
        "too large": lambda one: one.document(ALICE, ReadDocument("x" * (NAME_CHARS + 1))),
        "too many": lambda one: one.document(ALICE, ReadDocument(("x",) * (PARTS + 1))),
        LimitReached: READS,
    },
    "documents": {
        Frozen: READS,
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": lambda one: one.documents(ALICE, ListDocuments("x" * (NAME_CHARS + 1))),
        "too many": lambda one: one.documents(ALICE, ListDocuments(limit=PAGE_LIMIT + 1)),
        LimitReached: READS,
    },
    "move": {
        Frozen: lambda one: one.move(ALICE, Move("a", to="b")),
        Stale: lambda one: one.move(ALICE, Move("a", to="b", expected_revision="x")),
        NotFound: lambda one: one.move(ALICE, Move("none", to="b")),
        "too large": lambda one: one.move(ALICE, Move("a", to="x" * (NAME_CHARS + 1))),
        "too many": lambda one: one.move(ALICE, Move("a", to=("x",) * (PARTS + 1))),
        Conflict: lambda one: one.move(ALICE, Move("a", to="taken")),
        LimitReached: lambda one: one.move(ALICE, Move("a", to="b")),
    },
    "remove": {
        Frozen: lambda one: one.remove(ALICE, Remove("a")),
        Stale: lambda one: one.remove(ALICE, Remove("a", expected_revision="x")),
        NotFound: lambda one: one.remove(ALICE, Remove("none")),
        "too large": GIVES,
        "too many": lambda one: one.remove(ALICE, Remove(("x",) * (PARTS + 1))),
        LimitReached: GIVES,
    },
    "retain_many": {
        Frozen: lambda one: one.retain_many(ALICE, RetainMany(["a"])),
        Stale: ANY,
        NotFound: lambda one: one.retain_many(
            ALICE, RetainMany([{"content": "a", "sources": ["mem-none"]}], atomic=True)
        ),
        "too large": lambda one: one.retain_many(
            ALICE, RetainMany(["x" * (CONTENT_BYTES + 1)], atomic=True)
        ),
        "too many": lambda one: one.retain_many(ALICE, RetainMany(["a"] * (BATCH_LIMIT + 1))),
        LimitReached: lambda one: one.retain_many(ALICE, RetainMany(["a"], atomic=True)),
    },
    "set_retention": {
        Frozen: lambda one: one.set_retention(ALICE, SetRetention()),
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": lambda one: one.set_retention(
            ALICE, SetRetention(limits=(KindLimit(kind=Kind.FACT, number=NUMBER_LIMIT + 1),))
        ),
        "too many": lambda one: one.set_retention(
            ALICE,
            SetRetention(limits=[KindLimit(kind=Kind.FACT, number=at) for at in (1, 2)]),
        ),
        LimitReached: SMALL,
    },
    "amend": {
        Frozen: lambda one: one.amend(ALICE, Amend("mem", archived=True)),
        Stale: "Its own table is in test_amend: `expected` is an edition, not a revision.",
        NotFound: lambda one: one.amend(ALICE, Amend("mem-none", archived=True)),
        "too large": GIVES,
        "too many": lambda one: one.amend(ALICE, Amend("mem")),
        LimitReached: GIVES,
    },
    "counters": {
        Frozen: READS,
        Stale: ANY,
        NotFound: lambda one: one.counters(ALICE, CountersRequest(("mem-none",))),
        "too large": NO_NAME,
        "too many": lambda one: one.counters(
            ALICE, CountersRequest(tuple(f"mem-{at}" for at in range(COUNTERS_LIMIT + 1)))
        ),
        LimitReached: READS,
    },
    "history": {
        Frozen: READS,
        Stale: ANY,
        NotFound: lambda one: one.history(ALICE, History("mem-none")),
        "too large": NO_NAME,
        "too many": lambda one: one.history(ALICE, History("mem", limit=PAGE_LIMIT + 1)),
        LimitReached: READS,
    },
    "lineage": {
        Frozen: READS,
        Stale: ANY,
        NotFound: lambda one: one.lineage(ALICE, LineageRequest("mem-none")),
        "too large": "At most two steps and fifty relatives are told, of however many.",
        "too many": "At most two steps and fifty relatives are told, of however many.",
        LimitReached: READS,
    },
    "follow": {
        Frozen: READS,
        Stale: "A cursor that is too old begins anew, and says so.",
        NotFound: NO_NAME,
        "too large": NO_NAME,
        "too many": lambda one: one.follow(ALICE, Paged(PAGE_LIMIT + 1)),
        LimitReached: READS,
    },
    "count": {
        Frozen: READS,
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": lambda one: one.count(ALICE, Filter(session="x" * (NAME_CHARS + 1))),
        "too many": "It answers one number.",
        LimitReached: READS,
    },
    "work": {
        Frozen: lambda one: one.work(ALICE, Work()),
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": lambda one: one.work(ALICE, Work(batch=201)),
        "too many": lambda one: one.work(ALICE, Work(limit=0)),
        LimitReached: "What a job writes has the quota of whoever writes it: see test_quota.",
    },
    "allow_jobs": {
        Frozen: "It may be taken back in a frozen scope: it writes no memory.",
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": SMALL,
        "too many": lambda one: one.allow_jobs(ALICE, AllowJobs(("dreaming",))),
        LimitReached: SMALL,
    },
    "compact": {
        Frozen: lambda one: one.compact(ALICE, Compact()),
        Stale: "It proves and applies a plan of its own; what changed meanwhile is left out.",
        NotFound: NO_NAME,
        "too large": lambda one: one.compact(ALICE, Compact(share=1.5)),
        "too many": lambda one: one.compact(ALICE, Compact(session_messages=0)),
        LimitReached: "It makes what is searched smaller; see test_quota for what a job writes.",
    },
    "statistics": {
        Frozen: READS,
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": lambda one: one.statistics(ALICE, StatisticsRequest(timezone="x" * 600)),
        "too many": "It tells the ten most frequent of each, of however many.",
        LimitReached: READS,
    },
    "brief": {
        Frozen: READS,
        Stale: ANY,
        NotFound: NO_NAME,
        "too large": lambda one: one.brief(ALICE, BriefRequest(max_chars=0)),
        "too many": lambda one: one.brief(
            ALICE, BriefRequest(scopes=[f"a/{at}" for at in range(101)])
        ),
        LimitReached: READS,
    },
    **{
        verb: {
            Frozen: READS,
            Stale: ANY,
            NotFound: NO_NAME,
            "too large": NO_NAME,
            "too many": NO_NAME,
            LimitReached: READS,
        }
        for verb in ("jobs", "retention", "inspect")
    },
}
ELSEWHERE: Final = frozenset(
    {"approve", "audit", "backup", "browse", "create_key", "destroy", "destroy_token", "export"}
    | {"extract", "extraction", "forget", "forget_one", "freeze", "get", "hold", "holdings"}
    | {"list_keys", "load", "lock", "mark_tainted", "open", "own_key", "pause_extraction"}
    | {"preview", "purge", "purposes", "quarantined", "recall", "receipts", "record", "reindex"}
    | {"reject", "restore", "retain", "revoke", "revoke_key", "rotate", "scopes", "sessions"}
    | {"set_purpose", "supersede", "timeline", "turns", "unlock", "verify", "verify_audit"}
    | {"verify_erased"}
)
"""Verbs that are older or of another room; their errors stand in the tests of their own modules."""
COLUMNS: Final = (Frozen, Stale, NotFound, "too large", "too many", LimitReached)
CELLS: Final = [
    pytest.param(call, error, id=f"{verb}: {error if isinstance(error, str) else error.__name__}")
    for verb, cells in VERBS.items()
    for error, call in cells.items()
    if not isinstance(call, str)
]


def test_every_verb_has_a_cell_in_every_column() -> None:
    assert VERBS.keys() | ELSEWHERE == EVERY.keys()
    assert not VERBS.keys() & ELSEWHERE
    for verb, cells in VERBS.items():
        assert [*COLUMNS] == [one for one in cells if one is not Conflict], verb


def settle(home: MemoryHome) -> Kernel:
    """A scope with a conversation of two entries, two documents and a memory."""
    engine = home.engine()
    retain(engine, "tea", id="mem")
    engine.append(ALICE, Append("c", ({"body": 1}, {"body": 2})))
    engine.put(ALICE, Put("a", 1))
    engine.put(ALICE, Put("taken", 1))
    return engine


def kept(home: MemoryHome) -> Any:
    """The rows of a scope, without its trail: reads are counted there."""
    return {place: state.rows for place, state in home.rows().items()}


@pytest.mark.parametrize(("call", "error"), CELLS)
def test_a_verb_meets_its_error_and_writes_nothing(
    home: MemoryHome, call: Call, error: type[ScrubjayError] | str
) -> None:
    engine = settle(home)
    if error is Frozen:
        engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    if error is LimitReached:
        retain(engine, "x" * 1_000)
        engine = Kernel(home.ports(Policy(quota=Quota(memories=1, megabytes=1))))
        filler = home.engine()
        for number in range(20):
            filler.put(ALICE, Put(f"filler/{number}", "ä" * 60_000))
    before = kept(home)
    expected = InvalidRequest if isinstance(error, str) else error
    with pytest.raises(expected) as met:
        call(engine)
    assert type(met.value) is expected
    assert met.value.code
    assert kept(home) == before


@pytest.mark.parametrize("verb", ["delete_conversation", "conversation", "documents", "allow_jobs"])
def test_what_a_frozen_scope_allows_is_done(home: MemoryHome, verb: str) -> None:
    """The reasons in the table are true."""
    engine = settle(home)
    engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    calls: dict[str, Call] = {
        "delete_conversation": lambda one: one.delete_conversation(ALICE, DeleteConversation("c")),
        "allow_jobs": lambda one: one.allow_jobs(ALICE, AllowJobs()),
        "conversation": lambda one: one.conversation(ALICE, ReadConversation("c")),
        "documents": lambda one: one.documents(ALICE),
    }
    calls[verb](engine)
