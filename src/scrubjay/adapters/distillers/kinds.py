"""Rules that tell the kind of a memory from its text; the patterns are in `kinds.toml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from scrubjay.model.memory import Kind
from scrubjay.model.turns import Piece, Turn
from scrubjay.ports import Distiller

_READ_CHARS: Final = 400
_WRAP: Final = re.compile(r"(?:\A|\n) *")
_FRAGMENT: Final = re.compile(r"\{([a-z]+)\}")
_MARKS: Final = " \t\n\"'“”„«»*_-•"
_TABLES: Final = ("passing", "instruction", "preference")


def kind_of(text: str) -> Kind:
    """Preference or instruction if the text begins like one, else fact; a question is a fact."""
    begin = text[:_READ_CHARS].replace("\u2019", "'").strip(_MARKS)
    if begin.endswith(("?", "\uff1f")):
        return Kind.FACT
    found = _pattern().match(begin)
    return Kind.FACT if found is None else Kind(str(found.lastgroup).partition("_")[0])


@cache
def _pattern() -> re.Pattern[str]:
    """The patterns of all languages as one: a group for each, named by its kind.

    Of each language those that settle a text come first. One match takes half as long as one for
    each group.
    """
    import tomllib

    tables = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))
    groups = []
    for language, table in tables.items():
        fragments = table.get("fragments", {})

        def whole(name: re.Match[str], fragments: dict[str, str] = fragments) -> str:
            return _WRAP.sub("", fragments[name[1]])

        for name in _TABLES:
            kind = Kind.FACT if name == "passing" else Kind(name)
            joined = "|".join(_WRAP.sub("", one) for one in table[name])
            groups.append(f"(?P<{kind.value}_{language}>{_FRAGMENT.sub(whole, joined)})")
    return re.compile("|".join(groups), re.IGNORECASE)


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

    def kind(self, text: str) -> Kind:
        """The kind of a memory by its text; the rules for turns are not loaded for it."""
        return kind_of(text)
