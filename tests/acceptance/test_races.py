"""The races of docs/protocol.md, each in the order that would hurt most, held by its gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Barrier, Thread

import httpx2
import pytest

from scrubjay import bootstrap
from scrubjay.engine import Kernel, Policy
from scrubjay.engine.scope.lifecycle import locate
from scrubjay.model.errors import Conflict, Destroyed, NotFound, ScrubjayError, StoreError
from scrubjay.model.requests import (
    Amend,
    Browse,
    Destroy,
    Forget,
    Get,
    History,
    Recall,
    Restore,
    Retain,
    Supersede,
)
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Collection, Due
from scrubjay.ports import Failpoint
from scrubjay.service.service import Options
from tests.acceptance.gates import (
    Follower,
    Gate,
    gated,
    loading_through,
    reading_through,
    writing_through,
)
from tests.acceptance.opening import count_segments, left_over, words_left
from tests.acceptance.peers import ALICE, Peer, Reached
from tests.serving import serving
from tests.support.engines import SqliteHome, home_settings
from tests.support.objects import ObjectServer

WRITERS = 16
SECRET = "the spare key is under the third pot"
NOTES = sorted(f"note {word}" for word in ("amber", "birches", "copper", "indigo lake"))
EAGER = Policy(segment_rows=0)
"""Writes a segment at every recall that finds something new."""


@pytest.fixture(scope="module")
def processes(objects: ObjectServer) -> Iterator[tuple[Peer, Peer]]:
    """Two processes for all tests of a module; each test gives them a home of its own."""
    with Peer() as first, Peer() as second:
        yield first, second


@pytest.fixture(params=["files", "postgresql"])
def ram(request: pytest.FixtureRequest, ram: Path) -> Path:
    """A home on files, and one whose rows, keys and blobs are in a database and an object store."""
    if request.param == "postgresql":
        (ram / "blobs").write_text(request.getfixturevalue("bucket"))
        # Not dropped before the server ends: the processes still close what they had open.
        (ram / "store").write_text(request.getfixturevalue("postgres").database())
    return ram


@pytest.fixture
def a(ram: Path, processes: tuple[Peer, Peer]) -> Peer:
    return processes[0].on(ram)


@pytest.fixture
def b(ram: Path, processes: tuple[Peer, Peer]) -> Peer:
    return processes[1].on(ram)


# -- rotation --------------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [True, False], ids=["key in memory", "key never asked for"])
@pytest.mark.parametrize("held", [True, False], ids=["rotation held", "rotation over"])
def test_a_process_with_a_stale_epoch_key_seals_under_the_new_one(
    ram: Path, a: Peer, b: Peer, cached: bool, held: bool
) -> None:
    """The old key is deleted while another process still has it, or the number of its slot."""
    b.ask("open")
    a.ask("retain", "from a")
    if cached:
        b.ask("retain", "from b, before")
    a.begin("rotate", stop_at=Failpoint.ROTATE_SLOT_DELETED)
    a.until(Failpoint.ROTATE_SLOT_DELETED)
    if not held:
        a.go_on()
        assert a.answer() == 2
    assert b.ask("retain", "from b, after", key="k1", id="note-1") == "stored"
    assert epochs(ram) == {2}
    everything = ["from b, after", *["from b, before"] * cached, "from a"]
    assert b.ask("browse") == everything
    if held:
        a.go_on()
        assert a.answer() == 2
    assert a.ask("browse") == everything
    with Peer().on(ram) as fresh:
        assert fresh.ask("browse") == everything
    assert epochs(ram) == {2}


@pytest.mark.parametrize(
    "gate",
    [Failpoint.ROTATE_EPOCH_RAISED, Failpoint.ROTATE_BATCH_SEALED, Failpoint.ROTATE_RESEALED],
)
def test_two_processes_that_rotate_at_once_both_end_well(
    ram: Path, a: Peer, b: Peer, gate: Failpoint
) -> None:
    """One stands in the middle of a rotation while the other does all of a second one."""
    contents = [f"memory {number}" for number in range(5)]
    for content in contents:
        a.ask("retain", content)
    a.begin("rotate", stop_at=gate)
    a.until(gate)
    assert b.ask("rotate") == 3
    a.go_on()
    assert a.answer() == 3
    with Peer().on(ram) as fresh:
        assert fresh.ask("browse") == contents[::-1]
    assert epochs(ram) == {3}
    with opened(ram) as engine:
        assert engine.head(ALICE).due is Due.NOTHING
        assert engine.verify(ALICE).sound
        slots = engine._open(ALICE).slots
        used = (Collection.MEMORY, Collection.TURN, Collection.SESSION)
        assert [slots(collection) for collection in used] == [[3], [3], [3]]


@pytest.mark.parametrize("content", ["short", "long ".ljust(64 * 1024, ".")], ids=["cell", "blob"])
def test_a_reader_that_a_rotation_overtakes_gets_its_rows_by_a_fresh_view(
    ram: Path, content: str
) -> None:
    """It has taken the rows; before it can open them, their key and blob are gone."""
    home = SqliteHome(ram)
    rotator = home.engine()
    public_id = rotator.retain(ALICE, Retain(content=content)).id
    gate = Gate("reader.rows-taken", lambda: rotator.rotate(ALICE))
    reader = reading_through(home.engine(), gate)
    assert reader.get(ALICE, Get(public_id)).content == content
    assert gate.passed
    assert [memory.content for memory in reader.follow(ALICE).memories] == [content]
    reader.close()
    rotator.close()


# -- destroy ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gate",
    [
        Failpoint.DESTROY_KEYS_DELETED,
        Failpoint.DESTROY_EMPTIED,
        Failpoint.DESTROY_UNLINKED,
        None,
    ],
)
def test_a_process_with_an_open_handle_is_told_that_the_scope_is_destroyed(
    ram: Path, a: Peer, b: Peer, gate: Failpoint | None
) -> None:
    """From the moment the first key is gone, no write is acknowledged into nothing."""
    b.ask("retain", SECRET, id="note-1")
    a.ask("open")
    a.begin("destroy", stop_at=gate)
    if gate is not None:
        a.until(gate)
        expect_destroyed(b)
        a.go_on()
    assert a.answer() == 1
    expect_destroyed(b)
    with Peer().on(ram) as fresh:
        with pytest.raises(Destroyed):
            fresh.ask("open")
        fresh.ask("open", anew=True)
        assert fresh.ask("browse") == []
        fresh.ask("retain", "of the new life", id="note-2")
    # It was told; now it finds the scope that is there, and nothing of the one that was.
    assert b.ask("get", "note-2") is not None
    with pytest.raises(NotFound):
        b.ask("get", "note-1")


def test_a_destroy_that_died_is_finished_by_the_next_who_opens(ram: Path, b: Peer) -> None:
    """The first process dies with the keys; a handle is told, and nobody opens what is left."""
    b.ask("retain", SECRET, id="note-1")
    with Peer().on(ram) as a:
        a.begin("destroy", stop_at=Failpoint.DESTROY_KEYS_DELETED)
        a.until(Failpoint.DESTROY_KEYS_DELETED)
        a.kill()
    expect_destroyed(b)
    with Peer().on(ram) as fresh, pytest.raises(Destroyed):
        fresh.ask("open")
    assert not list((ram / "data" / "scopes").glob("*.sqlite"))


def expect_destroyed(peer: Peer) -> None:
    verbs = (("retain", "too late"), ("get", "note-1"), ("browse",), ("rotate",), ("open",))
    for verb, *args in verbs:
        with pytest.raises(Destroyed):
            peer.ask(verb, *args)


# -- making a scope --------------------------------------------------------------------------


@pytest.mark.parametrize("gate", [Failpoint.CREATE_KEYS_ADDED, Failpoint.CREATE_STORED])
def test_two_processes_that_make_a_scope_at_once_share_it(
    ram: Path, a: Peer, b: Peer, gate: Failpoint
) -> None:
    """One stands in the middle of making it while the other makes and uses it."""
    a.begin("open", stop_at=gate)
    a.until(gate)
    b.ask("retain", "from b")
    a.go_on()
    a.answer()
    a.ask("retain", "from a")
    for peer in (a, b):
        assert peer.ask("browse") == ["from a", "from b"]
    with Peer().on(ram) as fresh:
        assert fresh.ask("browse") == ["from a", "from b"]


# -- supersede -------------------------------------------------------------------------------


def test_of_sixteen_processes_that_supersede_one_memory_exactly_one_wins(ram: Path) -> None:
    """The winner is held between its commit and its acknowledgement; the others lose to it."""
    with opened(ram) as engine:
        first = engine.retain(ALICE, Retain(content="version 0")).id
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer().on(ram)) for _ in range(WRITERS)]
        for peer in peers:
            peer.ask("open")
        for number, peer in enumerate(peers):
            gate = Failpoint.SUPERSEDE_COMMITTED
            peer.begin("supersede", first, f"version of {number}", stop_at=gate)
        outcomes = [peer.outcome() for peer in peers]
        (winner,) = [peer for peer, told in zip(peers, outcomes, strict=True) if is_stop(told)]
        assert sum(isinstance(told, Conflict) for told in outcomes) == WRITERS - 1
        winner.go_on()
        second = winner.answer()
    expect_chain(ram, first, second)


def test_of_sixteen_threads_that_supersede_one_memory_exactly_one_wins(ram: Path) -> None:
    engine = bootstrap.build(home_settings(ram))
    first = engine.retain(ALICE, Retain(content="version 0")).id
    outcomes: list[str | ScrubjayError] = []
    together = Barrier(WRITERS)

    def write(number: int) -> None:
        request = Supersede(id=first, content=f"version of {number}")
        together.wait()
        try:
            outcomes.append(engine.supersede(ALICE, request).id)
        except ScrubjayError as error:
            outcomes.append(error)

    threads = [Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.close()
    (second,) = [told for told in outcomes if isinstance(told, str)]
    assert sum(isinstance(told, Conflict) for told in outcomes) == WRITERS - 1
    expect_chain(ram, first, second)


def is_stop(told: object) -> bool:
    return isinstance(told, Reached)


def expect_chain(home: Path, first: str, second: str) -> None:
    with opened(home) as engine:
        old, new = engine.history(ALICE, History(first))
        assert (old.id, old.superseded_by) == (first, second)
        assert (new.id, new.supersedes, new.superseded_by) == (second, first, None)
        assert [memory.id for memory in engine.browse(ALICE, Browse())] == [second]
        assert engine.verify(ALICE).sound


# -- what was read before --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_memory_that_another_process_changed_since_it_was_read_is_left_as_it_is(
    ram: Path, method: str
) -> None:
    """The other comes when the service has checked all it can without a transaction."""
    home = SqliteHome(ram)
    other = home.engine()
    one = other.retain(ALICE, Retain(content="green tea")).id
    gate = Gate("writer.begins", lambda: other.amend(ALICE, Amend(one, pinned=True)))
    served = writing_through(home.engine(), gate)
    with serving(served, home.clock, Options(no_auth=True, scope=ALICE)) as running:
        url = f"{running.url}/v1/memories/{one}"
        headers = {"If-Match": httpx2.get(url).headers["etag"]}
        body = {"expires_at": "2020-01-01T00:00:00Z"} if method == "PATCH" else None
        answer = httpx2.request(method, url, headers=headers, json=body)
    assert gate.passed
    assert (answer.status_code, answer.json()["code"]) == (412, "stale")
    kept = other.get(ALICE, Get(one))
    assert (kept.pinned, kept.expires_at, kept.version) == (True, None, 2)
    served.close()
    other.close()


# -- restore ---------------------------------------------------------------------------------


@pytest.mark.parametrize("file_lost", [False, True], ids=["file there", "file deleted"])
@pytest.mark.parametrize("slot_lost", [False, True], ids=["kept key", "printed key alone"])
def test_an_older_backup_does_not_bring_back_what_was_forgotten_since(
    ram: Path, file_lost: bool, slot_lost: bool
) -> None:
    """Not even to a writer that is there between the new file and the rows restored to it."""
    home = SqliteHome(ram)
    other = home.engine()
    note = Retain(content=SECRET, id="note-1", key="k1")
    other.retain(ALICE, note)
    other.retain(ALICE, Retain(content="green tea"))
    raw, backup = other.backup(ALICE)
    other.forget(ALICE, Forget(ids=("note-1",)))
    lose(home, file=file_lost, slot=f"backup.{backup.name}" if slot_lost else None)

    gate = Gate(Failpoint.RESTORE_KEYS_ADDED, lambda: expect_refused(other, note))
    engine = gated(home, gate)
    restored = engine.restore(ALICE, Restore(raw, key=backup.key if slot_lost else None))
    assert gate.passed
    assert (restored.loaded, restored.known, restored.forgotten) == (file_lost, not file_lost, 1)
    for someone in (engine, other, home.engine()):
        expect_refused(someone, note)
        assert [memory.content for memory in someone.browse(ALICE, Browse())] == ["green tea"]
        someone.close()


def test_an_older_backup_does_not_bring_back_what_was_forgotten_before_a_destroy(ram: Path) -> None:
    """The lookup key of that life is gone, but the backup has it, and the catalog its hashes."""
    home = SqliteHome(ram)
    engine = home.engine()
    engine.retain(ALICE, Retain(content=SECRET, id="note-1", key="k1"))
    engine.retain(ALICE, Retain(content="green tea"))
    raw, backup = engine.backup(ALICE)
    engine.forget(ALICE, Forget(ids=("note-1",)))
    engine.destroy(ALICE, Destroy(confirm=str(ALICE)))
    restored = engine.restore(ALICE, Restore(raw, key=backup.key, anew=True))
    assert (restored.loaded, restored.forgotten) == (1, 1)
    assert [memory.content for memory in engine.browse(ALICE, Browse())] == ["green tea"]
    engine.close()


def lose(home: SqliteHome, *, file: bool, slot: str | None) -> None:
    """Delete the data file by hand, and the kept key of the backup."""
    engine = home.engine()
    ports = engine._ports
    address, _ = locate(ports, ALICE)
    if slot is not None:
        ports.keyring.delete(address, slot)
    engine.close()
    if file and (home.folder / "store").exists():
        store = bootstrap.make_store(home_settings(home.folder))
        store.remove(address)
        store.close()
    elif file:
        for path in (home.folder / "data" / "scopes").glob(f"{address}*"):
            path.unlink()


def expect_refused(engine: Kernel, note: Retain) -> None:
    """A replay of what was forgotten stores nothing, whatever state the file is in."""
    with suppress(NotFound, StoreError):  # while the file is not there, or still empty
        assert engine.retain(ALICE, note).outcome is Outcome.FORGOTTEN
    with pytest.raises((NotFound, StoreError)):
        engine.get(ALICE, Get("note-1"))


# -- sleeping readers ------------------------------------------------------------------------


def test_a_reader_that_slept_across_a_purge_starts_anew_and_never_shows_what_was_forgotten(
    ram: Path,
) -> None:
    """It looks again between the transactions of the purge, and once more when all is over."""
    home = SqliteHome(ram)
    reader, other = Follower(home.engine()), home.engine()
    secret = other.retain(ALICE, Retain(content=SECRET)).id
    other.retain(ALICE, Retain(content="green tea"))
    reader.look()
    assert reader.contents == {SECRET, "green tea"}

    other.forget(ALICE, Forget(ids=(secret,)))
    home.clock.advance(days=31)
    sleeper = reader.copy()
    gate = Gate(Failpoint.PURGE_COMMITTED, reader.look)
    purger = gated(home, gate)
    assert purger.purge(ALICE).dropped == 1
    other.retain(ALICE, Retain(content="black coffee"))
    for someone in (reader, sleeper):
        someone.look()
        assert someone.contents == {"green tea", "black coffee"}
    assert gate.passed
    assert sleeper.times_anew == 1
    sleeper.look()
    assert sleeper.times_anew == 1
    for engine in (other, purger, reader.engine):
        engine.close()


# -- segments --------------------------------------------------------------------------------


def test_a_segment_that_comes_after_a_forget_is_not_published(ram: Path, a: Peer, b: Peer) -> None:
    """It was built from what is forgotten meanwhile; neither it nor the answer may show that."""
    a.on(ram, EAGER)
    write_notes(b)
    b.ask("retain", SECRET, id="note-1")
    a.begin("recall", "spare key", stop_at=Failpoint.SEGMENT_BUILT)
    a.until(Failpoint.SEGMENT_BUILT)
    assert b.ask("forget", "note-1") == 1
    a.go_on()
    assert SECRET not in a.answer()
    expect_clean(ram)
    for peer in (a, b):
        assert sorted(peer.ask("recall", "spare key", limit=100)) == NOTES
    expect_clean(ram, segments=1)


def test_an_index_that_slept_across_a_purge_shows_what_is_there(ram: Path) -> None:
    """What was forgotten is no longer listed as a change; the index starts anew from segments."""
    home = SqliteHome(ram)
    sleeper, other = home.engine(EAGER), home.engine(EAGER)
    for note in (*NOTES, SECRET):
        other.retain(ALICE, Retain(content=note, id=f"note-{len(note)}"))
    assert SECRET in recalled(sleeper)
    other.forget(ALICE, Forget(ids=(f"note-{len(SECRET)}",)))
    home.clock.advance(days=31)
    looks: list[list[str]] = []
    watcher = home.engine(EAGER)
    assert sorted(recalled(watcher)) == NOTES
    gate = Gate(Failpoint.PURGE_COMMITTED, lambda: looks.append(recalled(watcher)))
    purger = gated(home, gate, EAGER)
    assert purger.purge(ALICE).dropped == 1
    other.retain(ALICE, Retain(content="black coffee"))
    assert gate.passed
    assert [sorted(look) for look in looks] == [NOTES]
    for engine in (sleeper, watcher, other, home.engine(EAGER)):
        assert sorted(recalled(engine)) == sorted([*NOTES, "black coffee"])
        engine.close()
    purger.close()


@pytest.mark.parametrize(
    "gate",
    [
        Failpoint.ROTATE_EPOCH_RAISED,
        Failpoint.SEGMENT_BUILT,
        Failpoint.SEGMENT_PUBLISHED,
        Failpoint.ROTATE_RESEALED,
        Failpoint.ROTATE_SLOT_DELETED,
        None,
    ],
)
@pytest.mark.parametrize("asleep", ["recall", "brief"], ids=["whole index", "columns only"])
def test_an_index_that_slept_across_a_rotation_answers_as_before(
    ram: Path, a: Peer, b: Peer, gate: Failpoint | None, asleep: str
) -> None:
    """The rotation stands anywhere, or is over: keys and segments are others than it knows."""
    for peer in (a, b):
        peer.on(ram, EAGER)
    write_notes(a)
    a.ask("recall", "note")
    b.ask(asleep, *(["note"] if asleep == "recall" else []))
    a.begin("rotate", stop_at=gate)
    if gate is not None:
        a.until(gate)
        assert sorted(b.ask("recall", "note", limit=100)) == NOTES
        a.go_on()
    assert a.answer() == 2
    b.ask("retain", "note of b")
    for peer in (a, b):
        assert sorted(peer.ask("recall", "note", limit=100)) == sorted([*NOTES, "note of b"])
    expect_clean(ram, segments=1)


@pytest.mark.parametrize("merging", [False, True], ids=["first segment", "merge"])
def test_of_two_processes_that_publish_segments_at_once_one_gives_up(
    ram: Path, a: Peer, b: Peer, merging: bool
) -> None:
    """Whoever finds another manifest than the one it began from leaves it alone."""
    for peer in (a, b):
        peer.on(ram, EAGER)
    if merging:
        write_notes(a)
        assert sorted(b.ask("recall", "note", limit=100)) == NOTES
        a.ask("recall", "note")
    else:
        write_notes(b)
    b.ask("retain", "one more note")
    everything = sorted([*NOTES, "one more note"])
    a.begin("recall", "note", limit=100, stop_at=Failpoint.SEGMENT_BUILT)
    a.until(Failpoint.SEGMENT_BUILT)
    assert sorted(b.ask("recall", "note", limit=100)) == everything
    a.go_on()
    assert sorted(a.answer()) == everything
    with Peer().on(ram, EAGER) as fresh:
        for peer in (a, b, fresh):
            assert sorted(peer.ask("recall", "note", limit=100)) == everything
    expect_clean(ram, segments=1)


@pytest.mark.parametrize("erasing", [False, True], ids=["rotate", "forget"])
def test_a_reader_whose_segments_are_rewritten_under_its_hands_reads_the_rows(
    ram: Path, erasing: bool
) -> None:
    """It has the columns; before it has the postings, both are gone."""
    home = SqliteHome(ram)
    other = home.engine(EAGER)
    for note in (*NOTES, SECRET):
        other.retain(ALICE, Retain(content=note, id=f"note-{len(note)}"))
    recalled(other)

    def rewrite() -> None:
        if erasing:
            other.forget(ALICE, Forget(ids=(f"note-{len(SECRET)}",)))
        else:
            other.rotate(ALICE)

    gate = Gate("reader.columns-loaded", rewrite)
    reader = loading_through(home.engine(EAGER), gate)
    expected = sorted(NOTES if erasing else [*NOTES, SECRET])
    assert sorted(recalled(reader)) == expected
    assert gate.passed
    assert sorted(recalled(reader)) == expected
    for engine in (reader, other):
        engine.close()


def write_notes(peer: Peer) -> None:
    for note in NOTES:
        peer.ask("retain", note)


def recalled(engine: Kernel) -> list[str]:
    """What a question finds that has something to do with everything."""
    found = engine.recall(ALICE, Recall(query="note on the spare key, coffee", limit=100))
    assert found.degraded == ()
    return [hit.memory.content for hit in found]


def expect_clean(home: Path, segments: int | None = None) -> None:
    """Nothing in a segment says the secret, none is left over, and all is sound."""
    with opened(home) as engine:
        assert words_left(engine, ALICE, SECRET.split()[-2:]) == set()
        assert left_over(engine, ALICE) == set()
        assert engine.verify(ALICE).sound
        assert segments is None or count_segments(engine, ALICE) >= segments


# -- this process ----------------------------------------------------------------------------


@contextmanager
def opened(home: Path) -> Iterator[Kernel]:
    """An engine of this process on a home."""
    engine = bootstrap.build(home_settings(home))
    try:
        yield engine
    finally:
        engine.close()


def epochs(home: Path) -> set[int]:
    """The epochs the rows of the scope are sealed in."""
    with opened(home) as engine:
        return engine._open(ALICE).read(
            lambda view: {row.epoch for row in view.changes(Collection.MEMORY, 0, 10_000)}
        )
