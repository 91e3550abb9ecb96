"""Background jobs: one thread, so that no request waits for a language model.

Every recorded turn wakes it. Periodically it does the upkeep of the engine, and with a model checks
all scopes, for turns that another process recorded, and for those whose daily tokens were used up.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Final

from scrubjay.engine import Kernel
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.jobs import JobKind, Work
from scrubjay.model.results import Stopped
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.service.telemetry import Metrics

STOP_SECONDS: Final = 2.0
"""How long shutdown waits for a running model request; then it is abandoned."""
_SLICE: Final = Work(limit=8, seconds=5.0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Retry and polling intervals."""

    first: float = 1.0
    """Exponential backoff after the first failure of the model; doubled each time."""
    longest: float = 300.0
    """Maximum of the backoff."""
    sweep: float = 600.0
    """Interval between two rounds of upkeep and checks of all scopes."""


class Background:
    """Background thread; round-robin over the scopes, a few turns of each."""

    def __init__(
        self, engine: Kernel, clock: Clock, metrics: Metrics, pauses: Pauses | None = None
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
        """Start the thread."""
        if self._engine.extracts:
            self._engine.listen(self.wake)
        self._thread.start()

    def wake(self, scope: Scope) -> None:
        """Queue a scope that has a waiting turn; does not block."""
        with self._wakes:
            self._pending[scope] = None
            self._wakes.notify()

    def stop(self) -> None:
        """Stop within seconds; waiting turns stay in the store for the next start."""
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
            self._engine.upkeep()
            scopes = self._engine.scopes() if self._engine.extracts else ()
        except ScrubjayError as error:
            _log.warning("background.no_round", extra={"code": error.code})
            return
        with self._wakes:
            self._pending.update(dict.fromkeys(scopes))

    def _work(self, scope: Scope) -> None:
        """Do a few jobs; exponential backoff while the model is unavailable."""
        add = self._metrics.add
        try:
            done = self._engine.work(scope, _SLICE)
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
        add("memory_extraction_turns_total", done.done.get(JobKind.EXTRACTION, 0))
        add("memory_extraction_memories_total", done.memories)
        add("memory_extraction_failures_total", done.failed)
        self._left[scope] = done.left
        self._metrics.show("memory_extraction_waiting", sum(self._left.values()))
        if done.left and done.stopped in (None, Stopped.UNAVAILABLE):
            self.wake(scope)
        if done.done:
            self._failures = 0
        if done.stopped is Stopped.UNAVAILABLE:
            self._failures += 1
            pause = self._pauses.first * 2 ** min(self._failures - 1, 30)
            self._ending.wait(min(pause, self._pauses.longest))
