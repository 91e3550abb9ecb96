"""Trying a data set: retain every turn, ask every question, note what came back and how fast."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Protocol, TypeAlias

from msgspec import Struct

from scrubjay.model.filters import KindArg
from scrubjay.model.results import Hit, Recalled
from scrubjay.model.text import CONTENT_BYTES
from scrubjay.surfaces.evaluation.dataset import Dataset, GoldQuestion


class Remembering(Protocol):
    """The part of the library's handle that is measured."""

    def retain(
        self,
        content: str,
        /,
        *,
        kind: KindArg,
        session: str | None,
        speaker: str | None,
        position: int | None,
        message_id: str | None,
        said_at: datetime | None,
    ) -> object:
        """Write one memory; durable when this returns."""

    def recall(self, query: str, /, *, limit: int, asked_at: datetime | None) -> Recalled:
        """The memories that best answer the question, as asked at a time."""


Opening: TypeAlias = Callable[[Path], AbstractContextManager[Remembering]]
"""Opens an empty scope in an empty folder."""
Watch: TypeAlias = Callable[[], None]
"""Called after every turn retained and every question asked."""


class RankedAnswer(Struct, frozen=True, kw_only=True):
    """Ranking for one question: ids of turns, best first."""

    question: GoldQuestion
    ranked: tuple[str, ...]
    scores: tuple[float, ...]
    relevance: tuple[float, ...]
    seconds: float
    first: bool = False
    """Asked first of its haystack: the index had to be made for it."""
    degraded: tuple[str, ...] = ()
    """Parts of the search that could not be used."""


class Trial(Struct, frozen=True, kw_only=True):
    """Results of a data set; the times are of this machine and run."""

    name: str
    answers: tuple[RankedAnswer, ...]
    turns: int
    retain_seconds: float
    empty: int
    """Turns without a text; they cannot be remembered, and are missed where they are gold."""
    peak_ram_mib: float
    """The most the whole process had at once, from its start to the end of this set."""


def attempt(dataset: Dataset, *, top: int, opening: Opening, watch: Watch) -> Trial:
    """Try a data set; every haystack has a home of its own, which is removed whatever happens."""
    answers: list[RankedAnswer] = []
    turns = empty = 0
    seconds = 0.0
    for haystack, asked in dataset.rounds():
        with (
            TemporaryDirectory(prefix="scrubjay-eval-") as home,
            opening(Path(home)) as jay,
        ):
            began = perf_counter()
            for turn in haystack.turns:
                for piece in pieces(turn.text):
                    jay.retain(
                        piece,
                        kind=turn.kind,
                        session=turn.session,
                        speaker=turn.speaker,
                        position=turn.position,
                        message_id=turn.id,
                        said_at=turn.time,
                    )
                watch()
            seconds += perf_counter() - began
            answers.extend(_ask(jay, asked, top, watch))
        turns += len(haystack.turns)
        empty += sum(not turn.text.strip() for turn in haystack.turns)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Trial(
        name=dataset.name,
        answers=tuple(answers),
        turns=turns - empty,
        retain_seconds=seconds,
        empty=empty,
        # In bytes on macOS, in KiB elsewhere.
        peak_ram_mib=peak / 2**20 if sys.platform == "darwin" else peak / 2**10,
    )


def _ask(
    jay: Remembering, asked: Sequence[GoldQuestion], top: int, watch: Watch
) -> Iterator[RankedAnswer]:
    for question in asked:
        began = perf_counter()
        recalled = jay.recall(question.text, limit=top, asked_at=question.asked_at)
        seconds = perf_counter() - began
        best: dict[str, Hit] = {}
        for hit in recalled.hits:
            turn = hit.memory.provenance.message_id
            if turn is not None:
                best.setdefault(turn, hit)  # of the pieces of a turn, the best
        yield RankedAnswer(
            question=question,
            ranked=tuple(best),
            scores=tuple(float(hit.score) for hit in best.values()),
            relevance=tuple(float(hit.relevance) for hit in best.values()),
            seconds=seconds,
            first=question is asked[0],
            degraded=recalled.degraded,
        )
        watch()


def pieces(text: str, limit: int = CONTENT_BYTES) -> Iterator[str]:
    """A turn's text in pieces that one memory can hold; most often that is the text itself."""
    raw = text.encode()
    while len(raw) > limit:
        piece = raw[:limit].decode(errors="ignore")
        end = piece.rfind(" ", len(piece) // 2)
        piece = piece[:end] if end > 0 else piece
        if piece.strip():
            yield piece
        raw = raw[len(piece.encode()) :]
    if raw.strip():
        yield raw.decode()
