"""What a scope is worth after its file was lost, rolled back, or could not be copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scrubjay.engine import Engine
from scrubjay.model.errors import KeyMissing
from scrubjay.model.requests import Restore
from tests.support.engines import MemoryHome, SqliteHome
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
    with pytest.raises(KeyMissing, match="which is gone"):
        contents(home.engine())


def test_a_restore_takes_the_place_of_rows_older_than_their_keys(tmp_path: Path) -> None:
    home = SqliteHome(tmp_path)
    raw = _roll_back(home, tmp_path)
    engine = home.engine()
    engine.restore(ALICE, Restore(raw))
    assert contents(engine) == ["kept"]
    assert engine.verify(ALICE).problems == ()


def test_a_backup_that_cannot_be_put_away_is_not_noted(engine: Engine, home: MemoryHome) -> None:
    retain(engine, "something")

    def fail(_: bytes) -> None:
        raise OSError("the place is gone")

    with pytest.raises(OSError, match="gone"):
        engine.backup(ALICE, deliver=fail)
    assert home.store.catalog.backups(address(home)) == []
    assert not [p for p in home.keyring.purposes(address(home)) if p.startswith("backup")]


def test_the_correction_of_something_derived_goes_with_its_source(engine: Engine) -> None:
    source = retain(engine, "a source")
    derived = retain(engine, "derived from it", sources=(source,))
    supersede(engine, derived, "derived from it, corrected")
    forget(engine, source)
    assert contents(engine) == []
