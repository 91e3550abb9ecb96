"""Reading JSON lines so that whoever wrote a malformed one is told where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scrubjay.domain import text
from scrubjay.domain.errors import InvalidRequest, NotFound

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
