"""How a simulation takes a step in both worlds and judges what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import NotFound, ScrubjayError
from scrubjay.model.memory import Memory
from scrubjay.model.requests import Browse, Get, History
from scrubjay.model.results import BackedUp, Exported, Recalled
from scrubjay.model.rows import Due
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint, Result
from tests.properties.ledger import Ledger, Seen, Verb
from tests.properties.worlds import FileWorld, MemoryWorld, Outcome, World

ALICE: Final = Scope("local", "alice")
BOB: Final = Scope("local", "bob")


class Stage(RuleBasedStateMachine):
    """Two worlds in step, a ledger for each scope, and what was carried out of them."""

    def set_up(self, seed: int, policy: Policy) -> None:
        """Begin with empty worlds."""
        note(f"FakeClock seed: {seed}")
        self.worlds = self.make_worlds(seed, policy)
        for world in self.worlds:
            world.begin()
        self.ledgers = {ALICE: Ledger(), BOB: Ledger()}
        self.exports: list[Exported] = []
        self.backups: list[tuple[Scope, int, bytes, BackedUp]] = []
        self._said = 0
        self._failed = False

    def make_worlds(self, seed: int, policy: Policy) -> list[World]:
        """The specification, and what is compared with it."""
        return [MemoryWorld(seed, policy), FileWorld(seed, policy)]

    def teardown(self) -> None:
        """Look at everything once more, and see that all is sound and nothing stays due."""
        if not hasattr(self, "worlds"):
            return
        try:
            # After a failure the worlds may be out of step, and its cause is known already.
            for scope in () if self._failed else self.ledgers:
                self.everybody_looks(scope)
                self._settle(scope)
        finally:
            for world in self.worlds:
                world.end()
                assert world.watch.calls == [], "asked while the head was locked"

    def step(
        self,
        which: int,
        scope: Scope,
        verb: Verb,
        action: Callable[[Kernel], object],
        *,
        dies: Failpoint | None = None,
        due: Iterable[str] = (),
        never: Iterable[str] = (),
        replaced: Iterable[str] = (),
    ) -> Outcome:
        """Let one engine act, or die of it, in both worlds.

        What is `replaced` may be gone afterwards, and be told again under other ids.
        """
        self._failed = True
        ledger = self.ledgers[scope]
        limited = ledger.limits is not None
        model, real = (world.act(which, action, dies) for world in self.worlds)
        assert model == real, f"memory: {model}; {type(self.worlds[1]).__name__}: {real}"
        self._meet(scope, verb)
        if ledger.born:
            beyond = ledger.beyond_limits(self.now()) if limited else set[str]()
            beyond |= set(replaced)
            seen = self._see(scope)
            ledger.judge(verb, model, seen, due=set(due), never=set(never), beyond=beyond)
        ledger.judge_handle(which, verb, model)
        if model.crash:
            self.lose_handles(which)
        self._failed = False
        return model

    def lose_handles(self, which: int) -> None:
        """Note that an engine was replaced by a new one, which has nothing open."""
        for ledger in self.ledgers.values():
            ledger.handles.pop(which, None)

    def _meet(self, scope: Scope, verb: Verb) -> None:
        """Look for a life of the scope that this step began."""
        ledger = self.ledgers[scope]
        begins = verb in (Verb.ANEW, Verb.RESTORE)
        if not ledger.born or (begins and (ledger.destroyed or ledger.doomed)):
            model, real = (attempt(world.meet, scope) for world in self.worlds)
            assert model == real
            if model is None:
                ledger.begin_life()

    def _see(self, scope: Scope) -> Seen:
        model, real = (attempt(world.snapshot, scope) for world in self.worlds)
        assert model == real, f"memory: {model}; {type(self.worlds[1]).__name__}: {real}"
        return model

    def everybody_looks(self, scope: Scope) -> None:
        """Both engines show what is there, in both worlds."""
        ledger = self.ledgers[scope]
        for which in (0, 1):
            outcome = self.step(
                which, scope, Verb.OTHER, lambda engine: views(engine, scope, ledger.known)
            )
            if isinstance(outcome.result, dict):
                expect_view(outcome.result, ledger, self.now())

    def _settle(self, scope: Scope) -> None:
        ledger, reports = self.ledgers[scope], []
        if not ledger.born or ledger.destroyed or ledger.doomed or ledger.lost:
            return
        self.lose_handles(0)
        for world in self.worlds:
            world.restart(0)
            engine = world.engines[0]
            engine.finish_due(scope)
            assert engine.head(scope).due is Due.NOTHING
            report = engine.verify(scope)
            expected = "catalog knows" if ledger.cut else "no problem"
            assert all(expected in one for one in report.problems), report.problems
            for receipt in engine.receipts(scope):
                assert engine.verify_erased(scope, receipt).sound, "a key opens what was erased"
            reports.append(report)
        assert reports[0] == reports[1]

    # -- what rules choose from --------------------------------------------------------

    def now(self) -> datetime:
        """The time, read once in each world so that they stay in step."""
        model, real = (world.clock.now() for world in self.worlds)
        assert model == real, "one world has asked the clock more often"
        return model

    def say(self, *, large: bool = False) -> str:
        """Something that was never said before."""
        self._said += 1
        return f"saying no{self._said} ".ljust(64 * 1024 if large else 1, "x")

    def pick(self, scope: Scope, number: int) -> str:
        """An id: mostly of a memory that is there, sometimes of one that was, or never was."""
        ledger = self.ledgers[scope]
        there = list(ledger.memories)
        if number % 5 == 0 or not there:
            there = ["note-1", "note-9", *ledger.known]
        return there[-1 - number // 5 % len(there)]


def attempt(
    action: Callable[..., Result], *args: Scope | Get | History
) -> Result | type[ScrubjayError]:
    """What an action returns, or the class of the error it raises."""
    try:
        return action(*args)
    except ScrubjayError as error:
        return type(error)


def views(engine: Kernel, scope: Scope, ids: list[str]) -> dict[str, object]:
    """All that one engine shows of a scope."""
    engine.open(scope)
    page = engine.browse(scope, Browse(limit=10_000))
    got = {one: attempt(engine.get, scope, Get(one)) for one in ids}
    told = {one: attempt(engine.history, scope, History(one)) for one in ids}
    return {"page": page.data, "got": got, "told": told}


def expect_view(view: dict[str, object], ledger: Ledger, now: datetime) -> None:
    """A view shows what is there and not expired, and only that."""
    there = [memory for memory in ledger.memories.values() if not memory.expired(now)]
    newest_first = sorted(there, key=lambda memory: -memory.number)
    assert view["page"] == tuple(one for one in newest_first if ledger.in_sight(one, now))
    shown = {memory.id: memory for memory in there}
    got = view["got"]
    assert isinstance(got, dict)
    for one in ledger.known:
        wanted: Memory | type[NotFound] = shown.get(one, NotFound)
        if isinstance(wanted, Memory) and ledger.retired(wanted, now):
            wanted = replace(wanted, retired_at=got[one].retired_at)
        assert got[one] == wanted
    told = view["told"]
    assert isinstance(told, dict)
    for one, chain in told.items():
        found = ledger.memories.get(one)
        if found is not None and ledger.retired(found, now):  # since when, nobody stores
            (moment,) = (version.retired_at for version in chain if version.id == one)
            found = replace(found, retired_at=moment)
            assert moment is not None
        assert chain is NotFound if found is None else found in chain


def expect_hits(found: Recalled, ledger: Ledger, asked: Memory | None, now: datetime) -> None:
    """A recall without a limit finds what is there and current, as it is, and only that."""
    current = [m for m in ledger.memories.values() if ledger.in_sight(m, now)]
    assert found.degraded == ()
    assert {hit.memory.id: hit.memory for hit in found} == {m.id: m for m in current}
    if asked in current and asked.content.startswith("saying") and len(asked.content) < 100:
        word = asked.content.split()[1]
        assert word in found[0].memory.content.split(), (
            "what was asked for by its word is not first"
        )
