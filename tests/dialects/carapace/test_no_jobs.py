"""The agent is the actor in a Carapace group: no job writes by itself."""

from __future__ import annotations

from scrubjay.engine import Kernel
from scrubjay.model.requests import Retain
from scrubjay.model.scope import Scope
from tests.acceptance.talk import Answering
from tests.support.engines import MemoryHome

GROUP = Scope("carapace", "family")


def everything(engine: Kernel) -> object:
    head = engine.head(GROUP)
    return head.memory.seq, head.turn.seq, engine.browse(GROUP).data


def test_a_round_of_all_allowed_jobs_changes_nothing_in_a_group() -> None:
    home = MemoryHome()
    home.extractor = Answering()
    engine = home.engine()
    engine.retain(GROUP, Retain(content="Alice likes tea", kind="preference"))
    engine.retain(GROUP, Retain(content="We met in Rome", kind="episode"))
    before = everything(engine)
    home.clock.advance(days=100)
    assert engine.work(GROUP).done == {}
    assert everything(engine) == before
