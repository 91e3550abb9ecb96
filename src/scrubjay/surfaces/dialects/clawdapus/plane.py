"""The plane: one request in, one answer out, as the proxy of a pod expects them."""

from __future__ import annotations

import hmac
import threading
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from scrubjay.domain import errors
from scrubjay.domain.errors import ScrubjayError
from scrubjay.domain.origin import Actor
from scrubjay.domain.requests import Forget, Recall
from scrubjay.domain.scope import Scope
from scrubjay.engine import Engine
from scrubjay.surfaces.dialects.clawdapus import blocks, descriptor, entries
from scrubjay.surfaces.dialects.clawdapus.descriptor import Offer
from scrubjay.surfaces.dialects.clawdapus.entries import Refused

BODY_BYTES: Final = 8 * 1024 * 1024
"""The longest line of a history, and so the largest body there is."""
WARM_EVERY: Final = 128
"""After how many retains the index of a scope is brought up to date without being asked."""
_STATUS: Final = {
    errors.InvalidRequest: 400,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Destroyed: 410,
    errors.Frozen: 423,
    errors.LimitReached: 429,
    errors.Busy: 503,
    errors.Full: 503,
    errors.Locked: 503,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: a status, and a body of this kind."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"


class Plane:
    """All operations of the plane on one engine; safe for several threads."""

    def __init__(self, engine: Engine, offer: Offer | None = None) -> None:
        self._engine = engine
        self.offer = offer or Offer()
        self._mutex = threading.Lock()
        self._since: Counter[Scope] = Counter()

    # -- before the body -----------------------------------------------------------------

    def refusal(self, operation: str, method: str, authorization: str | None) -> Reply | None:
        """Why a request is not even read; None if it is."""
        if operation not in self.offer.paths:
            return _text(404, "not found")
        if method != "POST":
            return _text(405, "method not allowed")
        if not self._may(authorization):
            return _text(401, "unauthorized")
        return None

    def _may(self, authorization: str | None) -> bool:
        if self.offer.token is None:
            return True
        kind, _, given = (authorization or "").partition(" ")
        wanted = self.offer.token.encode()
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), wanted)
        return kind.lower() == "bearer" and same

    # -- the operations ------------------------------------------------------------------

    def answer(self, operation: str, raw: bytes) -> Reply:
        """The answer to the body of an operation; every error is one, too."""
        carry_out: Callable[[entries.Fields], Reply] = {
            "recall": self._recall,
            "retain": self._retain,
            "forget": self._forget,
        }[operation]
        try:
            return carry_out(entries.decode(raw, operation))
        except Refused as refused:
            return _text(400, str(refused))
        except ScrubjayError as error:
            return _text(_status(error), f"{error.code}: {error.message}")

    def _recall(self, body: entries.Fields) -> Reply:
        asked = entries.asked(body)
        return Reply(body=blocks.answer(self._engine, asked), kind="application/json")

    def _retain(self, body: entries.Fields) -> Reply:
        told = entries.told(body)
        if told.record is not None:
            self._engine.record(told.scope, told.record)
            self._keep_warm(told.scope)
        return Reply(status=202)

    def _keep_warm(self, scope: Scope) -> None:
        """Have the index follow a long replay, so that the first recall after it is in time."""
        with self._mutex:
            self._since[scope] += 1
            is_due = self._since[scope] % WARM_EVERY == 0
        if is_due:
            # The turn is durable: what goes wrong here will be told to whoever recalls.
            with suppress(ScrubjayError):
                self._engine.recall(scope, Recall(query="anything", limit=1, actor=Actor.AGENT))

    def _forget(self, body: entries.Fields) -> Reply:
        dropped = entries.dropped(body)
        request = Forget(ids=dropped.ids, unseen=True, actor=Actor.OPERATOR)
        self._engine.forget(dropped.scope, request)
        return Reply(status=204)

    # -- the rest ------------------------------------------------------------------------

    def health(self, method: str = "GET") -> Reply:
        """That it is up."""
        return Reply() if method in ("GET", "HEAD") else _text(405, "method not allowed")

    def describe(self, method: str = "GET") -> Reply:
        """What it offers."""
        if method not in ("GET", "HEAD"):
            return _text(405, "method not allowed")
        return Reply(body=descriptor.render(self.offer), kind="application/json")


def _text(status: int, text: str) -> Reply:
    return Reply(status=status, body=f"{text}\n".encode())


def _status(error: ScrubjayError) -> int:
    return next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)


def too_large() -> Reply:
    """The answer to a body over the limit."""
    return _text(413, f"request body exceeds {BODY_BYTES} bytes")


def unpacked(raw: bytes, encoding: str | None) -> bytes | Reply:
    """The body as it was before it was packed, or why it cannot be had."""
    if (encoding or "identity").strip().lower() != "gzip":
        return raw
    reader = zlib.decompressobj(wbits=31)
    try:
        body = reader.decompress(raw, BODY_BYTES + 1)
    except zlib.error:
        return _text(400, "decode request: it is not gzip")
    if len(body) > BODY_BYTES:
        return too_large()
    return body if reader.eof else _text(400, "decode request: it is cut short")
