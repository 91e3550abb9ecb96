"""Write tests/vectors/records.json: the JSON inside sealed cells and exports, byte by byte.

The file is the fixed thing. A vector that is in it is never changed by this script: if the code
makes other bytes of it, the script says which and writes nothing. New vectors are added.

Run it from the root of the repository: python -m tools.make_record_vectors
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrubjay.model.errors import ScrubjayError
from tests.record_codecs import CODECS, SHOWN

TARGET = Path(__file__).parent.parent / "tests" / "vectors" / "records.json"
Vector = dict[str, Any]
Fields = dict[str, Any]

ID = "mem-00000000-0000-4000-8000-000000000001"
OTHER = "mem-00000000-0000-4000-8000-000000000002"
AT = "2026-01-02T03:04:05+00:00"
MICROS = "2026-01-02T03:04:05.000006+00:00"
ODD = (
    'tab\there "quoted" back\\slash \n\r\b\f \x00\x1f\x7f \u2028 é ß 日本語 🪶 e\u0301 </script> /'
)
MINIMAL: Fields = {"id": ID, "kind": "fact", "content": "Tea", "recorded_at": AT}
NESTED: Fields = {
    "": None,
    "deep": {"list": [1, -2, 3.5, True, False, None, "é", [], {}], "of": {"of": {"of": "🪶"}}},
    "numbers": [0, 0.1, 1e-7, 1e16, 1 / 3, -0.0, 2**53, 2**63, 2**64, 2**70, 1e308],
    "é\n": "key",
}
LATER: Fields = {"archived_at": AT}
LATER_PROVENANCE: Fields = {"key_id": "7o3cbnte"}
"""Fields that came after the vector of all fields, which stays as it was: they are added here."""
FULL: Fields = {
    **MINIMAL,
    "kind": "instruction",
    "content": ODD,
    "recorded_at": MICROS,
    "origin": "web",
    "provenance": {
        "actor": "agent",
        "session": "s 1",
        "channel": "#général",
        "message_id": "m-1",
        "reason": 'because "so"',
        "said_at": MICROS,
    },
    "speaker": "Åsa",
    "position": 7,
    "approved": "a" * 64,
    "key": "key/1",
    "supersedes": OTHER,
    "superseded_by": "mem-3",
    "retired_at": AT,
    "valid_from": "0001-01-01T00:00:00+00:00",
    "valid_to": "9999-12-31T23:59:59.999999+00:00",
    "expires_at": MICROS,
    "tags": ["one", "zwei", "三", '"'],
    "sources": [OTHER, "turn-1"],
    "importance": 0.1,
    "pinned": True,
    "metadata": NESTED,
}
TURN: Fields = {"id": "turn-1", "at": AT}
FULL_TURN: Fields = {
    "id": "turn-1",
    "at": MICROS,
    "user": ODD,
    "assistant": "Sí 🪶",
    "session": "s 1",
    "model": "some/model",
    "channel": "#c",
    "origin": "other_agent",
    "actor": "system",
    "metadata": NESTED,
}
CELL = {"collection": "memory", "epoch": 3, "nonce": "00112233445566778899aabb"}
RECEIPT: Fields = {"address": "abcdefgh", "verb": "forget", "at": MICROS, "erased": 1}
MANIFEST: Fields = {
    "id": "m1", "epoch": 1, "upto": 12, "known": 9, "analyzer": "1/é", "segments": []
}  # fmt: skip
SEGMENT = {"columns": "c0", "postings": "p0", "vectors": "v0", "dead": [0, 5]}
MARK: Fields = {
    "micros": 1767323045000006,
    "tie": 2**47,
    "id": "turn-1",
    "state": 0,
    "gist": "Tea é 🪶",
}


def memories() -> Iterator[tuple[str, Fields]]:
    yield "all defaults", MINIMAL
    yield "all fields", FULL
    for kind in [
        "preference",
        "instruction",
        "correction",
        "procedure",
        "context",
        "pattern",
        "episode",
        "summary",
    ]:
        yield f"kind {kind}", {**MINIMAL, "kind": kind}
    for origin in ["operator", "agent", "import", "other_agent", "tool", "web"]:
        yield f"origin {origin}", {**MINIMAL, "origin": origin}
    for share in (0.0, 0.1, 0.3, 1e-7, 1e-5, 1 / 3, 5e-324, 0.9999999999999999, 1.0):
        yield f"importance {share!r}", {**MINIMAL, "importance": share}
    for actor in ("operator", "agent", "system"):
        yield f"actor {actor}", {**MINIMAL, "provenance": {"actor": actor}}
    for name in ("speaker", "position", "approved", "key", "supersedes", "superseded_by", "tags",
                 "sources", "pinned", "metadata", "retired_at", "valid_from", "valid_to",
                 "expires_at"):  # fmt: skip
        yield f"only {name}", {**MINIMAL, name: FULL[name]}
    for name, value in LATER.items():
        yield f"only {name}", {**MINIMAL, name: value}
    for name, value in {**FULL["provenance"], **LATER_PROVENANCE}.items():
        yield f"only provenance {name}", {**MINIMAL, "provenance": {name: value}}
    yield "position 0", {**MINIMAL, "position": 0}
    yield "tenths of a second", {**MINIMAL, "recorded_at": "2026-01-02T03:04:05.100000+00:00"}
    yield "escapes", {**MINIMAL, "content": ODD}
    deep: Any = "bottom"
    for _ in range(60):
        deep = {"d": [deep]}
    yield "metadata sixty deep", {**MINIMAL, "metadata": {"deep": deep}}


def turns() -> Iterator[tuple[str, Fields]]:
    yield "all defaults", TURN
    yield "all fields", FULL_TURN
    for name in ("user", "assistant", "session", "model", "channel", "origin", "actor", "metadata"):
        yield f"only {name}", {**TURN, name: FULL_TURN[name]}
    for name, value in LATER_PROVENANCE.items():
        yield f"only {name}", {**TURN, name: value}


def written() -> Iterator[tuple[str, str, Fields]]:
    """What today's code writes: type, name and plain fields."""
    for name, fields in memories():
        yield "memory", name, fields
        yield "memory record", name, {**fields, "number": 41, "version": 2}
    for name, fields in turns():
        yield "turn", name, fields
        yield "turn record", name, fields
    made = {"scope": "tenant/owner", "made_at": AT}
    two = [
        {**MINIMAL, "superseded_by": OTHER, "retired_at": AT, "number": 1},
        {**MINIMAL, "id": OTHER, "supersedes": ID, "content": ODD, "number": 2, "version": 3},
    ]
    yield "export", "empty", {**made, "memories": []}
    yield (
        "export",
        "memories and turns",
        {**made, "memories": two, "turns": [TURN, {**FULL_TURN, "id": "t:2"}]},
    )
    yield "bundle", "empty", {**made, "memories": []}
    backup = {
        "memories": two,
        "turns": [FULL_TURN],
        "lookup": "07" * 32,
        "tombstones": ["01" * 16, "02" * 16],
        "audit": [["00ff", "0a" * 32]],
        "extraction": {"paused": True, "done": 1, "waiting": ["turn-1"]},
    }
    yield "bundle", "backup", {**made, **backup}
    yield "receipt", "all defaults", RECEIPT
    full = {"derived": 2, "already": 3, "cells": [CELL, {**CELL, "epoch": 4}], "rotated": True,
            "backups": [{"name": "b é", "expires": "2026-02-03"}], "audit_count": 9,
            "audit_mac": "0b" * 32}  # fmt: skip
    yield "receipt", "all fields", {**RECEIPT, **full}
    yield "receipt", "no microseconds", {**RECEIPT, "at": AT}
    yield "receipt", "copies and texts to derive again", {**RECEIPT, "copies": 2, "again": 1}
    happened = {"count": 1, "at": MICROS, "verb": "retain", "actor": "user", "number": 1}
    yield "audit event", "no subjects", happened
    yield "audit event", "subjects", {**happened, "subjects": ["00112233445566ff", "ff" * 8]}
    yield "audit event", "no microseconds", {**happened, "at": AT, "verb": "taint.web"}
    yield "audit event", "none of many", {**happened, "number": 0, "actor": "system"}
    yield "manifest", "no segments", MANIFEST
    two_segments = [SEGMENT, {**SEGMENT, "columns": "c1", "dead": []}]
    yield "manifest", "segments", {**MANIFEST, "segments": two_segments}
    yield "session", "tainted", {"now": AT, "tainted": "web"}
    yield "session", "spent", {"now": AT, "spent": {"writes": 3, "né": 1}}
    yield "session", "tainted, then spent", {"now": AT, "tainted": "tool", "spent": {"writes": 1}}
    yield "session", "spent, then tainted", {"now": AT, "spent": {"writes": 1}, "tainted": "tool"}
    for number, value in enumerate((NESTED, [], 0, ODD, [1, [ODD, None]])):
        yield "note", f"any {number}", {"value": value}
    jobs = [{"sources": [ID, OTHER], "hidden": "mem-é"}, {"sources": [OTHER], "hidden": None}]
    yield "derivations", "hidden and erased", {"jobs": jobs}
    yield "session", "shown", {"now": AT, "shown": [SHOWN]}
    yield "backlog", "all defaults", {}
    names = [
        "cursor",
        "redo",
        "done",
        "failed",
        "memories",
        "repeats",
        "tokens_in",
        "tokens_out",
        "day",
        "spent",
    ]
    counts = {name: at + 1 for at, name in enumerate(names)}
    yield "backlog", "all fields", {**counts, "again": {"turn-1": 0, "t:2": 2}, "paused": True}
    later = [MARK, {**MARK, "micros": MARK["micros"] + 1, "id": "t", "state": 3, "gist": ODD}]
    pause = [MARK, {**MARK, "micros": MARK["micros"] + 3_600_000_000, "id": "t"}]
    early = {**MARK, "micros": -1, "tie": 0}
    for kind in ("timeline leaf", "timeline root"):
        yield kind, "one turn", {"marks": [MARK]}
        yield kind, "two turns", {"marks": later}
        yield kind, "a pause", {"marks": pause}
        yield kind, "before 1970", {"marks": [early, MARK]}
    yield "scope name", "plain", {"tenant": "local", "owner": "alice"}


def only_read() -> Iterator[tuple[str, str, str, Fields]]:
    """What older code wrote, or others write: read as ever, but not written like this."""
    base = f'"id":"{ID}","kind":"fact","content":"Tea","recorded_at":"2026-01-02T03:04:05Z"'
    absent = ["speaker", "position", "approved", "key", "supersedes", "superseded_by"]
    absent += ["retired_at", "valid_from", "valid_to", "expires_at"]
    nulls = ",".join(f'"{name}":null' for name in absent)
    shown = '"provenance":{},"tags":[],"sources":[],"importance":0.5,"pinned":false,"metadata":{}'
    for kind in ("memory", "memory record"):
        yield kind, "defaults written out", f'{{{base},"origin":"user",{shown}}}', MINIMAL
        yield kind, "nulls written out", f'{{{base},"origin":"user",{nulls}}}', MINIMAL
        spaced = '{ "origin" : "user", ' + base.replace(":", " : ").replace(" : 04 : 05", ":04:05")
        yield kind, "spaces and another order", spaced + "\n}", MINIMAL
        asciis = f'{{{base},"origin":"user","speaker":"\\u00c5sa \\ud83e\\udeb6"}}'
        yield kind, "escaped as ASCII", asciis, {**MINIMAL, "speaker": "Åsa 🪶"}
        whole = f'{{{base},"origin":"user","importance":1}}'
        yield kind, "importance as a whole number", whole, {**MINIMAL, "importance": 1.0}
    offset = base.replace("03:04:05Z", "05:04:05+02:00")
    yield "memory record", "another time zone", f'{{{offset},"origin":"user"}}', MINIMAL
    plain = base.replace("05Z", "05.5Z")
    half = {**MINIMAL, "recorded_at": "2026-01-02T03:04:05.500000+00:00"}
    yield "memory record", "one digit of a second", f'{{{plain},"origin":"user"}}', half
    bare = '{"id":"turn-1","at":"2026-01-02T03:04:05Z"}'
    yield "turn record", "no origin and no actor", bare, TURN
    zone = '{"id":"turn-1","at":"2026-01-02T05:04:05+02:00"}'
    yield "turn record", "another time zone", zone, TURN
    empty = {"scope": "tenant/owner", "made_at": AT, "memories": []}
    old = {"format": "scrubjay-export", "version": 1, **empty, "count": 0}
    yield "export", "before there were turns", json.dumps(old), empty
    line = {"type": "scope", "scope": "tenant/owner", "made_at": AT, "lookup": None}
    head = {"format": "scrubjay-bundle", "version": 1, "name": "b"}
    text = "\n".join(map(json.dumps, (head, line, {"type": "end", "memories": 0})))
    yield "bundle", "before turns and extraction", text, empty
    yield "session", "before allowances", '{"tainted": "web"}', {"tainted": "web"}
    yield "session", "nothing known", "{}", {}
    yield "backlog", "a part of its fields", '{"cursor":4,"done":2}', {"cursor": 4, "done": 2}
    mark = [MARK["micros"], MARK["tie"], "turn-1"]
    short = {"marks": [{"micros": mark[0], "tie": mark[1], "id": "turn-1"}]}
    yield "timeline leaf", "a mark of a slot, without state", json.dumps([mark]), short
    yield "timeline root", "before episodes were counted", json.dumps([[*mark[:2], 0, 1]]), short


def refused() -> Iterator[tuple[str, str, str]]:
    """What is refused: type, name and bytes."""
    good = {**MINIMAL, "origin": "user"}
    bad: dict[str, list[Any]] = {
        "id": [None, 1, "", "a b", "x" * 201],
        "kind": [None, "thing", 1, []],
        "content": [None, "", "  ", 1, "x" * 65_537],
        "recorded_at": [None, "", "yesterday", 5, "2026-01-02T03:04:05"],
        "origin": [None, "nobody"],
        "provenance": [None, [], {"who": 1}, {"actor": "x"}, {"session": 1}, {"said_at": None}],
        "tags": [None, "tag", [1], [""], ["a", "a"], {}],
        "sources": [None, "mem-1", ["a b"], [ID, ID]],
        "importance": [None, True, "0.5", -0.1, 1.1],
        "pinned": [None, 1, "true"],
        "metadata": [None, [], "x"],
        "number": [None, -1, 1.0, True, "1", 2**53],
        "version": [None, 0, 1.5],
        "speaker": [1, "", "x" * 513],
        "position": [-1, 1.0, True],
        "approved": [1],
        "key": [1, ""],
        "supersedes": [1, "a b"],
        "superseded_by": [""],
        "retired_at": ["never"],
        "expires_at": [0, "2026-01-02T03:04:05"],
        "more": [1],
    }
    for name, values in bad.items():
        for at, value in enumerate(values):
            yield "memory record", f"{name}, {at}", json.dumps({**good, name: value})
        if name in MINIMAL or name == "origin":
            less = {key: value for key, value in good.items() if key != name}
            yield "memory record", f"no {name}", json.dumps(less)
    for text in ("[]", "null", '"text"', "1"):
        yield "memory record", f"no object: {text}", text
        yield "turn record", f"no object: {text}", text
        yield "receipt", f"no object: {text}", text
        yield "export", f"no object: {text}", text
    wrong: dict[str, list[Any]] = {
        "id": [None, "a b"], "at": [None, "x", "2026-01-02T03:04:05"], "user": [1, None],
        "assistant": [[]], "session": [1, ""], "model": [1], "channel": [""], "origin": ["x"],
        "actor": ["x", None], "metadata": [[], None], "more": [1],
    }  # fmt: skip
    for name, values in wrong.items():
        for at, value in enumerate(values):
            yield "turn record", f"{name}, {at}", json.dumps({**TURN, name: value})
    yield "turn record", "no at", '{"id":"turn-1"}'
    yield "turn record", "no id", json.dumps({"at": AT})
    receipt = {"format": "scrubjay-receipt", "version": 1, **RECEIPT, "cells": [], "backups": []}
    for name, value in (("format", "x"), ("version", 2), ("at", "2026-01-02T03:04:05"), ("at", 1),
                        ("cells", [{**CELL, "nonce": "00"}]), ("cells", [{}]), ("erased", "1"),
                        ("cells", [{**CELL, "epoch": "3"}]), ("verb", 1), ("more", 1),
                        ("backups", [{"name": "b", "expires": "soon"}])):  # fmt: skip
        yield "receipt", f"{name}: {value}", json.dumps({**receipt, name: value})
    empty = {"scope": "tenant/owner", "made_at": AT, "memories": [], "count": 0}
    export = {"format": "scrubjay-export", "version": 1, **empty}
    for name, value in (("format", "x"), ("version", 3), ("count", 1), ("memories", {}),
                        ("turns", {}), ("turns", [1]), ("scope", ""),
                        ("turns", [TURN, TURN])):  # fmt: skip
        yield "export", f"{name}: {json.dumps(value)}", json.dumps({**export, name: value})
    twice = {**export, "count": 2, "memories": [good, good]}
    yield "export", "one id twice", json.dumps(twice)
    loose = {**export, "count": 2}
    loose["memories"] = [{**good, "superseded_by": OTHER}, {**good, "id": OTHER}]
    yield "export", "a successor that does not name it", json.dumps(loose)
    yield "export", "cut short", json.dumps(export)[:-2]


def code_of(kind: str, text: str) -> str:
    """The code of the error that refuses these bytes."""
    try:
        found = CODECS[kind].decode(text.encode())
    except ScrubjayError as error:
        return error.code
    raise SystemExit(f"{kind} is not refused: {text[:100]} gives {found}")


def vectors() -> Vector:
    """Everything the file says."""
    return {
        "about": "The JSON inside sealed cells and exports; see tools/make_record_vectors.py.",
        "written": [
            {
                "name": name,
                "type": kind,
                "bytes": CODECS[kind].encode(CODECS[kind].build(fields)).decode(),
                "fields": fields,
            }
            for kind, name, fields in written()
        ],
        "read": [
            {"name": name, "type": kind, "bytes": text, "fields": fields}
            for kind, name, text, fields in only_read()
        ],
        "refused": [
            {"name": name, "type": kind, "bytes": text, "code": code_of(kind, text)}
            for kind, name, text in refused()
        ],
    }


def changed(old: Vector, new: Vector) -> list[str]:
    """The vectors that were there and are not any more, or not as they were."""
    kept = {part: [json.dumps(one) for one in new[part]] for part in ("written", "read", "refused")}
    return [
        f"{one['type']}: {one['name']}"
        for part, found in kept.items()
        for one in old[part]
        if json.dumps(one) not in found
    ]


def rendered(found: Vector) -> str:
    """The file as it is written: one vector a line, in ASCII."""
    parts = [f'"about": {json.dumps(found["about"])}']
    for part in ("written", "read", "refused"):
        lines = ",\n    ".join(map(json.dumps, found[part]))
        parts.append(f'"{part}": [\n    {lines}\n  ]')
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


if __name__ == "__main__":
    made = vectors()
    if TARGET.exists():
        lost = changed(json.loads(TARGET.read_text(encoding="utf-8")), made)
        if lost:
            sys.exit("These would change, so nothing is written:\n" + "\n".join(lost))
    TARGET.write_text(rendered(made), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")
