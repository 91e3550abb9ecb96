"""retain infers the kind of what the owner tells, says so, and never does it for others."""

from __future__ import annotations

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Export, Get, Load, Retain
from scrubjay.model.results import Outcome
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, BOB, everything, forget, retain

TEA = "Alice prefers green tea"
OWNERS = (Origin.USER, Origin.OPERATOR)


def stored(engine: Kernel, **fields: object) -> tuple[Kind, Kind | None]:
    """The kind that TEA is stored as, and the one the receipt says was inferred."""
    receipt = engine.retain(ALICE, Retain(TEA, **fields))  # type: ignore[arg-type]
    return engine.get(ALICE, Get(receipt.id)).kind, receipt.inferred


@pytest.mark.parametrize("origin", OWNERS)
def test_what_an_owner_tells_is_of_the_kind_it_reads_like(engine: Kernel, origin: Origin) -> None:
    assert stored(engine, origin=origin) == (Kind.PREFERENCE, Kind.PREFERENCE)


@pytest.mark.parametrize("origin", sorted(set(Origin) - set(OWNERS)))
def test_what_anybody_else_tells_is_a_fact(engine: Kernel, origin: Origin) -> None:
    assert stored(engine, origin=origin) == (Kind.FACT, None)
    assert engine.quarantined(ALICE).data == ()


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_that_is_given_stays(engine: Kernel, kind: Kind) -> None:
    assert stored(engine, kind=kind) == (kind, None)


def test_a_plain_fact_is_one_and_the_receipt_need_not_say_so(engine: Kernel) -> None:
    receipt = engine.retain(ALICE, Retain("Alice lives in Lyon"))
    assert engine.get(ALICE, Get(receipt.id)).kind is Kind.FACT
    assert receipt.inferred is None


@pytest.mark.parametrize("place", [{"speaker": "Bob"}, {"session": "s", "position": 3}])
def test_what_was_said_in_a_conversation_is_no_wish(
    engine: Kernel, place: dict[str, object]
) -> None:
    assert stored(engine, **place) == (Kind.FACT, None)


def test_what_is_derived_from_anothers_words_is_no_wish(engine: Kernel) -> None:
    page = retain(engine, "Bob's page says Alice prefers tea", origin=Origin.WEB)
    assert stored(engine, sources=(page,)) == (Kind.FACT, None)


def test_a_repeated_key_changes_no_kind(engine: Kernel) -> None:
    first = engine.retain(ALICE, Retain("Alice drinks tea", key="k"))
    again = engine.retain(ALICE, Retain(TEA, key="k"))
    assert (again.outcome, again.inferred) == (Outcome.KNOWN, None)
    assert engine.get(ALICE, Get(first.id)).kind is Kind.FACT
    forget(engine, first.id)
    gone = engine.retain(ALICE, Retain(TEA, key="k"))
    assert (gone.outcome, gone.inferred) == (Outcome.FORGOTTEN, None)


def test_load_keeps_the_kind_of_the_file(engine: Kernel) -> None:
    retain(engine, TEA, kind=Kind.FACT)
    engine.load(BOB, Load(engine.export(ALICE, Export(sealed=False)).content))
    assert [memory.kind for memory in everything(engine, scope=BOB)] == [Kind.FACT]


def test_without_a_distiller_everything_is_a_fact(home: MemoryHome) -> None:
    home.distiller = None
    assert stored(home.engine()) == (Kind.FACT, None)
