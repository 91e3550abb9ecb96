"""jobs: derivation in the background, each job under a lease.

A lease is taken in a transaction, the model is asked outside any, and the answer is written in a
transaction that checks the lease again. So two processes never derive the same: whoever lost its
lease to another, by dying or by being late, writes nothing. Queue and leases are one sealed value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from scrubjay.engine.ledger.backlog import Backlog
from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.scope.scope_values import ScopeValues, SealedState
from scrubjay.model.compaction import Compact, CompactionOutcome
from scrubjay.model.errors import ExtractorError, Frozen, ScrubjayError
from scrubjay.model.jobs import ATTEMPTS, JobKind, JobStatus, RunningJob, Work, Worked
from scrubjay.model.origin import Actor
from scrubjay.model.results import Stopped
from scrubjay.model.rows import Freeze
from scrubjay.ports import Failpoint, Tx, View, patience

_LEASES: Final = 3
"""A lease lasts this many times as long as a model may take for an answer."""
_RELEASE_SECONDS: Final = 1.0
_PASSED: Final = 256
"""Changes in vain after which the next look begins behind them."""
_SKEW: Final = timedelta(seconds=5)
"""How far the clocks of two processes may be apart."""


class Lease(Struct, frozen=True, kw_only=True):
    """Who does a job, and until when nobody else does."""

    holder: str
    since: datetime
    until: datetime

    def lives(self, now: datetime) -> bool:
        """Whether it holds; one from the future is a clock's that was set back."""
        return self.since - _SKEW <= now < self.until


class JobQueue(SealedState, kw_only=True):
    """Policy, leases and failures of the jobs of a scope, in one transaction."""

    NAME = "jobs"
    allowed: tuple[JobKind, ...] = (JobKind.EXTRACTION,)
    leases: dict[str, Lease] = field(default_factory=dict)
    """By job: its kind, and a keyed hash of what it is about."""
    attempts: dict[str, int] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    passed: int = 0
    """Last change of the memories up to which no episode waits to be consolidated."""

    def is_free(self, job: str, now: datetime) -> bool:
        """Whether nobody does this job, and it was not given up."""
        lease = self.leases.get(job)
        return (lease is None or not lease.lives(now)) and self.attempts.get(job, 0) < ATTEMPTS

    def take(self, opened: OpenScope, job: str) -> str:
        """Lease a job; returns its holder. Leases that are over are dropped."""
        now, holder = opened.ports.clock.now(), opened.ports.clock.new_id()
        until = now + timedelta(seconds=_LEASES * opened.ports.policy.extract_seconds)
        self.leases = {name: one for name, one in self.leases.items() if one.lives(now)}
        self.leases[job] = Lease(holder=holder, since=now, until=until)
        opened.leased[job] = holder
        return holder

    def renew(self, opened: OpenScope, job: str, holder: str) -> bool:
        """Extend a lease before it is over; returns whether that was due, and it still held."""
        lease, now = self.leases.get(job), opened.ports.clock.now()
        if lease is None or lease.holder != holder or now - lease.since < (lease.until - now):
            return False
        self.leases[job] = replace(lease, since=now, until=now + (lease.until - lease.since))
        return True

    def give_back(self, job: str, holder: str) -> bool:
        """End a lease; returns whether it was still the holder's."""
        lease = self.leases.get(job)
        if lease is None or lease.holder != holder:
            return False
        del self.leases[job]
        return True

    def note_passed(self, seq: int) -> bool:
        """Note a change up to which no episode waits; returns whether it is news."""
        is_news = seq > self.passed
        self.passed = max(self.passed, seq)
        return is_news

    def settle(self, job: str, *, done: bool) -> bool:
        """Count the end of a job; returns whether it is given up."""
        kind = job.partition("/")[0]
        if done:
            self.attempts.pop(job, None)
            self.done[kind] = self.done.get(kind, 0) + 1
            return False
        self.attempts[job] = self.attempts.get(job, 0) + 1
        if self.attempts[job] < ATTEMPTS:
            return False
        self.failed[kind] = self.failed.get(kind, 0) + 1
        return True


class Task(Struct, frozen=True, kw_only=True):
    """A job to be taken: whether it still waits, and how to do it."""

    job: str
    waits: Callable[[Tx, ScopeValues], bool]
    ask: Callable[[], Done]


class Done(Struct, frozen=True, kw_only=True):
    """The answer to a job: what it cost, and how to write it."""

    usable: bool = True
    tokens_in: int = 0
    tokens_out: int = 0
    keep: Callable[[Tx, ScopeValues], int] = lambda *_: 0
    """Write it; returns how many memories."""
    drop: Callable[[Tx], None] | None = None
    """Give up what it is about, after too many unusable answers; None if the job itself stays."""


Choice = tuple[Task | None, int]
"""The next task of a worker, and the last change of the memories that it need not look at again."""
Choose = Callable[[OpenScope, View, JobQueue], Choice]


def job_name(opened: OpenScope, kind: JobKind, about: str = "") -> str:
    """The name of a job; it holds no id, so that a forgotten one leaves nothing."""
    return f"{kind}/{opened.row_id(about).hex()[:16]}" if about else f"{kind}/"


def release(opened: OpenScope) -> None:
    """Give back the leases of an engine that is closed while a model thinks.

    The next process need not wait for their end; the answer comes to nobody.
    """
    leased = opened.leased.items()

    def held(view: View) -> bool:
        leases = JobQueue.of(ScopeValues(opened, view)).leases
        return any(job in leases and leases[job].holder == holder for job, holder in leased)

    def give_back(_: Tx, queue: JobQueue) -> bool:
        return sum(queue.give_back(job, holder) for job, holder in leased) > 0

    with suppress(ScrubjayError), patience(_RELEASE_SECONDS):  # else they end by themselves
        if opened.read(held):
            JobQueue.change(opened, give_back, frozen_too=True)


def check_writable(opened: OpenScope) -> None:
    """Refuse a frozen scope before a token is spent."""
    if opened.head().frozen is not Freeze.NONE:
        raise Frozen(f"The scope {opened.scope} is frozen.")


def derived_by(opened: OpenScope) -> str:
    """What derives in this scope: the model, or the rules where there is none."""
    by = opened.ports.extractor or opened.ports.distiller
    return "" if by is None else by.identity


# -- the verbs -----------------------------------------------------------------------------------


def allow(opened: OpenScope, kinds: tuple[JobKind, ...], *, actor: Actor) -> JobStatus:
    """Set which kinds of jobs run by themselves."""

    def store(tx: Tx, queue: JobQueue) -> bool:
        if queue.allowed == kinds:
            return False
        queue.allowed = kinds
        opened.trail.record(tx, "jobs.allow", actor, number=len(kinds))
        return True

    JobQueue.change(opened, store, frozen_too=True)
    return status(opened)


def status(opened: OpenScope) -> JobStatus:
    """Policy, queue and budget of the jobs."""

    def look(view: View) -> JobStatus:
        values, now = ScopeValues(opened, view), opened.ports.clock.now()
        queue, backlog = JobQueue.of(values), Backlog.of(values)
        running = [(name, one) for name, one in queue.leases.items() if one.lives(now)]
        return JobStatus(
            allowed=queue.allowed,
            derived_by=derived_by(opened),
            paused=backlog.paused,
            waiting={kind.value: _waiting(opened, view, kind) for kind in queue.allowed},
            running=tuple(
                RunningJob(kind=JobKind(name.partition("/")[0]), until=one.until)
                for name, one in running
            ),
            done={**queue.done, **({JobKind.EXTRACTION: backlog.done} if backlog.done else {})},
            failed={
                **queue.failed,
                **({JobKind.EXTRACTION: backlog.failed} if backlog.failed else {}),
            },
            tokens_today=backlog.spent_on(day(now)),
            daily_tokens=opened.ports.policy.daily_tokens,
        )

    return opened.read(look)


def _waiting(opened: OpenScope, view: View, kind: JobKind) -> int:
    from scrubjay.engine.ledger import compaction, consolidation, derivation, extraction

    if kind is JobKind.EXTRACTION:
        return extraction.waiting(opened, view) if opened.ports.extractor else 0
    if kind is JobKind.COMPACTION:
        return compaction.waiting(opened, view)
    if kind is JobKind.CONSOLIDATION:
        return consolidation.waiting(opened, view)
    return len(derivation.due(ScopeValues(opened, view)))


def work(opened: OpenScope, request: Work, *, actor: Actor) -> Worked:
    """Do the jobs that are due, of the kinds asked for or else of the allowed ones."""
    check_writable(opened)
    allowed = opened.read(lambda view: JobQueue.of(ScopeValues(opened, view)).allowed)
    kinds = tuple(JobKind(kind) for kind in request.kinds) or allowed
    done = _Round(opened, request, actor).run(kinds)
    left = opened.read(lambda view: sum(_waiting(opened, view, kind) for kind in kinds))
    return replace(done, left=left, derived_by=derived_by(opened))


class _Round:
    """One round: job after job, until a limit or a reason to stop."""

    def __init__(self, opened: OpenScope, request: Work, actor: Actor) -> None:
        self._opened = opened
        self._limit = request.limit
        self._batch = request.batch
        self._until = opened.ports.clock.monotonic() + request.seconds
        self._actor = actor
        self._counts: Counter[str] = Counter()
        self._worked = Worked()

    def run(self, kinds: Iterable[JobKind]) -> Worked:
        from scrubjay.engine.ledger import consolidation, derivation, extraction

        opened, model = self._opened, self._opened.ports.extractor
        for kind in kinds:
            seconds = self._until - opened.ports.clock.monotonic()
            limit = self._limit - self._counts.total()
            if self._worked.stopped is not None or limit <= 0 or seconds <= 0:
                break
            if kind is JobKind.EXTRACTION and model is not None:
                found = extraction.extract(
                    opened, limit=limit, seconds=seconds, again=False, actor=self._actor
                )
                self._count(kind, found.turns, found.memories, found.failed)
                self._spend(found.tokens_in, found.tokens_out)
                self._worked = replace(self._worked, stopped=found.stopped)
            elif kind is JobKind.CONSOLIDATION:
                self._repeat(partial(consolidation.choose, most=self._batch))
            elif kind is JobKind.DERIVATION and model is not None:
                self._repeat(derivation.choose)
            elif kind is JobKind.COMPACTION:
                self._compact()
        return replace(self._worked, done=dict(self._counts))

    def _compact(self) -> None:
        """Compact the scope if it is due.

        Two processes at it would write the same: a lease that ends too early only costs time.
        """
        from scrubjay.engine.ledger import compaction

        opened, job = self._opened, job_name(self._opened, JobKind.COMPACTION)
        if not opened.read(lambda view: compaction.waiting(opened, view)):
            return

        def lease(tx: Tx) -> str | None:
            values = ScopeValues(opened, tx)
            queue = JobQueue.of(values)
            if not queue.is_free(job, opened.ports.clock.now()):
                return None
            holder = queue.take(opened, job)
            queue.put(values)
            values.write(tx)
            return holder

        if (holder := opened.write(lease)) is None:
            return

        def renew(_done: int, _total: int) -> None:
            """Hold the lease for as long as the model is asked about one group after the other."""
            JobQueue.change(opened, lambda _, queue: queue.renew(opened, job, holder))

        opened.ports.reach(Failpoint.JOB_LEASED)
        try:
            done = compaction.compact(opened, Compact(), progress=renew, actor=self._actor)
        except ExtractorError:
            done = None
            self._worked = replace(self._worked, stopped=Stopped.UNAVAILABLE)
        applied = done is not None and done.outcome is CompactionOutcome.APPLIED
        finish(opened, job, holder, Done(), self._actor)
        self._count(JobKind.COMPACTION, applied, done.derived if done else 0, done is None)

    def _repeat(self, choose: Choose) -> None:
        """Take, do and finish one job after the other."""
        opened, tried = self._opened, set[str]()
        clock, most = opened.ports.clock, opened.ports.policy.daily_tokens
        while self._counts.total() < self._limit and clock.monotonic() < self._until:
            backlog, allowed = opened.read(
                lambda view: (
                    Backlog.of(values := ScopeValues(opened, view)),
                    purposes.derives(opened, values),
                )
            )
            if backlog.paused or not allowed:
                self._worked = replace(self._worked, stopped=Stopped.PAUSED)
            elif most and backlog.spent_on(day(clock.now())) >= most:
                self._worked = replace(self._worked, stopped=Stopped.SPENT)
            if self._worked.stopped is not None or not self._next(choose, tried):
                return

    def _next(self, choose: Choose, tried: set[str]) -> bool:
        """Do one job; returns whether there may be another."""
        opened = self._opened
        # Outside a transaction: to find a job may take long, and no writer waits for that.
        (task, passed), known = opened.read(
            lambda view: (
                choose(opened, view, queue := JobQueue.of(ScopeValues(opened, view))),
                queue.passed,
            )
        )
        if task is None or task.job in tried:
            if passed > known + _PASSED:
                JobQueue.change(opened, lambda _, queue: queue.note_passed(passed))
            return False

        def lease(tx: Tx) -> str | None:
            values = ScopeValues(opened, tx)
            queue = JobQueue.of(values)
            if not queue.is_free(task.job, opened.ports.clock.now()) or not task.waits(tx, values):
                return None
            if not purposes.derives(opened, values):
                return None
            queue.note_passed(passed)
            holder = queue.take(opened, task.job)
            queue.put(values)
            values.write(tx)
            return holder

        if (holder := opened.write(lease)) is None:
            return True  # another process was faster: there may be another job
        opened.ports.reach(Failpoint.JOB_LEASED)
        try:
            done = task.ask()
        except ExtractorError:
            JobQueue.change(opened, lambda _, queue: queue.give_back(task.job, holder))
            self._count(task.job, 0, 0, 1)
            self._worked = replace(self._worked, stopped=Stopped.UNAVAILABLE)
            return False
        opened.ports.reach(Failpoint.JOB_ANSWERED)
        written = finish(opened, task.job, holder, done, self._actor)
        if not done.usable:
            tried.add(task.job)
        self._count(task.job.partition("/")[0], done.usable, written, not done.usable)
        self._spend(done.tokens_in, done.tokens_out)
        return True

    def _count(self, kind: str, jobs: int, memories: int, failed: int) -> None:
        if jobs:
            self._counts[str(kind)] += jobs
        self._worked = replace(
            self._worked,
            memories=self._worked.memories + memories,
            failed=self._worked.failed + failed,
        )

    def _spend(self, tokens_in: int, tokens_out: int) -> None:
        self._worked = replace(
            self._worked,
            tokens_in=self._worked.tokens_in + tokens_in,
            tokens_out=self._worked.tokens_out + tokens_out,
        )


def finish(opened: OpenScope, job: str, holder: str, done: Done, actor: Actor) -> int:
    """Write the answer to a job, if the lease is still the holder's; its tokens count anyway."""

    def store(tx: Tx, *, only_tokens: bool = False) -> int:
        values = ScopeValues(opened, tx)
        queue, backlog = JobQueue.of(values), Backlog.of(values)
        if done.tokens_in or done.tokens_out:
            backlog.spend(done.tokens_in, done.tokens_out, day(opened.ports.clock.now()))
            backlog.put(values)
        written = 0
        if queue.give_back(job, holder) and not only_tokens and purposes.derives(opened, values):
            if done.usable:
                written = done.keep(tx, values)
            if queue.settle(job, done=done.usable) and done.drop is not None:
                done.drop(tx)
                del queue.attempts[job]
        queue.put(values)
        opened.trail.record(tx, job.partition("/")[0], actor, number=written)
        values.write(tx)
        return written

    try:
        return opened.write(store)
    except Frozen:  # the answer came too late to be kept, but its tokens count
        opened.write(lambda tx: store(tx, only_tokens=True), frozen_too=True)
        raise
