"""Audit records of calls: tool, session, group and outcome.

The trail is the scope's own: sealed and chained, without content. The name of an event carries
what Carapace's log has in fields; `lines` spells these out again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct

from scrubjay.engine import Kernel
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.memory import Json
from scrubjay.model.origin import Actor
from scrubjay.model.pages import every
from scrubjay.model.requests import AuditRequest
from scrubjay.surfaces.carapace.manifest import TOPIC
from scrubjay.surfaces.carapace.wire import Code, scope_of, stamp

_PREFIX: Final = "carapace."
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,19}")
_OTHER: Final = "other"
_PAGE: Final = 1_000
_log = logging.getLogger(__name__)


class CallOutcome(StrEnum):
    """Outcome of a call."""

    ROUTED = "routed"
    SANITIZED = "sanitized"
    """It was carried out, and a secret was removed from the reply."""
    REJECTED = "rejected"
    ERROR = "error"


class CallRecord(Struct, frozen=True, kw_only=True):
    """Log record of one call, without any content."""

    group: str
    session: str
    tool: str
    outcome: CallOutcome
    code: Code | None = None

    @property
    def verb(self) -> str:
        """The name of the event in the trail."""
        tool = self.tool if _NAME.fullmatch(self.tool) else _OTHER
        code = "" if self.code is None else f".{self.code.lower()}"
        return f"{_PREFIX}{tool}.{self.outcome}{code}"


Recorder = Callable[[CallRecord], None]


def no_record(record: CallRecord) -> None:
    """Keep no record but a line in the log."""
    _log.info("carapace.call", extra={"verb": record.verb, "group": record.group})


class AuditRecorder(Struct, frozen=True):
    """A recorder that writes to the audit trail of the group's scope."""

    engine: Kernel

    def __call__(self, record: CallRecord) -> None:
        """Write one record; a full disk must not keep an agent from reading."""
        try:
            self.engine.note(
                scope_of(record.group), record.verb, session=record.session, actor=Actor.AGENT
            )
        except ScrubjayError as error:
            _log.warning("carapace.not_recorded", extra={"code": error.code, "verb": record.verb})


# -- reading it again -----------------------------------------------------------------------------

_STAGES: Final = {
    Code.UNKNOWN_TOOL: "topic",
    Code.VALIDATION_FAILED: "payload",
    Code.UNAUTHORIZED: "authorize",
    Code.RATE_LIMITED: "authorize",
    Code.CONFIRMATION_TIMEOUT: "confirm",
    Code.CONFIRMATION_DENIED: "confirm",
}


def lines(engine: Kernel, group: str) -> Iterator[dict[str, Json]]:
    """The calls of a group, oldest first, with the fields of Carapace's own log.

    `source` is a pseudonym of the session: the same one has the same.
    """
    scope, seq = scope_of(group), 0
    for event in every(lambda cursor: engine.audit(scope, AuditRequest(_PAGE, cursor=cursor))):
        if not event.verb.startswith(_PREFIX):
            continue
        seq += 1
        tool, outcome, *rest = event.verb.removeprefix(_PREFIX).split(".")
        code = Code(rest[0].upper()) if rest else None
        stage = _STAGES.get(code, "route") if code and outcome == CallOutcome.REJECTED else "route"
        told: dict[str, Json] = {
            "seq": seq,
            "timestamp": stamp(event.at),
            "group": group,
            "source": event.subjects[0] if event.subjects else "",
            "topic": TOPIC + tool,
            "stage": stage,
            "outcome": outcome,
        }
        yield told if code is None else {**told, "error": {"code": code.value}}
