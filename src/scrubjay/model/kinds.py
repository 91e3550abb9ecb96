"""Rules that tell the kind of a memory from its text; the patterns are in `kinds.toml`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from scrubjay.model.memory import Kind

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
