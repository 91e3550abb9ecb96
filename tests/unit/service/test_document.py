"""The OpenAPI document lists every answer that an operation may give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from scrubjay.model.errors import ScrubjayError, Stale
from scrubjay.service import openapi, problems
from scrubjay.service.rest import OPERATIONS, Operation
from tests.serving import ByTheDocument, documented
from tests.unit.service.conftest import Caller

LOCKING = [one for one in OPERATIONS if one.conditional or "expected_revision" in one.fields]


def kinds(root: type[ScrubjayError] = ScrubjayError) -> Iterator[type[ScrubjayError]]:
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


def listed(operation: Operation) -> frozenset[int]:
    return documented()[operation.method, f"/v1{operation.path}"]


@pytest.mark.parametrize("kind", [*kinds()], ids=lambda kind: kind.code)
def test_an_error_has_a_status_that_every_operation_lists(kind: type[ScrubjayError]) -> None:
    status = problems.of(kind("It failed.")).status
    # Stale is answered by those who take a lock, as the next test shows.
    assert [one.name for one in OPERATIONS if status not in listed(one)] == (
        [one.name for one in OPERATIONS if not one.locks] if kind is Stale else []
    )


def references(node: Any) -> Iterator[str]:
    """Every $ref of a document."""
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        if name == "$ref":
            yield value
        elif isinstance(value, (dict, list)):
            yield from references(value)


def test_every_reference_of_the_document_leads_to_a_schema() -> None:
    document = openapi.document()
    parts = document["components"]
    defined = {f"#/components/{part}/{name}" for part in parts for name in parts[part]}
    assert set(references(document)) <= defined


@pytest.mark.parametrize("operation", LOCKING, ids=lambda one: one.name)
def test_an_operation_with_an_optimistic_lock_lists_what_a_stale_one_is_answered(
    alice: Caller, operation: Operation
) -> None:
    path, body, headers = f"/v1{operation.path}", dict[str, Any](operation.example), {}
    if "expected_revision" in operation.fields:
        alice.http.post("/v1/documents/put", json={"name": "notes/tea.md", "value": "Steep."})
        entries = [{"body": n} for n in range(3)]
        made = {"conversation": "chat-7", "entries": entries}
        assert alice.http.post("/v1/conversations/append", json=made).status_code == 201
        body["expected_revision"] = "another"
    else:
        path = path.format(id=alice.retain(origin="web", kind="instruction"))
        headers = {"If-Match": '"0.0"'}
    sent: dict[str, Any] = {} if operation.in_query else {"json": body}
    answer = alice.http.request(operation.method, path, headers=headers, **sent)
    assert (answer.status_code, answer.json()["code"]) == (412, "stale")
    assert 412 in listed(operation)


def test_every_service_of_the_tests_notes_an_answer_that_the_document_does_not_list() -> None:
    def refuse(request: Request) -> Response:
        return Response(status_code=412)

    watched = ByTheDocument(Starlette(routes=[Route("/v1/count", refuse, methods=["POST"])]))
    with TestClient(watched) as http:
        http.post("/v1/count")
    assert watched.surprises == ["POST /v1/count answered 412"]


def test_a_fixed_pair_is_described_item_by_item_in_valid_json_schema() -> None:
    schemas = openapi.document()["components"]["schemas"]
    for schema in schemas.values():
        jsonschema_rs.meta.validate(
            schema | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        )
    pair = schemas["FileInspection"]["properties"]["facts"]["items"]
    assert pair["prefixItems"] == [{"type": "string"}] * 2
    assert (pair["minItems"], pair["maxItems"], pair["items"]) == (2, 2, False)
