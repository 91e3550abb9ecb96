"""Two processes write episodes, two more consolidate them, and any of the four may be killed."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from time import monotonic

from scrubjay import bootstrap
from scrubjay.model.memory import Kind
from scrubjay.model.requests import Browse
from scrubjay.settings import at_home
from tests.acceptance.consolidate_worker import SCOPE
from tests.support.model_server import serve_model

ROOT = Path(__file__).parents[2]
EPISODES = 1_000
LEASE = 3.0
"""Three times as long as the model may take, which is a second here."""
KILLED = 0.1
"""How likely a question to the model is the last that its process asks."""


def test_kills_lose_no_episode_double_no_fact_and_repeat_no_question_before_its_lease_is_over(
    tmp_path: Path, record_property
) -> None:
    dice, asked = random.Random(7), defaultdict[str, list[float]](list)
    processes, kills, lock = dict[str, subprocess.Popen[bytes]](), 0, threading.Lock()

    def says(texts: list[str]) -> str:
        nonlocal kills
        with lock:
            for text in texts:
                asked[text].append(monotonic())
            if dice.random() < KILLED:
                kills += 1
                for one in processes.values():
                    one.kill()
        return "\n".join(
            f"lesson: Learned {text.split()[-1]} [{n}]" for n, text in enumerate(texts, 1)
        )

    with serve_model() as model:
        model.says = says

        def start(*what: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "tests.acceptance.consolidate_worker"]
            return subprocess.Popen([*command, str(tmp_path), model.openai_url, *what], cwd=ROOT)

        writers = {
            "first": ("write", "0", str(EPISODES // 2)),
            "second": ("write", str(EPISODES // 2), str(EPISODES)),
        }
        workers = {"third": ("work",), "fourth": ("work",)}
        waiting = {**writers, **workers}
        while waiting:
            with lock:
                processes |= {name: start(*what) for name, what in waiting.items()}
            ended = {name: processes[name].wait() for name in waiting}
            written = not any(ended.get(name, 0) for name in writers)
            waiting = {name: what for name, what in writers.items() if ended.get(name, 0)}
            # Whoever found a live lease went home: it comes back until every episode was sent.
            if not written or len(asked) < EPISODES or any(ended[name] for name in workers):
                waiting |= workers
    engine = bootstrap.build(at_home(tmp_path))
    page = engine.browse(SCOPE, Browse(kinds=frozenset({Kind.FACT}), limit=1_000))
    facts = [memory.content for memory in page.data]
    assert engine.verify(SCOPE).sound
    engine.close()
    again = [times for times in asked.values() if len(times) > 1]
    record_property("kills", kills)
    record_property("episodes asked about twice", len(again))
    assert sorted(facts) == sorted(f"Learned topic-{number}." for number in range(EPISODES))
    assert kills > 0
    assert all(late - early > LEASE / 2 for one in again for early, late in pairwise(one))
