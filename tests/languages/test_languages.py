"""Plainly worded questions find their memories, in several languages and among bare facts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import scrubjay
from scrubjay.engine.search.analysis import recognize, terms, wanted, words

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
    assert len(keys) >= 40
    assert len(missed) <= (1 - SHARE) * len(case["questions"]), missed


def found(name: str, home: Path) -> int:
    """How many questions of a file find their memory, paraphrases included; a tie finds nothing."""
    case = read(name)
    with scrubjay.open("someone", home=home) as jay:
        keys = retain_all(jay, case)
        return sum(
            earned(jay.recall(question, limit=len(keys)), keys, key)
            for question, key in (*case["questions"], *case.get("paraphrases", ()))
        )


def earned(hits: scrubjay.Recalled, keys: dict[str, str], key: str) -> bool:
    """Whether a memory is among the first, and none that is left out has as high a score."""
    scores = [hit.score for hit in hits if keys[hit.memory.id] == key]
    return bool(scores) and sum(hit.score >= scores[0] for hit in hits) <= FOUND_AMONG


@pytest.mark.parametrize("name", NAMES)
def test_meaning_costs_no_language_a_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_table = found(name, tmp_path / "table")
    monkeypatch.setenv("SCRUBJAY_EMBEDDER", "none")
    assert found(name, tmp_path / "words") <= with_table


KNOWN = set(NAMES) - {"english_facts", "hindi"}
"""The languages of the sets that the encoder was trained on."""


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"english_facts"}))
def test_half_of_the_questions_share_no_word_with_their_memory(name: str) -> None:
    case = read(name)
    texts = dict(case["facts"])
    texts |= {key: text for one in case.get("sessions", ()) for key, _, text in one["turns"]}
    assert len(case["paraphrases"]) >= len(case["questions"]) >= 10
    for question, key in case["paraphrases"]:
        asked = {one.term for one in wanted(question)}
        shared = asked & set(terms(texts[key], recognize(words(question))))
        # Of scripts without spaces a single character says little.
        assert not {term for term in shared if term.isascii() or len(term) > 1}, question


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_encoder_finds_most_paraphrases(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRUBJAY_EMBEDDER", "encoder")
    case = read(name)
    with scrubjay.open("someone", home=tmp_path) as jay:
        keys = retain_all(jay, case)
        found = sum(
            key in [keys[hit.memory.id] for hit in jay.recall(question, limit=FOUND_AMONG)]
            for question, key in case["paraphrases"]
        )
    assert found >= 0.7 * len(case["paraphrases"])
