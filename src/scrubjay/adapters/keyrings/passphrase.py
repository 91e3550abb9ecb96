"""Passphrase keyring: a passphrase or the printed recovery key opens it.

A random master key wraps the slots. It is itself wrapped twice: under a key that Argon2id derives
from the passphrase, and under the recovery key. Changing the passphrase re-wraps the master key and
touches no slot. A change is a compare-and-set on what the keyring was unlocked with: of two at once
one is refused, so nobody is told of a passphrase or recovery key that opens nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from scrubjay import vault
from scrubjay.adapters.disk import Disk, failures
from scrubjay.adapters.keyrings.file import (
    KEY_FILE,
    PHRASE_FILE,
    PLACE,
    SlotKeyring,
    damaged,
    read_line,
    unhex,
    write_line,
)
from scrubjay.model.errors import (
    Conflict,
    InvalidRequest,
    KeyMissing,
    Locked,
    SealBroken,
    StoreError,
)
from scrubjay.ports import Clock
from scrubjay.vault import SALT_BYTES, STRONG, Cost, stretch

RECOVERY_FILE: Final = "recovery"
RECOVERY_BYTES: Final = 20
_CHECK_BYTES: Final = 5
_GROUP: Final = 5
_SLOT_BYTES: Final = vault.HASH_BYTES + vault.OVERHEAD + vault.KEY_BYTES
_MASTER: Final = "master"
_LOOKALIKES: Final = str.maketrans("018", "OIB", "- \t\r\n")


class PassphraseKeyring(SlotKeyring):
    """Slots wrapped by a master key that is in memory only between `unlock` and `lock`."""

    def __init__(
        self, directory: Path, clock: Clock, *, cost: Cost = STRONG, disk: Disk | None = None
    ) -> None:
        super().__init__(directory, clock, disk)
        self._cost = cost
        self._master: bytearray | None = None
        self._mutex = threading.Lock()
        self._seen: dict[str, bytes | None] = {}

    @classmethod
    def create(
        cls,
        directory: Path,
        clock: Clock,
        passphrase: str,
        *,
        cost: Cost = STRONG,
        disk: Disk | None = None,
    ) -> tuple[Self, str]:
        """A new keyring in an empty keys folder, unlocked, and its recovery key."""
        keyring = cls(directory, clock, cost=cost, disk=disk)
        with keyring._founding():
            if keyring._file(KEY_FILE) is not None:
                raise Conflict("This keys folder has a key file.", hint="Adopt it instead.")
            if keyring._disk.names(keyring._slots):
                raise KeyMissing("This keys folder has slots, but no key.")
            return keyring, keyring._found(passphrase)

    @classmethod
    def adopt(
        cls,
        directory: Path,
        clock: Clock,
        passphrase: str,
        *,
        cost: Cost = STRONG,
        disk: Disk | None = None,
    ) -> tuple[Self, str]:
        """Convert a key-file keyring to a passphrase; returns it unlocked, and its recovery key.

        Every slot is re-wrapped and the key file is shredded. After a crash, the next unlock
        completes this.
        """
        keyring = cls(directory, clock, cost=cost, disk=disk)
        with keyring._founding():
            old = keyring._file_key()
            if old is None:
                raise KeyMissing("This keys folder has no key file to adopt.")
            for address, purpose in keyring._all_slots():
                keyring._unwrapped(old, address, purpose)
            recovery = keyring._found(passphrase)
            keyring._take_over()
        return keyring, recovery

    @staticmethod
    def present(directory: Path) -> bool:
        """Whether a keys folder is locked by a passphrase."""
        try:
            with failures(PLACE):
                return (directory / PHRASE_FILE).exists()
        except StoreError as error:
            raise KeyMissing(
                f"The keys in {directory} may not be read.", hint=error.hint
            ) from error

    # -- opening and closing -----------------------------------------------------------

    def unlock(self, passphrase: str) -> None:
        """Open the keyring; Locked if the passphrase is wrong."""
        seen, (kind, *numbers, salt, slot) = self._steady(lambda: self._words(PHRASE_FILE, 6))
        if kind != "argon2id" or not all(number.isdecimal() for number in numbers):
            raise damaged(PHRASE_FILE)
        memory, passes, lanes = map(int, numbers)
        cost = Cost(memory_kib=memory, passes=passes, lanes=lanes)
        salted = unhex(salt, PHRASE_FILE, SALT_BYTES)
        wrapped = unhex(slot, PHRASE_FILE, _SLOT_BYTES)
        secret = stretch(passphrase, salted, cost)
        self._open(secret, wrapped, PHRASE_FILE, "That passphrase does not open it.")
        self._seen = seen

    def unlock_with_recovery(self, text: str) -> None:
        """Open the keyring with the printed key; InvalidRequest if it is mistyped."""
        secret = recovery_bytes(text)
        seen, (word,) = self._steady(lambda: self._words(RECOVERY_FILE, 1))
        slot = unhex(word, RECOVERY_FILE, _SLOT_BYTES)
        self._open(secret, slot, RECOVERY_FILE, "That recovery key does not open it.")
        self._seen = seen

    def lock(self) -> None:
        """Forget the master key, overwriting it; every later call raises Locked."""
        with self._mutex:
            master, self._master = self._master, None
            if master is not None:
                master[:] = bytes(len(master))

    def change_passphrase(self, new: str) -> None:
        """Change the passphrase to `new`; Conflict if another process changed it meanwhile."""
        line = self._passphrase_line(self._wrapping_key(), new)
        with self._changing():
            self._exchange(PHRASE_FILE, line)

    def renew_recovery(self) -> str:
        """A new recovery key, the old one opens nothing any more; Conflict as for a change."""
        master = self._wrapping_key()
        with self._changing():
            return self._write_recovery(master)

    # -- inside ------------------------------------------------------------------------

    def _admit(self) -> None:
        self._wrapping_key()

    def _wrapping_key(self) -> bytes:
        with self._mutex:
            if self._master is None:
                raise Locked("The keyring is locked.")
            return bytes(self._master)

    def _open(self, secret: bytes, slot: bytes, name: str, refusal: str) -> None:
        try:
            master = vault.unwrap(secret, slot, address=name, purpose=_MASTER)
        except SealBroken as error:
            raise Locked(refusal, hint="Nothing was changed; try again.") from error
        with self._mutex:
            self._master = bytearray(master)
        if self._file(KEY_FILE) is not None:
            with self._changing():
                self._take_over()

    def _files(self) -> dict[str, bytes | None]:
        """The passphrase file and the recovery file as they are now."""
        return {name: self._file(name) for name in (PHRASE_FILE, RECOVERY_FILE)}

    def _words(self, name: str, number: int) -> tuple[dict[str, bytes | None], list[str]]:
        """Both files, and the words of one of them."""
        seen = self._files()
        if (raw := seen[name]) is None:
            raise KeyMissing(f"The {name} file is not in the keys folder.")
        return seen, read_line(raw, name, number)

    @contextmanager
    def _founding(self) -> Iterator[None]:
        """Lock the folder for its first passphrase; Conflict if it has one."""
        with self._changing():
            self._seen = self._files()
            if self._seen[PHRASE_FILE] is not None:
                raise Conflict(
                    "This keys folder is locked by a passphrase already.",
                    hint="Unlock it with that passphrase; then it can be changed.",
                )
            yield

    def _exchange(self, name: str, line: bytes) -> None:
        """Replace a file, if it is still the one seen, and shred what killed processes left."""
        path = self._directory / name
        if self._file(name) != self._seen[name]:
            raise Conflict(
                f"Another process has changed the {name} file meanwhile.",
                hint="Unlock again with what is set now, then change it; nothing was changed.",
            )
        self._shred(path, drafts_only=True)
        self._disk.exchange(path, line, self._clock.random)
        self._seen = {**self._seen, name: line}

    def _found(self, passphrase: str) -> str:
        """Create the master key and write both files, the passphrase file last."""
        master = self._clock.random(vault.KEY_BYTES)
        line = self._passphrase_line(master, passphrase)
        recovery = self._write_recovery(master)
        self._exchange(PHRASE_FILE, line)
        with self._mutex:
            self._master = bytearray(master)
        return recovery

    def _passphrase_line(self, master: bytes, passphrase: str) -> bytes:
        salt = self._clock.random(SALT_BYTES)
        secret = stretch(passphrase, salt, self._cost)
        numbers = (self._cost.memory_kib, self._cost.passes, self._cost.lanes)
        slot = self._wrapped(secret, master, PHRASE_FILE, _MASTER)
        return write_line(PHRASE_FILE, "argon2id", *map(str, numbers), salt.hex(), slot.hex())

    def _write_recovery(self, master: bytes) -> str:
        secret = self._clock.random(RECOVERY_BYTES)
        slot = self._wrapped(secret, master, RECOVERY_FILE, _MASTER)
        self._exchange(RECOVERY_FILE, write_line(RECOVERY_FILE, slot.hex()))
        return recovery_text(secret)

    def _take_over(self) -> None:
        """Re-wrap the slots of the key file under the master key, then shred the key file."""
        master = self._wrapping_key()
        foreign = []
        for slot in self._all_slots():
            try:
                self._unwrapped(master, *slot)
            except SealBroken:
                foreign.append(slot)
        # A crash may have left the key file half overwritten, but only once no slot needed it.
        old = self._file_key() if foreign else None
        if old is not None:
            for address, purpose in foreign:
                with suppress(SealBroken):
                    key = self._unwrapped(old, address, purpose)
                    new = self._wrapped(master, key, address, purpose)
                    self._disk.exchange(self._path(address, purpose), new, self._clock.random)
        self._shred(self._directory / KEY_FILE)

    def _unwrapped(self, key: bytes, address: str, purpose: str) -> bytes:
        slot = self._slot(address, purpose)
        return vault.unwrap(key, slot, address=address, purpose=purpose)

    def _all_slots(self) -> Iterator[tuple[str, str]]:
        for address in self._disk.names(self._slots):
            for purpose in self._disk.names(self._slots / address):
                if not purpose.startswith("."):
                    yield address, purpose


def recovery_text(secret: bytes) -> str:
    """The recovery key as it is printed: 40 letters and digits in groups of five."""
    letters = base64.b32encode(secret + _recovery_check(secret)).decode()
    return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))


def recovery_bytes(text: str) -> bytes:
    """Decode a printed recovery key, spaced in any way; InvalidRequest if mistyped."""
    try:
        raw = base64.b32decode(text.upper().translate(_LOOKALIKES))
    except (binascii.Error, ValueError):
        raw = b""
    secret, check = raw[:RECOVERY_BYTES], raw[RECOVERY_BYTES:]
    if not hmac.compare_digest(check, _recovery_check(secret)):
        raise InvalidRequest(
            "The recovery key has a typing error.",
            hint="It is eight groups of five letters and digits; compare each with the print.",
        )
    return secret


def _recovery_check(secret: bytes) -> bytes:
    return hashlib.sha256(b"scrubjay recovery key" + secret).digest()[:_CHECK_BYTES]
