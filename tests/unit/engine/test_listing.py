"""sessions: which conversations there are, when they were, and how much of them is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.pages import Paged
from scrubjay.model.requests import Caller, FreezeRequest, MarkTainted, Recall, Revoke
from scrubjay.model.results import Session
from scrubjay.model.rows import Collection, Freeze
from tests.support.engines import MemoryHome
from tests.unit.engine.saying import MORNING, record
from tests.unit.engine.scene import ALICE, BOB, forget, retain, supersede, verbs

NOON = datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC)
HOUR = timedelta(hours=1)


def said(engine: Kernel, session: str, hours: int = 0, **fields: Any) -> str:
    return retain(engine, f"tea {hours}", session=session, said_at=NOON + hours * HOUR, **fields)


def names(engine: Kernel) -> list[str]:
    return [session.name for session in engine.sessions(ALICE)]


@pytest.mark.parametrize("segments", [False, True], ids=["from rows", "from segments"])
def test_memories_are_counted_wherever_the_index_has_them(home: MemoryHome, segments: bool) -> None:
    engine = home.engine(Policy(segment_rows=0))
    for hours in (3, 1, 2):
        said(engine, "long", hours)
    said(engine, "short", 5)
    if segments:
        engine.recall(ALICE, Recall(query="tea"))
        engine = home.engine()
    said(engine, "long", 4)
    assert engine.sessions(ALICE).data == (
        Session(name="short", first=NOON + 5 * HOUR, last=NOON + 5 * HOUR, memories=1),
        Session(name="long", first=NOON + HOUR, last=NOON + 4 * HOUR, memories=4),
    )


@pytest.mark.parametrize("segments", [False, True], ids=["from rows", "from segments"])
def test_what_was_superseded_expired_or_erased_does_not_count(
    home: MemoryHome, segments: bool
) -> None:
    engine = home.engine(Policy(segment_rows=0))
    supersede(engine, said(engine, "old words"), "coffee", session="new words")
    said(engine, "over", expires_at=home.clock.now() + HOUR)
    if segments:
        engine.recall(ALICE, Recall(query="tea"))
        engine = home.engine()
    forget(engine, said(engine, "erased"))
    home.clock.advance(days=1)
    assert names(engine) == ["new words"]


def test_turns_are_counted_also_where_nothing_was_derived(engine: Kernel) -> None:
    record(engine, 1, "ok", session="courtesies")
    record(engine, 3, "thanks", session="courtesies")
    (found,) = engine.sessions(ALICE)
    assert (found.name, found.memories, found.turns) == ("courtesies", 0, 2)
    minutes = [(time - MORNING) // timedelta(minutes=1) for time in (found.first, found.last)]
    assert minutes == [1, 3]


def test_turns_without_a_session_belong_to_their_day(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.")
    assert names(engine) == ["2026-03-01"]


def test_a_session_of_which_all_was_forgotten_is_gone(engine: Kernel) -> None:
    record(engine, 1, "I prefer tea.", session="one")
    said(engine, "two")
    said(engine, "three")
    engine.mark_tainted(ALICE, MarkTainted("one"))
    forget(engine, session="one")
    engine.revoke(ALICE, Revoke(session="two"))
    assert names(engine) == ["three"]


def test_the_taint_of_a_session_is_shown(engine: Kernel) -> None:
    said(engine, "clean", 1)
    said(engine, "read the web", 2)
    engine.mark_tainted(ALICE, MarkTainted("read the web", Origin.TOOL))
    assert [one.tainted for one in engine.sessions(ALICE)] == [Origin.TOOL, None]


def test_another_process_is_seen_at_once(home: MemoryHome, engine: Kernel) -> None:
    said(engine, "one")
    assert names(engine) == ["one"]
    said(home.engine(), "two", 1)
    assert names(engine) == ["two", "one"]


def test_sessions_of_another_scope_are_not_listed(engine: Kernel) -> None:
    retain(engine, "tea", scope=BOB, session="bob")
    engine.open(ALICE)
    assert engine.sessions(ALICE).data == ()


def test_a_memory_of_the_last_day_there_is_does_no_harm(engine: Kernel) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    retain(engine, "tea", session="s", said_at=last)
    engine.reindex(ALICE)
    assert engine.sessions(ALICE)[0].last.year == 9999


def test_its_owner_sees_them_while_all_is_frozen(engine: Kernel) -> None:
    said(engine, "one")
    engine.freeze(ALICE, FreezeRequest(Freeze.ALL))
    assert names(engine) == ["one"]


def test_looking_is_on_record(engine: Kernel) -> None:
    said(engine, "one")
    engine.sessions(ALICE, caller=Caller(actor=Actor.AGENT))
    assert verbs(engine) == ["retain", "sessions"]


def test_no_turn_is_opened_whose_session_a_memory_names(
    home: MemoryHome, engine: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        record(engine, number, f"Tell me of planet {number}.", session="s")
    opened: list[Collection] = []
    scope = engine._open(ALICE)
    body = scope.open_body

    def counted(collection: Collection, row: Any) -> bytes:
        opened.append(collection)
        return body(collection, row)

    monkeypatch.setattr(scope, "open_body", counted)
    assert engine.sessions(ALICE)[0].turns == 5
    assert Collection.TURN not in opened


def test_a_list_of_none_is_refused(engine: Kernel) -> None:
    with pytest.raises(InvalidRequest):
        engine.sessions(ALICE, Paged(0))
