"""Extraction in the background: one thread of its own, so that nobody ever waits for a model.

It is woken by every turn that is recorded here. Now and then it looks at all scopes, for turns
that another process recorded, and for scopes whose tokens of the day were used up.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Final

from scrubjay.engine import Engine
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.requests import Extract
from scrubjay.model.results import Stopped
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service.metrics import Metrics

STOP_SECONDS: Final = 2.0
"""How long the end of the service waits for a model that thinks; then it is left behind."""
_SLICE: Final = Extract(limit=8, seconds=5.0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """How long to leave the model alone."""

    first: float = 1.0
    """After it could not be had for the first time; twice as long each time it still cannot,"""
    longest: float = 300.0
    """but no longer than that."""
    sweep: float = 600.0
    """Between two looks at all scopes."""


class Background:
    """The thread; it takes the scopes in turn, a few turns of each."""

    def __init__(
        self, engine: Engine, clock: Clock, metrics: Metrics, pauses: Pauses | None = None
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._metrics = metrics
        self._pauses = pauses or Pauses()
        self._pending: dict[Scope | None, None] = {}
        self._left: dict[Scope, int] = {}
        self._failures = 0
        self._next_sweep = 0.0
        self._wakes = threading.Condition()
        self._ending = threading.Event()
        # A daemon: a model that does not answer must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="extraction", daemon=True)

    def start(self) -> None:
        """Begin, if there is a model at all."""
        if self._engine.extracts:
            self._engine.listen(self.wake)
            self._thread.start()

    def wake(self, scope: Scope) -> None:
        """Say that a scope has a turn to be read; costs the caller nothing."""
        with self._wakes:
            self._pending[scope] = None
            self._wakes.notify()

    def stop(self) -> None:
        """End within a moment: what waits is noted in the store, and waits on."""
        self._engine.listen(None)
        self._ending.set()
        with self._wakes:
            self._wakes.notify()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        self._sweep()
        while not self._ending.is_set():
            with self._wakes:
                if not self._pending and not self._ending.is_set():
                    self._wakes.wait(self._pauses.sweep)
                scope = next(iter(self._pending), None)
                self._pending.pop(scope, None)
            if self._ending.is_set():
                return
            if scope is not None:
                self._work(scope)
            # Also where some scopes always have something: the others must not wait for ever.
            if scope is None or self._clock.monotonic() >= self._next_sweep:
                self._sweep()

    def _sweep(self) -> None:
        self._next_sweep = self._clock.monotonic() + self._pauses.sweep
        try:
            scopes = self._engine.scopes()
        except ScrubjayError as error:
            _log.warning("extraction.no_scopes", extra={"code": error.code})
            return
        with self._wakes:
            self._pending.update(dict.fromkeys(scopes))

    def _work(self, scope: Scope) -> None:
        """Have the model read a few turns; leave one that cannot be had alone, longer each time."""
        add = self._metrics.add
        try:
            done = self._engine.extract(scope, _SLICE)
        except ScrubjayError as error:
            # Frozen, destroyed, or a store that is busy or full: the turns wait in the store.
            _log.warning("extraction.left_waiting", extra={"code": error.code})
            return
        except Exception:  # seam: whatever goes wrong with one scope, the others have their turn
            _log.exception("extraction.failed")
            add("memory_extraction_failures_total", 1)
            return
        add("memory_extraction_tokens_total", done.tokens_in, direction="in")
        add("memory_extraction_tokens_total", done.tokens_out, direction="out")
        add("memory_extraction_turns_total", done.turns)
        add("memory_extraction_memories_total", done.memories)
        add("memory_extraction_repeats_total", done.repeats)
        add("memory_extraction_failures_total", done.failed)
        self._left[scope] = done.left
        self._metrics.show("memory_extraction_waiting", sum(self._left.values()))
        if done.left and done.stopped in (None, Stopped.UNAVAILABLE):
            self.wake(scope)
        if done.turns:
            self._failures = 0
        if done.stopped is Stopped.UNAVAILABLE:
            self._failures += 1
            pause = self._pauses.first * 2 ** min(self._failures - 1, 30)
            self._ending.wait(min(pause, self._pauses.longest))
