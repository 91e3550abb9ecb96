"""The verbs of extraction, and who is told that there is something to extract from."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.domain.origin import Actor
from scrubjay.domain.results import Extraction, ExtractionStatus
from scrubjay.domain.scope import Scope
from scrubjay.engine import extract
from scrubjay.engine.opened import OpenScope, Ports

Told = Callable[[Scope], None]


class Extracting:
    """What the engine can do with a model that reads turns."""

    _ports: Ports
    _told: Told | None = None

    @property
    def extracts(self) -> bool:
        """Whether there is a model that reads turns."""
        return self._ports.extractor is not None

    def _begin(self, scope: Scope) -> OpenScope:
        raise NotImplementedError

    def listen(self, told: Told | None) -> None:
        """Have somebody told of every scope with a turn to be read; it must not take long."""
        self._told = told

    def _tell(self, scope: Scope) -> None:
        if self._told is not None:
            self._told(scope)

    def extract(
        self,
        scope: Scope,
        *,
        limit: int = extract.TURNS,
        seconds: float = extract.SECONDS,
        again: bool = False,
        actor: Actor = Actor.SYSTEM,
    ) -> Extraction:
        """Have the model read turns that wait; `again` also those it has read before."""
        return extract.extract(
            self._begin(scope), limit=limit, seconds=seconds, again=again, actor=actor
        )

    def extraction(self, scope: Scope) -> ExtractionStatus:
        """How far the model has come with the turns, and what that cost."""
        return extract.status(self._begin(scope))

    def pause_extraction(
        self, scope: Scope, *, paused: bool = True, actor: Actor = Actor.USER
    ) -> ExtractionStatus:
        """Send no turns of this scope to the model, or go on sending them."""
        status = extract.pause(self._begin(scope), paused=paused, actor=actor)
        if not paused:
            self._tell(scope)
        return status
