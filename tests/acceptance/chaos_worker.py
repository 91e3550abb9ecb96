"""One of many processes on a home where everything goes wrong; it writes down what it was told.

python -m tests.acceptance.chaos_worker HOME LEDGER NAME SEED PIPE
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.requests import Browse, Forget, Recall, Retain
from scrubjay.model.scope import Scope
from scrubjay.ports import SystemClock

SCOPE = Scope("acme", "chaos")
LOCK_SECONDS = 2.0
BALLAST = 1


class JumpingClock(SystemClock):
    """A clock that is set wrong by up to a year now and then."""

    off = timedelta()

    def now(self) -> datetime:
        """The time it believes in."""
        return super().now() + self.off


def build(home: Path, clock: SystemClock | None = None) -> Kernel:
    """An engine that waits for no lock longer than `LOCK_SECONDS`."""
    place = replace(settings.at_home(home), lock_seconds=LOCK_SECONDS, ballast_megabytes=BALLAST)
    return bootstrap.build(place, clock=clock)


def moment() -> float:
    """A clock that stands still while this thread could go on and has no processor.

    So a verb is timed by its waits and its work, however busy the machine is.
    """
    told = Path("/proc/thread-self/schedstat")
    return time.monotonic() - (int(told.read_text().split()[1]) / 1e9 if told.exists() else 0)


def work(home: Path, ledger: int, name: str, chance: random.Random, pipe: int) -> None:
    """Carry out verbs until somebody ends this process; the pipe gets a byte for each."""
    clock, engine, mine, number = JumpingClock(), None, dict[str, str](), 0
    while True:
        number += 1
        verb = chance.choices(["retain", "replay", "forget", "read", "rotate"], [8, 3, 2, 4, 1])[0]
        clock.off = timedelta(days=chance.choice([0, 0, 0, 365, -365]))
        key = f"{name}/{number}" if verb == "retain" or not mine else chance.choice([*mine])
        told: dict[str, object] = {"verb": verb, "key": key, "id": mine.get(key)}
        os.write(ledger, json.dumps({**told, "begun": True}).encode() + b"\n")
        begun, wall = moment(), time.monotonic()
        try:
            if engine is None:
                engine = build(home, clock)
            if verb == "forget" and key in mine:
                engine.forget(SCOPE, Forget(ids=(mine.pop(key),)))
            elif verb == "read":
                engine.recall(SCOPE, Recall(key, limit=5))
                engine.browse(SCOPE, Browse(limit=5))
            elif verb == "rotate":
                engine.rotate(SCOPE)
            else:
                done = engine.retain(SCOPE, Retain(f"what {key} said", key=key))
                mine[key] = done.id
                told |= {"verb": "retain", "id": done.id, "outcome": done.outcome}
        except ScrubjayError as error:
            told["error"] = error.code
        told |= {"seconds": moment() - begun, "wall": time.monotonic() - wall}
        os.write(ledger, json.dumps(told).encode() + b"\n")
        with suppress(BlockingIOError):  # nobody waits for that many
            os.write(pipe, b".")
        if engine is not None and chance.random() < 0.05:
            engine.close()
            engine = None


if __name__ == "__main__":
    place, file, who, seed, pipe = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    work(Path(place), os.open(file, flags, 0o600), who, random.Random(f"{seed}/{who}"), int(pipe))
