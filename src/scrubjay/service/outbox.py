"""The outbox: recipients are told of each rectification, erasure and restriction (Art. 19 GDPR).

What there is to tell is read from the audit trails, and how far each recipient has been told is one
number for each life of a scope, in the shared state. It is raised when the recipient has answered,
so a notice is sent until it was received; one that was sent twice has the same id.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from scrubjay import codec
from scrubjay.access import Keys
from scrubjay.bootstrap import Courier
from scrubjay.engine import Kernel
from scrubjay.engine.scope.exercised import RIGHTS, Life
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.memory import Result
from scrubjay.model.results import AuditEvent
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service.cursors import Signer

SIGNATURE: Final = "X-Scrubjay-Signature"
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 6 * 3600.0
"""Exponential backoff of a recipient that does not answer."""
_FOR_EVER: Final = 100 * 365 * 86_400.0
_log = logging.getLogger(__name__)


class Recipient(Struct, frozen=True, kw_only=True):
    """Who is told, and how: `post` returns once it was received, and raises otherwise."""

    url: str
    key: bytes
    """Signs what is sent: HMAC-SHA256."""
    post: Courier

    @property
    def name(self) -> str:
        """Its name in the shared state."""
        return f"outbox/{hashlib.sha256(self.url.encode()).hexdigest()[:24]}"


class RightNotice(Result, frozen=True, kw_only=True):
    """What a recipient is told: which right, of whom, when; nothing of any content."""

    id: Annotated[str, Meta(description="The id of the notice: one sent twice has the same.")]
    right: Annotated[
        str, Meta(description="rectification, erasure, restriction or restriction_lifted.")
    ]
    verb: Annotated[str, Meta(description="What was done, such as forget.")]
    org_id: Annotated[str, Meta(description="The organization of the person.")]
    user_id: Annotated[str, Meta(description="The person.")]
    at: Annotated[datetime, Meta(description="The time it was done, in UTC.")]
    records: Annotated[int, Meta(description="How many records were concerned.")]
    subjects: Annotated[
        tuple[str, ...], Meta(description="Their pseudonyms; only the first ones of many.")
    ] = ()


class Delivery(Result, frozen=True, kw_only=True):
    """One notice to one recipient, and whether it was received."""

    recipient: Annotated[str, Meta(description="The endpoint of the recipient.")]
    notice: RightNotice
    received: Annotated[bool, Meta(description="Whether the recipient has answered.")]


class Progress(Struct, frozen=True):
    """Since when a recipient is told, and how often it did not answer lately."""

    since: float
    failures: int = 0
    again: float = 0.0


class Outbox:
    """The notices to all recipients of an installation; any process may send."""

    def __init__(self, engine: Kernel, clock: Clock, recipients: Sequence[Recipient]) -> None:
        self._engine = engine
        self._clock = clock
        self.recipients = recipients

    def send(self) -> int:
        """Send what waits, and is due; how many notices wait afterwards."""
        waiting = 0
        for recipient in self.recipients:
            told, lives = self._progress(recipient), self._engine.lives()
            reached = told.again <= self._now
            for life in lives:
                for count, notice in self._waiting(recipient, told, life):
                    reached = reached and self._deliver(recipient, notice)
                    waiting += not reached
                    if reached:
                        self._told(recipient, life, count)
        return waiting

    def failing(self) -> Iterator[tuple[str, int]]:
        """The recipients that did not answer lately, and how often."""
        for recipient in self.recipients:
            if failures := self._progress(recipient).failures:
                yield recipient.url, failures

    def of(self, scope: Scope) -> Iterator[Delivery]:
        """The notices about a scope since each recipient is told of any, oldest first."""
        for recipient in self.recipients:
            told = self._progress(recipient)
            for life in self._engine.lives():
                if life.scope != scope:
                    continue
                seen = self._count(recipient, life)
                for event in self._engine.exercised(life, 0):
                    if event.at.timestamp() >= told.since:
                        yield Delivery(
                            recipient=recipient.url,
                            notice=_notice(life, event),
                            received=event.count <= seen,
                        )

    def _waiting(
        self, recipient: Recipient, told: Progress, life: Life
    ) -> Iterator[tuple[int, RightNotice]]:
        """What a recipient is to be told of a life, and the count that says it was."""
        seen = self._count(recipient, life)
        if life.events <= seen:
            return
        try:
            events = self._engine.exercised(life, seen)
        except ScrubjayError as error:
            _log.warning("outbox.left", extra={"code": error.code})
            return
        due = [one for one in events if one.count > seen and one.at.timestamp() >= told.since]
        if not due:  # nothing of it concerns them: the next look begins later
            self._told(recipient, life, life.events)
        for event in due:
            yield event.count, _notice(life, event)

    def _deliver(self, recipient: Recipient, notice: RightNotice) -> bool:
        """Send one notice; whether it was received."""
        body = codec.to_json(notice)
        signature = hmac.digest(recipient.key, body, hashlib.sha256).hex()
        headers = {SIGNATURE: f"sha256={signature}", "Idempotency-Key": notice.id}
        told = self._progress(recipient)
        try:
            recipient.post(body, headers)
        except Exception as error:  # seam: whatever a recipient does, the others are told
            pause = min(_FIRST_PAUSE * 2 ** min(told.failures, 20), _LONGEST_PAUSE)
            told = replace(told, failures=told.failures + 1, again=self._now + pause)
            self._keep(recipient.name, msgspec.json.encode(told))
            _log.warning("outbox.not_received", extra={"error": type(error).__name__})
            return False
        if told.failures:
            self._keep(recipient.name, msgspec.json.encode(Progress(told.since)))
        return True

    # -- the shared state ----------------------------------------------------------------

    @property
    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _progress(self, recipient: Recipient) -> Progress:
        """What is known of a recipient; a new one is told of what happens from now on."""
        held = self._engine.shared.get(recipient.name, self._now)
        if held is None:
            held = msgspec.json.encode(Progress(self._now))
            self._keep(recipient.name, held)
        return msgspec.json.decode(held, type=Progress)

    def _count(self, recipient: Recipient, life: Life) -> int:
        held = self._engine.shared.get(f"{recipient.name}/{life.address}", self._now)
        return 0 if held is None else int(held)

    def _told(self, recipient: Recipient, life: Life, count: int) -> None:
        if count > self._count(recipient, life):
            self._keep(f"{recipient.name}/{life.address}", str(count).encode())

    def _keep(self, name: str, value: bytes) -> None:
        shared, now = self._engine.shared, self._now
        shared.exchange(name, shared.get(name, now), value, now=now, until=now + _FOR_EVER)


def _notice(life: Life, event: AuditEvent) -> RightNotice:
    return RightNotice(
        id=f"{life.address[:16]}-{'end' if life.destroyed else event.count}",
        right=RIGHTS[event.verb],
        verb=event.verb,
        org_id=life.scope.tenant,
        user_id=life.scope.owner,
        at=event.at.astimezone(UTC),
        records=event.number,
        subjects=event.subjects,
    )


def outbox_of(engine: Kernel, clock: Clock, couriers: Mapping[str, Courier]) -> Outbox:
    """The outbox of an installation; each recipient has a key of its own."""
    # Without recipients nothing is made: the secret is, when it is first asked for.
    secret = Signer(Keys(engine, clock).signing_secret()).key(b"recipients") if couriers else b""
    known = tuple(
        Recipient(url=url, key=hmac.digest(secret, url.encode(), hashlib.sha256), post=post)
        for url, post in couriers.items()
    )
    return Outbox(engine, clock, known)
