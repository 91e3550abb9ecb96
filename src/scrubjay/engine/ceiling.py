"""How far what comes in as a file is trusted: no further than the channel it came in by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from scrubjay.domain.errors import Forbidden
from scrubjay.domain.memory import Memory
from scrubjay.domain.origin import Origin, lowest
from scrubjay.domain.turns import Turn

Held = TypeVar("Held", Memory, Turn)


def lowered(held: Iterable[Held], most: Origin) -> tuple[Held, ...]:
    """The memories or turns, none of them more trusted than `most`."""
    return tuple(replace(one, origin=lowest((most, one.origin))) for one in held)


def check(here: Memory | None, memory: Memory) -> None:
    """Refuse to put a memory in the place of one that is trusted more."""
    if here is not None and here.origin.trust > memory.origin.trust:
        raise Forbidden(
            f"A memory of origin {here.origin} cannot be replaced by origin {memory.origin}.",
            hint="Nothing was loaded. Load it as somebody who is trusted as much.",
        )
