"""Scopes that move between databases while they are written; homes to a database and back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.adapters.stores.postgres.store import PostgresStore
from scrubjay.adapters.stores.shards import ShardedStore
from scrubjay.cli.app import run
from scrubjay.engine import Kernel
from scrubjay.engine.transfer import move
from scrubjay.engine.transfer.move import arrive, move_shard, sharded
from scrubjay.model.errors import (
    Busy,
    Conflict,
    InvalidRequest,
    KeyMissing,
    NotFound,
    OutcomeUnknown,
)
from scrubjay.model.requests import Browse, Destroy, Forget, Get, Recall, Retain
from scrubjay.model.rows import MOVED, OPENING, Collection, Due
from scrubjay.model.scope import Scope
from scrubjay.testing.store_rows import a_row
from tests.acceptance.peers import ALICE
from tests.support.objects import ObjectServer
from tests.support.postgres import PostgresServer
from tests.support.proxy import Loss, PostgresProxy

BOB = Scope("local", "bob")
WRITERS = 16
STEPS = ("copied", "verified", "switched", "arrived", "noted")


class Killed(BaseException):
    """The process died at a step."""


def killing(at: str) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name == at:
            raise Killed(name)

    return step


@pytest.fixture
def shards(tmp_path: Path, database: str, postgres: PostgresServer) -> Iterator[settings.Settings]:
    """A home on two databases."""
    other = postgres.database()
    home = settings.at_home(tmp_path / "home")
    yield replace(home, store=database, shards=f"second={other}")
    postgres.drop(other)


def contents(engine: Kernel, scope: Scope = ALICE) -> list[str]:
    return sorted(one.content for one in engine.browse(scope, Browse(limit=10_000)))


def where(engine: Kernel, scope: Scope = ALICE) -> str:
    return engine.shards([scope])[str(scope)]


def elsewhere(engine: Kernel, scope: Scope = ALICE) -> str:
    return "second" if where(engine, scope) == "home" else "home"


# -- between databases -------------------------------------------------------------------------


def test_a_scope_moved_under_sixteen_writers_loses_nothing(shards: settings.Settings) -> None:
    """Writers of two nodes, which are told nothing of the move; it goes there and back."""
    nodes = [bootstrap.build(shards) for _ in range(2)]
    nodes[0].open(ALICE)
    nodes[0].retain(ALICE, Retain(content="forgotten", id="note-1"))
    nodes[0].forget(ALICE, Forget(ids=("note-1",)))
    acknowledged, over = set[str](), threading.Event()
    failures = list[BaseException]()

    def write(number: int) -> None:
        written = 0
        try:
            while not over.is_set():
                name = f"{number}/{written}"
                nodes[number % 2].retain(ALICE, Retain(content=name, key=name))
                acknowledged.add(name)
                written += 1
        except BaseException as error:  # seam: a thread's error is the test's
            failures.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    third, before = bootstrap.build(shards), 0
    for _ in range(4):
        while len(acknowledged) <= before and not failures:  # each move is amid writes
            over.wait(0.01)
        before = len(acknowledged)
        third.move_scope(ALICE, elsewhere(third))
    over.set()
    for writer in writers:
        writer.join(60)
    assert failures == []
    for node in (*nodes, third, bootstrap.build(shards)):
        assert set(contents(node)) == acknowledged
        assert len(contents(node)) == len(acknowledged)
        with pytest.raises(NotFound):
            node.get(ALICE, Get("note-1"))
        assert node.verify(ALICE).problems == ()
        node.close()


@pytest.mark.parametrize("at", STEPS)
def test_a_move_killed_at_any_step_is_continued_and_loses_nothing(
    shards: settings.Settings, at: str
) -> None:
    """In between everybody writes, also who never noticed that it was moved away before."""
    engine = bootstrap.build(shards)
    for number in range(20):
        engine.retain(ALICE, Retain(content=f"note {number}", id=f"note-{number}"))
    assert engine.recall(ALICE, Recall(query="note 7"))
    to, address = where(engine), engine._begin(ALICE, create=False).address
    third = bootstrap.build(shards)
    third.move_scope(ALICE, elsewhere(engine))
    store = sharded(third._ports.store)
    with pytest.raises(Killed):
        move_shard(store, address, to, step=killing(at))
    engine.retain(ALICE, Retain(content="by the other node"))
    other = bootstrap.build(shards)
    other.retain(ALICE, Retain(content="in between"))
    other.forget(ALICE, Forget(ids=("note-3",)))
    third.move_scope(ALICE, to)
    assert where(third) == to
    for node in (engine, other, third):
        assert len(contents(node)) == 21
        assert "note 3" not in contents(node)
        assert node.verify(ALICE).problems == ()
        assert node.recall(ALICE, Recall(query="note 7"))[0].memory.content == "note 7"
    (left,) = (store.named(name) for name in store.names() if name != to)
    with left.read(address) as view:  # a head without anything that it was the head of
        assert Due.MOVED in view.head().due
        assert not any(view.count(one) for one in Collection)
        assert not view.tombstones()
        assert list(view.value_names()) == [MOVED, OPENING]
    assert left.slots is not None
    assert not left.slots.read(address)
    for node in (engine, other, third):
        node.close()


def test_a_key_that_is_added_during_a_move_goes_along(shards: settings.Settings) -> None:
    """The first conversation of a scope makes a key, outside the transaction of any head."""
    engine, mover = bootstrap.build(shards), bootstrap.build(shards)
    engine.retain(ALICE, Retain(content="tea", id="note-1"))
    mover.move_scope(ALICE, elsewhere(mover))
    slots = engine._ports.keyring.slots
    address = engine._begin(ALICE, create=False).address
    mine = slots.add(address, "conversation.1", lambda: b"slot")
    assert mover._ports.keyring.slots.read(address)["conversation.1"] == mine
    engine.close()
    mover.close()


def let_pass(behind: PostgresServer, ahead: PostgresServer) -> None:
    """Commit transactions until one server has many more than the other."""
    ((number,),) = behind.sql("SELECT pg_current_xact_id()::text")
    ahead.sql(
        f"DO $$ BEGIN WHILE pg_current_xact_id()::text::bigint < {int(number) + 1_000}"
        " LOOP COMMIT; END LOOP; END $$"
    )


def rows_of(store: ShardedStore) -> int:
    with store.read("alice") as view:
        return view.count(Collection.MEMORY)


@pytest.mark.parametrize(("loss", "happened"), [(Loss.ANSWER, True), (Loss.REQUEST, False)])
def test_what_became_of_a_commit_is_asked_where_it_was_made_though_the_scope_has_moved(
    postgres: PostgresServer, database: str, loss: Loss, happened: bool
) -> None:
    """The number of a transaction says nothing on another server, or something untrue."""
    server = PostgresServer()
    # There the number is that of a committed transaction, or of one that is yet to come.
    let_pass(*((postgres, server) if loss is Loss.REQUEST else (server, postgres)))
    with PostgresProxy(postgres.folder) as proxy:
        store = ShardedStore(
            PostgresStore(proxy.through(database)),
            {"other": PostgresStore(server.database())},
            arrive=arrive,
        )
        store.replace_place("alice", "home")
        store.create("alice")
        proxy.losing = loss
        with pytest.raises(OutcomeUnknown) as lost:
            store.write("alice", lambda tx: tx.put(Collection.MEMORY, a_row("one")))
        move_shard(store, "alice", "other")
        assert store.resolve("alice", lost.value.commit) is happened
        assert rows_of(store) == happened
        assert store.resolve("alice", "elsewhere:7/00000001") is None
        store.close()
    server.end()


def test_a_scope_is_not_moved_to_two_places_or_to_one_that_is_not_configured(
    shards: settings.Settings, database: str
) -> None:
    engine = bootstrap.build(shards)
    engine.retain(ALICE, Retain(content="tea"))
    with pytest.raises(NotFound, match="nowhere"):
        engine.move_scope(ALICE, "nowhere")
    here = where(engine)
    alone = bootstrap.build(replace(shards, shards=""))
    with pytest.raises(InvalidRequest, match="one database"):
        alone.shards()
    alone.close()
    assert engine.move_scope(ALICE, here).rows == 1, "it is there already"
    store, to = sharded(engine._ports.store), elsewhere(engine)
    address = engine._begin(ALICE, create=False).address
    with pytest.raises(Killed):
        move.move(store.named(here), store.named(to), address, to="third", step=killing("switched"))
    with pytest.raises(Conflict):
        move.move(store.named(here), store.named(to), address, to=to)
    engine.close()
    for wrong in ("second", "home=postgres:///x", "a=postgres:///x a=postgres:///y", "A B=x"):
        with pytest.raises(InvalidRequest):
            bootstrap.build(replace(shards, shards=wrong))


# -- a home, to a database and back ---------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> settings.Settings:
    """Files of two scopes, one with a long text, one forgotten memory, one destroyed scope."""
    found = settings.at_home(tmp_path / "home")
    engine = bootstrap.build(found)
    for number in range(30):
        engine.retain(ALICE, Retain(content=f"note {number}", id=f"note-{number}"))
    engine.retain(ALICE, Retain(content="long " * 13_100, id="long"))
    engine.forget(ALICE, Forget(ids=("note-3",)))
    engine.retain(BOB, Retain(content="of Bob"))
    gone = Scope("local", "gone")
    engine.retain(gone, Retain(content="of nobody"))
    engine.destroy(gone, Destroy(confirm=str(gone)))
    engine.close()
    return found


def check(found: settings.Settings) -> None:
    engine = bootstrap.build(found)
    there = contents(engine)
    assert len(there) == 30
    assert "note 3" not in there
    assert engine.get(ALICE, Get("long")).content == "long " * 13_100
    assert engine.retain(ALICE, Retain(content="x", id="note-3")).outcome.value == "forgotten"
    assert contents(engine, BOB) == ["of Bob"]
    assert sorted(map(str, engine.scopes())) == ["local/alice", "local/bob"]
    assert len(engine.receipts(ALICE)) == 1
    for scope in (ALICE, BOB):
        assert engine.verify(scope).problems == ()
    engine.close()


def test_a_home_moves_to_a_database_and_a_bucket_and_back(
    home: settings.Settings, database: str, objects: ObjectServer
) -> None:
    bucket = objects.address()
    there = replace(home, store=database, blobs=bucket)
    moved = bootstrap.migrate(home, store=database, blobs=bucket)
    assert [one.rows for one in moved.scopes if one.rows > 2] == [31]
    check(there)
    kept = [one for one in (home.data / "scopes").rglob("*.sqlite") if one.stat().st_size]
    assert kept == []
    assert not list((home.keys / "slots").rglob("*.1")), "a key slot stayed behind"
    with pytest.raises(InvalidRequest, match="moved"):
        bootstrap.build(home)
    back = bootstrap.migrate(there, store="", blobs="")
    assert len(back.scopes) == len(moved.scopes)
    check(home)
    engine = bootstrap.build(there)
    with pytest.raises(KeyMissing):
        contents(engine)
    engine.close()


@pytest.mark.parametrize("at", ["copied", "verified", "switched", "removed"])
@pytest.mark.parametrize("scope", [1, 2])
def test_a_migration_killed_at_any_step_is_run_again_and_loses_nothing(
    home: settings.Settings, database: str, objects: ObjectServer, at: str, scope: int
) -> None:
    bucket, seen = objects.address(), list[str]()

    def step(name: str) -> None:
        seen.append(name)
        if name == at and seen.count(at) == scope:
            raise Killed(name)

    with pytest.raises(Killed):
        bootstrap.migrate(home, store=database, blobs=bucket, step=step)
    with pytest.raises(InvalidRequest, match="moved"):
        bootstrap.build(home)
    moved = bootstrap.migrate(home, store=database, blobs=bucket)
    assert max(one.rows for one in moved.scopes) == 31
    check(replace(home, store=database, blobs=bucket))


def test_a_home_is_not_moved_into_anothers_database(
    home: settings.Settings, database: str, tmp_path: Path
) -> None:
    other = replace(settings.at_home(tmp_path / "other"), store=database)
    engine = bootstrap.build(other)
    engine.retain(ALICE, Retain(content="of another home"))
    engine.close()
    with pytest.raises(Conflict):
        bootstrap.migrate(home, store=database, blobs="")
    with pytest.raises(Busy):
        bootstrap.migrate(
            replace(home, lock_seconds=0.1), store=f"{database}-that-is-not-there", blobs=""
        )
    check(home)


def test_the_command_moves_a_home_and_writes_a_receipt(
    home: settings.Settings,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SCRUBJAY_HOME", str(home.data.parent))
    assert run(["migrate", "--to", database]) != 0, "it asks first"
    receipt = tmp_path / "receipt.json"
    assert run(["migrate", "--to", database, "--receipt", str(receipt), "--yes"]) == 0
    assert "digest" in receipt.read_text()
    assert "SCRUBJAY_STORE" in capsys.readouterr().err
    assert run(["list"]) != 0
    monkeypatch.setenv("SCRUBJAY_STORE", database)
    assert run(["list", "--scope", "alice"]) == 0
    assert run(["migrate", "--to", "files", "--yes"]) == 0
    monkeypatch.delenv("SCRUBJAY_STORE")
    assert run(["list", "--scope", "alice"]) == 0
    check(home)
