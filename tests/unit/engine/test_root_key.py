"""Generations of the root key: what was wrapped by one that is destroyed opens no more."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from scrubjay.adapters.keyrings.file import DerivedWrapper, FileWrapper, LocalWrapper
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.keychain import KeychainWrapper
from scrubjay.engine import Kernel, Keyring, Policy
from scrubjay.engine.scope.scope_keys import ScopeKeys
from scrubjay.model.errors import InvalidRequest, SealBroken
from scrubjay.model.requests import Browse, Destroy, Forget, Retain
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Collection
from scrubjay.model.scope import Scope
from scrubjay.ports import SlotPlace
from scrubjay.testing.clock import FakeClock
from tests.support.engines import MemoryHome, RemoteHome
from tests.support.keyrings import PhraseKeyring, file_backend
from tests.support.memory_cluster import Fate, still
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
    if kind == "keychain":
        return KeychainWrapper.create(folder, file_backend(folder.directory / "system"))
    made = {"file": FileWrapper(folder), "memory": MemoryWrapper(folder.clock.random)}
    return DerivedWrapper(FileWrapper(folder)) if kind == "derived" else made[kind]


KINDS = ["memory", "file", "passphrase", "derived", "keychain"]


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


SCHEDULE = Policy(root_days=30, root_keep_days=7)


def forgotten(engine: Kernel, id: str = "tea") -> Erasure:
    engine.retain(ALICE, Retain("tea", id=id))
    return engine.forget(ALICE, Forget(ids=(id,)))


def generations(home: MemoryHome) -> list[int]:
    return list(home.keyring.wrapper.generations())


def test_the_date_in_a_receipt_is_kept_by_whoever_writes_then() -> None:
    """The schedule needs nobody: the first write of a day rotates, and destroys what is over."""
    home = MemoryHome()
    receipt = forgotten(home.engine(SCHEDULE))
    begun = home.clock.now().date()
    assert (receipt.generation, receipt.noise_from) == (1, begun + timedelta(days=37))
    home.clock.advance(days=29)
    home.engine(SCHEDULE).retain(ALICE, Retain("coffee"))
    assert generations(home) == [1]
    home.clock.advance(days=1)
    engine = home.engine(SCHEDULE)
    assert contents(engine) == ["coffee"]
    assert generations(home) == [1], "who only reads changes nothing"
    engine.retain(ALICE, Retain("cocoa"))
    assert generations(home) == [1, 2]
    assert any("Root key 1 is there" in one for one in engine.verify_erased(ALICE, receipt).seen)
    home.clock.advance(days=7)
    assert home.clock.now().date() == receipt.noise_from
    engine.retain(ALICE, Retain("milk"))
    assert generations(home) == [2], "the same process, the next day it writes on"
    report = engine.verify_erased(ALICE, receipt)
    assert report.sound
    assert any(f"noise from {receipt.noise_from}" in one for one in report.seen)
    assert any("cannot be seen" in one for one in report.seen)
    assert forgotten(engine).noise_from == begun + timedelta(days=30 + 37)


def test_a_rotation_that_comes_late_does_not_put_off_the_date_of_receipts() -> None:
    home = MemoryHome()
    receipt = forgotten(home.engine(SCHEDULE))
    home.clock.advance(days=34)
    home.engine(SCHEDULE).retain(ALICE, Retain("coffee"))
    assert generations(home) == [1, 2]
    home.clock.advance(days=3)
    assert home.clock.now().date() == receipt.noise_from
    home.engine(SCHEDULE).retain(ALICE, Retain("cocoa"))
    assert generations(home) == [2]
    home.clock.advance(days=90)
    home.engine(SCHEDULE).retain(ALICE, Retain("milk"))
    assert generations(home) == [3], "nothing is left to wait for"
    assert len(contents(home.engine())) == 3


def test_a_service_keeps_the_schedule_though_nobody_writes() -> None:
    home = MemoryHome()
    engine = home.engine(SCHEDULE)
    forgotten(engine)
    for days in (30, 7):
        home.clock.advance(days=days)
        engine.upkeep()
    assert generations(home) == [2]


def test_of_two_processes_that_find_a_root_key_due_one_rotates() -> None:
    home = MemoryHome()
    engine = home.engine(SCHEDULE)
    forgotten(engine)
    home.clock.advance(days=30)
    now = home.clock.now().timestamp()
    home.store.shared.exchange("lease/root", None, b"another", now=now, until=now + 600)
    engine.upkeep()
    assert generations(home) == [1]
    home.clock.advance(seconds=600)
    home.engine(SCHEDULE).upkeep()
    engine.upkeep()
    assert generations(home) == [1, 2]


def test_a_past_root_key_that_is_asked_for_by_hand_is_destroyed_in_time() -> None:
    home = MemoryHome()
    policy = Policy(root_keep_days=7)
    engine = home.engine(policy)
    engine.retain(ALICE, Retain("tea"))
    assert engine.rotate_root().noise_from == home.clock.now().date() + timedelta(days=7)
    home.clock.advance(days=7)
    engine.retain(ALICE, Retain("coffee"))
    assert generations(home) == [2]


def test_a_passphrase_is_on_no_schedule_and_promises_no_date(tmp_path: Path) -> None:
    """Its rotation makes a recovery key, which somebody has to keep."""
    home = MemoryHome()
    folder = KeysFolder(tmp_path / "keys", FakeClock("keyring"))
    home.keyring = Keyring(folder, wrapper("passphrase", folder), home.clock)
    receipt = forgotten(home.engine(SCHEDULE))
    assert receipt.noise_from is None
    home.clock.advance(days=60)
    forgotten(home.engine(SCHEDULE))
    assert generations(home) == [1]


def test_a_root_key_that_a_failover_could_need_is_not_destroyed() -> None:
    home = RemoteHome(synchronous=False)
    engine = home.engine()
    engine.retain(ALICE, Retain("tea"))
    home.cluster.replicate()
    engine.rotate_root()
    assert generations(home) == [1, 2]
    home.cluster.fail_over()
    assert contents(home.engine()) == ["tea"], "its slots are under the first one again"
    home.engine().rotate_root()
    assert generations(home) == [1, 2]
    home.cluster.replicate()
    home.engine().upkeep()
    assert generations(home) == [2]
    home.cluster.fail_over()
    assert contents(home.engine()) == ["tea"]


def test_a_root_key_that_opens_slots_of_no_scope_is_not_destroyed_too_early_either() -> None:
    """The installation key is in such a slot: without it no name of any scope opens."""
    home = RemoteHome(synchronous=False)
    engine = home.engine()
    engine.retain(ALICE, Retain("tea"))
    engine.destroy(ALICE, Destroy(confirm=str(ALICE)))
    home.cluster.replicate()
    engine.rotate_root()
    assert generations(home) == [1, 2]
    home.cluster.fail_over()
    again = home.engine()
    again.open(ALICE, anew=True)
    home.cluster.replicate()
    again.upkeep()
    assert generations(home) == [1, 2], "the slots of the standby were under the first one again"
    again.rotate_root()
    home.cluster.replicate()
    again.upkeep()
    assert len(generations(home)) == 1


def test_a_failover_at_any_call_of_a_rotation_loses_no_slot() -> None:
    """An older copy has slots of the root key before, and says of itself that all of it lasts."""
    asked = at = 0
    while at <= asked:
        at, asked = at + 1, 0
        home = RemoteHome(at, synchronous=False)
        home.engine().retain(ALICE, Retain("tea"))
        home.engine().retain(BOB, Retain("coffee"))
        home.cluster.replicate()

        def network(name: str, home: RemoteHome = home, at: int = at) -> Fate:
            nonlocal asked
            asked += 1
            if asked == at:
                home.cluster.fail_over()
            return Fate.ARRIVES

        home.network = network
        home.engine().rotate_root()
        home.network = still
        assert contents(home.engine()) == ["tea"], f"lost at call {at}"
        home.engine().rotate_root()
        home.cluster.replicate()
        home.engine().upkeep()
        home.cluster.fail_over()
        assert contents(home.engine()) == ["tea"]
        assert len(generations(home)) == 1
    assert at > 20


def test_a_receipt_without_a_schedule_names_the_generation_alone() -> None:
    home = MemoryHome()
    engine = home.engine()
    engine.retain(ALICE, Retain("tea", id="tea"))
    receipt = engine.forget(ALICE, Forget(ids=("tea",)))
    assert (receipt.generation, receipt.noise_from) == (1, None)
    seen = engine.verify_erased(ALICE, replace(receipt, generation=0)).seen
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


def file_home(keys: Path) -> MemoryHome:
    home, folder = MemoryHome(), KeysFolder(keys, FakeClock("keyring"))
    home.keyring = Keyring(folder, FileWrapper(folder), home.clock)
    return home


def test_a_slot_that_does_not_open_for_a_moment_is_under_the_next_root_key_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As beside a rotation that overwrites the key file, or the slot; the old one is destroyed."""
    home = file_home(tmp_path)
    home.engine().retain(ALICE, Retain(content="tea"))
    wrapper, failed = home.keyring.wrapper, set[bytes]()
    rewrap = type(wrapper).rewrap

    def once(self: LocalWrapper, place: SlotPlace, slot: bytes) -> bytes:
        if slot not in failed:
            failed.add(slot)
            raise SealBroken("Damaged.")
        return rewrap(self, place, slot)

    wrapper.begin()
    monkeypatch.setattr(type(wrapper), "rewrap", once)
    home.keyring.retire()
    assert failed
    assert len(wrapper.generations()) == 1
    assert contents(home.engine()) == ["tea"]


def test_a_slot_that_others_exchange_meanwhile_is_under_the_next_root_key_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rotation that was overtaken puts it under a root key that is destroyed as well."""
    home = file_home(tmp_path)
    home.engine().retain(ALICE, Retain(content="tea"))
    slots, wrapper = home.keyring.slots, home.keyring.wrapper
    exchange, overtaken = type(slots).exchange, dict[tuple[str, str], bytes]()
    wrapper.begin()
    for address in home.keyring.addresses():
        for purpose, slot in slots.read(address).items():
            overtaken[address, purpose] = wrapper.rewrap(SlotPlace(address, purpose), slot)
    wrapper.begin()

    def late(self: KeysFolder, address: str, purpose: str, old: bytes, new: bytes) -> bool:
        if (second := overtaken.pop((address, purpose), None)) is not None:
            assert exchange(self, address, purpose, old, second)
        return exchange(self, address, purpose, old, new)

    monkeypatch.setattr(type(slots), "exchange", late)
    home.keyring.retire()
    assert not overtaken
    assert len(wrapper.generations()) == 1
    assert contents(home.engine()) == ["tea"]


def test_a_key_file_that_is_being_overwritten_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opened it before another process put the next in its place may read noise."""
    wrapper = FileWrapper(KeysFolder(tmp_path, FakeClock("keyring")))
    wrapper.found()
    roots, file = wrapper.roots(), KeysFolder.file

    def noise(self: KeysFolder, name: str) -> bytes | None:
        if name != "key":
            return file(self, name)
        monkeypatch.undo()
        return b"\x91" * 32

    monkeypatch.setattr(KeysFolder, "file", noise)
    assert wrapper.roots() == roots
    (tmp_path / "key").write_bytes(b"\x91" * 32)
    with pytest.raises(SealBroken, match="damaged"):
        wrapper.begin()


def test_a_slot_that_waits_for_its_transaction_until_its_root_key_has_ended_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rotation does not see it before the commit: the writer wraps it anew after that."""
    home = RemoteHome()
    engine, other, make = home.engine(), home.engine(), ScopeKeys.make
    engine.retain(ALICE, Retain("tea"))

    def late(self: ScopeKeys, collection: Collection, epoch: int) -> object:
        made = make(self, collection, epoch)
        monkeypatch.undo()
        assert other.rotate_root().unopened == 0
        return made

    monkeypatch.setattr(ScopeKeys, "make", late)
    engine.rotate(ALICE)
    assert generations(home) == [2]
    home.engine().retain(ALICE, Retain("coffee"))
    assert sorted(contents(home.engine())) == ["coffee", "tea"]
    assert other.rotate_root().unopened == 0


def test_a_key_that_another_process_added_first_is_asked_for_again_if_it_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token in files may not show its root key yet; a rotation may have wrapped it anew."""
    keyring = file_home(tmp_path).keyring
    keyring.found()
    first = keyring.add("address", "lookup", bytes(32))

    def once(_: LocalWrapper, place: SlotPlace, slot: bytes) -> bytes:
        monkeypatch.undo()
        raise SealBroken("The root key of this key slot was destroyed.")

    monkeypatch.setattr(FileWrapper, "unwrap", once)
    assert keyring.add("address", "lookup", bytes([1]) * 32) == first
