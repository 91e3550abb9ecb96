"""Twelve processes, kills, stops, full and read-only disks, wrong clocks, files moved about."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import StoreError
from scrubjay.model.memory import Memory
from scrubjay.model.requests import Browse, Retain
from scrubjay.model.results import Outcome
from tests.acceptance.chaos_worker import LOCK_SECONDS, SCOPE, build
from tests.acceptance.test_disk_full import Tmpfs

ROOT = Path(__file__).parents[2]
PROCESSES = 12
BOUND = 4 * LOCK_SECONDS + 14
"""How long a verb may take, but for a busy machine: its waits, and a stop of its own process."""
ALLOWED = {"store_busy", "store_full", "store_error", "key_missing"}


@pytest.fixture
def volume(more: bool) -> Iterator[tuple[Path, bool]]:
    """A folder, and whether it is a small disk of its own.

    It has room for four times what the crowd writes: a rotation writes everything again, into the
    log and then into the file, beside the log of the catalog and the segments before the new ones.
    """
    size = "64m" if more else "24m"
    with TemporaryDirectory(prefix="scrubjay-chaos-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            yield Path(folder), False
            return
        try:
            yield Path(folder), True
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


class Crowd:
    """The processes, what they wrote down, and everything that is done to them."""

    def __init__(self, disk: Path, outside: Path, seed: int, *, mounted: bool) -> None:
        self.home = disk / "home"
        self.kills = 0
        self._disk, self._outside, self._mounted = disk, outside, mounted
        self._chance = random.Random(seed)
        self._names = count()
        self._seed = seed
        self._filling = Tmpfs(disk)
        self._done, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._working = [self._start() for _ in range(PROCESSES)]

    def _start(self) -> subprocess.Popen[bytes]:
        name = f"w{next(self._names)}"
        command = [sys.executable, "-m", "tests.acceptance.chaos_worker"]
        with (self._outside / f"{name}.err").open("wb") as errors:
            return subprocess.Popen(
                [
                    *command,
                    *(self.home, self._outside / f"{name}.jsonl", name),
                    *(str(self._seed), str(self._told)),
                ],
                cwd=ROOT,
                stderr=errors,
                pass_fds=[self._told],
            )

    def wait_for(self, verbs: int) -> None:
        """Wait until the processes have ended so many verbs, well or with an error."""
        while verbs > 0:
            assert select.select([self._done], [], [], BOUND)[0], "nobody gets anything done"
            verbs -= len(os.read(self._done, verbs))

    def mishap(self) -> None:
        """A process is killed, and one more thing goes wrong, which is right again afterwards."""
        self._kill()
        kinds = [self._stop, self._stop, self._keys_away]
        if self._mounted:
            kinds += [self._fill, self._read_only]
        self._chance.choice(kinds)()

    def _kill(self) -> None:
        at = self._chance.randrange(PROCESSES)
        self._working[at].kill()
        self._working[at].wait()
        self._working[at] = self._start()
        self.kills += 1

    def _stop(self) -> None:
        stopped = self._chance.sample(self._working, 2)
        for one in stopped:
            one.send_signal(signal.SIGSTOP)
        self.wait_for(self._chance.randrange(PROCESSES))
        for one in stopped:
            one.send_signal(signal.SIGCONT)

    def _keys_away(self) -> None:
        (self.home / "keys").rename(self._disk / "aside")
        self.wait_for(PROCESSES)
        assert not (self.home / "keys" / "key").exists(), "keys were made up"
        while (self._disk / "aside").exists():  # a writer may make an empty folder meanwhile
            shutil.rmtree(self.home / "keys", ignore_errors=True)
            with suppress(OSError):
                (self._disk / "aside").rename(self.home / "keys")

    def _fill(self) -> None:
        self._filling.fill()
        self.wait_for(2 * PROCESSES)
        self._filling.free()

    def _read_only(self) -> None:
        remount = ["mount", "-o", "remount,ro", str(self._disk)]
        if subprocess.run(remount, capture_output=True, check=False).returncode == 0:
            self.wait_for(2 * PROCESSES)
        subprocess.run(["mount", "-o", "remount,rw", str(self._disk)], check=True)

    def end(self) -> None:
        """End every process."""
        for one in self._working:
            one.kill()
            one.wait()
        os.close(self._told)
        os.close(self._done)

    def entries(self) -> Iterator[dict[str, Any]]:
        """What all processes wrote down, each in its order."""
        for file in sorted(self._outside.glob("*.jsonl")):
            yield from map(json.loads, file.read_bytes().splitlines())

    def tracebacks(self) -> list[str]:
        """What processes failed with; lines of the log are no failure."""
        said = (file.read_text() for file in self._outside.glob("*.err"))
        return [text for text in said if "Traceback" in text]


def test_whatever_happens_nothing_is_lost_doubled_or_back(
    volume: tuple[Path, bool],
    tmp_path: Path,
    seed: int,
    more: bool,
    record_property: Callable[..., None],
) -> None:
    disk, mounted = volume
    engine = build(disk / "home")
    engine.retain(SCOPE, Retain("the first", key="first"))
    engine.close()
    crowd = Crowd(disk, tmp_path, seed, mounted=mounted)
    try:
        crowd.wait_for(10 * PROCESSES)
        for _ in range(600 if more else 30):
            crowd.mishap()
            crowd.wait_for(3 * PROCESSES)
    finally:
        crowd.end()
    assert crowd.tracebacks() == []
    kept, doubtful, gone, errors = dict[str, str](), set[str](), set[str](), Counter[str]()
    slowest, longest = (0.0, "", ""), 0.0
    for entry in crowd.entries():
        key, verb = entry["key"], entry["verb"]
        if entry.get("begun"):
            if verb == "forget":
                doubtful.add(key)
            continue
        slowest = max(slowest, (entry["seconds"], verb, entry.get("error", "")))
        longest = max(longest, entry["wall"])
        if code := entry.get("error"):
            errors[code] += 1
        elif verb == "forget" and entry["id"]:
            gone.add(key)
        elif verb == "retain" and entry["outcome"] != Outcome.FORGOTTEN:
            kept[key] = entry["id"]
    assert set(errors) <= ALLOWED, errors
    engine = build(disk / "home")
    engine.finish_due(SCOPE)
    keys = Counter(memory.key for memory in everything(engine))
    assert [key for key in kept if key not in keys and key not in doubtful] == [], "lost"
    assert [key for key, number in keys.items() if number > 1] == [], "doubled"
    assert [key for key in gone if key in keys] == [], "resurrected"
    for key in sorted(gone)[:20]:
        assert engine.retain(SCOPE, Retain("again", key=key)).outcome is Outcome.FORGOTTEN
    assert engine.verify(SCOPE).problems == ()
    engine.close()
    swap_in_an_older_file(disk / "home", tmp_path)
    assert slowest < (BOUND,), longest
    record_property("acknowledged", len(kept))
    record_property("forgotten", len(gone))
    record_property("kills", crowd.kills)
    record_property("slowest verb", f"{slowest[0]:.1f} s, by the clock {longest:.1f} s")
    record_property("refused", dict(errors))


def everything(engine: Kernel) -> Iterator[Memory]:
    """Every memory, page by page."""
    cursor = None
    while True:
        page = engine.browse(SCOPE, Browse(limit=1_000, cursor=cursor))
        yield from page
        if (cursor := page.next_cursor) is None:
            return


def swap_in_an_older_file(home: Path, outside: Path) -> None:
    """A file from before is refused, and nothing is lost when the right one is back."""
    scopes = home / "data" / "scopes"
    shutil.copytree(scopes, outside / "old")
    engine = build(home)
    new = engine.retain(SCOPE, Retain("the last", key="last")).id
    engine.close()
    shutil.copytree(scopes, outside / "new")
    for name in ("old", "new"):
        shutil.rmtree(scopes)
        shutil.copytree(outside / name, scopes)
        engine = build(home)
        if name == "old":
            with pytest.raises(StoreError, match="older than"):
                engine.browse(SCOPE, Browse())
        else:
            assert new in {memory.id for memory in engine.browse(SCOPE, Browse())}
        engine.close()
