"""Budgets: how much of an answer there may be, and how much of it from one untrusted source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from scrubjay.domain.origin import Origin
from scrubjay.domain.results import Hit

UNTRUSTED: Final = frozenset({Origin.OTHER_AGENT, Origin.TOOL, Origin.WEB})
SHARE: Final = 0.3
"""How much of an answer's characters may come from one untrusted source."""
QUOTE: Final = 500
"""Characters up to which the best hit of a source stays, however short the rest is."""
_WORD: Final = 4
"""Characters of an alphabet that make a token, roughly; of other scripts each one is one."""

Source = tuple[str, str | None, str | None]


def tokens(text: str) -> int:
    """Roughly how many tokens a language model makes of a text."""
    ascii_chars = sum(char.isascii() for char in text) if not text.isascii() else len(text)
    return -(-ascii_chars // _WORD) + len(text) - ascii_chars


def fit(
    hits: Sequence[Hit], limit: int, max_bytes: int | None = None, max_tokens: int | None = None
) -> list[Hit]:
    """The best hits that keep to all limits, in their order.

    A hit that does not fit is left out and a later one may take its place.
    """
    left = [hit for hit in hits if _fits(hit, max_bytes, max_tokens)]
    while True:
        chosen = _within(left, limit, max_bytes, max_tokens)
        excess = _excess(chosen)
        if excess is None:
            return chosen
        left.remove(excess)


def _fits(hit: Hit, max_bytes: int | None, max_tokens: int | None) -> bool:
    content = hit.memory.content
    return (max_bytes is None or len(content.encode()) <= max_bytes) and (
        max_tokens is None or tokens(content) <= max_tokens
    )


def _within(
    hits: Iterable[Hit], limit: int, max_bytes: int | None, max_tokens: int | None
) -> list[Hit]:
    chosen: list[Hit] = []
    used_bytes = used_tokens = 0
    for hit in hits:
        if len(chosen) == limit:
            break
        size = len(hit.memory.content.encode()) if max_bytes is not None else 0
        count = tokens(hit.memory.content) if max_tokens is not None else 0
        if used_bytes + size > (max_bytes or 0) or used_tokens + count > (max_tokens or 0):
            continue
        used_bytes, used_tokens = used_bytes + size, used_tokens + count
        chosen.append(hit)
    return chosen


def _excess(chosen: Sequence[Hit]) -> Hit | None:
    """The worst hit of a source that has more than its share; None if none has."""
    total = sum(len(hit.memory.content) for hit in chosen)
    by_source: dict[Source, list[Hit]] = {}
    for hit in chosen:
        if hit.memory.origin in UNTRUSTED:
            by_source.setdefault(_source(hit), []).append(hit)
    for found in by_source.values():
        said = sum(len(hit.memory.content) for hit in found)
        alone = len(found) == 1 and said <= QUOTE
        if said > SHARE * total and not alone:
            return found[-1]
    return None


def _source(hit: Hit) -> Source:
    provenance = hit.memory.provenance
    return hit.memory.origin.value, provenance.channel, provenance.session
