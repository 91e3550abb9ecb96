"""Every wrapper, and every place of slots, keeps the contract of its port; so does a keyring."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from scrubjay.adapters import keyrings
from scrubjay.adapters.keyrings.file import DerivedWrapper, FileWrapper
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.keychain import KeychainWrapper
from scrubjay.adapters.keyrings.kms import DerivingKmsWrapper, KmsWrapper
from scrubjay.adapters.keyrings.passphrase import PassphraseWrapper
from scrubjay.adapters.keyrings.pkcs11 import DerivingPkcs11Wrapper, Pkcs11Wrapper
from scrubjay.engine import Keyring
from scrubjay.ports import Slots, SystemClock, Wrapper
from scrubjay.testing.clock import FakeClock
from scrubjay.testing.keyring_contract import KeyringContract, OpenKeyring, SharedKeyringContract
from tests.support.key_services import KeyService, SoftToken, kms_keyring, token_keyring
from tests.support.keyrings import (
    PhraseKeyring,
    file_keyring,
    keychain_keyring,
    postgres_keyring,
)
from tests.support.memory_keyring import memory_keyring
from tests.support.registry import implementations

PASSPHRASE = "correct horse battery staple"


def open_with_passphrase(directory: Path) -> Keyring:
    """The keyring in a folder, unlocked, made if it is not there."""
    keyring = PhraseKeyring(directory)
    if PassphraseWrapper.present(directory):
        keyring.unlock(PASSPHRASE)
    else:
        keyring.begin(PASSPHRASE)
    return keyring


class TestMemoryKeyring(KeyringContract):
    @pytest.fixture
    def open_keyring(self) -> OpenKeyring:
        keyring = memory_keyring(FakeClock())
        return lambda: keyring


class TestFileKeyring(SharedKeyringContract):
    tested = frozenset({KeysFolder, FileWrapper})

    @pytest.fixture
    def open_keyring(self, tmp_path: Path) -> OpenKeyring:
        return partial(file_keyring, tmp_path / "keys", SystemClock())


def open_derived(directory: Path) -> Keyring:
    folder = KeysFolder(directory, SystemClock())
    return Keyring(folder, DerivedWrapper(FileWrapper(folder)), SystemClock())


class TestDerivedKeyring(SharedKeyringContract):
    tested = frozenset({KeysFolder, DerivedWrapper})

    @pytest.fixture
    def open_keyring(self, tmp_path: Path) -> OpenKeyring:
        return partial(open_derived, tmp_path / "keys")


class TestPassphraseKeyring(SharedKeyringContract):
    tested = frozenset({KeysFolder, PassphraseWrapper})

    @pytest.fixture
    def open_keyring(self, tmp_path: Path) -> OpenKeyring:
        opened = partial(open_with_passphrase, tmp_path / "keys")
        opened()
        return opened


class TestPostgresKeyring(SharedKeyringContract):
    """Slots in a database, wrapped by a key file."""

    tested = frozenset({FileWrapper})

    @pytest.fixture
    def open_keyring(self, database: str, tmp_path: Path) -> OpenKeyring:
        return partial(postgres_keyring, database, tmp_path / "keys")


class TestKeychainKeyring(SharedKeyringContract):
    tested = frozenset({KeysFolder, KeychainWrapper})

    @pytest.fixture
    def open_keyring(self, tmp_path: Path) -> OpenKeyring:
        return partial(keychain_keyring, tmp_path / "keys")


class TestPkcs11Keyring(SharedKeyringContract):
    """Slots in a keys folder, wrapped by keys in a token of SoftHSM."""

    tested = frozenset({KeysFolder, Pkcs11Wrapper})

    @pytest.fixture
    def open_keyring(self, token: SoftToken, tmp_path: Path) -> OpenKeyring:
        return partial(token_keyring, tmp_path / "keys", token.address())


class TestDerivingPkcs11Keyring(SharedKeyringContract):
    """Slots in a keys folder, wrapped by keys that a token of SoftHSM derives."""

    tested = frozenset({KeysFolder, DerivingPkcs11Wrapper})

    @pytest.fixture
    def open_keyring(self, token: SoftToken, tmp_path: Path) -> OpenKeyring:
        return partial(token_keyring, tmp_path / "keys", f"{token.address()}&derive=owner")


class TestKmsKeyring(SharedKeyringContract):
    """Slots in a keys folder, wrapped by keys in KMS."""

    tested = frozenset({KeysFolder, KmsWrapper})

    @pytest.fixture
    def open_keyring(self, kms: KeyService, tmp_path: Path) -> OpenKeyring:
        return partial(kms_keyring, tmp_path / "keys", kms.address())


class TestDerivingKmsKeyring(SharedKeyringContract):
    """Slots in a keys folder, wrapped by keys that are derived by KMS."""

    tested = frozenset({KeysFolder, DerivingKmsWrapper})

    @pytest.fixture
    def open_keyring(self, kms: KeyService, tmp_path: Path) -> OpenKeyring:
        return partial(kms_keyring, tmp_path / "keys", f"{kms.address()}&derive=owner")


SUITES = (
    TestPkcs11Keyring,
    TestDerivingKmsKeyring,
    TestDerivingPkcs11Keyring,
    TestKmsKeyring,
    TestFileKeyring,
    TestDerivedKeyring,
    TestPassphraseKeyring,
    TestKeychainKeyring,
    TestPostgresKeyring,
)


def test_every_place_of_slots_and_every_wrapper_runs_the_contract() -> None:
    """One added to the package without a suite here fails this test."""
    tested = set[type]().union(*(suite.tested for suite in SUITES))
    found = implementations(keyrings, Slots) | implementations(keyrings, Wrapper)
    assert found == tested
