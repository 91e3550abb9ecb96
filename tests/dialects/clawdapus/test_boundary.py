"""The bound of the plane: whoever has its token reaches the pods it serves, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine import Kernel
from scrubjay.model.errors import NotFound
from scrubjay.model.requests import Browse, Forget, Get, Load, Retain, TurnsRequest
from scrubjay.model.scope import Scope
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.names import scope_of, turn_id
from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane, Plane
from tests.dialects.clawdapus.desk import SCOPE, Desk, line
from tests.dialects.clawdapus.pod import Manifest, post, user
from tests.serving import Running, serving
from tests.support.engines import MemoryHome

ALICE = Scope("acme", "alice")
NEEDLE = "zanzibar"
NAMES = st.one_of(
    st.text(min_size=1, max_size=140),
    st.sampled_from(["a", "x--a", "pod", "pod.a", "a/b", "system", "local", "A" * 124, "A" * 125]),
)


@pytest.fixture
def service(engine: Kernel, home: MemoryHome) -> Iterator[Running]:
    """The API and the plane in one service, each with credentials of its own."""
    offer = PlaneOffer(token="pod-token", recall_seconds=30)
    with serving(engine, home.clock, planes=[ClawdapusPlane(offer)]) as running:
        yield running


def ask(running: Running, op: str, agent: str, pod: str, **more: object) -> tuple[int, str]:
    manifest = Manifest(running.url, token="pod-token")
    body = {"agent_id": agent, "pod": pod, **more}
    answer = post(manifest, op, body, seconds=30)
    return answer.status, answer.body.decode()


@pytest.mark.parametrize(
    ("pod", "agent"),
    [("acme", "alice"), ("", "alice"), ("", "acme/alice"), ("system", "keys"), ("local", "alice")],
)
def test_the_token_of_a_pod_neither_reads_nor_erases_what_a_key_wrote(
    engine: Kernel, service: Running, pod: str, agent: str
) -> None:
    ids = {}
    for scope in (ALICE, Scope("local", "alice")):
        ids[scope] = engine.retain(scope, Retain(content=f"The needle is {NEEDLE}.")).id
    status, told = ask(service, "recall", agent, pod, messages=[user("Where is the needle?")])
    assert (status, NEEDLE in told) == (200, False)
    assert ask(service, "forget", agent, pod, entry_ids=[*ids.values()])[0] == 204
    assert all(engine.get(scope, Get(one)).content for scope, one in ids.items())


def test_forgetting_reaches_turns_and_what_came_of_them_and_no_other_memory(
    engine: Kernel,
) -> None:
    """Not even one that somebody put into the agent's own scope by hand."""
    desk = Desk(engine)
    told = line(1, "I prefer green tea.")
    desk.retain(told)
    written = engine.retain(SCOPE, Retain(content="Put here by hand.")).id
    named = engine.retain(SCOPE, Retain(content="Under a name.", id="note-1")).id
    derived = [one.id for one in engine.browse(SCOPE, Browse()) if one.sources]
    assert len(derived) == 2
    desk.forget({"id": written}, {"id": named}, *({"id": one} for one in derived))
    assert len(engine.browse(SCOPE, Browse())) == 4
    desk.forget(told)
    assert {one.id for one in engine.browse(SCOPE, Browse())} == {written, named}


def test_only_the_pods_that_are_named_are_served(engine: Kernel) -> None:
    plane = Plane(engine, PlaneOffer(pods=frozenset({"desk", "lab"})))
    told = line(1, "I prefer tea.")
    for pod, status in (("desk", 202), ("lab", 202), ("elsewhere", 403), ("", 403)):
        body = {"agent_id": "analyst", "pod": pod, "entry": told}
        assert plane.answer("retain", json.dumps(body).encode()).status == status
    assert engine.scopes() == (Scope("pod.desk", "analyst"), Scope("pod.lab", "analyst"))


@given(one=st.tuples(NAMES, st.just("") | NAMES), other=st.tuples(NAMES, st.just("") | NAMES))
def test_no_two_agents_share_a_scope_and_all_are_in_the_tenants_of_pods(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    first, second = scope_of(*one), scope_of(*other)
    assert (first == second) is (one == other)
    assert first.tenant == "pod" or first.tenant.startswith("pod.")


@given(one=NAMES, other=NAMES)
def test_no_two_entries_share_an_id_and_none_has_that_of_a_memory(one: str, other: str) -> None:
    assert (turn_id(one) == turn_id(other)) is (one == other)
    assert not turn_id(f"mem-{one}").startswith("mem-")


def test_a_key_for_the_pod_sees_what_its_agents_said_and_no_other_key_does(
    engine: Kernel, service: Running
) -> None:
    from scrubjay import Forbidden, connect

    ask(service, "retain", "alice", "acme", entry=line(1, f"My needle is {NEEDLE}."))
    key = service.key("acme/*")
    with connect(service.url, key, scope="pod.acme/alice") as other, pytest.raises(Forbidden):
        other.recall("needle")
    with connect(service.url, service.key("pod.acme/*"), scope="pod.acme/alice") as operator:
        assert NEEDLE in operator.recall("needle")[0].memory.content


def test_what_a_pod_remembers_can_be_carried_elsewhere_and_forgotten_there(
    engine: Kernel,
) -> None:
    told = [line(1, "I prefer green tea."), line(2, "My supplier is Brunner.")]
    here, there = Desk(engine), Desk(MemoryHome("elsewhere").engine())
    here.retain(*told)
    there.engine.load(SCOPE, Load(engine.export(SCOPE).content))
    assert there.recall("What is my supplier?") == here.recall("What is my supplier?")
    there.retain(*told)
    assert len(there.engine.turns(SCOPE, TurnsRequest(10))) == 2
    there.forget(*told)
    assert there.engine.browse(SCOPE, Browse()).data == ()


def test_a_forget_of_the_operator_still_takes_a_derived_memory_by_its_id(engine: Kernel) -> None:
    desk = Desk(engine)
    desk.retain(line(1, "I prefer green tea."))
    (preference,) = [
        one.id for one in engine.browse(SCOPE, Browse()) if one.kind.value == "preference"
    ]
    engine.forget(SCOPE, Forget(ids=(preference,)))
    with pytest.raises(NotFound):
        engine.get(SCOPE, Get(preference))
