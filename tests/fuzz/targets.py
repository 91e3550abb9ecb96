"""Fuzzing targets: any bytes through the parsers that meet a stranger's input.

A target returns or raises one of the refusals its callers know; anything else is a finding. What
was found is kept in `findings`, and every test run repeats it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Final

import msgspec
from msgspec.structs import replace

from scrubjay import codec
from scrubjay.adapters.distillers.rules import RulesDistiller
from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.conversation import messages, replay
from scrubjay.engine.search import analysis, question
from scrubjay.engine.transfer import bundle
from scrubjay.guard.secrets import redact
from scrubjay.model import records, turns
from scrubjay.model.clean import clean, one_line
from scrubjay.model.errors import InvalidRequest, SealBroken
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.ports import SystemClock
from scrubjay.service.rest import OPERATIONS
from scrubjay.surfaces.clawdapus import entries, history
from scrubjay.surfaces.imports import sqlite
from scrubjay.surfaces.personal import copies
from scrubjay.vault import Purpose, Sealer
from scrubjay.verbs import VERBS

Target = Callable[[bytes], None]
_NOW: Final = datetime(2026, 5, 1, tzinfo=UTC)
_KEY: Final = bytes(32)
_NAME: Final = "fuzz"
_SCOPE: Final = Scope("acme", "alice")


def fuzz_codec(raw: bytes) -> None:
    """A body of any operation, and a record; what is read can be written and read again."""
    operation = OPERATIONS[raw[0] % len(OPERATIONS)] if raw else OPERATIONS[0]
    body = raw[1:]
    with suppress(msgspec.DecodeError, InvalidRequest, RecursionError, UnicodeDecodeError):
        given = msgspec.json.decode(body, type=_form(operation.name))
        values = codec.chosen(given, operation.fields)
        codec.plain(codec.request(VERBS[operation.name].request, values))
    with suppress(ValueError, InvalidRequest, RecursionError):
        memory = records.from_record(json.loads(body))
        again = records.from_record(json.loads(json.dumps(records.to_record(memory))))
        assert replace(again, number=0) == replace(memory, number=0)
    with suppress(ValueError, InvalidRequest, RecursionError):
        turn = turns.from_record(json.loads(body))
        assert turns.from_record(json.loads(json.dumps(turns.to_record(turn)))) == turn


@cache
def _form(name: str) -> type[msgspec.Struct]:
    operation = next(one for one in OPERATIONS if one.name == name)
    return codec.form(name, operation.fields)


def fuzz_bundle(raw: bytes) -> None:
    """A readable export, a sealed bundle, the inside of one, and a copy in SQLite."""
    sealer = Sealer(_KEY, Purpose.BUNDLE, None, "bundle")
    header = json.dumps({"format": bundle.BUNDLE, "version": bundle.VERSION, "name": _NAME})
    stream = sealer.seal_stream(raw, row_id=_NAME.encode(), version=bundle.VERSION, random=bytes)
    whole = header.encode() + b"\n" + stream
    for read in (
        lambda: bundle.from_json(raw),
        lambda: bundle.unseal(raw, _KEY),
        lambda: bundle.unseal(whole, _KEY),
        lambda: bundle.name_of(raw),
        lambda: bundle.from_json(copies.as_ours(raw, _SCOPE)),
        lambda: sqlite.read(raw),
    ):
        with suppress(InvalidRequest, SealBroken):
            read()


def fuzz_analysis(raw: bytes) -> None:
    """A text as the index, the tokenizer of the embedder and the parser of questions read it."""
    text = raw.decode("utf-8", "ignore")
    found = analysis.words(text)
    assert all(found)
    analysis.terms(text)
    analysis.wanted(text)
    analysis.read_signs(text)
    analysis.holds(text)(text)
    _embedder().embed([text])
    question.parse(text, {0: "Alice", 1: "user", 2: "assistant"}, asked_at=_NOW, latest=_NOW)
    with suppress(InvalidRequest):
        record = turns.Record(user=text, assistant=text[:100], session="s")
        RulesDistiller().distill(record.turn("turn-1", _NOW, Actor.USER))


@cache
def _embedder() -> StaticEmbedder:
    return StaticEmbedder(SystemClock())


def fuzz_secrets(raw: bytes) -> None:
    """A text through the guard: what was cleaned stays as it is, and nothing breaks a line."""
    text = raw.decode("utf-8", "ignore")
    once = clean(text)
    assert clean(once) == once
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert one_line(line) == line
    away = redact(once)
    assert redact(away.text).text == away.text


def fuzz_history(raw: bytes) -> None:
    """Pages of a history that others keep, and the answers of models in them."""
    pieces = (raw[at : at + 64] for at in range(0, len(raw), 64))
    with suppress(EOFError):
        for line in history.lines(pieces, framed=bool(raw[:1] == b"{")):
            _read_line(line or b"")
    messages.answer_text(raw.decode("utf-8", "replace"))


def _read_line(line: bytes) -> None:
    parsed = messages.parsed(line)
    entry = parsed if isinstance(parsed, dict) else None
    replay.time_of(entry)
    for body in ({"agent_id": "a", "entry": entry}, entry or {}):
        for read in (entries.told, entries.asked, entries.dropped):
            with suppress(entries.EntryRefused):
                read(body)


def seeds(name: str) -> list[bytes]:
    """Inputs a target takes as they are: what the fuzzer begins with."""
    memory = {
        "id": "mem-1", "kind": "fact", "content": "Alice likes tea.", "origin": "user",
        "recorded_at": "2026-05-01T00:00:00+00:00", "tags": ["tea"], "number": 1,
    }  # fmt: skip
    turn = {
        "id": "t1",
        "at": "2026-05-01T00:00:00+00:00",
        "user": "I prefer tea.",
        "assistant": "ok",
    }
    export = {
        "format": "scrubjay-export", "version": bundle.VERSION, "scope": "a/b", "made_at": "",
        "count": 1, "memories": [memory], "turns": [turn],
    }  # fmt: skip
    said = {"messages": [{"role": "user", "content": "I prefer green tea since May 3rd."}]}
    answered = {"format": "json", "json": {"choices": [{"message": {"content": "Noted."}}]}}
    streamed = {"format": "sse", "text": 'data: {"choices":[{"delta":{"content":"No"}}]}\n\n'}
    entry = {"id": "e1", "ts": "2026-05-01T00:00:00Z", "request_original": said}
    lines = [{**entry, "response": one} for one in (answered, streamed)]
    inside: list[dict[str, object]] = [
        {"type": "scope", "scope": "a/b", "made_at": "", "lookup": None}
    ]
    inside += [{"type": "memory", "memory": memory}, {"type": "turn", "turn": turn}]
    texts = ["password is hunter2Hunter2!", "eyJhbGciOi.eyJzdWIi.c2ln https://a:b@c.d/e \x1b[1mx"]
    texts += ["two weeks ago, on 3 May 2026 at 12.5 km; what did I say yesterday? 昨日 何を"]
    found: Mapping[str, list[str]] = {
        "codec": [
            *(chr(at) + json.dumps(one.example) for at, one in enumerate(OPERATIONS)),
            "\0" + json.dumps(memory),
            "\0" + json.dumps(turn),
        ],
        "bundle": [json.dumps(export), "\n".join(map(json.dumps, inside))],
        "analysis": texts,
        "secrets": texts,
        "history": ["\n".join(map(json.dumps, lines)) + "\n", streamed["text"]],
    }
    copies = [sqlite.write(json.dumps(export).encode())] if name == "bundle" else []
    return [*(one.encode() for one in found[name]), *copies]


TARGETS: Final[Mapping[str, Target]] = {
    "codec": fuzz_codec,
    "bundle": fuzz_bundle,
    "analysis": fuzz_analysis,
    "secrets": fuzz_secrets,
    "history": fuzz_history,
}
