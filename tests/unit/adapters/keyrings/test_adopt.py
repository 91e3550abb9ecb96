"""A keyring moves from a key file to a passphrase without losing a key, wherever it dies."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path

import pytest

from scrubjay.adapters.disk import Disk, Step, Watch
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.passphrase import PassphraseWrapper
from scrubjay.engine import Keyring
from scrubjay.model.errors import Conflict, KeyMissing, Locked, SealBroken
from scrubjay.ports import SystemClock
from scrubjay.testing.clock import FakeClock
from tests.support.disk import Killed, PowerCut, Steps
from tests.support.keyrings import CHEAP, PhraseKeyring, file_keyring

PHRASE = "correct horse battery staple"
ONE, TWO = bytes([1]) * 32, bytes([2]) * 32
AT = ("scope", "memory.1")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def locked(keys: Path) -> PhraseKeyring:
    return PhraseKeyring(keys)


def unlocked(keys: Path) -> PhraseKeyring:
    keyring = locked(keys)
    keyring.unlock(PHRASE)
    return keyring


def contents(keys: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in keys.rglob("*") if path.is_file()}


def test_the_keys_of_a_key_file_open_with_the_passphrase(keys: Path) -> None:
    installation = filled(keys)
    keyring = locked(keys)
    recovery = keyring.begin(PHRASE, adopt=True)
    check_filled(keyring, installation)
    check_filled(unlocked(keys), installation)
    locked(keys).phrase.unlock_with_recovery(recovery)
    assert not (keys / "key").exists()


def test_the_old_key_opens_no_slot_any_more(keys: Path) -> None:
    filled(keys)
    old = (keys / "key").read_bytes()
    locked(keys).begin(PHRASE, adopt=True)
    (keys / "passphrase").unlink()
    (keys / "key").write_bytes(old)
    with pytest.raises(SealBroken):
        file_keyring(keys, SystemClock()).get(*AT)


def test_a_key_file_keyring_is_locked_from_then_on(keys: Path) -> None:
    filled(keys)
    opened = file_keyring(keys, SystemClock())
    locked(keys).begin(PHRASE, adopt=True)
    before = contents(keys)
    for call in (
        lambda: opened.get(*AT),
        lambda: opened.add("scope", "memory.9", ONE),
        opened.installation,
        lambda: opened.remove("scope"),
    ):
        with pytest.raises(Locked):
            call()
    assert contents(keys) == before


def test_wherever_it_dies_every_key_is_kept_and_the_next_unlock_ends_it(tmp_path: Path) -> None:
    for number in count():
        keys = tmp_path / str(number)
        installation = filled(keys)
        try:
            adopt(keys, Disk(Steps(die_at=number)))
        except Killed:
            check_after_crash(keys, installation)
        else:
            assert number > 30
            return


def test_after_a_power_cut_anywhere_every_key_is_kept(tmp_path: Path) -> None:
    for number in count():
        home = tmp_path / str(number)
        home.mkdir()
        power = PowerCut(home)
        installation = filled(home / "keys", Disk(power))
        power.die_after(number)
        try:
            adopt(home / "keys", Disk(power))
        except Killed:
            restored = power.restore(tmp_path / f"{number}-restored")
            check_after_crash(restored / "keys", installation)
        else:
            restored = power.restore(tmp_path / f"{number}-restored")
            check_filled(unlocked(restored / "keys"), installation)
            return


def test_a_key_added_meanwhile_is_not_lost(keys: Path) -> None:
    filled(keys)
    added: list[str] = []
    started = threading.Event()

    def add_until_locked() -> None:
        keyring = file_keyring(keys, SystemClock())
        for number in count(100):
            started.set()
            try:
                keyring.add("scope", f"memory.{number}", ONE)
            except Locked:
                return
            added.append(f"memory.{number}")

    adder = threading.Thread(target=add_until_locked)
    adder.start()
    started.wait()
    keyring = locked(keys)
    keyring.begin(PHRASE, adopt=True)
    adder.join()
    assert [keyring.get("scope", purpose) for purpose in added] == [ONE] * len(added)


def test_a_damaged_slot_stops_it_before_anything_is_written(keys: Path) -> None:
    filled(keys)
    (keys / "slots" / "scope" / "memory.1").write_bytes(b"damaged")
    before = contents(keys)
    with pytest.raises(SealBroken):
        adopt(keys, Disk())
    assert contents(keys) == before


def test_a_folder_without_a_key_file_cannot_be_adopted(keys: Path) -> None:
    with pytest.raises(KeyMissing):
        adopt(keys, Disk())
    assert not PassphraseWrapper.present(keys)


def test_the_second_of_two_that_lock_the_keys_is_told_so(keys: Path) -> None:
    file_keyring(keys, SystemClock()).found()
    adopt(keys, Disk())
    for adopting in (True, False):
        with pytest.raises(Conflict, match="already"):
            PassphraseWrapper.create(
                KeysFolder(keys, SystemClock()), "another one", adopt=adopting, cost=CHEAP
            )


def test_a_folder_with_a_key_file_is_adopted_not_created(keys: Path) -> None:
    filled(keys)
    with pytest.raises(Conflict):
        locked(keys).begin(PHRASE)
    assert not PassphraseWrapper.present(keys)


def test_a_damaged_key_file_that_slots_need_is_kept(keys: Path) -> None:
    """The next unlock must not shred a key that an undamaged copy could still replace."""
    filled(keys)
    with pytest.raises(Killed):
        adopt(keys, Disk(stop_before_first_slot()))
    damaged = b"x" + (keys / "key").read_bytes()[1:]
    (keys / "key").write_bytes(damaged)
    with pytest.raises(KeyMissing, match="key file"):
        unlocked(keys)
    assert (keys / "key").read_bytes() == damaged


def filled(keys: Path, disk: Disk | None = None) -> bytes:
    keyring = file_keyring(keys, SystemClock(), disk=disk)
    keyring.found()
    keyring.add(*AT, ONE)
    keyring.add("scope", "lookup", TWO)
    keyring.add("other", "memory.1", TWO)
    return keyring.installation()


def check_filled(keyring: Keyring, installation: bytes) -> None:
    assert keyring.get(*AT) == ONE
    assert keyring.get("scope", "lookup") == TWO
    assert keyring.get("other", "memory.1") == TWO
    assert keyring.installation() == installation


def check_after_crash(keys: Path, installation: bytes) -> None:
    if not PassphraseWrapper.present(keys):
        check_filled(file_keyring(keys, SystemClock()), installation)
        adopt(keys, Disk())
    check_filled(unlocked(keys), installation)
    assert not (keys / "key").exists()
    check_filled(unlocked(keys), installation)


def adopt(keys: Path, disk: Disk) -> None:
    PhraseKeyring(keys, FakeClock("adopt"), disk).begin(PHRASE, adopt=True)


def stop_before_first_slot() -> Watch:
    def watch(step: Step, path: Path) -> None:
        if step is Step.CREATE and path.parent.parent.name == "slots":
            raise Killed

    return watch
