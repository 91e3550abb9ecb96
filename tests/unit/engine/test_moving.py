"""A scope between databases: a move is killed, lost or met by others at any of its calls.

Three databases in memory behind a network, and an engine per node, some of which are told nothing.
Whatever was acknowledged is there once, for every node; what was forgotten is not; a scope and its
keys are in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count

import pytest
from msgspec.structs import replace

from scrubjay.adapters.stores.memory import MemoryStore
from scrubjay.adapters.stores.shards import ShardedStore
from scrubjay.engine import Kernel, Keyring
from scrubjay.engine.scope.keyring import INSTALLATION
from scrubjay.engine.transfer.move import arrive, move, move_shard, sharded
from scrubjay.model.errors import Busy, Conflict, Destroyed, NotFound, ScrubjayError, StoreError
from scrubjay.model.requests import Browse, Destroy, Forget, Retain
from scrubjay.model.rows import Collection, Due, Head
from scrubjay.model.scope import Scope
from scrubjay.ports import Store
from scrubjay.testing.store_rows import a_row
from tests.support.engines import MemoryHome
from tests.support.memory_cluster import Fate, MemoryCluster, Network, still

ALICE = Scope("local", "alice")
NAMES = ("home", "second", "third")
BUSY = (Busy, StoreError)


class Killed(BaseException):
    """The process died at a call."""


def engine_on(store: Store, home: MemoryHome) -> Kernel:
    assert store.slots is not None
    keyring = Keyring(store.slots, home.keyring.wrapper, home.clock)
    return Kernel(replace(home.ports(), store=store, keyring=keyring))


class Moving:
    """A scope that is about to move, and nodes of which none is told so.

    With `back` it comes from where it moves to, and `stale` has not heard from it since then.
    """

    def __init__(self, *, back: bool) -> None:
        self._home = MemoryHome()
        self.databases = {name: MemoryCluster() for name in NAMES}
        self.stale = self.node()
        for number in range(2):
            self.stale.retain(ALICE, Retain(content=f"note {number}", id=f"note-{number}"))
        self.address = self.stale._begin(ALICE, create=False).address
        self.wanted = {"note 1"}
        """What is to be there, once `note 0` was forgotten."""
        self.source = self.place()
        self.target, self.elsewhere = (name for name in NAMES if name != self.source)
        if back:
            self.node().move_scope(ALICE, self.target)
            self.source, self.target = self.target, self.source
        self.here = self.node()
        self.read(self.here)

    def node(self, network: Network = still) -> Kernel:
        """An engine of its own, that knows no place yet."""
        home, *others = (one.node(network) for one in self.databases.values())
        more = dict(zip(NAMES[1:], others, strict=True))
        at_home = frozenset({INSTALLATION.address})
        return engine_on(ShardedStore(home, more, arrive=arrive, at_home=at_home), self._home)

    def place(self) -> str:
        """Where the scope is, for one who asks for the first time."""
        return sharded(self.node()._ports.store).find(self.address)

    def slots(self, name: str) -> Mapping[str, bytes]:
        slots = self.databases[name].primary.slots
        assert slots is not None
        return slots.read(self.address)

    def read(self, node: Kernel) -> list[str]:
        return sorted(one.content for one in node.browse(ALICE, Browse(limit=100)))

    def write(self, node: Kernel, content: str) -> None:
        """Write, and want it if that was acknowledged."""
        node.retain(ALICE, Retain(content=content))
        self.wanted.add(content)

    def locked(self) -> bool:
        """Whether a transaction is under way, which this thread cannot wait for."""
        return any(one.primary._writer is not None for one in self.databases.values())

    def write_and_forget(self) -> None:
        """The first to write is the node that never noticed the move before."""
        for name in ("stale", "here"):
            self.write(getattr(self, name), f"by {name}")
        self.stale.forget(ALICE, Forget(ids=("note-0",)))

    def move(self, to: str) -> None:
        self.node().move_scope(ALICE, to)

    def check(self) -> None:
        """Every node sees what is wanted, and one database has it with its keys."""
        for node in (self.stale, self.here, self.node()):
            assert self.read(node) == sorted(self.wanted)
            assert node.verify(ALICE).problems == ()
        place = self.place()
        for name in set(NAMES) - {place}:
            assert not self.slots(name), "keys in two places"
            if (left := self.databases[name].primary).exists(self.address):
                head = left.head(self.address)
                assert Due.MOVED in head.due or head == Head()

    def check_destroyed(self) -> None:
        for node in (self.stale, self.here, self.node()):
            with pytest.raises(Destroyed):
                self.read(node)
        for name, database in self.databases.items():
            assert not self.slots(name)
            assert not database.primary.exists(self.address)


def kill(_: Moving) -> Fate:
    raise Killed


@pytest.fixture
def stride(more: bool) -> int:
    """Every call with --more, every fourth without."""
    return 1 if more else 4


def every_call(
    back: bool, then: Callable[[Moving], Fate | None], *, stride: int = 1, free: bool = False
) -> Iterator[tuple[Moving, BaseException | None]]:
    """For every so many calls of a move: how it ended when something happened there.

    `free` are the calls at which it holds no lock, so that others need not wait for it.
    """
    for number in count(step=stride):
        moving, calls, happened = Moving(back=back), count(), list[str]()
        ended: BaseException | None = None

        def network(
            name: str, moving: Moving = moving, calls: Iterator[int] = calls, number: int = number
        ) -> Fate:
            if (free and moving.locked()) or next(calls) != number:
                return Fate.ARRIVES
            happened.append(name)  # noqa: B023
            return then(moving) or Fate.ARRIVES

        try:
            moving.node(network).move_scope(ALICE, moving.target)
        except (Killed, ScrubjayError) as error:
            ended = error
        if not happened:
            assert ended is None
            return
        yield moving, ended


there_and_back = pytest.mark.parametrize("back", [True, False], ids=["back", "there"])


@there_and_back
@pytest.mark.parametrize("onward", [True, False], ids=["repeated", "reversed"])
def test_a_move_that_is_killed_at_any_call_loses_nothing(
    *, back: bool, onward: bool, stride: int
) -> None:
    for moving, ended in every_call(back, kill, stride=stride):
        assert isinstance(ended, Killed)
        moving.write_and_forget()
        moving.check()
        to = moving.target if onward else moving.source
        moving.move(to)
        assert moving.place() == to
        moving.check()
        moving.move(moving.elsewhere)
        moving.check()


@there_and_back
@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.ANSWER_LOST])
def test_a_move_of_which_any_call_is_lost_loses_nothing(
    *, back: bool, fate: Fate, stride: int
) -> None:
    for moving, ended in every_call(back, lambda _: fate, stride=stride):
        assert ended is None or isinstance(ended, BUSY)
        moving.write_and_forget()
        moving.check()
        moving.move(moving.target)
        moving.check()


@there_and_back
def test_others_write_and_forget_at_any_call_of_a_move(*, back: bool) -> None:
    for moving, ended in every_call(back, Moving.write_and_forget, free=True):
        assert ended is None
        if "by here" not in moving.wanted:
            moving.write_and_forget()
        assert moving.place() == moving.target
        moving.check()


@there_and_back
def test_whoever_takes_the_copy_for_the_scope_writes_nothing_into_it(
    *, back: bool, stride: int
) -> None:
    """Where the scope or its copy is locked, the stale node waits, and is told so here."""

    def write(moving: Moving) -> None:
        with suppress(StoreError):
            moving.write(moving.stale, "by stale")

    for moving, _ in every_call(back, write, stride=stride):
        moving.wanted.add("note 0")
        moving.check()


OTHERS = {
    "the same": ("target",),
    "elsewhere": ("elsewhere",),
    "there and back": ("target", "source"),
    "onward": ("target", "elsewhere"),
}


@there_and_back
@pytest.mark.parametrize("other", OTHERS)
def test_two_that_move_a_scope_at_once_lose_nothing(*, back: bool, other: str) -> None:
    def act(moving: Moving) -> None:
        for name in OTHERS[other]:
            moving.move(getattr(moving, name))
        moving.write_and_forget()

    for moving, ended in every_call(back, act, free=True):
        assert ended is None or isinstance(ended, Conflict | NotFound), ended
        if "by here" not in moving.wanted:
            moving.write_and_forget()
        moving.check()
        moving.move(moving.source)
        moving.check()


@there_and_back
def test_a_scope_that_is_destroyed_at_any_call_of_its_move_is_gone(*, back: bool) -> None:
    def act(moving: Moving) -> None:
        moving.here.destroy(ALICE, Destroy(confirm=str(ALICE)))

    for moving, ended in every_call(back, act, free=True):
        assert ended is None or isinstance(ended, Destroyed | NotFound), ended
        moving.here.destroy(ALICE, Destroy(confirm=str(ALICE)))
        moving.check_destroyed()


def killing(at: str) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name == at:
            raise Killed

    return step


@there_and_back
def test_a_move_that_finds_another_far_ahead_takes_no_key_away(*, back: bool) -> None:
    """The others died before it arrived: what they left has the only key of the copy."""

    def act(moving: Moving) -> None:
        moving.move(moving.target)
        store = sharded(moving.node()._ports.store)
        with pytest.raises(Killed):
            move_shard(store, moving.address, moving.elsewhere, step=killing("switched"))

    for moving, ended in every_call(back, act, free=True):
        assert ended is None or isinstance(ended, Conflict | NotFound), ended
        moving.write_and_forget()
        moving.check()


@there_and_back
def test_a_copy_that_is_complete_is_left_alone_by_who_begins_the_same_move(*, back: bool) -> None:
    moving = Moving(back=back)

    def step(name: str) -> None:
        if name == "verified":
            late = sharded(moving.node()._ports.store)
            with pytest.raises(Killed):
                move_shard(late, moving.address, moving.target, step=killing("copied"))

    store = sharded(moving.node()._ports.store)
    move_shard(store, moving.address, moving.target, step=step)
    assert moving.place() == moving.target
    moving.write_and_forget()
    moving.check()


@there_and_back
@pytest.mark.parametrize("step", ["copied", "verified", "switched", "arrived"])
def test_a_root_key_that_ends_beside_a_move_that_died_takes_no_slot_along(
    *, back: bool, step: str
) -> None:
    moving = Moving(back=back)
    store = sharded(moving.node()._ports.store)
    with pytest.raises(Killed):
        move_shard(store, moving.address, moving.target, step=killing(step))
    node = moving.node()
    assert node.rotate_root().unopened == 0
    assert len(node._ports.keyring.wrapper.generations()) == 1, "the one before is destroyed"
    moving.write_and_forget()
    moving.check()
    moving.move(moving.elsewhere)
    moving.check()


@there_and_back
def test_a_scope_that_is_away_whenever_a_rotation_exchanges_its_slots_loses_none(
    *, back: bool
) -> None:
    """It is back when it is looked for; so it was taken for a slot that others had exchanged."""
    moving, away = Moving(back=back), list[str]()

    def network(name: str) -> Fate:
        if away:
            moving.move(away.pop())
        elif name == "slots.exchange":
            away.append(moving.source)
            moving.move(moving.target)
        return Fate.ARRIVES

    node = moving.node(network)
    with pytest.raises(StoreError, match="A scope was moved again and again"):
        node.rotate_root()
    assert len(node._ports.keyring.wrapper.generations()) == 2, "the one before is there"
    moving.write_and_forget()
    moving.check()
    assert moving.node().rotate_root().unopened == 0
    assert len(node._ports.keyring.wrapper.generations()) == 1
    moving.check()


@there_and_back
def test_slots_are_all_found_though_a_late_one_lies_where_the_scope_was(*, back: bool) -> None:
    """Whoever added it has not looked yet whether the scope is still there."""
    moving = Moving(back=back)
    here = moving.here._ports.keyring.slots
    before = here.read(moving.address)
    moving.move(moving.target)
    late = moving.databases[moving.source].primary.slots
    assert late is not None
    late.add(moving.address, "memory.9", lambda: b"late")
    assert here.read(moving.address, settled=True) == before


def sharded_over(stores: Mapping[str, MemoryStore]) -> ShardedStore:
    return ShardedStore(stores["home"], {"second": stores["second"]}, arrive=arrive)


@pytest.fixture
def stores() -> dict[str, MemoryStore]:
    """Two databases, of which the second has a scope with two slots."""
    made = {name: MemoryStore(with_slots=True) for name in NAMES[:2]}
    store = sharded_over(made)
    store.replace_place("alice", "second")
    store.create("alice")
    for purpose in ("memory.1", "memory.2"):
        store.slots.add("alice", purpose, purpose.encode)
    return made


def test_a_slot_that_is_deleted_while_it_moves_is_deleted_where_it_went(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there yet when it was deleted there."""
    slots = stores["second"].slots
    assert slots is not None
    delete = slots.delete

    def late(address: str, purposes: Iterable[str]) -> None:
        monkeypatch.undo()
        move_shard(sharded_over(stores), address, "home")
        delete(address, purposes)

    monkeypatch.setattr(slots, "delete", late)
    store = sharded_over(stores)
    store.slots.delete("alice", ["memory.1"])
    assert store.find("alice") == "home"
    assert set(store.slots.read("alice")) == {"memory.2"}


def test_a_slot_that_is_taken_back_where_the_scope_is_not_stays_if_it_is_there_again(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    late, look_again = sharded_over(stores), ShardedStore.look_again
    with pytest.raises(Killed):
        move_shard(sharded_over(stores), "alice", "home", step=killing("arrived"))
    assert late.place("alice") == "second"

    def and_back(store: ShardedStore, address: str, before: str) -> bool:
        found = look_again(store, address, before)
        if store is late:
            monkeypatch.undo()
            move_shard(sharded_over(stores), address, "second")
        return found

    monkeypatch.setattr(ShardedStore, "look_again", and_back)
    assert late.slots.add("alice", "memory.2", lambda: b"another") == b"memory.2"
    assert late.slots.read("alice")["memory.2"] == b"memory.2"


def test_a_place_that_names_a_copy_leads_to_where_it_came_from(
    stores: dict[str, MemoryStore],
) -> None:
    """A node that was slow noted an older move."""
    with pytest.raises(Killed):
        move_shard(sharded_over(stores), "alice", "home", step=killing("copied"))
    sharded_over(stores).replace_place("alice", "home")
    assert sharded_over(stores).find("alice") == "second"


def test_a_move_back_is_made_though_nobody_noted_the_move_there(
    stores: dict[str, MemoryStore],
) -> None:
    with pytest.raises(Killed):
        move_shard(sharded_over(stores), "alice", "home", step=killing("arrived"))
    move_shard(sharded_over(stores), "alice", "second")
    assert Due.MOVED in stores["home"].head("alice").due
    assert Due.MOVED not in stores["second"].head("alice").due


def test_a_scope_that_lives_is_never_copied_over(stores: dict[str, MemoryStore]) -> None:
    def write(store: MemoryStore) -> None:
        store.write("alice", lambda tx: tx.put(Collection.MEMORY, a_row("one")))

    def appear(_: str) -> None:
        stores["home"].remove("alice")
        stores["home"].create("alice")
        write(stores["home"])

    write(stores["second"])
    for step in (appear, lambda _: None):
        with pytest.raises(Conflict):
            move(stores["second"], stores["home"], "alice", to="home", step=step)


def test_a_scope_whose_destroy_was_begun_is_not_moved(stores: dict[str, MemoryStore]) -> None:
    """Its keys are being deleted where they are; a copy of it goes at once."""
    end = stores["second"].write
    end("alice", lambda tx: tx.set_head(replace(tx.head(), destroyed=True)))
    with pytest.raises(Destroyed):
        move_shard(sharded_over(stores), "alice", "home")
    assert not stores["home"].exists("alice")


def test_scopes_of_one_database_are_found_once_there_are_several() -> None:
    """Nobody noted a place for them, and some would be made elsewhere now."""
    moving, home = Moving(back=False), MemoryHome()
    moving._home, moving.databases = home, {name: MemoryCluster() for name in NAMES}
    alone = engine_on(moving.databases["home"].node(), home)
    scopes = [Scope("local", f"user{number}") for number in range(6)]
    for scope in scopes:
        alone.retain(scope, Retain(content="tea"))
    grown = moving.node()
    for scope in scopes:
        grown.retain(scope, Retain(content="coffee"))
        assert grown.shards([scope]) == {str(scope): "home"}
        address = grown._begin(scope, create=False).address
        assert grown._ports.store.shared.get(f"place/{address}", 0.0) == b"home"
        assert grown.move_scope(scope, "second").rows
        assert len(moving.node().browse(scope, Browse())) == 2
    later = [Scope("local", f"later{number}") for number in range(6)]
    for scope in later:
        grown.open(scope)
    assert len(set(grown.shards(later).values())) > 1
