"""What every Keyring must do. Subclass the contract, say how to open one, and run pytest.

    class TestMyKeyring(SharedKeyringContract):
        @pytest.fixture
        def open_keyring(self, tmp_path):
            return partial(MyKeyring, tmp_path / "keys", SystemClock())

`open_keyring` opens the same keyring each time it is called. `SharedKeyringContract` is for
keyrings that several processes can open; its `open_keyring` must be picklable.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from scrubjay.engine import Keyring
from scrubjay.model.errors import InvalidRequest, KeyMissing

OpenKeyring = Callable[[], Keyring]
ALICE, BOB = "alice-address", "bob-address"
ONE, TWO = bytes([1]) * 32, bytes([2]) * 32
BAD_NAMES = ("", ".", "..", ".hidden", "a/b", "a\\b", "UPPER", "a b", "a\n", "a\x00", "ä", "a" * 65)


class KeyringContract:
    """The promises of the port, one test each."""

    @pytest.fixture
    def open_keyring(self) -> OpenKeyring:
        """How to open the keyring under test; opening it again opens the same one."""
        raise NotImplementedError("Say how to open the keyring.")

    @pytest.fixture
    def keyring(self, open_keyring: OpenKeyring) -> Keyring:
        """The keyring under test, with nothing but its installation key."""
        keyring = open_keyring()
        keyring.found()
        return keyring

    def test_without_an_installation_key_nothing_is_made_by_looking(
        self, open_keyring: OpenKeyring
    ) -> None:
        for _ in range(2):
            with pytest.raises(KeyMissing):
                open_keyring().installation()
            with pytest.raises(KeyMissing):
                open_keyring().get(ALICE, "lookup")
            assert open_keyring().purposes(ALICE) == []

    def test_it_says_where_it_looks(self, keyring: Keyring) -> None:
        assert keyring.place

    def test_an_added_key_is_returned_and_kept(self, keyring: Keyring) -> None:
        assert keyring.add(ALICE, "lookup", ONE) == ONE
        assert keyring.get(ALICE, "lookup") == ONE

    def test_the_first_key_in_a_slot_stays(self, keyring: Keyring) -> None:
        keyring.add(ALICE, "lookup", ONE)
        assert keyring.add(ALICE, "lookup", TWO) == ONE
        assert keyring.get(ALICE, "lookup") == ONE

    def test_slots_differ_by_address_and_by_purpose(self, keyring: Keyring) -> None:
        keyring.add(ALICE, "memory.1", ONE)
        assert keyring.add(ALICE, "memory.2", TWO) == TWO
        assert keyring.add(BOB, "memory.1", TWO) == TWO
        assert keyring.get(ALICE, "memory.1") == ONE

    def test_a_key_that_was_never_added_is_missing(self, keyring: Keyring) -> None:
        keyring.add(ALICE, "lookup", ONE)
        for address, purpose in ((ALICE, "memory.1"), (BOB, "lookup")):
            with pytest.raises(KeyMissing):
                keyring.get(address, purpose)

    def test_a_deleted_key_is_missing(self, keyring: Keyring) -> None:
        keyring.add(ALICE, "memory.1", ONE)
        keyring.add(ALICE, "memory.2", TWO)
        keyring.delete(ALICE, "memory.1")
        with pytest.raises(KeyMissing):
            keyring.get(ALICE, "memory.1")
        assert keyring.get(ALICE, "memory.2") == TWO

    def test_deleting_what_is_absent_is_fine(self, keyring: Keyring) -> None:
        keyring.delete(ALICE, "lookup")
        keyring.add(ALICE, "lookup", ONE)
        keyring.delete(ALICE, "lookup")
        keyring.delete(ALICE, "lookup")
        assert keyring.purposes(ALICE) == []

    def test_a_deleted_slot_takes_another_key(self, keyring: Keyring) -> None:
        keyring.add(ALICE, "lookup", ONE)
        keyring.delete(ALICE, "lookup")
        assert keyring.add(ALICE, "lookup", TWO) == TWO

    def test_purposes_are_those_with_a_slot_sorted(self, keyring: Keyring) -> None:
        assert keyring.purposes(ALICE) == []
        for purpose in ("memory.2", "lookup", "memory.10"):
            keyring.add(ALICE, purpose, ONE)
        keyring.add(BOB, "turn.1", ONE)
        assert keyring.purposes(ALICE) == ["lookup", "memory.10", "memory.2"]

    def test_remove_deletes_every_slot_of_one_address(self, keyring: Keyring) -> None:
        for purpose in ("lookup", "memory.1"):
            keyring.add(ALICE, purpose, ONE)
            keyring.add(BOB, purpose, TWO)
        keyring.remove(ALICE)
        assert keyring.purposes(ALICE) == []
        with pytest.raises(KeyMissing):
            keyring.get(ALICE, "lookup")
        assert keyring.get(BOB, "lookup") == TWO

    def test_removing_an_address_without_slots_is_fine(self, keyring: Keyring) -> None:
        keyring.remove(ALICE)
        keyring.add(ALICE, "lookup", ONE)
        keyring.remove(ALICE)
        keyring.remove(ALICE)
        assert keyring.add(ALICE, "lookup", TWO) == TWO

    def test_the_installation_key_is_made_once(self, open_keyring: OpenKeyring) -> None:
        first = open_keyring().found()
        assert len(first) == 32
        assert open_keyring().found() == first
        assert open_keyring().installation() == first

    def test_the_installation_key_survives_the_removal_of_scopes(self, keyring: Keyring) -> None:
        before = keyring.installation()
        keyring.add(ALICE, "lookup", ONE)
        keyring.remove(ALICE)
        assert keyring.installation() == before

    def test_what_one_opened_the_next_one_finds(self, open_keyring: OpenKeyring) -> None:
        open_keyring().found()
        open_keyring().add(ALICE, "lookup", ONE)
        assert open_keyring().get(ALICE, "lookup") == ONE
        open_keyring().delete(ALICE, "lookup")
        with pytest.raises(KeyMissing):
            open_keyring().get(ALICE, "lookup")

    @pytest.mark.parametrize("size", [0, 16, 31, 33])
    def test_a_key_of_another_length_is_refused(self, keyring: Keyring, size: int) -> None:
        with pytest.raises(InvalidRequest):
            keyring.add(ALICE, "lookup", bytes(size))
        assert keyring.purposes(ALICE) == []

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_a_name_that_is_no_safe_file_name_is_refused(self, keyring: Keyring, name: str) -> None:
        calls: tuple[Callable[[], object], ...] = (
            lambda: keyring.add(name, "lookup", ONE),
            lambda: keyring.add(ALICE, name, ONE),
            lambda: keyring.get(name, "lookup"),
            lambda: keyring.get(ALICE, name),
            lambda: keyring.delete(ALICE, name),
            lambda: keyring.purposes(name),
            lambda: keyring.remove(name),
        )
        for call in calls:
            with pytest.raises(InvalidRequest):
                call()

    def test_threads_that_add_one_slot_get_one_key(self, open_keyring: OpenKeyring) -> None:
        opened = [open_keyring() for _ in range(8)]
        opened[0].found()
        with ThreadPoolExecutor(8) as pool:
            kept = pool.map(lambda n: opened[n].add(ALICE, "lookup", bytes([n]) * 32), range(8))
        assert len(set(kept)) == 1


class SharedKeyringContract(KeyringContract):
    """The promises of a keyring that several processes open at once."""

    def test_processes_that_add_one_slot_get_one_key(self, open_keyring: OpenKeyring) -> None:
        open_keyring()
        with _processes(4) as pool:
            answers = list(pool.map(_race, [open_keyring] * 4, range(4)))
        assert all(len(answer) == _ROUNDS + 1 for answer in answers)
        for kept in zip(*answers, strict=True):
            assert len(set(kept)) == 1

    def test_what_a_process_added_another_finds(self, open_keyring: OpenKeyring) -> None:
        with _processes(1) as pool:
            (answer,) = pool.map(_race, [open_keyring], [7])
        assert open_keyring().installation() == answer[0]
        assert open_keyring().get(ALICE, "memory.3") == answer[4]


_ROUNDS = 25


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def _race(open_keyring: OpenKeyring, number: int) -> list[bytes]:
    """The keys one process is told; runs beside others that try to add their own."""
    keyring = open_keyring()
    keyring.found()
    mine = bytes([number]) * 32
    kept = [keyring.add(ALICE, f"memory.{slot}", mine) for slot in range(_ROUNDS)]
    return [keyring.installation(), *kept]
