"""What the key file and the slots promise beyond the contract: crashes, damage, no remains."""

from __future__ import annotations

import errno
import hashlib
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from scrubjay.adapters.disk import Disk, Step
from scrubjay.adapters.keyrings.folder import write_line
from scrubjay.engine import Keyring
from scrubjay.model.errors import Full, KeyMissing, SchemaTooNew, SealBroken, StoreError
from scrubjay.ports import SystemClock
from scrubjay.testing.clock import FakeClock
from tests.support.disk import Killed, PowerCut, Steps
from tests.support.keyrings import file_keyring

ONE, TWO = bytes([1]) * 32, bytes([2]) * 32
AT = ("scope", "memory.1")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def open_keyring(keys: Path, disk: Disk | None = None) -> Keyring:
    return file_keyring(keys, FakeClock("keyring"), disk=disk)


def added(keys: Path, disk: Disk | None = None, *, key: bytes = ONE) -> bytes:
    """What the slot holds after a first use of the folder that adds a key to it."""
    keyring = open_keyring(keys, disk)
    keyring.found()
    return keyring.add(*AT, key)


def files(keys: Path) -> Iterator[Path]:
    return (path for path in keys.rglob("*") if path.is_file() and path.name != "lock")


def slot(keys: Path) -> Path:
    return keys / "slots" / "scope" / "memory.1"


class TestCrash:
    def test_an_add_that_dies_leaves_the_slot_taken_or_free(self, tmp_path: Path) -> None:
        for number in count():
            keys = tmp_path / str(number)
            try:
                added(keys, Disk(Steps(die_at=number)), key=ONE)
            except Killed:
                kept = added(keys, key=TWO)
                assert kept in (ONE, TWO)
                assert open_keyring(keys).get(*AT) == kept
            else:
                return

    def test_after_a_power_cut_an_acknowledged_key_is_there(self, tmp_path: Path) -> None:
        keys = tmp_path / "keys"
        power = PowerCut(tmp_path)
        first = open_keyring(keys, Disk(power)).found()
        added(keys, Disk(power), key=ONE)
        restored = power.restore(tmp_path / "restored") / "keys"
        assert open_keyring(restored).get(*AT) == ONE
        assert open_keyring(restored).installation() == first

    def test_after_a_power_cut_during_an_add_the_slot_is_whole_or_free(
        self, tmp_path: Path
    ) -> None:
        for number in count():
            home = tmp_path / str(number)
            home.mkdir()
            power = PowerCut(home, die_at=number)
            try:
                added(home / "keys", Disk(power), key=ONE)
            except Killed:
                restored = power.restore(tmp_path / f"{number}-restored") / "keys"
                assert added(restored, key=TWO) in (ONE, TWO)
            else:
                return

    def test_the_loser_of_a_race_returns_a_key_that_is_durable(self, tmp_path: Path) -> None:
        """The winner may die before its own sync; whoever returns the key must have synced it."""
        keys = tmp_path / "keys"
        before_the_last_sync = steps_of_an_add(tmp_path / "counted") - 2
        power = PowerCut(tmp_path, die_at=before_the_last_sync)
        with pytest.raises(Killed):
            added(keys, Disk(power), key=ONE)
        assert slot(keys).exists()
        power.die_after(10**6)
        assert added(keys, Disk(power), key=TWO) == ONE
        restored = power.restore(tmp_path / "restored") / "keys"
        assert open_keyring(restored).get(*AT) == ONE

    def test_a_delete_that_dies_can_be_finished(self, tmp_path: Path) -> None:
        for number in count():
            keys = tmp_path / str(number)
            added(keys, key=ONE)
            try:
                open_keyring(keys, Disk(Steps(die_at=number))).delete(*AT)
            except Killed:
                open_keyring(keys).delete(*AT)
                assert open_keyring(keys).purposes("scope") == []
                with pytest.raises(KeyMissing):
                    open_keyring(keys).get(*AT)
            else:
                return

    def test_a_deleted_key_does_not_come_back_after_a_power_cut(self, tmp_path: Path) -> None:
        keys = tmp_path / "keys"
        power = PowerCut(tmp_path)
        keyring = open_keyring(keys, Disk(power))
        keyring.found()
        keyring.add(*AT, ONE)
        keyring.add("scope", "memory.2", TWO)
        keyring.delete(*AT)
        restored = power.restore(tmp_path / "restored") / "keys"
        with pytest.raises(KeyMissing):
            open_keyring(restored).get(*AT)
        assert open_keyring(restored).get("scope", "memory.2") == TWO

    def test_removed_keys_do_not_come_back_after_a_power_cut(self, tmp_path: Path) -> None:
        keys = tmp_path / "keys"
        power = PowerCut(tmp_path)
        keyring = open_keyring(keys, Disk(power))
        keyring.found()
        keyring.add(*AT, ONE)
        keyring.remove("scope")
        restored = power.restore(tmp_path / "restored") / "keys"
        assert open_keyring(restored).purposes("scope") == []


class TestRemains:
    def test_a_deleted_slot_was_overwritten_first(self, keys: Path) -> None:
        """A second name of the same file, as a snapshot might keep, shows only noise."""
        added(keys, key=ONE)
        before = slot(keys).read_bytes()
        (keys / "second").hardlink_to(slot(keys))
        open_keyring(keys).delete(*AT)
        after = (keys / "second").read_bytes()
        assert len(after) == len(before)
        assert sum(a == b for a, b in zip(after, before, strict=True)) < len(before) // 4

    def test_a_slot_that_is_just_being_deleted_is_missing_and_not_damaged(
        self, tmp_path: Path
    ) -> None:
        """The deleter syncs between overwriting and unlinking: longer than a few reads take."""
        keys, inside, read = tmp_path / "keys", Event(), Event()
        file_keyring(keys, SystemClock()).found()
        file_keyring(keys, SystemClock()).add("scope", "lookup", ONE)
        tries = count(1)

        def deleting(step: Step, path: Path) -> None:
            if step is Step.UNLINK:
                inside.set()
                read.wait(10)

        def reading(step: Step, path: Path) -> None:
            if path.name == "lookup" and next(tries) == 3:
                read.set()

        deleter = file_keyring(keys, SystemClock(), Disk(deleting))
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(deleter.delete, "scope", "lookup")
            assert inside.wait(60)
            with pytest.raises(KeyMissing):
                file_keyring(keys, SystemClock(), Disk(reading)).get("scope", "lookup")
            done.result()

    def test_remove_overwrites_every_slot(self, keys: Path) -> None:
        added(keys, key=ONE)
        before = slot(keys).read_bytes()
        (keys / "second").hardlink_to(slot(keys))
        open_keyring(keys).remove("scope")
        assert (keys / "second").read_bytes() != before
        assert not slot(keys).parent.exists()

    def test_delete_also_shreds_what_a_dead_writer_left(self, tmp_path: Path) -> None:
        for number in count():
            keys = tmp_path / str(number)
            open_keyring(keys).found()
            try:
                added(keys, Disk(Steps(die_at=number)), key=ONE)
            except Killed:
                open_keyring(keys).add("scope", "memory.2", TWO)
                open_keyring(keys).delete(*AT)
                left = {path.name for path in (keys / "slots" / "scope").iterdir()}
                assert left == {"memory.2"}
            else:
                return

    def test_the_slots_hold_no_key_in_clear(self, keys: Path) -> None:
        added(keys)
        installation = open_keyring(keys).installation()
        for path in files(keys):
            assert ONE not in path.read_bytes()
            assert installation not in path.read_bytes()


class TestKeyFile:
    def test_it_is_made_on_first_use_and_only_then(self, keys: Path) -> None:
        open_keyring(keys)
        assert not keys.exists()
        open_keyring(keys).found()
        assert (keys / "key").read_text().startswith("scrubjay-key 1 ")

    def test_looking_makes_nothing(self, keys: Path) -> None:
        with pytest.raises(KeyMissing):
            open_keyring(keys).get(*AT)
        assert open_keyring(keys).purposes("scope") == []
        assert not keys.exists()

    def test_only_the_owner_may_look(self, keys: Path) -> None:
        added(keys, key=ONE)
        for path in [keys, *keys.rglob("*")]:
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)

    def test_one_that_is_gone_is_not_replaced(self, keys: Path) -> None:
        added(keys, key=ONE)
        (keys / "key").unlink()
        for call in (
            lambda: open_keyring(keys).get(*AT),
            lambda: open_keyring(keys).add("scope", "memory.2", TWO),
        ):
            with pytest.raises(KeyMissing, match="key file"):
                call()
        assert not (keys / "key").exists()

    def test_slots_can_be_deleted_even_when_it_is_gone(self, keys: Path) -> None:
        added(keys, key=ONE)
        (keys / "key").unlink()
        open_keyring(keys).remove("scope")
        assert open_keyring(keys).purposes("scope") == []

    def test_another_key_does_not_open_the_slots(self, keys: Path) -> None:
        added(keys, key=ONE)
        (keys / "key").write_bytes(write_line("key", bytes(32).hex()))
        with pytest.raises(SealBroken, match="another key") as raised:
            open_keyring(keys).get(*AT)
        assert "key file" in raised.value.hint

    def test_damage_to_any_byte_is_found(self, keys: Path) -> None:
        added(keys, key=ONE)
        good = (keys / "key").read_bytes()
        for at in range(len(good)):
            (keys / "key").write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            with pytest.raises(SealBroken, match="damaged"):
                open_keyring(keys).get(*AT)

    def test_a_cut_at_any_length_is_found(self, keys: Path) -> None:
        added(keys, key=ONE)
        good = (keys / "key").read_bytes()
        for size in range(len(good) - 1):
            (keys / "key").write_bytes(good[:size])
            with pytest.raises(SealBroken, match="damaged"):
                open_keyring(keys).get(*AT)

    def test_a_lost_line_end_is_no_damage(self, keys: Path) -> None:
        added(keys, key=ONE)
        (keys / "key").write_bytes((keys / "key").read_bytes().rstrip())
        assert open_keyring(keys).get(*AT) == ONE

    def test_one_of_a_later_version_is_refused(self, keys: Path) -> None:
        added(keys, key=ONE)
        line = (keys / "key").read_text().rsplit(" ", 1)[0].replace("-key 1", "-key 3")
        (keys / "key").write_bytes(_with_check(line))
        with pytest.raises(SchemaTooNew):
            open_keyring(keys).get(*AT)


class TestSlots:
    def test_damage_to_any_byte_of_a_slot_is_found(self, keys: Path) -> None:
        added(keys, key=ONE)
        good = slot(keys).read_bytes()
        for at in range(len(good)):
            slot(keys).write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            with pytest.raises(SealBroken):
                open_keyring(keys).get(*AT)

    @pytest.mark.parametrize("moved", [("scope", "memory.2"), ("other", "memory.1")])
    def test_a_slot_moved_to_another_name_does_not_open(
        self, keys: Path, moved: tuple[str, str]
    ) -> None:
        added(keys, key=ONE)
        target = keys / "slots" / moved[0] / moved[1]
        target.parent.mkdir(exist_ok=True)
        slot(keys).rename(target)
        with pytest.raises(SealBroken):
            open_keyring(keys).get(*moved)

    def test_adding_to_a_damaged_slot_says_so(self, keys: Path) -> None:
        added(keys, key=ONE)
        slot(keys).write_bytes(b"")
        with pytest.raises(SealBroken):
            added(keys, key=TWO)


@pytest.mark.parametrize(
    ("code", "error"),
    [(errno.ENOSPC, Full), (errno.EIO, StoreError), (errno.EROFS, StoreError)],
)
def test_whatever_the_system_refuses_is_an_error_of_ours(
    tmp_path: Path, code: int, error: type[StoreError]
) -> None:
    """At every step of an add; the slot is then free, or holds the key."""
    for number in range(steps_of_an_add(tmp_path / "counted")):
        keys = tmp_path / str(number)
        with pytest.raises(error) as raised:
            added(keys, Disk(Steps(fail_at=number, errno=code)), key=ONE)
        assert raised.type is error
        assert added(keys, key=TWO) in (ONE, TWO)


def steps_of_an_add(keys: Path) -> int:
    steps = Steps()
    added(keys, Disk(steps), key=ONE)
    return len(steps.taken)


def test_a_key_file_that_may_not_be_read_is_a_missing_key(keys: Path) -> None:
    def refuse(step: Step, path: Path) -> None:
        if step is Step.READ and path.name == "key":
            raise PermissionError(errno.EACCES, "denied")

    added(keys, key=ONE)
    with pytest.raises(KeyMissing, match="may not be read"):
        open_keyring(keys, Disk(refuse)).get(*AT)


def _with_check(line: str) -> bytes:
    return f"{line} {hashlib.sha256(line.encode()).hexdigest()[:8]}\n".encode()
