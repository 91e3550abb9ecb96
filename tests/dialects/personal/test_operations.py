"""The five operations have the fields of the seed, and mean what docs/personal.md says."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import re
import uuid
from datetime import datetime
from typing import Any

import pytest

from scrubjay.model.echo import plain_words
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.surfaces.personal.categories import (
    Category,
    ContentType,
    kind_of,
    kinds_of,
)
from tests.dialects.personal.conftest import OWNER, Person

_ID = re.compile(r"mem_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TEA: dict[str, Any] = {
    "category": "preference",
    "content_type": "preference",
    "content": "Alice prefers green tea over coffee",
    "session_id": "ses_abc123",
    "channel": "slack",
    "source_msg_id": "msg_abc123",
    "topic_tags": ["drinks"],
    "importance_score": 0.85,
}


def test_a_stored_memory_answers_with_the_fields_of_the_seed(alice: Person) -> None:
    told = alice.agent.do("store", user_id=alice.user, **TEA)
    seed = {"memory_id", "embedding_generated", "content_hash", "created_at"}
    assert told.keys() == seed | {"waiting"}
    assert _ID.fullmatch(told["memory_id"])
    assert told["embedding_generated"] is True
    digest = hashlib.sha256(TEA["content"].encode()).hexdigest()
    assert told["content_hash"] == f"sha256:{digest}"
    assert datetime.fromisoformat(told["created_at"]).tzinfo is not None


def test_ids_begin_with_the_time(alice: Person) -> None:
    first = alice.store("Alice lives in Rome")
    alice.clock.advance(seconds=1)
    second = alice.store("Alice works in Milan")
    assert first < second
    for one in (first, second):
        prefix, _, rest = one.partition("_")
        assert (prefix, str(uuid.UUID(rest)), uuid.UUID(rest).version) == ("mem", rest, 7)
        assert uuid.UUID(rest).variant == uuid.RFC_4122


@pytest.mark.parametrize("category", Category)
@pytest.mark.parametrize("form", ContentType)
def test_every_category_and_content_type_comes_back_as_it_was_given(
    alice: Person, category: Category, form: ContentType
) -> None:
    made = alice.store("Alice reviews reports on Monday", category=category, content_type=form)
    view = alice.owner.look("memories")["data"]
    assert [(one["memory_id"], one["category"], one["content_type"]) for one in view] == [
        (made, category, form)
    ]
    assert kind_of(category, form) in kinds_of((category,))


def test_the_category_of_a_kind_is_one() -> None:
    kinds = [kind for category in Category for kind in kinds_of((category,))]
    assert len(kinds) == len(set(kinds))


def test_retrieve_answers_with_the_fields_of_the_seed(alice: Person) -> None:
    made = alice.agent.do("store", **TEA)
    told = alice.owner.do("retrieve", user_id=alice.user, query="What does Alice drink?")
    (one,) = told["memories"]
    assert one.keys() >= {
        "memory_id", "category", "content_type", "content", "similarity_score", "topic_tags",
        "created_at",
    }  # fmt: skip
    assert (one["memory_id"], one["category"]) == (made["memory_id"], "preference")
    assert one["topic_tags"] == ["drinks"]
    assert 0 < one["similarity_score"] <= 1
    assert told["total_searched"] == 1
    assert told["query_time_ms"] >= 0


def test_retrieve_filters_by_categories(alice: Person) -> None:
    alice.store("Alice drinks tea", category="learned_context")
    alice.store("Alice drinks tea on Mondays", category="work_pattern", content_type="pattern")
    alice.store("User asked about tea", category="conversation", content_type="transcript")
    found = alice.contents("tea", category_filter=["work_pattern", "conversation"])
    assert sorted(found) == ["Alice drinks tea on Mondays", "User asked about tea"]


def test_retrieve_filters_by_the_time_it_was_said(alice: Person) -> None:
    alice.store("Alice drinks tea", timestamp="2026-01-01T00:00:00Z")
    alice.store("Alice drinks coffee", timestamp="2026-02-01T00:00:00Z")
    after = {"after": "2026-01-15T00:00:00Z"}
    assert alice.contents("drinks", time_range=after) == ["Alice drinks coffee"]
    before = {"before": "2026-01-15T00:00:00Z"}
    assert alice.contents("drinks", time_range=before) == ["Alice drinks tea"]


def test_without_a_number_ten_are_returned(alice: Person) -> None:
    for number in range(12):
        alice.store(f"Alice drinks tea number {number}")
    assert len(alice.contents("What tea does Alice drink?")) == 10
    assert len(alice.contents("What tea does Alice drink?", max_results=3)) == 3


def test_similarity_is_the_cosine_and_its_default_is_named(alice: Person) -> None:
    alice.store("Alice prefers green tea")
    alice.store("The quarterly report is due in March")
    asked = {"query": "green tea"}
    usual = alice.owner.do("retrieve", **asked)
    assert (usual["min_similarity"], usual["min_similarity_from"]) == (0.15, "static")
    assert all(one["similarity_score"] >= 0.15 for one in usual["memories"])
    every = alice.owner.do("retrieve", min_similarity=0, **asked)["memories"]
    best = every[0]["similarity_score"]
    kept = alice.owner.do("retrieve", min_similarity=best, **asked)
    assert kept["min_similarity_from"] == "request"
    assert [one["similarity_score"] for one in kept["memories"]] == [best]


def test_what_says_the_same_takes_the_place_of_the_one_before(alice: Person) -> None:
    alice.store("Alice prefers green tea")
    alice.clock.advance(seconds=60)
    latest = alice.store("Alice prefers green tea")
    found = alice.owner.do("retrieve", query="green tea", min_similarity=0)["memories"]
    assert [one["memory_id"] for one in found] == [latest]


def test_accesses_are_counted(alice: Person) -> None:
    made = alice.store("Alice prefers green tea")
    for _ in range(3):
        alice.contents("green tea")
    (one,) = alice.owner.look("memories")["data"]
    assert one["memory_id"] == made
    assert one["metadata"]["access_count"] == 3
    assert one["metadata"]["last_accessed"] is not None


def test_the_owner_sees_every_field_of_a_record(alice: Person) -> None:
    made = alice.agent.do("store", **TEA, ttl=3600)
    (one,) = alice.owner.look("memories")["data"]
    assert one["user_id"] == alice.user
    assert one["org_id"] == alice.org
    assert one["content_hash"] == made["content_hash"]
    source = {"session_id": "ses_abc123", "channel": "slack", "message_id": "msg_abc123"}
    assert one["source"] == source | {"timestamp": one["created_at"]}
    told = one["metadata"]
    assert (told["topic_tags"], told["importance_score"], told["ttl"]) == (["drinks"], 0.85, 3600)
    assert one["deleted_at"] is None


@pytest.mark.parametrize("named", [{"user_id": "mallory"}, {"org_id": "globex"}])
@pytest.mark.parametrize("operation", ["store", "retrieve", "destroy", "restrict"])
def test_another_person_than_that_of_the_key_is_refused(
    alice: Person, operation: str, named: dict[str, str]
) -> None:
    body = {"store": TEA, "retrieve": {"query": "tea"}}.get(operation, {})
    assert alice.owner.refused(operation, **body, **named) == (403, "forbidden")


def test_a_key_for_many_people_names_one_in_the_body(alice: Person) -> None:
    wide = alice.key(*OWNER, actor=Actor.USER, scope=f"{alice.org}/*")
    assert wide.refused("store", **TEA)[0] == 422
    wide.do("store", org_id=alice.org, user_id=alice.user, **TEA)
    assert alice.contents("tea") == [TEA["content"]]


def test_the_channel_is_a_label_and_the_key_decides_trust(alice: Person) -> None:
    alice.agent.do("store", **(TEA | {"channel": "email"}))
    (memory,) = alice.engine.browse(Scope.parse(alice.scope))
    assert (memory.origin.value, memory.provenance.channel) == ("agent", "email")


def test_a_plain_hash_of_the_content_is_stored_nowhere(alice: Person) -> None:
    made = alice.agent.do("store", **TEA)
    digest = bytes.fromhex(made["content_hash"].removeprefix("sha256:"))
    kept = pickle.dumps(alice.home.rows()[alice.address])
    assert TEA["content"].encode() not in kept
    plain = plain_words(TEA["content"])
    for text in (TEA["content"], plain, f"\0said\0preference\0{plain}"):
        for name in ("sha256", "blake2b", "sha1", "md5"):
            assert hashlib.new(name, text.encode()).digest()[:12] not in kept
    assert digest not in kept
    assert made["content_hash"].encode() not in kept
    for event in alice.owner.look("audit")["data"]:
        assert made["content_hash"] not in str(event)


def test_every_operation_is_audited_with_who_did_it_and_without_words(alice: Person) -> None:
    made = alice.store("Alice prefers zanzibar tea")
    alice.contents("zanzibar")
    alice.owner.do("rectify", memory_id=made, content="Alice prefers mint tea", reason="asked")
    alice.owner.do("forget", target={"memory_ids": [made]})
    events = alice.owner.look("audit")["data"]
    seen = {(one["operation"], one["performed_by"]) for one in events}
    assert {("store", "system"), ("retrieve", "user"), ("update", "user"), ("forget", "user")} <= (
        seen
    )
    assert "zanzibar" not in str(events)
    assert all(re.fullmatch(r"aud_\d+", one["audit_id"]) for one in events)


def test_a_memory_with_a_time_to_live_leaves_retrieval_when_it_is_over(alice: Person) -> None:
    alice.store("Alice drinks tea today", ttl=60)
    assert alice.contents("tea") == ["Alice drinks tea today"]
    alice.clock.advance(seconds=61)
    assert alice.contents("tea") == []


def test_lists_go_on_where_a_cursor_says(alice: Person) -> None:
    made = [alice.store(f"Alice note {number}") for number in range(5)]
    first = alice.owner.look("memories", limit=3)
    second = alice.owner.look("memories", limit=3, cursor=first["next_cursor"])
    ids = [one["memory_id"] for one in (*first["data"], *second["data"])]
    assert ids == made[::-1]


# -- forget ------------------------------------------------------------------------------------


def test_forget_by_ids_answers_with_the_fields_of_the_seed(alice: Person) -> None:
    made, kept = alice.store("Alice prefers green tea"), alice.store("Alice lives in Rome")
    told = alice.owner.do("forget", user_id=alice.user, target={"memory_ids": [made]})
    assert (told["deleted_count"], told["memory_ids"]) == (1, [made])
    assert re.fullmatch(r"aud_\d+", told["audit_id"])
    assert [one["memory_id"] for one in alice.owner.look("memories")["data"]] == [kept]


@pytest.mark.parametrize(
    "target",
    [
        {"session_id": "ses_1"},
        {"topic_tags": ["drinks"]},
        {"before": "2026-01-15T00:00:00Z"},
    ],
)
def test_forget_takes_a_session_tags_or_a_date(alice: Person, target: dict[str, Any]) -> None:
    gone = alice.store(
        "Alice prefers green tea",
        session_id="ses_1",
        topic_tags=["drinks", "tea"],
        timestamp="2026-01-01T00:00:00Z",
    )
    kept = alice.store("Alice lives in Rome", timestamp="2026-02-01T00:00:00Z")
    told = alice.owner.do("forget", target=target)
    assert told["memory_ids"] == [gone]
    assert [one["memory_id"] for one in alice.owner.look("memories")["data"]] == [kept]


def test_forget_by_query_first_lists_and_then_erases_exactly_that(alice: Person) -> None:
    gone = alice.store("Alice prefers green tea")
    alice.store("Alice's office is in Rome")
    asked = alice.owner.do("forget", target={"query": "green tea"})
    assert (asked["deleted_count"], asked["audit_id"]) == (0, None)
    assert gone in [one["memory_id"] for one in asked["matches"]]
    ids = {one["memory_id"] for one in asked["matches"]}
    assert len(alice.owner.look("memories")["data"]) == 2  # nothing is erased yet
    token = asked["confirmation_token"]
    target = {"query": "green tea", "confirm_matches": True}
    told = alice.owner.do("forget", target=target, confirmation_token=token)
    assert set(told["memory_ids"]) == ids
    left = {one["memory_id"] for one in alice.owner.look("memories")["data"]}
    assert not left & ids


def test_a_confirmation_counts_only_for_what_was_listed(alice: Person) -> None:
    alice.store("Alice prefers green tea")
    token = alice.owner.do("forget", target={"query": "tea"})["confirmation_token"]
    other = alice.store("Alice lives in Rome")
    target = {"query": "tea", "confirm_matches": True}
    forged = _with_id(token, other)
    assert alice.owner.refused("forget", target=target, confirmation_token=forged)[0] == 409
    assert alice.owner.refused("forget", target=target, confirmation_token="x")[0] == 422
    assert alice.owner.refused("forget", target=target)[0] == 422
    assert len(alice.owner.look("memories")["data"]) == 2


def _with_id(token: str, id: str) -> str:
    raw = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return base64.urlsafe_b64encode(json.dumps([raw[0], id]).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "target", [{}, {"memory_ids": ["mem_x"], "session_id": "s"}, {"words": "tea"}]
)
def test_forget_takes_exactly_one_known_target(alice: Person, target: dict[str, Any]) -> None:
    alice.store("Alice prefers green tea")
    assert alice.owner.refused("forget", target=target) == (422, "invalid_request")


def test_the_rest_of_a_forgotten_row_is_dropped_after_thirty_days(alice: Person) -> None:
    scope = Scope.parse(alice.scope)
    alice.owner.do("forget", target={"memory_ids": [alice.store("Alice prefers green tea")]})
    alice.clock.advance(days=29)
    assert alice.engine.purge(scope).dropped == 0
    alice.clock.advance(days=2)
    assert alice.engine.purge(scope).dropped >= 1
