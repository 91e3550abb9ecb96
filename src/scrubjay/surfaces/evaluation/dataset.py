"""A data set: conversations to remember, and questions whose evidence is known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.memory import Kind
from scrubjay.model.text import NAME_CHARS

HAYSTACKS: Final = "haystacks.jsonl"
QUESTIONS: Final = "questions.jsonl"
NO_CATEGORY: Final = "uncategorized"
_HINT: Final = "Correct the file; docs/evaluation.md has the format."


class HaystackTurn(Struct, frozen=True, kw_only=True):
    """One turn of a conversation, or one fact."""

    id: str
    text: str
    kind: Kind = Kind.EPISODE
    session: str | None = None
    position: int | None = None
    speaker: str | None = None
    time: datetime | None = None


class Haystack(Struct, frozen=True, kw_only=True):
    """Everything that is remembered when its questions are asked."""

    id: str
    turns: tuple[HaystackTurn, ...]


class GoldQuestion(Struct, frozen=True, kw_only=True):
    """A question and the turns that hold its answer; without gold nothing should be found."""

    id: str
    haystack: str
    text: str
    gold: frozenset[str]
    category: str = NO_CATEGORY
    asked_at: datetime | None = None


class Dataset(Struct, frozen=True, kw_only=True):
    """Questions, checked against the haystacks; these stay in their file until asked for.

    Only the one in use is held, so that the memory a trial needs is the engine's, not the data's.
    """

    folder: Path
    questions: tuple[GoldQuestion, ...]
    turns: int
    """Number of turns in the haystacks that have questions."""

    @property
    def name(self) -> str:
        """The set is called as its folder is."""
        return self.folder.resolve().name

    @property
    def steps(self) -> int:
        """Amount of work: turns to retain, and questions to ask."""
        return self.turns + len(self.questions)

    def rounds(self) -> Iterator[tuple[Haystack, tuple[GoldQuestion, ...]]]:
        """Each haystack that is asked about, with its questions in the order of the file."""
        for haystack in _haystacks(self.folder / HAYSTACKS):
            asked = tuple(q for q in self.questions if q.haystack == haystack.id)
            if asked:
                yield haystack, asked


def find_sets(folder: Path, names: Iterable[str] = ()) -> tuple[Path, ...]:
    """The folders of the named sets, or of all: `folder` itself is one, or those in it are."""
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", hint="Name the folder that has the data.")
    if (folder / HAYSTACKS).is_file():
        found = {folder.resolve().name: folder}
    else:
        inside = sorted(folder.iterdir())
        found = {path.name: path for path in inside if (path / HAYSTACKS).is_file()}
    if not found:
        raise NotFound(
            f"{folder} holds no data set.",
            hint=f"A data set is a folder with {HAYSTACKS} and {QUESTIONS}.",
        )
    chosen = tuple(dict.fromkeys(names))
    unknown = [name for name in chosen if name not in found]
    if unknown:
        raise NotFound(
            f"{folder} holds no data set called {unknown[0]}.", hint=f"It has: {', '.join(found)}."
        )
    return tuple(found[name] for name in chosen or found)


def read_set(folder: Path) -> Dataset:
    """Read a data set; the first thing wrong in it is refused by file and line."""
    turns = {h.id: frozenset(t.id for t in h.turns) for h in _haystacks(folder / HAYSTACKS)}
    asked = tuple(_questions(folder / QUESTIONS, turns))
    if not any(question.gold for question in asked):
        raise InvalidRequest(
            f"{folder / QUESTIONS}: no question names its gold turns, so nothing can be measured.",
            hint="Give each question the ids of the turns that hold its answer, as gold.",
        )
    return Dataset(
        folder=folder,
        questions=asked,
        turns=sum(len(turns[id]) for id in {question.haystack for question in asked}),
    )


def _haystacks(file: Path) -> Iterator[Haystack]:
    for entry in _unique(_read(file)):
        turns = tuple(
            HaystackTurn(
                id=turn.id,
                text=turn.text("text", blank=True),
                kind=turn.kind(),
                session=turn.name("session"),
                position=turn.count("position"),
                speaker=turn.name("speaker"),
                time=turn.time("time"),
            )
            for turn in _unique(
                _JsonObject.of(f"{entry.place}, turn {number}", value)
                for number, value in enumerate(entry.array("turns"), start=1)
            )
        )
        yield Haystack(id=entry.id, turns=turns)


def _questions(file: Path, turns: Mapping[str, frozenset[str]]) -> Iterator[GoldQuestion]:
    for entry in _unique(_read(file)):
        gold = entry.array("gold") if entry.fields.get("gold") else []
        if not all(isinstance(turn, str) for turn in gold):
            raise entry.problem("gold must be a list of texts.")
        question = GoldQuestion(
            id=entry.id,
            haystack=entry.text("haystack"),
            text=entry.text("question"),
            gold=frozenset(gold),
            category=entry.name("category") or NO_CATEGORY,
            asked_at=entry.time("asked_at"),
        )
        if question.haystack not in turns:
            raise entry.problem(f"there is no haystack {question.haystack!r}.")
        if unknown := sorted(question.gold - turns[question.haystack]):
            where = f"is not in haystack {question.haystack!r}."
            raise entry.problem(f"the gold turn {unknown[0]!r} {where}")
        yield question


# -- files of JSON objects --------------------------------------------------------------------


class _JsonObject(Struct, frozen=True):
    """One JSON object and where it stands; a field that is not as it must be is refused by place.

    An optional field may be missing, null or empty, which is all the same.
    """

    place: str
    fields: dict[str, Any]

    @classmethod
    def of(cls, place: str, value: Any) -> _JsonObject:
        if not isinstance(value, dict):
            raise InvalidRequest(f"{place}: this must be a JSON object.", hint=_HINT)
        return cls(place, value)

    @property
    def id(self) -> str:
        """Name of the object: 1 to 512 characters."""
        return self.text("id", most=NAME_CHARS)

    def problem(self, message: str) -> InvalidRequest:
        """The error that names the place; the caller raises it."""
        return InvalidRequest(f"{self.place}: {message}", hint=_HINT)

    def text(self, name: str, *, blank: bool = False, most: int | None = None) -> str:
        """A text that must be there and say something, unless it may be blank."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self.problem(f"{name} is missing." if value is None else f"{name} must be text.")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.problem(f"{name} has half a surrogate pair.") from error
        if not blank and not value.strip():
            raise self.problem(f"{name} is empty.")
        if most is not None and len(value) > most:
            raise self.problem(f"{name} must have at most {most} characters.")
        return value

    def name(self, name: str) -> str | None:
        """An optional name of at most 512 characters."""
        is_empty = self.fields.get(name) in (None, "")
        return None if is_empty else self.text(name, most=NAME_CHARS)

    def kind(self) -> Kind:
        """The optional kind of a memory; a turn of a conversation where there is none."""
        named = self.name("kind") or Kind.EPISODE
        try:
            return Kind(named)
        except ValueError as error:
            known = ", ".join(Kind)
            raise self.problem(f"{named!r} is no kind of memory; there are {known}.") from error

    def count(self, name: str) -> int | None:
        """An optional whole number, not below zero."""
        value = self.fields.get(name)
        if value is None or (type(value) is int and value >= 0):
            return value
        raise self.problem(f"{name} must be a whole number from 0.")

    def time(self, name: str) -> datetime | None:
        """An optional ISO 8601 time; one that names no zone is taken as UTC."""
        if self.fields.get(name) in (None, ""):
            return None
        try:
            read = datetime.fromisoformat(self.text(name, blank=True))
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            example = "2024-03-15T09:30:00"
            raise self.problem(f"{name} is not an ISO 8601 time such as {example}.") from error

    def array(self, name: str) -> list[Any]:
        """A list that must be there."""
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise self.problem(f"{name} must be a list." if value else f"{name} is missing.")
        return value


def _read(file: Path) -> Iterator[_JsonObject]:
    """The objects of a file with one JSON object per line; blank lines are passed over."""
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                place, bare = f"{file}:{number}", line.removeprefix(b"\xef\xbb\xbf" * (number == 1))
                if not bare.strip():
                    continue
                try:
                    value = json.loads(bare.decode())
                except UnicodeDecodeError as error:
                    raise InvalidRequest(f"{place}: this is not UTF-8.", hint=_HINT) from error
                except (ValueError, RecursionError) as error:
                    raise InvalidRequest(f"{place}: this is not JSON.", hint=_HINT) from error
                yield _JsonObject.of(place, value)
    except FileNotFoundError as error:
        raise NotFound(f"There is no {file}.", hint=_HINT) from error
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}.") from error


def _unique(objects: Iterable[_JsonObject]) -> Iterator[_JsonObject]:
    seen: dict[str, str] = {}
    for one in objects:
        first = seen.setdefault(one.id, one.place)
        if first != one.place:
            raise one.problem(f"the id {one.id!r} was used before, at {first}.")
        yield one
