"""A purpose that was withdrawn: nothing of it is derived or sent, also where a model is at work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrubjay.adapters.distillers.chat import ChatExtractor, ChatModel
from scrubjay.engine import Kernel, Policy
from scrubjay.engine.search import reindex
from scrubjay.model.jobs import AllowJobs, JobKind, Work
from scrubjay.model.memory import Kind
from scrubjay.model.purposes import SetPurpose
from scrubjay.model.requests import Browse, Extract, Get, Recall, Retain
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.surfaces.personal.library import PersonalMemory
from tests.privacy.test_assertions import ListeningEmbedder
from tests.support.engines import MemoryHome
from tests.support.model_server import ModelServer, note, serve_model

ALICE = Scope("acme", "alice")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serve_model() as server:
        yield server


@pytest.fixture
def home(model: ModelServer) -> MemoryHome:
    home = MemoryHome("withdrawal")
    asked = ChatModel(base_url=model.openai_url, name="m", attempts=1)
    home.extractor = ChatExtractor(asked, clock=home.clock, sleep=lambda _: None)
    return home


def withdraw(engine: Kernel) -> None:
    engine.set_purpose(ALICE, SetPurpose(purpose="model", on=False))


def told(engine: Kernel) -> list[str]:
    return [one.content for one in engine.browse(ALICE) if "sails" in one.content]


def test_an_answer_that_is_on_its_way_is_dropped(home: MemoryHome, model: ModelServer) -> None:
    """Withdrawn in another process while the model thinks, its answer is not kept."""
    engine = home.engine()
    engine.record(ALICE, Record(id="t1", user="I was out on the water again.", assistant="Nice."))
    model.notes = [note("Alice sails on Sundays")]
    model.thinking = lambda _: withdraw(home.engine())
    engine.extract(ALICE, Extract())
    assert len(model.turns) == 1
    assert told(engine) == []


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("kind", [JobKind.CONSOLIDATION, JobKind.COMPACTION])
def test_no_job_sends_text_to_a_model_that_is_not_allowed(
    home: MemoryHome, model: ModelServer, kind: JobKind, on: bool
) -> None:
    """Consolidation and compaction go without it, or not at all; allowed, they do ask it."""
    model.says = " ".join
    engine = home.engine()
    for number in range(120):
        said = f"We met at alpha{number} and talked of beta{number}, gamma and delta"
        engine.retain(ALICE, Retain(said, kind=Kind.EPISODE))
    home.clock.advance(days=91)
    if not on:
        withdraw(engine)
    engine.allow_jobs(ALICE, AllowJobs(kinds=(kind,)))
    engine.work(ALICE, Work(kinds=(kind,)))
    assert bool(model.batches) is on


def test_a_compaction_under_way_stops_sending_and_keeps_nothing_of_the_model(
    home: MemoryHome, model: ModelServer
) -> None:
    """Withdrawn while the first group is at the model: no second one is sent, no answer kept."""
    engine = home.engine()
    for number in range(120):
        said = f"We met at alpha{number} and talked of beta{number}, gamma and delta"
        engine.retain(ALICE, Retain(said, kind=Kind.EPISODE))
    home.clock.advance(days=91)

    def says(texts: list[str]) -> str:
        withdraw(home.engine())
        return " ".join(["sails", *texts])

    model.says = says
    engine.compact(ALICE)
    assert len(model.batches) <= 2, "a summary and the facts of one group"
    assert told(engine) == []


@pytest.mark.parametrize("by_model", [True, False])
@pytest.mark.parametrize("kind", [JobKind.EXTRACTION, JobKind.CONSOLIDATION, JobKind.COMPACTION])
def test_without_facts_no_job_derives_or_sends_anything(
    home: MemoryHome, model: ModelServer, kind: JobKind, by_model: bool
) -> None:
    """Neither a model nor the rules: what was told stays as it was."""
    if not by_model:
        home.extractor = None
    engine = home.engine()
    for number in range(120):
        said = f"I prefer alpha{number} to beta{number}, whatever gamma and delta say"
        engine.retain(ALICE, Retain(said, kind=Kind.EPISODE))
    engine.record(ALICE, Record(id="t1", user="I was out on the water again.", assistant="Nice."))
    home.clock.advance(days=91)
    engine.set_purpose(ALICE, SetPurpose(purpose="facts", on=False))
    before = engine.browse(ALICE, Browse(limit=1000, archived=None)).data
    engine.allow_jobs(ALICE, AllowJobs(kinds=(kind,)))
    engine.work(ALICE, Work(kinds=(kind,)))
    if by_model:
        engine.extract(ALICE, Extract())
    engine.compact(ALICE)
    assert engine.browse(ALICE, Browse(limit=1000, archived=None)).data == before
    assert not model.batches
    assert not model.turns


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("kind", [JobKind.CONSOLIDATION, JobKind.COMPACTION])
def test_without_patterns_no_job_keeps_one(
    home: MemoryHome, model: ModelServer, kind: JobKind, on: bool
) -> None:
    """A pattern that a model finds in episodes is kept only while that is allowed."""
    model.says = lambda texts: "pattern: Alice sails on Sundays\n" + " ".join(texts)
    engine = home.engine()
    for number in range(120):
        said = f"We met at alpha{number} and talked of beta{number}, gamma and delta"
        engine.retain(ALICE, Retain(said, kind=Kind.EPISODE, session=f"s{number // 10}"))
    home.clock.advance(days=91)
    engine.set_purpose(ALICE, SetPurpose(purpose="patterns", on=on))
    engine.allow_jobs(ALICE, AllowJobs(kinds=(kind,)))
    engine.work(ALICE, Work(kinds=(kind,)))
    assert model.batches
    assert ("Alice sails on Sundays" in told(engine)) is on


@pytest.mark.parametrize("on", [True, False])
def test_a_compaction_sends_nothing_to_an_embedder_that_is_not_allowed(on: bool) -> None:
    """Neither the questions of its proof, nor the texts that were derived."""
    home = MemoryHome("embedding")
    embedder = ListeningEmbedder(home.clock)
    embedder.sent, home.embedder = [], embedder
    engine = home.engine()
    for number in range(120):
        said = f"We met at alpha{number} and talked of beta{number}, gamma and delta"
        engine.retain(ALICE, Retain(said, kind=Kind.EPISODE, session=f"s{number // 10}"))
    home.clock.advance(days=91)
    engine.set_purpose(ALICE, SetPurpose(purpose="embedding", on=on))
    embedder.sent.clear()
    assert engine.compact(ALICE).questions >= 100
    assert bool(embedder.sent) is on


def test_a_reindex_under_way_sends_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Withdrawn in another process after the first batch: that was the last one."""
    monkeypatch.setattr(reindex, "_BATCH", 10)
    home = MemoryHome("reindex")
    engine = home.engine()
    for number in range(50):
        engine.retain(ALICE, Retain(f"We met at alpha{number}"))
    embedder = ListeningEmbedder(home.clock)
    embedder.sent, home.embedder = [], embedder
    told = list[int]()

    def progress(done: int, _: int) -> None:
        told.append(len(embedder.sent))
        home.engine().set_purpose(ALICE, SetPurpose(purpose="embedding", on=False))

    home.engine().reindex(ALICE, progress=progress)
    assert 0 < told[0] < 50
    assert len(embedder.sent) == told[0]


def test_a_withdrawal_offers_what_a_model_wrote_and_nothing_of_the_rules(
    home: MemoryHome, model: ModelServer
) -> None:
    """Found in a turn, or consolidated of episodes; `patterns` offers only those of both."""
    engine = home.engine()
    engine.record(ALICE, Record(id="t1", user="I live in Rome.", assistant="Nice."))
    model.notes = [note("Alice sails on Sundays", kind="pattern")]
    engine.extract(ALICE, Extract())
    engine.retain(ALICE, Retain("We rowed again", kind=Kind.EPISODE))
    model.says = lambda _: "pattern: Alice rows\nfact: Alice has a boat"
    engine.work(ALICE, Work(kinds=(JobKind.CONSOLIDATION,)))
    offered = dict[str, set[str]]()
    with PersonalMemory(str(ALICE), engine=engine) as me:
        for purpose in ("model", "patterns"):
            ids = me.purpose(purpose=purpose, on=False).memory_ids
            offered[purpose] = {engine.get(ALICE, Get(one)).content for one in ids}
    patterns = {"Alice sails on Sundays", "Alice rows"}
    assert offered == {"model": {*patterns, "Alice has a boat"}, "patterns": patterns}


def test_the_least_similarity_of_the_seed_is_a_setting(home: MemoryHome) -> None:
    """0.7 by setting hides what the embedder's own default shows, and says where it is from."""
    engine = home.engine(Policy(min_similarity=0.7))
    assert engine.embedding.floor == (0.7, "setting")
    engine.retain(ALICE, Retain("Alice prefers green tea"))
    asked = Recall("What does she drink?", min_similarity=engine.embedding.floor[0])
    assert engine.recall(ALICE, asked).hits == ()
