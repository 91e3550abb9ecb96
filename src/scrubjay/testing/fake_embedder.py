"""An embedder that does as it is told: texts that share words are alike, and it may be late."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from scrubjay.model.errors import EmbedderError, Timeout
from scrubjay.ports import Floats
from scrubjay.testing.clock import FakeClock


class FakeEmbedder:
    """An Embedder of a fake clock: what it costs, how long it takes and when it fails is given."""

    def __init__(
        self, clock: FakeClock, *, name: str = "fake", costly: bool = True, dimensions: int = 32
    ) -> None:
        self.seconds = 0.0
        """How long each call takes."""
        self.failure: EmbedderError | None = None
        """What each call raises, if anything."""
        self.texts: list[str] = []
        """Every text it was asked for, in order."""
        self.known: frozenset[str] | None = None
        """The languages it says it was made for."""
        self._clock = clock
        self._name = name
        self._costly = costly
        self._dimensions = dimensions

    @property
    def identity(self) -> str:
        """Its name and shape."""
        return f"{self._name}:{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """Dimensions of a vector."""
        return self._dimensions

    @property
    def costly(self) -> bool:
        """Whether its vectors are kept."""
        return self._costly

    @property
    def languages(self) -> frozenset[str] | None:
        """Those it was given; None for any."""
        return self.known

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """The sum of the words' own directions, brought to length 1."""
        if self.seconds:
            self._clock.advance(seconds=self.seconds)
        if deadline is not None and self._clock.monotonic() >= deadline:
            raise Timeout("The embedder did not answer in time.")
        if self.failure is not None:
            raise self.failure
        self.texts += texts
        rows = [self._row(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self._dimensions)

    def _row(self, text: str) -> Floats:
        total = np.zeros(self._dimensions, np.float32)
        for word in text.lower().split():
            digest = hashlib.shake_256(f"{self._name} {word}".encode(errors="replace"))
            total += np.frombuffer(digest.digest(self._dimensions), np.int8)
        length = np.float32(np.linalg.norm(total))
        return total / length if length else total
