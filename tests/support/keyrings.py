"""Keyrings in a keys folder, as the embedded default composes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

from scrubjay.adapters.disk import Disk
from scrubjay.adapters.keyrings.file import KEY_FILE, FileWrapper
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.keychain import Backend, KeychainWrapper
from scrubjay.adapters.keyrings.passphrase import PassphraseWrapper
from scrubjay.adapters.stores.postgres.store import PostgresStore
from scrubjay.engine import Keyring
from scrubjay.ports import Clock, SystemClock
from scrubjay.vault import Cost

CHEAP: Final = Cost(memory_kib=64, passes=1, lanes=1)


def file_keyring(keys: Path, clock: Clock, disk: Disk | None = None) -> Keyring:
    """The keyring of a key file."""
    folder = KeysFolder(keys, clock, disk)
    return Keyring(folder, FileWrapper(folder), clock)


def postgres_keyring(url: str, keys: Path) -> Keyring:
    """The keyring of a key file whose slots lie in a database."""
    wrapper = FileWrapper(KeysFolder(keys, SystemClock()))
    return Keyring(PostgresStore(url).slots, wrapper, SystemClock())


def file_backend(path: Path) -> Backend:
    """A keyring of the `keyring` package that keeps its secrets in a file."""
    from keyrings.alt.file import PlaintextKeyring

    backend: Any = PlaintextKeyring()
    backend.file_path = str(path)
    return cast(Backend, backend)


def keychain_keyring(keys: Path, clock: Clock | None = None) -> Keyring:
    """A keyring whose root key a keyring beside the folder keeps; made if it is not there."""
    clock = clock or SystemClock()
    folder, backend = KeysFolder(keys, clock), file_backend(keys.with_name("system"))
    if KeychainWrapper.present(keys):
        return Keyring(folder, KeychainWrapper(folder, backend), clock)
    return Keyring(folder, KeychainWrapper.create(folder, backend), clock)


class PhraseKeyring(Keyring):
    """The keyring of a passphrase, with its wrapper at hand."""

    def __init__(self, keys: Path, clock: Clock | None = None, disk: Disk | None = None) -> None:
        clock = clock or SystemClock()
        self.folder = KeysFolder(keys, clock, disk)
        self.phrase = PassphraseWrapper(self.folder, cost=CHEAP)
        super().__init__(self.folder, self.phrase, clock)

    def begin(self, passphrase: str, *, adopt: bool = False) -> str:
        """Put the folder under a passphrase, and re-wrap what a key file wrapped."""
        if adopt:
            file_keyring(self.folder.directory, self._clock, self.folder.disk).prove()
        self.phrase, recovery = PassphraseWrapper.create(
            self.folder, passphrase, adopt=adopt, cost=CHEAP
        )
        self.wrapper = self.phrase
        self.retire()
        return recovery

    def unlock(self, passphrase: str) -> None:
        """Unlock it, and finish what was cut off."""
        self.phrase.unlock(passphrase)
        if (self.folder.directory / KEY_FILE).exists():
            self.retire()
