"""The rights of the owner: nobody can block them, and nobody else has them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr

from scrubjay.access import Grant
from scrubjay.model.conversations import Append
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Quota, Scope
from tests.dialects.personal.conftest import Person

TEA = "Alice prefers green tea"
DRINK = "Alice drinks oolong tea every morning"


def destroyed(alice: Person) -> Any:
    """Both steps of a destroy."""
    token = alice.owner.do("destroy")["confirmation_token"]
    return alice.owner.do("destroy", confirmation_token=token)


def test_destroy_takes_two_steps_and_answers_with_the_fields_of_the_seed(alice: Person) -> None:
    alice.store(TEA)
    asked = alice.owner.do("destroy", user_id=alice.user)
    assert (asked["destroyed"], asked["records_deleted"]) == (False, 0)
    told = alice.owner.do("destroy", confirmation_token=asked["confirmation_token"])
    assert told["destroyed"] is True
    assert told["records_deleted"] >= 1
    assert told["vectors_deleted"] == 1
    assert told["blobs_deleted"] == 0
    assert told["audit_id"].startswith("aud_")
    assert alice.owner.refused("retrieve", query="tea") == (410, "destroyed")


def test_a_second_destroy_gives_the_same_receipt(alice: Person) -> None:
    alice.store(TEA)
    token = alice.owner.do("destroy")["confirmation_token"]
    first = alice.owner.do("destroy", confirmation_token=token)
    assert alice.owner.do("destroy", confirmation_token=token) == first


def test_a_token_to_destroy_is_good_for_an_hour(alice: Person) -> None:
    alice.store(TEA)
    token = alice.owner.do("destroy")["confirmation_token"]
    alice.clock.advance(seconds=3601)
    refused = alice.owner.refused("destroy", confirmation_token=token)
    assert refused == (428, "needs_confirmation")


def test_a_token_to_destroy_is_good_for_one_scope(alice: Person, bob: Person) -> None:
    alice.store(TEA)
    bob.store(TEA)
    token = bob.owner.do("destroy")["confirmation_token"]
    assert alice.owner.refused("destroy", confirmation_token=token)[0] == 428
    assert alice.contents("tea") == [TEA]


def test_a_token_to_destroy_ends_with_the_next_write_and_not_with_a_freeze(alice: Person) -> None:
    alice.store(TEA)
    token = alice.owner.do("destroy")["confirmation_token"]
    alice.store("Alice lives in Rome")
    assert alice.owner.refused("destroy", confirmation_token=token)[0] == 428
    token = alice.owner.do("destroy")["confirmation_token"]
    alice.contents("tea")
    alice.admin.send("/v1/freeze", {"level": "writes"})
    assert alice.owner.do("destroy", confirmation_token=token)["destroyed"] is True


@pytest.mark.parametrize("token", ["", "x", "1.2", "9999999999.1.abc", "1..", "ü.1.2"])
def test_an_invented_token_destroys_nothing(alice: Person, token: str) -> None:
    alice.store(TEA)
    assert alice.owner.refused("destroy", confirmation_token=token)[0] == 428
    assert alice.contents("tea") == [TEA]


@pytest.mark.parametrize("operation", ["destroy", "restrict", "lift"])
def test_an_agent_has_no_rights_of_the_owner(alice: Person, operation: str) -> None:
    alice.store(TEA)
    assert alice.agent.refused(operation) == (403, "forbidden")


def test_a_person_without_admin_may_destroy_restrict_and_lift(alice: Person) -> None:
    alice.store(TEA)
    grants = (Grant.READ, Grant.WRITE, Grant.FORGET, Grant.EXPORT)
    person = alice.key(*grants, actor=Actor.USER)
    assert person.do("restrict")["level"] == "all"
    notice = person.do("lift")["notice_id"]
    assert person.do("lift", notice_id=notice)["level"] == "none"
    token = person.do("destroy")["confirmation_token"]
    assert person.do("destroy", confirmation_token=token)["destroyed"] is True


def test_an_administrator_destroys_on_request_and_sees_numbers_only(alice: Person) -> None:
    alice.store(TEA)
    told = alice.admin.look("status")
    assert told == {
        "user_id": alice.user, "org_id": alice.org, "memories": 1, "turns": 0,
        "conversations": 0, "documents": 0, "restriction": "none",
        "audit_events": told["audit_events"], "frozen": "none",
        "user_held": False, "locked": False, "waiting": 0,
    }  # fmt: skip
    token = alice.admin.do("destroy")["confirmation_token"]
    assert alice.admin.do("destroy", confirmation_token=token)["destroyed"] is True


# -- rectification -----------------------------------------------------------------------------


def test_a_correction_replaces_the_old_value_at_once_and_notes_who_and_why(alice: Person) -> None:
    made = alice.store(TEA)
    told = alice.owner.do("rectify", memory_id=made, content="Alice prefers mint", reason="asked")
    assert told["replaces"] == made
    assert alice.contents("What does Alice prefer?") == ["Alice prefers mint"]
    brief = alice.owner.send("/v1/brief", method="GET").json()
    assert TEA not in str(brief)
    view = {one["memory_id"]: one for one in alice.owner.look("memories")["data"]}
    assert view[made]["metadata"]["replaced_by"] == told["memory_id"]
    kept = view[told["memory_id"]]["metadata"]
    assert (kept["performed_by"], kept["reason"]) == ("user", "asked")


def test_a_correction_needs_a_reason(alice: Person) -> None:
    made = alice.store(TEA)
    assert alice.owner.refused("rectify", memory_id=made, content="x")[0] == 422


# -- restriction -------------------------------------------------------------------------------


def test_while_it_is_restricted_agents_get_restricted_from_every_verb_that_shows(
    alice: Person,
) -> None:
    made = alice.store(TEA)
    alice.owner.do("restrict")
    asked: list[tuple[str, str, Any]] = [
        ("POST", "/v1/recall", {"query": "tea"}),
        ("GET", "/v1/brief", None),
        ("GET", "/v1/memories", None),
        ("GET", f"/v1/memories/{made}", None),
        ("GET", f"/v1/memories/{made}/history", None),
        ("GET", f"/v1/memories/{made}/lineage", None),
        ("GET", "/v1/follow", None),
        ("POST", "/v1/count", {}),
        ("GET", "/v1/statistics", None),
        ("GET", "/v1/turns", None),
        ("GET", "/v1/timeline", None),
        ("GET", "/v1/sessions", None),
        ("POST", "/v1/documents/list", {}),
        ("POST", "/v1/conversations/list", {}),
        ("POST", "/v1/forget/preview", {"ids": [made]}),
        ("POST", "/v1/memories", {"content": "x"}),
        ("POST", "/v1/turns", {"id": "t", "user": "x", "assistant": "y"}),
        ("POST", "/v1/personal/retrieve", {"query": "tea"}),
        ("GET", "/v1/personal/memories", None),
        (
            "POST",
            "/v1/personal/store",
            {"category": "preference", "content_type": "fact", "content": "x"},
        ),
    ]
    for method, path, body in asked:
        answer = alice.agent.send(path, body, method=method)
        assert (answer.status_code, answer.json()["code"]) == (423, "restricted"), path
        assert "green" not in answer.text


def test_while_it_is_restricted_the_owner_sees_exports_and_forgets(alice: Person) -> None:
    made = alice.store(TEA)
    alice.owner.do("restrict")
    assert [one["content"] for one in alice.owner.look("memories")["data"]] == [TEA]
    assert alice.owner.refused("retrieve", query="tea") == (423, "restricted")
    assert TEA in alice.owner.send("/v1/export").text
    assert alice.owner.do("forget", target={"memory_ids": [made]})["deleted_count"] == 1


@pytest.mark.parametrize("steps", ["by id", "by query"])
def test_a_forgotten_memory_is_cut_out_of_what_the_owner_said(alice: Person, steps: str) -> None:
    made = alice.store(DRINK)
    scope, rest = Scope.parse(alice.scope), "The weather is fine in Rome today."
    alice.engine.append(scope, Append("talk", [{"body": {"text": f"{rest} {DRINK}!"}}]))
    if steps == "by id":
        gone = alice.owner.do("forget", target={"memory_ids": [made]})
    else:
        target: dict[str, Any] = {"query": "What does Alice drink?"}
        shown = alice.owner.do("forget", target=target)
        assert (shown["deleted_count"], shown["copies"]) == (0, 1)
        target["confirm_matches"] = True
        token = shown["confirmation_token"]
        gone = alice.owner.do("forget", target=target, confirmation_token=token)
    assert gone["copies"] == 1
    exported = alice.owner.send("/v1/export").text
    assert "oolong" not in exported
    assert rest in exported


def test_while_it_is_restricted_the_owner_forgets_by_query_those_that_hold_its_words(
    alice: Person,
) -> None:
    made = alice.store(TEA)
    alice.store("Alice lives in Rome")
    alice.owner.do("restrict")
    target: dict[str, Any] = {"query": "green tea"}
    shown = alice.owner.do("forget", target=target)
    assert [one["memory_id"] for one in shown["matches"]] == [made]
    target["confirm_matches"] = True
    gone = alice.owner.do("forget", target=target, confirmation_token=shown["confirmation_token"])
    assert gone["deleted_count"] == 1
    assert alice.agent.refused("forget", target={"query": "Rome"}) == (423, "restricted")


def test_the_milder_freeze_stops_writes_only(alice: Person) -> None:
    alice.store(TEA)
    assert alice.owner.do("restrict", level="writes")["level"] == "writes"
    body = {"category": "preference", "content_type": "fact", "content": "x"}
    assert alice.agent.refused("store", **body) == (423, "frozen")
    assert alice.contents("tea") == [TEA]
    assert alice.owner.do("lift")["level"] == "none"


def test_a_restriction_is_lifted_only_after_the_owner_was_informed(alice: Person) -> None:
    alice.store(TEA)
    alice.owner.do("restrict")
    raw = alice.admin.send("/v1/freeze", {"level": "none"})
    assert (raw.status_code, raw.json()["code"]) == (403, "forbidden")
    notice = alice.admin.do("lift")
    assert (notice["level"], bool(notice["notice"])) == ("all", True)
    id = notice["notice_id"]
    assert alice.admin.refused("lift", notice_id=id) == (428, "needs_confirmation")
    assert [one["id"] for one in alice.admin.look("notices")["data"]] == [id]
    assert alice.admin.refused("lift", notice_id=id)[0] == 428  # an admin's look is no reading
    assert [one["id"] for one in alice.owner.look("notices")["data"]] == [id]
    assert alice.admin.do("lift", notice_id=id)["level"] == "none"
    assert alice.contents("tea") == [TEA]
    assert alice.owner.look("notices")["data"] == []


def test_an_earlier_notice_lifts_no_later_restriction(alice: Person) -> None:
    alice.store(TEA)
    alice.owner.do("restrict")
    id = alice.owner.do("lift")["notice_id"]
    alice.owner.do("lift", notice_id=id)
    alice.owner.do("restrict")
    assert alice.owner.refused("lift", notice_id=id)[0] == 428


def test_a_milder_freeze_does_not_lift_a_restriction(alice: Person) -> None:
    alice.store(TEA)
    alice.owner.do("restrict")
    assert alice.owner.do("restrict", level="writes")["level"] == "all"


# -- nobody can block the owner ----------------------------------------------------------------


def _freeze(alice: Person) -> None:
    assert alice.admin.send("/v1/freeze", {"level": "all"}).status_code == 200


def _revoke(alice: Person) -> None:
    own = alice.owner.send("/v1/key", method="GET").json()["id"]
    answer = alice.admin.send(f"/v1/keys/{own}", method="DELETE")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def _quota(alice: Person) -> None:
    engine = alice.engine
    policy = engine._ports.policy
    force_setattr(policy, "quota", Quota(memories=1, megabytes=1, scopes=1))


@pytest.fixture(params=[_freeze, _revoke, _quota], ids=["freeze", "revoke", "quota"])
def hindered(request: pytest.FixtureRequest, alice: Person) -> Any:
    """A memory of two, after an administrator did something about it."""
    made = [alice.store(TEA), alice.store("Alice lives in Rome")]
    policy = alice.engine._ports.policy
    before = policy.quota
    request.param(alice)
    yield alice, made
    force_setattr(policy, "quota", before)


def test_no_act_of_an_administrator_blocks_the_owners_forget(hindered: Any) -> None:
    alice, made = hindered
    assert alice.owner.do("forget", target={"memory_ids": made[:1]})["deleted_count"] == 1


def test_no_act_of_an_administrator_blocks_the_owners_export(hindered: Any) -> None:
    alice, _ = hindered
    assert TEA in alice.owner.send("/v1/export").text


def test_no_act_of_an_administrator_blocks_the_owners_destroy(hindered: Any) -> None:
    alice, _ = hindered
    assert destroyed(alice)["destroyed"] is True


def test_an_administrator_makes_no_key_that_passes_for_the_owners(alice: Person) -> None:
    alice.store(TEA)
    alice.owner.do("restrict")
    told = {"name": "x", "scopes": [alice.scope], "as_actor": "user"}
    refused = alice.admin.send("/v1/keys", told | {"grants": ["admin", "read"]})
    assert refused.status_code == 403
    made = alice.admin.send("/v1/keys", told | {"grants": ["admin"]}).json()["token"]
    false = type(alice.owner)(alice.owner.url, made)
    own = alice.owner.send("/v1/key", method="GET").json()["id"]
    assert false.send(f"/v1/keys/{own}", method="DELETE").status_code == 403
    assert false.send("/v1/freeze", {"level": "none"}).status_code == 403
    notice = false.do("lift")["notice_id"]
    assert false.look("notices")["data"][0]["read"] is False
    assert false.refused("lift", notice_id=notice)[0] == 428
    assert false.refused("purposes", purpose="model", on=True)[0] == 403
    assert false.refused("retrieve", query="tea")[0] == 403


def test_an_owner_can_revoke_the_own_key(alice: Person) -> None:
    own = alice.owner.send("/v1/key", method="GET").json()["id"]
    assert alice.owner.send(f"/v1/keys/{own}", method="DELETE").status_code == 200
    assert alice.owner.send("/v1/key", method="GET").status_code == 401


def test_a_destroyed_memory_takes_its_notice_along(alice: Person) -> None:
    alice.store(TEA)
    alice.owner.do("restrict")
    alice.admin.do("lift")
    destroyed(alice)
    again = alice.owner.send("/v1/scopes", {"anew": True})
    assert again.status_code == 200
    assert alice.owner.look("notices")["data"] == []
