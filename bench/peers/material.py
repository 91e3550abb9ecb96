"""What everybody is given: conversations turn by turn, and questions with the turns that answer.

Runs on the standard library alone, because every peer's interpreter reads it too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing said, in the conversation `owner`."""

    owner: str
    id: str
    session: str | None
    position: int | None
    speaker: str | None
    time: str | None
    text: str
    kind: str = "episode"

    @property
    def line(self) -> str:
        """Speaker and text in one: what a peer without a field for speakers is given."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about the conversation `owner`, and the ids of the turns that answer it."""

    owner: str
    id: str
    text: str
    asked_at: str | None
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All turns in the order they are written, and all questions."""

    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    @property
    def owners(self) -> tuple[str, ...]:
        """The conversations, in their order."""
        return tuple(dict.fromkeys(turn.owner for turn in self.turns))

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text anybody embeds, once: lines, bare texts and questions."""
        lines = (text for turn in self.turns for text in (turn.line, turn.text))
        return tuple(dict.fromkeys([*lines, *(question.text for question in self.questions)]))


def read(folder: Path, *, turns: int | None = None) -> Material:
    """The set in a folder, or its first `turns` turns and the questions these can answer.

    Left out are turns without a text, and questions of which no answer is known.
    """
    said = tuple(_turns(folder))[:turns]
    known = {(turn.owner, turn.id) for turn in said}
    asked = tuple(
        question
        for question in _questions(folder)
        if question.gold and all((question.owner, gold) in known for gold in question.gold)
    )
    return Material(turns=said, questions=asked)


def _turns(folder: Path) -> Iterator[Turn]:
    for haystack in _lines(folder / "haystacks.jsonl"):
        for turn in haystack["turns"]:
            if turn["text"].strip():
                yield Turn(
                    owner=haystack["id"],
                    id=turn["id"],
                    session=turn.get("session"),
                    position=turn.get("position"),
                    speaker=turn.get("speaker"),
                    time=turn.get("time"),
                    text=turn["text"],
                    kind=turn.get("kind") or "episode",
                )


def _questions(folder: Path) -> Iterator[Question]:
    for question in _lines(folder / "questions.jsonl"):
        yield Question(
            owner=question["haystack"],
            id=question["id"],
            text=question["question"],
            asked_at=question.get("asked_at"),
            gold=tuple(question["gold"]),
        )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
