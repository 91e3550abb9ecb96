"""The default keyring: a key file, readable by its owner only, wraps the slots beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from scrubjay.adapters.disk import Disk
from scrubjay.adapters.keyrings.slots import KeysFolder, SlotKeyring, read_line, unhex, write_line
from scrubjay.model.errors import KeyMissing, Locked
from scrubjay.ports import Clock
from scrubjay.vault import KEY_BYTES

KEY_FILE: Final = "key"
PHRASE_FILE: Final = "passphrase"


class FileKeyring(SlotKeyring):
    """Slots wrapped by the key in `<keys>/key`, which the first use makes.

    It protects copies of the data, not data and keys taken together.
    """

    def __init__(self, directory: Path, clock: Clock, *, disk: Disk | None = None) -> None:
        super().__init__(KeysFolder(directory, clock, disk), clock)

    def _admit(self) -> None:
        if self._folder.file(PHRASE_FILE) is not None:
            raise Locked("These keys are locked by a passphrase.")

    def _wrapping_key(self) -> bytes:
        # Asked and read anew each time: a passphrase may take the key file's place meanwhile.
        self._admit()
        return read_key(self._folder) or self._made_key()

    def _made_key(self) -> bytes:
        if not self._folder.addresses():
            new = self._clock.random(KEY_BYTES).hex()
            self._folder.add_file(KEY_FILE, write_line(KEY_FILE, new))
        # Another process may have made the key, and slots, since it was missed.
        if (key := read_key(self._folder)) is None:
            raise KeyMissing(
                "The key file that opens this keys folder is gone.",
                hint="Put the file named key back into the keys folder; no new one was made.",
            )
        return key


def read_key(folder: KeysFolder) -> bytes | None:
    """The key in the key file; None if there is no file, SealBroken if it is damaged."""
    raw = folder.file(KEY_FILE)
    if raw is None:
        return None
    (word,) = read_line(raw, KEY_FILE, 1)
    return unhex(word, KEY_FILE, KEY_BYTES)
