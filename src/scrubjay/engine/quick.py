"""Whether a recall takes but a few milliseconds now, and waits for nobody.

A surface with an event loop may then do it right there. The work is nearly all Python and small
calls of numpy, each of which lets go of the interpreter and wants it back: on a thread of its own,
it and the loop would take it from each other dozens of times, which costs as much again.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from scrubjay.domain.errors import ScrubjayError
from scrubjay.engine.opened import OpenScope

if TYPE_CHECKING:
    from scrubjay.engine.indexing import Indexed

ROWS: Final = 10_000
"""A scope of more memories is ranked elsewhere: that takes longer, most of it outside Python."""
CHANGES: Final = 32
"""How many changes may be taken in on the way."""


def hold(opened: OpenScope, indexed: Indexed) -> ExitStack | None:
    """The index, held until the stack is closed; None if a recall would take long, or wait."""
    if opened.due or opened.ports.embedder.costly or not indexed.lock.acquire(blocking=False):
        return None
    with ExitStack() as stack:
        stack.callback(indexed.lock.release)
        if _is_short(opened, indexed):
            return stack.pop_all()
    return None


def _is_short(opened: OpenScope, indexed: Indexed) -> bool:
    index = indexed.index
    if index is None or indexed.late or not indexed.used or len(index) > ROWS:
        return False
    if index.unwritten + CHANGES > opened.ports.policy.segment_rows:
        return False  # a segment may be written
    try:
        behind = opened.read(lambda view: view.head()).memory.seq - index.seq
    except ScrubjayError:
        return False  # the recall itself will say what is wrong
    return 0 <= behind <= CHANGES
