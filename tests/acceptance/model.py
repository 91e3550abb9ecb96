"""What a scope must hold, given what was acknowledged and what was only begun.

An operation that was begun and never acknowledged may have happened, wholly, or not at all. The
next look at the scope shows which; from then on it is as certain as an acknowledged one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from scrubjay.engine import Kernel
from scrubjay.model.errors import Destroyed, NotFound
from scrubjay.model.requests import Browse
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Due
from scrubjay.model.scope import Scope

Fields = dict[str, Any]
ABSENT, ALIVE, DESTROYED = "absent", "alive", "destroyed"


def digest(content: str) -> str:
    """A content as the ledger names it."""
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation on one scope, as begun."""

    number: int
    scope: str
    verb: str
    args: Fields


@dataclass(slots=True, kw_only=True)
class Held:
    """A memory a scope holds."""

    content: str
    key: str | None = None
    session: str | None = None
    pinned: bool = False
    supersedes: str | None = None
    superseded_by: str | None = None
    sources: list[str] = field(default_factory=list)


def look(engine: Kernel, name: str) -> Fields:
    """Everything a scope shows, in a form that can be written down."""
    scope = Scope.parse(name)
    try:
        engine.open(scope, create=False)
    except NotFound:
        return {"life": ABSENT, "memories": {}}
    except Destroyed:
        return {"life": DESTROYED, "memories": {}}
    page = engine.browse(scope, Browse(superseded=True, limit=10_000))
    shown = {
        memory.id: asdict(
            Held(
                content=digest(memory.content),
                key=memory.key,
                session=memory.provenance.session,
                pinned=memory.pinned,
                supersedes=memory.supersedes,
                superseded_by=memory.superseded_by,
                sources=list(memory.sources),
            )
        )
        for memory in page
    }
    return {"life": ALIVE, "memories": shown}


class Model:
    """What one scope must hold."""

    def __init__(self) -> None:
        self.life = ABSENT
        self.memories: dict[str, Held] = {}
        self.purged: dict[str, Held] = {}
        """What purge took: forgetting leads through it to what was derived from it."""
        self.erased: set[str] = set()
        self.erased_keys: set[str] = set()
        self.pending: dict[int, Op] = {}
        self.problems: list[str] = []
        self.acknowledged = 0

    def begin(self, op: Op) -> None:
        """An operation is about to be carried out."""
        self.pending[op.number] = op

    def acknowledge(self, number: int, answer: Fields) -> None:
        """The engine answered: the operation is done, and must stay so."""
        op = self.pending.pop(number)
        self.acknowledged += 1
        getattr(self, f"_{op.verb}")(op.args, answer)

    def compare(self, shown: Fields) -> list[str]:
        """Settle what was pending by what is shown; what is wrong with the rest."""
        for op in self.pending.values():
            getattr(self, f"_settle_{op.verb}", _unseen)(op.args, shown)
        self.pending.clear()
        problems, self.problems = self.problems, []
        if shown["life"] != self.life:
            problems.append(f"The scope is {shown['life']}, not {self.life}.")
        return [*problems, *self._differences(shown["memories"])]

    def adopt(self, shown: Fields) -> None:
        """Take what is shown for the truth."""
        self.life = shown["life"]
        self.memories = {one: Held(**fields) for one, fields in shown["memories"].items()}

    def closure(self, ids: list[str]) -> list[str]:
        """What forgetting the ids erases: them, their earlier versions, what was derived."""
        found = [one for one in ids if one in self.memories]
        lineage = self.memories | self.purged
        for one in found:
            earlier = lineage[one].supersedes
            derived = [other for other, held in lineage.items() if one in held.sources]
            candidates = [*derived, *([earlier] if earlier else [])]
            found += [o for o in candidates if o in lineage and o not in found]
        return [one for one in found if one in self.memories]

    def _differences(self, shown: Fields) -> list[str]:
        lost = [f"{one} was acknowledged and is lost." for one in self.memories.keys() - shown]
        extra = shown.keys() - self.memories
        back = [f"{one} was erased and is back." for one in extra & self.erased]
        odd = [f"{one} is there and nobody wrote it." for one in extra - self.erased]
        keys = [fields["key"] for fields in shown.values() if fields["key"]]
        twice = [f"Key {key} is there twice." for key in set(keys) if keys.count(key) > 1]
        changed = [
            f"{one} is {shown[one]}, not {asdict(held)}."
            for one, held in self.memories.items()
            if one in shown and shown[one] != asdict(held)
        ]
        return [*lost, *back, *odd, *twice, *changed]

    # -- what a verb does, once it is known to have happened -----------------------------

    def _add(self, public_id: str, **fields: Any) -> None:
        if public_id in self.memories or public_id in self.erased:
            self.problems.append(f"{public_id} was given out twice.")
        self.memories[public_id] = Held(**fields)

    def _erase(self, ids: list[str]) -> None:
        for one in ids:
            held = self.memories.pop(one)
            self.erased.add(one)
            if held.key is not None:
                self.erased_keys.add(held.key)

    def _expect(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            self.problems.append(f"{what} answered {found}, not {wanted}.")

    def _retain(self, args: Fields, answer: Fields) -> None:
        known = [one for one, held in self.memories.items() if held.key == args["key"]]
        if args["key"] in self.erased_keys:
            self._expect(f"retain of key {args['key']}", answer["outcome"], Outcome.FORGOTTEN)
        elif known:
            self._expect(f"retain of key {args['key']}", answer["outcome"], Outcome.KNOWN)
            self._expect(f"retain of key {args['key']}", answer["id"], known[0])
        else:
            self._expect(f"retain of key {args['key']}", answer["outcome"], Outcome.STORED)
            if answer["outcome"] == Outcome.STORED:
                self._add(answer["id"], **args)

    def _supersede(self, args: Fields, answer: Fields) -> None:
        old = self.memories[args["supersedes"]]
        old.superseded_by = answer["id"]
        self._add(answer["id"], **args, pinned=old.pinned, sources=list(old.sources))

    def _pin(self, args: Fields, _answer: Fields) -> None:
        self.memories[args["id"]].pinned = args["pinned"]

    def _forget(self, args: Fields, answer: Fields) -> None:
        gone = self.closure(args["ids"])
        self._expect("forget", answer["erased"], len(gone))
        self._erase(gone)

    def _purge(self, _args: Fields, answer: Fields) -> None:
        gone = [one for one, held in self.memories.items() if held.superseded_by]
        self._expect("purge", answer["superseded"], len(gone))
        self._purge_away(gone)

    def _purge_away(self, ids: list[str]) -> None:
        self.purged |= {one: self.memories[one] for one in ids}
        self._erase(ids)

    def _load(self, args: Fields, answer: Fields) -> None:
        self._expect("load", answer["loaded"], len(args["memories"]))
        for public_id, fields in args["memories"].items():
            self._add(public_id, **fields)

    def _rotate(self, args: Fields, answer: Fields) -> None:
        """A rotation changes nothing that can be seen."""

    def _backup(self, _args: Fields, answer: Fields) -> None:
        self._expect("backup", answer["memories"], len(self.memories))

    def _restore(self, _args: Fields, answer: Fields) -> None:
        self._expect("restore into a scope that lost nothing", answer["loaded"], 0)

    def _create(self, _args: Fields, _answer: Fields) -> None:
        self.life = ALIVE

    def _destroy(self, _args: Fields, answer: Fields) -> None:
        self._expect("destroy", answer["erased"], len(self.memories))
        self.life = DESTROYED
        self._erase(list(self.memories))
        self.purged.clear()
        self.erased_keys.clear()  # the next life of the scope knows nothing of this one

    # -- what was begun and never acknowledged -------------------------------------------

    def _settle_retain(self, args: Fields, shown: Fields) -> None:
        for one in _with_content(args["content"], shown):
            self._add(one, **args)

    def _settle_supersede(self, args: Fields, shown: Fields) -> None:
        for one in _with_content(args["content"], shown):
            self._supersede(args, {"id": one})

    def _settle_pin(self, args: Fields, shown: Fields) -> None:
        if args["id"] in shown["memories"]:
            self.memories[args["id"]].pinned = shown["memories"][args["id"]]["pinned"]

    def _settle_forget(self, args: Fields, shown: Fields) -> None:
        asked = self.closure(args["ids"])
        gone = [one for one in asked if one not in shown["memories"]]
        if gone:  # all or nothing: what is left of them is "back"
            self._erase(asked)

    def _settle_purge(self, _args: Fields, shown: Fields) -> None:
        retired = [one for one, held in self.memories.items() if held.superseded_by]
        self._purge_away([one for one in retired if one not in shown["memories"]])

    def _settle_load(self, args: Fields, shown: Fields) -> None:
        if any(one in shown["memories"] for one in args["memories"]):
            self._load(args, {"loaded": len(args["memories"])})

    def _settle_create(self, _args: Fields, shown: Fields) -> None:
        if shown["life"] == ALIVE:
            self.life = ALIVE

    def _settle_destroy(self, args: Fields, shown: Fields) -> None:
        if shown["life"] == DESTROYED:
            self._destroy(args, {"erased": len(self.memories)})


def _with_content(content: str, shown: Fields) -> list[str]:
    return [one for one, fields in shown["memories"].items() if fields["content"] == content]


def _unseen(args: Fields, shown: Fields) -> None:
    """Whether it happened cannot be seen, and makes no difference."""


def judge(engine: Kernel, name: str, model: Model) -> Iterator[str]:
    """What is wrong with a scope: with what it shows, with due work, with its files and keys."""
    shown = look(engine, name)
    yield from model.compare(shown)
    scope = Scope.parse(name)
    if shown["life"] == DESTROYED:
        yield from engine.verify_erased(scope, engine.receipts(scope)[-1]).problems
    if shown["life"] != ALIVE:
        return
    engine.finish_due(scope)
    if engine.head(scope).due is not Due.NOTHING:
        yield "Due work is left."
    yield from engine.verify(scope).problems
    for receipt in engine.receipts(scope)[-2:]:
        yield from engine.verify_erased(scope, receipt).problems
