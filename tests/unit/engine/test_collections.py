"""Collections of a scope: one that was never used has no key, and gets one with its first row."""

from __future__ import annotations

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import KeyMissing
from scrubjay.model.requests import Destroy
from scrubjay.model.rows import Collection
from scrubjay.ports import Failpoint, Tx
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.scene import ALICE, address, retain, slots

LATER = (Collection.CONVERSATION, Collection.DOCUMENT)


@pytest.fixture
def home() -> MemoryHome:
    """A scope as it is made, with one memory."""
    home = MemoryHome()
    retain(home.engine(), "tea")
    return home


def write(engine: Kernel, collection: Collection, body: bytes = b"{}") -> bytes:
    """Write one row of a collection; its id."""
    opened = engine._open(ALICE)
    row_id = opened.row_id("one")

    def store(tx: Tx) -> None:
        opened.put_body(tx, collection, row_id, body)
        opened.trail.record(tx, "test", "user")

    opened.write(store)
    return row_id


def body_of(engine: Kernel, collection: Collection) -> bytes:
    """The body of that row."""
    opened = engine._open(ALICE)
    row = opened.read(lambda view: view.row(collection, opened.row_id("one")))
    assert row is not None
    return opened.open_body(collection, row)


@pytest.mark.parametrize("collection", LATER)
def test_a_collection_gets_its_key_with_its_first_row(
    home: MemoryHome, collection: Collection
) -> None:
    assert slots(home) == ["memory.1", "session.1", "turn.1"]
    write(home.engine(), collection)
    assert f"{collection}.1" in slots(home)
    assert body_of(home.engine(), collection) == b"{}"


@pytest.mark.parametrize("collection", LATER)
def test_a_crash_after_the_first_key_leaves_a_key_that_the_next_write_uses(
    home: MemoryHome, collection: Collection
) -> None:
    home.crashes.at(Failpoint.COLLECTION_KEY_ADDED)
    with pytest.raises(SimulatedCrash):
        write(home.engine(), collection)
    kept = home.keyring.get(address(home), f"{collection}.1")
    engine = home.engine()
    assert engine.verify(ALICE).sound
    write(engine, collection)
    assert home.keyring.get(address(home), f"{collection}.1") == kept
    assert body_of(home.engine(), collection) == b"{}"


@pytest.mark.parametrize("collection", LATER)
def test_a_collection_whose_key_is_gone_is_not_given_another(
    home: MemoryHome, collection: Collection
) -> None:
    write(home.engine(), collection)
    home.keyring.delete(address(home), f"{collection}.1")
    with pytest.raises(KeyMissing):
        write(home.engine(), collection, b"[]")


@pytest.mark.parametrize("collection", LATER)
def test_a_rotation_before_the_first_row_makes_no_key_and_one_after_it_renews_it(
    home: MemoryHome, collection: Collection
) -> None:
    engine = home.engine()
    engine.rotate(ALICE)
    assert slots(home) == ["memory.2", "session.2", "turn.2"]
    write(engine, collection)
    engine.rotate(ALICE)
    assert slots(home) == sorted([f"{collection}.2", "memory.3", "session.3", "turn.3"])
    assert body_of(home.engine(), collection) == b"{}"


@pytest.mark.parametrize("collection", LATER)
def test_destroy_takes_the_keys_of_every_collection(
    home: MemoryHome, collection: Collection
) -> None:
    engine = home.engine()
    write(engine, collection)
    place = address(home)
    engine.destroy(ALICE, Destroy(confirm=str(ALICE)))
    assert home.keyring.purposes(place) == []
