"""A folder of random weights in the layout of a real sentence encoder, but tiny."""

from __future__ import annotations

import json
import string
from pathlib import Path

import numpy as np

WIDTH, INNER, LAYERS, HEADS = 12, 20, 2, 3
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
LETTERS = string.ascii_lowercase + string.digits + string.punctuation + "我喜欢绿茶。"
VOCABULARY = [*MARKS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]


def tiny_weights() -> dict[str, np.ndarray]:
    """The same random tensors every time."""
    rng = np.random.default_rng(5)
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": (512, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm": (WIDTH,),
    }
    for layer in range(LAYERS):
        own = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            shapes[f"{own}.attention.self.{part}"] = (WIDTH, WIDTH)
        shapes[f"{own}.attention.output.dense"] = (WIDTH, WIDTH)
        shapes[f"{own}.attention.output.LayerNorm"] = (WIDTH,)
        shapes[f"{own}.intermediate.dense"] = (INNER, WIDTH)
        shapes[f"{own}.output.dense"] = (WIDTH, INNER)
        shapes[f"{own}.output.LayerNorm"] = (WIDTH,)
    weights = {}
    for name, shape in shapes.items():
        if name.endswith("embeddings.weight"):
            weights[name] = rng.normal(size=shape)
        else:
            weights[f"{name}.weight"] = rng.normal(size=shape)
            weights[f"{name}.bias"] = rng.normal(size=shape[:1])
    return {name: tensor.astype("<f4") for name, tensor in weights.items()}


def write_tiny_model(folder: Path) -> None:
    """Write config, vocabulary and weights as they are published."""
    config = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in tiny_weights().items():
        raw = tensor.tobytes()
        place = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": place}
        body += raw
    described = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(
        len(described).to_bytes(8, "little") + described + body
    )
