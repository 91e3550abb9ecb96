"""Rules that tell the kind of a memory from its text; the patterns are in `kinds.toml`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrubjay.model.memory import Kind
from scrubjay.model.text import lazy_pattern

if TYPE_CHECKING:
    import re2

_READ_CHARS: Final = 400
_WRAP: Final = lazy_pattern(r"(?:\A|\n) *")
_FRAGMENT: Final = lazy_pattern(r"\{([a-z]+)\}")
_MARKS: Final = " \t\n\"'“”„«»*_-•"
_TABLES: Final = ("passing", "instruction", "preference")
_PIECE: Final = lazy_pattern(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\(\?!|\(\?P<\w+>|[()]|.", re.DOTALL)


def kind_of(text: str) -> Kind:
    """Preference or instruction if the text begins like one, else fact; a question is a fact."""
    begin = text[:_READ_CHARS].replace("\u2019", "'").strip(_MARKS)
    if begin.endswith(("?", "\uff1f")):
        return Kind.FACT
    if begin.isascii() and not _prefilter().Match(begin.encode()):
        return Kind.FACT  # one scan, and most texts need no other
    found = _pattern().match(begin)
    return Kind.FACT if found is None else Kind(str(found.lastgroup).partition("_")[0])


@cache
def _pattern() -> re.Pattern[str]:
    """The patterns of all languages as one: a group for each, named by its kind.

    Of each language those that settle a text come first. One match takes half as long as one for
    each group.
    """
    return re.compile(_expression(), re.IGNORECASE)


@cache
def _expression() -> str:
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
    return "|".join(groups)


@cache
def _prefilter() -> re2.Set:
    """Automaton of the same patterns without what must not follow: it matches no fewer texts.

    For ASCII: of other letters the two libraries have different notions.
    """
    import re2

    kept, depth, skipped = list[str](), 0, list[int]()
    for piece in _PIECE.findall(_expression()):
        depth += piece.startswith("(")
        if piece == "(?!":
            skipped.append(depth)
        if not skipped:
            kept.append("(?:" if piece.startswith("(?P") else piece)
        if piece == ")":
            if skipped and skipped[-1] == depth:
                skipped.pop()
            depth -= 1
    options = re2.Options()
    options.case_sensitive = False
    chosen = re2.Set.MatchSet(options)
    chosen.Add("".join(kept))
    chosen.Compile()
    return chosen
