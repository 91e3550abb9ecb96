"""Vectors that are kept: made when a memory is written, sealed beside it.

Only a costly embedder's are. A cheap one's are made again whenever an index is, which keeps them,
and numpy, out of every write.
"""

from __future__ import annotations

import logging

from scrubjay.domain.errors import EmbedderError
from scrubjay.engine.opened import OpenScope
from scrubjay.ports import Floats

_log = logging.getLogger(__name__)


def vector_of(opened: OpenScope, text: str) -> bytes | None:
    """The packed vector to keep with a memory; None if there is none to keep, or not in time.

    A memory is never lost over its vector: it is found by its words until `reindex`.
    """
    embedder, policy = opened.ports.embedder, opened.ports.policy
    if not embedder.costly:
        return None
    deadline = opened.ports.clock.monotonic() + policy.embed_seconds
    try:
        return pack(embedder.identity, embedder.embed([text], deadline=deadline))
    except EmbedderError as error:
        _log.warning("retain.without_vector", extra={"code": error.code})
        return None


def pack(identity: str, floats: Floats) -> bytes:
    """A vector as it is kept: a byte per dimension, a scale, and who made it."""
    from scrubjay.index import vectors  # loads numpy

    return vectors.pack(vectors.quantize(identity, floats))
