"""Crashes: a process may die at any failpoint of any verb, and the next one finds a sound scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.search import manifest
from scrubjay.model.errors import Destroyed, NotFound, StoreError
from scrubjay.model.requests import Amend, Destroy, FreezeRequest, Load, Purge, Recall, Restore
from scrubjay.model.rows import Collection, Due
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    address,
    browse,
    everything,
    forget,
    head,
    retain,
    rows,
    slots,
    supersede,
)

EAGER = Policy(segment_rows=0)
"""Writes a segment at every recall, so that all verbs meet some."""
Snapshot = dict[str, tuple[int, str]]


@dataclass
class Scene:
    """A home with a bit of everything, on the eve of a verb."""

    home: MemoryHome
    engine: Kernel
    tea: str
    long: str
    gone: str
    export: bytes
    backup: bytes


def prepare() -> Scene:
    home = MemoryHome()
    engine = home.engine(EAGER)
    tea = retain(engine, "tea")
    engine.rotate(ALICE)
    supersede(engine, retain(engine, "water"), "wine")
    gone = retain(engine, "gone", key="gone")
    retain(engine, "derived", sources=(gone,))
    long = retain(engine, LONG)
    retain(engine, "brief", expires_at=home.clock.now() + timedelta(hours=1))
    retain(engine, LONG, scope=BOB)
    retain(engine, "bob's", scope=BOB)
    export = engine.export(BOB).content
    backup, _ = engine.backup(ALICE)
    search(engine)
    home.clock.advance(days=31)
    retain(engine, "in no segment")
    home.crashes.reached.clear()
    return Scene(home, engine, tea, long, gone, export, backup)


def search(engine: Kernel) -> list[str]:
    """Everything a question finds, which writes segments."""
    return [hit.memory.content for hit in engine.recall(ALICE, Recall(query="tea", limit=100))]


def prepare_lost() -> Scene:
    scene = prepare()
    place = address(scene.home)
    scene.home.store.remove(place)
    scene.home.blobs.remove(place)
    scene.engine = scene.home.engine()
    scene.home.crashes.reached.clear()
    return scene


Verb = Callable[[Scene, Kernel], object]

VERBS: dict[str, Verb] = {
    "retain": lambda _, engine: retain(engine, "new", key="new"),
    "retain a long one": lambda _, engine: retain(engine, LONG[:-2] + "new", key="new"),
    "supersede": lambda scene, engine: supersede(engine, scene.tea, "coffee", key="new"),
    "supersede a long one": lambda scene, engine: supersede(engine, scene.long, LONG, key="new"),
    "pin a long one": lambda scene, engine: engine.amend(ALICE, Amend(scene.long, pinned=True)),
    "recall": lambda _, engine: search(engine),
    "archive": lambda scene, engine: engine.amend(ALICE, Amend(scene.tea, archived=True)),
    "reindex": lambda _, engine: engine.reindex(ALICE),
    "expire": lambda scene, engine: engine.amend(ALICE, Amend(scene.tea, expires_at=None)),
    "freeze": lambda _, engine: engine.freeze(ALICE),
    "forget": lambda scene, engine: forget(engine, scene.gone),
    "forget a long one": lambda scene, engine: forget(engine, scene.long),
    "forget unseen": lambda _, engine: forget(engine, "unseen", unseen=True),
    "purge": lambda _, engine: engine.purge(ALICE),
    "rotate": lambda _, engine: engine.rotate(ALICE),
    "rotate the root": lambda _, engine: engine.rotate_root(),
    "load": lambda scene, engine: engine.load(ALICE, Load(scene.export)),
    "restore": lambda scene, engine: engine.restore(ALICE, Restore(scene.backup)),
    "export": lambda _, engine: engine.export(ALICE),
    "backup": lambda _, engine: engine.backup(ALICE),
    "restore a lost file": lambda scene, engine: engine.restore(ALICE, Restore(scene.backup)),
}

STORE = {Failpoint.STORE_BEFORE_COMMIT, Failpoint.STORE_AFTER_COMMIT}
BLOB = {Failpoint.BLOB_WRITTEN}
SEGMENT = {Failpoint.SEGMENT_BUILT, Failpoint.SEGMENT_WRITTEN, Failpoint.SEGMENT_PUBLISHED}
RESEALING = (
    SEGMENT
    | {Failpoint.ROTATE_BATCH_SEALED, Failpoint.ROTATE_RESEALED}
    | {
        Failpoint.ROTATE_SLOT_ADDED,
        Failpoint.ROTATE_SLOT_DELETED,
    }
)
FORGETTING = STORE | RESEALING | {Failpoint.FORGET_COMMITTED, Failpoint.FORGET_PUSHED}
RESTORING = STORE | {Failpoint.RESTORE_KEYS_ADDED, Failpoint.RESTORE_COMMITTED}

REACHED: dict[str, set[Failpoint]] = {
    "retain": STORE | {Failpoint.RETAIN_COMMITTED},
    "retain a long one": STORE | BLOB | {Failpoint.RETAIN_COMMITTED},
    "supersede": STORE | {Failpoint.SUPERSEDE_COMMITTED},
    "supersede a long one": STORE | BLOB | {Failpoint.SUPERSEDE_COMMITTED},
    "pin a long one": STORE | BLOB,
    "recall": STORE | SEGMENT | {Failpoint.COUNTERS_WRITTEN},
    "archive": STORE,
    "reindex": STORE | SEGMENT,
    "expire": STORE,
    "freeze": STORE,
    "forget": FORGETTING | BLOB,
    "forget a long one": FORGETTING,
    "forget unseen": STORE | {Failpoint.FORGET_COMMITTED, Failpoint.FORGET_PUSHED},
    "purge": STORE | SEGMENT | {Failpoint.PURGE_COMMITTED, Failpoint.COUNTERS_WRITTEN},
    "rotate": STORE | BLOB | RESEALING | {Failpoint.ROTATE_EPOCH_RAISED},
    "rotate the root": {Failpoint.ROOT_BEGUN, Failpoint.ROOT_REWRAPPED},
    "load": STORE | BLOB | SEGMENT | {Failpoint.LOAD_COMMITTED},
    "restore": RESTORING | {Failpoint.COUNTERS_WRITTEN},
    "export": STORE,
    "backup": STORE | {Failpoint.COUNTERS_WRITTEN},
    "restore a lost file": RESTORING
    | BLOB
    | {Failpoint.ROTATE_SLOT_ADDED, Failpoint.CREATE_KEYS_ADDED, Failpoint.CREATE_STORED},
}

ELSEWHERE = {
    Failpoint.HOLD_COMMITTED,  # test_user_keys.py
    Failpoint.INBOX_POSTED,
    Failpoint.INBOX_TAKEN,
    Failpoint.DESTROY_MARKED,  # test_destroy.py
    Failpoint.DESTROY_KEYS_DELETED,
    Failpoint.DESTROY_EMPTIED,
    Failpoint.DESTROY_UNLINKED,
    Failpoint.EXTRACT_ANSWERED,  # test_extract.py
    Failpoint.JOB_LEASED,  # test_jobs.py
    Failpoint.JOB_ANSWERED,
    Failpoint.COMPACTION_NOTED,  # test_compaction.py
    Failpoint.COMPACTION_APPLIED,
    Failpoint.STORE_MIGRATING,  # the contract of stores
    Failpoint.COLLECTION_KEY_ADDED,  # test_collections.py
}
STEPWISE = {"purge"}
"""Verbs of several transactions: each memory changes at once, but not all of them together."""


def set_up(name: str) -> Scene:
    return prepare_lost() if name == "restore a lost file" else prepare()


def snapshot(engine: Kernel) -> Snapshot:
    """Which memories there are, in which version; nothing if there is no file."""
    try:
        return {one.id: (one.version, one.content) for one in everything(engine)}
    except StoreError:
        return {}


def says(state: Snapshot) -> Counter[str]:
    """What the memories say, whatever their ids."""
    return Counter(content for _, content in state.values())


def test_every_failpoint_is_reached_by_some_verb() -> None:
    assert set().union(*REACHED.values()) | ELSEWHERE == set(Failpoint)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_reaches_the_failpoints_it_should(name: str) -> None:
    scene = set_up(name)
    VERBS[name](scene, scene.engine)
    assert set(scene.home.crashes.reached) == REACHED[name]


CRASHES = [(name, failpoint) for name in VERBS for failpoint in sorted(REACHED[name])]


@pytest.mark.parametrize(("name", "failpoint"), CRASHES)
def test_a_crash_leaves_a_sound_scope_and_the_verb_can_be_repeated(
    name: str, failpoint: Failpoint
) -> None:
    scene = set_up(name)
    before = snapshot(scene.engine)
    VERBS[name](scene, scene.engine)
    visits = scene.home.crashes.reached[failpoint]
    after = snapshot(scene.engine)
    for visit in range(1, visits + 1):
        scene = crash(name, failpoint, visit)
        check_nothing_in_between(scene, before, after, stepwise=name in STEPWISE)
        if snapshot(scene.home.engine()):  # a lost file that is still empty does not open
            check_finished_by_later_verbs(scene)
        VERBS[name](scene, scene.home.engine())
        assert says(snapshot(scene.home.engine())) == says(after)
        check_sound(scene)


def crash(name: str, failpoint: Failpoint, visit: int) -> Scene:
    """The scene after the process died in the midst of the verb."""
    scene = set_up(name)
    snapshot(scene.engine)
    scene.home.crashes.at(failpoint, visit=visit)
    with pytest.raises(SimulatedCrash):
        VERBS[name](scene, scene.engine)
    return scene


def check_nothing_in_between(
    scene: Scene, before: Snapshot, after: Snapshot, *, stepwise: bool
) -> None:
    """The change is there whole or not at all, before anything was repeated or finished."""
    found = snapshot(scene.home.engine())
    if not stepwise:
        assert found in (before, after)
    for public_id in found.keys() | before.keys() | after.keys():
        assert found.get(public_id) in (before.get(public_id), after.get(public_id))


def check_finished_by_later_verbs(scene: Scene) -> None:
    """What the dead process left due is done, and then nothing is amiss."""
    home, engine = scene.home, scene.home.engine()
    for _ in range(9):
        browse(engine)
    assert head(home).due is Due.NOTHING
    assert engine.verify(ALICE).problems == ()
    assert {row.epoch for row in rows(home) if not row.erased} <= {head(home).memory.epoch}
    assert oldest_slots(home) == {one: head(home).at(one).epoch for one in oldest_slots(home)}
    assert {*oldest_slots(home)} >= {one for one in Collection if head(home).at(one).seq}
    with home.store.read(address(home)) as view:
        assert set(view.tombstones()) <= home.store.catalog.tombstones(address(home))


def listed(engine: Kernel) -> frozenset[str]:
    """The blobs of the segments."""
    opened = engine._open(ALICE)
    return opened.read(lambda view: manifest.listed(opened, view))


def oldest_slots(home: MemoryHome) -> dict[Collection, int]:
    """The oldest key of each collection that has one; if newer than the head's, it is unused."""
    found: dict[Collection, int] = {}
    for name, epoch in sorted(one.split(".") for one in slots(home)):
        found[Collection(name)] = min(int(epoch), found.get(Collection(name), int(epoch)))
    return found


def check_sound(scene: Scene) -> None:
    """After the verb was repeated nothing is amiss, and nothing is left over."""
    check_finished_by_later_verbs(scene)
    home, engine = scene.home, scene.home.engine()
    assert slots(home) == [f"{one}.{oldest_slots(home)[one]}" for one in sorted(oldest_slots(home))]
    engine.freeze(ALICE, FreezeRequest(type(head(home).frozen).NONE))
    home.clock.advance(days=2)  # as long as a blob may be pending
    engine.purge(ALICE, Purge(superseded_days=36_500))
    used = {row.blob for row in rows(home) if row.blob} | listed(engine)
    assert set(home.blobs.names(address(home))) == used


FORGETS = [("forget", failpoint) for failpoint in sorted(REACHED["forget"])]


@pytest.mark.parametrize(("name", "failpoint"), FORGETS)
def test_a_forget_that_was_committed_stays_so_whatever_comes_after(
    name: str, failpoint: Failpoint
) -> None:
    """After a crash behind the commit nothing brings the memory back, not even a backup."""
    scene = crash(name, failpoint, 1)
    engine = scene.home.engine()
    gone = scene.gone not in snapshot(engine)
    engine.restore(ALICE, Restore(scene.backup))
    retain(engine, "gone", key="gone")
    assert (scene.gone not in snapshot(engine)) == gone
    assert gone or failpoint in {Failpoint.STORE_BEFORE_COMMIT, Failpoint.ROTATE_SLOT_ADDED}


@pytest.mark.parametrize("name", ["forget", "forget a long one"])
def test_the_receipt_of_a_forget_that_was_cut_off_is_had_from_the_next(name: str) -> None:
    """What the first attempt erased, the second counts as erased already."""
    scene = crash(name, Failpoint.FORGET_COMMITTED, 1)
    receipt = VERBS[name](scene, scene.home.engine())
    assert receipt.already == 1  # type: ignore[attr-defined]
    assert receipt.rotated  # type: ignore[attr-defined]


def test_a_destroy_that_died_before_its_mark_was_durable_has_not_begun() -> None:
    scene = prepare()
    before, kept = snapshot(scene.engine), slots(scene.home)
    scene.home.crashes.at(Failpoint.STORE_BEFORE_COMMIT)
    with pytest.raises(SimulatedCrash):
        scene.engine.destroy(ALICE, Destroy(confirm="local/alice"))
    assert snapshot(scene.home.engine()) == before
    assert slots(scene.home) == kept


DESTROYING = {
    *((one, 1) for one in ELSEWHERE if one.value.startswith("destroy.")),
    (Failpoint.STORE_AFTER_COMMIT, 1),
    (Failpoint.STORE_BEFORE_COMMIT, 2),
    (Failpoint.STORE_AFTER_COMMIT, 2),
}


@pytest.mark.parametrize(("failpoint", "visit"), sorted(DESTROYING))
def test_a_destroy_once_begun_leaves_nothing(failpoint: Failpoint, visit: int) -> None:
    scene = prepare()
    home, place = scene.home, address(scene.home)
    home.crashes.at(failpoint, visit=visit)
    with pytest.raises(SimulatedCrash):
        scene.engine.destroy(ALICE, Destroy(confirm="local/alice"))
    with pytest.raises(Destroyed):
        home.engine().open(ALICE)
    assert home.keyring.purposes(place) == []
    assert home.blobs.names(place) == []
    assert not home.store.exists(place)
    assert home.engine().receipts(ALICE)[-1].erased == 8
    assert home.engine().verify(BOB).sound


@pytest.mark.parametrize("failpoint", [Failpoint.CREATE_KEYS_ADDED, Failpoint.CREATE_STORED])
def test_a_scope_half_made_is_not_there_and_is_made_by_the_next(failpoint: Failpoint) -> None:
    home = MemoryHome()
    home.crashes.at(failpoint)
    with pytest.raises(SimulatedCrash):
        retain(home.engine(), "tea")
    engine = home.engine()
    assert engine.scopes() == ()
    with pytest.raises(NotFound):
        engine.open(ALICE, create=False)
    retain(engine, "tea")
    assert engine.verify(ALICE).sound
