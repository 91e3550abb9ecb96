"""Words of like meaning: a small table made once from the static embedder's vectors.

The file lists words and terms, one per line, and for each word its near terms and what each
counts in 255ths (tools/make_near.py writes it). It is independent of the embedder in use.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_HEAD = struct.Struct("<4sIIII")
_MAGIC = b"SJN1"


def near_terms(word: str) -> Mapping[str, float]:
    """The terms near a word and what each counts in its place, below 1; empty when unknown."""
    places, terms, starts, near, nearness = _table()
    place = places.get(word)
    if place is None:
        return {}
    return {terms[near[at]]: nearness[at] / 255 for at in range(starts[place], starts[place + 1])}


def pack(table: Mapping[str, Mapping[str, float]]) -> bytes:
    """The file of a table."""
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
    head = _HEAD.pack(_MAGIC, len(names[0]), len(names[1]), len(words), len(near))
    return head + zlib.compress(b"".join(body), 9)


@cache
def _table() -> tuple[dict[str, int], list[str], array[int], array[int], bytes]:
    packed = Path(__file__).with_name("near.bin").read_bytes()
    magic, words_size, terms_size, count, pairs = _HEAD.unpack_from(packed)
    if magic != _MAGIC:
        raise ValueError("near.bin is not a table of near words")
    body = zlib.decompress(packed[_HEAD.size :])
    at = words_size + terms_size
    words = body[:words_size].decode().split("\n")
    terms = body[words_size:at].decode().split("\n")
    first, last = at + 4 * (count + 1), at + 4 * (count + 1) + 2 * pairs
    starts, near = _numbers("I", body[at:first]), _numbers("H", body[first:last])
    return {word: place for place, word in enumerate(words)}, terms, starts, near, body[last:]


def _numbers(kind: str, packed: bytes) -> array[int]:
    """Numbers written little-endian, without an object for each."""
    found = array(kind, packed)
    if sys.byteorder == "big":
        found.byteswap()
    return found
