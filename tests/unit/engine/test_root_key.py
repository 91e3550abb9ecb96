"""Generations of the root key: what was wrapped by one that is destroyed opens no more."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from scrubjay.adapters.keyrings.derived import DerivedWrapper
from scrubjay.adapters.keyrings.file import FileWrapper, LocalWrapper
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.engine import Kernel, Keyring, Policy
from scrubjay.model.errors import InvalidRequest, SealBroken
from scrubjay.model.requests import Browse, Forget, Retain
from scrubjay.model.scope import Scope
from scrubjay.testing.clock import FakeClock
from tests.support.engines import MemoryHome
from tests.support.keyrings import PhraseKeyring
from tests.support.memory_keyring import MemoryWrapper
from tests.unit.engine.scene import ALICE, BOB

PHRASE = "correct horse battery staple"


def phrase_keyring(keys: Path) -> PhraseKeyring:
    keyring = PhraseKeyring(keys)
    keyring.begin(PHRASE)
    return keyring


def wrapper(kind: str, folder: KeysFolder) -> LocalWrapper:
    if kind == "passphrase":
        return phrase_keyring(folder.directory).phrase
    made = {"file": FileWrapper(folder), "memory": MemoryWrapper(folder.clock.random)}
    return DerivedWrapper(FileWrapper(folder)) if kind == "derived" else made[kind]


KINDS = ["memory", "file", "passphrase", "derived"]


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryHome:
    home = MemoryHome()
    folder = KeysFolder(tmp_path / "keys", FakeClock("keyring"))
    home.keyring = Keyring(folder, wrapper(request.param, folder), home.clock)
    return home


def contents(engine: Kernel, scope: Scope = ALICE) -> list[str]:
    return [memory.content for memory in engine.browse(scope, Browse())]


def test_after_a_rotation_everything_opens_and_old_slots_are_noise(home: MemoryHome) -> None:
    engine = home.engine()
    for scope in (ALICE, BOB):
        engine.retain(scope, Retain(f"tea of {scope.owner}"))
    before, generation = home.slots(), home.keyring.generation
    done = engine.rotate_root()
    assert (done.generation, done.unopened) == (generation + 1, 0)
    assert done.rewrapped == sum(map(len, before.values()))
    assert list(home.keyring.wrapper.generations()) == [generation + 1]
    for scope in (ALICE, BOB):
        assert (
            contents(home.engine(), scope) == contents(engine, scope) == [f"tea of {scope.owner}"]
        )
    for address, slots in before.items():
        for purpose, slot in slots.items():
            home.keyring.slots.exchange(address, purpose, home.slots()[address][purpose], slot)
    with pytest.raises(SealBroken):
        home.keyring.installation()


def test_a_process_that_has_the_scope_open_goes_on(home: MemoryHome) -> None:
    engine, other = home.engine(), home.engine()
    engine.retain(ALICE, Retain("tea"))
    assert contents(other) == ["tea"]
    engine.rotate_root()
    other.retain(ALICE, Retain("coffee"))
    other.rotate(ALICE)
    engine.rotate_root()
    assert sorted(contents(home.engine())) == ["coffee", "tea"]


def test_a_rotation_that_was_cut_off_is_brought_to_its_end(home: MemoryHome) -> None:
    engine = home.engine()
    engine.retain(ALICE, Retain("tea"))
    begun = home.keyring.wrapper.begin()
    assert contents(home.engine()) == ["tea"]
    done = engine.rotate_root()
    assert done.generation == begun
    assert list(home.keyring.wrapper.generations()) == [begun]
    assert contents(home.engine()) == ["tea"]


def test_the_root_key_in_use_is_never_destroyed(home: MemoryHome) -> None:
    home.engine().retain(ALICE, Retain("tea"))
    with pytest.raises(InvalidRequest):
        home.keyring.wrapper.destroy(home.keyring.generation)
    assert contents(home.engine()) == ["tea"]


def test_a_past_root_key_is_kept_for_its_time_and_the_receipt_says_until_when() -> None:
    home = MemoryHome()
    policy = Policy(root_days=30, root_keep_days=7)
    engine = home.engine(policy)
    engine.retain(ALICE, Retain("tea", id="tea"))
    receipt = engine.forget(ALICE, Forget(ids=("tea",)))
    today = home.clock.now().date()
    assert (receipt.generation, receipt.noise_from) == (1, today + timedelta(days=37))
    assert engine.rotate_root().noise_from == today + timedelta(days=7)
    assert list(home.keyring.wrapper.generations()) == [1, 2]
    assert any("Root key 1 is there" in one for one in engine.verify_erased(receipt).seen)
    home.clock.advance(days=7)
    engine.rotate_root()
    assert 1 not in home.keyring.wrapper.generations()
    report = engine.verify_erased(receipt)
    assert report.sound
    assert any(f"noise since {today + timedelta(days=7)}" in one for one in report.seen)
    assert any("cannot be seen" in one for one in report.seen)


def test_a_receipt_without_a_schedule_names_the_generation_alone() -> None:
    home = MemoryHome()
    engine = home.engine()
    engine.retain(ALICE, Retain("tea", id="tea"))
    receipt = engine.forget(ALICE, Forget(ids=("tea",)))
    assert (receipt.generation, receipt.noise_from) == (1, None)
    seen = engine.verify_erased(replace(receipt, generation=0)).seen
    assert any("no byte of them is left" in one for one in seen)


def test_a_new_recovery_key_opens_the_keyring_after_a_rotation(tmp_path: Path) -> None:
    keyring = phrase_keyring(tmp_path / "keys")
    keyring.found()
    before = keyring.installation()
    keyring.wrapper.begin()
    keyring.retire()
    assert keyring.phrase.renewed is not None
    again = PhraseKeyring(tmp_path / "keys")
    again.phrase.unlock_with_recovery(keyring.phrase.renewed)
    assert again.installation() == before
    with pytest.raises(InvalidRequest):
        again.wrapper.begin()
    again.phrase.lock()
    again.unlock(PHRASE)
    assert again.installation() == before


def test_a_derived_wrapping_key_opens_the_slots_of_its_owner_alone(tmp_path: Path) -> None:
    folder = KeysFolder(tmp_path / "keys", FakeClock("keyring"))
    keyring = Keyring(folder, DerivedWrapper(FileWrapper(folder)), folder.clock)
    keyring.found()
    keyring.add("address", "lookup", bytes(range(32)), ALICE)
    assert keyring.get("address", "lookup", ALICE) == bytes(range(32))
    with pytest.raises(SealBroken):
        keyring.get("address", "lookup", BOB)
    with pytest.raises(SealBroken):
        Keyring(folder, FileWrapper(folder), folder.clock).get("address", "lookup", ALICE)
