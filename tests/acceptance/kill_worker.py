"""The nursery of the kill tests: each child works on one home until it is killed."""

from __future__ import annotations

from pathlib import Path

from scrubjay import bootstrap, settings
from scrubjay.engine import Policy
from scrubjay.engine.scope import rotate
from scrubjay.ports import Failpoint, pass_by
from scrubjay.vault import Cost
from tests.acceptance.mix import Ledger, Mix
from tests.acceptance.talk import Answering
from tests.support.killing import Job, Tick, die_at, serve

POLICY = Policy(
    drop_days=0,
    segment_rows=8,
    extract_seconds=0.001,
    passphrase_cost=Cost(memory_kib=64, passes=1, lanes=1),
)
"""A lease is over as soon as the next process looks: the model answers at once."""
BATCH = 16
"""Rows sealed anew at once: few, so that a small scope is rotated in several transactions."""


def work(job: Job, tick: Tick) -> None:
    """Carry out random verbs, written down in the ledger, and die where the job says."""
    rotate._BATCH = BATCH
    home = Path(job["home"])
    reach = die_at(Failpoint(job["failpoint"]), job["arrival"]) if job["failpoint"] else pass_by
    engine = bootstrap.build(
        settings.at_home(home), reach=reach, policy=POLICY, extractor=Answering()
    )
    ledger = Ledger(Path(job["ledger"]), tick)
    outside = Path(job["outside"])
    mix = Mix(engine, ledger, seed=job["seed"], number=job["number"], folder=outside)
    mix.begin()
    for _ in range(job["steps"]):
        mix.step(job["favour"])
    engine.close()


if __name__ == "__main__":
    serve(work)
