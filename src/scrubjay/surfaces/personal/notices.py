"""Notices to the owner: before a restriction is lifted (Art. 18 (3)), the owner is informed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.model.memory import Result
from scrubjay.model.scope import Scope
from scrubjay.model.text import doc
from scrubjay.ports import Clock
from scrubjay.surfaces.personal.book import Book, place

_FOLDER: Final = "notices"
_TEXT: Final = (
    "Somebody asks to lift the restriction of processing of your memory. Once it is lifted, agents "
    "read it, write to it and derive from it again. It stays restricted until you have read this."
)


class OwnerNotice(Result, frozen=True, kw_only=True):
    """A notice to the owner of a memory."""

    id: Annotated[str, doc("The id of the notice.")]
    at: Annotated[datetime, doc("The time it was written, in UTC.")]
    text: Annotated[str, doc("What the owner is told.")]
    read: Annotated[bool, doc("Whether the owner has read it.")] = False


class Notices:
    """The notice that the lifting of a restriction waits for; one for each scope."""

    def __init__(self, engine: Kernel, clock: Clock) -> None:
        self._book = Book(engine)
        self._clock = clock

    def announce(self, scope: Scope) -> OwnerNotice:
        """The notice of a restriction that is to be lifted, written unless there is one."""
        if (found := self.find(scope)) is not None:
            return found
        id = f"ntc-{self._clock.new_id()}"
        notice = OwnerNotice(id=id, at=self._clock.now(), text=_TEXT)
        self._book.write(notice, _FOLDER, *place(scope))
        return notice

    def find(self, scope: Scope) -> OwnerNotice | None:
        """The notice that waits; None if there is none."""
        found = self._book.find(OwnerNotice, _FOLDER, *place(scope))
        return None if found is None else found[0]

    def read(self, scope: Scope) -> OwnerNotice | None:
        """The notice as its owner reads it: that is noted."""
        notice = self.find(scope)
        if notice is None or notice.read:
            return notice
        notice = replace(notice, read=True)
        self._book.write(notice, _FOLDER, *place(scope))
        return notice

    def close(self, scope: Scope) -> None:
        """Remove the notice: what it announces is done, or there is nothing to announce."""
        self._book.remove(_FOLDER, *place(scope))
