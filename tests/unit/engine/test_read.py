"""get, browse and follow: what is shown, in which order, and as of when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.memories.read import follow
from scrubjay.engine.scope.lifecycle import open_scope
from scrubjay.model.errors import InvalidRequest, NotFound, SealBroken
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.pages import Paged
from scrubjay.model.requests import Amend, Browse, Get, History
from tests.support.engines import MemoryHome
from tests.support.memory_blobs import MemoryBlobs
from tests.unit.engine.scene import (
    ALICE,
    LONG,
    address,
    browse,
    contents,
    forget,
    ids,
    retain,
    rows,
    supersede,
)

HOUR = timedelta(hours=1)


def test_get_refuses_what_is_no_id(engine: Kernel) -> None:
    with pytest.raises(InvalidRequest):
        engine.get(ALICE, Get("mem 1"))


@pytest.mark.parametrize("look", [Get, History])
def test_what_was_never_here_is_not_found(engine: Kernel, look: type[Get | History]) -> None:
    engine.open(ALICE)
    with pytest.raises(NotFound, match="mem-nowhere"):
        _look(engine, look("mem-nowhere"))


@pytest.mark.parametrize("look", [Get, History])
def test_what_was_forgotten_is_not_found(engine: Kernel, look: type[Get | History]) -> None:
    gone = retain(engine, "tea")
    forget(engine, gone)
    with pytest.raises(NotFound):
        _look(engine, look(gone))


def _look(engine: Kernel, request: Get | History) -> object:
    if isinstance(request, Get):
        return engine.get(ALICE, request)
    return engine.history(ALICE, request)


def test_get_shows_a_superseded_memory_too(engine: Kernel) -> None:
    old = retain(engine, "tea")
    new = supersede(engine, old, "coffee")
    assert engine.get(ALICE, Get(old)).superseded_by == new


def test_get_as_of_a_time_shows_what_was_current_then(home: MemoryHome, engine: Kernel) -> None:
    before = home.clock.now()
    old = retain(engine, "tea")
    between = home.clock.now()
    new = supersede(engine, old, "coffee")
    after = home.clock.now()
    assert engine.get(ALICE, Get(old, as_of=between)).content == "tea"
    assert engine.get(ALICE, Get(new, as_of=after)).content == "coffee"
    for public_id, moment in ((old, before), (old, after), (new, between)):
        with pytest.raises(NotFound):
            engine.get(ALICE, Get(public_id, as_of=moment))


def test_get_as_of_a_time_shows_what_has_expired_since(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "tea", expires_at=home.clock.now() + HOUR)
    then = home.clock.now()
    home.clock.advance(HOUR)
    assert engine.get(ALICE, Get(public_id, as_of=then)).content == "tea"


def test_an_empty_scope_shows_nothing(engine: Kernel) -> None:
    engine.open(ALICE)
    page = engine.browse(ALICE, Browse())
    assert (page.data, page.next_cursor) == ((), None)


def test_browse_shows_the_newest_first(engine: Kernel) -> None:
    for content in "abcd":
        retain(engine, content)
    assert contents(engine) == ["d", "c", "b", "a"]


def test_a_change_does_not_make_a_memory_newer(home: MemoryHome, engine: Kernel) -> None:
    first, second, third = (retain(engine, content) for content in "abc")
    engine.amend(ALICE, Amend(first, pinned=True))
    engine.amend(ALICE, Amend(second, expires_at=home.clock.now() + HOUR))
    forget(engine, third)
    engine.rotate(ALICE)
    assert contents(engine) == ["b", "a"]


def test_a_correction_is_as_new_as_the_moment_it_was_made(engine: Kernel) -> None:
    first, _ = retain(engine, "a"), retain(engine, "b")
    supersede(engine, first, "a corrected")
    assert contents(engine) == ["a corrected", "b"]
    assert contents(engine, superseded=True) == ["a corrected", "b", "a"]


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["d", "c", "b", "a"]),
    ({"kinds": {Kind.FACT}}, ["c", "a"]),
    ({"kinds": {Kind.FACT, Kind.CONTEXT}}, ["d", "c", "a"]),
    ({"tags": {"x"}}, ["b", "a"]),
    ({"tags": {"x", "y"}}, ["b"]),
    ({"session": "s"}, ["c", "a"]),
    ({"kinds": {Kind.FACT}, "tags": {"x"}, "session": "s"}, ["a"]),
    ({"kinds": {Kind.PREFERENCE}, "tags": {"x"}, "session": "s"}, []),
    ({"tags": {"z"}}, []),
    ({"session": "other"}, []),
]


@pytest.mark.parametrize(("filters", "shown"), FILTERS)
def test_all_filters_have_to_hold(
    engine: Kernel, filters: dict[str, Any], shown: list[str]
) -> None:
    retain(engine, "a", kind=Kind.FACT, tags=("x",), session="s")
    retain(engine, "b", kind=Kind.PREFERENCE, tags=("x", "y"))
    retain(engine, "c", kind=Kind.FACT, session="s")
    retain(engine, "d", kind=Kind.CONTEXT)
    assert contents(engine, **filters) == shown


def test_since_and_before_cut_out_a_time(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "a")
    since = home.clock.now()
    retain(engine, "b")
    before = home.clock.now()
    retain(engine, "c")
    assert contents(engine, since=since, before=before) == ["b"]


def test_browse_as_of_a_time_shows_what_was_current_then(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, "tea")
    brief = retain(engine, "soon over", expires_at=home.clock.now() + HOUR)
    then = home.clock.now()
    supersede(engine, old, "coffee")
    home.clock.advance(HOUR)
    retain(engine, "later")
    assert ids(browse(engine, as_of=then)) == [brief, old]
    assert contents(engine) == ["later", "coffee"]


@st.composite
def histories(draw: st.DrawFn) -> tuple[MemoryHome, Kernel]:
    """A scope after arbitrary retains, pins, corrections and forgets."""
    home = MemoryHome()
    engine = home.engine(Policy(drop_days=0))
    known: list[str] = []
    for step in draw(st.lists(st.sampled_from("rrrrpsfd"), max_size=24)):
        chosen = draw(st.sampled_from(known)) if known else ""
        if step == "r" or not known:
            known.append(retain(engine, "x", tags=draw(st.sampled_from([(), ("t",)]))))
        elif step == "p":
            engine.amend(ALICE, Amend(chosen, pinned=True))
        elif step == "s" and engine.get(ALICE, Get(chosen)).live:
            known.append(supersede(engine, chosen, "y"))
        elif step == "f":
            forget(engine, chosen)
            left = set(ids(browse(engine, superseded=True, limit=1000)))
            known = [public_id for public_id in known if public_id in left]
        elif step == "d":
            engine.purge(ALICE)
    return home, engine


@given(histories(), st.integers(1, 9), st.booleans(), st.sampled_from([(), ("t",)]))
def test_pages_together_are_the_whole_list_under_any_limit(
    history: tuple[MemoryHome, Kernel], limit: int, superseded: bool, tags: tuple[str, ...]
) -> None:
    """No duplicate and no gap, in the order of creation, and only the last page says it is."""
    _, engine = history
    engine.open(ALICE)
    filters: dict[str, Any] = {"superseded": superseded, "tags": tags}
    whole = browse(engine, limit=1000, **filters)
    pages: list[tuple[Memory, ...]] = []
    cursor = None
    while True:
        page = engine.browse(ALICE, Browse(limit=limit, cursor=cursor, **filters))
        pages.append(page.data)
        if page.next_cursor is None:
            break
        assert len(page) == limit
        assert cursor is None or int(page.next_cursor) < int(cursor)
        cursor = page.next_cursor
    assert [memory for page in pages for memory in page] == list(whole)
    numbers = [memory.number for memory in whole]
    assert numbers == sorted(numbers, reverse=True)


def test_more_rows_than_are_read_at_once_are_shown_in_order(engine: Kernel) -> None:
    """Pages of the store (256 rows) leave no seam, also when old memories changed last."""
    made = [retain(engine, str(number)) for number in range(600)]
    for public_id in made[:300:7]:
        engine.amend(ALICE, Amend(public_id, pinned=True))
    newest_first = list(reversed(made))
    assert ids(browse(engine, limit=1000)) == newest_first
    assert ids(browse(engine, limit=10)) == newest_first[:10]
    assert ids(browse(engine, limit=400)) == newest_first[:400]


def test_what_comes_in_meanwhile_does_not_shift_the_next_page(engine: Kernel) -> None:
    for content in "abcd":
        retain(engine, content)
    first = engine.browse(ALICE, Browse(limit=2))
    retain(engine, "new")
    second = engine.browse(ALICE, Browse(limit=2, cursor=first.next_cursor))
    assert [memory.content for memory in (*first, *second)] == ["d", "c", "b", "a"]


def test_a_memory_whose_blob_is_gone_is_damaged_and_not_unknown(
    home: MemoryHome, engine: Kernel
) -> None:
    public_id = retain(engine, LONG)
    home.blobs.remove(address(home))
    with pytest.raises(SealBroken):
        engine.get(ALICE, Get(public_id))


def test_a_read_that_a_rotation_overtakes_is_tried_again(home: MemoryHome) -> None:
    """Between reading a row and opening its blob another process may have sealed it anew."""
    home.blobs = blobs = OvertakenBlobs()
    engine, other = home.engine(), home.engine()
    public_id = retain(engine, LONG)
    (before,) = blobs.names(address(home))
    blobs.overtake = lambda: other.rotate(ALICE)
    assert engine.get(ALICE, Get(public_id)).content == LONG
    assert blobs.overtake is None
    assert before not in blobs.names(address(home))


class OvertakenBlobs(MemoryBlobs):
    """Blobs whose next reader is overtaken by something else."""

    overtake: Callable[[], object] | None = None

    def get(self, address: str, name: str) -> bytes:
        if self.overtake:
            overtake, self.overtake = self.overtake, None
            overtake()
        return super().get(address, name)


# -- follow ------------------------------------------------------------------------------------


def test_follow_tells_what_changed_since(engine: Kernel, home: MemoryHome) -> None:
    first, second = retain(engine, "a"), retain(engine, "b")
    seen = engine.follow(ALICE)
    assert (ids(seen.memories), seen.erased, seen.anew) == ([first, second], frozenset(), False)
    engine.amend(ALICE, Amend(first, pinned=True))
    erased = next(row.id for row in rows(home) if row.seq == 2)
    forget(engine, second)
    changes = engine.follow(ALICE, Paged(cursor=seen.next_cursor))
    assert ids(changes.memories) == [first]
    assert changes.erased == {erased.hex()}
    assert not changes.anew


def test_follow_says_when_there_is_nothing_new(engine: Kernel) -> None:
    retain(engine, "a")
    seen = engine.follow(ALICE)
    again = engine.follow(ALICE, Paged(cursor=seen.next_cursor))
    assert (again.memories, again.erased, again.next_cursor) == ((), frozenset(), seen.next_cursor)


def test_a_reader_that_slept_across_a_clean_up_starts_anew_once(home: MemoryHome) -> None:
    engine = home.engine(Policy(drop_days=0))
    kept, gone = retain(engine, "a"), retain(engine, "b")
    seen = engine.follow(ALICE)
    forget(engine, gone)
    engine.purge(ALICE)
    changes = engine.follow(ALICE, Paged(cursor=seen.next_cursor))
    assert changes.anew
    assert ids(changes.memories) == [kept]
    after = engine.follow(ALICE, Paged(cursor=changes.next_cursor))
    assert not after.anew
    assert after.memories == ()


def test_a_reader_that_starts_anew_gets_everything_in_steps(home: MemoryHome) -> None:
    engine = home.engine(Policy(drop_days=0))
    made = [retain(engine, "x") for _ in range(5)]
    forget(engine, made.pop())
    engine.purge(ALICE)
    opened = open_scope(home.ports(), ALICE)
    steps = [follow(opened, Paged(1))]
    while steps[-1].memories:
        steps.append(follow(opened, Paged(1, cursor=steps[-1].next_cursor)))
    assert [step.anew for step in steps] == [True, False, False, False, False]
    assert [public_id for step in steps for public_id in ids(step.memories)] == made


def test_a_reader_ahead_of_the_scope_starts_anew(engine: Kernel) -> None:
    """Its copy is of a file that was lost: the seqs it knows were given to other rows."""
    public_id = retain(engine, "a")
    changes = engine.follow(ALICE, Paged(cursor="99.0"))
    assert changes.anew
    assert ids(changes.memories) == [public_id]
    assert changes.next_cursor == "1.0"
