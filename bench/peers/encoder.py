"""all-MiniLM-L6-v2, or another sentence encoder of the BERT family, in plain numpy.

It makes the vectors that all systems of the comparison search with, from a folder as such models
are published: `config.json`, `vocab.txt`, `model.safetensors`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrubjay.adapters.embedders.static import WordPiece

Floats = NDArray[np.float32]
LONGEST = 256
"""Tokens of a text that are read, as the model was trained."""
BATCH = 16
_KINDS = {"F32": "<f4", "F16": "<f2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    tokenizer: WordPiece
    weights: dict[str, Floats]
    layers: int
    heads: int
    small: float
    first: int
    last: int


class SentenceEncoder:
    """An encoder of some hundred texts per second."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_bytes())
        words = (folder / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
        self._model = _Model(
            tokenizer=WordPiece(words),
            weights=_read_weights(folder / "model.safetensors"),
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            small=config["layer_norm_eps"],
            first=words.index("[CLS]"),
            last=words.index("[SEP]"),
        )

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text, in their order, of length 1; zeros where a text has no token."""
        width = self._model.weights["embeddings.word_embeddings.weight"].shape[1]
        rows = np.zeros((len(texts), width), np.float32)
        tokens = [self._model.tokenizer.pieces(text)[: LONGEST - 2] for text in texts]
        by_length = sorted((len(own), place) for place, own in enumerate(tokens) if own)
        # Texts of one length at a time need neither padding nor a mask.
        for _, group in groupby(by_length, key=lambda pair: pair[0]):
            places = [place for _, place in group]
            for start in range(0, len(places), BATCH):
                batch = places[start : start + BATCH]
                rows[batch] = _encode(self._model, np.array([tokens[place] for place in batch]))
        return rows


def _read_weights(path: Path) -> dict[str, Floats]:
    """The tensors of a safetensors file: a length, a JSON header, and the bytes it describes."""
    raw = np.memmap(path, np.uint8, "r")
    size = int.from_bytes(raw[:8].tobytes(), "little")
    header = json.loads(raw[8 : 8 + size].tobytes())
    weights = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in _KINDS:
            start, end = (8 + size + offset for offset in entry["data_offsets"])
            floats = np.frombuffer(raw[start:end].tobytes(), _KINDS[entry["dtype"]])
            weights[name] = floats.astype(np.float32).reshape(entry["shape"])
    return weights


def _encode(model: _Model, tokens: NDArray[np.int64]) -> Floats:
    """The mean of the last layer over each text's tokens, of length 1."""
    count = len(tokens)
    ends = np.full((count, 1), model.first), np.full((count, 1), model.last)
    marked = np.concatenate([ends[0], tokens, ends[1]], axis=1)
    kinds = ("word", "position", "token_type")
    word, position, kind = (model.weights[f"embeddings.{name}_embeddings.weight"] for name in kinds)
    state = _norm(model, "embeddings", word[marked] + position[: marked.shape[1]] + kind[0])
    for layer in range(model.layers):
        prefix = f"encoder.layer.{layer}"
        heard = _attend(model, f"{prefix}.attention.self", state)
        heard = _linear(model, f"{prefix}.attention.output.dense", heard)
        state = _norm(model, f"{prefix}.attention.output", state + heard)
        inner = _gelu(_linear(model, f"{prefix}.intermediate.dense", state))
        inner = _linear(model, f"{prefix}.output.dense", inner)
        state = _norm(model, f"{prefix}.output", state + inner)
    mean = state.mean(axis=1)
    result: Floats = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    return result


def _attend(model: _Model, prefix: str, state: Floats) -> Floats:
    count, length, width = state.shape
    query, key, value = (
        _linear(model, f"{prefix}.{part}", state)
        .reshape(count, length, model.heads, width // model.heads)
        .swapaxes(1, 2)
        for part in ("query", "key", "value")
    )
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(width // model.heads))
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    heard: Floats = (shares @ value).swapaxes(1, 2).reshape(count, length, width)
    return heard


def _linear(model: _Model, name: str, state: Floats) -> Floats:
    result: Floats = state @ model.weights[f"{name}.weight"].T + model.weights[f"{name}.bias"]
    return result


def _norm(model: _Model, name: str, state: Floats) -> Floats:
    centered = state - state.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + np.float32(model.small))
    weight, bias = (model.weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
    result: Floats = centered / spread * weight + bias
    return result


def _gelu(state: Floats) -> Floats:
    """The exact curve, with the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    scaled = np.abs(state) * np.float32(0.5**0.5)
    near: Floats = np.reciprocal(1 + np.float32(0.3275911) * scaled)
    powers = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    polynomial = np.zeros_like(near)
    for power in reversed(powers):
        polynomial = (polynomial + np.float32(power)) * near
    erf = np.sign(state) * (1 - polynomial * np.exp(-(scaled**2)))
    result: Floats = state * (1 + erf) * np.float32(0.5)
    return result
