"""Every keyring keeps the contract of the port."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from scrubjay.adapters import keyrings
from scrubjay.adapters.clock import SystemClock
from scrubjay.adapters.keyrings.file import FileKeyring
from scrubjay.adapters.keyrings.passphrase import PassphraseKeyring
from scrubjay.ports import Keyring
from scrubjay.testing.clock import FakeClock
from scrubjay.testing.keyring_contract import KeyringContract, OpenKeyring, SharedKeyringContract
from scrubjay.vault import Cost
from tests.support.memory_keyring import MemoryKeyring
from tests.support.registry import implementations

CHEAP = Cost(memory_kib=64, passes=1, lanes=1)
PASSPHRASE = "correct horse battery staple"


def open_with_passphrase(directory: Path) -> PassphraseKeyring:
    """The keyring in a folder, unlocked, made if it is not there."""
    if not PassphraseKeyring.present(directory):
        return PassphraseKeyring.create(directory, SystemClock(), PASSPHRASE, cost=CHEAP)[0]
    keyring = PassphraseKeyring(directory, SystemClock(), cost=CHEAP)
    keyring.unlock(PASSPHRASE)
    return keyring


class TestMemoryKeyring(KeyringContract):
    @pytest.fixture
    def open_keyring(self) -> OpenKeyring:
        keyring = MemoryKeyring(FakeClock())
        return lambda: keyring


class TestFileKeyring(SharedKeyringContract):
    tested = FileKeyring

    @pytest.fixture
    def open_keyring(self, tmp_path: Path) -> OpenKeyring:
        return partial(FileKeyring, tmp_path / "keys", SystemClock())


class TestPassphraseKeyring(SharedKeyringContract):
    tested = PassphraseKeyring

    @pytest.fixture
    def open_keyring(self, tmp_path: Path) -> OpenKeyring:
        opened = partial(open_with_passphrase, tmp_path / "keys")
        opened()
        return opened


def test_every_keyring_runs_the_contract() -> None:
    """One added to the package without a suite here fails this test."""
    suites = (TestFileKeyring, TestPassphraseKeyring)
    assert implementations(keyrings, Keyring) == {suite.tested for suite in suites}
