"""The assertions on GDPR that can be tested, by their numbers; docs/personal.md lists them all."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema  # type: ignore[import-untyped]
import pyrage
import pytest

from scrubjay.bootstrap import Courier
from scrubjay.cli.maintenance import _requests
from scrubjay.engine import Policy
from scrubjay.model.errors import Restricted, ScrubjayError
from scrubjay.model.purposes import SetPurpose, UsePurpose
from scrubjay.model.requests import (
    Browse,
    Destroy,
    Forget,
    FreezeRequest,
    Recall,
    Retain,
    Supersede,
)
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Extracted, Record
from scrubjay.ports import Failpoint
from scrubjay.service.outbox import outbox_of
from scrubjay.service.rest import OPERATIONS as REST
from scrubjay.service.service import Service
from scrubjay.service.telemetry import Metrics
from scrubjay.surfaces.personal.operations import OPERATIONS
from scrubjay.surfaces.personal.routes import _tell_due
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.contract.test_one_json import CASES
from tests.dialects.personal.conftest import Person
from tests.dialects.personal.test_copies import (
    READER,
    content,
    exported,
    exports,
    fetched,
    filled,
    imported,
)
from tests.support.engines import MemoryHome, SimulatedCrash

ROOT = Path(__file__).parents[2]
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


@pytest.mark.parametrize("worked", [False, True], ids=["at once", "after a round of the worker"])
def test_g4_nor_by_an_export_that_was_ready_before(alice: Person, worked: bool) -> None:
    """Its reader could open it for a day."""
    made = alice.store(SECRET)
    kept = alice.store("I prefer green tea.")
    job = exported(alice)
    alice.owner.do("forget", target={"memory_ids": [made]})
    if worked:
        exports(alice).work()
        assert not [one for one in alice.blobs() if one.startswith("parcel.")]
        assert alice.owner.look(f"exports/{job['export_id']}")["why"] == "outdated"
    assert alice.anonymous.get(job["download_url"]).status_code == 404
    again = content(alice)
    assert NEEDLE not in str(again)
    assert kept in str(again)


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


# -- those whose full tests are elsewhere, in one sentence each -----------------------------------


@pytest.mark.parametrize("failpoint", [one for one in Failpoint if one.value.startswith("destroy")])
def test_g9_a_destroy_killed_at_any_step_ends_with_the_same_receipt(failpoint: Failpoint) -> None:
    home = MemoryHome("g9")
    engine = home.engine()
    engine.retain(ALICE, Retain(SECRET))
    home.crashes.at(failpoint)
    with pytest.raises(SimulatedCrash):
        engine.destroy(ALICE, Destroy(confirm=str(ALICE)))
    after = home.engine()
    receipt = after.destroy(ALICE, Destroy(confirm=str(ALICE)))
    assert receipt.erased == 1
    assert after.destroy(ALICE, Destroy(confirm=str(ALICE))) == receipt


@pytest.mark.parametrize("step", [one for one in Failpoint if one.value.startswith("rotate")])
def test_g9_a_rotation_killed_at_any_step_ends_with_the_old_keys_gone(step: Failpoint) -> None:
    home = MemoryHome("rotation")
    engine = home.engine()
    engine.retain(ALICE, Retain(SECRET))
    home.crashes.at(step)
    with pytest.raises(SimulatedCrash):
        engine.rotate(ALICE)
    after = home.engine()
    after.finish_due(ALICE)
    assert [one.content for one in after.browse(ALICE)] == [SECRET]
    names = [name for slots in home.slots().values() for name in slots]
    first = {"memory.1", "turn.1", "session.1"}
    # Killed before the head told of the new keys it had not begun, and nothing is to be ended.
    assert first.intersection(names) == (first if step is Failpoint.ROTATE_SLOT_ADDED else set())


def test_g10_while_restricted_only_the_owner_looks_and_it_is_lifted_after_a_notice(
    alice: Person,
) -> None:
    alice.store(SECRET)
    alice.owner.do("restrict")
    for path, body in (("/v1/recall", {"query": NEEDLE}), ("/v1/memories", {"content": "x"})):
        answer = alice.agent.send(path, body)
        assert (answer.status_code, answer.json()["code"]) == (423, "restricted")
    with pytest.raises(Restricted):
        alice.engine.recall(Scope.parse(alice.scope), Recall(NEEDLE))
    with pytest.raises(Restricted):
        alice.engine.record(Scope.parse(alice.scope), Record(user="x", assistant="y"))
    assert SECRET in str(alice.owner.look("memories"))
    assert alice.admin.refused("lift", notice_id="ntc-none")[0] == 428
    notice = alice.owner.do("lift")["notice_id"]
    assert alice.owner.do("lift", notice_id=notice)["level"] == "none"


def test_g11_each_correction_erasure_and_restriction_has_one_notice_for_each_recipient() -> None:
    home = MemoryHome("g11")
    engine = home.engine()
    sent: list[tuple[str, Any]] = []

    def to(name: str) -> Courier:
        return lambda body, _: sent.append((name, json.loads(body)))

    box = outbox_of(engine, home.clock, {one: to(one) for one in ("crm", "archive")})
    box.send()
    engine.retain(ALICE, Retain(SECRET, id="mem-a"))
    engine.supersede(ALICE, Supersede("mem-a", "Alice drinks mint"))
    engine.freeze(ALICE, FreezeRequest(Freeze.ALL))
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    engine.forget(ALICE, Forget(("mem-a",)))
    box.send()
    box.send()
    wanted = ["rectification", "restriction", "restriction_lifted", "erasure"]
    for name in ("crm", "archive"):
        assert [one["right"] for who, one in sent if who == name] == wanted
    assert len({one["id"] for _, one in sent}) == len(wanted)
    assert all(one.received for one in box.of(ALICE))


def test_g16_a_request_near_its_time_raises_the_alarm_in_doctor_metrics_and_log(
    alice: Person, caplog: pytest.LogCaptureFixture
) -> None:
    alice.owner.do("requests", right="access")
    alice.clock.advance(seconds=23 * 3600)
    service = SimpleNamespace(engine=alice.engine, clock=alice.clock, metrics=Metrics())
    with caplog.at_level("WARNING"):
        _tell_due(cast(Service, service))
    assert "personal.request_due" in caplog.text
    shown = service.metrics.render(depth=0, age=0.0)
    (line,) = [one for one in shown.splitlines() if one.startswith("personal_requests_due ")]
    assert float(line.split()[1]) >= 1
    findings = list(_requests(alice.engine, alice.clock))
    assert alice.scope in [one.check for one in findings]


SCHEMA = json.loads((ROOT / "docs" / "personal-export.schema.json").read_text("utf-8"))


def test_g18_an_export_is_valid_by_its_published_schema(alice: Person) -> None:
    filled(alice)
    jsonschema.Draft202012Validator(SCHEMA).validate(content(alice))
    plain = content(alice, include_metadata=False, categories=["preference"])
    jsonschema.Draft202012Validator(SCHEMA).validate(plain)


def test_g18_a_portable_export_leaves_out_what_was_inferred(alice: Person) -> None:
    filled(alice)
    kept = [
        one
        for group in content(alice, inferred=False)["categories"].values()
        for one in group["records"]
    ]
    everything = [
        one for group in content(alice)["categories"].values() for one in group["records"]
    ]
    assert "My sister is Anna" in str(kept), "what was said"
    inferred = {one["memory_id"] for one in everything} - {one["memory_id"] for one in kept}
    assert inferred
    assert all(one["more"]["sources"] for one in everything if one["memory_id"] in inferred)
