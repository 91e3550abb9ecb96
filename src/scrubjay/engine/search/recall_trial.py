"""Recall trial: questions made of a scope's own memories, asked of a set of memories.

So two sets can be compared before one takes the place of the other: nothing is written for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.search.analysis import gist, terms, words
from scrubjay.engine.search.open_index import OpenIndex
from scrubjay.engine.search.question import Asked
from scrubjay.engine.search.recall import ScopeSearch, rank, search
from scrubjay.engine.search.segment import IndexEntry
from scrubjay.model.compaction import HELD, RETURNED_BYTES
from scrubjay.model.memory import Memory
from scrubjay.model.requests import Recall
from scrubjay.ports import Floats

_SENTENCE: Final = re.compile(r"[^.!?。\uff01\uff1f\n]+[.!?。\uff01\uff1f\n]*")
_TERMS: Final = 5
"""Number of content terms that a sentence needs, so that a question is left without the rarest."""
_LOOKED_AT: Final = 100
"""Number of hits that are looked at until the answer is full."""


class Question(Struct, frozen=True):
    """A question, and the content terms of the memory that it was made of."""

    text: str
    about: frozenset[str]


def sentences(text: str) -> list[str]:
    """The sentences of a text, as they are written."""
    return [one for found in _SENTENCE.findall(text) if (one := found.strip())]


def questions(memories: Iterable[Memory], most: int) -> list[Question]:
    """Questions made of memories, evenly over all of them: a sentence without its rarest term."""
    held = [(memory, gist(memory.content)) for memory in memories]
    frequency = Counter(term for _, found in held for term in found)
    usable = [(memory, about) for memory, about in held if len(about) >= _TERMS]
    step = max(1, len(usable) // most)
    made = (_question(memory.content, about, frequency) for memory, about in usable[::step])
    return [one for one in made if one is not None][:most]


def _question(text: str, about: frozenset[str], frequency: Mapping[str, int]) -> Question | None:
    sentence = max(sentences(text), key=lambda one: len(gist(one)), default="")
    found = gist(sentence)
    if len(found) < _TERMS:
        return None
    rarest = min(found, key=lambda term: (frequency[term], term))
    left = [word for word in words(sentence) if rarest not in terms(word)]
    return Question(" ".join(left), about) if left else None


def asker(opened: OpenScope, asked: Sequence[Question]) -> Callable[[Iterable[IndexEntry]], float]:
    """A function that tells the percent of the questions that a set of memories answers.

    A memory answers if it holds enough of the content terms of the one the question was made of.
    """
    embedder = opened.ports.embedder
    vectors: Sequence[Floats | None] = [None] * len(asked)
    if embedder.dimensions and purposes.embeds(opened):
        vectors = list(embedder.embed([one.text for one in asked]))

    def ask(entries: Iterable[IndexEntry]) -> float:
        held = list(entries)
        by_row = {entry.row_id: entry.memory for entry in held}
        indexed = OpenIndex.imagined(opened, held)
        searched = [ScopeSearch(indexed=indexed, snapshot=indexed.snapshot())]
        gists = dict[str, frozenset[str]]()

        def answers(one: Question, vector: Floats | None) -> bool:
            by_text = None if vector is None else {one.text: vector}
            found = search(searched, Recall(one.text), [Asked(one.text, one.text)], by_text)
            room, row_id = RETURNED_BYTES, searched[0].held.row_id
            for hit in rank(found, _LOOKED_AT, _LOOKED_AT) if found.allowed.any() else ():
                memory = by_row[row_id[hit.row].tobytes()]
                size = len(memory.content.encode())
                if size > room:
                    continue
                room -= size
                if memory.id not in gists:
                    gists[memory.id] = gist(memory.content)
                if len(one.about & gists[memory.id]) >= HELD * len(one.about):
                    return True
            return False

        right = [answers(one, vector) for one, vector in zip(asked, vectors, strict=True)]
        return 100 * float(np.mean(right)) if right else 0.0

    return ask
