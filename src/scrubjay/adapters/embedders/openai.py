"""Embedder over an OpenAI-compatible endpoint: `POST {base_url}/embeddings`.

The texts leave the machine; configuring it means trusting the endpoint with them. The key and the
texts are never part of an error or a log line.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scrubjay.adapters.remote import Remote, RemoteTimeout, Sleep, Unanswered
from scrubjay.model.errors import EmbedderError, InvalidRequest, Timeout
from scrubjay.ports import Clock, Floats

ANSWER_BYTES_PER_NUMBER = 40
ANSWER_BYTES = 65_536
MOST_NUMBERS = 65_536
MOST_DIMENSIONS = 8_192
"""Of a model whose dimensions are not known yet; it limits the size of the first answer."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address, model and timeout of an embeddings endpoint."""

    base_url: str
    """With the version, as in `https://api.example.com/v1`; plain http only to this machine."""
    model: str
    dimensions: int = 0
    """Dimensions of a vector; 0 for those of the first answer."""
    api_key: str | None = field(default=None, repr=False)
    shorten: bool = False
    """Send `dimensions` with each request, for a model that can shorten its vectors."""
    batch: int = 64
    seconds: float = 10.0
    """Timeout of one attempt."""
    attempts: int = 3


class OpenAIEmbedder:
    """An Embedder over HTTP, in batches, with retries of transient failures."""

    def __init__(self, endpoint: Endpoint, *, clock: Clock, sleep: Sleep) -> None:
        least = min(endpoint.batch, endpoint.attempts, endpoint.seconds)
        if least <= 0 or endpoint.dimensions < 0:
            raise InvalidRequest("The limits of the embedding endpoint must be above zero.")
        self._endpoint = endpoint
        self._dimensions = endpoint.dimensions
        self._remote = Remote(
            endpoint.base_url,
            name="embedding endpoint",
            seconds=endpoint.seconds,
            attempts=endpoint.attempts,
            clock=clock,
            sleep=sleep,
            log=log,
        )

    @property
    def identity(self) -> str:
        """Identity of the vectors: the model, and a hash of its address."""
        place = hashlib.sha256(self._endpoint.base_url.rstrip("/").encode()).hexdigest()[:8]
        size = f"-{self.dimensions}" if self._endpoint.shorten else ""
        return f"openai:{self._endpoint.model}{size}:{place}"

    @property
    def dimensions(self) -> int:
        """Number of dimensions; 0 before the first answer, unless it was configured."""
        return self._dimensions

    costly = True
    """Costly: vectors are stored instead of computed again."""

    languages: frozenset[str] | None = None
    """Any: whoever chose the model knows what it is for."""

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """One row per text, in their order, of length 1; zeros where a text is blank."""
        import numpy as np

        # Endpoints refuse a blank text, and it says nothing anyway.
        told = [place for place, text in enumerate(texts) if text.strip()]
        batches = [
            self._embed(
                [texts[place] for place in told[start : start + self._endpoint.batch]], deadline
            )
            for start in range(0, len(told), self._endpoint.batch)
        ]
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        if batches:
            rows[told] = np.concatenate(batches)
        return rows

    def _embed(self, texts: Sequence[str], deadline: float | None) -> Floats:
        asked = self._endpoint
        wanted: dict[str, Any] = {"model": asked.model, "input": texts, "encoding_format": "float"}
        if asked.shorten:
            wanted["dimensions"] = asked.dimensions
        headers = {"Authorization": f"Bearer {asked.api_key}"} if asked.api_key else {}
        numbers = len(texts) * (self.dimensions or MOST_DIMENSIONS)
        try:
            raw = self._remote.post(
                "/embeddings",
                json.dumps(wanted).encode(),
                headers,
                most_bytes=ANSWER_BYTES + numbers * ANSWER_BYTES_PER_NUMBER,
                deadline=deadline,
            )
        except Unanswered as error:
            kind = Timeout if isinstance(error, RemoteTimeout) else EmbedderError
            raise kind(f"The embedding endpoint {error}") from error
        return self._vectors(raw, len(texts))

    def _vectors(self, raw: bytes, count: int) -> Floats:
        import numpy as np

        try:
            answers = sorted(json.loads(raw)["data"], key=lambda answer: answer["index"])
            rows = np.array([answer["embedding"] for answer in answers], np.float32)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise EmbedderError("The embedding endpoint returned no vectors.") from error
        if rows.ndim != 2 or rows.shape[0] != count or not 0 < rows.shape[1] <= MOST_NUMBERS:
            raise EmbedderError(f"The embedding endpoint returned no {count} vectors.")
        if not np.isfinite(rows).all():
            raise EmbedderError("The embedding endpoint returned values that are not numbers.")
        given, known = rows.shape[1], self._dimensions
        if known and known != given:
            raise EmbedderError(
                f"The embedding endpoint gave vectors of {given} dimensions, not {known}.",
                hint=f"Set openai.dimensions to {given} and run reindex, or choose another model.",
            )
        self._dimensions = given
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1)
        return rows
