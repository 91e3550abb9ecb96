"""Root keys in the keyring of the operating system: Secret Service, macOS Keychain, Windows.

`<keys>/keychain` holds the name under which they are kept there, and the numbers of the first and
the last of them. Who copies the keys folder has slots and no root key; who moves to another machine
needs a backup, because an entry of such a keyring is not copied with files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

from scrubjay import vault
from scrubjay.adapters.disk import failures
from scrubjay.adapters.keyrings.file import (
    KEY_FILE,
    KEYCHAIN_FILE,
    PHRASE_FILE,
    LocalWrapper,
    read_key,
)
from scrubjay.adapters.keyrings.folder import PLACE, KeysFolder, read_line, unhex, write_line
from scrubjay.model.errors import (
    Conflict,
    InvalidRequest,
    KeyMissing,
    KeyUnavailable,
    Locked,
    SealBroken,
)

SERVICE: Final = "scrubjay"
_USER: Final = "user/"
"""How the names of entries begin that open a scope of a user."""
_NAME_BYTES: Final = 8
_Answer = TypeVar("_Answer")


class Backend(Protocol):
    """What a keyring of the operating system does: the interface of the `keyring` package."""

    def get_password(self, service: str, username: str) -> str | None:
        """The secret kept under a name; None if there is none."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a secret under a name."""

    def delete_password(self, service: str, username: str) -> None:
        """Delete a secret."""


def system_backend() -> Backend:
    """The keyring of this operating system; InvalidRequest if nothing safe is there."""
    try:
        import keyring
    except ImportError as error:
        raise InvalidRequest(
            "The keyring of the operating system needs another package.",
            hint="pip install 'scrubjay[keychain]'",
        ) from error
    found = keyring.get_keyring()
    if found.priority < 1:  # as `keyring` says it: not one of a system, and perhaps a plain file
        raise InvalidRequest(
            f"No keyring of the operating system answers; there is only {found.name}.",
            hint="Start a Secret Service such as gnome-keyring, or keep the key file.",
        )
    return found


class KeychainWrapper(LocalWrapper):
    """Wrapper whose root keys are kept by the operating system, for one user of it."""

    def __init__(self, folder: KeysFolder, backend: Backend) -> None:
        super().__init__(folder.clock.random)
        self._folder = folder
        self._backend = backend
        self._held: dict[str, bytes] = {}
        """Root keys by name: an entry is written once, so what was read stays true."""

    @classmethod
    def create(cls, folder: KeysFolder, backend: Backend) -> Self:
        """Keep a new root key in the keyring of the system.

        A key file becomes the generation before: the caller wraps its slots anew and destroys it.
        """
        wrapper = cls(folder, backend)
        with folder.changing():
            if folder.file(KEYCHAIN_FILE) is not None:
                raise Conflict("The root key is in the keyring of the operating system already.")
            if folder.file(PHRASE_FILE) is not None:
                raise Locked("These keys are locked by a passphrase.")
            key_file = folder.file(KEY_FILE)
            if key_file is None and folder.addresses("", 1):
                raise KeyMissing("This keys folder has slots, but no key.")
            first = 1 if key_file is None else read_key(key_file)[0] + 1
            name = folder.clock.random(_NAME_BYTES).hex()
            wrapper._make(name, first)
            line = write_line(KEYCHAIN_FILE, name, str(first), str(first))
            folder.disk.add(folder.directory / KEYCHAIN_FILE, line, folder.clock.random)
        return wrapper

    @staticmethod
    def present(directory: Path) -> bool:
        """Whether the root keys of a keys folder are in the keyring of a system."""
        with failures(PLACE):
            return (directory / KEYCHAIN_FILE).exists()

    def admit(self) -> None:
        """Whether it is locked is the system's to say: then it asks the user."""

    def found(self) -> None:
        self.roots()

    def roots(self) -> Mapping[int, bytes]:
        name, first, last = self._named()
        roots = {last: self._root(name, last)}
        for number in range(first, last):
            with suppress(KeyMissing):  # a destruction that was cut off
                roots[number] = self._root(name, number)
        with suppress(SealBroken):  # a crash may leave it half overwritten, once nothing needs it
            if (raw := self._folder.file(KEY_FILE)) is not None:
                number, root = read_key(raw)
                roots.setdefault(number, root)
        return roots

    def begin(self) -> int:
        with self._folder.changing():
            name, first, last = self._named()
            self._make(name, last + 1)
            self._write(name, first, last + 1)
        return last + 1

    def destroy(self, generation: int) -> None:
        with self._folder.changing():
            name, first, last = self._named()
            if generation >= last:
                raise InvalidRequest("The root key in use is not destroyed: begin another first.")
            for number in range(first, generation + 1):
                _ask(partial(self._delete, f"{name}.{number}"))
            self._write(name, max(first, generation + 1), last)
            self._folder.shred(self._folder.directory / KEY_FILE)
            for number in self._folder.numbered(KEY_FILE):
                self._folder.shred(self._folder.directory / f"{KEY_FILE}.{number}")

    # -- inside ------------------------------------------------------------------------

    def _named(self) -> tuple[str, int, int]:
        """The name of the root keys in the keyring, and the first and the last that is there."""
        if (raw := self._folder.file(KEYCHAIN_FILE)) is None:
            raise KeyMissing(
                f"There is no file {KEYCHAIN_FILE} in {self._folder.place}.",
                hint="Put it back: it says where in the system's keyring the root key is.",
            )
        name, first, last = read_line(raw, KEYCHAIN_FILE, 3)
        return name, int(first), int(last)

    def _write(self, name: str, first: int, last: int) -> None:
        path = self._folder.directory / KEYCHAIN_FILE
        self._folder.disk.replace(path, write_line(KEYCHAIN_FILE, name, str(first), str(last)))

    def _make(self, name: str, number: int) -> None:
        root = self.random(vault.KEY_BYTES).hex()
        _ask(lambda: self._backend.set_password(SERVICE, f"{name}.{number}", root))
        self._held.pop(f"{name}.{number}", None)

    def _delete(self, entry: str) -> None:
        if self._backend.get_password(SERVICE, entry) is not None:
            self._backend.delete_password(SERVICE, entry)
        self._held.pop(entry, None)

    def _root(self, name: str, number: int) -> bytes:
        entry = f"{name}.{number}"
        if (held := self._held.get(entry)) is None:
            found = _ask(lambda: self._backend.get_password(SERVICE, entry))
            if found is None:
                raise KeyMissing(
                    "The root key is not in the keyring of this system and user.",
                    hint=f"It is there under {SERVICE}, {entry}; no new one was made.",
                )
            held = self._held[entry] = unhex(found, KEYCHAIN_FILE, vault.KEY_BYTES)
        return held


def _ask(work: Callable[[], _Answer]) -> _Answer:
    """What the keyring of the system answers; KeyUnavailable if it refuses."""
    try:
        return work()
    except Exception as error:  # seam: each system has its own errors, of the bus and of others
        raise KeyUnavailable(
            f"The keyring of the operating system refused: {type(error).__name__}.",
            hint="Unlock it, or log in to the desktop; then try again. Nothing is lost.",
        ) from error


class SystemCustody:
    """What the user of a process has at hand: a passphrase, or the keyring of the system."""

    def __init__(
        self, passphrase: str | None, backend: Callable[[], Backend] = system_backend
    ) -> None:
        self._passphrase = passphrase
        self._backend = backend

    def passphrase(self) -> str | None:
        return self._passphrase

    def keep(self, address: str, secret: bytes) -> None:
        found = self._backend()
        _ask(lambda: found.set_password(SERVICE, _USER + address, secret.hex()))

    def find(self, address: str) -> bytes | None:
        try:
            found = self._backend()
        except InvalidRequest:  # another machine, or a service: its user unlocks it otherwise
            return None
        kept = _ask(lambda: found.get_password(SERVICE, _USER + address))
        return None if kept is None else unhex(kept, KEYCHAIN_FILE, vault.KEY_BYTES)

    def drop(self, address: str) -> None:
        if self.find(address) is not None:
            found = self._backend()
            _ask(lambda: found.delete_password(SERVICE, _USER + address))
