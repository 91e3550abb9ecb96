"""A memory under keys of its owner, over HTTP: the host and its administrator cannot read it."""

from __future__ import annotations

from typing import Any

import pytest

from scrubjay.engine import Policy
from scrubjay.service.rest import OPERATIONS as REST
from scrubjay.surfaces.personal.operations import OPERATIONS
from scrubjay.vault import Cost
from tests.contract.test_one_json import CASES
from tests.dialects.personal.conftest import Person
from tests.privacy.test_assertions import BODIES

WORDS = "three jays in one oak"
NEEDLE = "zanzibar"
TEA = f"Alice drinks {NEEDLE} tea"
FACT = {"category": "learned_context", "content_type": "fact"}


@pytest.fixture
def held(alice: Person, monkeypatch: pytest.MonkeyPatch) -> Person:
    """A person with a memory under keys of her own, locked."""
    monkeypatch.setattr(
        Policy, "passphrase_cost", Cost(memory_kib=64, passes=1, lanes=1), raising=False
    )
    alice.store(TEA, topic_tags=[NEEDLE])
    assert len(alice.owner.do("hold", passphrase=WORDS)["recovery"]) == 47
    alice.owner.do("lock")
    return alice


def test_agents_write_and_nobody_reads_until_she_unlocks(held: Person) -> None:
    told = held.agent.do("store", content=f"More about {NEEDLE}", **FACT)
    assert (told["waiting"], told["embedding_generated"]) == (True, False)
    for key in (held.owner, held.agent):
        assert key.refused("retrieve", query="tea") == (423, "user_locked")
    assert held.admin.look("status")["waiting"] == 1
    done = held.owner.do("unlock", passphrase=WORDS)
    assert (done["stored"], done["waiting"]) == (1, 0)
    assert set(held.contents(NEEDLE)) == {TEA, f"More about {NEEDLE}"}
    assert held.owner.do("lock")["locked"] is True
    assert held.owner.refused("retrieve", query="tea") == (423, "user_locked")


def test_only_the_person_holds_unlocks_and_locks(held: Person) -> None:
    for key in (held.agent, held.admin):
        for operation, body in (
            ("hold", {"passphrase": "mine"}),
            ("unlock", {"passphrase": WORDS}),
            ("lock", {}),
        ):
            assert key.refused(operation, **body) == (403, "forbidden"), operation


def test_a_wrong_passphrase_opens_nothing(held: Person) -> None:
    assert held.owner.refused("unlock", passphrase="three jays") == (423, "user_locked")
    assert held.owner.refused("unlock", recovery="AAAAA") == (422, "invalid_request")
    assert held.owner.refused("unlock") == (422, "invalid_request")


def test_an_administrator_destroys_it_on_request_without_its_keys(held: Person) -> None:
    token = held.admin.do("destroy")["confirmation_token"]
    assert held.admin.do("destroy", confirmation_token=token)["destroyed"] is True


def test_an_administrator_restricts_it_and_its_owner_lifts_that(held: Person) -> None:
    held.admin.do("restrict")
    assert held.agent.refused("store", content="x", **FACT) == (423, "restricted")
    notice = held.owner.do("lift")["notice_id"]
    assert held.owner.do("lift", notice_id=notice)["level"] == "none"
    assert held.agent.do("store", content="x", **FACT)["waiting"] is True


@pytest.mark.parametrize(
    "operation", [*REST, *OPERATIONS], ids=lambda one: f"{type(one).__name__}-{one.name}"
)
def test_g14_no_verb_shows_anybody_what_is_locked(held: Person, operation: Any) -> None:
    """Neither its owner's key, nor the administrator's, while the passphrase was not given."""
    own = hasattr(operation, "http")
    method, path = operation.http if own else (operation.method, operation.path)
    path = f"/v1/personal{path}" if own else f"/v1{path}"
    for name in ("{id}", "{session}", "{key_id}", "{export_id}", "{request_id}"):
        path = path.replace(name, "unknown")
    wanted = CASES.get(operation.name)
    body = BODIES.get(operation.name) if own else wanted("unknown") if wanted else {}
    if operation.name in ("destroy", "hold", "unlock", "open"):
        body = {}
    for key in (held.admin, held.owner, held.agent):
        answer = key.send(path, body or {}, method=method)
        assert NEEDLE not in answer.text, key


def test_an_export_of_a_locked_memory_waits_until_it_is_unlocked(held: Person) -> None:
    from tests.dialects.personal.test_copies import READER, exports

    job = held.owner.do("export", recipient=str(READER.to_public()))
    exports(held).work()
    assert held.owner.look(f"exports/{job['export_id']}")["state"] == "waiting"
    held.owner.do("unlock", passphrase=WORDS)
    exports(held).work()
    assert held.owner.look(f"exports/{job['export_id']}")["state"] == "ready"
