"""The system clock: the only place of the shipped code that asks for time or randomness."""

from __future__ import annotations

import os
import time
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
        # What uuid.uuid4() does, in a third of its time: every retain asks for one.
        number = int.from_bytes(os.urandom(16)) & ~(0xF << 76 | 0x3 << 62) | (0x4 << 76 | 0x2 << 62)
        text = f"{number:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def random(self, size: int) -> bytes:
        """Random bytes fit for keys and nonces."""
        return os.urandom(size)
