"""One entrant's failure is told, and ends nobody else's run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bench.peers import contest, material
from bench.peers.contest import Setting
from bench.peers.figures import Absence
from bench.peers.roster import Entrant
from bench.peers.vectors import DIMENSIONS

TURN = {"id": "t0", "session": "s", "position": 0, "speaker": "Ann", "time": None, "text": "a"}
QUESTION = {"id": "q0", "haystack": "h", "question": "what?", "asked_at": None, "gold": ["t0"]}


def test_an_entrant_that_cannot_run_is_skipped_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "haystacks.jsonl").write_text(json.dumps({"id": "h", "turns": [TURN]}))
    (tmp_path / "questions.jsonl").write_text(json.dumps(QUESTION))
    (tmp_path / "texts.json").write_text("[]")
    np.save(tmp_path / "rows.npy", np.empty((0, DIMENSIONS), np.float32))
    setting = Setting(
        scratch=tmp_path / "scratch",
        folder=tmp_path,
        turns=None,
        material=material.read(tmp_path),
        vectors=tmp_path,
    )

    (outcome,) = contest.hold([Entrant(name="nobody", subject="nobody:Nobody")], setting)

    assert isinstance(outcome, Absence)
    assert outcome.reason.startswith("it fails: ModuleNotFoundError")
