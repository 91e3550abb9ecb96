"""Make the table of near words from a static embedder's token vectors.

    python tools/make_near.py VECTORS.npz src/scrubjay/engine/search/near.bin

VECTORS.npz holds `vocab` (word pieces), `table` (int8) and `scale` (one float per row). Whole
words of letters are compared by cosine; each keeps the terms of its nearest words, which count by
the square of it: the less near, the much less.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from scrubjay.engine.search.analysis import stop_words, terms

LANGUAGE = "english"
MOST = 8
NEAREST = 0.4
"""The cosine below which words are not near."""
SHORTEST = 3
BATCH = 1000


def main(vectors: str, target: str) -> None:
    """Read the vectors, write the table."""
    loaded = np.load(vectors, allow_pickle=False)
    vocabulary = [str(word) for word in loaded["vocab"]]
    chosen = [place for place, word in enumerate(vocabulary) if usable(word)]
    rows = loaded["table"][chosen].astype(np.float32) * loaded["scale"][chosen, None]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9
    words = [vocabulary[place] for place in chosen]
    table = neighbors(words, [terms(word, LANGUAGE)[0] for word in words], rows)
    packed = pack(table)
    Path(target).write_bytes(packed)
    print(f"{len(table):,} words, {sum(map(len, table.values())):,} pairs, {len(packed):,} bytes")


def usable(word: str) -> bool:
    """Whether it is a whole word that a question may ask for."""
    return (
        word.isascii()
        and word.isalpha()
        and len(word) >= SHORTEST
        and word not in stop_words(LANGUAGE)
    )


def neighbors(
    words: list[str], stems: list[str], rows: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> dict[str, dict[str, float]]:
    """For each word the terms of its nearest words, nearest first, its own term left out."""
    table = {}
    for start in range(0, len(words), BATCH):
        for at, nearness in enumerate(rows[start : start + BATCH] @ rows.T, start):
            close = np.flatnonzero(nearness >= NEAREST)
            found: dict[str, float] = {}
            for place in close[np.argsort(-nearness[close])]:
                if stems[place] != stems[at]:
                    found.setdefault(stems[place], min(float(nearness[place]), 1.0) ** 2)
            table[words[at]] = dict(list(found.items())[:MOST])
    return table


def pack(table: Mapping[str, Mapping[str, float]]) -> bytes:
    """The file of a table, as `scrubjay.engine.search.analysis.near_terms` reads it."""
    words = sorted(word for word in table if table[word])
    terms = sorted({term for word in words for term in table[word]})
    places = {term: place for place, term in enumerate(terms)}
    starts, near, nearness = [0], [], bytearray()
    for word in words:
        near += [places[term] for term in table[word]]
        nearness += bytes(round(255 * share) for share in table[word].values())
        starts.append(len(near))
    names = "\n".join(words).encode(), "\n".join(terms).encode()
    body = (
        *names,
        struct.pack(f"<{len(starts)}I", *starts),
        struct.pack(f"<{len(near)}H", *near),
        bytes(nearness),
    )
    head = struct.pack("<4sIIII", b"SJN1", len(names[0]), len(names[1]), len(words), len(near))
    return head + zlib.compress(b"".join(body), 9)


if __name__ == "__main__":
    main(*sys.argv[1:])
