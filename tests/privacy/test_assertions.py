"""The assertions on GDPR that can be tested, by their numbers; docs/personal.md lists them all."""

from __future__ import annotations

import json
from typing import Any

import pyrage
import pytest

from scrubjay.engine import Policy
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.purposes import SetPurpose, UsePurpose
from scrubjay.model.requests import Browse, Recall, Retain
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Extracted, Record
from scrubjay.service.rest import OPERATIONS as REST
from scrubjay.surfaces.personal.operations import OPERATIONS
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.contract.test_one_json import CASES
from tests.dialects.personal.conftest import Person
from tests.dialects.personal.test_copies import READER, content, exported, fetched, filled, imported
from tests.support.engines import MemoryHome

NEEDLE = "zanzibar"
SECRET = f"Alice drinks {NEEDLE} tea"
ALICE = Scope("acme", "alice")


def everything_shown(alice: Person) -> str:
    """What every door shows the owner."""
    doors: list[tuple[str, str, Any]] = [
        ("POST", "/v1/recall", {"query": NEEDLE}),
        ("GET", "/v1/memories", None),
        ("GET", "/v1/brief", None),
        ("GET", "/v1/turns", None),
        ("GET", "/v1/follow", None),
        ("GET", "/v1/audit", None),
        ("GET", "/v1/statistics", None),
        ("POST", "/v1/export", {}),
        ("GET", "/v1/personal/memories", None),
        ("POST", "/v1/personal/retrieve", {"query": NEEDLE, "min_similarity": 0}),
        ("POST", "/v1/personal/forget", {"target": {"query": NEEDLE}}),
    ]
    return "".join(alice.owner.send(path, body, method=how).text for how, path, body in doors)


def test_g1_an_export_has_every_row_and_is_imported_to_an_equal_number(
    alice: Person, bob: Person
) -> None:
    filled(alice)
    raw = fetched(alice)
    imported(bob, raw, identity=str(READER))
    assert bob.living_rows()["memory"] == alice.living_rows()["memory"]
    assert bob.living_rows()["turn"] == alice.living_rows()["turn"]
    assert content(alice)["record_count"] == alice.living_rows()["memory"]


def test_g2_an_export_of_one_person_has_no_byte_of_another(alice: Person, bob: Person) -> None:
    bob.store(SECRET)
    filled(alice)
    assert NEEDLE not in pyrage.decrypt(fetched(alice), [READER]).decode()


def test_g3_an_export_leaves_no_file_that_can_be_read(alice: Person) -> None:
    alice.store(SECRET)
    exported(alice)
    parcels = [alice.home.blobs.get(alice.address, one) for one in alice.blobs()]
    assert parcels
    assert not any(NEEDLE.encode() in one for one in parcels)


def test_g4_what_was_forgotten_is_shown_by_no_door(alice: Person) -> None:
    made = alice.store(SECRET)
    assert NEEDLE in everything_shown(alice)
    alice.owner.do("forget", target={"memory_ids": [made]})
    assert NEEDLE not in everything_shown(alice)


def test_g5_what_was_derived_goes_with_its_source(alice: Person) -> None:
    turn = {"id": "t1", "user": f"My sister lives in {NEEDLE}.", "assistant": "Noted."}
    assert alice.agent.send("/v1/turns", turn).status_code == 201
    assert NEEDLE in str(alice.owner.look("memories"))
    alice.owner.do("forget", target={"memory_ids": ["t1"]})
    assert NEEDLE not in everything_shown(alice)


def test_g7_neither_replay_nor_import_brings_back_what_was_forgotten(alice: Person) -> None:
    made = alice.store(SECRET)
    raw = fetched(alice)
    alice.owner.do("forget", target={"memory_ids": [made]})
    imported(alice, raw, identity=str(READER))
    assert NEEDLE not in everything_shown(alice)


def test_g8_after_a_destroy_the_rows_of_before_open_with_no_key(alice: Person) -> None:
    alice.store(SECRET)
    address, before = alice.address, alice.home.rows()[alice.address]
    token = alice.owner.do("destroy")["confirmation_token"]
    alice.owner.do("destroy", confirmation_token=token)
    assert alice.home.slots().get(address, {}) == {}
    assert before.rows  # what a copy of the data still has, and nothing opens


def test_g12_a_corrected_value_is_in_no_answer(alice: Person) -> None:
    made = alice.store(SECRET)
    alice.owner.do("rectify", memory_id=made, content="Alice drinks mint", reason="asked")
    for path, body in (("/v1/recall", {"query": NEEDLE}),):
        assert NEEDLE not in alice.owner.send(path, body).text
    assert NEEDLE not in alice.owner.send("/v1/brief", method="GET").text


def test_g13_the_audit_trail_has_no_content_and_is_whole_after_an_erasure(alice: Person) -> None:
    made = alice.store(SECRET, topic_tags=["secret-tag"])
    alice.contents(NEEDLE)
    alice.owner.do("forget", target={"memory_ids": [made]})
    trail = json.dumps(alice.owner.look("audit", limit=1000))
    for word in (NEEDLE, "secret-tag", alice.user, made):
        assert word not in trail
    assert alice.owner.send("/v1/verify/audit").json()["sound"] is True


BODIES: dict[str, Any] = {
    "retrieve": {"query": NEEDLE},
    "forget": {"target": {"query": NEEDLE}},
    "export": {"recipient": str(READER.to_public())},
    "store": {"category": "preference", "content_type": "fact", "content": "x"},
    "import": {"content": "e30="},
    "purpose": {"purpose": "patterns", "on": False},
}


@pytest.mark.parametrize("operation", [*REST], ids=lambda one: one.name)
def test_g14_no_verb_shows_an_administrator_what_is_remembered(
    alice: Person, operation: Any
) -> None:
    made = alice.store(SECRET, topic_tags=[NEEDLE], session_id=NEEDLE)
    turn = {"id": NEEDLE, "user": SECRET, "assistant": SECRET, "session": NEEDLE}
    alice.agent.send("/v1/turns", turn)
    path = "/v1" + operation.path.replace("{id}", made).replace("{session}", "s")
    path = path.replace("{key_id}", "unknown")
    wanted = CASES.get(operation.name)
    body = wanted(made) if wanted else {}
    if operation.in_query:
        answer = alice.admin.send(path, method=operation.method)
    else:
        answer = alice.admin.send(path, body, method=operation.method)
    assert NEEDLE not in answer.text


@pytest.mark.parametrize("operation", [*OPERATIONS], ids=lambda one: one.name)
def test_g14_no_operation_shows_an_administrator_what_is_remembered(
    alice: Person, operation: Any
) -> None:
    made = alice.store(SECRET, topic_tags=[NEEDLE], session_id=NEEDLE)
    method, path = operation.http
    body = BODIES.get(operation.name) or {}
    if operation.name == "rectify":
        body = {"memory_id": made, "content": "x", "reason": "y"}
    path = f"/v1/personal{path.replace('{export_id}', 'exp-1')}"
    answer = alice.admin.send(path, body, method=method)
    assert NEEDLE not in answer.text


def test_g15_what_is_past_its_time_leaves_retrieval_at_once(alice: Person) -> None:
    alice.store(SECRET, ttl=60)
    alice.clock.advance(seconds=61)
    assert alice.contents(NEEDLE) == []


# -- purposes --------------------------------------------------------------------------------------


class ListeningExtractor:
    """A model that notes what it is sent."""

    identity = "listening"

    def __init__(self) -> None:
        self.sent: list[str] = []

    def extract(self, turn: Any, *_: Any, **__: Any) -> Extracted:
        self.sent.append(turn.user)
        return Extracted(pieces=(), tokens_in=1, tokens_out=1)


class ListeningEmbedder(FakeEmbedder):
    """An embedder elsewhere that notes what it is sent."""

    sent: list[str]

    def embed(self, texts: Any, *, deadline: float | None = None) -> Any:
        self.sent.extend(texts)
        return super().embed(texts, deadline=deadline)


def test_g17_nothing_is_sent_to_anybody_before_it_is_allowed() -> None:
    home = MemoryHome()
    model, embedder = ListeningExtractor(), ListeningEmbedder(home.clock)
    embedder.sent = []
    home.extractor, home.embedder = model, embedder  # type: ignore[assignment]
    engine = home.engine(Policy(consent=frozenset(UsePurpose) - {UsePurpose.FACTS}))
    engine.record(ALICE, Record(id="t1", user=SECRET, assistant="Noted."))
    engine.retain(ALICE, Retain(SECRET))
    engine.recall(ALICE, Recall(NEEDLE))
    engine.extract(ALICE)
    assert not model.sent
    assert not [one for one in embedder.sent if NEEDLE in one]
    for purpose in (UsePurpose.MODEL, UsePurpose.EMBEDDING):
        engine.set_purpose(ALICE, SetPurpose(purpose=purpose, on=True))
    engine.extract(ALICE)
    engine.recall(ALICE, Recall(NEEDLE))
    assert [one for one in model.sent if NEEDLE in one]
    assert [one for one in embedder.sent if NEEDLE in one]


def test_g19_a_withdrawal_stops_the_purpose_with_the_next_transaction(home: MemoryHome) -> None:
    engine = home.engine()
    engine.record(ALICE, Record(id="t1", user="I live in Rome.", assistant="Noted."))
    before = len(engine.browse(ALICE, Browse()).data)
    assert before >= 1
    engine.set_purpose(ALICE, SetPurpose(purpose="facts", on=False))
    home.engine().record(ALICE, Record(id="t2", user="My sister is Anna.", assistant="Noted."))
    assert len(engine.browse(ALICE, Browse()).data) == before


def test_g19_a_withdrawal_offers_what_there_is_to_erase(alice: Person) -> None:
    turn = {"id": "t1", "user": "My sister lives in Milan.", "assistant": "Noted."}
    alice.agent.send("/v1/turns", turn)
    told = alice.owner.do("purposes", purpose="facts", on=False)
    assert told["memory_ids"]
    assert alice.owner.do("forget", target={"memory_ids": told["memory_ids"]})["deleted_count"]


def test_consent_is_given_by_the_person_alone(alice: Person) -> None:
    alice.store(SECRET)
    for key in (alice.agent, alice.admin):
        assert key.refused("purposes", purpose="model", on=True) == (403, "forbidden")
    assert alice.owner.do("purposes", purpose="model", on=True)["state"]["by"] == "user"
    assert alice.admin.do("purposes", purpose="model", on=False)["state"]["on"] is False
    with pytest.raises(ScrubjayError):
        alice.engine.set_purpose(Scope("acme", "nobody"), SetPurpose(purpose="x", on=True))  # type: ignore[arg-type]
