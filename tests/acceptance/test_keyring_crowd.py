"""A keyring with a passphrase, many processes, and kills between any two of their steps."""

from __future__ import annotations

import json
import random
import selectors
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import IO, Any

from tests.acceptance.keyring_worker import FIRST
from tests.support.keyrings import PhraseKeyring

ROOT = Path(__file__).parents[2]
PROCESSES = 6


class Crowd:
    """The processes; whoever is killed is followed by another."""

    def __init__(self, folder: Path, recovery: str, seed: int) -> None:
        self._command = [sys.executable, "-m", "tests.acceptance.keyring_worker", str(folder)]
        self._after = [str(seed), recovery]
        self._names = count()
        self._ready = selectors.DefaultSelector()
        self.working = [self._start() for _ in range(PROCESSES)]

    def _start(self) -> subprocess.Popen[bytes]:
        command = [*self._command, f"w{next(self._names)}", *self._after]
        one = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0)
        assert one.stdout is not None
        self._ready.register(one.stdout, selectors.EVENT_READ, one.stdout)
        return one

    def kill(self, at: int) -> Iterator[dict[str, Any]]:
        """Kill one, and what it had said by then."""
        one = self.working[at]
        one.kill()
        assert one.stdout is not None
        yield from map(json.loads, (line for line in one.stdout if line.endswith(b"\n")))
        self._ready.unregister(one.stdout)
        one.stdout.close()
        one.wait()
        self.working[at] = self._start()

    def said(self) -> Iterator[dict[str, Any]]:
        """What the processes say, in the order in which it is heard."""
        while True:
            for key, _ in self._ready.select():
                one: IO[bytes] = key.data
                if not one.closed:  # it may have been killed since it was selected
                    line = one.readline()
                    assert line, "a process ended by itself"
                    yield json.loads(line)

    def end(self) -> None:
        """End every process."""
        for one in self.working:
            one.kill()
            one.wait()
            assert one.stdout is not None
            one.stdout.close()


def test_no_key_is_lost_no_change_is_lost_and_nothing_looks_damaged(
    tmp_path: Path, seed: int, more: bool, record_property: Callable[..., None]
) -> None:
    folder = tmp_path / "keys"
    keyring = PhraseKeyring(folder)
    recovery = keyring.begin(FIRST)
    (tmp_path / "tried").touch()
    chance, heard = random.Random(seed), list[dict[str, Any]]()
    most = 20_000 if more else 1_500
    crowd = Crowd(folder, recovery, seed)
    try:
        for told in crowd.said():
            heard.append(told)
            if len(heard) < most / 2:
                assert "cut" not in told, "a slot looked damaged although nobody was killed"
            elif len(heard) % 50 == 0:
                heard += crowd.kill(chance.randrange(PROCESSES))
            if len(heard) > most:
                break
    finally:
        crowd.end()
    errors = Counter(told["error"] for told in heard if "error" in told)
    record_property("heard", len(heard))
    record_property("deletions cut off", sum("cut" in told for told in heard))
    assert not errors
    slots = defaultdict[tuple[str, str], set[str]](set)
    for told in heard:
        if "key" in told:
            slots[told.get("address", "shared"), told["slot"]].add(told["key"])
            assert told.get("same", True)
    assert [slot for slot, keys in slots.items() if len(keys) > 1] == [], "two keys of one slot"
    installation = slots.pop(("shared", "installation"))
    assert installation == {keyring.installation().hex()}
    for slot, keys in slots.items():
        assert {keyring.get(*slot).hex()} == keys
    changes = Counter(told["before"] for told in heard if "before" in told)
    assert len(changes) > 20
    assert [phrase for phrase, number in changes.items() if number > 1] == [], "a change was lost"
    opened = PhraseKeyring(folder).phrase
    opened.unlock_with_recovery(recovery)
    opened.change_passphrase("the last passphrase")
    assert sorted(path.name for path in folder.iterdir()) == [
        "lock",
        "passphrase",
        "recovery",
        "slots",
    ], "a draft of a killed change was left"
