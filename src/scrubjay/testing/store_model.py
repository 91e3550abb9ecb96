"""Any history of changes, run on a store and on the memory store, must leave the same behind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from scrubjay.adapters.stores.memory import MemoryStore
from scrubjay.model.errors import Conflict
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import Store, Tx, View

ANY: Final = 1_000
_ids = st.sampled_from([bytes([number]) * 16 for number in range(1, 7)])
_hashes = st.none() | st.sampled_from([b"x", b"y"])
_COLLECTIONS: Final = (Collection.MEMORY, Collection.CONVERSATION, Collection.DOCUMENT)
_collections = st.sampled_from(_COLLECTIONS)
_days = st.integers(1, 5)
_names = st.sampled_from(["one", "two"])
_rows = st.builds(
    Row,
    id=_ids,
    version=st.integers(1, 3),
    epoch=st.integers(1, 3),
    cell=st.binary(max_size=8),
    vector=st.none() | st.binary(max_size=4),
    blob=st.none() | st.just("blob"),
    session=_hashes,
    key=_hashes,
    expiry=st.none() | _days,
)
Change = tuple[str, tuple[Any, ...]]
_changes: st.SearchStrategy[Change] = st.one_of(
    st.tuples(st.just("put"), st.tuples(_collections, _rows)),
    st.tuples(
        st.just("reseal"), st.tuples(_collections, st.lists(st.tuples(_rows, _rows), max_size=2))
    ),
    st.tuples(st.just("erase"), st.tuples(_collections, _ids, _days)),
    st.tuples(st.just("drop"), st.tuples(_collections, st.lists(_ids, max_size=3))),
    st.tuples(st.just("bury"), st.tuples(st.lists(_ids, max_size=2))),
    st.tuples(st.just("link"), st.tuples(_ids, _ids)),
    st.tuples(st.just("set_value"), st.tuples(_names, st.none() | st.binary(max_size=4))),
    st.tuples(st.just("append_audit"), st.tuples(st.binary(max_size=4), st.binary(max_size=4))),
    st.tuples(st.just("raise_epoch"), st.tuples(_collections)),
    st.tuples(st.just("destroy"), st.tuples()),
)
_numbers = count()


_STEPS: Final = 12


def check_model(open_store: Callable[[], Store]) -> None:
    """Run many histories, each on a store of its own; a quarter as many as of simpler examples."""

    class Model(StoreModel):
        def __init__(self) -> None:
            super().__init__(open_store())

    most = (settings.default or settings()).max_examples
    search = settings(stateful_step_count=_STEPS, max_examples=max(1, most // 4))
    run_state_machine_as_test(Model, settings=search)


class Undone(Exception):
    """Exception that rolls a transaction back."""


class StoreModel(RuleBasedStateMachine):
    """The same transactions on both stores, compared after each."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.address = f"model-{next(_numbers)}"
        self.store = store
        self.model: Store = MemoryStore()
        for tested in (self.store, self.model):
            tested.create(self.address)

    def teardown(self) -> None:
        """Every history leaves a scope in order."""
        assert self.store.check(self.address) == []
        self.store.remove(self.address)
        self.store.close()

    @rule(changes=st.lists(_changes, min_size=1, max_size=5), kept=st.booleans())
    def transact(self, changes: list[Change], kept: bool) -> None:
        """Some changes in one transaction, which is kept or not."""
        answers = [_run(tested, self.address, changes, kept) for tested in self._both()]
        assert answers[0] == answers[1]

    @rule()
    def settle(self) -> None:
        """Settle, which changes nothing that can be read."""
        self.store.settle(self.address)

    @invariant()
    def both_hold_the_same(self) -> None:
        """Whatever is asked, both answer alike."""
        for ask in _QUESTIONS:
            answers = []
            for tested in self._both():
                with tested.read(self.address) as view:
                    answers.append(ask(view))
            assert answers[0] == answers[1]

    def _both(self) -> tuple[Store, Store]:
        return self.store, self.model


def _run(store: Store, address: str, changes: list[Change], kept: bool) -> list[object]:
    answers: list[object] = []

    def work(tx: Tx) -> None:
        answers.extend(_apply(tx, *change) for change in changes)
        answers.append(tx.head())
        if not kept:
            raise Undone

    try:
        store.write(address, work)
    except Undone:
        answers.append("undone")
    return answers


def _apply(tx: Tx, verb: str, arguments: tuple[Any, ...]) -> object:
    try:
        match verb:
            case "erase":
                collection, row_id, day = arguments
                return tx.erase(collection, row_id, drop_day=day)
            case "raise_epoch":
                (collection,) = arguments
                position = tx.head().at(collection)
                moved = replace(position, epoch=position.epoch + 1)
                tx.set_head(tx.head().moved(collection, moved))
            case "destroy":
                tx.truncate()
                tx.set_head(replace(tx.head(), destroyed=True))
            case _:
                return getattr(tx, verb)(*arguments)
    except Conflict:
        return "conflict"
    return None


def _about(collection: Collection) -> tuple[Callable[[View], object], ...]:
    return (
        lambda view: view.changes(collection, 0, ANY),
        lambda view: view.changes(collection, 3, 2),
        lambda view: view.latest(collection, 5, 2),
        lambda view: view.latest(collection, ANY, ANY),
        lambda view: view.overdue(collection, 3, 4),
        lambda view: view.stale(collection, 1, 3),
        lambda view: [view.row_by_key(collection, key) for key in (b"x", b"y")],
        lambda view: [view.rows_of_session(collection, key) for key in (b"x", b"y")],
        lambda view: [view.row(collection, bytes([number]) * 16) for number in range(8)],
        lambda view: dict(view.rows(collection, [bytes([number]) * 16 for number in range(8)])),
    )


_QUESTIONS: tuple[Callable[[View], object], ...] = (
    lambda view: view.head(),
    lambda view: sorted(view.tombstones()),
    lambda view: [sorted(view.derived(bytes([number]) * 16)) for number in range(8)],
    lambda view: view.buried([bytes([number]) * 16 for number in range(8)]),
    lambda view: [view.value(name) for name in ("one", "two")],
    lambda view: view.audit(1, 5),
    *(question for collection in _COLLECTIONS for question in _about(collection)),
)
