"""The OpenAPI 3.1 document, made from the table of operations."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, create_model
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from scrubjay import __version__, wire
from scrubjay.access import Grant
from scrubjay.model.memory import Memory
from scrubjay.model.results import Retained
from scrubjay.model.turns import Recorded
from scrubjay.service import problems
from scrubjay.service.problems import ProblemDocument
from scrubjay.verbs import OPERATIONS, Operation

_REF: Final = "#/components/schemas/{model}"
_ABOUT: Final = (
    "Private memory for AI agents. A key names the scopes it may be used on and what for. "
    "Every error is application/problem+json."
)
_GRANTS: Final = {
    Grant.READ: "look at memories",
    Grant.WRITE: "add and replace memories",
    Grant.FORGET: "erase memories",
    Grant.EXPORT: "take a whole scope out",
    Grant.ADMIN: "everything about a scope as a whole, and keys",
}
_REFUSALS: Final = (
    *(400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 423, 428, 429, 431),
    *(500, 502, 503, 504, 507),
)


class MemoryPage(BaseModel):
    """A page of memories, newest first."""

    data: list[wire.shape(Memory)]  # type: ignore[valid-type]  # made from the dataclass
    next_cursor: str | None


@lru_cache(maxsize=1)
def render() -> bytes:
    """The document as it is served, and committed."""
    return (json.dumps(document(), indent=2, ensure_ascii=False) + "\n").encode()


def document() -> dict[str, Any]:
    """The whole document."""
    requests = {one.name: wire.form(_title(one, "Request"), one.loose) for one in OPERATIONS}
    answers = {one.name: answer_model(one) for one in OPERATIONS}
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in requests.values()),
        *((model, "validation") for model in answers.values()),
        (ProblemDocument, "validation"),
    ]
    refs, definitions = models_json_schema(wanted, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        sent = refs[requests[operation.name], "validation"]
        given = refs[answers[operation.name], "validation"]
        described = _operation(operation, definitions["$defs"], sent, given)
        paths.setdefault(f"/v1{operation.path}", {})[operation.method.lower()] = described
    for operation in OPERATIONS:
        if operation.in_query:
            del definitions["$defs"][_title(operation, "Request")]
    return {
        "openapi": "3.1.0",
        "info": {"title": "scrubjay", "version": __version__, "description": _ABOUT},
        "paths": {**paths, **_other_paths()},
        "components": {
            "schemas": _untitled(definitions["$defs"]),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": _problem()},
        },
        "security": [{"key": []}],
    }


def answer_model(operation: Operation) -> type[BaseModel]:
    """What an operation answers; what is no object stands in the field `data` of one."""
    if operation.paged:
        return MemoryPage
    shape = wire.shape(operation.gives)
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        return shape
    return create_model(_title(operation, "Answer"), data=(shape, ...))


def _title(operation: Operation, kind: str) -> str:
    return "".join(word.capitalize() for word in operation.name.split("_")) + kind


def _operation(
    operation: Operation, defined: dict[str, Any], sent: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": f"{_doc(operation)} {_needed(operation.grant)}",
        "parameters": [*_parameters(operation, defined[sent["$ref"].rpartition("/")[2]])],
        "responses": _responses(operation, given),
    }
    if not operation.in_query:
        body: dict[str, Any] = {"schema": sent}
        if operation.example:
            body["examples"] = {"one": {"value": dict(operation.example)}}
        described["requestBody"] = {
            "required": any(default is ... for _, default in operation.loose.values()),
            "content": {"application/json": body},
        }
    return described


def _needed(grant: Grant | None) -> str:
    return f"Needs the grant {grant}: {_GRANTS[grant]}." if grant else "Any key will do."


def _doc(operation: Operation) -> str:
    return (operation.verb.__doc__ or operation.summary).partition("\n")[0]


def _parameters(operation: Operation, form: dict[str, Any]) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in operation.path_names
    ]
    if operation.in_query:
        for name, schema in form.get("properties", {}).items():
            found.append({"name": name, "in": "query", "schema": _flat(schema)})
    if operation.scoped:
        found.append(_header("X-Scrubjay-Scope", "The scope, as tenant/owner.", "acme/alice"))
    if operation.replayed:
        found.append(_header("Idempotency-Key", "A repeat gets the first answer again.", None))
    if operation.conditional:
        seen = _header("If-Match", "The ETag it had when you read it, or *.", "*")
        found.append({**seen, "required": True})
    if operation.gives is Memory and operation.method == "GET":
        found.append(_header("If-None-Match", "The ETag you have already.", None))
    if operation.name == "retain":
        found.append(_header("If-None-Match", "* to be refused if its id or key is known.", "*"))
    return found


def _header(name: str, about: str, example: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name, "in": "header", "description": about, "schema": {"type": "string"},
    }  # fmt: skip
    return found if example is None else {**found, "example": example}


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a query parameter: one that may be null is one that may be left out."""
    options = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    flat = {**schema, **options[0]} if len(options) == 1 else dict(schema)
    for name in ("anyOf", "title") if options else ("title",):
        flat.pop(name, None)
    if flat.get("default", 0) is None:
        del flat["default"]
    return flat


def _responses(operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": operation.summary}
    good["content"] = {"application/json": {"schema": given}}
    if headers := _answer_headers(operation):
        good["headers"] = headers
    found: dict[str, Any] = {str(operation.status): good}
    if operation.gives in (Retained, Recorded):
        found["200"] = {**good, "description": "It was known already, or forgotten once."}
    if operation.gives is Memory and operation.method == "GET":
        found["304"] = {"description": "It is as you have it."}
    preconditioned = operation.conditional or operation.name == "retain"
    statuses = [*_REFUSALS, *([412] if preconditioned else [])]
    return found | {
        str(status): {"$ref": "#/components/responses/Problem"} for status in sorted(statuses)
    }


def _answer_headers(operation: Operation) -> dict[str, Any]:
    text = {"schema": {"type": "string"}}
    if operation.gives is Memory:
        return {"ETag": {"description": "Its version; send it back as If-Match.", **text}}
    if operation.paged:
        return {"Link": {"description": "Where the next page is, if there is one.", **text}}
    return {}


def _problem() -> dict[str, Any]:
    schema = {"$ref": _REF.format(model=ProblemDocument.__name__)}
    return {"description": "What went wrong.", "content": {problems.TYPE: {"schema": schema}}}


def _other_paths() -> dict[str, Any]:
    """What is not about memories; only the counters need a key."""
    about = {
        "/healthz": "Whether the process lives.",
        "/readyz": "Whether it can work, by check; 503 if not.",
        "/version": "Which version it is.",
    }
    schema = TypeAdapter(dict[str, Any]).json_schema()
    good = {"content": {"application/json": {"schema": schema}}}
    counters = {
        "operationId": "metrics",
        "summary": "Counters in the text form of Prometheus, for any key.",
        "responses": {
            "200": {
                "description": "The counters.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            "401": {"$ref": "#/components/responses/Problem"},
        },
    }
    return {"/metrics": {"get": counters}} | {
        path: {
            "get": {
                "operationId": path[1:],
                "summary": summary,
                "security": [],
                "responses": {"200": {"description": summary, **good}}
                | ({"503": {"description": "Not ready.", **good}} if path == "/readyz" else {}),
            }
        }
        for path, summary in about.items()
    }


def _untitled(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas without the titles that only repeat the names."""
    for schema in schemas.values():
        schema.pop("title", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
    return schemas
