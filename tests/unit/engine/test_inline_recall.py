"""at_once: only what is short now, and waits for nobody, may be done on an event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.search import verbs
from scrubjay.model.requests import USER, Destroy, Forget, Recall
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.support.engines import MemoryHome
from tests.unit.engine.asking import ask, fill, said
from tests.unit.engine.scene import ALICE, retain


def _is_short(engine: Kernel) -> bool:
    short = engine.at_once(ALICE)
    if short is not None:
        with short:
            pass
    return short is not None


def _used(home: MemoryHome, policy: Policy | None = None) -> Kernel:
    engine = home.engine(policy)
    retain(engine, "green tea")
    ask(engine, "tea")
    return engine


def test_a_scope_that_was_recalled_is_at_hand(home: MemoryHome) -> None:
    engine = _used(home)
    short = engine.at_once(ALICE)
    assert short is not None
    with short:
        (hit,) = short.recall(ALICE, Recall("tea"), USER)
    assert hit.memory.content == "green tea"


def test_a_scope_that_was_never_recalled_is_not(home: MemoryHome) -> None:
    engine = home.engine()
    assert not _is_short(engine)
    retain(engine, "green tea")
    assert not _is_short(engine)


def test_a_few_changes_are_taken_in_and_many_are_not(home: MemoryHome) -> None:
    engine = _used(home)
    fill(engine, verbs.CHANGES)
    assert _is_short(engine)
    fill(home.engine(), 1, first=99)
    assert not _is_short(engine)


def _leave_work_due(engine: Kernel) -> None:
    engine.forget(ALICE, Forget(ids=(retain(engine, "black tea"),)))


def _leave_work_due_elsewhere(engine: Kernel) -> None:
    _leave_work_due(Kernel(engine._ports))


def _destroy(engine: Kernel) -> None:
    engine.destroy(ALICE, Destroy(confirm=str(ALICE)))


@pytest.mark.parametrize("change", [_leave_work_due, _leave_work_due_elsewhere, _destroy])
def test_what_would_take_long_or_fail_is_left_to_a_thread(
    home: MemoryHome, change: Callable[[Kernel], object]
) -> None:
    engine = _used(home, Policy(rotate_below=0, slice_seconds=0))
    assert _is_short(engine)
    change(engine)
    assert not _is_short(engine)


def test_a_large_scope_is_left_to_a_thread(
    home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = _used(home)
    monkeypatch.setattr(verbs, "ROWS", 0)
    assert not _is_short(engine)


def test_with_an_embedder_that_has_to_be_asked_a_recall_is_left_to_a_thread(
    home: MemoryHome,
) -> None:
    home.embedder = FakeEmbedder(home.clock, costly=True)
    assert not _is_short(_used(home))


def test_who_finds_the_index_in_use_does_not_wait(home: MemoryHome) -> None:
    engine = _used(home)
    taken, over = threading.Event(), threading.Event()

    def use() -> None:
        with engine._indexed(ALICE).lock:
            taken.set()
            assert over.wait(30)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(use)
        assert taken.wait(30)
        assert not _is_short(engine)
        over.set()


def test_who_has_to_make_room_for_others_does_it_on_a_thread(home: MemoryHome) -> None:
    engine = _used(home)
    engine._shelf._budget = 0
    assert not _is_short(engine)
    engine._shelf._budget = 10**9
    assert _is_short(engine)


def test_what_was_held_is_free_again(home: MemoryHome) -> None:
    engine = _used(home)
    assert _is_short(engine)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(said, engine, "tea").result(30) == ["green tea"]
