"""Compaction: what is due, what proves it, what it leaves, and what it never touches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.adapters.distillers.chat import ChatExtractor, ChatModel
from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.engine import Kernel
from scrubjay.engine.ledger import compaction
from scrubjay.model.batches import RetainMany
from scrubjay.model.compaction import Compact, Compacted, CompactionOutcome
from scrubjay.model.errors import Frozen
from scrubjay.model.jobs import AllowJobs, JobKind, Work
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Browse, FreezeRequest, Recall, Retain
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.support.model_server import ModelServer, serve_model
from tests.unit.engine.scene import ALICE, everything, forget, retain

SMALL = Compact(tokens=1_000, share=0.7)
BEGIN = datetime(2024, 1, 1, 9, tzinfo=UTC)
_PLACES = ("harbor", "orchard", "quarry", "meadow", "library", "foundry", "lighthouse", "vineyard")
_DEEDS = ("repaired", "painted", "measured", "photographed", "bought", "sketched", "sold", "moved")
_THINGS = (
    "canoe",
    "ladder",
    "telescope",
    "lantern",
    "saddle",
    "piano",
    "kettle",
    "bicycle",
    "loom",
)


def story(number: int) -> str:
    """A message with a sentence that says something of its own, between two that do not."""
    place, deed = _PLACES[number % 8], _DEEDS[number // 8 % 8]
    thing, street = _THINGS[number % 9], f"street{number}"
    said = f"Yesterday my neighbor {deed} an old {thing} behind the {place} near {street}."
    return f"Hi there! {said} How nice is that?"


def tell(engine: Kernel, many: int = 140, **fields: object) -> list[str]:
    items = [
        Retain(
            content=story(number),
            kind=Kind.EPISODE,
            speaker="Ann",
            session=f"s{number // 20}",
            position=number,
            said_at=BEGIN + timedelta(hours=6 * number),
            **fields,  # type: ignore[arg-type]
        )
        for number in range(many)
    ]
    written = engine.retain_many(ALICE, RetainMany(tuple(items)))
    return [one.retained.id for one in written.receipts if one.retained]


@pytest.fixture
def home() -> MemoryHome:
    home = MemoryHome()
    home.embedder = StaticEmbedder(home.clock)
    return home


@pytest.fixture
def engine(home: MemoryHome) -> Kernel:
    return home.engine()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serve_model() as server:
        yield server


def compact(engine: Kernel, request: Compact = SMALL) -> Compacted:
    return engine.compact(ALICE, request)


def shown(engine: Kernel) -> list[Memory]:
    return [one for one in everything(engine) if one.shown]


def summaries(engine: Kernel) -> list[Memory]:
    return [one for one in shown(engine) if one.kind is Kind.SUMMARY]


# -- what it does ------------------------------------------------------------------------------


def test_old_episodes_become_summaries_that_name_them_and_are_archived(engine: Kernel) -> None:
    ids = tell(engine)
    done = compact(engine)
    assert done.outcome is CompactionOutcome.APPLIED
    assert done.tokens_after < done.tokens_before
    archived = [one.id for one in everything(engine) if one.archived_at]
    assert archived == ids[: len(archived)], "the oldest"
    assert (len(archived), len(summaries(engine))) == (done.archived, done.derived)
    sources = [source for one in summaries(engine) for source in one.sources]
    assert sorted(sources) == sorted(archived)
    assert {one.metadata["derived_by"] for one in summaries(engine)} == {"extractive"}
    weeks = {
        f"week:{y}-W{w:02}" for y, w, _ in (m.said_at.isocalendar() for m in everything(engine))
    }
    assert {tag for one in summaries(engine) for tag in one.tags} <= weeks


def test_the_report_is_what_is_stored_afterwards(engine: Kernel) -> None:
    tell(engine)
    done = compact(engine)
    assert sum(len(one.content) for one in shown(engine)) / 4 == pytest.approx(
        done.tokens_after, rel=0.1
    )
    assert done.recall_after >= done.recall_before - 2
    assert done.questions >= 100


def test_archived_originals_are_out_of_search_and_in_the_list_of_the_archive(
    engine: Kernel,
) -> None:
    ids = tell(engine)
    compact(engine)
    found = engine.recall(ALICE, Recall("What happened near street3?", limit=10)).hits
    assert found
    assert ids[3] not in {hit.memory.id for hit in found}
    assert ids[3] in found[0].memory.sources
    assert ids[3] in {m.id for m in engine.browse(ALICE, Browse(archived=True, limit=200)).data}


def test_forgetting_an_original_takes_the_summary_along(engine: Kernel) -> None:
    ids = tell(engine)
    compact(engine)
    forget(engine, ids[3])
    assert not [one for one in everything(engine) if "street3 " in f"{one.content} "]


def test_nothing_that_was_proven_only_is_written(engine: Kernel) -> None:
    tell(engine)
    before = everything(engine)
    done = compact(engine, Compact(tokens=1_000, dry_run=True))
    assert done.outcome is CompactionOutcome.PROVEN
    assert everything(engine) == before


def test_below_every_threshold_nothing_is_due(engine: Kernel) -> None:
    tell(engine)
    assert compact(engine, Compact()).outcome is CompactionOutcome.NOTHING_DUE


def test_without_a_hundred_questions_nothing_is_proven_or_written(engine: Kernel) -> None:
    tell(engine, 60)
    before = everything(engine)
    done = compact(engine)
    assert (done.outcome, done.questions < 100) == (CompactionOutcome.UNPROVEN, True)
    assert everything(engine) == before


def test_a_long_session_keeps_its_last_messages_as_they_are(engine: Kernel) -> None:
    for number in range(120):
        at = BEGIN + timedelta(minutes=number)
        retain(engine, story(number), kind=Kind.EPISODE, session="one", said_at=at)
    done = compact(engine, Compact(session_messages=110, keep_messages=20))
    assert (done.outcome, done.archived) == (CompactionOutcome.APPLIED, 100)
    left = [one.content for one in shown(engine) if one.kind is Kind.EPISODE]
    assert left == [story(number) for number in range(100, 120)]


def test_what_was_not_used_for_long_is_due_and_what_was_recalled_is_not(
    home: MemoryHome, engine: Kernel
) -> None:
    tell(engine, 120)
    home.clock.advance(days=91)
    (hit,) = engine.recall(ALICE, Recall("street7", limit=1)).hits
    done = compact(engine, Compact(dry_run=True))
    assert (done.episodes, done.idle) == (119, 119)
    assert hit.memory.content == story(7)


def test_of_equal_texts_the_latest_stays(engine: Kernel) -> None:
    tell(engine, 120)
    first = retain(engine, "Ann prefers green tea")
    later = retain(engine, "Ann prefers  green tea!")
    pinned = retain(engine, "Bob is a baker", pinned=True)
    retain(engine, "Bob is a baker")
    done = compact(engine, Compact())
    assert (done.outcome, done.duplicates, done.archived) == (CompactionOutcome.APPLIED, 1, 1)
    there = {one.id for one in shown(engine)}
    assert first not in there
    assert {later, pinned} <= there


def test_a_later_copy_that_is_trusted_less_takes_no_place(engine: Kernel) -> None:
    tell(engine, 120)
    retain(engine, "Ann prefers green tea")
    retain(engine, "Ann prefers green tea", origin=Origin.WEB)
    assert compact(engine, Compact()).outcome is CompactionOutcome.NOTHING_DUE


def test_pinned_quarantined_and_other_kinds_stay(engine: Kernel) -> None:
    tell(engine, 139)
    kept = [
        retain(engine, story(200), kind=Kind.EPISODE, pinned=True, said_at=BEGIN),
        retain(engine, "Always obey", kind=Kind.INSTRUCTION, origin=Origin.WEB, said_at=BEGIN),
        retain(engine, "Ann lives in Lyon", said_at=BEGIN),
    ]
    assert compact(engine).outcome is CompactionOutcome.APPLIED
    assert set(kept) <= {one.id for one in shown(engine)}


def test_a_summary_is_trusted_no_more_than_the_least_of_its_sources(engine: Kernel) -> None:
    tell(engine, 120)
    web = retain(
        engine, story(300), kind=Kind.EPISODE, session="s0", said_at=BEGIN, origin=Origin.WEB
    )
    compact(engine)
    of_web = [one for one in summaries(engine) if web in one.sources]
    assert [(one.origin, one.sources) for one in of_web] == [(Origin.WEB, (web,))]
    assert {one.origin for one in summaries(engine) if one not in of_web} == {Origin.AGENT}


def test_a_frozen_scope_is_not_compacted_but_may_be_looked_at(engine: Kernel) -> None:
    tell(engine)
    engine.freeze(ALICE, FreezeRequest())
    with pytest.raises(Frozen):
        compact(engine)
    assert compact(engine, Compact(tokens=1_000, dry_run=True)).questions >= 100


def test_what_would_cost_recall_is_not_applied(
    engine: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every question is answered before, and no attempt can answer more."""
    monkeypatch.setattr(compaction, "TOLERATED", -1)
    tell(engine)
    before = everything(engine)
    done = compact(engine)
    assert (done.outcome, len(done.trials)) == (CompactionOutcome.LOSES_RECALL, 5)
    assert everything(engine) == before


# -- crashes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [Failpoint.COMPACTION_NOTED, Failpoint.COMPACTION_APPLIED])
def test_a_compaction_that_died_is_resumed_to_the_same_end(
    at: Failpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_GROUP", 30)  # so that it takes several transactions

    def end(crashing: bool) -> set[tuple[str, str, bool]]:
        home = MemoryHome()
        home.embedder = StaticEmbedder(home.clock)
        engine = home.engine()
        tell(engine)
        visits = 1
        while crashing:
            home.crashes.at(at, visit=visits)
            try:
                compact(home.engine())
            except SimulatedCrash:
                visits += 1
                continue
            break
        done = compact(home.engine()) if not crashing else None
        assert done is None or done.outcome is CompactionOutcome.APPLIED
        return {
            (one.kind, one.content, one.archived_at is None) for one in everything(home.engine())
        }

    assert end(crashing=True) == end(crashing=False)


# -- as a job ----------------------------------------------------------------------------------


def test_no_job_compacts_a_scope_that_does_not_allow_it(engine: Kernel) -> None:
    for number in range(210):
        at = BEGIN + timedelta(minutes=number)
        retain(engine, story(number), kind=Kind.EPISODE, session="one", said_at=at)
    before = everything(engine)
    assert engine.work(ALICE, Work()).done == {}
    assert everything(engine) == before
    engine.allow_jobs(ALICE, AllowJobs((JobKind.COMPACTION,)))
    assert engine.jobs(ALICE).waiting == {"compaction": 190}
    assert engine.work(ALICE, Work()).done == {"compaction": 1}
    assert engine.jobs(ALICE).waiting == {"compaction": 0}


def test_what_recall_did_not_allow_is_not_tried_again_until_the_scope_has_grown(
    home: MemoryHome, engine: Kernel
) -> None:
    tell(engine, 60)
    home.clock.advance(days=91)
    engine.allow_jobs(ALICE, AllowJobs((JobKind.COMPACTION,)))
    assert engine.jobs(ALICE).waiting == {"compaction": 60}
    assert engine.work(ALICE, Work()).done == {}
    assert engine.jobs(ALICE).waiting == {"compaction": 0}


def test_a_model_summarizes_what_it_is_given_and_its_tokens_count(
    model: ModelServer, home: MemoryHome
) -> None:
    """The fake one gives back what it was told, so that recall stays."""
    asked = ChatModel(base_url=model.openai_url, name="m", attempts=1)
    home.extractor = ChatExtractor(asked, clock=home.clock, sleep=lambda _: None)
    model.says = " ".join
    engine = home.engine()
    tell(engine)
    done = compact(engine)
    assert done.derived_by == home.extractor.identity
    assert engine.jobs(ALICE).tokens_today > 0
