"""Budgets: how much of an answer there may be, and how much of it from one untrusted source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from scrubjay.domain.requests import Recall
from scrubjay.domain.results import Hit

SHARE: Final = 0.3
"""How much of an answer's characters may come from one untrusted source."""
_WORD: Final = 4
"""Characters of an alphabet that make a token, roughly; of other scripts each one is one."""

Source = tuple[str, str | None]
"""An origin and the channel by which it came: what whoever wrote it cannot choose."""


def tokens(text: str) -> int:
    """Roughly how many tokens a language model makes of a text."""
    ascii_chars = sum(char.isascii() for char in text) if not text.isascii() else len(text)
    return -(-ascii_chars // _WORD) + len(text) - ascii_chars


def fit(hits: Sequence[Hit], request: Recall) -> list[Hit]:
    """The best hits that keep to the limits of the request, in their order.

    A hit that does not fit is left out and a later one may take its place. One untrusted source
    gets no more than its share, unless what somebody vouches for could not fill half the places:
    where there is hardly anything else, holding it back would only hide it.
    """
    left = list(hits)
    chosen = _within(left, request)
    if 2 * sum(hit.memory.origin.trusted for hit in hits) < request.limit:
        return chosen
    while (excess := _excess(chosen)) is not None:
        left.remove(excess)
        chosen = _within(left, request)
    return chosen


def _within(hits: Iterable[Hit], request: Recall) -> list[Hit]:
    """The first hits that keep to the number, the bytes and the tokens asked for."""
    chosen: list[Hit] = []
    bytes_left, tokens_left = request.max_bytes, request.max_tokens
    for hit in hits:
        if len(chosen) == request.limit:
            break
        size = 0 if bytes_left is None else len(hit.memory.content.encode())
        count = 0 if tokens_left is None else tokens(hit.memory.content)
        if size > (bytes_left or 0) or count > (tokens_left or 0):
            continue
        bytes_left = None if bytes_left is None else bytes_left - size
        tokens_left = None if tokens_left is None else tokens_left - count
        chosen.append(hit)
    return chosen


def _excess(chosen: Sequence[Hit]) -> Hit | None:
    """The worst hit of a source that has more than its share; None if none has."""
    total = sum(len(hit.memory.content) for hit in chosen)
    said: dict[Source, int] = {}
    worst: dict[Source, Hit] = {}
    for hit in chosen:
        if not hit.memory.origin.trusted:
            source = (hit.memory.origin.value, hit.memory.provenance.channel)
            said[source] = said.get(source, 0) + len(hit.memory.content)
            worst[source] = hit
    return next((worst[one] for one in said if said[one] > SHARE * total), None)
