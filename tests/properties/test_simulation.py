"""One seed drives clock, ids, crashes and two engines on one store, in two worlds at once.

The memory store is the specification: whatever the engines on SQLite files do must end as it
does there, byte for byte. What neither may do, whatever happens, is kept in the ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scrubjay.domain.errors import NotFound, ScrubjayError
from scrubjay.domain.memory import Memory
from scrubjay.domain.requests import Browse, Forget, Retain, Supersede
from scrubjay.domain.results import BackedUp
from scrubjay.domain.rows import Due, Freeze
from scrubjay.domain.scope import Scope
from scrubjay.engine import Engine, Policy
from scrubjay.engine.transfer import Exported
from scrubjay.ports import Failpoint
from tests.properties.ledger import Ledger, Seen, Verb
from tests.properties.worlds import FileWorld, MemoryWorld, Outcome, World

ALICE: Final = Scope("local", "alice")
BOB: Final = Scope("local", "bob")
LARGE: Final = 64 * 1024
engines = st.integers(0, 1)
scopes = st.sampled_from((ALICE, ALICE, ALICE, BOB))
picks = st.integers(0, 63)
names = st.sampled_from((None, "note-1", "note-2", "note-3"))
keys = st.sampled_from((None, "k1", "k2", "k3"))
tags = st.sampled_from(((), ("t1",), ("t2",), ("t1", "t2")))
sessions = st.sampled_from((None, "s1", "s2"))
failpoints = st.sampled_from([point for point in Failpoint if point is not Failpoint.STORE_MIGRATING])


class Simulation(RuleBasedStateMachine):
    """Every verb on two engines, with crashes, in both worlds."""

    @initialize(seed=st.integers(0, 2**32), at_once=st.booleans())
    def begin(self, seed: int, at_once: bool) -> None:
        note(f"FakeClock seed: {seed}")
        policy = Policy(rotate_below=2**40 if at_once else 0)
        self.worlds: list[World] = [MemoryWorld(seed, policy), FileWorld(seed, policy)]
        for world in self.worlds:
            world.begin()
        self.ledgers = {ALICE: Ledger(), BOB: Ledger()}
        self.armed: dict[int, Failpoint] = {}
        self.exports: list[Exported] = []
        self.backups: list[tuple[Scope, bytes, BackedUp]] = []
        self.said = 0

    # -- writing -----------------------------------------------------------------------

    @rule(which=engines, scope=scopes, session=sessions, tags=tags, large=st.integers(0, 7))
    def retain(
        self, which: int, scope: Scope, session: str | None, tags: tuple[str, ...], large: int
    ) -> None:
        content = self.say().ljust(LARGE if large == 0 else 1, "x")
        request = Retain(content=content, session=session, tags=tags)
        self.step(which, scope, Verb.ADD, lambda engine: engine.retain(scope, request))

    @rule(which=engines, scope=scopes, name=names, key=keys)
    def retain_again(self, which: int, scope: Scope, name: str | None, key: str | None) -> None:
        # One key or stable id always says the same, as the entries of a ledger replayed do.
        request = Retain(content=key or name or self.say(), id=name, key=key)
        self.step(which, scope, Verb.ADD, lambda engine: engine.retain(scope, request))

    @rule(which=engines, scope=scopes, first=picks, second=picks)
    def derive(self, which: int, scope: Scope, first: int, second: int) -> None:
        sources = (self.pick(scope, first), self.pick(scope, second))
        request = Retain(content=self.say(), sources=sources)
        self.step(which, scope, Verb.ADD, lambda engine: engine.retain(scope, request))

    @rule(which=engines, scope=scopes, pick=picks, key=keys, large=st.integers(0, 7))
    def supersede(self, which: int, scope: Scope, pick: int, key: str | None, large: int) -> None:
        content = self.say().ljust(LARGE if large == 0 else 1, "x")
        content = content if key is None else key
        request = Supersede(id=self.pick(scope, pick), content=content, key=key)
        self.step(which, scope, Verb.ADD, lambda engine: engine.supersede(scope, request))

    @rule(which=engines, scope=scopes, pick=picks, pinned=st.booleans())
    def pin(self, which: int, scope: Scope, pick: int, pinned: bool) -> None:
        one = self.pick(scope, pick)
        self.step(which, scope, Verb.OTHER, lambda engine: engine.pin(scope, one, pinned=pinned))

    @rule(which=engines, scope=scopes, pick=picks, days=st.sampled_from((None, -1, 2, 40)))
    def expire(self, which: int, scope: Scope, pick: int, days: int | None) -> None:
        one, now = self.pick(scope, pick), self.now()
        at = None if days is None else now + timedelta(days=days)
        self.step(which, scope, Verb.OTHER, lambda engine: engine.expire(scope, one, at))

    # -- erasing -----------------------------------------------------------------------

    @rule(which=engines, scope=scopes, first=picks, second=picks, unseen=st.booleans())
    def forget(self, which: int, scope: Scope, first: int, second: int, unseen: bool) -> None:
        ids = (self.pick(scope, first), self.pick(scope, second))
        self.erase(which, scope, Forget(ids=ids, unseen=unseen), ids)

    @rule(which=engines, scope=scopes, how=st.sampled_from(("s1", "t1", "t2", "before")), pick=picks)
    def forget_many(self, which: int, scope: Scope, how: str, pick: int) -> None:
        ledger = self.ledgers[scope]
        if how == "before":
            times = [m.recorded_at for m in ledger.memories.values()] or [self.now()]
            before = times[pick % len(times)]
            named = ledger.where(lambda memory: memory.recorded_at < before)
            self.erase(which, scope, Forget(before=before), named)
        elif how == "s1":
            named = ledger.where(lambda memory: memory.provenance.session == how)
            self.erase(which, scope, Forget(session=how), named)
        else:
            named = ledger.where(lambda memory: how in memory.tags)
            self.erase(which, scope, Forget(tags=frozenset({how})), named)

    def erase(self, which: int, scope: Scope, request: Forget, named: Iterable[str]) -> None:
        due = self.ledgers[scope].closure(named)
        self.step(which, scope, Verb.FORGET, lambda engine: engine.forget(scope, request), due=due)

    @rule(which=engines, scope=scopes, days=st.sampled_from((0, 31)), keep=st.sampled_from((0, 30)))
    def purge(self, which: int, scope: Scope, days: int, keep: int) -> None:
        for world in self.worlds:
            world.clock.advance(days=days)
        due = set(self.ledgers[scope].where(lambda m: m.expires_at is not None or not m.live))
        verb = Verb.PURGE
        self.step(which, scope, verb, lambda e: e.purge(scope, superseded_days=keep), due=due)

    # -- keys and scopes ---------------------------------------------------------------

    @rule(which=engines, scope=scopes)
    def rotate(self, which: int, scope: Scope) -> None:
        self.step(which, scope, Verb.OTHER, lambda engine: engine.rotate(scope))

    @rule(which=engines, scope=scopes, level=st.sampled_from((*Freeze, Freeze.NONE, Freeze.NONE)))
    def freeze(self, which: int, scope: Scope, level: Freeze) -> None:
        self.step(which, scope, Verb.OTHER, lambda engine: engine.freeze(scope, level))

    @rule(which=engines, scope=scopes, luck=st.integers(0, 3))
    def destroy(self, which: int, scope: Scope, luck: int) -> None:
        if luck == 0:
            confirm = str(scope)
            verb = Verb.DESTROY
            self.step(which, scope, verb, lambda engine: engine.destroy(scope, confirm=confirm))

    @precondition(lambda self: self.now_and_then(destroyed=True))
    @rule(which=engines, scope=scopes)
    def open_anew(self, which: int, scope: Scope) -> None:
        self.step(which, scope, Verb.ANEW, lambda engine: engine.open(scope, anew=True))

    # -- whole scopes out and in ---------------------------------------------------------

    @rule(which=engines, scope=scopes, sealed=st.booleans())
    def export(self, which: int, scope: Scope, sealed: bool) -> None:
        outcome = self.step(
            which, scope, Verb.OTHER, lambda engine: engine.export(scope, sealed=sealed)
        )
        if isinstance(outcome.result, Exported):
            self.exports.append(outcome.result)

    @precondition(lambda self: self.exports)
    @rule(which=engines, scope=st.sampled_from((ALICE, BOB)), pick=picks)
    def load(self, which: int, scope: Scope, pick: int) -> None:
        export = self.exports[pick % len(self.exports)]
        self.step(
            which, scope, Verb.ADD, lambda e: e.load(scope, export.content, key=export.key)
        )

    @rule(which=engines, scope=scopes)
    def backup(self, which: int, scope: Scope) -> None:
        outcome = self.step(which, scope, Verb.OTHER, lambda engine: engine.backup(scope))
        if isinstance(outcome.result, tuple):
            self.backups.append((scope, *outcome.result))

    @precondition(lambda self: self.backups)
    @rule(which=engines, pick=picks, printed=st.booleans(), anew=st.booleans())
    def restore(self, which: int, pick: int, printed: bool, anew: bool) -> None:
        scope, raw, receipt = self.backups[pick % len(self.backups)]
        key = receipt.key if printed else None
        self.step(
            which, scope, Verb.RESTORE, lambda e: e.restore(scope, raw, key=key, anew=anew)
        )

    # -- accidents ---------------------------------------------------------------------

    @rule(which=engines, point=failpoints)
    def arm(self, which: int, point: Failpoint) -> None:
        self.armed[which] = point

    @rule(which=engines)
    def restart(self, which: int) -> None:
        for world in self.worlds:
            world.restart(which)
        for ledger in self.ledgers.values():
            ledger.handles.pop(which, None)

    @rule(which=engines, scope=scopes, luck=st.integers(0, 3))
    def lose_the_file(self, which: int, scope: Scope, luck: int) -> None:
        ledger = self.ledgers[scope]
        if luck == 0 and ledger.born and not (ledger.destroyed or ledger.doomed):
            for world in self.worlds:
                world.lose(scope)
            ledger.lose()

    # -- looking -----------------------------------------------------------------------

    @rule(scope=scopes)
    def look(self, scope: Scope) -> None:
        """Everybody sees what is there; only now and then, because it refreshes the handles."""
        ledger = self.ledgers[scope]
        for which in (0, 1):
            outcome = self.step(
                which, scope, Verb.OTHER, lambda engine: views(engine, scope, ledger.known)
            )
            if isinstance(outcome.result, dict):
                expect_view(outcome.result, ledger, self.now())

    # -- how a step is taken and judged ------------------------------------------------

    def step(
        self,
        which: int,
        scope: Scope,
        verb: Verb,
        action: Callable[[Engine], object],
        *,
        due: Iterable[str] = (),
    ) -> Outcome:
        model, real = (world.act(which, action, self.armed.get(which)) for world in self.worlds)
        assert model == real, f"memory: {model}; SQLite: {real}"
        if model.crash:
            del self.armed[which]
        ledger = self.ledgers[scope]
        self.meet(scope, verb, model)
        if ledger.born:
            seen = self.see(scope)
            ledger.judge(verb, model, seen, due=set(due))
        ledger.judge_handle(which, verb, model)
        return model

    def meet(self, scope: Scope, verb: Verb, outcome: Outcome) -> None:
        """Look for a life of the scope that this step began."""
        ledger = self.ledgers[scope]
        begins = verb in (Verb.ANEW, Verb.RESTORE)
        if not ledger.born or (begins and (ledger.destroyed or ledger.doomed)):
            found = [attempt(lambda world=world: world.meet(scope)) for world in self.worlds]
            assert found[0] == found[1]
            if found[0] is None:
                ledger.begin_life()

    def see(self, scope: Scope) -> Seen:
        model, real = (attempt(lambda world=world: world.snapshot(scope)) for world in self.worlds)
        assert model == real, f"memory: {model}; SQLite: {real}"
        return model

    def now_and_then(self, *, destroyed: bool) -> bool:
        return any(ledger.destroyed is destroyed for ledger in self.ledgers.values())

    def now(self) -> datetime:
        return [world.clock.now() for world in self.worlds][0]

    def say(self) -> str:
        self.said += 1
        return f"saying {self.said} "

    def pick(self, scope: Scope, number: int) -> str:
        """An id that was seen here, or one that was not."""
        known = ["note-1", "note-9", *self.ledgers[scope].known]
        return known[-1 - number % len(known)]

    # -- the end -----------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "worlds"):
            return
        self.armed.clear()
        try:
            self.look(ALICE)
            self.look(BOB)
            for scope, ledger in self.ledgers.items():
                if ledger.born and not (ledger.destroyed or ledger.doomed or ledger.lost):
                    self.settle(scope)
        finally:
            for world in self.worlds:
                world.end()

    def settle(self, scope: Scope) -> None:
        """Nothing stays due, everything opens, and what was erased cannot be opened."""
        reports = []
        for world in self.worlds:
            world.restart(0)
            engine = world.engines[0]
            engine.finish_due(scope)
            assert engine.head(scope).due is Due.NOTHING
            report = engine.verify(scope)
            assert report.sound, report.problems
            for receipt in engine.receipts(scope):
                assert engine.verify_erased(receipt).sound
            reports.append(report)
        assert reports[0] == reports[1]


def attempt(action: Callable[[], Seen]) -> Seen:
    """What an action returns, or the class of the error it raises."""
    try:
        return action()
    except ScrubjayError as error:
        return type(error)


def views(engine: Engine, scope: Scope, ids: list[str]) -> dict[str, object]:
    """All that one engine shows of a scope."""
    page = engine.browse(scope, Browse(limit=10_000))
    got = {one: attempt(lambda one=one: engine.get(scope, one)) for one in ids}
    told = {one: attempt(lambda one=one: engine.history(scope, one)) for one in ids}
    return {"page": page.memories, "got": got, "told": told}


def expect_view(view: dict[str, object], ledger: Ledger, now: datetime) -> None:
    """A view shows what is there and not expired, and only that."""
    there = [memory for memory in ledger.memories.values() if not memory.expired(now)]
    newest_first = sorted(there, key=lambda memory: -memory.number)
    assert view["page"] == tuple(memory for memory in newest_first if memory.live)
    shown: dict[str, Memory | type[NotFound]] = {memory.id: memory for memory in there}
    assert view["got"] == {one: shown.get(one, NotFound) for one in ledger.known}
    told = view["told"]
    assert isinstance(told, dict)
    for one, chain in told.items():
        found = ledger.memories.get(one)
        assert chain is NotFound if found is None else found in chain


def test_two_engines_on_files_do_what_the_specification_does(more: bool) -> None:
    """Whatever is done, and whoever dies of it, both worlds agree and nothing forgotten returns."""
    steps = settings(
        max_examples=2_000 if more else 200,
        stateful_step_count=60 if more else 30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Simulation, settings=steps)
