"""What a simulation knows of a scope from outside: what must be there, and what never again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

from scrubjay.engine.scope.counters_and_retention import Recalls
from scrubjay.model.batches import RetainedMany
from scrubjay.model.errors import Destroyed, NotFound, ScrubjayError, StoreError
from scrubjay.model.memory import Memory
from scrubjay.model.results import Outcome as Fate
from scrubjay.model.results import Retained
from scrubjay.model.retention import RetentionState
from scrubjay.model.rows import Due
from scrubjay.ports import Failpoint
from tests.properties.worlds import RESTATED, Outcome, Snapshot

Seen = Snapshot | type[ScrubjayError]
POINTS_OF_NO_RETURN = frozenset(
    {Failpoint.DESTROY_KEYS_DELETED, Failpoint.DESTROY_EMPTIED, Failpoint.DESTROY_UNLINKED}
)


REPEATED = (
    "A sentence that is said again and again",
    "Another one, and it has been heard before",
)
"""What several memories and turns say."""


class Verb(Enum):
    """What a step does, as far as it decides what may change."""

    ADD = auto()
    """retain, supersede and load"""
    RESTORE = auto()
    FORGET = auto()
    PURGE = auto()
    DESTROY = auto()
    ANEW = auto()
    """open a scope that may have been destroyed, to begin it anew"""
    OTHER = auto()


@dataclass
class Ledger:
    """The outside record of one scope."""

    born: bool = False
    destroyed: bool = False
    lost: bool = False
    """The data file is gone, and no backup has been restored since."""
    cut: bool = False
    """The audit trail may end before what the catalog knows: it was restored from a backup."""
    doomed: bool = False
    """A destroy died before anybody could see it; whoever opens the scope next finishes it."""
    life: int = 1
    memories: dict[str, Memory] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Ids forgotten or purged in this life."""
    gone_contents: set[str] = field(default_factory=set)
    unacknowledged: dict[str, str] = field(default_factory=dict)
    """What somebody erased and died, by id, as long as only the file knows of it."""
    past: dict[int, set[str]] = field(default_factory=dict)
    """Ids forgotten or purged in earlier lives: no backup of such a life brings them back."""
    lineage: dict[str, Memory] = field(default_factory=dict)
    """What is there, and what purge took."""
    known: list[str] = field(default_factory=list)
    """Every id ever seen, oldest first."""
    limits: RetentionState | None = None
    """The retention that is set, as it was last seen."""
    counters: Mapping[int, Recalls] = field(default_factory=dict)
    handles: dict[int, int] = field(default_factory=dict)
    """Which life of the scope each engine has open."""

    # -- before a step -----------------------------------------------------------------

    def closure(self, named: Iterable[str]) -> set[str]:
        """What forgetting the named ids must take: what came of them, and earlier versions.

        It leads through what purge took, as long as the file has not been lost since.
        """
        found: set[str] = set()
        waiting = [(one, one in self.memories) for one in named]
        while waiting:
            one, earlier = waiting.pop()
            if one in found:
                continue
            found.add(one)
            waiting += [(m.id, earlier) for m in self.lineage.values() if one in m.sources]
            if one in self.memories and "document" in self.memories[one].metadata:
                # A corrected piece goes with what its document said, which is cut.
                waiting += [(m.id, True) for m in self.memories.values() if m.supersedes == one]
            if earlier and one in self.lineage and (before := self.lineage[one].supersedes):
                waiting.append((before, True))
        return found & self.memories.keys()

    def with_copies(self, named: str) -> list[str]:
        """An id, and those of the memories that say what it says or said before."""
        texts: set[str] = set()
        memory = self.memories.get(named)
        while memory is not None:
            texts.add(memory.content)
            memory = self.memories.get(memory.supersedes or "")
        said = texts.intersection(REPEATED)
        return [named, *self.where(lambda memory: memory.content in said)]

    def where(self, matches: Callable[[Memory], bool]) -> list[str]:
        """The ids of the memories that are there and match."""
        return [memory.id for memory in self.memories.values() if matches(memory)]

    def retired(self, memory: Memory, now: datetime) -> bool:
        """Whether a memory is past the number or age of its kind."""
        return self.limits is not None and self.limits.retired(memory, now)

    def in_sight(self, memory: Memory, now: datetime) -> bool:
        """Whether recall and lists are to show a memory."""
        return memory.shown and not memory.expired(now) and not self.retired(memory, now)

    def beyond_limits(self, now: datetime) -> set[str]:
        """The ids of the memories that retention lets go: retired, or not recalled for long."""

        def idle(memory: Memory) -> bool:
            limit = None if self.limits is None else self.limits.policy.of(memory.kind)
            last = self.counters.get(memory.number)
            used = memory.recorded_at if last is None else max(memory.recorded_at, last.at)
            return limit is not None and not memory.pinned and limit.idle(used, now)

        return set(self.where(lambda memory: self.retired(memory, now) or idle(memory)))

    # -- after a step ------------------------------------------------------------------

    def judge_handle(self, which: int, verb: Verb, outcome: Outcome) -> None:
        """A handle says Destroyed while its scope is; one of an earlier life at most once more."""
        earlier = self.handles.get(which, self.life) < self.life
        told = outcome.error is Destroyed
        if verb in (Verb.ADD, Verb.FORGET, Verb.PURGE, Verb.OTHER) and not self.doomed:
            if self.destroyed:
                assert told or outcome.crash, f"engine {which} works on a destroyed scope"
            else:
                assert earlier or not told, f"engine {which} says Destroyed of a living scope"
                if earlier and not outcome.crash:
                    self.handles[which] = self.life  # it finds the scope that is there now
        if verb is Verb.RESTORE or (verb is Verb.DESTROY and outcome.ok):
            self.handles.pop(which, None)
        elif verb is Verb.ANEW:
            self.handles.pop(which, None)
            if outcome.ok:
                self.handles[which] = self.life
        elif not self.destroyed and self.born and not self.lost:
            self.handles.setdefault(which, self.life)

    def begin_life(self) -> None:
        """The scope is begun anew, and empty."""
        self.past[self.life] = self.gone
        self.life += self.born
        self.gone, self.gone_contents, self.memories, self.lineage = set(), set(), {}, {}
        self.born, self.destroyed = True, False
        self.lost, self.cut, self.doomed = False, False, False

    def judge(
        self,
        verb: Verb,
        outcome: Outcome,
        seen: Seen,
        *,
        due: set[str],
        never: set[str],
        beyond: set[str],
    ) -> None:
        """What is there after a step is what it may have left.

        `due` is what it may have taken, `never` what it may not have brought back. What is
        `beyond` a limit purge may take, and it may be told again.
        """
        if seen is Destroyed:
            self._judge_end(verb)
        elif isinstance(seen, Snapshot):
            self._judge_rows(verb, outcome, seen, due=due, never=never, beyond=beyond)
        else:
            assert self.lost, f"the scope is alive, but {seen} was seen"
            assert seen in (NotFound, StoreError)
        if verb is Verb.DESTROY and (outcome.ok or outcome.crash in POINTS_OF_NO_RETURN):
            assert self.destroyed, "a scope that was destroyed is still there"
        if verb is Verb.DESTROY and outcome.crash and not self.destroyed:
            # With its file, the mark in the head is there before anything else is done.
            self.doomed = self.doomed or self.lost

    def _judge_end(self, verb: Verb) -> None:
        assert self.destroyed or self.doomed or verb is Verb.DESTROY, "destroyed by nobody"
        self.destroyed, self.doomed, self.lost = True, False, False
        self.memories = {}

    def _judge_rows(
        self,
        verb: Verb,
        outcome: Outcome,
        seen: Snapshot,
        *,
        due: set[str],
        never: set[str],
        beyond: set[str],
    ) -> None:
        before, after = self.memories.keys(), seen.memories.keys()
        vanished, appeared = before - after, after - before
        self._judge_vanished(verb, outcome, vanished, due, beyond)
        assert not appeared & self.gone, "what was forgotten came back"
        assert not appeared & never, "a backup brought back what was forgotten"
        if verb is Verb.RESTORE:
            self.lost = self.lost and outcome.error is not None
        assert verb in (Verb.ADD, Verb.RESTORE) or not appeared, "something came from nowhere"
        for memory in seen.memories.values():
            sources = [seen.memories[source] for source in memory.sources if source in after]
            outdated = any(not source.current for source in sources)
            # Unless somebody corrected it by hand, what it was derived from decides.
            in_sight = memory.current and memory.supersedes is None
            assert not (in_sight and outdated), "derived from an outdated value, and in sight"
        for one in before & after:
            assert self.memories[one].content == seen.memories[one].content
            assert self.memories[one].version <= seen.memories[one].version
        if outcome.crash:
            self.unacknowledged |= {one: self.memories[one].content for one in vanished}
        if not seen.head.due & Due.PUSH:
            self.unacknowledged = {}
        if verb is not Verb.PURGE:
            self.lineage = {one: m for one, m in self.lineage.items() if one not in vanished}
        numbers = {memory.number for memory in seen.memories.values()}
        assert seen.counters.keys() <= numbers, "a counter outlived its memory"
        self._note(seen, vanished, appeared, beyond)
        self._judge_receipt(outcome.result, appeared)

    def _judge_vanished(
        self, verb: Verb, outcome: Outcome, vanished: set[str], due: set[str], beyond: set[str]
    ) -> None:
        if verb is Verb.FORGET and outcome.ok:
            assert vanished == due, "forget took too much or too little"
        elif verb is Verb.FORGET and outcome.crash:
            assert vanished in (set(), due), "a forget that died did a part of its work"
        elif verb is Verb.PURGE:
            assert vanished <= due | beyond, "purge took what was not due"
        elif verb is Verb.ADD:
            assert vanished <= beyond, "something acknowledged is gone"
        else:
            assert not vanished, "something acknowledged is gone"

    def _note(
        self, seen: Snapshot, vanished: set[str], appeared: set[str], beyond: set[str]
    ) -> None:
        self.gone |= vanished
        contents = {self.memories[one].content for one in vanished - beyond}
        # Some of them others say, too.
        self.gone_contents |= {
            one for one in contents.difference(REPEATED) if not one.startswith(RESTATED)
        }
        self.limits, self.counters = seen.limits, seen.counters
        self.memories = dict(seen.memories)
        self.lineage |= seen.memories
        self.known += sorted(appeared.difference(self.known))
        contents = {memory.content for memory in self.memories.values()}
        assert not contents & self.gone_contents, "forgotten content is there under another id"

    def _judge_receipt(self, receipt: object, appeared: set[str]) -> None:
        if isinstance(receipt, RetainedMany):
            found = [one.retained for one in receipt if one.retained is not None]
            stored = {one.id for one in found if one.outcome is Fate.STORED}
            assert appeared == stored, "something else was stored than the receipts say"
        if isinstance(receipt, Retained):
            expected = {receipt.id} if receipt.outcome is Fate.STORED else set()
            assert appeared == expected, "something else was stored than the receipt says"
            if receipt.outcome is Fate.KNOWN:
                assert receipt.id in self.memories, "an acknowledged memory is not there"

    def lose(self) -> None:
        """The data file was deleted: what it held may come back, what was forgotten may not.

        Only an erasure whose process died before the catalog knew of it is lost with the file.
        """
        self.lost, self.cut = True, True
        self.memories, self.lineage = {}, {}
        self.gone -= self.unacknowledged.keys()
        self.gone_contents -= set(self.unacknowledged.values())
        self.unacknowledged = {}
