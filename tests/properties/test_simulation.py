"""One seed drives clock, ids, crashes and two engines on one store, in two worlds at once.

The memory store is the specification: whatever the engines on SQLite files do must end as it
does there, byte for byte. What neither may do, whatever happens, is kept in the ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from scrubjay.engine import Kernel, Policy
from scrubjay.model import cells
from scrubjay.model.batches import RetainMany
from scrubjay.model.conversations import Append, Branch, DeleteConversation, Rewind
from scrubjay.model.documents import Document, Move, Put, Remove
from scrubjay.model.jobs import JobKind, Work
from scrubjay.model.memory import Json, Kind
from scrubjay.model.requests import (
    Amend,
    Destroy,
    Export,
    Forget,
    FreezeRequest,
    Load,
    Purge,
    Recall,
    Restore,
    Retain,
    Supersede,
)
from scrubjay.model.results import Exported, Recalled, Retained
from scrubjay.model.retention import Duplicates, KindLimit, SetRetention
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.ports import Failpoint
from tests.properties.ledger import REPEATED, Verb
from tests.properties.stage import ALICE, BOB, Stage, attempt, expect_hits
from tests.properties.worlds import MemoryWorld, PostgresWorld, RemoteWorld, Snapshot, World
from tests.support.objects import ObjectServer
from tests.support.postgres import PostgresServer

engines = st.integers(0, 1)
scopes = st.sampled_from((ALICE, ALICE, ALICE, BOB))
picks = st.integers(0, 79)
names = st.sampled_from((None, "note-1", "note-2", "note-3"))
keys = st.sampled_from((None, None, "k1", "k2", "k3"))
tags = st.sampled_from(((), ("t1",), ("t2",), ("t1", "t2")))
sessions = st.sampled_from((None, "s1", "s2"))
talks = st.sampled_from(("s1", "s2", "s3"))
papers = st.sampled_from(("a", "a/b", "c/d"))
ages = st.sampled_from((None, None, 20))
one_in_eight = st.sampled_from([False] * 7 + [True])
one_in_three = st.sampled_from([False, False, True])


def deaths(*verbs: str) -> st.SearchStrategy[Failpoint | None]:
    """A failpoint on the way of these verbs, or none, so that most steps are survived."""
    first = ("store.before", "store.after", "create", *verbs)
    points = [point for point in Failpoint if point.value.startswith(first)]
    return st.sampled_from([*[None] * 3 * len(points), *points])


class Simulation(Stage):
    """Every verb on two engines, with crashes, in both worlds."""

    @initialize(seed=st.integers(0, 2**32), at_once=st.booleans(), count=st.integers(2, 6))
    def begin(self, seed: int, at_once: bool, count: int) -> None:
        self.set_up(seed, Policy(rotate_below=2**40 if at_once else 0, segment_rows=2))
        for number in range(count):
            request = Retain(content=self.say(), tags=("t1",), key=f"k{number}")
            retain = partial(Kernel.retain, scope=ALICE, request=request)
            self.step(number % 2, ALICE, Verb.ADD, retain)

    # -- writing -----------------------------------------------------------------------

    @rule(
        which=engines, scope=scopes, session=sessions, tags=tags, large=one_in_eight,
        dies=deaths("retain", "blob"),
    )  # fmt: skip
    def retain(
        self,
        which: int,
        scope: Scope,
        *,
        session: str | None,
        tags: tuple[str, ...],
        large: bool,
        dies: Failpoint | None,
    ) -> None:
        request = Retain(content=self.say(large=large), session=session, tags=tags)
        self.step(which, scope, Verb.ADD, lambda e: e.retain(scope, request), dies=dies)

    @rule(which=engines, scope=scopes, name=names, key=keys, dies=deaths("retain"))
    def retain_again(
        self, which: int, scope: Scope, name: str | None, key: str | None, dies: Failpoint | None
    ) -> None:
        # One key or stable id always says the same, as the entries of a replayed ledger do.
        request = Retain(content=key or name or self.say(), id=name, key=key)
        self.step(which, scope, Verb.ADD, lambda e: e.retain(scope, request), dies=dies)

    @rule(
        which=engines, scope=scopes, name=names, key=keys, pick=picks, atomic=st.booleans(),
        dies=deaths("retain", "segment"),
    )  # fmt: skip
    def retain_many(
        self,
        which: int,
        scope: Scope,
        *,
        name: str | None,
        key: str | None,
        pick: int,
        atomic: bool,
        dies: Failpoint | None,
    ) -> None:
        items: list[Retain | str] = [
            self.say(),
            Retain(content=key or name or self.say(), id=name, key=key),
            "" if pick % 3 else self.say(),
            Retain(content=self.say(), sources=(self.pick(scope, pick),)),
        ]
        request = RetainMany(items, atomic=atomic)
        self.step(which, scope, Verb.ADD, lambda e: e.retain_many(scope, request), dies=dies)

    @rule(which=engines, scope=scopes, first=picks, second=picks)
    def derive(self, which: int, scope: Scope, first: int, second: int) -> None:
        sources = (self.pick(scope, first), self.pick(scope, second))
        request = Retain(content=self.say(), sources=sources)
        self.step(which, scope, Verb.ADD, lambda e: e.retain(scope, request))

    @rule(
        which=engines, scope=scopes, pick=picks, key=keys, large=one_in_eight,
        dies=deaths("supersede", "blob"),
    )  # fmt: skip
    def supersede(
        self,
        which: int,
        scope: Scope,
        *,
        pick: int,
        key: str | None,
        large: bool,
        dies: Failpoint | None,
    ) -> None:
        content = key or self.say(large=large)
        request = Supersede(id=self.pick(scope, pick), content=content, key=key)
        self.step(which, scope, Verb.ADD, lambda e: e.supersede(scope, request), dies=dies)

    @rule(which=engines, scope=scopes, pick=picks, pinned=st.booleans(), dies=deaths("blob"))
    def pin(
        self, which: int, scope: Scope, pick: int, pinned: bool, dies: Failpoint | None
    ) -> None:
        one = self.pick(scope, pick)
        self.step(
            which, scope, Verb.OTHER, lambda e: e.amend(scope, Amend(one, pinned=pinned)), dies=dies
        )

    @rule(which=engines, scope=scopes, pick=picks, days=st.sampled_from((None, -1, 2, 40)))
    def expire(self, which: int, scope: Scope, pick: int, days: int | None) -> None:
        one, now = self.pick(scope, pick), self.now()
        at = None if days is None else now + timedelta(days=days)
        self.step(which, scope, Verb.OTHER, lambda e: e.amend(scope, Amend(one, expires_at=at)))

    @rule(which=engines, scope=scopes, pick=picks, archived=st.booleans(), dies=deaths())
    def archive(
        self, which: int, scope: Scope, pick: int, archived: bool, dies: Failpoint | None
    ) -> None:
        request = Amend(self.pick(scope, pick), archived=archived)
        self.step(which, scope, Verb.OTHER, lambda e: e.amend(scope, request), dies=dies)

    # -- retention and jobs --------------------------------------------------------------

    @rule(
        which=engines, scope=scopes, number=st.sampled_from((None, 2, 5)), days=ages, idle=ages,
        duplicates=st.sampled_from(Duplicates), dies=deaths(),
    )  # fmt: skip
    def limit(
        self,
        which: int,
        scope: Scope,
        *,
        number: int | None,
        days: int | None,
        idle: int | None,
        duplicates: Duplicates,
        dies: Failpoint | None,
    ) -> None:
        limit = KindLimit(kind=Kind.FACT, number=number, days=days, idle_days=idle)
        request = SetRetention(limits=(limit,), duplicates=duplicates)
        self.step(which, scope, Verb.OTHER, lambda e: e.set_retention(scope, request), dies=dies)

    @rule(which=engines, scope=scopes, number=st.integers(1, 3))
    def tell_episodes(self, which: int, scope: Scope, number: int) -> None:
        items = [Retain(content=self.say(), kind=Kind.EPISODE) for _ in range(number)]
        self.step(which, scope, Verb.ADD, lambda e: e.retain_many(scope, RetainMany(items)))

    @rule(which=engines, scope=scopes, pick=picks)
    def summarize(self, which: int, scope: Scope, pick: int) -> None:
        sources = (self.pick(scope, pick), self.pick(scope, pick + 5))
        request = Retain(content=self.say(), kind=Kind.SUMMARY, sources=sources)
        self.step(which, scope, Verb.ADD, lambda e: e.retain(scope, request))

    @rule(
        which=engines, scope=scopes, dies=deaths("job"),
        kind=st.sampled_from((JobKind.CONSOLIDATION, JobKind.DERIVATION)),
    )  # fmt: skip
    def work(self, which: int, scope: Scope, kind: JobKind, dies: Failpoint | None) -> None:
        request = Work(kinds=[kind])
        self.step(which, scope, Verb.ADD, lambda e: e.work(scope, request), dies=dies)

    @rule(which=engines, scope=scopes, which_one=st.sampled_from(REPEATED), turn=st.booleans())
    def repeat(self, which: int, scope: Scope, which_one: str, turn: bool) -> None:
        if turn:
            answer = f"{self.say()}. {which_one.upper()}! And so on."
            record = Record(id=f"turn-{self._said}", user="Hello", assistant=answer)
            self.step(which, scope, Verb.ADD, lambda e: e.record(scope, record))
        else:
            request = Retain(content=which_one)
            self.step(which, scope, Verb.ADD, lambda e: e.retain(scope, request))

    # -- conversations and documents -----------------------------------------------------

    @rule(
        which=engines, scope=scopes, name=talks, repeated=st.sampled_from((None, *REPEATED)),
        large=one_in_eight, dies=deaths("retain", "blob", "collection"),
    )  # fmt: skip
    def append(
        self,
        which: int,
        scope: Scope,
        *,
        name: str,
        repeated: str | None,
        large: bool,
        dies: Failpoint | None,
    ) -> None:
        bodies: list[Json] = [
            {"said": self.say(large=large)},
            f"Well. {repeated or self.say()}! And so on.",
        ]
        request = Append(name, [{"body": body} for body in bodies])
        self.step(which, scope, Verb.OTHER, lambda e: e.append(scope, request), dies=dies)

    @rule(which=engines, scope=scopes, name=talks, at=st.integers(0, 3), into=talks)
    def turn_back(self, which: int, scope: Scope, name: str, at: int, into: str) -> None:
        if name == into:
            self.step(which, scope, Verb.OTHER, lambda e: e.rewind(scope, Rewind(name, at=at)))
        else:
            request = Branch(name, into=into, at=at)
            self.step(which, scope, Verb.OTHER, lambda e: e.branch(scope, request))

    @rule(which=engines, scope=scopes, name=talks, dies=deaths("forget", "rotate"))
    def delete(self, which: int, scope: Scope, name: str, dies: Failpoint | None) -> None:
        request = DeleteConversation(name)
        self.step(
            which, scope, Verb.OTHER, lambda e: e.delete_conversation(scope, request), dies=dies
        )

    @rule(
        which=engines, scope=scopes, name=papers, session=sessions, large=one_in_eight,
        repeated=st.sampled_from((None, *REPEATED)), indexed=one_in_three,
        dies=deaths("retain", "blob", "collection"),
    )  # fmt: skip
    def put(
        self,
        which: int,
        scope: Scope,
        *,
        name: str,
        session: str | None,
        large: bool,
        repeated: str | None,
        indexed: bool,
        dies: Failpoint | None,
    ) -> None:
        texts = [self.say(large=large and not indexed)]
        if indexed:  # lines long enough to be pieces, none of them a copy of another
            long = [self.say().ljust(2_900, "x") for _ in range(24 if large else 1)]
            texts += ["\n".join(long), self.say()]
        else:
            texts.append(f"Yes. {repeated or 'No'}. So.")
        value: Json = {"text": texts}  # type: ignore[dict-item]
        request = Put(name, value, session=session, indexed=indexed)
        pieces = self.pieces(scope)
        put = partial(self.step, which, scope, Verb.ADD, dies=dies, replaced=pieces)
        put(lambda e: e.put(scope, request))

    def pieces(self, scope: Scope) -> list[str]:
        """The ids of the memories that tell an indexed document, which is there and says that."""
        ledger = self.ledgers[scope]
        told = ledger.where(lambda memory: "document" in memory.metadata)
        if told and not ledger.lost and not ledger.destroyed:
            there = {one.id: one for one in self.worlds[0].snapshot(scope).papers}
            for memory in (ledger.memories[one] for one in told):
                (document,) = (there[one] for one in memory.sources)
                assert document.path == memory.metadata["document"]
                assert memory.supersedes or memory.content in cells.words(document.value)
        return told

    def written(self, scope: Scope, matches: Callable[[Document], bool]) -> list[str]:
        """The ids of the documents that match."""
        born = self.ledgers[scope].born
        seen = attempt(self.worlds[0].snapshot, scope) if born else None
        return [one.id for one in seen.papers if matches(one)] if isinstance(seen, Snapshot) else []

    @rule(which=engines, scope=scopes, name=papers, to=papers, tree=st.booleans())
    def move(self, which: int, scope: Scope, name: str, to: str, tree: bool) -> None:
        pieces = self.pieces(scope)
        if name == to:
            request = Remove(name, tree=tree)
            act = partial(self.step, which, scope, Verb.ADD, replaced=pieces)
            act(lambda e: e.remove(scope, request))
        else:
            moving = Move(name, to=to, tree=tree)
            self.step(which, scope, Verb.OTHER, lambda e: e.move(scope, moving))

    # -- erasing -----------------------------------------------------------------------

    @rule(
        which=engines, scope=scopes, first=picks, second=picks, unseen=st.booleans(),
        dies=deaths("forget", "rotate", "blob", "segment"),
    )  # fmt: skip
    def forget(
        self,
        which: int,
        scope: Scope,
        *,
        first: int,
        second: int,
        unseen: bool,
        dies: Failpoint | None,
    ) -> None:
        ids = (self.pick(scope, first), self.pick(scope, second))
        self.erase(which, scope, Forget(ids=ids, unseen=unseen), ids, dies)

    @rule(which=engines, scope=scopes, pick=picks, dies=deaths("forget", "rotate", "segment"))
    def forget_copies(self, which: int, scope: Scope, pick: int, dies: Failpoint | None) -> None:
        one, ledger = self.pick(scope, pick), self.ledgers[scope]
        named = ledger.with_copies(one)
        texts = {ledger.memories[copy].content for copy in named if copy in ledger.memories}
        request, due = Forget(ids=(one,), copies=True), ledger.closure(named)
        forget = partial(self.step, which, scope, Verb.FORGET, dies=dies, due=due)
        outcome = forget(lambda engine: engine.forget(scope, request))
        if outcome.ok:
            seen = self.worlds[0].snapshot(scope)
            sentences = {text.upper() for text in texts.intersection(REPEATED)}
            held = "\n".join(seen.held)
            assert not any(text in held for text in texts.intersection(REPEATED))
            left = [told for told in seen.turns.values() if any(s in told for s in sentences)]
            assert not left, "a turn still says what was forgotten with its copies"

    @rule(
        which=engines, scope=scopes, how=st.sampled_from(("s1", "t2", "before")), pick=picks,
        dies=deaths("forget", "rotate", "blob", "segment"),
    )  # fmt: skip
    def forget_many(
        self, which: int, scope: Scope, how: str, pick: int, dies: Failpoint | None
    ) -> None:
        ledger = self.ledgers[scope]
        if how == "before":
            times = [memory.recorded_at for memory in ledger.memories.values()] or [self.now()]
            before = times[pick % len(times)]
            named = ledger.where(lambda memory: memory.recorded_at < before)
            named += self.written(scope, lambda one: one.updated_at < before)
            self.erase(which, scope, Forget(before=before), named, dies)
        elif how == "s1":
            named = ledger.where(lambda memory: memory.provenance.session == how)
            named += self.written(scope, lambda one: one.session == how)
            self.erase(which, scope, Forget(session=how), named, dies)
        else:
            named = ledger.where(lambda memory: how in memory.tags)
            self.erase(which, scope, Forget(tags=frozenset({how})), named, dies)

    def erase(
        self,
        which: int,
        scope: Scope,
        request: Forget,
        named: Iterable[str],
        dies: Failpoint | None,
    ) -> None:
        due = self.ledgers[scope].closure(named)
        forget = partial(self.step, which, scope, Verb.FORGET, dies=dies, due=due)
        forget(lambda engine: engine.forget(scope, request))

    @rule(
        which=engines, scope=scopes, days=st.sampled_from((0, 31)), keep=st.sampled_from((0, 30)),
        dies=deaths("purge", "blob", "segment"),
    )  # fmt: skip
    def purge(self, which: int, scope: Scope, days: int, keep: int, dies: Failpoint | None) -> None:
        for world in self.worlds:
            world.clock.advance(days=days)
        due = self.ledgers[scope].where(lambda m: m.expires_at is not None or not m.current)
        purge = partial(self.step, which, scope, Verb.PURGE, dies=dies, due=due)
        purge(lambda engine: engine.purge(scope, Purge(superseded_days=keep)))

    @rule(which=engines, scope=scopes, pick=picks)
    def correct_purge_and_forget(self, which: int, scope: Scope, pick: int) -> None:
        self.derive(which, scope, pick, pick)
        request = Supersede(id=self.pick(scope, pick), content=self.say())
        outcome = self.step(which, scope, Verb.ADD, lambda e: e.supersede(scope, request))
        self.purge(which, scope, 31, 0, None)
        if isinstance(receipt := outcome.result, Retained):
            self.erase(which, scope, Forget(ids=(receipt.id,)), [receipt.id], None)

    # -- keys and scopes ---------------------------------------------------------------

    @rule(which=engines, scope=scopes, dies=deaths("rotate", "blob", "segment"))
    def rotate(self, which: int, scope: Scope, dies: Failpoint | None) -> None:
        self.step(which, scope, Verb.OTHER, lambda e: e.rotate(scope), dies=dies)

    @rule(which=engines, scope=scopes, level=st.sampled_from((*Freeze, *[Freeze.NONE] * 5)))
    def freeze(self, which: int, scope: Scope, level: Freeze) -> None:
        self.step(which, scope, Verb.OTHER, lambda e: e.freeze(scope, FreezeRequest(level)))

    @rule(which=engines, scope=scopes, luck=one_in_three, dies=deaths("destroy"))
    def destroy(self, which: int, scope: Scope, luck: bool, dies: Failpoint | None) -> None:
        if luck:
            destroy = partial(self.step, which, scope, Verb.DESTROY, dies=dies)
            destroy(lambda engine: engine.destroy(scope, Destroy(confirm=str(scope))))

    @precondition(lambda self: any(one.destroyed or one.doomed for one in self.ledgers.values()))
    @rule(which=engines, dies=deaths())
    def open_anew(self, which: int, dies: Failpoint | None) -> None:
        for scope, ledger in self.ledgers.items():
            if ledger.destroyed or ledger.doomed:
                anew = partial(Kernel.open, scope=scope, anew=True)
                self.step(which, scope, Verb.ANEW, anew, dies=dies)

    # -- whole scopes out and in ---------------------------------------------------------

    @rule(which=engines, scope=scopes, sealed=st.booleans())
    def export(self, which: int, scope: Scope, sealed: bool) -> None:
        outcome = self.step(
            which, scope, Verb.OTHER, lambda e: e.export(scope, Export(sealed=sealed))
        )
        if isinstance(outcome.result, Exported):
            self.exports.append(outcome.result)

    @precondition(lambda self: self.exports)
    @rule(which=engines, scope=st.sampled_from((ALICE, BOB)), pick=picks, dies=deaths("load"))
    def load(self, which: int, scope: Scope, pick: int, dies: Failpoint | None) -> None:
        export = self.exports[pick % len(self.exports)]
        load = partial(self.step, which, scope, Verb.ADD, dies=dies)
        load(lambda engine: engine.load(scope, Load(export.content, key=export.key)))

    @rule(which=engines, scope=scopes)
    def backup(self, which: int, scope: Scope) -> None:
        outcome = self.step(which, scope, Verb.OTHER, lambda e: e.backup(scope))
        if isinstance(outcome.result, tuple):
            self.backups.append((scope, self.ledgers[scope].life, *outcome.result))

    @precondition(lambda self: self.backups)
    @rule(
        which=engines, pick=picks, printed=st.booleans(), anew=st.booleans(),
        dies=deaths("restore", "blob"),
    )  # fmt: skip
    def restore(
        self, which: int, pick: int, printed: bool, anew: bool, dies: Failpoint | None
    ) -> None:
        scope, life, raw, receipt = self.backups[pick % len(self.backups)]
        key = receipt.key if printed else None
        never = self.ledgers[scope].past.get(life, ())
        restore = partial(self.step, which, scope, Verb.RESTORE, dies=dies, never=never)
        restore(lambda engine: engine.restore(scope, Restore(raw, key=key, anew=anew)))

    # -- accidents, and looking ----------------------------------------------------------

    @rule(which=engines)
    def restart(self, which: int) -> None:
        for world in self.worlds:
            world.restart(which)
        self.lose_handles(which)

    @precondition(lambda self: self.backups)
    @rule(scope=scopes, luck=one_in_three)
    def lose_the_file(self, scope: Scope, luck: bool) -> None:
        ledger = self.ledgers[scope]
        if luck and ledger.born and not (ledger.destroyed or ledger.doomed):
            for world in self.worlds:
                world.lose(scope)
            ledger.lose()

    @rule(
        which=engines, scope=scopes, pick=picks, later=one_in_three,
        dies=deaths("segment", "counters"),
    )  # fmt: skip
    def recall(
        self, which: int, scope: Scope, pick: int, later: bool, dies: Failpoint | None
    ) -> None:
        """Ask for one memory by what it says; with so high a limit everything is to be found."""
        for world in self.worlds if later else ():
            world.clock.advance(seconds=61)
        asked = self.ledgers[scope].memories.get(self.pick(scope, pick))
        request = Recall(query=asked.content[:100] if asked else "saying", limit=1000)
        outcome = self.step(which, scope, Verb.OTHER, lambda e: e.recall(scope, request), dies=dies)
        if isinstance(outcome.result, Recalled):
            expect_hits(outcome.result, self.ledgers[scope], asked, self.now())

    @rule(scope=scopes)
    def look(self, scope: Scope) -> None:
        """Not after every step: looking refreshes a handle, and stale ones are the point."""
        self.everybody_looks(scope)


class RemoteSimulation(Simulation):
    """The same on two nodes of a database that is far away, with slots beside the rows."""

    def make_worlds(self, seed: int, policy: Policy) -> list[World]:
        return [MemoryWorld(seed, policy, with_slots=True), RemoteWorld(seed, policy)]


def test_two_nodes_on_postgresql_do_what_the_specification_does(
    more: bool, postgres: PostgresServer, objects: ObjectServer
) -> None:
    """The same on a real server: every row, head, slot and tombstone as in the memory store."""

    class OnPostgres(Simulation):
        def make_worlds(self, seed: int, policy: Policy) -> list[World]:
            specified = MemoryWorld(seed, policy, with_slots=True)
            return [specified, PostgresWorld(seed, policy, postgres, objects)]

    steps = settings(
        max_examples=500 if more else 10,
        stateful_step_count=60 if more else 30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(OnPostgres, settings=steps)


def test_two_nodes_of_a_remote_store_do_what_the_specification_does(more: bool) -> None:
    """With latency, lost answers and failovers; nothing is asked while the head is locked."""
    steps = settings(
        max_examples=1_000 if more else 25,
        stateful_step_count=60 if more else 30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(RemoteSimulation, settings=steps)


def test_two_engines_on_files_do_what_the_specification_does(more: bool) -> None:
    """Whatever is done, and whoever dies of it, both worlds agree and nothing forgotten returns."""
    steps = settings(
        max_examples=2_000 if more else 200,
        stateful_step_count=60 if more else 30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Simulation, settings=steps)
