"""What a scope is worth after its file was lost, rolled back, or could not be copied."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import Full, StoreError
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Recall, Restore, Retain
from scrubjay.model.results import Outcome
from scrubjay.ports import Tx
from tests.support.engines import MemoryHome, SqliteHome
from tests.unit.engine.saying import record
from tests.unit.engine.scene import ALICE, address, contents, forget, retain, supersede


def test_a_scope_restored_after_its_file_was_lost_is_sound(home: MemoryHome) -> None:
    engine = home.engine()
    retain(engine, "kept")
    raw, _ = engine.backup(ALICE)
    for number in range(5):
        retain(engine, f"later {number}")
    engine.close()
    home.store.remove(address(home))
    successor = home.engine()
    successor.restore(ALICE, Restore(raw))
    assert contents(successor) == ["kept"]
    assert successor.verify(ALICE).problems == ()


def test_a_trail_cut_short_still_shows_after_a_restore(home: MemoryHome) -> None:
    engine = home.engine()
    retain(engine, "kept")
    raw, _ = engine.backup(ALICE)
    retain(engine, "later")
    engine.close()
    home.store.remove(address(home))
    successor = home.engine()
    successor.restore(ALICE, Restore(raw))
    for number in range(20):
        retain(successor, f"newer {number}")
    successor.close()
    known = home.store.catalog.entry(address(home))
    assert known is not None
    home.store.catalog.note_audit(address(home), known.audit_count + 5, bytes(32))
    assert "catalog knows" in home.engine().verify(ALICE).problems[0]


def _roll_back(home: SqliteHome, folder: Path) -> bytes:
    """Leave a data folder that is older than the last rotation; returns a backup."""
    engine = home.engine()
    retain(engine, "kept")
    raw, _ = engine.backup(ALICE)
    engine.close()
    shutil.copytree(folder / "data" / "scopes", folder / "old")
    engine = home.engine()
    engine.rotate(ALICE)
    engine.close()
    shutil.rmtree(folder / "data" / "scopes")
    shutil.copytree(folder / "old", folder / "data" / "scopes")
    return raw


def test_rows_older_than_their_keys_do_not_open(tmp_path: Path) -> None:
    home = SqliteHome(tmp_path)
    _roll_back(home, tmp_path)
    engine = home.engine()
    with pytest.raises(StoreError, match="older than"):
        contents(engine)
    assert any("which is gone" in one for one in engine.verify(ALICE).problems)


def test_a_restore_takes_the_place_of_rows_older_than_their_keys(tmp_path: Path) -> None:
    home = SqliteHome(tmp_path)
    raw = _roll_back(home, tmp_path)
    engine = home.engine()
    engine.restore(ALICE, Restore(raw))
    assert contents(engine) == ["kept"]
    assert engine.verify(ALICE).problems == ()


def test_a_backup_that_cannot_be_put_away_is_not_noted(engine: Kernel, home: MemoryHome) -> None:
    retain(engine, "something")

    def fail(_: bytes) -> None:
        raise OSError("the place is gone")

    with pytest.raises(OSError, match="gone"):
        engine.backup(ALICE, deliver=fail)
    assert home.store.catalog.backups(address(home)) == []
    assert not [p for p in home.keyring.purposes(address(home)) if p.startswith("backup")]


def test_the_correction_of_something_derived_goes_with_its_source(engine: Kernel) -> None:
    source = retain(engine, "a source")
    derived = retain(engine, "derived from it", sources=(source,))
    supersede(engine, derived, "derived from it, corrected")
    forget(engine, source)
    assert contents(engine) == []


def copy_scopes(folder: Path, name: str) -> None:
    shutil.copytree(folder / "data" / "scopes", folder / name)


def put_back(folder: Path, name: str) -> None:
    shutil.rmtree(folder / "data" / "scopes")
    shutil.copytree(folder / name, folder / "data" / "scopes")


BETWEEN: dict[str, Callable[[Kernel], object]] = {
    "writes": lambda engine: retain(engine, "later"),
    "a forget": lambda engine: forget(engine, retain(engine, "gone")),
    "a rotation": lambda engine: engine.rotate(ALICE),
    "two rotations": lambda engine: (engine.rotate(ALICE), engine.rotate(ALICE)),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_verify_reports_a_file_that_was_rolled_back(tmp_path: Path, between: str) -> None:
    home = SqliteHome(tmp_path)
    engine = home.engine()
    retain(engine, "kept")
    record(engine, 0, "I live in Utrecht")
    engine.close()
    copy_scopes(tmp_path, "old")
    engine = home.engine()
    BETWEEN[between](engine)
    engine.close()
    put_back(tmp_path, "old")
    engine = home.engine()
    problems = engine.verify(ALICE).problems
    assert any("the catalog knows" in one for one in problems), problems
    if "rotation" in between:
        assert any("which is gone" in one for one in problems), problems
    assert not engine.verify_audit(ALICE).sound
    engine.close()


@pytest.mark.parametrize("between", BETWEEN)
def test_a_file_older_than_the_catalog_knows_is_refused_until_it_is_restored(
    tmp_path: Path, between: str
) -> None:
    """It lacks the tombstones of what was forgotten since: a replay would bring that back."""
    home = SqliteHome(tmp_path)
    engine = home.engine()
    retain(engine, "kept")
    doomed = retain(engine, "forgotten later", key="replayed")
    raw, _ = engine.backup(ALICE)
    engine.close()
    copy_scopes(tmp_path, "old")
    engine = home.engine()
    BETWEEN[between](engine)
    forget(engine, doomed)
    engine.close()
    put_back(tmp_path, "old")
    engine = home.engine()
    for verb in (
        lambda: contents(engine),
        lambda: retain(engine, "forgotten later", key="replayed"),
        lambda: engine.recall(ALICE, Recall("forgotten")),
        lambda: engine.rotate(ALICE),
    ):
        with pytest.raises(StoreError, match="older than"):
            verb()
    engine.restore(ALICE, Restore(raw))
    assert contents(engine) == ["kept"]
    assert engine.retain(ALICE, Retain("again", key="replayed")).outcome is Outcome.FORGOTTEN
    assert engine.verify(ALICE).problems == ()
    engine.close()
    engine = home.engine()
    assert contents(engine) == ["kept"]
    retain(engine, "it goes on")
    engine.close()


@pytest.mark.parametrize("how", ["renamed", "copied"])
def test_a_handle_notices_when_its_head_goes_back(tmp_path: Path, how: str) -> None:
    """Also where the catalog was not told yet, and until the newer file is back."""
    home = SqliteHome(tmp_path)
    engine = home.engine()
    retain(engine, "kept")
    engine.close()
    copy_scopes(tmp_path, "old")
    engine = home.engine()
    for number in range(3):
        retain(engine, f"later {number}")
    place = tmp_path / "data" / "scopes"
    (name,) = [path.name for path in place.glob("*.sqlite")]
    assert len(contents(engine)) == 4
    engine._ports.store.settle(engine._open(ALICE).address)
    shutil.copy(place / name, tmp_path / "newer")
    old = tmp_path / "old" / name
    if how == "renamed":
        shutil.copy(old, place / "aside")
        (place / "aside").rename(place / name)
    else:
        (place / name).unlink()
        shutil.copy(old, place / name)
    for _ in range(2):
        with pytest.raises(StoreError, match="older than"):
            retain(engine, "into the old file")
        with pytest.raises(StoreError, match="older than"):
            contents(engine)
    (tmp_path / "newer").rename(place / name)
    assert len(contents(engine)) == 4
    retain(engine, "goes on")
    assert engine.verify(ALICE).problems == ()
    engine.close()


def test_a_write_that_found_no_space_does_not_look_like_a_head_that_went_back(
    tmp_path: Path,
) -> None:
    """Heads of transactions that were undone were never the scope's."""
    home = SqliteHome(tmp_path)
    engine = home.engine()
    retain(engine, "kept")

    def fail(tx: Tx) -> None:
        engine._open(ALICE).trail.record(tx, "note", Actor.SYSTEM)
        raise Full("It is full.")

    for _ in range(3):
        with pytest.raises(Full):
            engine._open(ALICE).write(fail)
        assert contents(engine) == ["kept"]
    retain(engine, "more")
    engine.close()
