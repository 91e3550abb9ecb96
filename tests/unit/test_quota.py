"""Quotas: what a scope and a tenant may hold, whoever writes, and nothing is lost beyond it."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import httpx2
import pytest

from scrubjay import connect
from scrubjay.access import Grant, everything
from scrubjay.bootstrap import make_policy
from scrubjay.engine import Kernel, Policy
from scrubjay.engine.scope.quota import allowed
from scrubjay.model.batches import RetainMany
from scrubjay.model.documents import Put
from scrubjay.model.errors import LimitReached
from scrubjay.model.requests import Browse, Forget, Purge, Recall
from scrubjay.model.scope import Quota, Scope
from scrubjay.settings import read
from tests.serving import serving
from tests.support.engines import SqliteHome
from tests.unit.engine.scene import ALICE, BOB, contents, retain, supersede

LONG = "word " * 6_000


@pytest.fixture
def home(tmp_path: Path) -> SqliteHome:
    return SqliteHome(tmp_path / "home")


def bounded(home: SqliteHome, **quota: int) -> Kernel:
    return home.engine(policy=Policy(quota=Quota(**quota)))


@pytest.fixture
def engine(home: SqliteHome) -> Iterator[Kernel]:
    made = bounded(home, memories=5)
    yield made
    made.close()


def fill(engine: Kernel) -> int:
    """Retain long memories until one is refused; how many there are then."""
    for number in count():
        try:
            retain(engine, f"{number} {LONG}")
        except LimitReached:
            return number
    raise AssertionError


def test_a_memory_beyond_the_quota_is_refused_and_nothing_is_lost(engine: Kernel) -> None:
    kept = [retain(engine, f"memory {number}") for number in range(5)]
    for _ in range(3):
        with pytest.raises(LimitReached, match="quota of 5 memories") as refused:
            retain(engine, "one too many")
        assert "Forget" in refused.value.hint
    assert len(contents(engine)) == 5
    assert engine.recall(ALICE, Recall("memory 3")).hits
    engine.forget(ALICE, Forget(ids=(kept[0],)))
    retain(engine, "now there is room")
    with pytest.raises(LimitReached):
        retain(engine, "and none again")
    assert engine.verify(ALICE).problems == ()


def test_a_repeat_of_what_is_known_needs_no_room(engine: Kernel) -> None:
    for number in range(5):
        retain(engine, f"memory {number}", key=f"k{number}")
    assert retain(engine, "memory 3", key="k3")


def test_a_correction_counts_until_the_old_value_is_purged(engine: Kernel) -> None:
    first, *_ = [retain(engine, f"memory {number}") for number in range(4)]
    new = supersede(engine, first, "corrected")
    with pytest.raises(LimitReached):
        supersede(engine, new, "corrected again")
    engine.purge(ALICE, Purge(superseded_days=0))
    assert supersede(engine, new, "corrected again")


def test_a_batch_that_would_go_beyond_is_refused_and_what_was_there_stays(engine: Kernel) -> None:
    retain(engine, "there before")
    with pytest.raises(LimitReached):
        engine.retain_many(ALICE, RetainMany([f"memory {number}" for number in range(6)]))
    assert "there before" in contents(engine)
    assert len(contents(engine)) <= 5
    assert engine.verify(ALICE).problems == ()


def test_writers_at_once_do_not_get_past_the_quota(home: SqliteHome) -> None:
    engine = bounded(home, memories=40)

    def write(number: int) -> bool:
        try:
            retain(engine, f"memory {number}")
        except LimitReached:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = sum(pool.map(write, range(100)))
    assert done == len(contents(engine, limit=1_000)) == 40
    engine.close()


def test_what_another_process_wrote_is_counted(home: SqliteHome) -> None:
    engine, other = bounded(home, memories=10), home.engine()
    for number in range(5):
        retain(engine, f"a {number}")
        retain(other, f"b {number}")
    with pytest.raises(LimitReached):
        retain(engine, "more")
    other.close()
    engine.close()


def test_a_scope_does_not_outgrow_its_megabytes(home: SqliteHome) -> None:
    engine = bounded(home, megabytes=2)
    assert 20 < fill(engine) < 100
    store, blobs = engine._ports.store, engine._ports.blobs
    address = engine._open(ALICE).address
    assert store.size(address) + blobs.size(address) < 3 << 20
    retain(engine, "another scope has a quota of its own", scope=BOB)
    engine.close()


def test_documents_count_although_their_bodies_are_blobs(home: SqliteHome) -> None:
    engine = bounded(home, megabytes=2)
    for number in range(7):
        engine.put(ALICE, Put(f"d{number}", LONG * 8))
    with pytest.raises(LimitReached, match="2 megabytes"):
        [engine.put(ALICE, Put(f"e{number}", LONG * 8)) for number in range(10)]
    engine.close()


def test_what_is_full_can_be_read_and_has_room_again_after_forgetting(home: SqliteHome) -> None:
    engine = bounded(home, megabytes=1)
    assert fill(engine)
    assert engine.recall(ALICE, Recall("word")).hits
    ids = [one.id for one in engine.browse(ALICE, Browse(limit=1_000)).data]
    engine.forget(ALICE, Forget(ids=tuple(ids[len(ids) // 2 :])))
    engine.finish_due(ALICE)
    retain(engine, "there is room again")
    assert len(contents(engine, limit=1_000)) == len(ids) // 2 + 1
    engine.close()


def test_a_tenant_makes_no_more_scopes_than_its_quota(home: SqliteHome) -> None:
    engine = bounded(home, scopes=3)
    for number in range(3):
        retain(engine, "one", scope=Scope("acme", f"u{number}"))
    with pytest.raises(LimitReached, match="quota of 3 scopes"):
        retain(engine, "one", scope=Scope("acme", "u3"))
    assert len(engine.scopes()) == 3
    retain(engine, "two", scope=Scope("acme", "u1"))
    retain(engine, "one", scope=Scope("other", "u3"))
    engine.close()


def test_the_stricter_of_two_quotas_holds(engine: Kernel) -> None:
    with allowed(Quota(memories=2)), allowed(Quota(memories=3, scopes=1)):
        retain(engine, "one")
        retain(engine, "two")
        with pytest.raises(LimitReached, match="2 memories"):
            retain(engine, "three")
    retain(engine, "three")


def test_a_key_has_a_quota_of_its_own(home: SqliteHome) -> None:
    engine = home.engine()
    with serving(engine, home.clock) as running:
        small = running.key("acme/*", quota=Quota(memories=2, scopes=1))
        with connect(running.url, small, scope="acme/alice", create=True) as alice:
            alice.retain("one")
            alice.retain("two")
            with pytest.raises(LimitReached):
                alice.retain("three")
            assert alice.count() == 2
        with pytest.raises(LimitReached):
            connect(running.url, small, scope="acme/bob", create=True).retain("one")
        with connect(running.url, running.key("acme/*"), scope="acme/alice") as large:
            large.retain("three")
    engine.close()


def test_a_key_makes_no_key_with_a_larger_quota(home: SqliteHome) -> None:
    engine = home.engine()
    with serving(engine, home.clock) as running:
        admin = running.key("acme/*", grants=tuple(Grant), quota=Quota(memories=10))
        asked = {"name": "n", "scopes": ["acme/*"], "quota": {"memories": 99, "megabytes": 5}}
        headers = {"Authorization": f"Bearer {admin}"}
        answer = httpx2.post(f"{running.url}/v1/keys", json=asked, headers=headers)
        assert answer.status_code == 201, answer.text
        made = answer.json()["key"]["id"]
        running.keys.refresh()
        (kept,) = [one for one in running.keys.all() if one.id == made]
        assert kept.quota == Quota(memories=10, megabytes=5)
    engine.close()


def test_the_settings_name_quotas(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("scope_memories = 7\ntenant_scopes = 2\n")
    found = read({"SCRUBJAY_SCOPE_MEGABYTES": "3"}, home=tmp_path)
    assert make_policy(found).quota == Quota(memories=7, megabytes=3, scopes=2)
    assert everything().quota == Quota()


def test_scopes_that_are_not_in_use_cost_next_to_nothing(home: SqliteHome, more: bool) -> None:
    """An engine keeps the last 512 open; of the others it remembers no more than a name."""
    engine = home.engine()
    first, last = (600, 1_800) if more else (530, 580)
    sizes = []
    tracemalloc.start()
    try:
        for number in range(last + 1):
            retain(engine, "tea", scope=Scope("acme", f"u{number}"))
            if number in {first, last}:
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert (sizes[1] - sizes[0]) / (last - first) < 4_096
    engine.close()
