"""On a store that is far away: failovers, lost answers, few calls, root keys out of reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from threading import Event

import pytest
from msgspec.structs import replace

from scrubjay.adapters.stores.memory import MemorySlots
from scrubjay.engine import Kernel, Keyring
from scrubjay.model.batches import RetainMany
from scrubjay.model.errors import KeyUnavailable, OutcomeUnknown
from scrubjay.model.requests import Browse, Destroy, Forget, Get, Recall, Retain
from scrubjay.model.rows import Due
from scrubjay.ports import SlotPlace
from tests.support.engines import RemoteHome
from tests.support.memory_cluster import Fate, Network
from tests.support.memory_keyring import MemoryWrapper
from tests.support.networks import counting
from tests.unit.engine.scene import ALICE, BOB


def fates(*first: Fate) -> Network:
    """A network that loses what the first commits name, and nothing else."""
    left: Iterator[Fate] = chain(first, repeat(Fate.ARRIVES))
    return lambda name: next(left) if name == "commit" else Fate.ARRIVES


def contents(engine: Kernel) -> list[str]:
    return sorted(memory.content for memory in engine.browse(ALICE, Browse()))


# -- failover ------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True], ids=["beside the rows", "apart from them"])
def test_a_failover_to_an_older_copy_after_a_forget_does_not_lose_the_scope(apart: bool) -> None:
    """Whichever copy takes over, the keys that it needs are there."""
    home = RemoteHome(synchronous=False, apart=apart)
    engine = home.engine()
    engine.retain(ALICE, Retain("tea", id="tea"))
    engine.retain(ALICE, Retain("the secret", id="secret"))
    home.cluster.replicate()
    engine.forget(ALICE, Forget(ids=("secret",)))
    home.cluster.fail_over()
    again = home.engine()
    assert contents(again) == ["tea", "the secret"], "the forget was not durable, and nothing else"
    again.forget(ALICE, Forget(ids=("secret",)))
    home.cluster.replicate()
    again.finish_due(ALICE)
    assert contents(again) == ["tea"]
    assert again.verify(ALICE).sound


@pytest.mark.parametrize("apart", [False, True], ids=["beside the rows", "apart from them"])
def test_old_slots_are_deleted_only_when_the_commit_lasts(apart: bool) -> None:
    home = RemoteHome(synchronous=False, apart=apart)
    engine = home.engine()
    engine.retain(ALICE, Retain("tea", id="tea"))
    receipt = engine.forget(ALICE, Forget(ids=("tea",)))
    keyring, address = home.ports().keyring, receipt.address
    assert {"memory.1", "memory.2"} <= set(keyring.purposes(address))
    assert not receipt.rotated
    engine.finish_due(ALICE)
    assert engine.head(ALICE).due & Due.ROTATE
    home.cluster.replicate()
    engine.finish_due(ALICE)
    assert "memory.1" not in keyring.purposes(address)
    assert engine.head(ALICE).due is Due.NOTHING


def test_rows_and_slots_of_one_commit_are_lost_or_kept_together() -> None:
    home = RemoteHome(synchronous=False)
    engine = home.engine()
    engine.retain(ALICE, Retain("tea", id="tea"))
    home.cluster.replicate()
    before = home.cluster.primary.slots.read(engine._open(ALICE).address)  # type: ignore[union-attr]
    engine.rotate(ALICE)
    home.cluster.fail_over()
    assert home.cluster.primary.slots.read(engine._open(ALICE).address) == before  # type: ignore[union-attr]
    assert contents(home.engine()) == ["tea"]


# -- lost answers --------------------------------------------------------------------------


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.ANSWER_LOST])
def test_a_commit_whose_answer_was_lost_is_looked_up(fate: Fate) -> None:
    """Whatever became of it, the caller is told what holds, and the memory is there once."""
    home = RemoteHome()
    home.engine().open(ALICE)
    home.network = fates(fate, fate)
    engine = home.engine()
    receipt = engine.retain(ALICE, Retain("tea"))
    assert receipt.id in engine.get(ALICE, Get(receipt.id)).id
    assert contents(engine) == ["tea"]


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.ANSWER_LOST])
def test_a_destroy_goes_on_after_a_lost_answer(fate: Fate) -> None:
    home = RemoteHome()
    home.engine().retain(ALICE, Retain("tea"))
    home.network = fates(fate, fate, fate)
    assert home.engine().destroy(ALICE, Destroy(confirm=str(ALICE))).verb == "destroy"


def test_an_outcome_nobody_knows_is_called_so_and_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = RemoteHome()
    home.engine().open(ALICE)
    home.network = fates(Fate.ANSWER_LOST)
    engine = home.engine()
    monkeypatch.setattr(home.cluster, "committed", lambda _: None)
    with pytest.raises(OutcomeUnknown) as raised:
        engine.retain(ALICE, Retain("tea", key="k1"))
    assert raised.value.commit
    assert "nothing" not in raised.value.hint.lower()
    again = engine.retain(ALICE, Retain("tea", key="k1"))
    assert again.outcome == "known"
    assert contents(engine) == ["tea"]


# -- few calls -----------------------------------------------------------------------------


def test_opening_a_scope_reads_its_slots_once() -> None:
    counts = Counter[str]()
    home = RemoteHome()
    home.engine().retain(ALICE, Retain("tea", session="s1"))
    home.network = counting(counts)
    engine = home.engine()
    engine.open(ALICE)
    opened = counts["slots.read"]
    assert opened <= 3, "the installation key, the mark of a destroy, and the keys"
    engine.recall(ALICE, Recall("tea"))
    engine.browse(ALICE, Browse())
    engine.retain(ALICE, Retain("coffee"))
    assert counts["slots.read"] == opened


def test_the_head_is_compared_in_one_call() -> None:
    counts = Counter[str]()
    home = RemoteHome()
    home.engine().retain(ALICE, Retain("tea"))
    home.network = counting(counts)
    engine = home.engine()
    engine.head(ALICE)
    counts.clear()
    engine.head(ALICE)
    assert counts == {"head": 1}


def test_forget_of_fifteen_hundred_rows_takes_few_calls() -> None:
    """It was a call for each row: 1,626."""
    counts = Counter[str]()
    home = RemoteHome()
    items = [Retain(f"memory number {number}", id=f"m-{number}") for number in range(1500)]
    home.engine().retain_many(ALICE, RetainMany(items))
    home.network = counting(counts)
    engine = home.engine()
    engine.open(ALICE)
    counts.clear()
    engine.forget(ALICE, Forget(ids=("m-7",)))
    assert counts.total() < 200, counts.most_common(8)


# -- the root key --------------------------------------------------------------------------


class FarWrapper(MemoryWrapper):
    """A key service: it may be down, and what it unwrapped may be used for a minute."""

    seconds = 60.0

    def __init__(self, home: RemoteHome) -> None:
        super().__init__(home.clock.random)
        self.found()
        self.down = False
        self.asked = 0
        self.at_once: list[str] = []
        self.answers = Event()
        self.answers.set()

    def unwrap(self, place: SlotPlace, slot: bytes) -> bytes:
        self.asked += 1
        self.at_once.append(place.purpose)
        self.answers.wait(10)
        if self.down:
            raise KeyUnavailable("The key service does not answer.")
        return super().unwrap(place, slot)


@pytest.fixture
def far() -> tuple[RemoteHome, FarWrapper, Kernel]:
    home = RemoteHome()
    wrapper = FarWrapper(home)
    ports = home.ports()
    ports = replace(ports, keyring=Keyring(MemorySlots(), wrapper, home.clock))
    engine = Kernel(ports)
    engine.retain(ALICE, Retain("tea"))
    return home, wrapper, engine


def test_a_root_key_out_of_reach_is_no_missing_key(
    far: tuple[RemoteHome, FarWrapper, Kernel],
) -> None:
    home, wrapper, engine = far
    wrapper.down = True
    assert contents(engine) == ["tea"], "what was unwrapped lately is still used"
    home.clock.advance(seconds=61)
    with pytest.raises(KeyUnavailable):
        contents(engine)
    with pytest.raises(KeyUnavailable):
        engine.retain(ALICE, Retain("coffee"))
    wrapper.down = False
    assert contents(engine) == ["tea"]


def test_an_unwrapped_key_is_asked_for_again_only_when_its_time_is_over(
    far: tuple[RemoteHome, FarWrapper, Kernel],
) -> None:
    home, wrapper, engine = far
    before = wrapper.asked
    for _ in range(5):
        contents(engine)
    assert wrapper.asked == before
    home.clock.advance(seconds=61)
    contents(engine)
    assert before < wrapper.asked <= before + 4


def test_many_threads_that_need_a_key_at_once_ask_for_it_once(
    far: tuple[RemoteHome, FarWrapper, Kernel],
) -> None:
    """A key service throttles whoever asks sixteen times for what one answer would tell."""
    home, wrapper, engine = far
    home.clock.advance(seconds=61)
    before = wrapper.asked
    wrapper.answers.clear()
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(contents, engine) for _ in range(16)]
        while wrapper.asked == before:
            pass
        wrapper.answers.set()
        assert [one.result() for one in asked] == [["tea"]] * 16
    assert len(wrapper.at_once) == wrapper.asked
    recent = wrapper.at_once[before:]
    assert len(recent) == len(set(recent)), "no slot twice"


def test_a_rotation_that_the_key_service_throttles_goes_on_where_it_was_cut_off(
    far: tuple[RemoteHome, FarWrapper, Kernel],
) -> None:
    _, wrapper, engine = far
    engine.retain(BOB, Retain("coffee"))
    rewrap, left = wrapper.rewrap, 2

    def throttled(place: SlotPlace, slot: bytes) -> bytes:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyUnavailable("Slow down.")
        return rewrap(place, slot)

    wrapper.rewrap = throttled  # type: ignore[method-assign]
    with pytest.raises(KeyUnavailable):
        engine.rotate_root()
    assert contents(engine) == ["tea"], "half of the slots are under either generation"
    assert list(wrapper.generations()) == [1, 2]
    del wrapper.rewrap
    assert engine.rotate_root().generation == 2, "no third one is begun"
    assert list(wrapper.generations()) == [2]
    assert contents(engine) == ["tea"]


def test_a_scope_that_is_opened_again_within_a_minute_asks_for_no_key(
    far: tuple[RemoteHome, FarWrapper, Kernel],
) -> None:
    home, wrapper, engine = far
    contents(engine)
    before = wrapper.asked
    assert contents(Kernel(engine._ports)) == ["tea"]
    assert wrapper.asked == before
    home.clock.advance(seconds=61)
    assert contents(Kernel(engine._ports)) == ["tea"]
    assert wrapper.asked > before
