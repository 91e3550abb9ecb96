"""The rules distiller, loaded when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from scrubjay.model.turns import Piece, Turn
from scrubjay.ports import Distiller


class LazyRules:
    """The rules distiller, loaded at the first turn: most commands and many services see none."""

    @cached_property
    def _rules(self) -> Distiller:
        from scrubjay.adapters.distillers.rules import RulesDistiller

        return RulesDistiller()

    @property
    def identity(self) -> str:
        """Which rules these are."""
        return self._rules.identity

    def distill(self, turn: Turn) -> Sequence[Piece]:
        """The memories derived from a turn."""
        return self._rules.distill(turn)

    def words(self, turn: Turn) -> frozenset[str]:
        """Word set of a turn, for the comparison with another turn's."""
        return self._rules.words(turn)
