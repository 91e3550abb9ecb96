"""What the passphrase keyring promises beyond the contract: locked, recoverable, adoptable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from scrubjay.adapters.disk import Disk, Step
from scrubjay.adapters.keyrings.folder import KeysFolder, write_line
from scrubjay.adapters.keyrings.passphrase import PassphraseWrapper
from scrubjay.model.errors import Conflict, InvalidRequest, KeyMissing, Locked, SealBroken
from scrubjay.ports import SystemClock
from tests.support.disk import Killed, Steps
from tests.support.keyrings import CHEAP, PhraseKeyring

PHRASE = "correct horse battery staple"
ONE, TWO = bytes([1]) * 32, bytes([2]) * 32
AT = ("scope", "memory.1")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def create(keys: Path) -> tuple[PhraseKeyring, str]:
    keyring = PhraseKeyring(keys)
    return keyring, keyring.begin(PHRASE)


def locked(keys: Path) -> PhraseKeyring:
    return PhraseKeyring(keys)


def unlocked(keys: Path, phrase: str = PHRASE) -> PhraseKeyring:
    keyring = locked(keys)
    keyring.unlock(phrase)
    return keyring


def contents(keys: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in keys.rglob("*") if path.is_file()}


class TestLocked:
    def test_every_call_on_a_locked_keyring_raises_locked(self, keys: Path) -> None:
        create(keys)[0].add(*AT, ONE)
        before = contents(keys)
        keyring = locked(keys)
        calls: tuple[Callable[[], object], ...] = (
            keyring.installation,
            lambda: keyring.add(*AT, TWO),
            lambda: keyring.get(*AT),
            lambda: keyring.delete(*AT),
            lambda: keyring.purposes("scope"),
            lambda: keyring.remove("scope"),
            lambda: keyring.phrase.change_passphrase("another"),
            keyring.phrase.renew_recovery,
        )
        for call in calls:
            with pytest.raises(Locked):
                call()
        assert contents(keys) == before

    def test_another_passphrase_does_not_open_it(self, keys: Path) -> None:
        create(keys)[0].add(*AT, ONE)
        before = contents(keys)
        keyring = locked(keys)
        with pytest.raises(Locked, match="That passphrase does not open it"):
            keyring.unlock(PHRASE + " ")
        with pytest.raises(Locked):
            keyring.get(*AT)
        assert contents(keys) == before

    def test_an_empty_passphrase_is_refused(self, keys: Path) -> None:
        with pytest.raises(InvalidRequest):
            PhraseKeyring(keys).begin("")
        assert not PassphraseWrapper.present(keys)

    def test_locking_overwrites_the_master_key(self, keys: Path) -> None:
        keyring, _ = create(keys)
        held = keyring.phrase._master
        assert held is not None
        assert any(held)
        keyring.phrase.lock()
        assert not any(held)
        with pytest.raises(Locked):
            keyring.get(*AT)

    def test_a_locked_keyring_opens_again(self, keys: Path) -> None:
        keyring, _ = create(keys)
        keyring.add(*AT, ONE)
        keyring.phrase.lock()
        keyring.phrase.lock()
        keyring.unlock(PHRASE)
        assert keyring.get(*AT) == ONE

    def test_an_accent_typed_in_two_keys_is_the_same_passphrase(self, keys: Path) -> None:
        PhraseKeyring(keys).begin("caf\u00e9")
        unlocked(keys, "cafe\u0301")

    def test_a_folder_without_a_passphrase_says_so(self, keys: Path) -> None:
        assert not PassphraseWrapper.present(keys)
        with pytest.raises(KeyMissing, match="passphrase file"):
            locked(keys).unlock(PHRASE)

    def test_a_second_create_changes_nothing(self, keys: Path) -> None:
        create(keys)[0].add(*AT, ONE)
        before = contents(keys)
        with pytest.raises((Conflict, KeyMissing)):
            create(keys)
        assert contents(keys) == before


class TestChange:
    def test_the_new_passphrase_opens_it_and_the_old_one_does_not(self, keys: Path) -> None:
        keyring, recovery = create(keys)
        keyring.add(*AT, ONE)
        slots = contents(keys / "slots")
        keyring.phrase.change_passphrase("another one")
        assert unlocked(keys, "another one").get(*AT) == ONE
        with pytest.raises(Locked):
            unlocked(keys)
        assert contents(keys / "slots") == slots
        opened = locked(keys)
        opened.phrase.unlock_with_recovery(recovery)
        assert opened.get(*AT) == ONE

    def test_the_old_passphrase_file_was_overwritten(self, keys: Path) -> None:
        keyring, _ = create(keys)
        before = (keys / "passphrase").read_bytes()
        (keys / "second").hardlink_to(keys / "passphrase")
        keyring.phrase.change_passphrase("another one")
        assert (keys / "second").read_bytes() != before

    def test_a_change_that_dies_leaves_the_old_passphrase_or_the_new(self, tmp_path: Path) -> None:
        for number in count():
            keys = tmp_path / str(number)
            create(keys)[0].add(*AT, ONE)
            dying = PhraseKeyring(keys, disk=Disk(_after_reading(number)))
            dying.unlock(PHRASE)
            try:
                dying.phrase.change_passphrase("another one")
            except Killed:
                assert _opens(keys, PHRASE) != _opens(keys, "another one")
            else:
                assert _opens(keys, "another one")
                return

    def test_of_two_changes_at_once_one_is_refused(self, keys: Path) -> None:
        keyring, recovery = create(keys)
        keyring.add(*AT, ONE)
        first, second, third = unlocked(keys), unlocked(keys), locked(keys)
        third.phrase.unlock_with_recovery(recovery)
        first.phrase.change_passphrase("the first")
        for late in (second, third):
            with pytest.raises(Conflict):
                late.phrase.change_passphrase("the second")
        assert _opens(keys, "the first")
        assert not _opens(keys, "the second")
        second.unlock("the first")
        second.phrase.change_passphrase("the second")
        assert _opens(keys, "the second")

    def test_who_changed_it_may_change_it_again(self, keys: Path) -> None:
        keyring, _ = create(keys)
        keyring.add(*AT, ONE)
        for phrase in ("one", "two", "three"):
            keyring.phrase.change_passphrase(phrase)
        assert _opens(keys, "three")

    def test_of_two_renewals_at_once_one_is_refused(self, keys: Path) -> None:
        create(keys)
        first, second = unlocked(keys), unlocked(keys)
        printed = first.phrase.renew_recovery()
        with pytest.raises(Conflict):
            second.phrase.renew_recovery()
        locked(keys).phrase.unlock_with_recovery(printed)

    @pytest.mark.parametrize("name", ["passphrase", "recovery"])
    def test_a_file_exchanged_while_it_is_read_is_read_again(self, keys: Path, name: str) -> None:
        """Who opened the old file may read what it was overwritten with."""
        keyring, recovery = create(keys)
        keyring.phrase.change_passphrase("another one")
        torn, reads = (keys / name).read_bytes(), count()

        def tear(step: Step, path: Path) -> None:
            if step is Step.READ and path.name == name:
                path.write_bytes(torn if next(reads) else bytes(len(torn)))

        opened = PhraseKeyring(keys, disk=Disk(tear))
        if name == "passphrase":
            opened.unlock("another one")
        else:
            opened.phrase.unlock_with_recovery(recovery)

    def test_a_file_that_is_exchanged_again_and_again_is_read_under_its_lock(
        self, keys: Path
    ) -> None:
        """Several processes that change it may tear each read that waits for none of them."""
        create(keys)
        whole, held = (keys / "passphrase").read_bytes(), list[bool]()

        class Watched(KeysFolder):
            @contextmanager
            def changing(self, *, shared: bool = False) -> Iterator[None]:
                with super().changing(shared=shared):
                    held.append(shared)
                    yield
                    held.pop()

        def tear(step: Step, path: Path) -> None:
            if step is Step.READ and path.name == "passphrase":
                path.write_bytes(whole if held else bytes(len(whole)))

        folder = Watched(keys, SystemClock(), Disk(tear))
        PassphraseWrapper(folder, cost=CHEAP).unlock(PHRASE)

    def test_what_a_killed_change_left_is_overwritten_by_the_next(self, keys: Path) -> None:
        keyring, _ = create(keys)
        draft = keys / ".new.passphrase.0"
        draft.write_bytes((keys / "passphrase").read_bytes())
        (keys / "second").hardlink_to(draft)
        before = draft.read_bytes()
        keyring.phrase.change_passphrase("another one")
        assert not draft.exists()
        assert (keys / "second").read_bytes() != before


class TestRecovery:
    def test_the_printed_key_opens_it(self, keys: Path) -> None:
        keyring, recovery = create(keys)
        keyring.add(*AT, ONE)
        opened = locked(keys)
        opened.phrase.unlock_with_recovery(recovery)
        assert opened.get(*AT) == ONE
        opened.phrase.change_passphrase("found again")
        assert unlocked(keys, "found again").get(*AT) == ONE

    def test_it_is_eight_groups_of_five(self, keys: Path) -> None:
        groups = create(keys)[1].split("-")
        assert [len(group) for group in groups] == [5] * 8
        assert set("".join(groups)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")

    def test_case_spaces_and_lookalikes_do_not_matter(self, keys: Path) -> None:
        _, recovery = create(keys)
        for typed in (
            recovery.lower(),
            f"  {recovery.replace('-', ' ')}\n",
            recovery.replace("-", ""),
            recovery.replace("O", "0").replace("I", "1").replace("B", "8"),
        ):
            locked(keys).phrase.unlock_with_recovery(typed)

    def test_every_single_typing_error_is_found(self, keys: Path) -> None:
        _, recovery = create(keys)
        letters = recovery.replace("-", "")
        wrong = {
            letters[:at] + other + letters[at + 1 :]
            for at in range(len(letters))
            for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
        }
        wrong |= {letters[:at] + letters[at + 1 :] for at in range(len(letters))}
        wrong |= {
            letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :]
            for at in range(len(letters) - 1)
        }
        keyring = locked(keys)
        for typed in wrong - {letters}:
            with pytest.raises(InvalidRequest, match="typing error"):
                keyring.phrase.unlock_with_recovery(typed)

    @pytest.mark.parametrize("typed", ["", "-", "AAAAA", "ä" * 40, "=" * 40, "A" * 40, "1" * 400])
    def test_what_is_no_recovery_key_is_a_typing_error(self, keys: Path, typed: str) -> None:
        create(keys)
        with pytest.raises(InvalidRequest, match="typing error"):
            locked(keys).phrase.unlock_with_recovery(typed)

    def test_the_key_of_another_keyring_does_not_open_it(self, tmp_path: Path) -> None:
        _, other = create(tmp_path / "other")
        create(tmp_path / "keys")
        with pytest.raises(Locked, match="That recovery key does not open it"):
            locked(tmp_path / "keys").phrase.unlock_with_recovery(other)

    def test_a_renewed_key_takes_the_place_of_the_old_one(self, keys: Path) -> None:
        keyring, old = create(keys)
        new = keyring.phrase.renew_recovery()
        locked(keys).phrase.unlock_with_recovery(new)
        with pytest.raises(Locked):
            locked(keys).phrase.unlock_with_recovery(old)
        unlocked(keys)


class TestFiles:
    def test_by_default_a_guess_costs_64_mib_and_three_passes(self, keys: Path) -> None:
        PassphraseWrapper.create(KeysFolder(keys, SystemClock()), PHRASE)
        words = (keys / "passphrase").read_text().split()
        assert words[:6] == ["scrubjay-passphrase", "1", "argon2id", "65536", "3", "4"]
        unlocked(keys)

    @pytest.mark.parametrize("name", ["passphrase", "recovery"])
    def test_damage_to_any_byte_is_damage_not_a_wrong_passphrase(
        self, keys: Path, name: str
    ) -> None:
        _, recovery = create(keys)
        good = (keys / name).read_bytes()
        unlock = {
            "passphrase": lambda: locked(keys).unlock(PHRASE),
            "recovery": lambda: locked(keys).phrase.unlock_with_recovery(recovery),
        }[name]
        for at in range(len(good)):
            (keys / name).write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            with pytest.raises(SealBroken, match=f"{name} file .* damaged"):
                unlock()
        (keys / name).write_bytes(good)
        unlock()

    @pytest.mark.parametrize(
        "cost",
        [(2**30, 3, 4), (65536, 10**9, 4), (65536, 3, 10**6), (0, 1, 1), (64, 0, 1), (64, 1, 0)],
    )
    def test_a_file_that_asks_for_absurd_work_is_refused(
        self, keys: Path, cost: tuple[int, int, int]
    ) -> None:
        create(keys)
        words = (keys / "passphrase").read_text().split()
        line = write_line("passphrase", "argon2id", *map(str, cost), *words[6:8])
        (keys / "passphrase").write_bytes(line)
        with pytest.raises(SealBroken, match="beyond the limits"):
            locked(keys).unlock(PHRASE)

    def test_the_slots_of_a_passphrase_and_of_recovery_do_not_change_places(
        self, keys: Path
    ) -> None:
        create(keys)
        words = (keys / "passphrase").read_text().split()
        slot = (keys / "recovery").read_text().split()[2]
        (keys / "passphrase").write_bytes(write_line("passphrase", *words[2:7], slot))
        with pytest.raises(Locked):
            unlocked(keys)

    def test_no_file_holds_the_master_key(self, keys: Path) -> None:
        keyring, _ = create(keys)
        keyring.add(*AT, ONE)
        assert keyring.phrase._master is not None
        master = bytes(keyring.phrase._master)
        for content in contents(keys).values():
            assert master not in content
            assert master.hex().encode() not in content


def _opens(keys: Path, phrase: str) -> bool:
    try:
        return unlocked(keys, phrase).get(*AT) == ONE
    except Locked:
        return False


def _after_reading(number: int) -> Steps:
    """Dies `number` steps after the three files that unlocking reads."""
    return Steps(die_at=number + 3)
