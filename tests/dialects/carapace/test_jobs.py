"""In a group nothing writes by itself but the purge of 90 days: the agent is the actor."""

from __future__ import annotations

from scrubjay.engine import Kernel
from scrubjay.model.memory import Kind
from scrubjay.model.requests import AuditRequest, BriefRequest, Browse, Purge, Recall
from scrubjay.model.retention import Retention
from tests.dialects.carapace.scene import MAIN, Stage


def every_job(engine: Kernel) -> None:
    """Whatever a process does without being asked by an agent."""
    engine.purge(MAIN, Purge(superseded_days=90))
    engine.finish_due(MAIN)
    engine.work(MAIN)
    engine.recall(MAIN, Recall("tea"))
    engine.brief(MAIN, BriefRequest())
    engine.close()


def test_no_job_writes_into_a_group_on_its_own(stage: Stage) -> None:
    for number in range(600):
        stage.call("memory_store", type="fact", content=f"tea number {number % 5}", tags=[])
        stage.session = type(stage.session)(id=f"s{number}", group="main")
    kept = stage.engine.browse(MAIN, Browse(limit=10_000, kinds=frozenset({Kind.FACT})))
    events = len(stage.engine.audit(MAIN, AuditRequest(limit=10_000)))
    before = stage.engine.head(MAIN)
    stage.home.clock.advance(days=89)
    every_job(stage.home.engine())
    engine = stage.home.engine()
    after = engine.head(MAIN)
    assert engine.retention(MAIN) == Retention()
    assert after.memory.seq == before.memory.seq, "a row was written that no agent asked for"
    assert after.session.seq == before.session.seq
    assert engine.browse(MAIN, Browse(limit=10_000, kinds=frozenset({Kind.FACT}))) == kept
    later = engine.audit(MAIN, AuditRequest(cursor=str(events)))
    assert {one.verb for one in later} <= {"recall", "brief", "browse", "retention"}
