"""Whether a recall takes but a few milliseconds now, and waits for nobody.

A surface with an event loop may then do it right there. The work is nearly all Python and small
calls of numpy, each of which lets go of the interpreter and wants it back: on a thread of its own,
it and the loop would take it from each other dozens of times, which costs as much again.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.requests import Caller, Recall
from scrubjay.model.results import Recalled
from scrubjay.model.scope import Scope

if TYPE_CHECKING:
    from scrubjay.engine.search.indexing import Indexed

ROWS: Final = 10_000
"""A scope of more memories is ranked elsewhere: that takes longer, most of it outside Python."""
CHANGES: Final = 32
"""How many changes may be taken in on the way."""


class Short:
    """A recall of one scope that is at hand; its index is held until the end of the block.

    It works on what it holds and on nothing else: it neither advances what is due nor makes room
    for others, which may take long. The next recall on a thread does.
    """

    def __init__(self, opened: OpenScope, indexed: Indexed, held: ExitStack) -> None:
        self._opened = opened
        self._indexed = indexed
        self._held = held

    def __enter__(self) -> Short:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def recall(self, scope: Scope, request: Recall, caller: Caller) -> Recalled:
        """The memories that answer a question, best first."""
        from scrubjay.engine.search import recall  # loaded already, since the index was used

        assert scope == self._opened.scope
        assert not request.scopes
        return recall.recall([(self._opened, self._indexed)], request, caller)


def short(opened: OpenScope, indexed: Indexed) -> Short | None:
    """A recall of the scope, ready to be done; None if it would take long, or wait."""
    if opened.ports.embedder.costly or not indexed.lock.acquire(blocking=False):
        return None
    with ExitStack() as held:
        held.callback(indexed.lock.release)
        if _is_short(opened, indexed):
            return Short(opened, indexed, held.pop_all())
    return None


def _is_short(opened: OpenScope, indexed: Indexed) -> bool:
    index = indexed.index
    if index is None or indexed.late or not indexed.used or len(index) > ROWS:
        return False
    if index.unwritten + CHANGES > opened.ports.policy.segment_rows:
        return False  # a segment may be written
    try:
        head = opened.read(lambda view: view.head())
    except ScrubjayError:
        return False  # the recall itself will say what is wrong
    # What is due is for a thread to advance: were it never asked, it would stay due.
    return not head.due and 0 <= head.memory.seq - index.seq <= CHANGES
