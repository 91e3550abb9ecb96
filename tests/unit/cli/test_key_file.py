"""The key in a file: made once, good for one scope, and nobody else's to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrubjay.access import Grant, Keys
from scrubjay.cli.serve import keep
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from tests.support.engines import MemoryHome

ALICE = Scope("acme", "alice")


@pytest.fixture
def keys(engine: Kernel, home: MemoryHome) -> Keys:
    keys = Keys(engine, home.clock)
    keys.signing_secret()  # as a service does: its scope is there then
    return keys


@pytest.fixture
def file(tmp_path: Path, keys: Keys) -> Path:
    """A file that a key was put into."""
    keep(tmp_path / "key", keys, ALICE)
    return tmp_path / "key"


def test_it_is_made_for_one_scope_and_its_person_and_only_they_may_read_it(
    file: Path, keys: Keys
) -> None:
    (key,) = keys.all()
    assert keys.find(file.read_text().strip()) == key
    assert (key.only_scope, key.actor, key.grants) == (ALICE, Actor.USER, tuple(Grant))
    assert file.stat().st_mode & 0o777 == 0o600


def test_one_that_is_there_stays(file: Path, keys: Keys) -> None:
    before = file.read_bytes()
    keep(file, keys, ALICE)
    assert file.read_bytes() == before
    assert len(keys.all()) == 1


def test_one_that_is_no_good_is_refused_and_left_alone(file: Path, keys: Keys) -> None:
    with pytest.raises(InvalidRequest, match="not valid for acme/bob"):
        keep(file, keys, Scope("acme", "bob"))
    keys.revoke(keys.all()[0].id)
    with pytest.raises(InvalidRequest, match="not valid for"):
        keep(file, keys, ALICE)
    file.write_bytes(b"\xff not a key")
    with pytest.raises(InvalidRequest, match="not valid for"):
        keep(file, keys, ALICE)
    assert file.read_bytes() == b"\xff not a key"
    assert keys.all() == ()


def test_its_folder_is_made_and_where_that_fails_so_is_no_key(tmp_path: Path, keys: Keys) -> None:
    keep(tmp_path / "a" / "b" / "key", keys, ALICE)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest, match="cannot be made"):
        keep(tmp_path / "file" / "b" / "key", keys, ALICE)
    assert len(keys.all()) == 1


def test_one_that_others_may_read_is_refused(file: Path, keys: Keys) -> None:
    file.chmod(0o640)
    with pytest.raises(InvalidRequest, match="Other users can read"):
        keep(file, keys, ALICE)
