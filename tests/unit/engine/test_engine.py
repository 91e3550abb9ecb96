"""The engine itself: closing, and what due work may not do to a verb."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.scope.exercised import Life
from scrubjay.model.batches import RetainMany
from scrubjay.model.conversations import (
    Append,
    Branch,
    DeleteConversation,
    ReadConversation,
    Rewind,
)
from scrubjay.model.documents import Move, Put, ReadDocument, Remove
from scrubjay.model.errors import Busy, Full, StoreError
from scrubjay.model.origin import Actor
from scrubjay.model.pages import Paged
from scrubjay.model.purposes import SetPurpose
from scrubjay.model.requests import (
    Amend,
    Approve,
    BriefRequest,
    Browse,
    CountersRequest,
    Destroy,
    Forget,
    Get,
    History,
    LineageRequest,
    Load,
    MarkTainted,
    Recall,
    Reject,
    Restore,
    Retain,
    Revoke,
    Supersede,
    TurnsRequest,
)
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Due
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.model.user_keys import Hold, Unlock
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, BOB, contents, forget, head, retain, verbs

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECEIPT = Erasure(address="a", verb="forget", at=NOON, erased=0)

VERBS: dict[str, Callable[[Kernel], object]] = {
    "open": lambda engine: engine.open(ALICE),
    "scopes": lambda engine: engine.scopes(),
    "at_once": lambda engine: engine.at_once(ALICE),
    "head": lambda engine: engine.head(ALICE),
    "retain": lambda engine: engine.retain(ALICE, Retain(content="a")),
    "retain_many": lambda engine: engine.retain_many(ALICE, RetainMany(["a"])),
    "record": lambda engine: engine.record(ALICE, Record(id="a", user="a")),
    "turns": lambda engine: engine.turns(ALICE, TurnsRequest(1)),
    "sessions": lambda engine: engine.sessions(ALICE),
    "timeline": lambda engine: engine.timeline(ALICE, Paged(1)),
    "retention": lambda engine: engine.retention(ALICE),
    "set_retention": lambda engine: engine.set_retention(ALICE),
    "jobs": lambda engine: engine.jobs(ALICE),
    "work": lambda engine: engine.work(ALICE),
    "allow_jobs": lambda engine: engine.allow_jobs(ALICE),
    "append": lambda engine: engine.append(ALICE, Append("c", ({"body": 1},))),
    "conversation": lambda engine: engine.conversation(ALICE, ReadConversation("c")),
    "conversations": lambda engine: engine.conversations(ALICE),
    "branch": lambda engine: engine.branch(ALICE, Branch("c", into="d")),
    "rewind": lambda engine: engine.rewind(ALICE, Rewind("c", at=0)),
    "delete_conversation": lambda engine: engine.delete_conversation(
        ALICE, DeleteConversation("c")
    ),
    "put": lambda engine: engine.put(ALICE, Put("a", 1)),
    "document": lambda engine: engine.document(ALICE, ReadDocument("a")),
    "documents": lambda engine: engine.documents(ALICE),
    "move": lambda engine: engine.move(ALICE, Move("a", to="b")),
    "remove": lambda engine: engine.remove(ALICE, Remove("a")),
    "supersede": lambda engine: engine.supersede(ALICE, Supersede(id="a", content="a")),
    "amend": lambda engine: engine.amend(ALICE, Amend(id="a", pinned=True)),
    "freeze": lambda engine: engine.freeze(ALICE),
    "get": lambda engine: engine.get(ALICE, Get("a")),
    "browse": lambda engine: engine.browse(ALICE, Browse()),
    "history": lambda engine: engine.history(ALICE, History("a")),
    "spent": lambda engine: engine.spent(ALICE, "a"),
    "note": lambda engine: engine.note(ALICE, "refused", actor=Actor.AGENT),
    "preview": lambda engine: engine.preview(ALICE, Forget(ids=("a",))),
    "revoke": lambda engine: engine.revoke(ALICE, Revoke(session="a")),
    "mark_tainted": lambda engine: engine.mark_tainted(ALICE, MarkTainted("a")),
    "quarantined": lambda engine: engine.quarantined(ALICE),
    "approve": lambda engine: engine.approve(ALICE, Approve("a", "a")),
    "reject": lambda engine: engine.reject(ALICE, Reject("a")),
    "recall": lambda engine: engine.recall(ALICE, Recall(query="a")),
    "brief": lambda engine: engine.brief(ALICE, BriefRequest()),
    "reindex": lambda engine: engine.reindex(ALICE),
    "count": lambda engine: engine.count(ALICE),
    "statistics": lambda engine: engine.statistics(ALICE),
    "counters": lambda engine: engine.counters(ALICE, CountersRequest(("a",))),
    "lineage": lambda engine: engine.lineage(ALICE, LineageRequest("a")),
    "inspect": lambda engine: engine.inspect(ALICE),
    "follow": lambda engine: engine.follow(ALICE),
    "forget": lambda engine: engine.forget(ALICE, Forget(ids=("a",))),
    "purge": lambda engine: engine.purge(ALICE),
    "rotate": lambda engine: engine.rotate(ALICE),
    "holdings": lambda engine: engine.holdings(ALICE),
    "hold": lambda engine: engine.hold(ALICE, Hold(passphrase="three jays")),
    "unlock": lambda engine: engine.unlock(ALICE, Unlock(passphrase="three jays")),
    "lock": lambda engine: engine.lock(ALICE),
    "lives": lambda engine: engine.lives(),
    "exercised": lambda engine: engine.exercised(
        Life(scope=ALICE, address="a", destroyed=False, events=1), 0
    ),
    "destroy_token": lambda engine: engine.destroy_token(ALICE),
    "purposes": lambda engine: engine.purposes(ALICE),
    "set_purpose": lambda engine: engine.set_purpose(ALICE, SetPurpose(purpose="facts", on=True)),
    "keep_parcel": lambda engine: engine.keep_parcel(ALICE, "a", ()),
    "parcel": lambda engine: engine.parcel(ALICE, "a"),
    "drop_parcel": lambda engine: engine.drop_parcel(ALICE, "a"),
    "rotate_root": lambda engine: engine.rotate_root(),
    "warm_up": lambda engine: engine.warm_up(ALICE),
    "warm_up_distiller": lambda engine: engine.warm_up_distiller(),
    "destroy": lambda engine: engine.destroy(ALICE, Destroy(confirm="local/alice")),
    "finish_due": lambda engine: engine.finish_due(ALICE),
    "export": lambda engine: engine.export(ALICE),
    "load": lambda engine: engine.load(ALICE, Load(b"{}")),
    "backup": lambda engine: engine.backup(ALICE),
    "restore": lambda engine: engine.restore(ALICE, Restore(b"{}")),
    "verify": lambda engine: engine.verify(ALICE),
    "verify_erased": lambda engine: engine.verify_erased(ALICE, RECEIPT),
    "receipts": lambda engine: engine.receipts(ALICE),
    "audit": lambda engine: engine.audit(ALICE),
    "verify_audit": lambda engine: engine.verify_audit(ALICE),
    "unknown_share": lambda engine: engine.unknown_share(ALICE),
    "check_embedder": lambda engine: engine.check_embedder(),
    "check_blobs": lambda engine: engine.check_blobs(),
    "check_keys": lambda engine: engine.check_keys(),
    "store_warnings": lambda engine: engine.store_warnings(),
    "extract": lambda engine: engine.extract(ALICE),
    "extraction": lambda engine: engine.extraction(ALICE),
    "pause_extraction": lambda engine: engine.pause_extraction(ALICE),
    "compact": lambda engine: engine.compact(ALICE),
    "upkeep": lambda engine: engine.upkeep(),
    "shared": lambda engine: engine.shared,
    "shards": lambda engine: engine.shards([ALICE]),
    "move_scope": lambda engine: engine.move_scope(ALICE, "other"),
}


def test_no_verb_is_left_out_here() -> None:
    public = {name for name in dir(Kernel) if not name.startswith("_")}
    beside = {
        "close",
        "embedding",
        "extracts",
        "full_score",
        "kind_of",
        "listen",
        "unreadable_scopes",
    }
    assert public == {*VERBS, *beside}


@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_engine_says_so_and_does_nothing(home: MemoryHome, verb: str) -> None:
    engine = home.engine()
    retain(engine, "tea")
    engine.close()
    before = head(home)
    with pytest.raises(StoreError, match="closed"):
        VERBS[verb](engine)
    assert head(home) == before


def test_closing_twice_is_fine(engine: Kernel) -> None:
    engine.close()
    engine.close()


def test_closing_never_fails(home: MemoryHome) -> None:
    """A scope that was destroyed by somebody else only costs the count of reads."""
    engine = home.engine()
    retain(engine, "tea")
    contents(engine)
    home.engine().destroy(ALICE, Destroy(confirm="local/alice"))
    engine.close()


@pytest.mark.parametrize("by", ["upkeep", "another scope"])
def test_a_scope_that_is_idle_is_closed_with_its_keys_and_its_index(
    home: MemoryHome, by: str
) -> None:
    engine = home.engine(Policy(idle_seconds=60))
    retain(engine, "tea")
    retain(engine, "coffee", scope=BOB)
    assert engine.recall(ALICE, Recall("tea"))[0].memory.content == "tea"
    held: list[weakref.ref[Any]]
    held = [weakref.ref(engine._opened[ALICE]), weakref.ref(engine._indexed(ALICE))]
    home.clock.advance(seconds=59)
    assert contents(engine, scope=BOB) == ["coffee"]
    engine.upkeep()
    assert ALICE in engine._opened
    home.clock.advance(seconds=2)
    engine.upkeep() if by == "upkeep" else engine.open(Scope("local", "carol"))
    assert ALICE not in engine._opened
    assert BOB in engine._opened, "it was used meanwhile"
    gc.collect()
    assert [one() for one in held] == [None, None]
    assert engine.recall(ALICE, Recall("tea"))[0].memory.content == "tea"
    assert contents(engine, scope=BOB) == ["coffee"]


def test_reads_before_a_restore_are_on_record(home: MemoryHome) -> None:
    engine = home.engine()
    retain(engine, "tea")
    raw, _ = engine.backup(ALICE)
    contents(engine)
    engine.restore(ALICE, Restore(raw))
    assert verbs(engine) == ["retain", "backup", "browse", "restore"]


class Refusing:
    """A store that refuses a rotation's writes, as one that is busy or full would."""

    def __init__(self, error: StoreError) -> None:
        self.error: StoreError | None = error

    def __call__(self, failpoint: Failpoint) -> None:
        if self.error and failpoint is Failpoint.ROTATE_BATCH_SEALED:
            raise self.error


@pytest.mark.parametrize("error", [Busy("It is busy."), Full("It is full.")])
def test_due_work_that_cannot_be_done_now_does_not_keep_a_verb_from_being_done(
    home: MemoryHome, error: StoreError
) -> None:
    first = home.engine(Policy(rotate_below=0))
    retain(first, "tea")
    forget(first, retain(first, "gone"))
    assert head(home).due == Due.ROTATE
    home.crashes = refusing = Refusing(error)  # type: ignore[assignment]
    engine = home.engine()
    assert contents(engine) == ["tea"]
    assert retain(engine, "coffee")
    refusing.error = None
    engine.finish_due(ALICE)
    assert head(home).due is Due.NOTHING
