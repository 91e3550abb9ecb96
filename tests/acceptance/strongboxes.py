"""Scopes that their user holds: what was acknowledged is there once, whenever a process died."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scrubjay.engine import Kernel
from scrubjay.model.requests import Retain
from scrubjay.model.results import Outcome
from scrubjay.model.scope import Scope
from scrubjay.model.user_keys import Hold, Unlock

_PASSPHRASE = "three jays in one oak"


class Strongboxes:
    """Each step puts a scope of its own under a passphrase, and writes to it while it is locked."""

    def __init__(self, engine: Kernel, folder: Path) -> None:
        self._engine = engine
        self._file = folder / "strongboxes"

    def step(self, number: int) -> None:
        """Write, hold, lock, write again, unlock; what was acknowledged stands beside the home."""
        scope = _scope(number)
        self._engine.retain(scope, Retain("told before", key="before"))
        self._acknowledge(number, "told before")
        self._engine.hold(scope, Hold(passphrase=_PASSPHRASE))
        self._engine.lock(scope)
        done = self._engine.retain(scope, Retain("told while locked", key="locked"))
        assert done.outcome is Outcome.WAITING
        self._acknowledge(number, "told while locked")
        self._engine.unlock(scope, Unlock(passphrase=_PASSPHRASE))
        told = sorted(one.content for one in self._engine.browse(scope))
        assert told == ["told before", "told while locked"]

    def problems(self) -> Iterator[str]:
        """What is wrong with what is there, one sentence each."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        acknowledged: dict[int, set[str]] = {}
        for line in lines:
            number, _, text = line.partition(" ")
            acknowledged.setdefault(int(number), set()).add(text)
        for step, texts in acknowledged.items():
            scope = _scope(step)
            if self._engine.holdings(scope).user_held:
                self._engine.unlock(scope, Unlock(passphrase=_PASSPHRASE))
            told = [one.content for one in self._engine.browse(scope)]
            if missing := texts - set(told):
                yield f"{scope} lost {missing}, which were acknowledged"
            if len(set(told)) != len(told):
                yield f"{scope} has something twice: {told}"
            if left := self._engine.holdings(scope).waiting:
                yield f"{left} writes still wait in {scope}, which is unlocked"
            yield from self._engine.verify(scope).problems

    def _acknowledge(self, number: int, text: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{number} {text}\n")


def _scope(number: int) -> Scope:
    return Scope("acme", f"strongbox-{number}")
