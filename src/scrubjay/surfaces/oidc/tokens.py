"""From a token to a holder: who signed it, for whom, when, and whose memory it opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import jwt

from scrubjay.domain.scope import Scope
from scrubjay.ports import Clock
from scrubjay.surfaces.keys import Grant, Key, own_origin
from scrubjay.surfaces.oidc.keyset import KeySet
from scrubjay.surfaces.oidc.publisher import ALGORITHMS, Publisher, VerifyingKey
from scrubjay.surfaces.oidc.refusals import Refused
from scrubjay.surfaces.oidc.trust import GRANT_PREFIX, Trust

LEEWAY_SECONDS: Final = 30.0
"""How far the clock of the issuer may be from ours."""
_LATEST: Final = datetime.max.replace(tzinfo=UTC).timestamp() - 1
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
"""What a token may say it is: other tokens of the same issuer are for other uses."""


class Tokens:
    """The tokens of one issuer, as holders."""

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
        """Who holds a token; Refused if it is not good, Unreachable if that cannot be told."""
        key = await self.keys.find(_key_id(token))
        if key is None:
            raise Refused("its key is not one of the issuer's")
        claims = self._verified(token, key)
        expires_at = self._in_time(claims)
        if "cnf" in claims:
            raise Refused("it is bound to a proof that nobody asks for here")
        scope = self._trust.scope.scope(self._named(claims))
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
            raise Refused(type(error).__name__) from error
        return claims

    def _in_time(self, claims: Mapping[str, Any]) -> datetime:
        """When the token ends, if it has begun and not ended."""
        now, ends = self._clock.now().timestamp(), _number(claims, "exp")
        if ends <= now - LEEWAY_SECONDS:
            raise Refused("it has expired", expired=True)
        for name in ("nbf", "iat"):
            if name in claims and _number(claims, name) > now + LEEWAY_SECONDS:
                raise Refused(f"its {name} is to come")
        return datetime.fromtimestamp(ends, UTC)

    def _named(self, claims: Mapping[str, Any]) -> Mapping[str, str]:
        found = {name: claims.get(name) for name in self._trust.scope.claims}
        if not all(isinstance(claim, str) and claim for claim in found.values()):
            raise Refused("it does not say whose it is")
        return {name: str(claim) for name, claim in found.items()}


def granted(grants: tuple[Grant, ...], claims: Mapping[str, Any]) -> tuple[Grant, ...]:
    """The grants a token asks for of those it may have; all of them if it asks for none."""
    asked = {
        one.removeprefix(GRANT_PREFIX)
        for claim in ("scope", "scp")
        for one in _words(claims.get(claim))
        if one.startswith(GRANT_PREFIX)
    }
    return tuple(grant for grant in grants if not asked or grant in asked)


def _words(claim: object) -> list[str]:
    """The words of a claim, which issuers write as one text or as a list."""
    if isinstance(claim, list) and all(isinstance(one, str) for one in claim):
        return claim
    if claim is not None and not isinstance(claim, str):
        raise Refused("its scope is no text")
    return (claim or "").split()


def _key_id(token: str) -> str:
    """The id of the key a token says it is signed with; nothing else it says is believed yet."""
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise Refused("it is not well formed") from error
    if str(header.get("alg")) not in ALGORITHMS:
        raise Refused("its algorithm is not allowed")
    if str(header.get("typ", "JWT")).lower() not in _TYPES:
        raise Refused("it is for another use")
    if "kid" not in header:
        raise Refused("it names no key")
    return str(header["kid"])


def _number(claims: Mapping[str, Any], name: str) -> float:
    found = claims[name]
    known = isinstance(found, int | float) and not isinstance(found, bool)
    if not known or not 0 <= found <= _LATEST:
        raise Refused(f"its {name} is no time")
    return float(found)
