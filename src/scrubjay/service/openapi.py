"""The OpenAPI 3.1 document, made from the table of operations."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from scrubjay import __version__, codec
from scrubjay.access import Grant
from scrubjay.model.errors import Stale
from scrubjay.model.memory import Memory
from scrubjay.model.pages import NextCursor, Page
from scrubjay.model.results import Exported, Retained
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Recorded
from scrubjay.service import problems
from scrubjay.service.problems import ProblemDocument
from scrubjay.service.rest import MEMORIES, OPERATIONS, Operation

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
    Grant.EXTRACT: "send turns to a model",
}
_TAGS: Final = {
    "memories": "Write, find and correct memories.",
    "turns": "Conversations as they happened, and what a model extracts from them.",
    "erase": "Erase for good, or undo; each with a receipt.",
    "trust": "Quarantine and taint.",
    "scope": "A scope as a whole: copies, keys of encryption, checks, proof.",
    "keys": "API keys and what they allow.",
    "service": "Health, version and counters.",
}
_ENTRIES: Final = Meta(description="The entries of this page.")
_FILE: Final = {
    "application/json": {"schema": {"type": "object"}},
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
}


@lru_cache(maxsize=1)
def render() -> bytes:
    """The document as it is served, and committed."""
    return (json.dumps(document(), indent=2, ensure_ascii=False) + "\n").encode()


def document() -> dict[str, Any]:
    """The whole document."""
    forms = [codec.form(_title(one, "Request"), one.loose) for one in OPERATIONS]
    asked = {one.verb.request for one in OPERATIONS}
    items = sorted(set().union(*(codec.items(one.loose) for one in OPERATIONS)) - asked, key=str)
    forms += [codec.form(f"{one.__name__}Request", codec.wanted(one)) for one in items]
    answers = [answer_type(one) for one in OPERATIONS]
    refs, defined = codec.schemas([*forms, *answers, ProblemDocument], codec.REF)
    sent, given = refs[: len(forms)], refs[len(forms) :]
    paths: dict[str, dict[str, Any]] = {}
    for item in items:
        codec.put_defaults(defined[f"{item.__name__}Request"], codec.wanted(item))
    for operation, request, answer in zip(OPERATIONS, sent, given, strict=False):
        name = request["$ref"].rpartition("/")[2]
        codec.put_defaults(defined[name], operation.loose)
        described = _operation(operation, defined[name], request, answer)
        paths.setdefault(f"/v1{operation.path}", {})[operation.method.lower()] = described
        if operation.in_query:
            del defined[name]
        if operation.gives is Exported:
            del defined[Exported.__name__]  # its answer is a file
    return {
        "openapi": "3.1.0",
        "info": {"title": "scrubjay", "version": __version__, "description": _ABOUT},
        "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
        "paths": {**paths, **_other_paths()},
        "components": {
            "schemas": dict(sorted(defined.items())),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": _problem()},
        },
        "security": [{"key": []}],
    }


def answer_type(operation: Operation) -> type[Struct]:
    """Type of an answer; a result that is not an object is in the field `data`."""
    gives = codec.bare(operation.gives)
    if get_origin(gives) is Page:
        return page_of(*get_args(gives))
    if codec.is_struct(gives) and gives is not Scope:
        return gives
    data: Any = Annotated[gives, Meta(description=operation.summary)]
    return msgspec.defstruct(_title(operation, "Answer"), [("data", data)])


@lru_cache(maxsize=64)
def page_of(entry: type) -> type[Struct]:
    """Type of a page of such entries, with a name that can stand in a document."""
    data: Any = Annotated[(tuple[entry, ...], _ENTRIES)]  # type: ignore[valid-type]
    return msgspec.defstruct(f"{entry.__name__}Page", [("data", data), ("next_cursor", NextCursor)])


def _title(operation: Operation, kind: str) -> str:
    return "".join(word.capitalize() for word in operation.name.split("_")) + kind


def _operation(
    operation: Operation, form: dict[str, Any], sent: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": f"{operation.summary} {_needed(operation.grant)}",
        "parameters": [*_parameters(operation, form)],
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


def _parameters(operation: Operation, form: dict[str, Any]) -> list[dict[str, Any]]:
    found = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": codec.help_of(operation.fields[name][0]),
            "schema": {"type": "string"},
        }
        for name in operation.path_names
    ]
    if operation.in_query:
        for name, schema in form.get("properties", {}).items():
            flat = codec.flat(schema)
            about = flat.pop("description", "")
            shape = {"schema": flat}
            if codec.is_object(operation.loose[name][0]):
                shape = {"content": {"application/json": shape}}
            found.append({"name": name, "in": "query", "description": about, **shape})
    if operation.verb.scoped:
        found.append(_header("X-Scrubjay-Scope", "The scope, as tenant/owner.", "acme/alice"))
    if operation.keyed:
        about = "The key of this write: a repeat of the same request changes nothing."
        found.append(_header("Idempotency-Key", about, None))
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


def _responses(operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": operation.summary}
    is_file = operation.gives is Exported
    good["content"] = _FILE if is_file else {"application/json": {"schema": given}}
    if headers := _answer_headers(operation):
        good["headers"] = headers
    found: dict[str, Any] = {str(operation.status): good}
    if operation.gives in (Retained, Recorded):
        found["200"] = {**good, "description": "It was known already, or forgotten once."}
    if operation.gives is Memory and operation.method == "GET":
        found["304"] = {"description": "It is as you have it."}
    raised = {
        status for kind, status in problems.STATUS.items() if kind is not Stale or operation.locks
    }
    return found | {
        str(status): {"$ref": "#/components/responses/Problem"}
        for status in sorted(problems.REFUSALS | raised)
    }


def _answer_headers(operation: Operation) -> dict[str, Any]:
    text = {"schema": {"type": "string"}}
    if operation.gives is Memory:
        return {"ETag": {"description": "Its version; send it back as If-Match.", **text}}
    if operation.gives is Exported:
        return {
            "Content-Disposition": {"description": "The name of the file.", **text},
            MEMORIES: {"description": "How many memories the file holds.", **text},
        }
    if operation.linked:
        return {"Link": {"description": "Where the next page is, if there is one.", **text}}
    return {}


def _problem() -> dict[str, Any]:
    schema = {"$ref": codec.REF.format(name=ProblemDocument.__name__)}
    return {"description": "What went wrong.", "content": {problems.TYPE: {"schema": schema}}}


def _other_paths() -> dict[str, Any]:
    """Paths of health, version and metrics; only metrics needs a key."""
    about = {
        "/healthz": "Whether the process lives.",
        "/readyz": "Whether it can work, by check; 503 if not.",
        "/version": "Which version it is.",
    }
    schema = {"type": "object", "additionalProperties": True}
    good = {"content": {"application/json": {"schema": schema}}}
    counters = {
        "operationId": "metrics",
        "tags": ["service"],
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
                "tags": ["service"],
                "summary": summary,
                "security": [],
                "responses": {"200": {"description": summary, **good}}
                | ({"503": {"description": "Not ready.", **good}} if path == "/readyz" else {}),
            }
        }
        for path, summary in about.items()
    }
