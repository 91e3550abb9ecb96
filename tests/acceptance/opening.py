"""What the keys that are left open of the segments, listed or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from scrubjay.engine import Kernel
from scrubjay.engine.search import manifest
from scrubjay.engine.search.analysis import terms
from scrubjay.engine.search.postings import Postings
from scrubjay.model.errors import SealBroken
from scrubjay.model.rows import Collection
from scrubjay.model.scope import Scope

LANGUAGES = (
    *("english", "german", "french", "spanish", "italian", "portuguese"),
    *("dutch", "swedish", "russian"),
)


def words_left(engine: Kernel, scope: Scope, words: Iterable[str]) -> set[str]:
    """The words a segment has that opens with any key there is: as a name, or as a term."""
    raw = list(_opened(engine, scope))
    parts = list(_postings(raw))
    return {
        word
        for word in words
        if any(word.encode() in one for one in raw) or any(_holds(part, word) for part in parts)
    }


def _opened(engine: Kernel, scope: Scope) -> Iterator[bytes]:
    """The plaintext of every blob that is a part of a segment."""
    opened = engine._open(scope)
    blobs = opened.ports.blobs
    for name in blobs.names(opened.address):
        stream = blobs.get(opened.address, name)
        for epoch in opened.slots(Collection.MEMORY):
            seal = manifest.sealer(opened, epoch)
            with suppress(SealBroken):
                yield b"".join(seal.unseal_stream(stream, row_id=name.encode(), version=0))


def _postings(raw: Iterable[bytes]) -> Iterator[Postings]:
    for one in raw:
        with suppress(ValueError):
            yield Postings.unpack(one)


def _holds(part: Postings, word: str) -> bool:
    """Whether the word is a term, in whatever language its text was taken to be."""
    forms = {term for language in LANGUAGES for term in terms(word, language)[:1]}
    return any(len(rows) for rows, _ in part.find(forms))


def count_segments(engine: Kernel, scope: Scope) -> int:
    """How many segments are listed."""
    opened = engine._open(scope)
    found = opened.read(lambda view: manifest.read(opened, view))
    return 0 if found is None else len(found.segments)


def left_over(engine: Kernel, scope: Scope) -> set[str]:
    """The blobs neither a row nor the list of segments names."""
    opened = engine._open(scope)
    used = opened.read(
        lambda view: (
            {row.blob for row in view.changes(Collection.MEMORY, 0, 10_000)}
            | manifest.listed(opened, view)
        )
    )
    return {name for name in opened.ports.blobs.names(opened.address) if name not in used}
