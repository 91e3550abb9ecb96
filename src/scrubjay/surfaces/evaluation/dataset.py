"""A data set: conversations to remember, and questions whose evidence is known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest, NotFound

_HINT = "Correct the file; docs/evaluation.md has the format."


@dataclass(frozen=True, slots=True)
class Entry:
    """One JSON object and where it stands; a field that is not as it must be is refused by place.

    An optional field may be missing, null or empty, which is all the same.
    """

    place: str
    fields: Mapping[str, object]

    def problem(self, message: str) -> InvalidRequest:
        """The error that names the place; the caller raises it."""
        return InvalidRequest(f"{self.place}: {message}", hint=_HINT)

    def text(self, name: str) -> str:
        """A text that must be there; it may be blank."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self.problem(f"{name} is missing." if value is None else f"{name} must be text.")
        return self._encodable(name, value)

    def said(self, name: str) -> str:
        """A text that must be there and say something."""
        value = self.text(name)
        if not value.strip():
            raise self.problem(f"{name} is empty.")
        return value

    def id(self) -> str:
        """What the entry is called: 1 to 512 characters."""
        return self._name("id", self.said("id"))

    def name(self, name: str) -> str | None:
        """An optional name of at most 512 characters."""
        value = self.fields.get(name)
        if value is None or value == "":
            return None
        return self._name(name, self.said(name))

    def count(self, name: str) -> int | None:
        """An optional whole number, not below zero."""
        try:
            return text.check_count(name, self.fields.get(name))  # type: ignore[arg-type]
        except InvalidRequest as error:
            raise self.problem(error.message) from error

    def time(self, name: str) -> datetime | None:
        """An optional ISO 8601 time; one that names no zone is taken as UTC."""
        value = self.fields.get(name)
        if value is None or value == "":
            return None
        try:
            read = datetime.fromisoformat(self.text(name))
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            example = "2024-03-15T09:30:00"
            raise self.problem(f"{name} is not an ISO 8601 time such as {example}.") from error

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts that must be there, each kept once; it may be empty."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise self.problem(f"{name} must be a list of texts.")
        return tuple(dict.fromkeys(map(str, values)))

    def entries(self, name: str, each: str) -> Iterator[Entry]:
        """The objects of a list that must be there, each with a place of its own."""
        for number, value in enumerate(self._list(name), start=1):
            place = f"{self.place}, {each} {number}"
            if not isinstance(value, dict):
                raise InvalidRequest(f"{place}: this must be a JSON object.", hint=_HINT)
            yield Entry(place, value)

    def _list(self, name: str) -> list[object]:
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise self.problem(f"{name} must be a list." if value else f"{name} is missing.")
        return value

    def _name(self, name: str, value: str) -> str:
        if len(value) > text.NAME_CHARS:
            raise self.problem(f"{name} must have at most {text.NAME_CHARS} characters.")
        return value

    def _encodable(self, name: str, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.problem(f"{name} has half a surrogate pair.") from error
        return value


def read_entries(file: Path) -> Iterator[Entry]:
    """The objects of a file with one JSON object per line; blank lines are passed over."""
    for number, line in enumerate(_lines(file), start=1):
        if line.strip():
            yield _entry(f"{file}:{number}", line)


def _entry(place: str, line: bytes) -> Entry:
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{place}: this is not UTF-8.", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{place}: this is not JSON.", hint=_HINT) from error
    if not isinstance(value, dict):
        raise InvalidRequest(f"{place}: this must be a JSON object.", hint=_HINT)
    return Entry(place, value)


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as lines:
            yield next(lines, b"").removeprefix(b"\xef\xbb\xbf")
            yield from lines
    except FileNotFoundError as error:
        raise NotFound(f"There is no {file}.", hint=_HINT) from error
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}.") from error


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
