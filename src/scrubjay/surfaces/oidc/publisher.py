"""What an issuer publishes: a document that says where its keys are, and the keys.

Both are asked for over TLS (or on this machine), straight, without following anybody elsewhere,
within a few seconds, and only so many bytes of them are read.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from scrubjay.domain.errors import InvalidRequest
from scrubjay.surfaces.oidc.refusals import Unreachable
from scrubjay.surfaces.oidc.trust import Trust, check_url

SECONDS: Final = 5.0
MOST_BYTES: Final = 256 * 1024
DISCOVERY: Final = "/.well-known/openid-configuration"
_RSA_BITS: Final = 2048
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Final[Mapping[tuple[object, object], tuple[str, ...]]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""Signatures that are made with a secret we do not have; a shared secret is never one of them."""
ALGORITHMS: Final = frozenset(name for names in _ALGORITHMS.values() for name in names)

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """One key of an issuer, and the algorithms it is for."""

    key: PublicKey
    algorithms: tuple[str, ...]


class Publisher:
    """Asks one issuer for its keys."""

    def __init__(self, trust: Trust, *, seconds: float = SECONDS) -> None:
        self._trust = trust
        self._seconds = seconds
        # Made once, before the service runs: reading all certificates takes a while.
        self._verify = False if trust.on_loopback else ssl.create_default_context()

    async def keys(self) -> Mapping[str, VerifyingKey]:
        """Its keys by their ids; Unreachable if they cannot be had."""
        try:
            async with asyncio.timeout(self._seconds), self._client() as http:
                found = await _document(http, self._trust.issuer.rstrip("/") + DISCOVERY)
                if found.get("issuer") != self._trust.issuer:
                    raise Unreachable("its document names another issuer")
                published = await _document(http, self._keys_at(found))
        except TimeoutError as error:
            raise Unreachable("it did not answer in time") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable("it cannot be reached") from error
        return read_keys(published)

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            verify=self._verify,
            trust_env=False,
            follow_redirects=False,
            timeout=self._seconds,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )

    def _keys_at(self, document: Mapping[str, Any]) -> str:
        address = str(document.get("jwks_uri"))
        try:
            parts = check_url("The keys", address)
        except InvalidRequest as error:
            raise Unreachable("its document names no good address of its keys") from error
        if parts.scheme != "https" and not self._trust.on_loopback:
            raise Unreachable("its document sends us to this machine for its keys")
        return address


async def _document(http: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    body = bytearray()
    async with http.stream("GET", url) as answer:
        if answer.status_code != 200:
            raise Unreachable(f"it answered with the status {answer.status_code}")
        # As it was sent: what is small when packed need not be small.
        async for part in answer.aiter_raw():
            body += part
            if len(body) > MOST_BYTES:
                raise Unreachable("it answered with too much")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unreachable("it did not answer with JSON") from error
    if not isinstance(found, dict):
        raise Unreachable("it did not answer with an object")
    return found


def read_keys(document: Mapping[str, Any]) -> dict[str, VerifyingKey]:
    """The keys of a set that are good for signatures, by their ids; the rest is passed over."""
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise Unreachable("it published no list of keys")
    found: dict[str, VerifyingKey] = {}
    for one in listed:
        match one:
            case {"kid": str(kid)} if (key := _read(one)) is not None:
                found.setdefault(kid, key)
    return found


def _read(jwk: dict[str, Any]) -> VerifyingKey | None:
    kind = (str(jwk.get("kty")), jwk.get("crv") and str(jwk["crv"]))
    algorithms = _ALGORITHMS.get(kind, ())
    if "alg" in jwk:
        algorithms = tuple(one for one in algorithms if one == jwk["alg"])
    if not algorithms or jwk.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(jwk, algorithm=algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    # A secret that was published by mistake is nobody's signature any more.
    if not isinstance(key, PublicKey) or (
        isinstance(key, RSAPublicKey) and key.key_size < _RSA_BITS
    ):
        return None
    return VerifyingKey(key, algorithms)
