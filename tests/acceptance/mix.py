"""A random mix of verbs on two scopes, each written down before it begins and once it is done."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Final

from scrubjay.engine import Kernel
from scrubjay.engine.transfer import bundle
from scrubjay.model.batches import RetainMany
from scrubjay.model.conversations import Append, ReadConversation
from scrubjay.model.jobs import Work
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.requests import (
    Amend,
    Browse,
    Destroy,
    Forget,
    Load,
    Purge,
    Recall,
    Restore,
    Retain,
    Supersede,
)
from scrubjay.model.scope import Scope
from scrubjay.testing.clock import START
from tests.acceptance.desk import Desk
from tests.acceptance.model import ALIVE, Fields, Model, Op, digest, look
from tests.acceptance.strongboxes import Strongboxes
from tests.acceptance.talk import Talk

MAIN, MAYFLY = "acme/main", "acme/mayfly"
SESSIONS: Final = 6
CROWD: Final = 80
LARGE: Final = 65_000
RUN: Final = 10_000
"""Operations are numbered from a multiple of this in every process."""
WEIGHTS: Final = {
    "retain": 30,
    "replay": 10,
    "derive": 6,
    "large": 4,
    "burst": 4,
    "many": 4,
    "supersede": 12,
    "pin": 6,
    "recall": 4,
    "forget": 6,
    "forget_session": 2,
    "rotate": 2,
    "root": 1,
    "purge": 2,
    "load": 3,
    "backup": 2,
    "restore": 3,
    "mayfly": 8,
    "desk": 2,
    "strongbox": 1,
}


class Ledger:
    """Who keeps count outside the store: in memory, and in a file that is synced on every ack."""

    def __init__(self, file: Path | None = None, tick: Callable[[], object] = bool) -> None:
        self.models = {MAIN: Model(), MAYFLY: Model()}
        self._scopes: dict[int, str] = {}
        self._mutex = threading.Lock()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._tick = tick
        self._fd = None if file is None else os.open(file, flags, 0o600)

    def begin(self, op: Op) -> None:
        """Write down what is about to be done."""
        self._write({"begin": asdict(op)})

    def acknowledge(self, number: int, answer: Fields) -> None:
        """Write down what the engine answered, durably."""
        self._write({"ack": number, "answer": answer})
        if self._fd is not None:
            os.fsync(self._fd)
        self._tick()

    def looked(self, scope: str, shown: Fields) -> None:
        """Write down what a scope shows."""
        self._write({"look": scope, "shown": shown})

    def _write(self, entry: Fields) -> None:
        with self._mutex:
            if self._fd is not None:
                os.write(self._fd, json.dumps(entry).encode() + b"\n")
            self.read(entry)

    def read(self, entry: Fields) -> None:
        """Take in one entry."""
        if "begin" in entry:
            op = Op(**entry["begin"])
            self._scopes[op.number] = op.scope
            self.models[op.scope].begin(op)
        elif "ack" in entry:
            self.models[self._scopes.pop(entry["ack"])].acknowledge(entry["ack"], entry["answer"])
        else:
            model = self.models[entry["look"]]
            model.problems = model.compare(entry["shown"])

    @property
    def acknowledged(self) -> int:
        """How many operations the engine answered."""
        return sum(model.acknowledged for model in self.models.values())


class Mix:
    """Carries out random verbs on an engine."""

    def __init__(
        self,
        engine: Kernel,
        ledger: Ledger,
        *,
        seed: int | str,
        number: int,
        folder: Path,
        threads: bool = True,
    ) -> None:
        self.number = number
        self._weights = {**WEIGHTS, "burst": WEIGHTS["burst"] if threads else 0}
        self._engine = engine
        self._ledger = ledger
        self._random = random.Random(seed)
        self._folder = folder
        self._tag = f"{seed}/{number}"
        self._talk = Talk(engine, folder)
        self._desk_of = Desk(engine, folder)
        self._strongboxes = Strongboxes(engine, folder)

    def begin(self) -> None:
        """Look at both scopes, and make the main one if it is not there."""
        for name, model in self._ledger.models.items():
            shown = look(self._engine, name)
            self._ledger.looked(name, shown)
            model.adopt(shown)
        if self._ledger.models[MAIN].life != ALIVE:
            self._create(MAIN)

    def step(self, favour: str | None = None) -> None:
        """One verb; every other time it is the favoured one, if there is one."""
        if favour is not None and self._random.random() < 0.5:
            verb = favour
        elif len(self._main.memories) > CROWD:
            verb = "forget_session"
        else:
            verb = self._random.choices([*self._weights], [*self._weights.values()])[0]
        getattr(self, f"_{verb}")()

    @property
    def _main(self) -> Model:
        return self._ledger.models[MAIN]

    def _do(self, scope: str, verb: str, args: Fields, call: Callable[[Scope], Fields]) -> None:
        self.number += 1
        self._carry_out(Op(number=self.number, scope=scope, verb=verb, args=args), call)

    def _carry_out(self, op: Op, call: Callable[[Scope], Fields]) -> None:
        self._ledger.begin(op)
        self._ledger.acknowledge(op.number, call(Scope.parse(op.scope)))

    def _words(self, number: int, size: int = 0) -> str:
        return f"memory {number} of {self._tag} ".ljust(size, "x")

    def _any(self, *, live: bool = False) -> str | None:
        found = [one for one, h in self._main.memories.items() if not (live and h.superseded_by)]
        return self._random.choice(found) if found else None

    # -- the verbs -------------------------------------------------------------------------

    def _retain(self, scope: str = MAIN, *, key: str = "", source: str = "", size: int = 0) -> None:
        self.number += 1
        self._write(*self._retention(self.number, scope, key=key, source=source, size=size))

    def _retention(
        self, number: int, scope: str = MAIN, *, key: str = "", source: str = "", size: int = 0
    ) -> tuple[Op, Retain]:
        session = f"session-{self._random.randrange(SESSIONS)}"
        request = Retain(
            content=self._words(number, size),
            key=key or f"key-{number}",
            session=session,
            sources=(source,) if source else (),
            metadata={"filler": "y" * 2_000} if size else {},
        )
        args = {
            "content": digest(request.content),
            "key": request.key,
            "session": session,
            "sources": list(request.sources),
        }
        return Op(number=number, scope=scope, verb="retain", args=args), request

    def _write(self, op: Op, request: Retain) -> None:
        def call(where: Scope) -> Fields:
            done = self._engine.retain(where, request)
            return {"id": done.id, "outcome": done.outcome}

        self._carry_out(op, call)

    def _replay(self) -> None:
        """Retain under a key of before, perhaps of an earlier process: known, forgotten or new."""
        run = self._random.randint(0, self.number // RUN) * RUN
        self._retain(key=f"key-{min(run + self._random.randint(1, 60), self.number)}")

    def _derive(self) -> None:
        self._retain(source=self._any() or "")

    def _large(self) -> None:
        self._retain(size=LARGE)

    def _burst(self) -> None:
        """Several threads at once, so that they share commits."""
        writes = []
        for _ in range(6):
            self.number += 1
            writes.append(self._retention(self.number))
        with ThreadPoolExecutor(len(writes)) as threads:
            for done in [threads.submit(self._write, *write) for write in writes]:
                done.result()

    def _many(self) -> None:
        """Several at once, in one transaction."""
        writes = []
        for _ in range(4):
            self.number += 1
            writes.append(self._retention(self.number))
            self._ledger.begin(writes[-1][0])
        items = [request for _, request in writes]
        done = self._engine.retain_many(Scope.parse(MAIN), RetainMany(items))
        for (op, _), one in zip(writes, done, strict=True):
            assert one.retained is not None
            answer = {"id": one.retained.id, "outcome": one.retained.outcome}
            self._ledger.acknowledge(op.number, answer)

    def _supersede(self) -> None:
        old = self._any(live=True)
        if old is None:
            return
        request = Supersede(
            id=old, content=self._words(self.number + 1), key=f"key-{self.number + 1}"
        )
        args = {"supersedes": old, "content": digest(request.content), "key": request.key}
        self._do(MAIN, "supersede", args, lambda s: {"id": self._engine.supersede(s, request).id})

    def _pin(self) -> None:
        one = self._any()
        if one is None:
            return
        pinned = self._random.random() < 0.7

        def call(scope: Scope) -> Fields:
            self._engine.amend(scope, Amend(one, pinned=pinned))
            return {}

        self._do(MAIN, "pin", {"id": one, "pinned": pinned}, call)

    def _recall(self) -> None:
        """Ask for everything: what is found is there, and a segment may be written meanwhile."""
        known = self._main.memories
        request = Recall(query=self._words(self.number), limit=100)
        for hit in self._engine.recall(Scope.parse(MAIN), request):
            assert hit.memory.id in known, f"{hit.memory.id} was found, but is not there"

    def _forget(self) -> None:
        one = self._any()
        if one is not None:
            self._erase([one], Forget(ids=(one,)))

    def _forget_session(self) -> None:
        session = f"session-{self._random.randrange(SESSIONS)}"
        ids = [one for one, held in self._main.memories.items() if held.session == session]
        self._erase(ids, Forget(session=session))

    def _erase(self, ids: list[str], request: Forget) -> None:
        self._do(
            MAIN,
            "forget",
            {"ids": ids},
            lambda scope: {"erased": self._engine.forget(scope, request).erased},
        )

    def _rotate(self) -> None:
        self._do(
            MAIN, "rotate", {}, lambda scope: {"resealed": self._engine.rotate(scope).resealed}
        )

    def _root(self) -> None:
        """The root key of the installation; to the memories it is a rotation like any other."""
        self._do(MAIN, "rotate", {}, lambda _: {"resealed": self._engine.rotate_root().rewrapped})

    def _purge(self) -> None:
        def call(scope: Scope) -> Fields:
            return {"superseded": self._engine.purge(scope, Purge(superseded_days=0)).superseded}

        self._do(MAIN, "purge", {}, call)

    def _load(self) -> None:
        """Load three memories at once; all of them or none."""
        number = self.number + 1
        memories = [
            Memory(
                id=f"mem-{number}-{place}",
                kind=Kind.FACT,
                content=self._words(number, 60 + place),
                recorded_at=START,
                key=f"key-{number}-{place}",
            )
            for place in range(3)
        ]
        raw = bundle.to_json(
            bundle.Content(scope=Scope.parse(MAIN), made_at="", memories=tuple(memories))
        )
        args = {one.id: {"content": digest(one.content), "key": one.key} for one in memories}
        self._do(
            MAIN,
            "load",
            {"memories": args},
            lambda scope: {"loaded": self._engine.load(scope, Load(raw)).loaded},
        )

    def _backup(self) -> None:
        fresh = self._folder / "fresh"

        def call(scope: Scope) -> Fields:
            raw, receipt = self._engine.backup(scope)
            fresh.write_bytes(raw)
            fresh.rename(self._folder / f"{receipt.name}.backup")
            return {"memories": receipt.memories}

        self._do(MAIN, "backup", {}, call)

    def _restore(self) -> None:
        """Restore a backup into the scope it came from, which then changes nothing."""
        backups = sorted(self._folder.glob("*.backup"))
        if not backups:
            self._backup()
            return
        raw = self._random.choice(backups).read_bytes()
        self._do(
            MAIN,
            "restore",
            {},
            lambda scope: {"loaded": self._engine.restore(scope, Restore(raw)).loaded},
        )

    def _extract(self) -> None:
        """A turn more in a scope of its own, and a model that reads what waits there."""
        self.number += 1
        self._talk.step(self.number)

    def _consolidate(self) -> None:
        """Episodes in a scope of their own: what was learned of each is there once."""
        scope = Scope.parse("acme/lessons")
        self.number += 1
        episode = Retain(self._words(self.number), kind="episode", key=f"key-{self.number}")
        self._engine.retain(scope, episode)
        self._engine.work(scope, Work(kinds=["consolidation"]))
        found = self._engine.browse(scope, Browse(kinds=["fact"], limit=10_000)).data
        told = Counter(one.content for one in found)
        assert set(told.values()) == {1}, told

    def _converse(self) -> None:
        """A conversation in a scope of its own: its first entry makes the collection's key."""
        self.number += 1
        scope, words = Scope.parse(f"acme/talk-{self.number}"), self._words(self.number)
        self._engine.append(scope, Append("words", [{"body": words}]))
        read = self._engine.conversation(scope, ReadConversation("words"))
        assert [one.body for one in read.entries] == [words]

    def _desk(self) -> None:
        """A conversation and documents in a scope that every process goes on with."""
        self.number += 1
        self._desk_of.step(self.number)

    def _strongbox(self) -> None:
        """A scope more that its user holds, with a write that waits in its inbox."""
        self.number += 1
        self._strongboxes.step(self.number)

    def _counters(self) -> None:
        """A backup writes what was counted of recalls first."""
        self._recall()
        self._backup()

    # -- a scope of many short lives --------------------------------------------------------

    def _mayfly(self) -> None:
        if self._ledger.models[MAYFLY].life != ALIVE:
            self._create(MAYFLY)
        elif self._random.random() < 0.4:
            self._retain(MAYFLY)
        else:
            self._destroy()

    def _create(self, name: str) -> None:
        def call(scope: Scope) -> Fields:
            self._engine.open(scope, anew=True)
            return {}

        self._do(name, "create", {}, call)

    def _destroy(self) -> None:
        self._do(
            MAYFLY,
            "destroy",
            {},
            lambda scope: {"erased": self._engine.destroy(scope, Destroy(confirm=MAYFLY)).erased},
        )
