"""A small OIDC issuer on this machine: signs tokens, publishes its keys, fails as it is told to."""

from __future__ import annotations

import json
import ssl
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from scrubjay.ports import Clock
from tests.support import loopback
from tests.support.loopback import Failure

DISCOVERY: Final = "/.well-known/openid-configuration"
KEYS: Final = "/keys"
AUDIENCE: Final = "memory"
SECONDS: Final = 600
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def private_key(algorithm: str) -> PrivateKey:
    """A new key for an algorithm; of RSA, which takes long to make, the same one each time."""
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
    return _rsa()


@cache
def _rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """One key of the issuer."""

    kid: str
    algorithm: str
    key: PrivateKey

    @property
    def published(self) -> dict[str, Any]:
        """Its public half, as a JSON Web Key."""
        made: Any = get_default_algorithms()[self.algorithm]
        jwk: dict[str, Any] = made.to_jwk(self.key.public_key(), as_dict=True)
        return {**jwk, "kid": self.kid, "alg": self.algorithm, "use": "sig", "key_ops": ["verify"]}


@dataclass(slots=True, kw_only=True)
class Issuer:
    """What it signs with, what it publishes, and what it was asked for."""

    clock: Clock
    tls: ssl.SSLContext | None = None
    """What it speaks TLS with, as localhost; without, it is plain HTTP."""
    port: int = 0
    key: SigningKey = field(init=False)
    """What it signs with now."""
    published: list[dict[str, Any]] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)
    """What its document says otherwise than it should."""
    failures: deque[Failure] = field(default_factory=deque)
    """What goes wrong before its next good answer."""
    down: bool = False
    requests: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.rotate()

    @property
    def url(self) -> str:
        """What it calls itself."""
        return f"{'https://localhost' if self.tls else 'http://127.0.0.1'}:{self.port}"

    def rotate(self, algorithm: str = "ES256", *, keep: bool = False) -> SigningKey:
        """Sign with a new key from now on, and withdraw the others, unless they are kept."""
        kid = f"key-{len(self.requests)}-{self.clock.new_id()}"
        self.key = SigningKey(kid=kid, algorithm=algorithm, key=private_key(algorithm))
        self.published = [*(self.published if keep else ()), self.key.published]
        return self.key

    def claims(self, **other: Any) -> dict[str, Any]:
        """Good claims, with others in their place; None leaves one out."""
        now = int(self.clock.now().timestamp())
        known = {
            "iss": self.url, "aud": AUDIENCE, "sub": "alice",
            "iat": now, "nbf": now, "exp": now + SECONDS,
        }  # fmt: skip
        return {name: value for name, value in (known | other).items() if value is not None}

    def token(
        self,
        *,
        key: SigningKey | None = None,
        headers: Mapping[str, Any] | None = None,
        **other: Any,
    ) -> str:
        """A token with these claims, signed with a key of the issuer, or with any other."""
        key = key or self.key
        named = {"kid": key.kid, **(headers or {})}
        return jwt.encode(self.claims(**other), key.key, key.algorithm, headers=named)

    def answer(self, path: str) -> Mapping[str, Any] | None:
        """What it publishes at a path."""
        if path == DISCOVERY:
            return {"issuer": self.url, "jwks_uri": self.url + KEYS, **self.document}
        return {"keys": self.published} if path == KEYS else None


@contextmanager
def serve_issuer(clock: Clock, *, tls: ssl.SSLContext | None = None) -> Iterator[Issuer]:
    """An issuer that runs; it is gone when the block ends."""
    state = Issuer(clock=clock, tls=tls)

    class Handler(_Handler):
        issuer = state

    with loopback.running(Handler, state.closing, tls=tls) as state.port:
        yield state


class _Handler(loopback.Handler):
    issuer: Issuer

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        self.issuer.requests.append(self.path)
        failures = self.issuer.failures
        failure = failures.popleft() if failures else Failure(hang_up=self.issuer.down)
        if failure.delay:
            self.issuer.closing.wait(failure.delay)
        if not failure.hang_up:
            found = self.issuer.answer(self.path)
            body = json.dumps(found).encode() if failure.body is None else failure.body
            self.answer(failure, body, status=404 if found is None else None)
