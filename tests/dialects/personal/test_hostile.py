"""What strangers and careless callers send: refused with a sentence, at a bounded cost."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx2
import pytest

from scrubjay import codec
from scrubjay.engine import Kernel
from scrubjay.model.errors import StoreError
from scrubjay.surfaces.personal import copies
from scrubjay.surfaces.personal.operations import OPERATIONS, PersonalOperation
from tests.dialects.personal.conftest import Key, Person
from tests.dialects.personal.test_copies import PHRASE, READER, exports

ODD: tuple[Any, ...] = (
    2**53 - 1, "\ud800", "0001-01-01T00:00:00+23:59", {"query": "\ud800"}, [[[[]]]],
)  # fmt: skip
ODDER: tuple[Any, ...] = (
    True, -1, 10**30, 1e308, "", "\0", "x" * 70_000, "9999-12-31T23:59:59Z", [], ["x"] * 100,
    {"a": None}, {"before": "0001-01-01T00:00:00+23:59"}, {"memory_ids": ["\0"]},
    {"after": "9999-12-31T23:59:59-23:59"},
)  # fmt: skip
GOOD: dict[str, Any] = {
    "category": "learned_context", "content_type": "fact", "content": "x", "query": "x",
    "memory_id": "mem_x", "reason": "x", "target": {"query": "x"}, "right": "access",
    "purpose": "facts", "on": True, "export_id": "exp-x", "request_id": "req-x",
}  # fmt: skip


def asked(key: Key, operation: PersonalOperation, values: dict[str, Any]) -> Any:
    method, path = operation.http
    for name in ("export_id", "request_id"):
        path = path.replace(f"{{{name}}}", "x")
        values.pop(name, None)
    if method == "GET":
        told = {name: str(one).encode("utf-8", "replace")[:4_000] for name, one in values.items()}
        return key.send(f"/v1/personal{path}", method="GET", **told)
    headers = key.headers | {"Content-Type": "application/json"}
    raw = json.dumps(values)  # with half characters, which the client would refuse
    return httpx2.post(f"{key.url}/v1/personal{path}", content=raw, headers=headers, timeout=60)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_whatever_a_field_holds_it_is_no_failure_of_the_service(
    alice: Person, operation: PersonalOperation, more: bool
) -> None:
    alice.store("Alice drinks tea")
    wanted = codec.wanted(operation.request)
    needed = {name: GOOD[name] for name, (_, default) in wanted.items() if default is ...}
    for name in wanted:
        for odd in (*ODD, *(ODDER if more else ())):
            answer = asked(alice.owner, operation, needed | {name: odd})
            assert answer.status_code < 500, (name, odd, answer.text)


# -- imports -------------------------------------------------------------------------------------


def sent(alice: Person, raw: bytes, **beside: Any) -> Any:
    content = base64.b64encode(raw).decode()
    return alice.owner.send("/v1/personal/import", {"content": content} | beside)


RECORD = {
    "memory_id": "m1",
    "category": "preference",
    "content_type": "preference",
    "content": "Tea",
    "created_at": "2026-05-01T10:00:00Z",
}
WRONG: tuple[Any, ...] = (1, "odd", [1], {"a": 1}, "\ud800", 10**30)
BAD: tuple[Any, ...] = (
    {"categories": 1}, {"categories": {"x": 1}}, {"categories": {"x": {"records": 1}}},
    *({"categories": {"x": {"records": [RECORD | {name: odd}]}}}
      for name in (*RECORD, "more", "topic_tags", "importance_score", "session_id", "channel")
      for odd in WRONG
      if [name, odd] not in [["memory_id", "odd"], ["content", "odd"], ["channel", "odd"],
                             ["session_id", "odd"], ["importance_score", 1]]),
    *({"categories": {}, name: odd} for name in ("turns", "conversations", "entries", "documents")
      for odd in (*WRONG[:4], [{}], [{"id": 1}])),
)  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_file_that_is_no_export_is_refused_and_nothing_of_it_is_kept(
    alice: Person, bad: dict[str, Any]
) -> None:
    answer = sent(alice, json.dumps({"export_version": "1.0", **bad}).encode())
    assert 400 <= answer.status_code < 500, answer.text
    assert alice.living_rows()["memory"] == 0


@pytest.mark.parametrize("depth", [150, 190, 200, 900, 990, 1_000, 100_000])
def test_an_import_however_deep_is_refused_or_read(alice: Person, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    for member in ("turns", "documents", "exported_at", "other"):
        raw = f'{{"export_version": "1.0", "categories": {{}}, "{member}": {nested}}}'
        assert sent(alice, raw.encode()).status_code < 500


# Sealed once, and not by every test: that takes a second and as much memory as it pleases.
SEALED = base64.b64decode(
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBwNEYrb1psWGt1WUdBWFY3Y0xkU0RBIDE4CjZack1zcmZTNSsv"
    "RGVrZ1ByNHQwd3k1R2w4cDJnQ0kyQWR5aUR5V29saEEKLS0tIG44MmRFZkp5QThOWVBOd2JaK3hVTCtNeUhYdTFvZHU1"
    "QjNJaHFqVmkwbFEKysT1rHQPCw+1Kz2PXIrMLC/qjo4/D0iB83ERdVUiVMvao2b0"
)


def worked(raw: bytes, work: bytes, *, armored: bool = False) -> bytes:
    """A file sealed by a passphrase, whose head asks for so much work."""
    before, _, rest = raw.partition(b"\n-> scrypt ")
    salt, _, rest = rest.partition(b" ")
    forged = before + b"\n-> scrypt " + salt + b" " + work + rest[rest.index(b"\n") :]
    if not armored:
        return forged
    text = base64.b64encode(forged)
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    marks = b"-----BEGIN AGE ENCRYPTED FILE-----", b"-----END AGE ENCRYPTED FILE-----"
    return b"\n".join([marks[0], *lines, marks[1], b""])


@pytest.mark.parametrize("armored", [False, True])
@pytest.mark.parametrize("work", [b"22", b"23", b"30", b"63", b"022", b"+22", b"x", b""])
def test_a_sealed_file_cannot_ask_for_gigabytes(alice: Person, work: bytes, armored: bool) -> None:
    raw = worked(SEALED, work, armored=armored)
    answer = sent(alice, raw, passphrase=PHRASE)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_what_a_passphrase_sealed_is_opened_in_both_forms() -> None:
    work = b"18"
    for armored in (False, True):
        assert copies.opened(worked(SEALED, work, armored=armored), PHRASE, None) == b"told"


# -- the register, and the jobs ------------------------------------------------------------------


def test_a_right_that_is_asked_for_again_is_one_request(alice: Person) -> None:
    first = alice.owner.do("requests", right="access")
    assert alice.owner.do("requests", right="access") == first
    alice.admin.do(f"requests/{first['id']}")
    assert alice.owner.do("requests", right="access")["id"] != first["id"]


def test_the_register_of_a_person_does_not_grow_for_ever(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrubjay.surfaces.personal.register._KEPT", 3)
    kept = list[str]()
    for _ in range(6):
        made = alice.owner.do("requests", right="access")
        alice.owner.do(f"requests/{made['id']}")
        kept.append(made["id"])
    assert [one["id"] for one in alice.owner.look("requests")["data"]] == kept[-3:]


def test_one_person_has_few_exports_at_a_time(alice: Person) -> None:
    alice.store("Alice drinks tea")
    reader = str(READER.to_public())
    for _ in range(5):
        alice.owner.do("export", recipient=reader)
    assert alice.owner.refused("export", recipient=reader) == (429, "limit_reached")
    exports(alice).work()
    assert alice.owner.refused("export", recipient=reader) == (429, "limit_reached")
    alice.clock.advance(seconds=25 * 3600)
    exports(alice).work()
    alice.owner.do("export", recipient=reader)


@pytest.mark.parametrize("failure", [StoreError("damaged"), RuntimeError("a defect")])
def test_an_export_that_fails_ends_and_holds_up_no_other(
    alice: Person, bob: Person, engine: Kernel, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    reader = str(READER.to_public())
    alice.store("Alice drinks tea")
    bob.store("Bob drinks coffee")
    jobs = [one.owner.do("export", recipient=reader)["export_id"] for one in (alice, bob)]
    work, made = exports(alice), type(exports(alice))._made

    def fail(self: Any, sheet: Any, *rest: Any) -> Any:
        if sheet.id == jobs[0]:
            raise failure
        return made(self, sheet, *rest)

    monkeypatch.setattr(type(work), "_made", fail)
    work.work()
    assert alice.owner.look(f"exports/{jobs[0]}")["state"] == "failed"
    assert bob.owner.look(f"exports/{jobs[1]}")["state"] == "ready"
