"""Over two hundred words are planted; after every verb, no byte of any file says one of them."""

from __future__ import annotations

import base64
import json
import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel, Policy
from scrubjay.model.conversations import Append, Branch, DeleteConversation, Rewind
from scrubjay.model.documents import Move, Put, Remove
from scrubjay.model.memory import Json
from scrubjay.model.requests import (
    Amend,
    BriefRequest,
    Browse,
    Destroy,
    Export,
    Forget,
    FreezeRequest,
    History,
    Load,
    Purge,
    Recall,
    Restore,
    Retain,
    Supersede,
)
from scrubjay.model.results import Exported
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.ports import Failpoint
from scrubjay.testing.clock import FakeClock
from tests.acceptance import needles
from tests.acceptance.opening import count_segments, words_left
from tests.support.engines import Crashes, SimulatedCrash

NEEDLES = 212
SCOPES = 4
MEMORIES = 4
EAGER = Policy(segment_rows=0)
"""Writes a segment at every recall that finds something new."""


@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(str.encode, id="text"),
        pytest.param(lambda text: text.upper().encode(), id="capitals"),
        pytest.param(lambda text: text.encode("utf-16-le"), id="utf-16-le"),
        pytest.param(lambda text: text.encode("utf-16-be"), id="utf-16-be"),
        pytest.param(lambda text: text.encode().hex().encode(), id="hex"),
        pytest.param(lambda text: base64.b32encode(text.encode()).lower(), id="base32"),
        pytest.param(lambda text: base64.b64encode(text.encode()), id="base64"),
        pytest.param(lambda text: base64.urlsafe_b64encode(text.encode()), id="base64-url"),
    ],
)
@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "abcd"])
def test_the_hunt_finds_what_is_there(encode: Callable[[str], bytes], before: str) -> None:
    needle = needles.make(0, 1)[0]
    raw = b"\x00\xff" + encode(f"{before}?{needle}!") + b"\xff\x00"
    assert list(needles.hits(raw, [needle])), raw
    assert not list(needles.hits(raw, needles.make(1, 1)))


def test_no_file_ever_says_what_was_planted(
    tmp_path: Path,
    seed: int,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[..., None],
) -> None:
    caplog.set_level(logging.DEBUG)
    story = Story(tmp_path, seed)
    for verb in story.verbs():
        found = story.hunt()
        assert not found, f"seed {seed}, after {verb}: {found[:5]}"
    assert story.pool == [], "not all needles were planted"
    assert not list(needles.hits(caplog.text.encode(), story.needles))
    record_property("needles", NEEDLES)
    record_property("hunts", story.hunts)
    record_property("files searched", story.files)
    record_property("megabytes", round(story.bytes / 1e6))


class Story:
    """A home on which every verb happens, and the words planted there."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.needles = needles.make(seed, NEEDLES)
        self.pool = list(self.needles)
        self.hunts = self.files = self.bytes = 0
        self._folder = folder
        self._home = folder / "home"
        self._crashes = Crashes()
        self._clock = FakeClock(seed)
        self._engine = self._start()
        self._scopes = [Scope(self._word(), self._word()) for _ in range(SCOPES)]
        self._ids: dict[Scope, list[str]] = {scope: [] for scope in self._scopes}
        self._planted: dict[str, list[str]] = {}
        """The words of each memory that its index knows it by."""

    def hunt(self) -> list[str]:
        """Every needle found, in a name or a byte of a copy of the home.

        It is another process that copies: closing a file here would drop SQLite's locks on it.
        """
        copy = self._folder / "copy"
        subprocess.run(["cp", "-r", "--sparse=never", self._home, copy], check=True)
        paths = sorted(copy.rglob("*"))
        found = [f"{path.name} (a name): {hit}" for path in paths for hit in self._in_name(path)]
        for path in (path for path in paths if path.is_file()):
            raw = path.read_bytes()
            found += [f"{path.relative_to(copy)}: {hit}" for hit in needles.hits(raw, self.needles)]
            self.files += 1
            self.bytes += len(raw)
        subprocess.run(["rm", "-r", copy], check=True)
        self.hunts += 1
        return found

    def verbs(self) -> Iterator[str]:
        """Do one verb after the other; says which it was."""
        for scope in self._scopes:
            for _ in range(MEMORIES):
                self._retain(scope)
                yield "retain"
            yield self._recall(scope)
        yield from self._keeping(self._scopes[3])
        yield from self._amending(*self._scopes[:2])
        yield from self._erasing(*self._scopes[:2])
        yield from self._copying(*self._scopes[1:3])
        yield from self._crashing(self._scopes[2])
        yield from self._destroying(*self._scopes[:2])

    def _keeping(self, scope: Scope) -> Iterator[str]:
        """Conversations and documents, from their first write to the last of their erasing."""
        engine, name = self._engine, self._word()
        bodies: list[Json] = [{self._word(): self._word()}, {"long": self._word() * 5_000}]
        request = Append(
            name,
            [{"body": body} for body in bodies],
            title=self._word(),
            metadata={self._word(): self._word()},
        )
        engine.append(scope, request)
        yield "append"
        engine.branch(scope, Branch(name, into=self._word()))
        engine.rewind(scope, Rewind(name, at=1))
        yield "branch and rewind"
        path = (self._word(), "a")
        engine.put(scope, Put(path, {self._word(): self._word()}, session=name, indexed=True))
        yield "put"
        engine.move(scope, Move(path, to=(self._word(), "b")))
        yield self._recall(scope)
        engine.delete_conversation(scope, DeleteConversation(name))
        yield "delete_conversation"
        for document in engine.documents(scope).data:
            engine.remove(scope, Remove(document.name))
            yield "remove"
        engine.rotate(scope)
        assert engine.verify(scope).sound
        yield "rotate"

    # -- the verbs -------------------------------------------------------------------------

    def _start(self) -> Kernel:
        place = settings.at_home(self._home)
        return bootstrap.build(place, clock=self._clock, reach=self._crashes, policy=EAGER)

    def _word(self) -> str:
        return self.pool.pop()

    def _in_name(self, path: Path) -> Iterator[str]:
        return needles.hits(path.name.encode(), self.needles)

    def _request(self, scope: Scope) -> Retain:
        return Retain(
            content=f"The word is {self._word()}.\nIt is planted.",
            tags=(self._word(), self._word()),
            id=f"mem-{self._word()}",
            session=self._word(),
            key=self._word(),
            speaker=self._word(),
            channel=self._word(),
            message_id=self._word(),
            sources=tuple(self._ids[scope][:1]),
            metadata={self._word(): self._word()},
        )

    def _retain(self, scope: Scope) -> None:
        request = self._request(scope)
        done = self._engine.retain(scope, request)
        self._ids[scope].append(done.id)
        word = request.content.split()[3].strip(".")
        # Not its speaker: a later version, which stays, has the same one.
        self._planted[done.id] = [word, *request.tags, request.session or ""]

    def _recall(self, scope: Scope) -> str:
        """Ask, and be briefed, as this engine and as a new one: segments are written, and read."""
        query = Recall(query=f"What is the word {self.needles[-1]}?")
        other = self._start()
        for engine in (self._engine, other, self._engine):
            engine.recall(scope, query)
            engine.brief(scope, BriefRequest())
        other.close()
        assert count_segments(self._engine, scope), "no segment was written"
        return "recall"

    def _gone(self, scope: Scope, *ids: str) -> None:
        """No key opens a segment that has a word of these memories; words of others there are."""
        gone = [word for one in ids for word in self._planted[one]]
        assert words_left(self._engine, scope, gone) == set()
        there = [memory.id for memory in self._engine.browse(scope, Browse())]
        kept = [word for one in there for word in self._planted.get(one, ())]
        found = words_left(self._engine, scope, kept)
        assert found == set(kept) or not count_segments(self._engine, scope)

    def _supersede(self, scope: Scope) -> None:
        request = Supersede(
            id=self._ids[scope][-1],
            content=f"The better word is {self._word()}.",
            tags=(self._word(),),
            session=self._word(),
            key=self._word(),
            reason=self._word(),
        )
        self._ids[scope].append(self._engine.supersede(scope, request).id)

    def _amending(self, one: Scope, other: Scope) -> Iterator[str]:
        engine = self._engine
        for scope in (one, one, other):
            self._supersede(scope)
            yield "supersede"
        long = f"{self._word()} ".ljust(65_000, "x")
        engine.retain(one, Retain(content=long, metadata={"filler": "y" * 4_000}))
        yield "retain at length"
        engine.amend(one, Amend(self._ids[one][1], archived=True))
        yield self._recall(one)
        engine.amend(one, Amend(self._ids[one][1], archived=False))
        self._clock.advance(seconds=61)
        yield self._recall(one)
        engine.amend(one, Amend(self._ids[one][1], pinned=True))
        yield "pin"
        engine.amend(one, Amend(self._ids[one][2], expires_at=self._clock.now()))
        yield "expire"
        engine.browse(one, Browse(superseded=True))
        engine.history(other, History(self._ids[other][-1]))
        yield "browse"
        yield self._recall(one)
        engine.freeze(other, FreezeRequest(Freeze.ALL))
        yield "freeze"
        engine.freeze(other, FreezeRequest(Freeze.NONE))
        yield self._recall(other)

    def _erasing(self, one: Scope, other: Scope) -> Iterator[str]:
        engine, ids = self._engine, self._ids[one]
        engine.forget(one, Forget(ids=(ids[3],)))
        self._gone(one, ids[3])
        yield "forget"
        yield self._recall(one)
        engine.purge(one, Purge(superseded_days=0))
        self._gone(one, ids[2], ids[3])
        yield "purge"
        yield self._recall(one)
        yield from self._erasing_copies(other)
        engine.rotate(other)
        yield "rotate"
        yield self._recall(other)
        for scope in (one, other):
            self._gone(scope, *(ids[2:4] if scope is one else ()))
        engine.close()
        yield "close"
        self._engine = self._start()

    def _copying(self, one: Scope, other: Scope) -> Iterator[str]:
        engine, sealed, backup = self._engine, self._home / "sealed", self._home / "backup"
        raw, _ = engine.backup(one)
        backup.write_bytes(raw)
        yield "backup"
        export = engine.export(one, Export(sealed=True))
        sealed.write_bytes(export.content)
        yield "export"
        self._check_plain(engine.export(one))
        engine.load(other, Load(sealed.read_bytes(), key=export.key))
        yield "load"
        engine.forget(one, Forget(ids=(self._ids[one][1],)))
        engine.restore(one, Restore(backup.read_bytes()))
        yield "restore"
        assert all(engine.verify(scope).sound for scope in self._scopes)
        yield "verify"

    def _check_plain(self, export: Exported) -> None:
        """A plain export is readable on purpose: what is hunted here can be found there."""
        words = {word for word in self.needles if word in export.content.decode()}
        assert len(json.loads(export.content)["memories"]) * 9 <= len(words)
        assert {hit.split()[0] for hit in needles.hits(export.content, self.needles)} >= words

    def _erasing_copies(self, scope: Scope) -> Iterator[str]:
        engine, told = self._engine, f"The dentist is called {self.needles[0]} since May"
        fact = engine.retain(scope, Retain(content=told)).id
        engine.retain(scope, Retain(content=f"All about {self.needles[1]}", sources=(fact,)))
        engine.record(scope, Record("Who is it?", f"{told}. Until then, goodbye.", session="s"))
        engine.record(scope, Record("And who?", f"{told}. Goodbye.", session="s", shown=[told]))
        yield "record"
        better = f"The dentist is called {self.needles[2]} since June"
        newer = engine.supersede(scope, Supersede(id=fact, content=better)).id
        yield "supersede with what was derived"
        assert engine.forget(scope, Forget(ids=(newer,), copies=True)).copies == 1
        yield "forget with copies"
        engine.forget(scope, Forget(session="s"))
        yield "forget a session"

    def _crashing(self, scope: Scope) -> Iterator[str]:
        """Die in the middle; the handles of the dead stay open, and its files as they are."""
        long = Retain(content=f"{self.needles[0]} " * 3_500, metadata={"filler": "y" * 9_000})
        for failpoint in (Failpoint.BLOB_WRITTEN, Failpoint.STORE_BEFORE_COMMIT):
            yield self._crash(failpoint, lambda engine: engine.retain(scope, long))
        for failpoint in (Failpoint.ROTATE_EPOCH_RAISED, Failpoint.ROTATE_BATCH_SEALED):
            yield self._crash(failpoint, lambda engine: engine.rotate(scope))
        ids = (self._ids[scope][2],)
        yield self._crash(Failpoint.FORGET_COMMITTED, lambda e: e.forget(scope, Forget(ids=ids)))
        self._engine.finish_due(scope)
        yield "recovery"

    def _crash(self, failpoint: Failpoint, verb: Callable[[Kernel], object]) -> str:
        self._crashes.at(failpoint)
        with pytest.raises(SimulatedCrash):
            verb(self._engine)
        self._engine = self._start()
        return f"a crash at {failpoint}"

    def _destroying(self, one: Scope, other: Scope) -> Iterator[str]:
        self._crash(
            Failpoint.DESTROY_KEYS_DELETED,
            lambda engine: engine.destroy(one, Destroy(confirm=str(one))),
        )
        yield "a crash in the middle of destroy"
        self._engine.destroy(other, Destroy(confirm=str(other)))
        yield "destroy"
        self._engine.open(one, anew=True)
        yield "open anew"
        self._engine.close()
        yield "the end"
