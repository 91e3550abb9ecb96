"""What HTTP adds to the verbs: scopes, grants, versions, repeats, pages and sizes."""

from __future__ import annotations

import asyncio
import base64
import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from time import process_time
from typing import Any, cast

import httpx2
import pytest

from scrubjay.access import Grant
from scrubjay.client import connect
from scrubjay.engine import Kernel
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.scope import Scope
from scrubjay.service.endpoint import read_body
from scrubjay.service.problems import Problem
from scrubjay.service.rest import OPERATIONS
from scrubjay.service.routes import PIECE, Pieces
from tests.unit.service.conftest import Caller

Calling = Callable[..., Caller]


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The problem an answer is, which has this status and code."""
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code), body
    assert answer.headers["content-type"] == "application/problem+json"
    assert body["request_id"] == answer.headers["x-request-id"]
    return body


# -- who asks, for what ------------------------------------------------------------------------


def test_without_a_key_nothing_is_answered(caller: Calling) -> None:
    nobody = caller()
    for operation in OPERATIONS:
        path = operation.path.format(id="mem-1", session="s", key_id="k")
        answer = nobody.http.request(operation.method, f"/v1{path}", json={})
        problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("token", ["x", "sj_", "sj_aaaaaaaa_b", "sj_local_", "Basic x", "é"])
def test_a_key_that_was_made_up_is_refused(caller: Calling, token: str) -> None:
    headers = {b"Authorization": f"Bearer {token}".encode()}
    problem(caller().http.get("/v1/key", headers=headers), 401, "unauthorized")


def test_every_operation_needs_exactly_its_grant(caller: Calling, scope: str) -> None:
    without = {
        grant: caller(scope, grants=tuple(one for one in Grant if one is not grant))
        for grant in Grant
    }
    for operation in OPERATIONS:
        if operation.grant is None:
            continue
        path = operation.path.format(id="mem-1", session="s", key_id="k")
        http = without[operation.grant].http
        answer = http.request(operation.method, f"/v1{path}", json={})
        assert f"the grant {operation.grant}" in problem(answer, 403, "forbidden")["detail"]


def test_a_key_for_one_scope_needs_no_header_and_reaches_no_other(alice: Caller) -> None:
    one = alice.retain()
    assert alice.http.get(f"/v1/memories/{one}").json()["content"] == "tea"
    for other in ("acme/somebody", "other/owner", "system/keys", "owner"):
        answer = alice.http.get(f"/v1/memories/{one}", headers={"X-Scrubjay-Scope": other})
        problem(answer, 403, "forbidden")


def test_a_key_for_a_tenant_names_the_scope_it_means(caller: Calling, scope: str) -> None:
    tenant = caller("acme/*")
    problem(tenant.http.get("/v1/memories"), 422, "invalid_request")
    answer = tenant.http.post(
        "/v1/memories", json={"content": "tea"}, headers={"X-Scrubjay-Scope": scope}
    )
    assert answer.status_code == 201


def test_recall_looks_in_other_scopes_only_where_the_key_covers_them(
    caller: Calling, scope: str
) -> None:
    caller(f"{scope}-team").retain("The team drinks tea")
    one = caller(scope)
    one.retain("tea")
    asked = {"query": "tea", "scopes": [f"{scope}-team"]}
    problem(one.http.post("/v1/recall", json=asked), 403, "forbidden")
    both = caller(scope, f"{scope}-team").http.post(
        "/v1/recall", json=asked, headers={"X-Scrubjay-Scope": scope}
    )
    assert {hit["scope"] for hit in both.json()["hits"]} == {scope, f"{scope}-team"}


def test_a_question_does_not_make_a_scope(caller: Calling, scope: str) -> None:
    problem(caller(scope).http.get("/v1/memories"), 404, "not_found")
    problem(caller(scope).http.post("/v1/recall", json={"query": "tea"}), 404, "not_found")
    assert scope not in caller("*").http.get("/v1/scopes").json()["data"]


def test_scopes_are_listed_as_far_as_the_key_reaches(alice: Caller, scope: str) -> None:
    alice.retain()
    assert alice.http.get("/v1/scopes").json() == {"data": [scope], "next_cursor": None}


def test_who_acts_and_how_trusted_is_the_keys_to_say(caller: Calling, scope: str) -> None:
    agent = caller(scope, actor=Actor.AGENT)
    answer = agent.http.post("/v1/memories", json={"content": "x", "actor": "user"})
    assert problem(answer, 422, "invalid_request")["errors"][0]["pointer"] == "#/actor"
    made = agent.http.get(f"/v1/memories/{agent.retain()}").json()
    own = agent.http.get("/v1/key").json()["id"]
    assert made["provenance"] == {"actor": "agent", "key_id": own}


def test_a_key_writes_with_its_own_origin_and_claims_no_higher(
    service: Any, caller: Calling, scope: str
) -> None:
    token = service.keys.create(name="web", scopes=[scope], origin=Origin.TOOL).token
    headers = {"Authorization": f"Bearer {token}"}
    http = caller().http
    made = http.post("/v1/memories", json={"content": "x"}, headers=headers).json()["id"]
    assert http.get(f"/v1/memories/{made}", headers=headers).json()["origin"] == "tool"
    claimed = http.post("/v1/memories", json={"content": "x", "origin": "user"}, headers=headers)
    problem(claimed, 403, "forbidden")


# -- keys ----------------------------------------------------------------------------------------


def test_a_key_makes_no_key_that_may_do_more(caller: Calling, scope: str) -> None:
    admin = caller(scope, grants=(Grant.ADMIN, Grant.READ), actor=Actor.AGENT)
    for wish in (
        {"scopes": ["acme/other"]},
        {"scopes": ["*"]},
        {"scopes": ["acme/*"]},
        {"scopes": ["system/keys"]},
        {"grants": ["write"]},
        {"as_actor": "user"},
    ):
        body = {"name": "more", "scopes": [scope], "grants": ["read"], **wish}
        problem(admin.http.post("/v1/keys", json=body), 403, "forbidden")


def test_a_key_made_over_http_is_good_until_it_is_revoked(caller: Calling, scope: str) -> None:
    admin = caller(scope)
    issued = admin.http.post("/v1/keys", json={"name": "n", "scopes": [scope]}).json()
    headers = {"Authorization": f"Bearer {issued['token']}"}
    assert caller().http.get("/v1/key", headers=headers).json() == issued["key"]
    listed = {one["id"]: one for one in admin.http.get("/v1/keys").json()["data"]}
    used_on = listed[issued["key"]["id"]]["used_on"]
    assert listed[issued["key"]["id"]] == {**issued["key"], "used_on": used_on}
    assert used_on == listed[issued["key"]["id"]]["created_at"][:10], "the day of its first use"
    assert issued["token"] not in admin.http.get("/v1/keys").text
    assert admin.http.delete(f"/v1/keys/{issued['key']['id']}").status_code == 200
    problem(caller().http.get("/v1/key", headers=headers), 401, "unauthorized")


def test_keys_of_other_scopes_are_neither_listed_nor_revoked(
    caller: Calling, alice: Caller, scope: str
) -> None:
    other = caller("acme/other-admin")
    assert alice.token is not None
    key_id = alice.token.split("_")[1]
    assert key_id not in other.http.get("/v1/keys").text
    problem(other.http.delete(f"/v1/keys/{key_id}"), 404, "not_found")


# -- versions ------------------------------------------------------------------------------------


def test_an_etag_changes_with_every_version_and_spares_a_body(alice: Caller) -> None:
    path = f"/v1/memories/{alice.retain()}"
    first = alice.http.get(path)
    same = alice.http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    changed = alice.http.patch(path, json={"pinned": True}, headers={"If-Match": "*"})
    assert changed.headers["etag"] != first.headers["etag"]
    again = alice.http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.headers["etag"]) == (200, changed.headers["etag"])


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_needs_the_version_it_is_meant_for(alice: Caller, method: str) -> None:
    path = f"/v1/memories/{alice.retain()}"
    how: dict[str, Any] = {"json": {"pinned": True}} if method == "PATCH" else {}
    problem(alice.http.request(method, path, **how), 428, "precondition_required")
    for stale in ('"0.0"', "W/" + alice.http.get(path).headers["etag"], "nonsense"):
        answer = alice.http.request(method, path, headers={"If-Match": stale}, **how)
        problem(answer, 412, "stale")
    assert alice.http.get(path).json()["version"] == 1
    fresh = {"If-Match": f'"0.0", {alice.http.get(path).headers["etag"]}'}
    assert alice.http.request(method, path, headers=fresh, **how).status_code == 200


def test_a_change_of_nothing_is_refused(alice: Caller) -> None:
    path = f"/v1/memories/{alice.retain()}"
    problem(alice.http.patch(path, json={}, headers={"If-Match": "*"}), 422, "invalid_request")


# -- pages ---------------------------------------------------------------------------------------


def test_pages_are_turned_by_a_signed_cursor_and_a_link(alice: Caller) -> None:
    made = [alice.retain(f"memory {number}", tags=["a b"]) for number in range(5)]
    seen, url = [], "/v1/memories?limit=2&tags=a%20b"
    while url:
        answer = alice.http.get(url)
        seen += [memory["id"] for memory in answer.json()["data"]]
        url = answer.links.get("next", {}).get("url", "")
    assert seen == made[::-1]


def test_a_cursor_opens_no_other_list(alice: Caller, caller: Calling, scope: str) -> None:
    for number in range(3):
        alice.retain(f"memory {number}")
    cursor = alice.http.get("/v1/memories?limit=1").json()["next_cursor"]
    other = caller(f"{scope}-other")
    other.retain()
    for forged in (cursor, cursor[:-2], "x" + cursor, "MQ", "é", ""):
        answer = other.http.get("/v1/memories", params={"cursor": forged})
        problem(answer, 422, "invalid_request")


# -- what comes in -------------------------------------------------------------------------------


def deep(levels: int) -> bytes:
    """A body whose metadata are nested so deep."""
    return b'{"content": "x", "metadata": ' + b'{"a":' * levels + b"1" + b"}" * (levels + 1)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed"),
        (b"\xff", 400, "malformed"),
        (b'{"content": "\xbd"}', 400, "malformed"),
        (b"[]", 422, "invalid_request"),
        (b'{"content": 5}', 422, "invalid_request"),
        (b'{"content": "\\ud800"}', 400, "malformed"),
        (deep(300), 422, "invalid_request"),
        (deep(100_000), 400, "malformed"),
        (b'{"content": "x", "importance": NaN}', 400, "malformed"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(
    alice: Caller, body: bytes, status: int, code: str
) -> None:
    headers = {"Content-Type": "application/json"}
    problem(alice.http.post("/v1/memories", content=body, headers=headers), status, code)


def test_metadata_that_is_far_too_large_is_refused_before_it_is_read(alice: Caller) -> None:
    """Eight megabytes of empty lists are half a gigabyte in memory, and seconds to walk."""
    body = b'{"id": "t", "user": "x", "assistant": "y", "metadata": {"a": ['
    body += b"[]," * 2_700_000 + b"1]}}"
    headers = {"Content-Type": "application/json"}
    begun = process_time()
    problem(alice.http.post("/v1/turns", content=body, headers=headers), 422, "invalid_request")
    assert process_time() - begun < 2
    escaped = '{"content": "x", "metadata": {"a": "' + "\\u0041" * 16_000 + '"}}'
    assert alice.http.post("/v1/memories", content=escaped, headers=headers).status_code == 201


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"tags": ["a", 7]}, "#/tags/1"),
        ({"unknown": 1}, "#/unknown"),
        ({"metadata": []}, "#/metadata"),
        ({"content": None}, "#/content"),
    ],
)
def test_a_wrong_field_is_pointed_at(alice: Caller, wrong: dict[str, Any], pointer: str) -> None:
    body = {"content": "x"} | wrong
    (error,) = problem(alice.http.post("/v1/memories", json=body), 422, "invalid_request")["errors"]
    assert error["pointer"] == pointer


def test_a_missing_field_is_pointed_at(alice: Caller) -> None:
    (error,) = problem(alice.http.post("/v1/memories", json={}), 422, "invalid_request")["errors"]
    assert error["pointer"] == "#/content"


def test_a_body_of_another_kind_is_refused(alice: Caller) -> None:
    answer = alice.http.post(
        "/v1/memories", content=b'{"content": "x"}', headers={"Content-Type": "text/plain"}
    )
    problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_too_large_is_refused(alice: Caller, declared: bool) -> None:
    size = 1024 * 1024 + 1
    content = b" " * size if declared else iter([b" " * size])
    answer = alice.http.post(
        "/v1/memories", content=content, headers={"Content-Type": "application/json"}
    )
    problem(answer, 413, "too_large")


def test_a_load_may_be_larger(alice: Caller) -> None:
    answer = alice.http.post("/v1/load", json={"content": "QUJD" * 400_000})
    problem(answer, 422, "invalid_request")


def test_a_session_with_a_slash_in_its_name_is_tainted(alice: Caller) -> None:
    alice.retain()
    answer = alice.http.post("/v1/sessions/visit%2F1/taint", json={})
    assert answer.json() == {"data": "web"}


def test_a_verb_that_needs_nothing_may_be_sent_nothing(alice: Caller) -> None:
    alice.retain()
    assert alice.http.post("/v1/rotate").status_code == 200


class Trickle:
    """As much of a request as reading a body needs; its body never ends."""

    headers: Mapping[str, str] = {}

    async def stream(self) -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()


def test_a_body_that_never_ends_is_given_up() -> None:
    with pytest.raises(Problem) as refused:
        asyncio.run(read_body(cast(Any, Trickle()), 100, lambda _: None, seconds=0.01))
    assert refused.value.status == 408


# -- lists, creates and problems -----------------------------------------------------------------


def test_a_create_is_refused_where_it_would_find_something(alice: Caller) -> None:
    once = {"If-None-Match": "*"}
    for named in ({"id": "mem-1"}, {"key": "k"}):
        body = {"content": "tea", **named}
        assert alice.http.post("/v1/memories", json=body, headers=once).status_code == 201
        again = alice.http.post("/v1/memories", json=body, headers=once)
        problem(again, 412, "precondition_failed")
        assert alice.http.post("/v1/memories", json=body).json()["outcome"] == "known"


@pytest.mark.parametrize("path", ["/memories/{id}/history", "/quarantine", "/receipts", "/keys"])
def test_a_long_list_is_given_in_parts(alice: Caller, scope: str, path: str) -> None:
    one = alice.retain("one")
    alice.http.post(f"/v1/memories/{one}/supersede", json={"content": "two"})
    for _ in range(2):
        alice.retain("Obey", kind="instruction", origin="web")
        alice.http.post("/v1/forget", json={"ids": [alice.retain()]})
        alice.http.post("/v1/keys", json={"name": "n", "scopes": [scope]})
    url = f"/v1{path.format(id=one)}"
    whole = alice.http.get(url).json()["data"]
    assert len(whole) >= 2
    parts, here = list[Any](), f"{url}?limit=1"
    while here:
        answer = alice.http.get(here)
        parts.append(answer.json()["data"])
        here = answer.links.get("next", {}).get("url", "")
    assert [part for (part,) in parts] == whole
    problem(alice.http.get(f"{url}?limit=0"), 422, "invalid_request")


def test_a_large_answer_is_sent_in_pieces_and_arrives_whole(alice: Caller) -> None:
    texts = [f"{number} " + "tea " * 15_000 for number in range(12)]
    for text in texts:
        alice.retain(text)
    answer = alice.http.get("/v1/memories")
    assert len(answer.content) > 2 * PIECE
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert [memory["content"] for memory in answer.json()["data"]] == texts[::-1]


# -- exports ------------------------------------------------------------------------------------


def test_a_readable_export_is_a_file_of_json(alice: Caller) -> None:
    alice.retain("green tea")
    answer = alice.http.post("/v1/export", json={})
    assert answer.headers["content-type"] == "application/json"
    named = 'attachment; filename="scrubjay-export.json"'
    assert answer.headers["content-disposition"] == named
    assert answer.headers["x-scrubjay-memories"] == "1"
    assert [one["content"] for one in answer.json()["memories"]] == ["green tea"]


def test_a_sealed_export_is_a_file_that_its_passphrase_loads(alice: Caller) -> None:
    alice.retain("green tea")
    phrase = "three jays in one oak"
    answer = alice.http.post("/v1/export", json={"sealed": True, "passphrase": phrase})
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].endswith('.bundle"')
    assert b"green tea" not in answer.content
    assert phrase not in f"{answer.headers}" + answer.content.decode(errors="replace")
    sent = {"content": base64.b64encode(answer.content).decode()}
    problem(alice.http.post("/v1/load", json=sent), 422, "wrong_key")
    problem(alice.http.post("/v1/load", json=sent | {"passphrase": "wrong one"}), 422, "wrong_key")
    loaded = alice.http.post("/v1/load", json=sent | {"passphrase": phrase})
    assert loaded.json()["known"] == 1


KEY = "-".join(["AAAA"] * 13)
MISTAKES: dict[str, Callable[[bytes], dict[str, object]]] = {
    "no key": lambda raw: {"content": raw},
    "another passphrase": lambda raw: {"content": raw, "passphrase": "another one"},
    "another key": lambda raw: {"content": raw, "key": KEY},
    "half a key": lambda raw: {"content": raw, "key": KEY[:20]},
    "no key at all": lambda raw: {"content": raw, "key": "?!"},
    "a cut file": lambda raw: {"content": raw[:-10], "passphrase": "three jays"},
    "only its first line": lambda raw: {"content": raw.split(b"\n")[0], "passphrase": "three jays"},
    "a later version": lambda raw: {"content": raw.replace(b'version": 1', b'version": 9')},
    "another cost": lambda raw: {"content": raw.replace(b'passes": ', b'passes": 9'), "key": KEY},
    "text": lambda _: {"content": b"green tea"},
    "nothing": lambda _: {"content": b""},
    "JSON of others": lambda _: {"content": b"[1, 2]"},
    "a wrong record": lambda _: {
        "content": b'{"format": "scrubjay-export", "version": 1, "count": 1, "memories": [{}]}'
    },
    "deep JSON": lambda _: {"content": b"[" * 100_000},
}


@pytest.mark.parametrize("path", ["/v1/load", "/v1/restore"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_with_a_file_is_the_callers_not_the_servers(
    alice: Caller, path: str, mistake: str
) -> None:
    alice.retain("green tea")
    sealed = {"sealed": True, "passphrase": "three jays"}
    raw = alice.http.post("/v1/export", json=sealed).content
    sent = MISTAKES[mistake](raw)
    content = base64.b64encode(cast(bytes, sent["content"])).decode()
    answer = alice.http.post(path, json=sent | {"content": content})
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] in ("invalid_request", "wrong_key")
    assert answer.json()["hint"]


@pytest.mark.parametrize(
    "sent",
    [{"sealed": True}, {"sealed": True, "passphrase": "1234567"}, {"passphrase": "long enough"}],
)
def test_a_sealed_export_needs_a_long_passphrase(alice: Caller, sent: dict[str, Any]) -> None:
    alice.retain()
    answer = alice.http.post("/v1/export", json=sent)
    problem(answer, 422, "invalid_request")
    assert sent.get("passphrase", "?") not in answer.text


def test_a_large_file_is_sent_in_pieces_without_a_second_copy() -> None:
    """While it is sent, memory grows by a few pieces, not by the size of the file."""
    file, sizes = bytes(64 * PIECE), list[int]()

    async def send(message: Any) -> None:
        sizes.append(len(message.get("body", b"")))

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    response = Pieces(file, media_type="application/octet-stream")
    tracemalloc.start()
    asyncio.run(response({"type": "http"}, receive, send))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (max(sizes), sum(sizes)) == (PIECE, len(file))
    assert peak < 4 * PIECE


def test_a_scope_is_warmed_up_before_its_user_speaks(
    caller: Calling, scope: str, lasting_engine: Kernel
) -> None:
    alice = caller(scope)
    alice.retain("tea at dawn")
    indexes = lasting_engine._shelf
    address = lasting_engine._open(Scope.parse(scope)).address
    indexes.drop(address)
    assert alice.http.post("/v1/scopes", json={"anew": False}).status_code < 300
    assert indexes.find(address) is None
    assert alice.http.post("/v1/scopes", json={"warm": True}).status_code < 300
    assert indexes.find(address) is not None
    indexes.drop(address)
    url = str(alice.http.base_url)
    with connect(url, alice.token, scope=scope, warm=True):
        assert indexes.find(address) is not None


def test_a_problem_names_the_request_and_repeats_nothing_of_it(alice: Caller) -> None:
    answer = alice.http.get("/v1/memories/tea-at-dawn", headers={"X-Request-Id": "r-1"})
    assert problem(answer, 404, "not_found")["instance"] == "urn:scrubjay:request:r-1"
