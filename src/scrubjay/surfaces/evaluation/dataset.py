"""A data set: conversations to remember, and questions whose evidence is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from scrubjay.domain.errors import InvalidRequest, NotFound
from scrubjay.surfaces.evaluation.entries import Entry, read_entries

HAYSTACKS = "haystacks.jsonl"
QUESTIONS = "questions.jsonl"
NO_CATEGORY = "uncategorized"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing somebody said."""

    id: str
    text: str
    session: str | None = None
    position: int | None = None
    speaker: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Haystack:
    """Everything that is remembered when its questions are asked."""

    id: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the turns that hold its answer."""

    id: str
    haystack: str
    text: str
    gold: frozenset[str]
    category: str = NO_CATEGORY
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Questions with gold, checked against the haystacks; these stay in their file until asked for.

    Only the one in use is held, so that the memory a trial needs is the engine's, not the data's.
    """

    folder: Path
    questions: tuple[Question, ...]
    turns: int
    """How many there are in the haystacks that are asked about."""
    skipped: int = 0
    """How many questions named no evidence, so that nothing could be measured by them."""

    @property
    def name(self) -> str:
        """The set is called as its folder is."""
        return self.folder.resolve().name

    @property
    def steps(self) -> int:
        """How much there is to do: turns to retain, and questions to ask."""
        return self.turns + len(self.questions)

    def rounds(self) -> Iterator[tuple[Haystack, tuple[Question, ...]]]:
        """Each haystack that is asked about, with its questions in the order of the file."""
        for haystack in _haystacks(self.folder / HAYSTACKS):
            asked = tuple(q for q in self.questions if q.haystack == haystack.id)
            if asked:
                yield haystack, asked


def find_sets(folder: Path, names: Iterable[str] = ()) -> tuple[Path, ...]:
    """The folders of the named sets, or of all: `folder` itself is one, or those in it are."""
    found = _sets_in(folder)
    chosen = tuple(dict.fromkeys(names))
    unknown = [name for name in chosen if name not in found]
    if unknown:
        raise NotFound(
            f"{folder} holds no data set called {unknown[0]}.", hint=f"It has: {', '.join(found)}."
        )
    return tuple(found[name] for name in chosen or found)


def _sets_in(folder: Path) -> Mapping[str, Path]:
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", hint="Name the folder that has the data.")
    if (folder / HAYSTACKS).is_file():
        return {folder.resolve().name: folder}
    found = {path.name: path for path in sorted(folder.iterdir()) if (path / HAYSTACKS).is_file()}
    if not found:
        raise NotFound(
            f"{folder} holds no data set.",
            hint=f"A data set is a folder with {HAYSTACKS} and {QUESTIONS}.",
        )
    return found


def read_set(folder: Path) -> Dataset:
    """Read a data set; the first thing wrong in it is refused by file and line."""
    turns = {h.id: frozenset(t.id for t in h.turns) for h in _haystacks(folder / HAYSTACKS)}
    asked = tuple(_questions(folder / QUESTIONS, turns))
    answerable = tuple(question for question in asked if question.gold)
    if not answerable:
        raise InvalidRequest(
            f"{folder / QUESTIONS}: no question names its gold turns, so nothing can be measured.",
            hint="Give each question the ids of the turns that hold its answer, as gold.",
        )
    return Dataset(
        folder=folder,
        questions=answerable,
        turns=sum(len(turns[id]) for id in {question.haystack for question in answerable}),
        skipped=len(asked) - len(answerable),
    )


def _haystacks(file: Path) -> Iterator[Haystack]:
    for entry in _unique(read_entries(file)):
        turns = tuple(map(_turn, _unique(entry.entries("turns", "turn"))))
        yield Haystack(id=entry.id(), turns=turns)


def _turn(entry: Entry) -> Turn:
    return Turn(
        id=entry.id(),
        text=entry.text("text"),
        session=entry.name("session"),
        position=entry.count("position"),
        speaker=entry.name("speaker"),
        time=entry.time("time"),
    )


def _questions(file: Path, turns: Mapping[str, frozenset[str]]) -> Iterator[Question]:
    for entry in _unique(read_entries(file)):
        question = _question(entry)
        if question.haystack not in turns:
            raise entry.problem(f"there is no haystack {question.haystack!r}.")
        unknown = sorted(question.gold - turns[question.haystack])
        if unknown:
            raise entry.problem(
                f"the gold turn {unknown[0]!r} is not in haystack {question.haystack!r}."
            )
        yield question


def _question(entry: Entry) -> Question:
    return Question(
        id=entry.id(),
        haystack=entry.said("haystack"),
        text=entry.said("question"),
        gold=frozenset(entry.texts("gold")) if entry.fields.get("gold") else frozenset(),
        category=entry.name("category") or NO_CATEGORY,
        asked_at=entry.time("asked_at"),
    )


def _unique(entries: Iterable[Entry]) -> Iterator[Entry]:
    seen: dict[str, str] = {}
    for entry in entries:
        first = seen.setdefault(entry.id(), entry.place)
        if first != entry.place:
            raise entry.problem(f"the id {entry.id()!r} was used before, at {first}.")
        yield entry
