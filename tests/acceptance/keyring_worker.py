"""One of many processes on one keyring with a passphrase; it says what it was told, a line each.

python -m tests.acceptance.keyring_worker FOLDER NAME SEED RECOVERY
"""

from __future__ import annotations

import json
import random
import sys
from itertools import count
from pathlib import Path

from scrubjay.model.errors import Conflict, KeyMissing, Locked, ScrubjayError, SealBroken
from tests.support.keyrings import PhraseKeyring

FIRST = "the first passphrase"
SHARED, PASSING = range(6), range(3)


class Worker:
    """A process with the keyring unlocked, by any passphrase that somebody set or by recovery."""

    def __init__(self, folder: Path, name: str, seed: str, recovery: str) -> None:
        self._folder, self._name, self._recovery = folder, name, recovery
        self._chance = random.Random(f"{seed}/{name}")
        self._tried = folder.parent / "tried"
        self._number = count()
        self.phrase = FIRST
        self.keyring = self._unlocked()

    def _unlocked(self) -> PhraseKeyring:
        keyring = PhraseKeyring(self._folder)
        while True:
            for phrase in reversed([FIRST, *self._tried.read_text().splitlines()]):
                try:
                    keyring.unlock(phrase)
                except Locked:
                    continue
                self.phrase = phrase
                return keyring

    def change(self) -> dict[str, object]:
        """Set a passphrase of one's own; who was too late unlocks again."""
        new, before = f"{self._name}-{next(self._number)}", self.phrase
        with self._tried.open("a") as file:
            file.write(f"{new}\n")
        try:
            self.keyring.phrase.change_passphrase(new)
        except Conflict:
            self.keyring = self._unlocked()
            return {}
        self.phrase = new
        return {"before": before, "after": new}

    def shared(self) -> dict[str, object]:
        """A slot that everybody adds and nobody deletes."""
        slot = f"memory.{self._chance.choice(SHARED)}"
        kept = self.keyring.add("shared", slot, self._chance.randbytes(32))
        return {"slot": slot, "key": kept.hex(), "same": self.keyring.get("shared", slot) == kept}

    def own(self) -> dict[str, object]:
        """A slot that only this process knows."""
        slot, key = f"own.{next(self._number)}", self._chance.randbytes(32)
        self.keyring.add(self._name, slot, key)
        return {"slot": slot, "key": key.hex(), "address": self._name}

    def passing(self) -> dict[str, object]:
        """A slot that everybody adds and deletes; a deletion that was cut off is finished."""
        slot = f"passing.{self._chance.choice(PASSING)}"
        how = self._chance.choice(("add", "delete", "get", "get"))
        try:
            if how == "add":
                self.keyring.add("passing", slot, bytes(32))
            elif how == "delete":
                self.keyring.delete("passing", slot)
            elif self.keyring.get("passing", slot) != bytes(32):
                return {"error": "another key"}
        except KeyMissing:
            return {}
        except SealBroken:
            self.keyring.delete("passing", slot)
            return {"cut": True}
        return {}

    def reopen(self) -> dict[str, object]:
        """Unlock once more, with a passphrase or with the printed key."""
        self.keyring.phrase.lock()
        if self._chance.random() < 0.5:
            self.keyring.phrase.unlock_with_recovery(self._recovery)
            self.keyring.phrase.lock()
        self.keyring = self._unlocked()
        return {}

    def found(self) -> dict[str, object]:
        """The installation key."""
        return {"slot": "installation", "key": self.keyring.found().hex()}


def work(worker: Worker, chance: random.Random) -> None:
    """Work until somebody ends this process."""
    verbs = (worker.change, worker.shared, worker.own, worker.passing, worker.reopen, worker.found)
    while True:
        verb = chance.choices(verbs, (3, 2, 2, 6, 2, 1))[0]
        told: dict[str, object] = {"verb": verb.__name__}
        try:
            told |= verb()
        except ScrubjayError as error:
            told["error"] = f"{error.code}: {error.message}"
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    place, who, seed, printed = sys.argv[1:]
    work(Worker(Path(place), who, seed, printed), random.Random(f"{who}/{seed}"))
