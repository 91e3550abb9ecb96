"""Nodes on PostgreSQL under Patroni and etcd: who takes over is decided by them, not by us."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel
from scrubjay.model.errors import NotFound
from scrubjay.model.requests import Browse, Forget, Get, Retain
from scrubjay.model.scope import Scope
from tests.cluster.example import Example
from tests.support.writers import Write, Writers

ALICE = Scope("acme", "alice")
Record = Callable[[str, object], None]


@pytest.fixture
def nodes(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Kernel, Kernel]:
    """Two nodes on the database, with the same root key."""
    example.start("etcd", "postgres")
    found = example.variables()
    monkeypatch.setenv("PGPASSWORD", found["PGPASSWORD"])
    named = settings.read({"SCRUBJAY_STORE": found["SCRUBJAY_STORE"]}, home=tmp_path)
    first, second = bootstrap.build(named), bootstrap.build(named)
    first.open(ALICE, create=True)
    return first, second


def writes(engine: Kernel) -> Write:
    return lambda name: engine.retain(ALICE, Retain(content=name, key=name))


def test_a_primary_killed_under_sixteen_writers_loses_nothing_acknowledged(
    example: Example, nodes: tuple[Kernel, Kernel], record_property: Record
) -> None:
    """A forget before it holds after it, too."""
    nodes[0].retain(ALICE, Retain(content="the quokka is under the third pot", id="note-1"))
    receipt = nodes[0].forget(ALICE, Forget(ids=("note-1",)))
    lost = example.primary()
    with Writers([writes(one) for one in nodes]) as writers:
        writers.until(more=200)
        example.kill(lost)
        began = time.monotonic()
        writers.until(more=17)  # sixteen may have been under way
        record_property("seconds without a write", round(time.monotonic() - began, 1))
        writers.until(more=200)
    record_property("acknowledged", len(writers.acknowledged))
    assert example.primary() != lost
    writers.check([one.content for one in nodes[1].browse(ALICE, Browse(limit=10_000))])
    for one in nodes:
        with pytest.raises(NotFound):
            one.get(ALICE, Get("note-1"))
        assert one.verify(ALICE).problems == ()
    assert nodes[1].verify_erased(ALICE, receipt).sound
    example.start("postgres")  # the lost one comes back as the standby of the other
    for one in nodes:
        one.retain(ALICE, Retain(content="after all"))
        one.close()
