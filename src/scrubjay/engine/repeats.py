"""Repetitions: which turns only say again what one of the few before them said.

A turn repeats another when they share nearly all of their words, it states nothing the other does
not, and nobody said otherwise in between. So the same sentence with another number is news, and so
is the first one again after that. All of this follows from the turns alone, not from what was
derived of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from scrubjay.domain.turns import State, Turn, alike, stated
from scrubjay.engine.timeline import Mark
from scrubjay.ports import Distiller

_Answer = TypeVar("_Answer")


class Repeats:
    """Compares turns of one state of a scope; each is read once at most for either question."""

    def __init__(self, distiller: Distiller | None, read: Callable[[str], Turn]) -> None:
        self._distiller = distiller
        self._read = read
        self._words: dict[str, frozenset[str]] = {}
        self._stated: dict[str, Mapping[str, str]] = {}

    def of(self, turn_id: str, before: Sequence[Mark]) -> list[str]:
        """Which of the turns before it, given oldest first, a turn only says again."""
        words = self._words_of(turn_id)
        like = {mark.id for mark in before if alike(words, self._words_of(mark.id))}
        if not like:
            return []
        found, says = [], self._stated_in(turn_id)
        for mark in reversed(before):
            said = self._stated_in(mark.id)
            if any(said.get(slot, value) != value for slot, value in says.items()):
                break  # what was said before that no longer counts
            # Of a turn that could not be distilled nothing is known: it makes no other needless.
            if mark.id in like and says.items() <= said.items() and mark.state != State.FAILED:
                found.append(mark.id)
        return found

    def _words_of(self, turn_id: str) -> frozenset[str]:
        if turn_id not in self._words:
            self._words[turn_id] = self._ask(turn_id, lambda by, turn: by.words(turn), frozenset())
        return self._words[turn_id]

    def _stated_in(self, turn_id: str) -> Mapping[str, str]:
        if turn_id not in self._stated:
            self._stated[turn_id] = self._ask(
                turn_id, lambda by, turn: stated(turn, by.distill(turn)), {}
            )
        return self._stated[turn_id]

    def _ask(
        self, turn_id: str, question: Callable[[Distiller, Turn], _Answer], otherwise: _Answer
    ) -> _Answer:
        if self._distiller is None:
            return otherwise
        try:
            return question(self._distiller, self._read(turn_id))
        except Exception:  # seam: a damaged turn, or one nobody can read, is like no other
            return otherwise
