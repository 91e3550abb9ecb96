"""The whole cluster of examples/cluster: two nodes behind HAProxy, PostgreSQL, etcd and Swift."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from urllib.request import Request, urlopen

import pytest

from scrubjay.model.errors import NotFound
from tests.cluster.example import Example
from tests.support.writers import Write, Writers

Record = Callable[[str, object], None]
SCOPES = [f"acme/person-{number}" for number in range(16)]


@pytest.fixture(scope="module")
def cluster(example: Example) -> Example:
    example.start()
    return example


def server_of(cluster: Example, scope: str) -> str:
    """The node that the balancer lets serve a scope."""
    headers = {
        "Authorization": f"Bearer {cluster.key()}",
        "X-Scrubjay-Scope": scope,
        "Content-Type": "application/json",
    }
    body = json.dumps({"content": f"a note of {scope}", "key": "a-note"}).encode()
    url = f"http://127.0.0.1:{cluster.port}/v1/memories"
    with urlopen(Request(url, body, headers), timeout=60) as answer:
        return str(answer.headers["X-Served-By"])


def writes(cluster: Example, scope: str) -> Write:
    jay = cluster.connect(scope)
    return lambda name: jay.retain(name, key=name)


def test_a_scope_goes_to_one_node_and_scopes_go_to_both(cluster: Example) -> None:
    first = {scope: server_of(cluster, scope) for scope in SCOPES}
    assert {scope: server_of(cluster, scope) for scope in SCOPES} == first
    assert set(first.values()) == {"node1", "node2"}


def test_every_node_serves_every_scope_as_it_is_now(cluster: Example) -> None:
    one, other = (cluster.connect("acme/bea", node=number) for number in (1, 2))
    for _ in range(3):
        kept = one.retain("Bea keeps a quokka").id
        assert other.get(kept).content == "Bea keeps a quokka"
        assert "quokka" in other.recall("What does Bea keep?").hits[0].memory.content
        other.forget(ids=[kept])
        with pytest.raises(NotFound):
            one.get(kept)
        one, other = other, one


def test_a_node_that_is_killed_takes_nothing_with_it(
    cluster: Example, record_property: Record
) -> None:
    """Writers go on by the other node; when it is back, it serves its scopes again."""
    before = {scope: server_of(cluster, scope) for scope in SCOPES}
    with Writers([writes(cluster, "acme/cleo")]) as writers:
        writers.until(more=50)
        cluster.kill(server_of(cluster, "acme/cleo"))
        writers.until(more=50)
        assert len({server_of(cluster, scope) for scope in SCOPES}) == 1
    kept = cluster.connect("acme/cleo")
    page = kept.browse(limit=1_000)
    writers.check([one.content for one in page if one.content != "a note of acme/cleo"])
    record_property("acknowledged", len(writers.acknowledged))
    cluster.start("nodes")
    while {scope: server_of(cluster, scope) for scope in SCOPES} != before:
        pass  # the balancer looks twice a second


def test_a_killed_primary_is_not_noticed_but_by_the_time_it_takes(
    cluster: Example, record_property: Record
) -> None:
    lost = cluster.primary()
    with Writers([writes(cluster, scope) for scope in SCOPES]) as writers:
        writers.until(more=100)
        cluster.kill(lost)
        writers.until(more=100)
    there = [
        one.content
        for scope in SCOPES
        for one in cluster.connect(scope).browse(limit=1_000)
        if not one.content.startswith("a note of")
    ]
    writers.check(there)
    record_property("acknowledged", len(writers.acknowledged))
    cluster.start("postgres")


def test_without_the_bucket_memories_are_kept_and_found(cluster: Example) -> None:
    """The balancer leaves the nodes alone; only what needs the bucket waits."""
    jay = cluster.connect("acme/dora")
    jay.retain("Dora lives in Nantes")
    cluster.stop("swift")
    jay.retain("Dora plays the cello")
    assert "Nantes" in jay.recall("Where does Dora live?").hits[0].memory.content
    cluster.start("swift")
    long = "a long one " * 5_900
    jay.retain(long, id="long-1", metadata={"more": "of it " * 1_000})  # too long for a row
    assert jay.get("long-1").content == long


def test_stopped_it_leaves_no_process_and_started_again_it_has_everything(
    cluster: Example,
) -> None:
    kept = cluster.connect("acme/eve").retain("Eve prefers green tea").id
    cluster.stop()
    found = subprocess.run(
        ["pgrep", "--full", str(cluster.folder)], capture_output=True, text=True, check=False
    )
    assert found.stdout == ""
    cluster.start()
    assert cluster.connect("acme/eve").get(kept).content == "Eve prefers green tea"
