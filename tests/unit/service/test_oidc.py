"""People who sign in elsewhere: whose tokens open whose memory, and which are refused."""

from __future__ import annotations

import base64
import hmac
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import scrubjay
from scrubjay.access import Grant
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor
from scrubjay.service.issuer import PAUSE_SECONDS, Template, Trust
from scrubjay.service.rest import OPERATIONS
from scrubjay.service.service import UNLIMITED, Options
from scrubjay.service.tokens import FRESH_SECONDS, KEPT_SECONDS, LEEWAY_SECONDS
from scrubjay.testing.clock import FakeClock
from tests.serving import Running, serving
from tests.support.engines import MemoryHome
from tests.support.issuer import AUDIENCE, Issuer, SigningKey, private_key, serve_issuer
from tests.unit.service.test_routes import problem

METADATA = "/.well-known/oauth-protected-resource"


class Door:
    """A service that trusts an issuer, and a way to knock with any token."""

    def __init__(self, running: Running, issuer: Issuer, clock: FakeClock) -> None:
        self.running = running
        self.issuer = issuer
        self.clock = clock
        self.http = httpx2.Client(base_url=running.url, timeout=30, verify=False)

    def ask(self, token: str, method: str = "GET", path: str = "/v1/key", **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
        return self.http.request(method, path, headers=headers, **more)

    def holder(self, **claims: Any) -> dict[str, Any]:
        """What a good token with these claims allows."""
        answer = self.ask(self.issuer.token(**claims))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def refused(self, token: str) -> dict[str, Any]:
        """The problem of a token that is not accepted, which says no more than it should."""
        answer = self.ask(token)
        told = answer.headers["www-authenticate"]
        assert 'error="invalid_token"' in told
        assert f'resource_metadata="{self.running.url}{METADATA}"' in told
        return problem(answer, 401, "unauthorized")


Opened = Callable[..., Door]


@pytest.fixture
def issuer(home: MemoryHome) -> Iterator[Issuer]:
    with serve_issuer(home.clock) as running:
        yield running


@contextmanager
def opened(engine: Kernel, home: MemoryHome, issuer: Issuer, **other: Any) -> Iterator[Door]:
    known: dict[str, Any] = {"audience": AUDIENCE, "scope": Template("acme/{sub}")}
    trust = Trust(issuer=issuer.url, **known | other)
    with serving(engine, home.clock, Options(rates=UNLIMITED, trust=trust)) as running:
        door = Door(running, issuer, home.clock)
        try:
            yield door
        finally:
            door.http.close()


@pytest.fixture
def door(engine: Kernel, home: MemoryHome, issuer: Issuer) -> Iterator[Door]:
    with opened(engine, home, issuer) as one:
        yield one


def seconds(door: Door, later: float) -> int:
    return int(door.clock.now().timestamp() + later)


# -- what a good token opens -------------------------------------------------------------------


def test_a_token_is_a_key_to_its_owners_own_memory(door: Door) -> None:
    found = door.holder(sub="alice")
    assert found["scopes"] == ["acme/alice"]
    assert found["grants"] == ["read", "write", "forget", "export"]
    assert (found["actor"], found["origin"]) == ("user", "user")
    token = door.issuer.token(sub="alice")
    assert door.ask(token, "POST", "/v1/memories", json={"content": "tea"}).status_code == 201
    assert door.ask(token, path="/v1/memories").json()["data"][0]["content"] == "tea"
    assert door.ask(token, path="/v1/scopes").json() == {
        "data": ["acme/alice"],
        "next_cursor": None,
    }


def test_the_client_takes_a_token_for_a_key(door: Door) -> None:
    with scrubjay.connect(door.running.url, door.issuer.token()) as jay:
        jay.retain("Alice prefers green tea")
        assert [hit.memory.content for hit in jay.recall("tea")] == ["Alice prefers green tea"]


def test_keys_work_beside_tokens(door: Door) -> None:
    key = door.running.key("acme/alice")
    assert door.ask(key).json()["scopes"] == ["acme/alice"]
    problem(door.ask("sj_aaaaaaaa_b"), 401, "unauthorized")


@pytest.mark.parametrize("algorithm", ["RS256", "PS384", "ES256", "ES384", "EdDSA"])
def test_every_signature_made_with_a_secret_of_the_issuer_is_good(
    door: Door, algorithm: str
) -> None:
    door.issuer.rotate(algorithm)
    assert door.holder(sub="bob")["scopes"] == ["acme/bob"]


def test_one_of_several_audiences_may_be_this_service(door: Door) -> None:
    assert door.holder(aud=["userinfo", AUDIENCE])


def test_two_people_cannot_reach_each_others_memory(door: Door) -> None:
    """Not by naming the other's scope or ids, nor by anything else a request can say."""
    alice, bob = door.issuer.token(sub="alice"), door.issuer.token(sub="bob")
    ids = {}
    for token, word in ((alice, "oolong"), (bob, "espresso")):
        body = {"content": f"My drink is {word}", "tags": [word], "session": word}
        ids[token] = door.ask(token, "POST", "/v1/memories", json=body).json()["id"]
    for token, other, foreign in ((alice, bob, "espresso"), (bob, alice, "oolong")):
        heard = b""
        for operation in OPERATIONS:
            path = operation.path.format(id=ids[other], session=foreign, key_id="k")
            body = {**operation.example, "query": "drink"} if operation.name == "recall" else {}
            for scope in (None, "acme/bob" if token == alice else "acme/alice", "acme/*"):
                headers = {"If-Match": "*"} | ({"X-Scrubjay-Scope": scope} if scope else {})
                how = {} if operation.in_query else {"json": body}
                heard += door.ask(
                    token, operation.method, f"/v1{path}", headers=headers, **how
                ).content
        assert foreign.encode() not in heard
    for token, word in ((alice, "oolong"), (bob, "espresso")):
        found = door.ask(token, path=f"/v1/memories/{ids[token]}").json()
        assert found["content"] == f"My drink is {word}", "nor change or erase it"


def test_people_the_issuer_names_strangely_have_a_scope_each(door: Door) -> None:
    names = [
        "auth0|1",
        "auth0_7C1",
        "x-auth0_7C1",
        "Auth0|1",
        "auth0|1 ",
        "../bob",
        "acme/bob",
        "*",
    ]
    scopes = [door.holder(sub=name)["scopes"][0] for name in names]
    assert len(set(scopes)) == len(names)
    assert scopes[0] == "acme/x-auth0_7C1"


def test_the_tenant_may_come_from_the_token_and_is_never_ours(
    engine: Kernel, home: MemoryHome, issuer: Issuer
) -> None:
    with opened(engine, home, issuer, scope=Template("{org}/{sub}")) as door:
        assert door.holder(org="acme")["scopes"] == ["acme/alice"]
        token = issuer.token(org="system", sub="keys")
        problem(door.ask(token, path="/v1/memories"), 403, "forbidden")
        assert door.ask(token, path="/v1/scopes").json() == {"data": [], "next_cursor": None}


def test_a_token_may_ask_for_less_than_it_could_have(door: Door) -> None:
    assert door.holder(scope="openid memory:read")["grants"] == ["read"]
    assert door.holder(scope="memory:write memory:read")["grants"] == ["read", "write"]
    assert door.holder(scp=["memory:export"])["grants"] == ["export"]
    assert door.holder(scope="openid profile")["grants"] == ["read", "write", "forget", "export"]
    token = door.issuer.token(scope="memory:read")
    answer = door.ask(token, "POST", "/v1/memories", json={"content": "tea"})
    problem(answer, 403, "forbidden")


def test_a_token_cannot_ask_for_more_than_the_operator_gives(
    engine: Kernel, home: MemoryHome, issuer: Issuer
) -> None:
    with opened(engine, home, issuer, grants=(Grant.READ,), actor=Actor.AGENT) as door:
        found = door.holder(scope="memory:read memory:write memory:admin")
        assert (found["grants"], found["actor"]) == (["read"], "agent")
        assert door.holder(scope="memory:admin")["grants"] == []
        assert door.holder(scope="memory:other")["grants"] == []


def test_log_lines_and_counters_do_not_name_who_signed_in(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    token, key = door.issuer.token(sub="alice"), door.running.key("acme/x")
    with caplog.at_level(logging.INFO, logger="scrubjay"):
        first, again = door.ask(token).json(), door.ask(door.issuer.token(jti="2")).json()
        door.refused(door.issuer.token(sub="alice", aud="other"))
        door.ask(key, path="/metrics")
    said = json.dumps([vars(record) for record in caplog.records], default=str)
    assert first["id"] == again["id"]
    assert f'"key": "{first["id"]}"' in said
    for private in ("alice", token, token.split(".")[1]):
        assert private not in said
        assert private not in door.ask(key, path="/metrics").text


def test_metadata_says_who_issues_tokens(door: Door) -> None:
    found = door.http.get(METADATA).json()
    assert found == {
        "resource": door.running.url,
        "resource_name": "scrubjay",
        "authorization_servers": [door.issuer.url],
        "scopes_supported": ["memory:read", "memory:write", "memory:forget", "memory:export"],
        "bearer_methods_supported": ["header"],
    }
    nothing = door.http.get("/v1/key")
    problem(nothing, 401, "unauthorized")
    told = nothing.headers["www-authenticate"]
    assert told == f'Bearer realm="scrubjay", resource_metadata="{door.running.url}{METADATA}"'


def test_behind_a_proxy_metadata_names_where_clients_find_it(
    engine: Kernel, home: MemoryHome, issuer: Issuer
) -> None:
    with opened(engine, home, issuer, resource="https://memory.example.com") as door:
        assert door.http.get(METADATA).json()["resource"] == "https://memory.example.com"
        told = door.http.get("/v1/key").headers["www-authenticate"]
        assert f'"https://memory.example.com{METADATA}"' in told


def test_a_strange_port_in_the_host_cannot_write_into_the_header(door: Door) -> None:
    answer = door.http.get("/v1/key", headers={"Host": 'localhost:1", error="x'})
    assert 'error="' not in answer.headers["www-authenticate"]


def test_without_an_issuer_there_are_neither_tokens_nor_metadata(
    engine: Kernel, home: MemoryHome, issuer: Issuer
) -> None:
    with serving(engine, home.clock) as running, httpx2.Client(base_url=running.url) as http:
        problem(http.get(METADATA), 404, "not_found")
        headers = {"Authorization": f"Bearer {issuer.token()}"}
        problem(http.get("/v1/key", headers=headers), 401, "unauthorized")
    assert issuer.requests == []


def test_nobody_is_asked_for_a_token_where_nobody_is_asked_for_a_key(issuer: Issuer) -> None:
    trust = Trust(issuer=issuer.url, audience=AUDIENCE, scope=Template("acme/{sub}"))
    with pytest.raises(InvalidRequest):
        Options(no_auth=True, trust=trust)


# -- which tokens are refused ------------------------------------------------------------------


def test_a_token_of_another_issuer_is_refused(door: Door) -> None:
    door.refused(door.issuer.token(iss="https://evil.example"))
    door.refused(door.issuer.token(iss=door.issuer.url + "/"))
    door.refused(door.issuer.token(iss=None))


def test_a_token_for_another_audience_is_refused(door: Door) -> None:
    door.refused(door.issuer.token(aud="another"))
    door.refused(door.issuer.token(aud=["another", f"{AUDIENCE}2"]))
    door.refused(door.issuer.token(aud=None))


def test_a_token_that_has_expired_is_refused_and_said_so(door: Door) -> None:
    token = door.issuer.token(exp=seconds(door, 60))
    assert door.ask(token).status_code == 200
    door.clock.advance(seconds=60 + LEEWAY_SECONDS)
    assert door.refused(token)["detail"] == "The token has expired."
    assert door.holder(exp=seconds(door, 5 - LEEWAY_SECONDS)), "clocks may differ a little"


def test_a_token_that_never_expires_is_refused(door: Door) -> None:
    for never in (None, True, "2099-01-01", 1e300, 10**400, -1):
        door.refused(door.issuer.token(exp=never))


def test_a_token_that_is_not_valid_yet_is_refused(door: Door) -> None:
    later, soon = seconds(door, LEEWAY_SECONDS + 5), seconds(door, LEEWAY_SECONDS - 5)
    for refused in (later, "soon"):
        door.refused(door.issuer.token(nbf=refused))
        door.refused(door.issuer.token(iat=refused))
    assert door.holder(nbf=soon, iat=soon)


def test_a_token_that_does_not_say_whose_it_is_is_refused(door: Door) -> None:
    for nobody in (None, "", 7, ["alice"], {"name": "alice"}):
        token = unchecked(door.issuer, door.issuer.key, door.issuer.claims(sub=nobody))
        door.refused(token)


def test_a_token_with_a_scope_that_is_no_text_is_refused(door: Door) -> None:
    door.refused(door.issuer.token(scope=7))
    door.refused(door.issuer.token(scope=["memory:read", 7]))


def test_a_token_without_a_signature_is_refused(door: Door) -> None:
    head = {"typ": "JWT", "kid": door.issuer.key.kid}
    good = door.issuer.token()
    for algorithm in ("none", "None", "NONE", "", None, ["ES256"]):
        door.refused(f"{packed({**head, 'alg': algorithm})}.{good.split('.')[1]}.")
    door.refused(good.rpartition(".")[0] + ".")
    door.refused(good.rpartition(".")[0])


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_no_secret_to_sign_with(door: Door, algorithm: str) -> None:
    """An algorithm that anybody can sign with, given what the issuer publishes."""
    door.issuer.rotate("RS256")
    public = door.issuer.key.key.public_key()
    forms = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(door.issuer.key.published).encode(),
    ]
    head = {"alg": algorithm, "typ": "JWT", "kid": door.issuer.key.kid}
    for secret in forms:
        body = f"{packed(head)}.{packed(door.issuer.claims())}"
        digest = hmac.digest(secret, body.encode(), algorithm.replace("HS", "sha"))
        door.refused(f"{body}.{plain(digest)}")
    assert door.issuer.requests == [], "it does not even get to a key"


def test_a_key_signs_with_its_own_algorithm_alone(door: Door) -> None:
    door.issuer.rotate("RS256")
    other = SigningKey(kid=door.issuer.key.kid, algorithm="PS256", key=door.issuer.key.key)
    door.refused(door.issuer.token(key=other))


def test_a_token_somebody_else_signed_is_refused(door: Door) -> None:
    forged = SigningKey(kid=door.issuer.key.kid, algorithm="ES256", key=private_key("ES256"))
    door.refused(door.issuer.token(key=forged))


def test_a_token_that_was_changed_is_refused(door: Door) -> None:
    head, _, signature = door.issuer.token(sub="alice").split(".")
    door.refused(f"{head}.{packed(door.issuer.claims(sub='bob'))}.{signature}")


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
def test_a_token_cannot_bring_its_own_key(door: Door, name: str) -> None:
    own = SigningKey(kid="mine", algorithm="ES256", key=private_key("ES256"))
    brought: dict[str, Any] = {
        "jku": f"{door.issuer.url}/mine", "x5u": f"{door.issuer.url}/mine",
        "jwk": own.published, "x5c": [plain(b"certificate")],
    }  # fmt: skip
    door.refused(door.issuer.token(key=own, headers={name: brought[name]}))
    door.refused(
        door.issuer.token(key=own, headers={name: brought[name], "kid": door.issuer.key.kid})
    )
    assert "/mine" not in door.issuer.requests


def test_a_token_that_names_no_key_is_refused(door: Door) -> None:
    good = door.issuer.key
    door.refused(unchecked(door.issuer, good, door.issuer.claims(), kid=None))
    door.refused(unchecked(door.issuer, good, door.issuer.claims(), kid=7))


def test_a_token_for_another_use_is_refused(door: Door) -> None:
    for use in ("logout+jwt", "dpop+jwt", "secevent+jwt"):
        door.refused(door.issuer.token(headers={"typ": use}))
    for use in ("at+jwt", "application/at+jwt", "JWT"):
        assert door.ask(door.issuer.token(headers={"typ": use})).status_code == 200


def test_a_token_that_is_bound_to_a_proof_is_no_bearers(door: Door) -> None:
    door.refused(door.issuer.token(cnf={"jkt": "x"}))


def test_a_token_with_an_extension_nobody_knows_is_refused(door: Door) -> None:
    door.refused(door.issuer.token(headers={"crit": ["exp"]}))
    door.refused(door.issuer.token(headers={"crit": ["b64"], "b64": False}))


@pytest.mark.parametrize(
    "token", [".", "..", "a.b.c", "e30.e30.e30", "a.b.c.d.e", "é.é.é", "sj_a.b.c"]
)
def test_what_is_no_token_is_refused(door: Door, token: str) -> None:
    headers = {b"Authorization": f"Bearer {token}".encode()}
    problem(door.http.get("/v1/key", headers=headers), 401, "unauthorized")
    assert door.issuer.requests == []


# -- the keys of the issuer ----------------------------------------------------------------------


def test_a_new_key_of_the_issuer_is_accepted_and_the_old_one_goes(door: Door) -> None:
    old = door.issuer.token()
    assert door.ask(old).status_code == 200
    door.issuer.rotate()
    new = door.issuer.token()
    door.clock.advance(seconds=PAUSE_SECONDS)
    assert door.ask(new).status_code == 200
    door.refused(old)


def test_made_up_keys_do_not_become_questions_to_the_issuer(door: Door) -> None:
    forged = private_key("ES256")
    for number in range(50):
        key = SigningKey(kid=f"made-up-{number}", algorithm="ES256", key=forged)
        door.refused(door.issuer.token(key=key))
    assert len(door.issuer.requests) == 2, "one document, one set of keys"
    assert door.holder()


def test_while_the_issuer_is_down_known_keys_are_good_for_some_hours(door: Door) -> None:
    assert door.holder()
    door.issuer.down = True
    door.clock.advance(seconds=FRESH_SECONDS + 1)
    assert door.holder()
    door.clock.advance(seconds=KEPT_SECONDS)
    answer = door.ask(door.issuer.token())
    problem(answer, 503, "issuer_unreachable")
    assert answer.headers["retry-after"] == "10"


def test_an_issuer_that_was_never_reached_says_nothing_about_a_token(door: Door) -> None:
    door.issuer.down = True
    problem(door.ask(door.issuer.token()), 503, "issuer_unreachable")
    assert door.ask(door.running.key("acme/alice")).status_code == 200, "keys need no issuer"
    door.issuer.down = False
    door.clock.advance(seconds=PAUSE_SECONDS)
    assert door.holder()


# -- tokens no library would make ----------------------------------------------------------------


def plain(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def packed(value: Any) -> str:
    return plain(json.dumps(value).encode())


def unchecked(issuer: Issuer, key: SigningKey, claims: Any, **headers: Any) -> str:
    """A token as it was asked for, however wrong, rightly signed."""
    from jwt.algorithms import ECAlgorithm

    known = {"alg": key.algorithm, "typ": "JWT", "kid": key.kid} | headers
    head = {name: value for name, value in known.items() if value is not None}
    body = f"{packed(head)}.{packed(claims)}"
    made: Any = ECAlgorithm(ECAlgorithm.SHA256)
    return f"{body}.{plain(made.sign(body.encode(), key.key))}"
