"""audit: every change in commit order, every read counted, no content."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import NotFound
from scrubjay.model.origin import Actor
from scrubjay.model.requests import (
    Amend,
    AuditRequest,
    Browse,
    Caller,
    Forget,
    FreezeRequest,
    Get,
    History,
    Load,
    Purge,
    Restore,
    Retain,
    Supersede,
)
from scrubjay.model.rows import Freeze
from tests.support.engines import MemoryHome, SqliteHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    address,
    contents,
    forget,
    head,
    retain,
    rows,
    supersede,
    verbs,
)


def test_every_change_leaves_its_event_in_order(home: MemoryHome, engine: Kernel) -> None:
    first = retain(engine, "a")
    second = supersede(engine, first, "b")
    engine.amend(ALICE, Amend(second, pinned=True))
    engine.amend(ALICE, Amend(second, pinned=False))
    engine.amend(ALICE, Amend(second, expires_at=home.clock.now()))
    engine.freeze(ALICE)
    engine.freeze(ALICE, FreezeRequest(Freeze.ALL))
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    engine.rotate(ALICE)
    engine.purge(ALICE, Purge(superseded_days=0))
    engine.load(ALICE, Load(engine.export(ALICE).content))
    raw, _ = engine.backup(ALICE)
    engine.restore(ALICE, Restore(raw))
    forget(engine, retain(engine, "c"))
    assert verbs(engine) == [
        "retain", "supersede", "pin", "unpin", "expire",
        "freeze.writes", "freeze.all", "freeze.none", "rotate",
        "purge.expired", "purge.superseded", "export", "load", "backup", "restore",
        "retain", "forget",
    ]  # fmt: skip


def test_events_count_up_and_say_who_and_when(home: MemoryHome, engine: Kernel) -> None:
    before = home.clock.now()
    engine.retain(ALICE, Retain(content="a"), Caller(actor=Actor.AGENT))
    engine.freeze(ALICE, caller=Caller(actor=Actor.OPERATOR))
    first, second = engine.audit(ALICE)
    assert (first.count, second.count) == (1, 2)
    assert (first.actor, second.actor) == ("agent", "operator")
    assert before < first.at < second.at < home.clock.now()


def test_an_event_names_its_rows_by_pseudonym(home: MemoryHome, engine: Kernel) -> None:
    first = retain(engine, "a")
    supersede(engine, first, "b")
    old, new = (row.id[:8].hex() for row in sorted(rows(home), key=lambda row: row.born))
    events = engine.audit(ALICE)
    assert [event.subjects for event in events] == [(old,), (old, new)]


def test_what_changes_nothing_leaves_no_event(engine: Kernel) -> None:
    first = retain(engine, "a", key="k", pinned=True)
    retain(engine, "a", key="k")
    engine.amend(ALICE, Amend(first, pinned=True))
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    for refused in (
        lambda: engine.amend(ALICE, Amend("mem-x", pinned=True)),
        lambda: forget(engine, "mem-x"),
    ):
        with pytest.raises(NotFound):
            refused()
    assert verbs(engine) == ["retain"]


def test_numbers_say_how_many(engine: Kernel) -> None:
    made = [retain(engine, content) for content in "abc"]
    engine.load(BOB, Load(engine.export(ALICE).content))
    forget(engine, *made)
    assert [event.number for event in engine.audit(ALICE)] == [1, 1, 1, 1, 3]
    assert [event.number for event in engine.audit(BOB)] == [3]


def test_a_long_list_of_subjects_is_cut_and_its_number_is_not(engine: Kernel) -> None:
    forget(engine, *[retain(engine, str(number)) for number in range(70)])
    event = engine.audit(ALICE)[-1]
    assert (event.number, len(event.subjects)) == (70, 64)


def test_no_content_is_in_the_trail(engine: Kernel) -> None:
    words = ("Nightingale", "Kestrel", "Wagtail", "Siskin", "Brambling", "Dunnock")
    content, public_id, tag, session, key, reason = words
    retain(engine, content, id=public_id, tags=(tag,), session=session, key=key)
    supersede(engine, public_id, content, reason=reason)
    forget(engine, session=session)
    text = repr(engine.audit(ALICE))
    assert not [word for word in words if word in text]


def test_the_trail_is_read_in_pieces(engine: Kernel) -> None:
    for content in "abcde":
        retain(engine, content)
    whole = engine.audit(ALICE)
    assert engine.audit(ALICE, AuditRequest(2, cursor="1")).data == whole[1:3]
    assert engine.audit(ALICE, AuditRequest(cursor="5")).data == ()


def test_a_scope_has_a_trail_of_its_own(engine: Kernel) -> None:
    retain(engine, "a")
    retain(engine, "b", scope=BOB)
    assert len(engine.audit(ALICE)) == len(engine.audit(BOB)) == 1


def test_threads_write_one_trail_without_gaps(engine: Kernel) -> None:
    engine.open(ALICE)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: retain(engine, str(number)), range(64)))
    assert [event.count for event in engine.audit(ALICE)] == list(range(1, 65))
    assert engine.verify_audit(ALICE).sound


# -- reads -----------------------------------------------------------------------------------


def test_reads_are_counted_and_written_together(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "a")
    before = head(home)
    for _ in range(3):
        engine.get(ALICE, Get(public_id))
    contents(engine)
    engine.history(ALICE, History(public_id), Caller(actor=Actor.AGENT))
    assert head(home) == before
    events = engine.audit(ALICE)[1:]
    assert [(event.verb, event.actor, event.number) for event in events] == [
        ("browse", "user", 1),
        ("get", "user", 3),
        ("history", "agent", 1),
    ]


def test_reads_are_written_with_the_next_change(engine: Kernel) -> None:
    public_id = retain(engine, "a")
    engine.get(ALICE, Get(public_id))
    retain(engine, "b")
    assert verbs(engine) == ["retain", "get", "retain"]


def test_a_read_that_found_nothing_counts_too(engine: Kernel) -> None:
    engine.open(ALICE)
    with pytest.raises(NotFound):
        engine.get(ALICE, Get("mem-nowhere"))
    assert verbs(engine) == ["get"]


def test_reads_are_kept_when_a_write_is_refused(engine: Kernel) -> None:
    public_id = retain(engine, "a")
    engine.get(ALICE, Get(public_id))
    with pytest.raises(NotFound):
        engine.amend(ALICE, Amend("mem-nowhere", pinned=True))
    assert verbs(engine) == ["retain", "get"]


def test_reads_are_written_on_close(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "a")
    engine.get(ALICE, Get(public_id))
    engine.close()
    assert verbs(home.engine()) == ["retain", "get"]


def test_reads_are_written_on_close_to_files_too(sqlite_home: SqliteHome) -> None:
    engine = sqlite_home.engine()
    engine.get(ALICE, Get(retain(engine, "a")))
    engine.close()
    successor = sqlite_home.engine()
    assert verbs(successor) == ["retain", "get"]
    assert successor.verify_audit(ALICE).sound
    successor.close()


def test_reads_of_a_frozen_scope_are_written(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "a")
    engine.freeze(ALICE, FreezeRequest(Freeze.ALL))
    engine.get(ALICE, Get(public_id))
    engine.close()
    assert verbs(home.engine())[-1] == "get"


def test_an_export_or_backup_is_on_record_at_once(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "a")
    engine.export(ALICE)
    assert head(home).audit_count == 2
    engine.backup(ALICE)
    assert head(home).audit_count == 3


# -- the head in the catalog ------------------------------------------------------------------

COPIES: list[Callable[[Kernel], object]] = [
    lambda engine: engine.forget(ALICE, Forget(tags=frozenset({"x"}))),
    lambda engine: engine.rotate(ALICE),
    lambda engine: engine.purge(ALICE),
    lambda engine: engine.close(),
]


@pytest.mark.parametrize("verb", COPIES, ids=["forget", "rotate", "purge", "close"])
def test_the_head_of_the_trail_is_copied_to_the_catalog(
    home: MemoryHome, engine: Kernel, verb: Callable[[Kernel], object]
) -> None:
    retain(engine, "a", tags=("x",))
    verb(engine)
    entry = home.store.catalog.entry(address(home))
    assert entry is not None
    assert (entry.audit_count, entry.audit_mac) == (head(home).audit_count, head(home).audit_mac)


def test_every_request_says_who_acts(engine: Kernel) -> None:
    agent = Actor.AGENT
    first = engine.retain(ALICE, Retain(content="a"), Caller(actor=agent)).id
    second = engine.supersede(ALICE, Supersede(id=first, content="b"), Caller(actor=agent)).id
    engine.amend(ALICE, Amend(second, pinned=True), Caller(actor=agent))
    engine.amend(ALICE, Amend(second, expires_at=None), Caller(actor=agent))
    engine.get(ALICE, Get(second), Caller(actor=agent))
    engine.browse(ALICE, Browse(), Caller(actor=agent))
    engine.history(ALICE, History(second), Caller(actor=agent))
    engine.rotate(ALICE, caller=Caller(actor=agent))
    engine.purge(ALICE, Purge(superseded_days=0), Caller(actor=agent))
    raw = engine.export(ALICE, caller=Caller(actor=agent)).content
    engine.backup(ALICE, caller=Caller(actor=agent))
    engine.load(ALICE, Load(raw), Caller(actor=agent))
    engine.forget(ALICE, Forget(ids=(second,)), Caller(actor=agent))
    assert {event.actor for event in engine.audit(ALICE)} == {"agent"}


def test_the_newest_events_can_be_asked_for(engine: Kernel) -> None:
    for number in range(6):
        retain(engine, f"tea {number}")
    whole = engine.audit(ALICE).data
    for most in (1, 4, 6, 100):
        page = engine.audit(ALICE, AuditRequest(most, newest=True))
        assert page.data == whole[-most:]
        assert page.next_cursor is None
