"""What an owner may prove without being an administrator, and who may send text to a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scrubjay.access import Grant, Keys, everything
from scrubjay.engine import Kernel
from scrubjay.model.origin import Actor
from scrubjay.testing.clock import FakeClock
from scrubjay.verbs import FileVerbs
from tests.unit.service.conftest import Caller

Calling = Callable[..., Caller]
OWNER = (Grant.READ, Grant.WRITE, Grant.FORGET)
ADMIN = (*OWNER, Grant.EXPORT, Grant.ADMIN)


def erased(owner: Caller, content: str = "tea") -> dict[str, Any]:
    """The receipt of an erasure."""
    answer = owner.http.post("/v1/forget", json={"ids": [owner.retain(content)]})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_an_owner_reads_the_audit_trail_without_being_an_admin(caller: Calling, scope: str) -> None:
    owner = caller(scope, grants=(Grant.READ, Grant.WRITE))
    owner.retain()
    events = owner.http.get("/v1/audit").json()["data"]
    assert [event["verb"] for event in events] == ["retain"]


def test_an_agent_does_not_read_the_audit_trail_whatever_it_is_granted(
    caller: Calling, scope: str
) -> None:
    caller(scope).retain()
    agent = caller(scope, actor=Actor.AGENT, grants=tuple(Grant))
    answer = agent.http.get("/v1/audit")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    writer = caller(scope, grants=(Grant.WRITE,))
    assert writer.http.get("/v1/audit").status_code == 403


@pytest.mark.parametrize("actor", [Actor.USER, Actor.AGENT])
def test_who_may_forget_may_prove_the_erasure(caller: Calling, scope: str, actor: Actor) -> None:
    owner = caller(scope, grants=OWNER, actor=actor)
    report = owner.http.post("/v1/verify/erased", json={"receipt": erased(owner)})
    assert report.status_code == 200, report.text
    assert (report.json()["problems"], report.json()["found"]) == ([], [])
    reader = caller(scope, grants=(Grant.READ, Grant.WRITE))
    assert reader.http.post("/v1/verify/erased", json={"receipt": {}}).status_code == 403


def test_an_erasure_is_proved_with_a_receipt_of_the_scope_only(caller: Calling, scope: str) -> None:
    """A receipt made up, or of another scope, would ask about bytes that are not the owner's."""
    owner, other = caller(scope, grants=OWNER), caller(f"{scope}-other", grants=OWNER)
    mine, theirs = erased(owner), erased(other)
    forged = {**mine, "cells": theirs["cells"]}
    refused = owner.http.post("/v1/verify/erased", json={"receipt": theirs})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    report = owner.http.post("/v1/verify/erased", json={"receipt": forged}).json()
    assert (report["checked"], report["found"]) == (0, [])
    assert "does not know this erasure" in report["problems"][0]
    assert other.http.post("/v1/verify/erased", json={"receipt": theirs}).status_code == 200


def test_proving_an_erasure_counts_as_heavy() -> None:
    assert FileVerbs.verify_erased.heavy


def test_an_admin_key_neither_extracts_nor_makes_a_key_that_does(
    caller: Calling, scope: str
) -> None:
    admin = caller(scope, grants=ADMIN)
    admin.retain()
    assert admin.http.post("/v1/extract", json={"limit": 1}).status_code == 403
    wanted = {"name": "n", "scopes": [scope], "grants": ["read", "extract"]}
    assert admin.http.post("/v1/keys", json=wanted).status_code == 403
    assert admin.http.post("/v1/extraction", json={"paused": True}).status_code == 200
    model = caller(scope, grants=(Grant.EXTRACT,))
    answer = model.http.post("/v1/extract", json={"limit": 1})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")  # no model


def test_a_key_stored_before_there_was_the_grant_lacks_it(
    lasting_engine: Kernel, clock: FakeClock
) -> None:
    """Grants are kept by name: a key with all there were is not given a new one."""
    keys = Keys(lasting_engine, clock)
    issued = keys.create(name="old", scopes=["acme/old"], grants=[one.value for one in ADMIN])
    assert Grant.EXTRACT not in Keys(lasting_engine, clock).all()[-1].grants
    assert issued.key.grants == ADMIN
    assert Grant.EXTRACT in everything().grants
