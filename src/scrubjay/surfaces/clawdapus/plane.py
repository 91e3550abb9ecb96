"""The plane: one request in, one answer out, as the proxy of a pod expects them."""

from __future__ import annotations

import hmac
import threading
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from scrubjay.engine import Engine
from scrubjay.model import errors
from scrubjay.model.errors import NotFound, ScrubjayError
from scrubjay.model.origin import Actor
from scrubjay.model.requests import AGENT, Caller, Forget, Recall
from scrubjay.model.results import Outcome
from scrubjay.model.scope import Scope
from scrubjay.surfaces.clawdapus import blocks, descriptor, entries
from scrubjay.surfaces.clawdapus.descriptor import Offer
from scrubjay.surfaces.clawdapus.entries import Refused
from scrubjay.surfaces.clawdapus.telemetry import Account, Ended

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
    """An answer: a status, a body of this kind, and what is told of it."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    scope: Scope | None = None
    """Whose memory it was about, as far as that came out."""
    account: Account = field(default_factory=Account)


class Ready(Protocol):
    """Makes sure that a scope is there; NotFound if it is not, and is not to be made."""

    def __call__(self, scope: Scope, *, create: bool) -> None:
        """Look, or make it."""


class Plane:
    """All operations of the plane on one engine; safe for several threads."""

    def __init__(
        self, engine: Engine, offer: Offer | None = None, *, ready: Ready | None = None
    ) -> None:
        self._engine = engine
        self.offer = offer or Offer()
        self._ready = ready or engine.open
        self._mutex = threading.Lock()
        self._since: Counter[Scope] = Counter()

    # -- before the body -----------------------------------------------------------------

    def refusal(self, operation: str, method: str, authorization: str | None) -> Reply | None:
        """Why a request is not even read; None if it is."""
        if operation not in self.offer.paths:
            return refused(404, "not found", Ended.SKIPPED)
        if method != "POST":
            return refused(405, "method not allowed")
        if not self._may(authorization):
            return refused(401, "unauthorized")
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
            body = entries.decode(raw, operation)
            self._check_pod(body.get("pod"))
            return carry_out(body)
        except Refused as error:
            return refused(400, str(error))
        except ScrubjayError as error:
            return refused(_status(error), f"{error.code}: {error.message}")

    def _check_pod(self, pod: object) -> None:
        """Refuse a pod that is not served; the token opens no other one."""
        named = pod if isinstance(pod, str) else ""
        if self.offer.pods is not None and named not in self.offer.pods:
            raise errors.Forbidden("This pod is not served here.")

    def _recall(self, body: entries.Fields) -> Reply:
        asked = entries.asked(body)
        try:
            self._ready(asked.scope, create=False)
        except NotFound:  # a scope that is not there has nothing to tell, and is not made
            answer = blocks.render(())
        else:
            answer = blocks.answer(self._engine, asked, self.offer.recall_seconds)
        account = Account(blocks=answer.blocks, bytes=answer.bytes, removed=answer.removed)
        kind = "application/json"
        return Reply(body=answer.body, kind=kind, scope=asked.scope, account=account)

    def _retain(self, body: entries.Fields) -> Reply:
        told = entries.told(body)
        if told.record is None:
            return Reply(status=202, scope=told.scope, account=Account(ended=Ended.SKIPPED))
        done = self._engine.record(told.scope, told.record)
        is_new = done.outcome is Outcome.STORED
        if is_new:
            self._keep_warm(told.scope)
        removed = told.removed + sum(done.redacted.values()) if is_new else 0
        return Reply(status=202, scope=told.scope, account=Account(removed=removed))

    def _keep_warm(self, scope: Scope) -> None:
        """Have the index follow a long replay, so that the first recall after it is in time."""
        with self._mutex:
            self._since[scope] += 1
            is_due = self._since[scope] % WARM_EVERY == 0
        if is_due:
            # The turn is durable: what goes wrong here will be told to whoever recalls.
            with suppress(ScrubjayError):
                self._engine.recall(scope, Recall("anything", limit=1), AGENT, local=True)

    def _forget(self, body: entries.Fields) -> Reply:
        dropped = entries.dropped(body)
        request, caller = Forget(dropped.ids, unseen=True), Caller(actor=Actor.OPERATOR)
        receipt = self._engine.forget(dropped.scope, request, caller, turns_only=True)
        return Reply(status=204, scope=dropped.scope, account=Account(removed=receipt.erased))

    # -- the rest ------------------------------------------------------------------------

    def describe(self, method: str = "GET") -> Reply:
        """What it offers."""
        if method not in ("GET", "HEAD"):
            return refused(405, "method not allowed")
        return Reply(body=descriptor.render(self.offer), kind="application/json")


def refused(status: int, text: str, ended: Ended = Ended.FAILED) -> Reply:
    """An answer that says in a line why there is no other."""
    return Reply(status=status, body=f"{text}\n".encode(), account=Account(ended=ended))


def too_late() -> Reply:
    """The answer to who would not have waited for a better one."""
    return refused(503, "recall took too long", Ended.TIMED_OUT)


def _status(error: ScrubjayError) -> int:
    return next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)


def unpacked(raw: bytes, encoding: str | None) -> bytes | Reply:
    """The body as it was before it was packed, or why it cannot be had."""
    if (encoding or "identity").strip().lower() != "gzip":
        return raw
    reader = zlib.decompressobj(wbits=31)
    try:
        body = reader.decompress(raw, BODY_BYTES + 1)
    except zlib.error:
        return refused(400, "decode request: it is not gzip")
    if len(body) > BODY_BYTES:
        return refused(413, f"request body exceeds {BODY_BYTES} bytes")
    return body if reader.eof else refused(400, "decode request: it is cut short")
