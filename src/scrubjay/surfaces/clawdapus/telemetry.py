"""What is told of each operation: one event and a few counters, never what was said.

The event has the shape the proxy gives its own: what is nothing is left out, but `intervention`
always stands there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

EVENT: Final = "memory_op"
SERVICE: Final = "scrubjay"
_log = logging.getLogger(__name__)


class Ended(StrEnum):
    """How an operation ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    """It is not offered here, or there was nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What an operation did, in numbers."""

    ended: Ended = Ended.SUCCEEDED
    blocks: int | None = None
    """How many blocks a recall told."""
    bytes: int | None = None
    """How many bytes of text they have together."""
    removed: int = 0
    """Of a retain the secrets that were taken out, of a forget the rows that were erased."""


def emit(operation: str, account: Account, *, status: int, seconds: float) -> None:
    """Write the event of one operation to the log."""
    facts: dict[str, Any] = {
        "type": EVENT,
        "memory_service": SERVICE,
        "memory_op": operation,
        "memory_status": account.ended.value,
        "intervention": None,
    }
    if account.blocks is not None:
        facts |= {"memory_blocks": account.blocks, "memory_bytes": account.bytes}
    latency = 0 if account.ended is Ended.SKIPPED else round(seconds * 1000)
    more = {"memory_removed": account.removed, "latency_ms": latency, "status_code": status}
    _log.info(EVENT, extra=facts | {name: number for name, number in more.items() if number})
