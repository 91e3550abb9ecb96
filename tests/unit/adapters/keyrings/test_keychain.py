"""Root keys in the keyring of a system: moving there, what is left, and what cannot be reached."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import scrubjay
from scrubjay import bootstrap, settings
from scrubjay.adapters.keyrings import keychain
from scrubjay.adapters.keyrings.file import KEY_FILE
from scrubjay.model.errors import (
    Conflict,
    InvalidRequest,
    KeyMissing,
    KeyUnavailable,
    Locked,
    SealBroken,
)
from scrubjay.ports import SystemClock
from tests.support.keyrings import file_backend, file_keyring


class Watched:
    """A keyring of a system that can be closed, and counts what it is asked."""

    def __init__(self, path: Path) -> None:
        self._backend = file_backend(path)
        self.closed = False
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        if self.closed:
            raise RuntimeError("the bus is gone")
        self.asked += 1
        return getattr(self._backend, name)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The keyring of this system, as `bootstrap` finds it: a real one, in a file."""
    watched = Watched(tmp_path / "system")
    monkeypatch.setattr(keychain, "system_backend", lambda: watched)
    return watched


@pytest.fixture
def home(tmp_path: Path) -> settings.Settings:
    return settings.at_home(tmp_path / "home")


def told(home: settings.Settings) -> list[str]:
    engine = bootstrap.build(home)
    try:
        scope = scrubjay.Scope("local", "alice")
        return [one.content for one in scrubjay.Jay(engine, scope, shared=True).browse()]
    finally:
        engine.close()


def remember(home: settings.Settings, text: str) -> None:
    with scrubjay.open("alice", home=home.data.parent) as jay:
        jay.retain(text)


def test_a_key_file_is_moved_and_older_copies_of_the_keys_open_nothing(
    home: settings.Settings, system: Watched, tmp_path: Path
) -> None:
    remember(home, "tea")
    shutil.copytree(home.keys, tmp_path / "copy")
    bootstrap.put_in_keychain(home, SystemClock())
    assert told(home) == ["tea"]
    remember(home, "coffee")
    assert sorted(told(home)) == ["coffee", "tea"]
    assert not (home.keys / KEY_FILE).exists()
    old = file_keyring(tmp_path / "copy", SystemClock())
    old.installation()
    shutil.rmtree(tmp_path / "copy" / "slots")
    shutil.copytree(home.keys / "slots", tmp_path / "copy" / "slots")
    with pytest.raises(SealBroken):
        old.installation()


def test_a_home_begins_in_the_keyring_of_the_system(
    home: settings.Settings, system: Watched
) -> None:
    bootstrap.put_in_keychain(home, SystemClock())
    remember(home, "tea")
    assert told(home) == ["tea"]
    assert not (home.keys / KEY_FILE).exists()


def test_a_move_that_was_cut_off_is_ended_by_the_next_opening(
    home: settings.Settings, system: Watched
) -> None:
    remember(home, "tea")
    folder = bootstrap.keys_folder(home, SystemClock())
    keychain.KeychainWrapper.create(folder, system)  # and killed before a slot was wrapped anew
    assert (home.keys / KEY_FILE).exists()
    assert told(home) == ["tea"]
    assert not (home.keys / KEY_FILE).exists()


def test_a_copy_of_the_whole_home_opens_nothing_without_the_system(
    home: settings.Settings, system: Watched, tmp_path: Path
) -> None:
    bootstrap.put_in_keychain(home, SystemClock())
    remember(home, "tea")
    shutil.copytree(home.data.parent, tmp_path / "copy")
    system._backend = file_backend(tmp_path / "another system")
    with pytest.raises(KeyMissing, match="not in the keyring"):
        told(settings.at_home(tmp_path / "copy"))


def test_a_closed_keyring_is_unavailable_and_nothing_is_lost(
    home: settings.Settings, system: Watched
) -> None:
    bootstrap.put_in_keychain(home, SystemClock())
    remember(home, "tea")
    system.closed = True
    with pytest.raises(KeyUnavailable):
        told(home)
    system.closed = False
    assert told(home) == ["tea"]


def test_a_process_asks_the_system_once_for_a_root_key(
    home: settings.Settings, system: Watched
) -> None:
    bootstrap.put_in_keychain(home, SystemClock())
    engine = bootstrap.build(home)
    jay = scrubjay.Jay(engine, scrubjay.Scope("local", "alice"))
    engine.open(jay.scope)
    jay.retain("tea")
    before = system.asked
    for number in range(20):
        engine.open(scrubjay.Scope("acme", f"owner-{number}"))
        jay.retain(f"tea {number}")
    assert system.asked == before
    jay.close()


def test_a_process_that_began_before_the_move_makes_no_key_file(
    home: settings.Settings, system: Watched
) -> None:
    before = file_keyring(home.keys, SystemClock())
    before.found()
    bootstrap.put_in_keychain(home, SystemClock())
    with pytest.raises(Locked, match="keyring of the operating system"):
        before.found()
    assert not (home.keys / KEY_FILE).exists()


def test_moving_twice_or_from_a_passphrase_is_refused(
    home: settings.Settings, system: Watched, tmp_path: Path
) -> None:
    bootstrap.put_in_keychain(home, SystemClock())
    with pytest.raises(Conflict):
        bootstrap.put_in_keychain(home, SystemClock())
    other = settings.at_home(tmp_path / "other")
    bootstrap.put_under_passphrase(other, SystemClock(), "correct horse battery staple")
    with pytest.raises(Locked):
        bootstrap.put_in_keychain(other, SystemClock())


def test_only_a_keyring_of_a_system_is_taken(home: settings.Settings) -> None:
    """Here there is none: what the `keyring` package falls back to is a plain file, or nothing."""
    with pytest.raises(InvalidRequest, match="No keyring of the operating system"):
        bootstrap.put_in_keychain(home, SystemClock())
    assert not home.keys.exists()
