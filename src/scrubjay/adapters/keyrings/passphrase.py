"""Passphrase wrapper: a passphrase or the printed recovery key opens it.

A random master key wraps the slots. It is itself wrapped twice: under a key that Argon2id derives
from the passphrase, and under the recovery key. Changing the passphrase re-wraps the master key and
touches no slot. A change is a compare-and-set on what the keyring was unlocked with: of two at once
one is refused, so nobody is told of a passphrase or recovery key that opens nothing.

The master key of an earlier generation is in `<keys>/master.<n>`, wrapped by the one after it, as
long as slots may be left that it wrapped; in a folder that had a key file that is the key file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self, TypeVar

from scrubjay import vault
from scrubjay.adapters.disk import failures
from scrubjay.adapters.keyrings.file import KEY_FILE, PHRASE_FILE, LocalWrapper, read_key
from scrubjay.adapters.keyrings.folder import (
    PLACE,
    KeysFolder,
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
from scrubjay.ports import SlotPlace
from scrubjay.vault import (
    RECOVERY_BYTES,
    SALT_BYTES,
    STRONG,
    Cost,
    recovery_bytes,
    recovery_text,
    stretch,
)

RECOVERY_FILE: Final = "recovery"
_SLOT_BYTES: Final = vault.HASH_BYTES + vault.OVERHEAD + vault.KEY_BYTES
_MASTER: Final = "master"
_READ_TRIES: Final = 3
_T = TypeVar("_T")


class PassphraseWrapper(LocalWrapper):
    """Wrapper whose master key is in memory only between `unlock` and `lock`."""

    attended = True

    def __init__(self, folder: KeysFolder, *, cost: Cost = STRONG) -> None:
        super().__init__(folder.clock.random)
        self._folder = folder
        self._cost = cost
        self._master: bytearray | None = None
        self._generation = 0
        self._secret: bytearray | None = None
        """The key that the passphrase stretches to; None if the recovery key was used."""
        self._mutex = threading.Lock()
        self._seen: dict[str, bytes | None] = {}

    @classmethod
    def create(
        cls, folder: KeysFolder, passphrase: str, *, adopt: bool = False, cost: Cost = STRONG
    ) -> tuple[Self, str]:
        """Put a keys folder under a passphrase; the wrapper, unlocked, and its recovery key.

        With `adopt` the folder has a key file, which becomes the generation before: the caller
        re-wraps its slots and destroys it. Without, it has neither a key nor slots.
        """
        wrapper = cls(folder, cost=cost)
        with folder.changing():
            wrapper._seen = wrapper._files()
            if wrapper._seen[PHRASE_FILE] is not None:
                raise Conflict(
                    "This keys folder is locked by a passphrase already.",
                    hint="Unlock it with that passphrase; then it can be changed.",
                )
            key_file = folder.file(KEY_FILE)
            if adopt and key_file is None:
                raise KeyMissing("This keys folder has no key file to adopt.")
            if not adopt and key_file is not None:
                raise Conflict("This keys folder has a key file.", hint="Adopt it instead.")
            if not adopt and folder.addresses("", 1):
                raise KeyMissing("This keys folder has slots, but no key.")
            before = 0 if key_file is None else read_key(key_file)[0]
            random = folder.clock.random
            return wrapper, wrapper._replace(before + 1, random(vault.KEY_BYTES), passphrase)

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
        """Open it; Locked if the passphrase is wrong."""
        seen, generation, words = self._steady(self._phrase_words)
        cost, salt, slot = _phrase_parts(words)
        secret = stretch(passphrase, salt, cost)
        self._open(secret, slot, PHRASE_FILE, "That passphrase does not open it.")
        self._hold(generation, self._master, secret)
        self._seen = seen

    def unlock_with_recovery(self, text: str) -> None:
        """Open it with the printed key; InvalidRequest if it is mistyped."""
        secret = recovery_bytes(text)

        def read() -> tuple[dict[str, bytes | None], int, bytes]:
            seen, generation, _ = self._phrase_words()
            if (raw := seen[RECOVERY_FILE]) is None:
                raise _no_file(RECOVERY_FILE)
            (word,) = read_line(raw, RECOVERY_FILE, 1)
            return seen, generation, unhex(word, RECOVERY_FILE, _SLOT_BYTES)

        seen, generation, slot = self._steady(read)
        self._open(secret, slot, RECOVERY_FILE, "That recovery key does not open it.")
        self._hold(generation, self._master, None)
        self._seen = seen

    def lock(self) -> None:
        """Drop the master key, overwriting it; every later call raises Locked."""
        with self._mutex:
            for held in (self._master, self._secret):
                if held is not None:
                    held[:] = bytes(len(held))
            self._master = self._secret = None

    def change_passphrase(self, new: str) -> None:
        """Change the passphrase to `new`; Conflict if another process changed it meanwhile."""
        master = self._key()
        secret, line = self._stretched(self._generation, master, new)
        with self._folder.changing():
            self._exchange(PHRASE_FILE, line)
        self._hold(self._generation, master, secret)

    def renew_recovery(self) -> str:
        """A new recovery key, the old one opens nothing any more; Conflict as for a change."""
        master = self._key()
        with self._folder.changing():
            return self._write_recovery(master)

    # -- the port ------------------------------------------------------------------------

    def admit(self) -> None:
        self._key()

    def found(self) -> None:
        """There is one: it was made with the passphrase."""
        self.admit()

    def roots(self) -> Mapping[int, bytes]:
        master = self._key()
        raw = self._folder.file(PHRASE_FILE)
        if raw is not None and raw != self._seen[PHRASE_FILE]:
            master = self._follow(master)
        roots = {self._generation: master}
        if self._generation == 1 and self._folder.file(KEY_FILE) is None:
            return roots
        for number in reversed(self._folder.numbered(_MASTER)):
            held = self._folder.file(f"{_MASTER}.{number}")
            if held is not None and number + 1 in roots:
                (word,) = read_line(held, _MASTER, 1)
                slot = unhex(word, _MASTER, _SLOT_BYTES)
                name = f"{_MASTER}.{number}"
                after = roots[number + 1]
                roots[number] = vault.unwrap(after, slot, address=name, purpose=_MASTER)
        # A crash may leave the key file half overwritten, but only once no slot needs it.
        with suppress(SealBroken):
            if (raw := self._folder.file(KEY_FILE)) is not None:
                number, key = read_key(raw)
                roots[min(number, min(roots) - 1)] = key
        return roots

    def rewrap(self, place: SlotPlace, slot: bytes) -> bytes:
        try:
            return super().rewrap(place, slot)
        except SealBroken:
            try:
                if (raw := self._folder.file(KEY_FILE)) is not None:
                    read_key(raw)
            except SealBroken as error:  # it may be the one that is needed: the slot is not lost
                raise KeyMissing(error.message, hint=error.hint) from error
            raise

    def begin(self) -> int:
        """Begin another generation; the recovery key is another one from now on: `renewed`."""
        if self._secret is None:
            raise InvalidRequest(
                "The recovery key does not begin another generation.",
                hint="Unlock with the passphrase.",
            )
        with self._folder.changing():
            roots, secret = self.roots(), bytes(self._secret)
            last, new = max(roots), self.random(vault.KEY_BYTES)
            name = f"{_MASTER}.{last}"
            slot = self._wrapped(new, roots[last], name)
            self._folder.disk.replace(
                self._folder.directory / name, write_line(_MASTER, slot.hex())
            )
            renewed = self._write_recovery(new)
            seen = self._seen[PHRASE_FILE] or b""
            cost, salt, _ = _phrase_parts(_generation_of(seen)[1])
            self._exchange(PHRASE_FILE, self._line(last + 1, cost, salt, secret, new))
        self._hold(last + 1, new, secret)
        self.renewed = renewed
        return last + 1

    def destroy(self, generation: int) -> None:
        with self._folder.changing():
            if generation >= self._generation:
                raise InvalidRequest("The root key in use is not destroyed: begin another first.")
            for number in self._folder.numbered(_MASTER):
                if number <= generation:
                    self._folder.shred(self._folder.directory / f"{_MASTER}.{number}")
            self._folder.shred(self._folder.directory / KEY_FILE)

    # -- inside ------------------------------------------------------------------------

    def _key(self) -> bytes:
        with self._mutex:
            if self._master is None:
                raise Locked("The keyring is locked.")
            return bytes(self._master)

    def _hold(
        self, generation: int, master: bytes | bytearray | None, secret: bytes | None
    ) -> None:
        with self._mutex:
            self._generation = generation
            self._master = None if master is None else bytearray(master)
            self._secret = None if secret is None else bytearray(secret)

    def _follow(self, master: bytes) -> bytes:
        """The master key, when another process may have begun another generation meanwhile."""
        seen, generation, words = self._steady(self._phrase_words)
        if generation == self._generation:
            return master  # only the passphrase is another one
        _, _, slot = _phrase_parts(words)
        if self._secret is None:
            raise Locked("The root key was rotated.", hint="Unlock it again.")
        secret = bytes(self._secret)
        self._open(secret, slot, PHRASE_FILE, "The root key was rotated, and the passphrase too.")
        self._hold(generation, self._master, secret)
        self._seen = seen
        return self._key()

    def _open(self, secret: bytes, slot: bytes, name: str, refusal: str) -> None:
        try:
            master = vault.unwrap(secret, slot, address=name, purpose=_MASTER)
        except SealBroken as error:
            raise Locked(refusal, hint="Nothing was changed; try again.") from error
        with self._mutex:
            self._master = bytearray(master)

    def _files(self) -> dict[str, bytes | None]:
        """The passphrase file and the recovery file as they are now."""
        return {name: self._folder.file(name) for name in (PHRASE_FILE, RECOVERY_FILE)}

    def _phrase_words(self) -> tuple[dict[str, bytes | None], int, list[str]]:
        """Both files, and the generation and the words of the passphrase file."""
        seen = self._files()
        if (raw := seen[PHRASE_FILE]) is None:
            raise _no_file(PHRASE_FILE)
        return seen, *_generation_of(raw)

    def _steady(self, read: Callable[[], _T]) -> _T:
        """What is read, again while it is just being overwritten."""
        for _ in range(_READ_TRIES):
            with suppress(SealBroken):
                return read()
        with self._quiet():
            return read()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Context manager: nobody overwrites a file, if this folder has a lock to take."""
        with ExitStack() as held:
            with suppress(OSError, StoreError):
                held.enter_context(self._folder.changing(shared=True))
            yield

    def _exchange(self, name: str, line: bytes) -> None:
        """Replace a file, if it is still the one seen, and shred what killed processes left."""
        path = self._folder.directory / name
        if self._folder.file(name) != self._seen[name]:
            raise Conflict(
                f"Another process has changed the {name} file meanwhile.",
                hint="Unlock again with what is set now, then change it; nothing was changed.",
            )
        self._folder.shred(path, drafts_only=True)
        self._folder.disk.exchange(path, line, self.random)
        self._seen = {**self._seen, name: line}

    def _replace(self, generation: int, master: bytes, passphrase: str) -> str:
        """Write both files for a master key, the passphrase file last; the recovery key."""
        secret, line = self._stretched(generation, master, passphrase)
        recovery = self._write_recovery(master)
        self._exchange(PHRASE_FILE, line)
        self._hold(generation, master, secret)
        return recovery

    def _stretched(self, generation: int, master: bytes, passphrase: str) -> tuple[bytes, bytes]:
        """What a passphrase stretches to, and the passphrase file that it opens."""
        salt = self.random(SALT_BYTES)
        secret = stretch(passphrase, salt, self._cost)
        return secret, self._line(generation, self._cost, salt, secret, master)

    def _line(
        self, generation: int, cost: Cost, salt: bytes, secret: bytes, master: bytes
    ) -> bytes:
        numbers = (cost.memory_kib, cost.passes, cost.lanes)
        slot = self._wrapped(secret, master, PHRASE_FILE)
        words = ("argon2id", *map(str, numbers), salt.hex(), slot.hex())
        if generation == 1:  # as it was before there were generations
            return write_line(PHRASE_FILE, *words)
        return write_line(PHRASE_FILE, str(generation), *words, version=2)

    def _write_recovery(self, master: bytes) -> str:
        secret = self.random(RECOVERY_BYTES)
        slot = self._wrapped(secret, master, RECOVERY_FILE)
        self._exchange(RECOVERY_FILE, write_line(RECOVERY_FILE, slot.hex()))
        return recovery_text(secret)

    def _wrapped(self, secret: bytes, master: bytes, name: str) -> bytes:
        nonce = self.random(vault.NONCE_BYTES)
        return vault.wrap(secret, master, address=name, purpose=_MASTER, nonce=nonce)


def _no_file(name: str) -> KeyMissing:
    return KeyMissing(f"The {name} file is not in the keys folder.")


def _generation_of(raw: bytes) -> tuple[int, list[str]]:
    """The generation of the master key that a passphrase file holds, and its other words."""
    *number, kind, memory, passes, lanes, salt, slot = read_line(raw, PHRASE_FILE, 6, 7)
    return int(*number or ["1"]), [kind, memory, passes, lanes, salt, slot]


def _phrase_parts(words: list[str]) -> tuple[Cost, bytes, bytes]:
    """Cost, salt and wrapped master key of a passphrase file."""
    kind, *numbers, salt, slot = words
    if kind != "argon2id" or not all(number.isdecimal() for number in numbers):
        raise damaged(PHRASE_FILE)
    memory, passes, lanes = map(int, numbers)
    cost = Cost(memory_kib=memory, passes=passes, lanes=lanes)
    salted = unhex(salt, PHRASE_FILE, SALT_BYTES)
    return cost, salted, unhex(slot, PHRASE_FILE, _SLOT_BYTES)
