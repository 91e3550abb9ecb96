"""Plainly worded questions find their memories, in several languages and among bare facts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import scrubjay

HERE = Path(__file__).parent
FOUND_AMONG = 5
SHARE = 0.9
KINDS = {"facts": "fact", "preferences": "preference", "instructions": "instruction"}


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))


def retain_all(jay: scrubjay.Jay, case: dict[str, Any]) -> dict[str, str]:
    """Retain every memory of a file; returns their keys by id."""
    keys = {}
    for table, kind in KINDS.items():
        for key, text in case.get(table, {}).items():
            keys[jay.retain(text, kind=scrubjay.Kind(kind)).id] = key
    for session in case.get("sessions", ()):
        for position, (key, speaker, text) in enumerate(session["turns"]):
            retained = jay.retain(
                text,
                kind="episode",
                session=session["name"],
                speaker=speaker,
                position=position,
                said_at=session["said_at"],
            )
            keys[retained.id] = key
    return keys


NAMES = (
    *("arabic", "chinese", "english_facts", "french", "german", "hindi", "japanese", "russian"),
    "spanish",
)


@pytest.mark.parametrize("name", NAMES)
def test_plain_questions_find_their_memories(name: str, tmp_path: Path) -> None:
    case = read(name)
    with scrubjay.open("someone", home=tmp_path) as jay:
        keys = retain_all(jay, case)
        missed = []
        for question, key in case["questions"]:
            found = [keys[hit.memory.id] for hit in jay.recall(question, limit=FOUND_AMONG)]
            if key not in found:
                missed.append((question, found))
    assert len(keys) >= 25
    assert len(missed) <= (1 - SHARE) * len(case["questions"]), missed
