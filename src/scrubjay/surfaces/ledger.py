"""The verbs on conversations: turns as they happened, and the sessions they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from scrubjay import bootstrap
from scrubjay.domain.memory import NO_METADATA, Json
from scrubjay.domain.origin import Origin
from scrubjay.domain.results import Session
from scrubjay.domain.turns import Record, Recorded, Timeline, Turn
from scrubjay.surfaces.care import Care


class Ledger(Care):
    """What `Jay` can do with turns and sessions."""

    def record(
        self,
        user: str = "",
        assistant: str = "",
        *,
        id: str | None = None,
        at: datetime | None = None,
        session: str | None = None,
        model: str | None = None,
        channel: str | None = None,
        origin: Origin | str = Origin.USER,
        metadata: Mapping[str, Json] = NO_METADATA,
    ) -> Recorded:
        """Write a turn, and what follows from it; durable when this returns, once per id.

        Without an id it is a new turn each time.
        """
        request = Record(
            id=f"turn-{bootstrap.clock().new_id()}" if id is None else id,
            user=user,
            assistant=assistant,
            at=at,
            session=session,
            model=model,
            channel=channel,
            origin=origin,  # type: ignore[arg-type]  # checked and made an Origin by Record
            actor=self._actor,
            metadata=metadata,
        )
        return self._engine.record(self.scope, request)

    def turns(
        self,
        limit: int = 50,
        *,
        session: str | None = None,
        before: Turn | datetime | None = None,
    ) -> tuple[Turn, ...]:
        """Turns as they happened, newest first, of all or of one session.

        `before` is a time, or the last turn of the answer before this one; an empty answer is
        the end. Turns that say very much may come fewer at a time than the limit.
        """
        last = before if isinstance(before, Turn) else None
        return self._engine.turns(
            self.scope,
            limit,
            session=session,
            before=last.at if last else before,  # type: ignore[arg-type]  # no Turn here
            before_id=last.id if last else None,
            actor=self._actor,
        )

    def timeline(self, limit: int = 50) -> Timeline:
        """When the latest turns were, and roughly what about, oldest first."""
        return self._engine.timeline(self.scope, limit, actor=self._actor)

    def sessions(self, limit: int = 50) -> tuple[Session, ...]:
        """The sessions of which something is kept, the one that was spoken in last first."""
        return self._engine.sessions(self.scope, limit, actor=self._actor)
