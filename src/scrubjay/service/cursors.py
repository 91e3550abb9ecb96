"""Signatures of the service: cursors that cannot be forged for another list, and pseudonyms."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.scope import Scope

_MAC_BYTES: Final = 16


class Signer:
    """HMAC signer of cursors, pseudonyms, idempotency keys and names of shared values."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def cursor(self, scope: Scope, verb: str, place: str) -> str:
        """The cursor of a place in what a verb lists of a scope."""
        body = place.encode()
        return base64.urlsafe_b64encode(self._mac(scope, verb, body) + body).decode().rstrip("=")

    def place(self, scope: Scope, verb: str, cursor: str) -> str:
        """The place a cursor names; InvalidRequest if it was not made for this list here."""
        try:
            raw = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        except ValueError as error:
            raise _unknown() from error
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(scope, verb, body)):
            raise _unknown()
        return body.decode()

    def pseudonym(self, scope: Scope) -> str:
        """Pseudonym of a scope: a keyed hash."""
        return self._digest(b"scope", str(scope).encode()).hex()[:16]

    def shared(self, purpose: str, name: str) -> str:
        """The name of a value in the shared state, which is not sealed: a keyed hash."""
        return f"{purpose}/{self._digest(b'shared', f'{purpose} {name}'.encode()).hex()[:32]}"

    def once(self, holder: str, path: str, key: str, body: bytes) -> str:
        """The `key` of a memory from an Idempotency-Key and a fingerprint: see `text.key_name`."""
        # Only a path may hold a line end, so that no two of these are the same.
        named = self._digest(b"once", f"{holder}\n{key}\n{path}".encode())
        return f"once-{named.hex()[:32]}-{self._digest(b'body', body).hex()[:32]}"

    def key(self, purpose: bytes) -> bytes:
        """A key of its own for one purpose, the same in every process of the installation."""
        return self._digest(purpose, b"key")

    def _mac(self, scope: Scope, verb: str, body: bytes) -> bytes:
        return self._digest(b"cursor", f"{scope}\n{verb}\n".encode() + body)[:_MAC_BYTES]

    def _digest(self, purpose: bytes, body: bytes) -> bytes:
        return hmac.digest(self._secret, purpose + b"\n" + body, hashlib.sha256)


def _unknown() -> InvalidRequest:
    return InvalidRequest("That is not a cursor of this list.", hint="Begin without a cursor.")
