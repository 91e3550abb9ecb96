"""What an issuer publishes is read only from where it should be, and only what is good of it."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from scrubjay.access import Grant
from scrubjay.model.errors import InvalidRequest
from scrubjay.service.issuer import Template, Trust, Unreachable
from scrubjay.service.tokens import ALGORITHMS, MOST_BYTES, Publisher, read_keys
from scrubjay.testing.clock import FakeClock
from tests.certificates import certificate_for_localhost
from tests.support.dripping import DRIPS, FLOOD, dripping
from tests.support.issuer import DISCOVERY, KEYS, Issuer, SigningKey, private_key, serve_issuer
from tests.support.loopback import Failure, lying_resolver


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serve_issuer(FakeClock()) as running:
        yield running


def trust(issuer: str, **other: Any) -> Trust:
    known: dict[str, Any] = {"audience": "memory", "scope": Template("acme/{sub}")}
    return Trust(issuer=issuer, **known | other)


def fetched(issuer: Issuer, *, seconds: float = 5.0) -> set[str]:
    return set(asyncio.run(Publisher(trust(issuer.url), seconds=seconds).keys()))


# -- the documents ---------------------------------------------------------------------------


def test_the_keys_are_where_the_document_of_the_issuer_says(issuer: Issuer) -> None:
    assert fetched(issuer) == {issuer.key.kid}
    assert issuer.requests == [DISCOVERY, KEYS]


def test_a_document_that_names_another_issuer_is_not_believed(issuer: Issuer) -> None:
    issuer.document["issuer"] = "https://evil.example"
    with pytest.raises(Unreachable, match="another issuer"):
        fetched(issuer)
    assert issuer.requests == [DISCOVERY]


@pytest.mark.parametrize("place", [0, 1])
def test_nobody_is_followed_elsewhere(issuer: Issuer, place: int) -> None:
    away = Failure(status=302, headers=(("Location", f"{issuer.url}/elsewhere"),), body=b"{}")
    issuer.failures.extend([Failure()] * place + [away])
    with pytest.raises(Unreachable, match="302"):
        fetched(issuer)
    assert "/elsewhere" not in issuer.requests


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "failure",
    [
        Failure(body=b"no JSON"),
        Failure(body=b"[]"),
        Failure(body=b"[" * 100_000),
        Failure(status=500),
        Failure(hang_up=True),
    ],
    ids=["no JSON", "no object", "too deep", "failed", "hung up"],
)
def test_what_is_no_answer_of_an_issuer_is_unreachable(
    issuer: Issuer, failure: Failure, place: int
) -> None:
    issuer.failures.extend([Failure()] * place + [failure])
    with pytest.raises(Unreachable):
        fetched(issuer)


@pytest.mark.parametrize("place", [0, 1])
def test_no_more_is_read_of_an_answer_than_an_issuer_says(issuer: Issuer, place: int) -> None:
    issuer.failures.extend([Failure()] * place + [Failure(body=b" " * (MOST_BYTES + 1))])
    with pytest.raises(Unreachable, match="too much"):
        fetched(issuer)


def test_an_issuer_that_takes_too_long_is_given_up(issuer: Issuer) -> None:
    issuer.failures.append(Failure(delay=30))
    with pytest.raises(Unreachable, match="in time"):
        fetched(issuer, seconds=0.05)


def test_the_keys_of_an_issuer_on_this_machine_come_from_it_whatever_a_resolver_says(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No certificate is looked at there, so the name must not lead to where others publish keys."""
    url = issuer.url.replace("127.0.0.1", "localhost")
    issuer.document |= {"issuer": url, "jwks_uri": f"{url}{KEYS}"}
    lying_resolver(monkeypatch)
    assert set(asyncio.run(Publisher(trust(url), seconds=2).keys())) == {issuer.key.kid}


@pytest.mark.parametrize("drip", DRIPS)
def test_an_issuer_that_drips_is_given_up_at_the_deadline(drip: str) -> None:
    with dripping(*DRIPS[drip]) as (port, _):
        publisher = Publisher(trust(f"http://127.0.0.1:{port}"), seconds=0.3)
        begun = time.monotonic()
        with pytest.raises(Unreachable):
            asyncio.run(publisher.keys())
        assert time.monotonic() - begun < 3


def test_an_issuer_that_pours_without_end_is_read_no_further_than_the_limit() -> None:
    with dripping(*FLOOD, pause=0) as (port, sent):
        with pytest.raises(Unreachable, match="too much"):
            asyncio.run(Publisher(trust(f"http://127.0.0.1:{port}")).keys())
        assert sum(sent) < 20_000_000


@pytest.mark.parametrize("address", [None, 7, "", "keys", "ftp://x/keys", "http://evil.example/k"])
def test_keys_come_over_tls_or_from_this_machine(issuer: Issuer, address: Any) -> None:
    issuer.document["jwks_uri"] = address
    with pytest.raises(Unreachable, match="no good address"):
        fetched(issuer)


def test_an_issuer_elsewhere_cannot_send_us_to_this_machine() -> None:
    publisher = Publisher(trust("https://issuer.example.com"))
    with pytest.raises(Unreachable, match="this machine"):
        publisher._keys_at({"jwks_uri": "http://127.0.0.1:8377/keys"})


def test_an_issuer_on_this_machine_cannot_send_us_elsewhere(issuer: Issuer) -> None:
    """Its certificate is not checked, so somebody else's would not be, either."""
    issuer.document["jwks_uri"] = "https://login.example.com/keys"
    with pytest.raises(Unreachable, match="away from this machine"):
        fetched(issuer)


def test_an_issuer_whose_certificate_nobody_vouches_for_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate_for_localhost(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with serve_issuer(FakeClock(), tls=context) as issuer:
        with pytest.raises(Unreachable, match="cannot be reached"):
            fetched(issuer)
        assert issuer.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        assert fetched(issuer) == {issuer.key.kid}


# -- the keys --------------------------------------------------------------------------------


def published(algorithm: str) -> dict[str, Any]:
    return SigningKey(kid="k", algorithm=algorithm, key=private_key(algorithm)).published


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_key_is_good_for_the_algorithm_it_names_alone(algorithm: str) -> None:
    assert read_keys({"keys": [published(algorithm)]})["k"].algorithms == (algorithm,)


def test_a_key_that_names_no_algorithm_is_good_for_those_of_its_kind() -> None:
    def found(algorithm: str) -> set[str]:
        key = published(algorithm)
        del key["alg"]
        return set(read_keys({"keys": [key]})["k"].algorithms)

    assert found("RS256") == {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
    assert (found("ES256"), found("ES384")) == ({"ES256"}, {"ES384"})
    assert found("EdDSA") == {"EdDSA"}


def short_rsa() -> dict[str, Any]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()
    return {**RSAAlgorithm.to_jwk(key, as_dict=True), "kid": "k"}


def private_ec() -> dict[str, Any]:
    return {**ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True), "kid": "k"}


def bad_keys() -> Iterator[Any]:
    good, secret = published("ES256"), {"kty": "oct", "k": "c2VjcmV0", "kid": "k"}
    yield from (secret, {**secret, "alg": "HS256"}, {**published("RS256"), "alg": "HS256"})
    yield from ({**good, "alg": other} for other in ("ES384", "none", None, ["ES256"]))
    yield from ({**good, "kty": other} for other in ("RSA", ["EC"], None))
    yield from ({**good, "kid": other} for other in (7, None))
    yield from ({**good, "use": "enc"}, {**good, "x": "!"}, {**good, "crv": "secp256k1"})
    yield from (short_rsa(), private_ec(), {"kid": "k"}, {"kid": "k", "kty": "RSA"}, "key", None)


def test_what_is_no_good_public_key_is_passed_over() -> None:
    good = {**published("ES256"), "kid": "good"}
    for key in bad_keys():
        assert set(read_keys({"keys": [key, good]})) == {"good"}, key


def test_of_two_keys_with_one_id_the_first_counts() -> None:
    first, second = published("ES256"), published("ES256")
    found = read_keys({"keys": [first, second]})["k"].key
    assert found == jwt.PyJWK(first).key


def test_what_is_no_list_of_keys_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        read_keys(json.loads('{"keys": {}}'))


# -- what the operator says ------------------------------------------------------------------


@pytest.mark.parametrize(
    "issuer",
    ["http://issuer.example.com", "issuer.example.com", "https://", "https://u@issuer.example.com",
     "https://issuer.example.com?x=1", "https://issuer.example.com#x", "ftp://127.0.0.1",
     "http://127.0.0.1.nip.io", "https://issuer.example.com:port", "https://[", ""],
)  # fmt: skip
def test_an_issuer_is_trusted_over_tls_or_on_this_machine(issuer: str) -> None:
    with pytest.raises(InvalidRequest):
        trust(issuer)


@pytest.mark.parametrize(
    "issuer", ["https://issuer.example.com/realm", "http://localhost:9", "http://[::1]:9/"]
)
def test_an_issuer_may_have_a_path_or_be_on_loopback(issuer: str) -> None:
    assert trust(issuer).grants == (Grant.READ, Grant.WRITE, Grant.FORGET, Grant.EXPORT)


@pytest.mark.parametrize(
    "other",
    [{"audience": ""}, {"grants": ()}, {"resource": "https://x.example/path"}, {"resource": "x"}],
)
def test_what_is_missing_or_makes_no_sense_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        trust("https://issuer.example.com", **other)
