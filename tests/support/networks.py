"""Networks between a node and its database: they count calls, or lose what a seed says."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.support.memory_cluster import Fate, Network


def lossy(seed: int | str, *, risk: float = 0.05, commits: float = 0.0) -> Network:
    """A network that loses requests and answers; inside of a transaction it loses nothing.

    Commits have a risk of their own: what is lost of them is not for the store to repeat.
    """
    random = Random(seed)

    def network(name: str) -> Fate:
        chance = commits if name == "commit" else risk
        if name.startswith("tx.") or random.random() >= chance:
            return Fate.ARRIVES
        return random.choice((Fate.REQUEST_LOST, Fate.ANSWER_LOST))

    return network


def counting(counts: Counter[str]) -> Network:
    """A network that loses nothing and counts the calls, by name."""

    def network(name: str) -> Fate:
        counts[name] += 1
        return Fate.ARRIVES

    return network
