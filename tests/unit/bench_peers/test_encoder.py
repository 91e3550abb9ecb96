"""The encoder computes what its weights say."""

from __future__ import annotations

from math import erf, exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.peers.encoder import SentenceEncoder
from tests.tiny_model import HEADS, LAYERS, VOCABULARY, WIDTH, tiny_weights, write_tiny_model


def slowly(tokens: list[int]) -> Any:
    """The encoder once more, token by token in double precision, as its paper describes it."""
    weights = {name: tensor.astype(float) for name, tensor in tiny_weights().items()}

    def linear(name: str, row: Any) -> Any:
        return weights[f"{name}.weight"] @ row + weights[f"{name}.bias"]

    def norm(name: str, row: Any) -> Any:
        scaled = (row - row.mean()) / sqrt(row.var() + 1e-12)
        return scaled * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    def embedded(place: int, token: int) -> Any:
        rows = weights["embeddings.word_embeddings.weight"][token]
        rows = rows + weights["embeddings.position_embeddings.weight"][place]
        return norm("embeddings", rows + weights["embeddings.token_type_embeddings.weight"][0])

    def attended(own: str, state: list[Any], row: Any) -> Any:
        heard, size = [], WIDTH // HEADS
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            query = linear(f"{own}.query", row)[part]
            keys = [linear(f"{own}.key", other)[part] for other in state]
            shares = [exp(query @ key / sqrt(size)) for key in keys]
            values = [linear(f"{own}.value", other)[part] for other in state]
            heard.append(sum(s * v for s, v in zip(shares, values, strict=True)) / sum(shares))
        return np.concatenate(heard)

    def layer(own: str, state: list[Any], row: Any) -> Any:
        heard = attended(f"{own}.attention.self", state, row)
        row = norm(f"{own}.attention.output", row + linear(f"{own}.attention.output.dense", heard))
        inner = linear(f"{own}.intermediate.dense", row)
        inner = np.array([x * (1 + erf(x / sqrt(2))) / 2 for x in inner])
        return norm(f"{own}.output", row + linear(f"{own}.output.dense", inner))

    state = [embedded(place, token) for place, token in enumerate(tokens)]
    for number in range(LAYERS):
        state = [layer(f"encoder.layer.{number}", state, row) for row in state]
    mean = np.mean(state, axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("text", ["a", "hello world", "x" * 90])
def test_the_vector_is_the_mean_of_the_last_layer(tmp_path: Path, text: str) -> None:
    write_tiny_model(tmp_path)
    number = {piece: place for place, piece in enumerate(VOCABULARY)}
    tokens = [
        number["##" + letter if place else letter]
        for word in text.split()
        for place, letter in enumerate(word)
    ]
    marked = [number["[CLS]"], *tokens, number["[SEP]"]]
    (row,) = SentenceEncoder(tmp_path).embed([text])
    assert np.allclose(row, slowly(marked), atol=1e-4)


def test_what_a_model_was_not_trained_to_read_is_left_out(tmp_path: Path) -> None:
    write_tiny_model(tmp_path)
    rows = SentenceEncoder(tmp_path).embed(["a " * 254, "a " * 254 + "b " * 500])
    assert np.array_equal(rows[0], rows[1])
