"""The default embedder: a table of token vectors inside the package; no model, no network.

The vector of a text is the sum of its tokens' vectors, normalized to length 1. The table was
distilled from all-MiniLM-L6-v2 by tools/distill.py, which also says how it was measured.

The file, little-endian: `SJT1`, three unsigned 32-bit numbers (tokens, dimensions, bytes of the
vocabulary), 32 bytes of SHA-256 over all that follows, the vocabulary as lines of UTF-8, one
32-bit float per token (its scale), one byte per token and dimension (the vector in steps).
"""

from __future__ import annotations

import re
import struct
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from scrubjay.model.errors import EmbedderError, Timeout
from scrubjay.model.words import CACHED_WORDS, WordCache
from scrubjay.ports import Clock, Floats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TABLE = Path(__file__).with_name("static.bin")
NAME = "minilm-l6"
HEAD = struct.Struct("<4sIII32s")
MAGIC = b"SJT1"
Head: TypeAlias = tuple[bytes, int, int, int, bytes]
BATCH_TOKENS = 4096
"""Tokens pooled at a time: their floats fit in a CPU cache."""
UNKNOWN = "[UNK]"
ENGLISH = frozenset({"english"})
LONGEST_WORD = 100
_NUMBER: Final = "i"
"""How the numbers of pieces are packed."""
_NUMBER_BYTES: Final = array(_NUMBER).itemsize
_CJK = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF)),
    *((0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


_SPACES = re.compile(r"[^\S\v\f\x1c-\x1f\x85]+")
"""What separates words; the control characters among white space vanish, and so join them."""


class _Folding(dict[int, str]):
    """Translation table: each character becomes itself, nothing, a space, or a word of its own."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)
        # ASCII marks such as $ and + are symbols to Unicode, but stand alone in the vocabulary.
        alone = kind[0] == "P" or (char.isascii() and not char.isalnum())
        if char in "\t\n\r" or kind[0] == "Z":
            folded = " "
        # Unassigned characters stay, so that a newer Unicode changes nothing about the others.
        elif kind in {"Mn", "Cc", "Cf", "Co", "Cs"} or char == "\ufffd":
            folded = ""
        elif alone or any(first <= code <= last for first, last in _CJK):
            folded = f" {char} "
        else:
            folded = char
        self[code] = folded
        return folded


class WordPiece:
    """Tokenizer of BERT's uncased models: the longest piece that fits, again and again."""

    def __init__(self, vocabulary: Sequence[str], cached: int = CACHED_WORDS) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self.unknown = self._numbers[UNKNOWN]
        """The number of an unknown token."""
        self.nothing = array(_NUMBER, (self.unknown,)).tobytes()
        """The packed pieces of a text without any."""
        self._folding = _Folding()
        self._known = WordCache(self._split, cached)
        self._between_spaces = WordCache(self._fold, cached)

    def pieces(self, text: str) -> list[int]:
        """The numbers of the pieces of a text, in order."""
        return array(_NUMBER, self.packed(text)).tolist()

    def packed(self, text: str) -> bytes:
        """The same as bytes, which are joined without an object for each number."""
        found = text.split() if text.isprintable() else _SPACES.split(text)
        return b"".join(map(self._between_spaces.__getitem__, found))

    def _fold(self, text: str) -> bytes:
        folded = unicodedata.normalize("NFD", text.lower()).translate(self._folding)
        return b"".join(map(self._known.__getitem__, folded.split()))

    def _split(self, word: str) -> bytes:
        return array(_NUMBER, self._longest(word)).tobytes()

    def _longest(self, word: str) -> list[int]:
        if len(word) > LONGEST_WORD:
            return [self.unknown]
        pieces, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(mark + word[start:end])
                if number is not None:
                    break
            else:
                return [self.unknown]
            pieces.append(number)
            start = end
        return pieces


class _Table(Struct, frozen=True, kw_only=True):
    tokenizer: WordPiece
    scale: NDArray[np.float32]
    steps: NDArray[np.int8]


class StaticEmbedder:
    """An Embedder of some ten thousand texts per second; the table is mapped on first use."""

    def __init__(self, clock: Clock, path: Path = TABLE) -> None:
        self._clock = clock
        self._path = path

    @property
    def identity(self) -> str:
        """Identity of the vectors: the table's name, shape and hash."""
        digest: bytes = self._head[4]
        return f"static:{NAME}-{self.dimensions}-int8:{digest.hex()[:8]}"

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return int(self._head[2])

    costly = False
    """Cheap: vectors are computed again instead of stored."""

    languages: frozenset[str] | None = ENGLISH
    """English: pieces of words of other languages have vectors, but say nothing."""

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """One row per text, in their order, of length 1; zeros where no token is known."""
        import numpy as np

        rows = np.empty((len(texts), self.dimensions), np.float32)
        for start, tokens in _batches(self._table.tokenizer, texts):
            if deadline is not None and self._clock.monotonic() >= deadline:
                raise Timeout("The texts were not embedded by the deadline.")
            found = self._pool(tokens)
            lengths = np.sqrt((found * found).sum(axis=1))
            lengths[lengths == 0] = 1
            np.divide(found, lengths[:, None], out=rows[start : start + len(tokens)])
        return rows

    def _pool(self, texts: Sequence[bytes]) -> Floats:
        """The sum of the token vectors of each text, given as packed pieces; no text is empty."""
        import numpy as np

        table, rows = self._table, np.empty((len(texts), self.dimensions), np.float32)
        tokens = np.frombuffer(b"".join(texts), _NUMBER).astype(np.intp)
        scale, steps = table.scale.take(tokens), table.steps.take(tokens, axis=0)
        first = 0
        sizes = (len(packed) // _NUMBER_BYTES for packed in texts)
        for row, last in zip(rows, accumulate(sizes), strict=True):
            # Not by BLAS: it would wake its threads, in the process of whoever uses this.
            np.einsum("i,ij->j", scale[first:last], steps[first:last], out=row)
            first = last
        return rows

    @cached_property
    def _head(self) -> Head:
        try:
            with self._path.open("rb") as file:
                magic, tokens, dimensions, size, digest = HEAD.unpack(file.read(HEAD.size))
        except (OSError, struct.error) as error:
            raise EmbedderError("The table of token vectors cannot be read.") from error
        if magic != MAGIC:
            raise EmbedderError("The table of token vectors has a wrong format.")
        return magic, tokens, dimensions, size, digest

    @cached_property
    def _table(self) -> _Table:
        return _read(self._path, self._head)


@lru_cache(maxsize=2)
def _read(path: Path, head: Head) -> _Table:
    """The table of a file, cached for all embedders."""
    import numpy as np

    _, tokens, dimensions, size, _ = head
    try:
        raw = np.memmap(path, np.uint8, "r", HEAD.size)
        words, middle = raw[:size].tobytes().decode().split("\n"), size + 4 * tokens
    except (OSError, ValueError) as error:
        raise EmbedderError("The table of token vectors cannot be read.") from error
    if len(words) != tokens or len(raw) != middle + tokens * dimensions:
        raise EmbedderError("The table of token vectors is cut short.")
    return _Table(
        tokenizer=WordPiece(words),
        scale=np.frombuffer(raw[size:middle].tobytes(), "<f4"),
        # A plain array over the same mapping: a memmap asks where it comes from at every use.
        steps=np.asarray(raw[middle:]).view(np.int8).reshape(tokens, dimensions),
    )


def _batches(tokenizer: WordPiece, texts: Sequence[str]) -> Iterator[tuple[int, list[bytes]]]:
    """Runs of tokenized texts, each with the place of its first, about BATCH_TOKENS long."""
    batch: list[bytes] = []
    start = count = 0
    nothing = tokenizer.nothing
    for place, text in enumerate(texts):
        # A text without tokens is the unknown one, whose vector is zero: no text is empty.
        tokens = tokenizer.packed(text) or nothing
        batch.append(tokens)
        count += len(tokens)
        if count >= BATCH_TOKENS * _NUMBER_BYTES:
            yield start, batch
            batch, start, count = [], place + 1, 0
    if batch:
        yield start, batch


# -- no vectors -----------------------------------------------------------------------------------


class NoEmbedder:
    """An Embedder without vectors."""

    @property
    def identity(self) -> str:
        """Which vectors these are: none."""
        return "none"

    @property
    def dimensions(self) -> int:
        """None."""
        return 0

    costly = False
    """Cheap: vectors are computed again instead of stored."""

    languages: frozenset[str] | None = None
    """Any language."""

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """One empty row per text, at once."""
        import numpy as np

        del deadline  # nothing is computed, so nothing can be late
        return np.zeros((len(texts), 0), np.float32)
