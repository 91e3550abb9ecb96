"""reindex, and the vectors of a costly embedder: kept with each memory, whatever happens to it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.model.errors import EmbedderError
from scrubjay.model.requests import Amend, Get, Retain, Supersede
from scrubjay.model.rows import Collection
from scrubjay.ports import Clock, Embedder, Tx
from scrubjay.testing.clock import FakeClock
from scrubjay.testing.embedder_contract import FakeEmbedder, VectorContract
from tests.support.engines import MemoryHome
from tests.unit.engine.asking import EAGER, ask, fill, listed, said
from tests.unit.engine.scene import ALICE, BOB, change, flip_cell, forget, retain, rows, supersede


class TestFakeEmbedder(VectorContract):
    @pytest.fixture
    def embedder(self, clock: Clock) -> Embedder:
        assert isinstance(clock, FakeClock)
        return FakeEmbedder(clock)


@pytest.fixture
def embedder(home: MemoryHome) -> FakeEmbedder:
    """The costly embedder of the home."""
    home.embedder = made = FakeEmbedder(home.clock)
    return made


@pytest.fixture
def engine(home: MemoryHome, embedder: FakeEmbedder) -> Kernel:
    return home.engine()


def kept(home: MemoryHome) -> list[bytes | None]:
    """The vectors of all memories, unsealed, in the order they changed."""
    opened = home.engine()._open(ALICE)
    return [opened.open_vector(row) for row in rows(home) if not row.erased]


# -- vectors that are kept -----------------------------------------------------------------------


def test_a_memory_is_embedded_once_however_often_it_is_recalled(
    home: MemoryHome, engine: Kernel, embedder: FakeEmbedder
) -> None:
    retain(engine, "green tea", tags=("hot",))
    for one in (engine, home.engine(), home.engine(EAGER), home.engine(EAGER)):
        ask(one, "tea")
    assert embedder.texts.count("green tea hot") == 1


def test_a_cheap_embedder_is_not_asked_at_a_write(home: MemoryHome) -> None:
    home.embedder = cheap = FakeEmbedder(home.clock, costly=False)
    retain(home.engine(), "green tea")
    assert cheap.texts == []
    assert kept(home) == [None]


def test_a_vector_survives_a_pin_a_supersession_and_a_rotation(
    home: MemoryHome, engine: Kernel, embedder: FakeEmbedder
) -> None:
    tea = retain(engine, "green tea")
    (vector,) = kept(home)
    assert vector is not None
    engine.amend(ALICE, Amend(tea, pinned=True))
    assert kept(home) == [vector]
    supersede(engine, tea, "black tea")
    assert kept(home)[0] == vector
    assert kept(home)[1] not in (None, vector)
    before = kept(home)
    engine.rotate(ALICE)
    forget(engine, retain(engine, "gone"))
    assert kept(home) == before
    assert embedder.texts == ["green tea", "black tea", "gone"]


@pytest.mark.parametrize("how", ["late", "broken"])
def test_a_late_or_broken_embedder_loses_no_memory(
    home: MemoryHome, engine: Kernel, embedder: FakeEmbedder, how: str
) -> None:
    if how == "late":
        embedder.seconds = 60
    else:
        embedder.failure = EmbedderError("It is out of order.")
    tea = retain(engine, "green tea")
    supersede(engine, tea, "black tea")
    assert kept(home) == [None, None]
    embedder.seconds, embedder.failure = 0, None
    assert said(engine, "black tea") == ["black tea"]


def test_an_erased_memory_leaves_no_vector(home: MemoryHome, engine: Kernel) -> None:
    tea = retain(engine, "green tea")
    cell = rows(home)[0].vector
    assert cell is not None
    receipt = forget(engine, tea)
    assert rows(home)[0].vector is None
    assert any(one.nonce == cell[6:18].hex() for one in receipt.cells)


def _damage_vector(home: MemoryHome) -> None:
    def flip(tx: Tx) -> None:
        (row, *_) = tx.changes(Collection.MEMORY, 0, 1)
        vector = bytearray(row.vector or b"")
        vector[-1] ^= 1
        tx.reseal(Collection.MEMORY, [(row, replace(row, vector=bytes(vector)))])

    change(home, flip)


def test_a_damaged_vector_costs_no_memory(home: MemoryHome, engine: Kernel) -> None:
    """Not in a recall, not by a pin, and not by a rotation, which deletes the old key."""
    tea = retain(engine, "green tea")
    _damage_vector(home)
    assert said(home.engine(), "tea") == ["green tea"]
    assert not home.engine().verify(ALICE).sound
    engine.rotate(ALICE)
    assert engine.get(ALICE, Get(tea)).content == "green tea"
    _, answer = engine.amend(ALICE, Amend(tea, pinned=True)), ask(home.engine(), "tea")
    assert [hit.memory.content for hit in answer] == ["green tea"]
    assert engine.verify(ALICE).sound


def test_a_pin_of_a_memory_with_a_damaged_vector_works(home: MemoryHome, engine: Kernel) -> None:
    tea = retain(engine, "green tea")
    _damage_vector(home)
    assert engine.amend(ALICE, Amend(tea, pinned=True)).pinned


# -- reindex ---------------------------------------------------------------------------------------


def test_reindex_gives_every_memory_a_vector_and_says_how_many(
    home: MemoryHome, engine: Kernel, embedder: FakeEmbedder
) -> None:
    fill(engine, 3)
    embedder.failure = EmbedderError("It is out of order.")
    fill(engine, 4, first=3)
    embedder.failure = None
    done = engine.reindex(ALICE)
    assert (done.memories, done.embedded) == (7, 4)
    assert None not in kept(home)
    assert engine.reindex(ALICE).embedded == 0


def test_reindex_takes_the_vectors_of_another_embedder_over(
    home: MemoryHome, engine: Kernel
) -> None:
    fill(engine, 3)
    home.embedder = FakeEmbedder(home.clock, name="another")
    other = home.engine()
    assert ask(other, "note1").degraded
    assert other.reindex(ALICE).embedded == 3
    assert ask(other, "note1").degraded == ()
    assert ask(home.engine(), "note1").degraded == ()


def test_reindex_writes_segments_however_few_memories_there_are(
    home: MemoryHome, engine: Kernel
) -> None:
    fill(engine, 3)
    engine.reindex(ALICE)
    assert len(listed(home)) == 1


def test_reindex_passes_over_a_damaged_memory(home: MemoryHome, engine: Kernel) -> None:
    fill(engine, 3)
    flip_cell(home, 2)
    home.embedder = FakeEmbedder(home.clock, name="another")
    done = home.engine().reindex(ALICE)
    assert (done.memories, done.embedded) == (2, 2)


def test_reindex_of_an_empty_scope_is_fine(home: MemoryHome, engine: Kernel) -> None:
    engine.open(ALICE)
    assert engine.reindex(ALICE).memories == 0
    assert listed(home) == ()
    assert len(ask(engine, "tea")) == 0


def test_progress_is_told_never_falls_and_ends_at_the_total(engine: Kernel) -> None:
    fill(engine, 150)
    told: list[tuple[int, int]] = []
    engine.reindex(ALICE, progress=lambda done, total: told.append((done, total)))
    assert len(told) >= 3
    assert told == sorted(told)
    assert {total for _, total in told} == {150}
    assert told[-1] == (150, 150)


def test_reindex_stops_where_the_embedder_fails_and_goes_on_from_there(
    home: MemoryHome, engine: Kernel, embedder: FakeEmbedder
) -> None:
    embedder.failure = EmbedderError("It is out of order.")
    fill(engine, 100)
    with pytest.raises(EmbedderError):
        engine.reindex(ALICE)
    embedder.failure = None
    told: list[int] = []

    def progress(done: int, _: int) -> None:
        told.append(done)
        if len(told) == 1:
            embedder.failure = EmbedderError("Again.")

    with pytest.raises(EmbedderError):
        engine.reindex(ALICE, progress=progress)
    embedder.failure = None
    assert 0 < engine.reindex(ALICE).embedded < 100


def test_reindex_is_in_the_audit_trail_and_works_on_its_scope_alone(
    home: MemoryHome, engine: Kernel
) -> None:
    fill(engine, 2)
    fill(engine, 2, scope=BOB)
    engine.reindex(ALICE)
    assert [event.verb for event in engine.audit(ALICE)].count("reindex") == 1
    assert listed(home, BOB) == ()


# -- another embedder than the stored one --------------------------------------------------------


@pytest.mark.parametrize("written", [False, True], ids=["rows", "segments"])
def test_memories_of_another_embedder_are_counted_until_reindex(
    home: MemoryHome, written: bool
) -> None:
    """From the cheap one inside the package, which keeps no vectors, to an endpoint."""
    engine = home.engine(EAGER if written else None)
    fill(engine, 60)
    ask(engine, "note1")
    engine.close()
    home.embedder = FakeEmbedder(home.clock)
    engine = home.engine()
    for _ in range(2):
        (told,) = ask(engine, "note1").degraded
        assert told.startswith("60 memories have ")
        assert told.endswith(" embedder; run reindex.")
    engine.reindex(ALICE)
    assert ask(engine, "note1").degraded == ()
    assert ask(home.engine(), "note1").degraded == ()


def test_an_endpoint_that_is_down_is_said_where_the_memory_is_written(
    home: MemoryHome, engine: Kernel, embedder: FakeEmbedder
) -> None:
    embedder.failure = EmbedderError("The embedding endpoint cannot be reached.")
    down = "Found by words alone until reindex: The embedding endpoint cannot be reached."
    first = engine.retain(ALICE, Retain("green tea"))
    second = engine.supersede(ALICE, Supersede(first.id, "white tea"))
    assert (first.degraded, second.degraded) == ((down,), (down,))
    embedder.failure = None
    assert engine.retain(ALICE, Retain("black tea")).degraded == ()
    for one in (engine, home.engine()):
        assert ask(one, "tea").degraded == (
            "2 memories have no vector of this embedder; run reindex.",
        )
    engine.reindex(ALICE)
    assert ask(engine, "tea").degraded == ()


def test_what_was_written_while_an_endpoint_was_down_is_counted_from_segments_too(
    home: MemoryHome, embedder: FakeEmbedder
) -> None:
    engine = home.engine(EAGER)
    embedder.failure = EmbedderError("It is down.")
    fill(engine, 60)
    embedder.failure = None
    ask(engine, "note1")
    engine.close()
    told = ask(home.engine(EAGER), "note1").degraded
    assert told == ("60 memories have no vector of this embedder; run reindex.",)
