"""Register of requests of persons, with the day each is due, and notices to the owner.

Access is due in 24 hours, erasure in 30 days, all else in a month (Art. 12 (3) GDPR). It is kept in
the privacy book, so it outlives the memory it is about, and has none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Result
from scrubjay.model.scope import Scope
from scrubjay.model.text import doc
from scrubjay.ports import Clock
from scrubjay.surfaces.personal.book import Book, place

_FOLDER: Final = "requests"
_ALARM: Final = 0.25
"""The share of its time that is left when a request raises the alarm."""


class RightKind(StrEnum):
    """What a person asks for, by articles 15 to 21 of the GDPR."""

    ACCESS = "access"
    RECTIFICATION = "rectification"
    ERASURE = "erasure"
    RESTRICTION = "restriction"
    PORTABILITY = "portability"
    OBJECTION = "objection"


_DUE: Final = {RightKind.ACCESS: timedelta(hours=24), RightKind.ERASURE: timedelta(days=30)}
_KEPT: Final = 50
"""How many requests of one person are kept; the oldest answered ones give way."""
_MONTH: Final = timedelta(days=30)


class RightRequest(Result, frozen=True, kw_only=True):
    """A request of a person: what for, when it came, and by when it is due."""

    id: Annotated[str, doc("The id of the request.")]
    right: Annotated[RightKind, doc("What is asked for.")]
    scope: Annotated[str, doc("Whose memory it is about.")]
    received_at: Annotated[datetime, doc("The time it came in, in UTC.")]
    due_at: Annotated[datetime, doc("The time it has to be answered.")]
    answered_at: Annotated[
        datetime | None, doc("The time it was answered; None while it is open.")
    ] = None

    def alarming(self, now: datetime) -> bool:
        """Whether it is open and late, or nearly."""
        left = (self.due_at - self.received_at) * _ALARM
        return self.answered_at is None and now >= self.due_at - left


class Register:
    """The requests of all persons of an installation."""

    def __init__(self, engine: Kernel, clock: Clock) -> None:
        self._book = Book(engine)
        self._clock = clock

    def file(self, scope: Scope, right: RightKind) -> RightRequest:
        """Note a request, whose time runs from now; one that is open already stays as it is."""
        known = self.of(scope)
        for one in known:
            if one.right is right and one.answered_at is None:
                return one
        answered = [one for one in known if one.answered_at is not None]
        for one in answered[: max(0, len(known) + 1 - _KEPT)]:
            self._book.remove(_FOLDER, *place(scope), one.id)
        now = self._clock.now()
        id, due = f"req-{self._clock.new_id()}", now + _DUE.get(right, _MONTH)
        made = RightRequest(id=id, right=right, scope=str(scope), received_at=now, due_at=due)
        self._book.write(made, _FOLDER, *place(scope), id)
        return made

    def answer(self, scope: Scope, id: str) -> RightRequest:
        """Note that a request was answered; NotFound if there is none of this scope."""
        found = self._book.find(RightRequest, _FOLDER, *place(scope), id)
        if found is None:
            raise NotFound("There is no such request.")
        done = replace(found[0], answered_at=found[0].answered_at or self._clock.now())
        self._book.write(done, _FOLDER, *place(scope), id, revision=found[1])
        return done

    def of(self, scope: Scope) -> tuple[RightRequest, ...]:
        """The requests about one scope, oldest first."""
        found = (one for _, one in self._book.sheets(RightRequest, _FOLDER, *place(scope)))
        return tuple(sorted(found, key=lambda one: one.received_at))

    def alarms(self) -> Iterator[RightRequest]:
        """The open requests of all scopes that are late, or nearly."""
        now = self._clock.now()
        found = (one for _, one in self._book.sheets(RightRequest, _FOLDER))
        return (one for one in found if one.alarming(now))


# -- notices to the owner -------------------------------------------------------------------------


_NOTICES: Final = "notices"
_LIFTING: Final = (
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
        notice = OwnerNotice(id=id, at=self._clock.now(), text=_LIFTING)
        self._book.write(notice, _NOTICES, *place(scope))
        return notice

    def find(self, scope: Scope) -> OwnerNotice | None:
        """The notice that waits; None if there is none."""
        found = self._book.find(OwnerNotice, _NOTICES, *place(scope))
        return None if found is None else found[0]

    def read(self, scope: Scope) -> OwnerNotice | None:
        """The notice as its owner reads it: that is noted."""
        notice = self.find(scope)
        if notice is None or notice.read:
            return notice
        notice = replace(notice, read=True)
        self._book.write(notice, _NOTICES, *place(scope))
        return notice

    def close(self, scope: Scope) -> None:
        """Remove the notice: what it announces is done, or there is nothing to announce."""
        self._book.remove(_NOTICES, *place(scope))
