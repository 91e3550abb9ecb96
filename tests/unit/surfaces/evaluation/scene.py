"""What the tests of the evaluation stand on: a small data set, and a memory by word count."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.results import Hit, Recalled
from scrubjay.model.scope import Scope
from scrubjay.surfaces.evaluation.trial import Opening

TURNS = (
    {"id": "t0", "session": "s0", "position": 0, "speaker": "Ann", "time": "2024-03-01T08:00:00",
     "text": "We planted three apple trees."},
    {"id": "t1", "session": "s0", "position": 1, "speaker": "Ben", "time": "2024-03-01T08:01:00",
     "text": "My bicycle is in the cellar."},
    {"id": "t2", "session": "s1", "position": 0, "speaker": "Ann", "time": "2024-03-02T09:00:00",
     "text": "The apple harvest was poor."},
)  # fmt: skip
HAYSTACK = {"id": "h", "turns": TURNS}
QUESTION = {"id": "q", "haystack": "h", "question": "apple trees", "gold": ["t0"]}


def write_set(
    folder: Path,
    *,
    haystacks: Sequence[object] = (HAYSTACK,),
    questions: Sequence[object] = (QUESTION,),
) -> Path:
    """A data set in a folder; a text stands for a line as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("haystacks", haystacks), ("questions", questions)):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (folder / f"{name}.jsonl").write_text("".join(f"{text}\n" for text in texts))
    return folder


@dataclass
class WordMemory:
    """A stand-in for the library's handle: ranks by the number of common words, ties by age."""

    home: Path
    degraded: tuple[str, ...] = ()
    memories: list[Memory] = field(default_factory=list)
    asked: list[tuple[str, int, datetime | None]] = field(default_factory=list)
    closed: bool = False

    def retain(
        self,
        content: str,
        /,
        *,
        kind: str,
        session: str | None,
        speaker: str | None,
        position: int | None,
        message_id: str | None,
        said_at: datetime | None,
    ) -> None:
        """Keep it."""
        (self.home / f"{len(self.memories)}.row").write_text("sealed")
        memory = Memory(
            id=f"mem-{len(self.memories)}",
            kind=Kind(kind),
            content=content,
            recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
            provenance=Provenance(session=session, message_id=message_id, said_at=said_at),
            speaker=speaker,
            position=position,
        )
        self.memories.append(memory)

    def recall(self, query: str, /, *, limit: int, asked_at: datetime | None) -> Recalled:
        """Those with a word of the question, most words first."""
        self.asked.append((query, limit, asked_at))
        words = _words(query)
        counted = [(len(words & _words(memory.content)), memory) for memory in self.memories]
        found = sorted((pair for pair in counted if pair[0]), key=lambda pair: -pair[0])[:limit]
        return Recalled(hits=tuple(_hit(*pair) for pair in found), degraded=self.degraded)


def _hit(count: int, memory: Memory) -> Hit:
    scope = Scope.parse("test")
    return Hit(memory=memory, score=count, why={"words": count}, scope=scope, relevance=0.5)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@dataclass
class Opened:
    """Opens memories by word count, and remembers which."""

    degraded: tuple[str, ...] = ()
    all: list[WordMemory] = field(default_factory=list)

    @property
    def opening(self) -> Opening:
        """What a trial asks for."""

        @contextmanager
        def opening(home: Path) -> Iterator[WordMemory]:
            memory = WordMemory(home, self.degraded)
            self.all.append(memory)
            try:
                yield memory
            finally:
                memory.closed = True

        return opening
