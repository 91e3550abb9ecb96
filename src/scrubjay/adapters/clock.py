"""The system clock: the only place of the shipped code that asks for time or randomness."""

from __future__ import annotations

import os
import time
import uuid
from datetime import UTC, datetime


class SystemClock:
    """Time, ids and randomness of the operating system."""

    def now(self) -> datetime:
        """The present time, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations."""
        return time.monotonic()

    def new_id(self) -> str:
        """A fresh random UUID (version 4) as text."""
        return str(uuid.uuid4())

    def random(self, size: int) -> bytes:
        """Random bytes fit for keys and nonces."""
        return os.urandom(size)
