"""Stored vectors: computed when a memory is written, sealed beside it.

Only for a costly embedder. The vectors of a cheap one are computed with each index, which keeps
them, and numpy, out of every write.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from scrubjay.engine.scope import purposes
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import EmbedderError
from scrubjay.model.memory import wording
from scrubjay.model.purposes import UsePurpose
from scrubjay.model.turns import Piece
from scrubjay.ports import Floats

_log = logging.getLogger(__name__)


def vector_of(opened: OpenScope, text: str) -> tuple[bytes | None, tuple[str, ...]]:
    """The packed vector to keep with a memory, if there is one; and why there is none in time."""
    made, degraded = vectors_of(opened, [text], seconds=opened.ports.policy.embed_seconds)
    return made[0], degraded


def vectors_of(
    opened: OpenScope, texts: Sequence[str], *, seconds: float
) -> tuple[Sequence[bytes | None], tuple[str, ...]]:
    """Packed vectors of texts, in one batch; all None if the embedder is not costly, or is late.

    A memory is never lost over its vector: it is found by its words until `reindex`, and the
    second part of the answer says so in a sentence.
    """
    embedder = opened.ports.embedder
    if not embedder.costly or not texts:
        return [None] * len(texts), ()
    if not purposes.may(opened, UsePurpose.EMBEDDING):
        return [None] * len(texts), ("Found by words alone: the embedder is not allowed.",)
    deadline = opened.ports.clock.monotonic() + seconds
    try:
        made = embedder.embed(texts, deadline=deadline)
    except EmbedderError as error:
        _log.warning("retain.without_vector", extra={"code": error.code})
        return [None] * len(texts), (f"Found by words alone until reindex: {error.message}",)
    return [pack(embedder.identity, one[None, :]) for one in made], ()


def vectors_of_pieces(
    opened: OpenScope, pieces: Iterable[Piece], *, seconds: float
) -> dict[str, bytes | None]:
    """Packed vectors to store with the memories derived from a turn, by their parts."""
    found = list(pieces)
    texts = [wording(piece.content, piece.tags) for piece in found]
    made, _ = vectors_of(opened, texts, seconds=seconds)
    return {piece.part: vector for piece, vector in zip(found, made, strict=True)}


def pack(identity: str, floats: Floats) -> bytes:
    """A vector as it is stored: a byte per dimension, a scale, and the identity of the embedder."""
    from scrubjay.engine.search.segment import Vectors  # loads numpy

    return Vectors.quantize(identity, floats).pack()
