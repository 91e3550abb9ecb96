"""Refusals: bad input meets the right error, and nothing at all is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from scrubjay.adapters.stores.memory import ScopeState
from scrubjay.engine import Kernel
from scrubjay.handle import Jay
from scrubjay.model.errors import (
    Conflict,
    Destroyed,
    Forbidden,
    Frozen,
    InvalidRequest,
    NeedsConfirmation,
    NotFound,
    ScrubjayError,
    StoreError,
    WrongKey,
)
from scrubjay.model.origin import Origin
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.service.rest import BY_NAME
from scrubjay.service.service import UNLIMITED, Options
from scrubjay.verbs import VERBS
from tests.serving import serving
from tests.support.engines import MemoryHome

ALICE = Scope("local", "alice")
Call = Callable[[Jay, str], object]
"""A bad call on a scope that holds one memory, whose id it is given."""

WRONG_KEY = "-".join(["AAAA"] * 13)

BAD_INPUT: dict[str, tuple[type[ScrubjayError], Call]] = {
    "empty content": (InvalidRequest, lambda jay, _: jay.retain("")),
    "blank content": (InvalidRequest, lambda jay, _: jay.retain(" \n\t ")),
    "content over 64 KiB": (InvalidRequest, lambda jay, _: jay.retain("x" * 65_537)),
    "content with half a character": (InvalidRequest, lambda jay, _: jay.retain("\ud800")),
    "content that is no text": (InvalidRequest, lambda jay, _: jay.retain(7)),  # type: ignore[arg-type]
    "unknown kind": (InvalidRequest, lambda jay, _: jay.retain("a", kind="dream")),  # type: ignore[arg-type]
    "unknown origin": (InvalidRequest, lambda jay, _: jay.retain("a", origin="dream")),  # type: ignore[arg-type]
    "one tag for many": (InvalidRequest, lambda jay, _: jay.retain("a", tags="tea")),
    "too much metadata": (
        InvalidRequest,
        lambda jay, _: jay.retain("a", metadata={"a": "x" * 16_384}),
    ),
    "unknown source": (NotFound, lambda jay, _: jay.retain("a", sources=["mem-nowhere"])),
    "unknown id to get": (NotFound, lambda jay, _: jay.get("mem-nowhere")),
    "unknown id to show the history of": (NotFound, lambda jay, _: jay.history("mem-nowhere")),
    "unknown id to supersede": (NotFound, lambda jay, _: jay.supersede("mem-nowhere", "a")),
    "unknown id to pin": (NotFound, lambda jay, _: jay.pin("mem-nowhere")),
    "unknown id to expire": (NotFound, lambda jay, _: jay.expire("mem-nowhere", None)),
    "unknown id to forget": (NotFound, lambda jay, one: jay.forget([one, "mem-nowhere"])),
    "no id at all to get": (InvalidRequest, lambda jay, _: jay.get("a b")),
    "no id at all to forget": (InvalidRequest, lambda jay, _: jay.forget(["a b"])),
    "an id where a list belongs": (InvalidRequest, lambda jay, one: jay.forget(one)),
    "nothing to forget": (InvalidRequest, lambda jay, _: jay.forget()),
    "two targets to forget": (InvalidRequest, lambda jay, one: jay.forget([one], session="s")),
    "an empty correction": (InvalidRequest, lambda jay, one: jay.supersede(one, "")),
    "a correction by a web page": (
        Forbidden,
        lambda jay, one: jay.supersede(one, "a", origin=Origin.WEB),
    ),
    "a page of none": (InvalidRequest, lambda jay, _: jay.browse(limit=0)),
    "a level that is none": (InvalidRequest, lambda jay, _: jay.freeze("solid")),  # type: ignore[arg-type]
    "a backup without end": (InvalidRequest, lambda jay, _: jay.backup("/dev/null", days=0)),
    "a damaged import": (InvalidRequest, lambda jay, _: jay.load(jay.export().content[:-9])),
    "an import that is none": (InvalidRequest, lambda jay, _: jay.load(b"\x00tea")),
    "a sealed import without its key": (
        WrongKey,
        lambda jay, _: jay.load(jay.export(sealed=True).content),
    ),
    "a sealed import with another key": (
        WrongKey,
        lambda jay, _: jay.load(jay.export(sealed=True).content, key=WRONG_KEY),
    ),
    "a sealed import with no key at all": (
        InvalidRequest,
        lambda jay, _: jay.load(jay.export(sealed=True).content, key="tea"),
    ),
    "a restore of what is no backup": (InvalidRequest, lambda jay, _: jay.restore(b"tea")),
    "a destroy without the name": (NeedsConfirmation, lambda jay, _: jay.destroy()),
    "a destroy of another name": (NeedsConfirmation, lambda jay, _: jay.destroy(confirm="bob")),
    "a receipt that is none": (NotFound, lambda jay, _: jay.verify("/nowhere/receipt.json")),
}

WRITES: dict[str, Call] = {
    "retain": lambda jay, _: jay.retain("b"),
    "supersede": lambda jay, one: jay.supersede(one, "b"),
    "pin": lambda jay, one: jay.pin(one),
    "unpin": lambda jay, one: jay.unpin(one),
    "archive": lambda jay, one: jay.archive(one),
    "unarchive": lambda jay, one: jay.unarchive(one),
    "expire": lambda jay, one: jay.expire(one, None),
    "purge": lambda jay, _: jay.purge(),
    "load": lambda jay, _: jay.load(
        b'{"format": "scrubjay-export", "version": 1, "scope": "a", "count": 0, "memories": []}'
    ),
}

OTHERS: dict[str, Call] = {
    "get": lambda jay, one: jay.get(one),
    "browse": lambda jay, _: jay.browse(),
    "history": lambda jay, one: jay.history(one),
    "forget": lambda jay, one: jay.forget([one]),
    "rotate": lambda jay, _: jay.rotate(),
    "freeze": lambda jay, _: jay.freeze(),
    "export": lambda jay, _: jay.export(),
    "verify": lambda jay, _: jay.verify(),
    "audit": lambda jay, _: jay.audit(),
}

ALL = WRITES | OTHERS


@pytest.fixture
def jay(engine: Kernel) -> Jay:
    engine.open(ALICE)
    return Jay(engine, ALICE)


@pytest.fixture
def one(jay: Jay) -> str:
    return jay.retain("tea", session="s").id


def everything(home: MemoryHome) -> Any:
    """All that is kept: rows, head, tombstones, trail, catalog, keys and blobs.

    Reads are counted in the trail, also those that were part of a refused call, so it is left out.
    """
    rows = {place: without_trail(state) for place, state in home.store._scopes.items()}
    catalog = home.store.catalog
    kept = [
        (
            replace(entry, audit_count=0, audit_mac=b""),
            catalog.tombstones(entry.address),
            catalog.receipts(entry.address),
            catalog.backups(entry.address),
        )
        for entry in catalog.entries()
    ]
    return rows, kept, home.slots(), dict(home.blobs._blobs)


def without_trail(state: ScopeState) -> tuple[object, ...]:
    head = state.head
    positions = (head.memory, head.turn, head.session, head.frozen, head.destroyed, head.due)
    return positions, state.rows, state.tombstones, state.links


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_refused_and_nothing_is_written(
    home: MemoryHome, jay: Jay, one: str, name: str
) -> None:
    error, call = BAD_INPUT[name]
    before = everything(home)
    with pytest.raises(error) as refusal:
        call(jay, one)
    assert type(refusal.value) is error
    assert refusal.value.message.endswith(".")
    assert everything(home) == before


BAD_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("retain", {"content": ""}),
    ("retain", {"content": " \n"}),
    ("retain", {"content": "x" * 65_537}),
    ("retain", {"content": "\N{TEACUP WITHOUT HANDLE}" * 20_000}),
    ("retain", {"content": 7}),
    ("retain", {"content": "a", "kind": "Nightingale"}),
    ("retain", {"content": "a", "origin": "Nightingale"}),
    ("retain", {"content": "a", "tags": "tea"}),
    ("retain", {"content": "a", "tags": ["Nightingale" * 20]}),
    ("retain", {"content": "a", "tags": [str(number) for number in range(65)]}),
    ("retain", {"content": "a", "importance": 1.5}),
    ("retain", {"content": "a", "pinned": "yes"}),
    ("retain", {"content": "a", "key": "Nightingale" * 60}),
    ("retain", {"content": "a", "position": -1}),
    ("retain", {"content": "a", "id": "Nightingale !"}),
    ("retain", {"content": "a", "sources": ["Nightingale !"]}),
    ("retain", {"content": "a", "metadata": {"a": "x" * 16_384}}),
    ("retain", {"content": "a", "metadata": ["a"]}),
    ("retain", {"content": "a", "said_at": "Nightingale"}),
    ("retain", {"content": "a", "mood": "Nightingale"}),
    ("recall", {"query": " "}),
    ("recall", {"query": "tea", "limit": 1_001}),
    ("recall", {"query": "tea", "seconds": 0}),
    ("recall", {"query": "tea", "kinds": ["Nightingale"]}),
    ("recall", {"query": "tea", "scopes": ["Nightingale!"]}),
    ("browse", {"limit": 0}),
    ("forget", {"ids": []}),
    ("forget", {"ids": ["mem-1"], "session": "s"}),
    ("revoke", {}),
    ("record", {"id": "turn-1", "user": "x" * (8 * 1024 * 1024 + 1)}),
    ("freeze", {"level": "Nightingale"}),
    ("purge", {"superseded_days": 36_501}),
    ("extract", {"limit": 0}),
]


@pytest.mark.parametrize(("verb", "fields"), BAD_FIELDS)
def test_library_and_direct_construction_refuse_a_bad_field(
    home: MemoryHome, jay: Jay, verb: str, fields: dict[str, Any]
) -> None:
    before = everything(home)
    for call in (VERBS[verb].request, getattr(jay, verb)):
        if call is VERBS[verb].request and "mood" in fields:
            continue  # a name that is not known is Python's own to refuse
        with pytest.raises(InvalidRequest) as refusal:
            call(**fields)
        assert "Nightingale" not in refusal.value.message + refusal.value.hint
    assert everything(home) == before


def test_http_refuses_the_same_fields(engine: Kernel, home: MemoryHome, jay: Jay) -> None:
    options = Options(no_auth=True, scope=ALICE, rates=UNLIMITED)
    with serving(engine, home.clock, options) as running, httpx2.Client() as http:
        before = everything(home)
        for verb, fields in BAD_FIELDS:
            operation = BY_NAME[verb]
            how = {"params" if operation.in_query else "json": fields}
            url = f"{running.url}/v1{operation.path}"
            answer = http.request(operation.method, url, **how)  # type: ignore[arg-type]
            assert answer.status_code in (413, 422), (verb, fields, answer.text)
            assert "Nightingale" not in answer.text
        assert everything(home) == before


def test_http_says_of_a_wrong_field_what_the_library_says(
    engine: Kernel, home: MemoryHome, jay: Jay
) -> None:
    fields: dict[str, Any] = {"content": "Alice prefers green tea", "tag": ["tea"]}
    with pytest.raises(InvalidRequest) as refusal:
        jay.retain(**fields)
    options = Options(no_auth=True, scope=ALICE, rates=UNLIMITED)
    with serving(engine, home.clock, options) as running, httpx2.Client() as http:
        answer = http.post(f"{running.url}/v1/memories", json=fields).json()
    assert answer["detail"] == refusal.value.message
    assert answer["detail"] == "There is no field tag; did you mean tags?"


@pytest.mark.parametrize("level", [Freeze.WRITES, Freeze.ALL])
@pytest.mark.parametrize("name", WRITES)
def test_a_frozen_scope_refuses_and_nothing_is_written(
    home: MemoryHome, jay: Jay, one: str, name: str, level: Freeze
) -> None:
    jay.freeze(level)
    before = everything(home)
    with pytest.raises(Frozen):
        WRITES[name](jay, one)
    assert everything(home) == before


@pytest.mark.parametrize("name", ALL)
def test_a_closed_handle_refuses_and_nothing_is_written(
    home: MemoryHome, jay: Jay, one: str, name: str
) -> None:
    jay.close()
    before = everything(home)
    with pytest.raises(StoreError, match="closed"):
        ALL[name](jay, one)
    assert everything(home) == before


@pytest.mark.parametrize("name", ALL)
def test_a_destroyed_scope_refuses_and_nothing_is_written(
    home: MemoryHome, jay: Jay, one: str, name: str
) -> None:
    jay.destroy(confirm="local/alice")
    before = everything(home)
    with pytest.raises(Destroyed):
        ALL[name](jay, one)
    assert everything(home) == before


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b/c", "-a", "ä", "a" * 129, "a\n"])
def test_a_bad_scope_name_is_refused_and_nothing_is_written(home: MemoryHome, name: str) -> None:
    before = everything(home)
    with pytest.raises(InvalidRequest):
        Scope.parse(name)
    assert everything(home) == before


def test_a_second_correction_is_refused_and_nothing_is_written(
    home: MemoryHome, jay: Jay, one: str
) -> None:
    jay.supersede(one, "coffee")
    before = everything(home)
    with pytest.raises(Conflict):
        jay.supersede(one, "water")
    assert everything(home) == before


def test_no_message_repeats_what_was_sent(jay: Jay, one: str) -> None:
    """Content, tags and keys are private, also where they are wrong."""
    secret = "Nightingale"
    for call in (
        lambda: jay.retain(secret * 6000),
        lambda: jay.retain(secret + "\ud800"),
        lambda: jay.retain("a", kind=secret),  # type: ignore[arg-type]
        lambda: jay.retain("a", tags=[secret * 20]),
        lambda: jay.retain("a", key=secret * 60),
        lambda: jay.retain("a", session=secret * 60),
        lambda: jay.browse(tags=[secret * 20]),
        lambda: jay.forget([secret + " "]),
        lambda: jay.get(secret + " "),
        lambda: jay.load(secret.encode()),
        lambda: jay.load(b'{"format": "Nightingale"}'),
        lambda: jay.load(jay.export(sealed=True).content, key=secret),
    ):
        with pytest.raises(ScrubjayError) as refusal:
            call()
        assert secret not in refusal.value.message + refusal.value.hint
