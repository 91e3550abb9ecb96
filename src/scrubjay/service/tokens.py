"""JWT validation: signature, issuer, audience and times, and the key that a token stands for."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from scrubjay.access import Grant, Key, own_origin
from scrubjay.model.endpoints import addresses
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service.issuer import (
    GRANT_PREFIX,
    PAUSE_SECONDS,
    TokenRefused,
    Trust,
    Unreachable,
    check_url,
)

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
"""Asymmetric signature algorithms by key type; shared secrets are never accepted."""
ALGORITHMS: Final = frozenset(name for names in _ALGORITHMS.values() for name in names)

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """One key of an issuer, and the algorithms it is for."""

    key: PublicKey
    algorithms: tuple[str, ...]


class _Here(httpx2.AsyncHTTPTransport):
    """Plain HTTP to this machine, which is what was checked: a resolver could say another."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        *others, last = addresses(request.url.host)
        for address in others:
            request.url = request.url.copy_with(host=address)
            with suppress(httpx2.ConnectError):
                return await super().handle_async_request(request)
        request.url = request.url.copy_with(host=last)
        return await super().handle_async_request(request)


class Publisher:
    """Fetches the keys (JWKS) of one issuer."""

    def __init__(self, trust: Trust, *, seconds: float = SECONDS) -> None:
        self._trust = trust
        self._seconds = seconds
        # Made once, before the service runs: reading all certificates takes a while.
        self._verify = False if trust.on_loopback else ssl.create_default_context()

    async def keys(self) -> Mapping[str, VerifyingKey]:
        """Its keys by id; Unreachable if the fetch fails."""
        client = httpx2.AsyncClient(
            verify=self._verify,
            transport=_Here() if self._trust.on_loopback else None,
            trust_env=False,
            follow_redirects=False,
            timeout=self._seconds,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )
        try:
            async with asyncio.timeout(self._seconds), client as http:
                found = await _document(http, self._trust.issuer.rstrip("/") + DISCOVERY)
                if found.get("issuer") != self._trust.issuer:
                    raise Unreachable("its document names another issuer")
                published = await _document(http, self._keys_at(found))
        except TimeoutError as error:
            raise Unreachable("it did not answer in time") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable("it cannot be reached") from error
        return read_keys(published)

    def _keys_at(self, document: Mapping[str, Any]) -> str:
        address = str(document.get("jwks_uri"))
        try:
            parts = check_url("The keys", address)
        except InvalidRequest as error:
            raise Unreachable("its document names no good address of its keys") from error
        if parts.scheme != "https" and not self._trust.on_loopback:
            raise Unreachable("its document sends us to this machine for its keys")
        if parts.scheme == "https" and self._trust.on_loopback:
            # No certificate is checked for an issuer on this machine: elsewhere one has to be.
            raise Unreachable("its document sends us away from this machine for its keys")
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
    """The signature keys of a JWKS by id; others are skipped."""
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise Unreachable("it published no list of keys")
    found: dict[str, VerifyingKey] = {}
    for jwk in listed:
        kid = jwk.get("kid") if isinstance(jwk, dict) else None
        if not isinstance(kid, str):
            continue
        kind = (str(jwk.get("kty")), jwk.get("crv") and str(jwk["crv"]))
        algorithms = _ALGORITHMS.get(kind, ())
        if "alg" in jwk:
            algorithms = tuple(one for one in algorithms if one == jwk["alg"])
        if not algorithms or jwk.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(jwk, algorithm=algorithms[0]).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        is_short = isinstance(key, RSAPublicKey) and key.key_size < _RSA_BITS
        # A secret that was published by mistake is nobody's signature any more.
        if isinstance(key, PublicKey) and not is_short:
            found.setdefault(kid, VerifyingKey(key, algorithms))
    return found


FRESH_SECONDS: Final = 300.0
"""Cache lifetime of the keys: a withdrawn key is accepted at most this long."""
KEPT_SECONDS: Final = 4 * 3600.0
"""How long cached keys are accepted while the issuer does not answer."""
_log = logging.getLogger(__name__)

Publish = Callable[[], Awaitable[Mapping[str, VerifyingKey]]]


class KeySet:
    """Cache of an issuer's keys; used only on the event loop."""

    def __init__(self, publish: Publish, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._known: Mapping[str, VerifyingKey] = {}
        self._fetched_at = self._asked_at = float("-inf")
        self._failing = False
        self._asking: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> VerifyingKey | None:
        """The key of this id, None if there is none; Unreachable if that is unknown."""
        now = self._clock.monotonic()
        if kid not in self._known or now - self._fetched_at > FRESH_SECONDS:
            asking = self._asking if self._asking and not self._asking.done() else None
            if asking is None and now - self._asked_at >= PAUSE_SECONDS:
                self._asked_at = now
                asking = self._asking = asyncio.create_task(self._refresh(now))
            # Who has a known key does not wait for an issuer that was down a moment ago.
            if asking is not None and not (self._failing and kid in self._known):
                await asyncio.shield(asking)
        if now - self._fetched_at > KEPT_SECONDS:
            raise Unreachable("its keys are not known")
        found = self._known.get(kid)
        if found is None and self._failing:
            raise Unreachable("whether it has a new key cannot be told")
        return found

    async def close(self) -> None:
        """Cancel a running fetch."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking

    async def _refresh(self, now: float) -> None:
        try:
            self._known = await self._publish()
        except Unreachable as error:
            self._failing = True
            _log.warning("oidc.unreachable", extra={"why": str(error)})
        else:
            self._failing = False
            self._fetched_at = now
            _log.info("oidc.keys", extra={"keys": len(self._known)})


LEEWAY_SECONDS: Final = 30.0
"""Clock skew allowed between the issuer and this machine."""
_LATEST: Final = datetime.max.replace(tzinfo=UTC).timestamp() - 1
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
"""Accepted values of `typ`: other tokens of the issuer are for other uses."""


class Tokens:
    """Validates the tokens of one issuer."""

    def __init__(
        self,
        trust: Trust,
        clock: Clock,
        pseudonym: Callable[[Scope], str],
        *,
        publisher: Publisher | None = None,
    ) -> None:
        self._trust = trust
        self._clock = clock
        self._pseudonym = pseudonym
        self.keys = KeySet((publisher or Publisher(trust)).keys, clock)

    async def holder(self, token: str) -> Key:
        """Validate a token; TokenRefused if it is not valid, Unreachable without keys."""
        key = await self.keys.find(_key_id(token))
        if key is None:
            raise TokenRefused("its key is not one of the issuer's")
        claims = self._verified(token, key)
        expires_at = self._in_time(claims)
        if "cnf" in claims:
            raise TokenRefused("it is bound to a proof that nobody asks for here")
        named = {name: claims.get(name) for name in self._trust.scope.claims}
        if not all(isinstance(claim, str) and claim for claim in named.values()):
            raise TokenRefused("it does not say whose it is")
        scope = self._trust.scope.scope({name: str(claim) for name, claim in named.items()})
        return Key(
            # Nobody's name: it stands in log lines. Every token of one person has the same, so
            # they share one rate and one set of idempotency keys.
            id=f"oidc-{self._pseudonym(scope)}",
            name="token",
            scopes=(str(scope),),
            grants=granted(self._trust.grants, claims),
            actor=self._trust.actor,
            origin=own_origin(self._trust.actor),
            expires_at=expires_at,
        )

    def _verified(self, token: str, key: VerifyingKey) -> Mapping[str, Any]:
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._trust.audience,
                issuer=self._trust.issuer,
                options={
                    "require": ["exp"],
                    # Times are compared with our own clock.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError as error:
            raise TokenRefused(type(error).__name__) from error
        return claims

    def _in_time(self, claims: Mapping[str, Any]) -> datetime:
        """Expiry of the token; TokenRefused outside of its validity."""
        now, ends = self._clock.now().timestamp(), _number(claims, "exp")
        if ends <= now - LEEWAY_SECONDS:
            raise TokenRefused("it has expired", expired=True)
        for name in ("nbf", "iat"):
            if name in claims and _number(claims, name) > now + LEEWAY_SECONDS:
                raise TokenRefused(f"its {name} is to come")
        return datetime.fromtimestamp(ends, UTC)


def granted(grants: tuple[Grant, ...], claims: Mapping[str, Any]) -> tuple[Grant, ...]:
    """Grants of a token: those it names, limited to the allowed ones; all if it names none."""
    asked: set[str] = set()
    for name in ("scope", "scp"):
        claim = claims.get(name)
        # Issuers write it as one text or as a list.
        words = claim.split() if isinstance(claim, str) else [] if claim is None else claim
        if not isinstance(words, list) or not all(isinstance(one, str) for one in words):
            raise TokenRefused("its scope is no text")
        asked |= {one.removeprefix(GRANT_PREFIX) for one in words if one.startswith(GRANT_PREFIX)}
    return tuple(grant for grant in grants if not asked or grant in asked)


def _key_id(token: str) -> str:
    """The key id in the header of a token, which is not verified yet."""
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise TokenRefused("it is not well formed") from error
    if str(header.get("alg")) not in ALGORITHMS:
        raise TokenRefused("its algorithm is not allowed")
    if str(header.get("typ", "JWT")).lower() not in _TYPES:
        raise TokenRefused("it is for another use")
    if "kid" not in header:
        raise TokenRefused("it names no key")
    return str(header["kid"])


def _number(claims: Mapping[str, Any], name: str) -> float:
    found = claims[name]
    known = isinstance(found, int | float) and not isinstance(found, bool)
    if not known or not 0 <= found <= _LATEST:
        raise TokenRefused(f"its {name} is no time")
    return float(found)
