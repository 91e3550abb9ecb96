"""No embedder: recall goes by words and structure alone."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.ports import Floats


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
