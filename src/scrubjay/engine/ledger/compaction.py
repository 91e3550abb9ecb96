"""compaction: older episodes become summaries, if the scope's own memories are found as well.

Survey what is due → derive in groups → ask questions of the memories before and after → note the
plan → one transaction per group: write what was derived, archive the originals. A process that
dies leaves the plan, and the next compaction finishes it before it looks for anything else.

Without a model the summaries are sentences of the episodes: those that say most that no other one
says. How much of the text stays is tried from little to much; the first that passes is applied.
A model's texts are made once, so what is left of such a plan is surveyed and proven anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from scrubjay.engine.ledger import consolidation
from scrubjay.engine.ledger.backlog import Backlog
from scrubjay.engine.ledger.jobs import check_writable, derived_by
from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.counters_and_retention import NEVER
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import living
from scrubjay.engine.search import embedding, recall_trial
from scrubjay.engine.search.analysis import gist
from scrubjay.engine.search.open_index import kept_vector
from scrubjay.engine.search.segment import IndexEntry
from scrubjay.guard.admission import admit
from scrubjay.model.compaction import (
    QUESTIONS,
    TOLERATED,
    Compact,
    Compacted,
    CompactionOutcome,
    CompactionTrial,
)
from scrubjay.model.echo import plain_words
from scrubjay.model.jobs import Insight
from scrubjay.model.memory import Kind, Memory, Provenance, wording
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.purposes import UsePurpose
from scrubjay.model.rows import Collection
from scrubjay.model.text import tokens
from scrubjay.model.turns import Piece, derived_id
from scrubjay.ports import Failpoint, Progress, Tx, View

_NAME: Final = "compaction"
EXTRACTIVE: Final = "extractive"
"""What derives without a model: the summary is made of sentences of its sources."""
_KEPT: Final = (0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of an episode's content words that are tried: with less, nothing counts for it."""
_EMPTY: Final = 2
"""Content words below which an episode says nothing that is worth keeping."""
_ASKED: Final = 400
"""Number of questions that are asked, where so many can be made."""
_GROUP: Final = 200
"""Number of episodes that are derived from together, and archived in one transaction, at most."""
_SUMMARY_CHARS: Final = 400
"""Length of a piece of a summary: about five of them fit in an answer."""
_SHORT: Final = 20
"""Characters that are added to the length of a part, so that a single word is not worth most."""
_GROWN: Final = 1.1
"""Growth of a scope from which a job tries again what recall did not allow."""


class _Plan(Struct, frozen=True, kw_only=True):
    """What was proven and is applied now; it holds numbers, and no text."""

    episodes: tuple[int, ...] = ()
    """Creation numbers of the memories that are compacted."""
    repeats: tuple[int, ...] = ()
    kept: float = 0.0
    report: Compacted
    tried: int = 0
    """Tokens of the scope when recall did not allow it; 0 for a plan that is under way."""


class _Survey(Struct, frozen=True, kw_only=True):
    """What is in sight, and what of it is due."""

    entries: Sequence[IndexEntry]
    due: Sequence[Memory]
    """The episodes that are to be compacted, oldest first."""
    repeats: Sequence[Memory]
    idle: int
    tokens: int


class _Derived(Struct, frozen=True, kw_only=True):
    """A group of episodes, and what takes its place."""

    episodes: Sequence[Memory]
    memories: Sequence[Memory]
    by_model: bool = False


def compact(opened: OpenScope, request: Compact, *, progress: Progress, actor: Actor) -> Compacted:
    """Compact what is due, if recall allows it; or finish what was begun."""
    plan = opened.read(lambda view: _noted(opened, view))
    if not request.dry_run:
        check_writable(opened)
        if plan is not None and not plan.tried:
            return _apply(opened, plan, None, progress, actor)
    found = opened.read(lambda view: _survey(opened, view, request))
    report = Compacted(
        outcome=CompactionOutcome.NOTHING_DUE,
        episodes=len(found.due),
        idle=found.idle,
        duplicates=len(found.repeats),
        tokens_before=found.tokens,
        tokens_after=found.tokens,
        derived_by=_by(opened),
    )
    if not found.due and not found.repeats:
        return report
    plan, derived = _prove(opened, found, report, progress)
    if request.dry_run or plan.report.outcome is not CompactionOutcome.PROVEN:
        if not request.dry_run:
            _note(opened, replace(plan, episodes=(), repeats=(), tried=found.tokens))
        return plan.report
    # Of a model's texts nothing is noted: they cannot be made again as they were proven.
    if derived is None:
        _note(opened, plan)
        opened.ports.reach(Failpoint.COMPACTION_NOTED)
    return _apply(opened, plan, derived, progress, actor)


def waiting(opened: OpenScope, view: View) -> int:
    """How many memories a job would compact now; none if recall did not allow it lately."""
    plan = _noted(opened, view)
    if plan is not None and not plan.tried:
        return len(plan.episodes) + len(plan.repeats)
    found = _survey(opened, view, Compact())
    if plan is not None and found.tokens < _GROWN * plan.tried:
        return 0
    return len(found.due) + len(found.repeats)


def _by(opened: OpenScope) -> str:
    return derived_by(opened) if _asks(opened) else EXTRACTIVE


def _asks(opened: OpenScope) -> bool:
    """Whether a model writes the summaries: there is one, and text may be sent to it."""
    return opened.ports.extractor is not None and purposes.may(opened, UsePurpose.MODEL)


def _noted(opened: OpenScope, view: View) -> _Plan | None:
    found = ScopeValues(opened, view).get(_NAME)
    return None if found is None else convert(found, _Plan)


def _note(opened: OpenScope, plan: _Plan | None) -> None:
    def store(tx: Tx) -> None:
        values = ScopeValues(opened, tx)
        values.put(_NAME, None if plan is None else to_builtins(plan))
        values.write(tx)

    opened.write(store)


# -- what is due -------------------------------------------------------------------------------


def _survey(opened: OpenScope, view: View, request: Compact) -> _Survey:
    now = opened.ports.clock.now()
    entries = [
        IndexEntry(row_id=row.id, seq=row.seq, memory=memory, vector=kept_vector(opened, row))
        for row, memory in opened.memories(view)
        if memory.shown and not memory.quarantined and not memory.expired(now)
    ]
    memories = sorted((one.memory for one in entries), key=_place)
    sizes = [tokens(memory.content) for memory in memories]
    episodes = [one for one in memories if one.kind is Kind.EPISODE and not one.pinned]
    due = dict.fromkeys(_oldest(memories, sizes, request)) | dict.fromkeys(
        one.id for session in _sessions(episodes) if len(session) > request.session_messages
        for one in session[: len(session) - request.keep_messages]
    )  # fmt: skip
    since = now - timedelta(days=request.idle_days)
    recalled = opened.counters.every(view)
    idle = {
        one.id
        for one in episodes
        if max(one.recorded_at, recalled.get(one.number, NEVER).at) <= since
    }
    repeats = list(_repeats(memories))
    may = purposes.is_on(opened, ScopeValues(opened, view), UsePurpose.FACTS)
    again = {one.id for one in repeats}
    return _Survey(
        entries=entries,
        due=[
            one
            for one in episodes
            if may and (one.id in due or one.id in idle) and one.id not in again
        ],
        repeats=repeats,
        idle=len(idle - due.keys() - again) if may else 0,
        tokens=sum(sizes),
    )


def _place(memory: Memory) -> tuple[object, ...]:
    return memory.said_at, memory.position or 0, memory.number


def _oldest(memories: Sequence[Memory], sizes: Sequence[int], request: Compact) -> Iterator[str]:
    """Ids of the oldest memories that have the share of the tokens, if these are too many."""
    total = sum(sizes)
    room = request.share * total if total > request.tokens else 0
    for memory, size in zip(memories, sizes, strict=True):
        if (room := room - size) < 0:
            return
        yield memory.id


def _sessions(episodes: Iterable[Memory]) -> Iterable[list[Memory]]:
    found = defaultdict[str, list[Memory]](list)
    for one in episodes:
        if one.provenance.session is not None:
            found[one.provenance.session].append(one)
    return found.values()


def _repeats(memories: Sequence[Memory]) -> Iterator[Memory]:
    """Memories that say the same as a later one, which is trusted no less."""
    latest = dict[tuple[Kind, str], Memory]()
    for memory in reversed(memories):
        said = memory.kind, plain_words(memory.content)
        later = latest.setdefault(said, memory)
        if later is not memory and not memory.pinned and later.origin.trust >= memory.origin.trust:
            yield memory


def _groups(due: Iterable[Memory]) -> Iterator[list[Memory]]:
    """Episodes of one week, session and origin, at most so many, in their order."""
    found = defaultdict[tuple[object, ...], list[Memory]](list)
    for one in due:
        week = one.said_at.isocalendar()[:2]
        found[week, one.provenance.session, one.origin].append(one)
    for group in found.values():
        yield from (group[at : at + _GROUP] for at in range(0, len(group), _GROUP))


# -- the proof ---------------------------------------------------------------------------------


def _prove(
    opened: OpenScope, found: _Survey, report: Compacted, progress: Progress
) -> tuple[_Plan, list[_Derived] | None]:
    """Try from little to much what may stay of the text, until recall allows it."""
    asked = recall_trial.questions((one.memory for one in found.entries), _ASKED)
    report = replace(report, questions=len(asked), outcome=CompactionOutcome.UNPROVEN)
    plan = _Plan(
        episodes=tuple(one.number for one in found.due),
        repeats=tuple(one.number for one in found.repeats),
        report=report,
    )
    if len(asked) < QUESTIONS:
        return plan, None
    ask = recall_trial.asker(opened, asked)
    before, trials = ask(found.entries), list[CompactionTrial]()
    outcome, derived = CompactionOutcome.LOSES_RECALL, list[_Derived]()
    by_model = _asks(opened)
    attempts = (1.0,) if by_model else _KEPT
    groups = list(_groups(found.due))
    for number, kept in enumerate(attempts):
        derived = []
        for group in groups:
            progress(number * len(groups) + len(derived), len(attempts) * len(groups))
            derived.append(_derive(opened, group, kept, by_model=by_model))
        after = list(_afterwards(opened, found, derived))
        sizes = sum(tokens(entry.memory.content) for entry in after)
        trials.append(CompactionTrial(kept=kept, tokens=sizes, recall=ask(after)))
        if trials[-1].recall >= before - TOLERATED:
            outcome = CompactionOutcome.PROVEN
            break
    report = replace(
        report,
        outcome=outcome,
        tokens_after=trials[-1].tokens,
        recall_before=before,
        recall_after=trials[-1].recall,
        trials=tuple(trials),
    )
    return replace(plan, kept=trials[-1].kept, report=report), derived if by_model else None


def _afterwards(
    opened: OpenScope, found: _Survey, derived: Sequence[_Derived]
) -> Iterator[IndexEntry]:
    """What would be in sight: all that stays, and what takes the place of the rest."""
    gone = {one.id for group in derived for one in group.episodes}
    gone.update(one.id for one in found.repeats)
    yield from (entry for entry in found.entries if entry.memory.id not in gone)
    made, embedder = [one for group in derived for one in group.memories], opened.ports.embedder
    costly = embedder.costly and embedder.dimensions and made and purposes.embeds(opened)
    texts = [wording(one.content, one.tags) for one in made]
    vectors = embedder.embed(texts) if costly else [None] * len(made)
    for memory, vector in zip(made, vectors, strict=True):
        yield IndexEntry(row_id=opened.row_id(memory.id), seq=0, memory=memory, vector=vector)


# -- deriving ----------------------------------------------------------------------------------

_Extract = tuple[str, Sequence[Memory]]
"""A text, and the episodes it is made of."""


def _derive(opened: OpenScope, group: Sequence[Memory], kept: float, *, by_model: bool) -> _Derived:
    """What takes the place of a group: a summary in pieces, and facts."""
    model = opened.ports.extractor if by_model else None
    if by_model and not _asks(opened):  # it was withdrawn meanwhile: the group stays as it is
        return _Derived(episodes=(), memories=())
    if model is None:
        summary = [
            extract
            for said in _by_speaker(group)
            for extract in _packed((_shortened(one.content, kept), one) for one in said)
        ]
        told = consolidation.by_rules(opened, group)
        facts: Sequence[Insight] = [one for one in told if Kind(one.category).behavioral]
    else:
        deadline = opened.ports.clock.monotonic() + opened.ports.policy.extract_seconds
        texts = [_told(one, one.content) for one in group]
        restated = model.restate(Kind.SUMMARY, texts, deadline=deadline)
        found = model.consolidate(texts, deadline=deadline)
        _spend(opened, restated.tokens_in + found.tokens_in, restated.tokens_out + found.tokens_out)
        if not restated.text:  # what could not be summarized stays as it is
            return _Derived(episodes=(), memories=())
        parts = recall_trial.sentences(restated.text)
        summary = [(text, group) for text, _ in _packed((one, group[0]) for one in parts)]
        facts = found.insights
    summaries = [_summary(opened, group, *one) for one in summary]
    memories = [*summaries, *consolidation.facts(opened, group, facts)]
    return _Derived(episodes=group, memories=memories, by_model=by_model)


def _spend(opened: OpenScope, tokens_in: int, tokens_out: int) -> None:
    """Count what a model's answer cost towards the budget of the day."""

    def store(tx: Tx) -> None:
        values = ScopeValues(opened, tx)
        backlog = Backlog.of(values)
        backlog.spend(tokens_in, tokens_out, day(opened.ports.clock.now()))
        backlog.put(values)
        values.write(tx)

    opened.write(store)


def _told(memory: Memory, text: str) -> str:
    """A text as it stands in a summary, with its speaker."""
    return text if memory.speaker is None else f"{memory.speaker}: {text}"


def _shortened(text: str, kept: float) -> str:
    """The sentences of a text that hold so much of its content words, in their order.

    Greedily, the sentence with the most of them that none before it has, for its length. Of a text
    with hardly any content words, such as a greeting, nothing is left.
    """
    parts = recall_trial.sentences(text)
    about = [gist(part) for part in parts]
    wanted = kept * len(gist(text))
    known, chosen = frozenset[str](), set[int]()
    while wanted >= _EMPTY and len(known) < wanted:
        pairs = zip(about, parts, strict=True)
        news = [len(one - known) / (_SHORT + len(part)) for one, part in pairs]
        best = max(range(len(parts)), key=news.__getitem__)
        if not news[best]:
            break  # some words are told from others only in the whole text
        chosen.add(best)
        known |= about[best]
    return " ".join(parts[place] for place in sorted(chosen))


def _by_speaker(group: Iterable[Memory]) -> Iterable[list[Memory]]:
    """What each speaker said: a question about one of them is answered by their own words."""
    found = defaultdict[str | None, list[Memory]](list)
    for one in group:
        found[one.speaker].append(one)
    return found.values()


def _packed(parts: Iterable[tuple[str, Memory]]) -> list[_Extract]:
    """Parts in a row, as texts of the length of a summary."""
    found, text, sources = list[_Extract](), "", dict[str, Memory]()
    for part, memory in parts:
        if not part:
            continue
        told = " ".join(part.split())
        if text and len(text) + len(told) > _SUMMARY_CHARS:
            found.append((text, list(sources.values())))
            text, sources = "", {}
        text = f"{text} {told}" if text else told
        sources[memory.id] = memory
    return [*found, (text, list(sources.values()))] if text else found


def _summary(
    opened: OpenScope, group: Sequence[Memory], text: str, sources: Sequence[Memory]
) -> Memory:
    """A piece of the summary of a week; the same sources and text give the same id."""
    piece = Piece(part="summary", kind=Kind.SUMMARY, content=text)
    admitted, _ = admit(piece, opened.ports.policy.placeholder)
    year, week, _ = group[0].said_at.isocalendar()
    speakers = {one.speaker for one in sources}
    return Memory(
        id=derived_id("/".join(one.id for one in sources), admitted.content),
        kind=Kind.SUMMARY,
        content=admitted.content,
        recorded_at=opened.ports.clock.now(),
        origin=lowest([Origin.AGENT, *(one.origin for one in sources)]),
        provenance=Provenance(actor=Actor.SYSTEM, said_at=sources[0].said_at),
        speaker=speakers.pop() if len(speakers) == 1 else None,
        tags=(f"week:{year}-W{week:02}",),
        sources=tuple(one.id for one in sources),
        metadata={consolidation.DERIVED_BY: _by(opened)},
    )


# -- applying ----------------------------------------------------------------------------------


def _apply(
    opened: OpenScope,
    plan: _Plan,
    derived: Sequence[_Derived] | None,
    progress: Progress,
    actor: Actor,
) -> Compacted:
    """Carry a plan out, group by group; whatever was done of it before is not done again."""
    if derived is None:
        there = opened.read(lambda view: _numbered(opened, view, set(plan.episodes)))
        derived = [
            _derive(opened, group, plan.kept, by_model=_asks(opened)) for group in _groups(there)
        ]
    repeats = opened.read(lambda view: _numbered(opened, view, set(plan.repeats)))
    again = (repeats[at : at + _GROUP] for at in range(0, len(repeats), _GROUP))
    groups = [*derived, *(_Derived(episodes=some, memories=()) for some in again)]
    archived = written = done = 0
    for batch in _batches(groups):
        made = _vectors(opened, (one for group in batch for one in group.memories))
        for group in opened.write(partial(_replace_all, opened, batch, made, actor)):
            archived += len(group.episodes)
            written += len(group.memories)
        opened.ports.reach(Failpoint.COMPACTION_APPLIED)
        progress(done := done + len(batch), len(groups))
    _note(opened, None)
    outcome = CompactionOutcome.APPLIED
    return replace(plan.report, outcome=outcome, archived=archived, derived=written)


def _batches(groups: Iterable[_Derived]) -> Iterator[list[_Derived]]:
    """Groups that are written in one transaction: small ones would each wait for the disk."""
    batch, size = list[_Derived](), 0
    for group in groups:
        if batch and size + len(group.episodes) > _GROUP:
            yield batch
            batch, size = [], 0
        batch.append(group)
        size += len(group.episodes)
    if batch:
        yield batch


def _replace_all(
    opened: OpenScope,
    batch: Sequence[_Derived],
    vectors: Mapping[str, bytes | None],
    actor: Actor,
    tx: Tx,
) -> list[_Derived]:
    done = (_replace(opened, one, vectors, actor, tx) for one in batch)
    return [one for one in done if one is not None]


def _numbered(opened: OpenScope, view: View, numbers: set[int]) -> list[Memory]:
    """The memories of these numbers that are still in sight, oldest first."""
    found = (one for row, one in opened.memories(view) if row.born in numbers and one.shown)
    return sorted(found, key=_place) if numbers else []


def _vectors(opened: OpenScope, memories: Iterable[Memory]) -> dict[str, bytes | None]:
    pieces = [
        Piece(part=one.id, kind=one.kind, content=one.content, tags=one.tags) for one in memories
    ]
    return embedding.vectors_of_pieces(opened, pieces, seconds=opened.ports.policy.embed_seconds)


def _replace(
    opened: OpenScope, group: _Derived, vectors: Mapping[str, bytes | None], actor: Actor, tx: Tx
) -> _Derived | None:
    """Write what was derived and archive the originals; not if one of them has changed."""
    values = ScopeValues(opened, tx)
    memories = purposes.permitted(opened, values, group.memories)
    lost = group.by_model and not purposes.is_on(opened, values, UsePurpose.MODEL)
    if lost or (group.memories and not memories):
        return None  # withdrawn while it was derived: nothing of it is kept
    now = opened.moment()
    current = [opened.peek(tx, one.id) for one in group.episodes]
    if any(
        one is None or not one.shown or one.content != was.content or one.pinned
        for one, was in zip(current, group.episodes, strict=True)
    ):
        return None
    for memory in memories:
        row_id = opened.row_id(memory.id)
        if tx.buried([row_id]) or living(tx, Collection.MEMORY, row_id):
            continue
        opened.put(tx, memory, vectors[memory.id])
        for source in memory.sources:
            tx.link(opened.row_id(source), row_id)
    for one in current:
        if one is not None:
            opened.put(tx, replace(one, archived_at=now, version=one.version + 1))
    opened.trail.record(tx, "compact", actor, number=len(current))
    return replace(group, memories=memories)
