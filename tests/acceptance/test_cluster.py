"""Nodes on PostgreSQL and S3 whose machines fail: nothing acknowledged is lost or comes back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from scrubjay import bootstrap
from scrubjay.adapters.stores.postgres.store import PostgresStore
from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import Busy, KeyMissing, NotFound, SealBroken
from scrubjay.model.requests import Browse, Forget, Get, Recall, Retain
from scrubjay.model.rows import Due
from scrubjay.ports import Failpoint, SlotPlace
from tests.acceptance.peers import ALICE, Peer
from tests.support.engines import home_settings
from tests.support.objects import ObjectServer
from tests.support.postgres import PostgresServer
from tests.support.proxy import Loss, PostgresProxy
from tests.support.writers import Write, Writers

NEEDLES = ("quokka", "zanzibar", "under the third pot", "note-of-the-needle", "tag-needle")


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.end()


@pytest.fixture
def standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    """A standby without which the primary acknowledges nothing."""
    server = PostgresServer(of=primary)
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    primary.sql("SELECT pg_reload_conf()")
    yield server
    server.end()


def home_on(folder: Path, url: str, objects: ObjectServer) -> Path:
    """A home whose rows and blobs are elsewhere."""
    (folder / "store").write_text(url)
    (folder / "blobs").write_text(objects.address())
    return folder


def node(home: Path, policy: Policy | None = None, *, lock_seconds: float = 30.0) -> Kernel:
    return bootstrap.build(replace(home_settings(home), lock_seconds=lock_seconds), policy=policy)


def writes(engine: Kernel) -> Write:
    return lambda name: engine.retain(ALICE, Retain(content=name, key=name))


def contents(engine: Kernel) -> list[str]:
    return sorted(one.content for one in engine.browse(ALICE, Browse(limit=10_000)))


# -- nodes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "there"),
    [(Failpoint.STORE_BEFORE_COMMIT, False), (Failpoint.STORE_AFTER_COMMIT, True)],
)
def test_a_node_killed_at_its_commit_leaves_all_of_it_or_nothing(
    ram: Path, postgres: PostgresServer, objects: ObjectServer, point: Failpoint, there: bool
) -> None:
    home = home_on(ram, postgres.database(), objects)
    with Peer().on(home) as other:
        other.ask("retain", "before")
        with Peer().on(home) as dying:
            dying.ask("open")
            dying.begin("retain", "in the middle", key="k", stop_at=point)
            dying.until(point)
            dying.kill()
        assert other.ask("browse") == ["in the middle"] * there + ["before"]
        assert other.ask("retain", "in the middle", key="k") == ("known" if there else "stored")
        assert other.ask("browse") == ["in the middle", "before"]


# -- the network -----------------------------------------------------------------------------


def sibling(home: Path, name: str, url: str) -> Path:
    """A home with the same keys and objects, and another way to the database."""
    other = home / name
    other.mkdir()
    (other / "store").write_text(url)
    (other / "blobs").write_text((home / "blobs").read_text())
    (other / "keys").symlink_to(home / "keys")
    return other


def test_a_network_that_is_cut_and_slow_loses_nothing_that_was_acknowledged(
    ram: Path, postgres: PostgresServer, objects: ObjectServer
) -> None:
    """Sixteen writers on two nodes; the way of one of them breaks in the middle of commits."""
    url = postgres.database()
    home = home_on(ram, url, objects)
    with PostgresProxy(postgres.folder) as proxy:
        nodes = [node(home), node(sibling(home, "far", proxy.through(url)))]
        nodes[0].open(ALICE)
        with Writers([writes(one) for one in nodes]) as writers:
            writers.until(more=32)
            for loss in (Loss.REQUEST, Loss.ANSWER, Loss.REQUEST):
                proxy.losing = loss
                writers.until(more=32)
                proxy.cut()
                writers.until(more=16)
                proxy.mend()
                writers.until(more=32)
            proxy.seconds = 0.005
            writers.until(more=32)
            proxy.seconds = 0.0
        for one in nodes:
            writers.check(contents(one))
            assert one.verify(ALICE).problems == ()
            one.close()


@pytest.mark.parametrize("loss", [*Loss, None])
def test_a_forget_on_a_network_that_breaks_is_complete_or_is_asked_for_again(
    ram: Path, postgres: PostgresServer, objects: ObjectServer, loss: Loss | None
) -> None:
    """Its commit is lost, or the answer to it; or the network stays cut, and it says so."""
    url = postgres.database()
    home = home_on(ram, url, objects)
    with PostgresProxy(postgres.folder) as proxy:
        far = sibling(home, "far", proxy.through(url))
        one, other = node(far, lock_seconds=0.5), node(home)
        for number in range(3):
            other.retain(ALICE, Retain(content=f"the quokka {number}", id=f"note-{number}"))
        assert one.recall(ALICE, Recall(query="quokka"))
        proxy.losing = loss
        if loss is None:
            proxy.cut()
            with pytest.raises(Busy):
                one.forget(ALICE, Forget(ids=("note-1",)))
            proxy.mend()
        receipt = one.forget(ALICE, Forget(ids=("note-1",)))
        for engine in (one, other):
            assert contents(engine) == ["the quokka 0", "the quokka 2"]
            assert "the quokka 1" not in {
                hit.memory.content for hit in engine.recall(ALICE, Recall(query="quokka"))
            }
            assert engine.verify(ALICE).problems == ()
        assert receipt.erased == 1
        assert other.verify_erased(ALICE, receipt).sound
        assert other.head(ALICE).due is Due.NOTHING
        one.close()
        other.close()


# -- failover --------------------------------------------------------------------------------


def both(primary: PostgresServer, standby: PostgresServer, url: str) -> str:
    """The address of a database on whichever of two servers is the primary."""
    return url.replace(f"host={primary.folder}", f"host={primary.folder},{standby.folder}")


def test_a_primary_killed_under_sixteen_writers_loses_nothing_acknowledged(
    ram: Path, primary: PostgresServer, standby: PostgresServer, objects: ObjectServer
) -> None:
    """The standby takes over; every acknowledged memory is there once, and nothing of nobody."""
    home = home_on(ram, both(primary, standby, primary.database()), objects)
    nodes = [node(home) for _ in range(2)]
    nodes[0].open(ALICE)
    with Writers([writes(one) for one in nodes]) as writers:
        writers.until(more=64)
        primary.kill()
        standby.promote()
        writers.until(more=48)
    writers.check(contents(nodes[1]))
    for one in nodes:
        assert one.verify(ALICE).problems == ()
        one.close()


def test_a_standby_that_takes_over_after_a_forget_has_forgotten(
    ram: Path, primary: PostgresServer, standby: PostgresServer, objects: ObjectServer
) -> None:
    home = home_on(ram, both(primary, standby, primary.database()), objects)
    one = node(home)
    one.retain(ALICE, Retain(content="the quokka is under the third pot", id="note-1"))
    one.retain(ALICE, Retain(content="green tea", id="note-2"))
    receipt = one.forget(ALICE, Forget(ids=("note-1",)))
    primary.kill()
    standby.promote()
    other = node(home)
    for engine in (one, other):
        assert contents(engine) == ["green tea"]
        with pytest.raises(NotFound):
            engine.get(ALICE, Get("note-1"))
    assert other.retain(ALICE, Retain(content="again", id="note-1")).outcome.value == "forgotten"
    assert other.head(ALICE).due is Due.NOTHING
    assert other.verify_erased(ALICE, receipt).sound
    one.close()
    other.close()


def test_a_commit_that_no_standby_has_does_not_last(
    primary: PostgresServer, standby: PostgresServer
) -> None:
    """With a standby that lags, old keys are kept; without any, there is nothing to wait for."""
    store = PostgresStore(primary.database())
    store.create("alice-address")
    assert store.lasting("alice-address")
    assert store.warnings() == []
    standby.stop()
    assert "synchronous standby" in store.warnings()[0]
    primary.sql("ALTER SYSTEM SET synchronous_commit = local")
    primary.sql("SELECT pg_reload_conf()")
    primary.sql("SELECT pg_logical_emit_message(true, 'scrubjay', 'not on the standby')")
    assert not store.lasting("alice-address")
    standby.start()
    store.close()


@pytest.fixture
def follower(primary: PostgresServer) -> Iterator[PostgresServer]:
    """A standby that nobody waits for."""
    server = PostgresServer(of=primary)
    yield server
    server.end()


def test_a_root_key_is_destroyed_when_the_standby_has_what_the_next_one_wraps(
    ram: Path, primary: PostgresServer, follower: PostgresServer, objects: ObjectServer
) -> None:
    """Before, a failover would leave slots that no root key opens: everything would be lost."""
    home = home_on(ram, both(primary, follower, primary.database()), objects)
    engine = node(home)
    engine.retain(ALICE, Retain(content="green tea"))
    receiver = follower.process("walreceiver")
    os.kill(receiver, signal.SIGSTOP)
    generations = engine._ports.keyring.wrapper.generations
    engine.rotate_root()
    assert list(generations()) == [1, 2]
    os.kill(receiver, signal.SIGCONT)
    engine.upkeep()
    assert list(generations()) == [2]
    primary.kill()
    follower.promote()
    other = node(home)
    assert contents(other) == ["green tea"]
    other.close()
    engine.close()


def test_without_a_synchronous_standby_past_keys_are_kept_as_long_as_was_asked(
    database: str, postgres: PostgresServer
) -> None:
    """A standby that is away is not seen: time is all that a store can give it."""
    store = PostgresStore(database, keep_seconds=3_600)
    store.create("alice-address")
    slot = store.slots.add("alice-address", "lookup", lambda: b"first")
    assert not store.lasting("alice-address")
    postgres.sql("UPDATE scrubjay.slot SET turned = now() - interval '2 hours'", database)
    assert store.lasting("alice-address")
    store.slots.exchange("alice-address", "lookup", slot, b"by another root key")
    assert not store.lasting("alice-address")
    postgres.sql("UPDATE scrubjay.slot SET turned = now() - interval '2 hours'", database)
    store.write("alice-address", lambda tx: tx.set_slot("lookup", b"beside the rows"))
    assert not store.lasting("alice-address")
    store.close()


# -- what is on the disks ----------------------------------------------------------------------


def test_no_file_of_the_database_and_no_object_says_what_was_stored(
    ram: Path, primary: PostgresServer, standby: PostgresServer, objects: ObjectServer
) -> None:
    """Every byte of both data folders with their logs, and of every object."""
    home = home_on(ram, primary.database(), objects)
    engine = node(home, Policy(segment_rows=0))
    for content in ("a quokka of zanzibar", "it lies under the third pot"):
        note = Retain(content=content, session="note-of-the-needle", tags=("tag-needle",))
        engine.retain(ALICE, note)
    engine.retain(ALICE, Retain(content="quokka " * 9_000, id="note-of-the-needle"))
    assert engine.recall(ALICE, Recall(query="quokka"))
    assert searched(engine, primary, standby) == set()
    engine.forget(ALICE, Forget(ids=("note-of-the-needle",)))
    assert searched(engine, primary, standby) == set()
    engine.close()


def test_a_backup_of_the_database_does_not_open_once_its_generation_is_destroyed(
    ram: Path, primary: PostgresServer, objects: ObjectServer
) -> None:
    """A copy of every file from before a forget, started again after `rotate --root`."""
    home = home_on(ram, primary.database(), objects)
    engine = node(home)
    engine.retain(ALICE, Retain(content="a quokka of zanzibar", id="note-1"))
    backup = PostgresServer(of=primary)
    backup.promote()
    url = (home / "store").read_text().replace(str(primary.folder), str(backup.folder))
    restored = sibling(home, "restored", url)
    before = node(restored)
    assert contents(before) == ["a quokka of zanzibar"], "the copy is not what it should be"
    before.close()
    engine.forget(ALICE, Forget(ids=("note-1",)))
    engine.rotate_root()
    after = node(restored)
    with pytest.raises((KeyMissing, SealBroken)):
        contents(after)
    after.close()
    engine.close()
    backup.end()


def test_an_erased_cell_is_left_only_under_a_root_key_that_is_destroyed(
    ram: Path, primary: PostgresServer, standby: PostgresServer, objects: ObjectServer
) -> None:
    """The log has what was deleted for long: its ciphertext, and beside it the slot of its key."""
    url = primary.database()
    engine = node(home_on(ram, url, objects))
    engine.retain(ALICE, Retain(content="green tea"))
    engine.retain(ALICE, Retain(content="a quokka of zanzibar", id="note-1"))
    find_cell = "SELECT cell FROM scrubjay.sealed WHERE collection = 0 ORDER BY seq DESC LIMIT 1"
    ((cell,),) = primary.sql(find_cell, url)
    find_slots = "SELECT address, purpose, slot FROM scrubjay.slot"
    before = primary.sql(find_slots, url)
    ((address, _, slot),) = [one for one in before if one[1] == "memory.1"]
    engine.forget(ALICE, Forget(ids=("note-1",)))
    for server in (primary, standby):
        assert all(map(in_a_file(server), (cell, slot))), "nothing was left to be opened"
    wrapper, place = engine._ports.keyring.wrapper, SlotPlace(address, "memory.1", ALICE)
    assert wrapper.unwrap(place, slot), "until then the root key opens it"
    engine.rotate_root()
    after = {(address, purpose): slot for address, purpose, slot in primary.sql(find_slots, url)}
    assert (address, "memory.1") not in after, "its key was not wrapped again"
    assert primary.sql(
        f"SELECT count(*) FROM ({find_cell}) AS s WHERE cell = '\\x{cell.hex()}'", url
    ) == [(0,)]
    for address, purpose, slot in before:
        with pytest.raises(SealBroken):
            wrapper.unwrap(SlotPlace(address, purpose, ALICE), slot)
    assert contents(engine) == ["green tea"]
    engine.close()


def in_a_file(server: PostgresServer) -> Callable[[bytes], bool]:
    """Whether some file of a server has these bytes, its log included."""
    server.sql("CHECKPOINT")
    kept = [one.read_bytes() for one in server.data.rglob("*") if one.is_file()]
    return lambda needle: any(needle in one for one in kept)


def searched(engine: Kernel, *servers: PostgresServer) -> set[str]:
    """The needles that any file or object has; each server has written everything before."""
    for server in servers:
        server.sql("CHECKPOINT")
    files = [one for server in servers for one in server.data.rglob("*") if one.is_file()]
    assert any("pg_wal" in str(one) for one in files)
    ports = engine._ports
    objects = [
        content
        for entry in ports.store.catalog.entries()
        for _, content in ports.blobs.raw(entry.address)
    ]
    assert len(objects) > 1, "no segment was written"
    kept = [*objects, *(one.read_bytes() for one in files)]
    return {needle for needle in NEEDLES if any(needle.encode() in one for one in kept)}
