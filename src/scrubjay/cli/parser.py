"""Command-line parser: a command declares its options once, most of them as fields of a request.

The words are taken apart by `getopt`, which loads ten times faster than a parser library. Type,
default, limits and help of an option come from the field; only its name is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from getopt import GetoptError, gnu_getopt
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import fields as struct_fields

from scrubjay import settings
from scrubjay.cli.render import Output
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.pages import Paged
from scrubjay.model.scope import Scope

PROGRAM: Final = "scrubjay"
_LISTS: Final = (tuple, list, frozenset, set, Sequence)
_WIDTH: Final = 100
"""The most columns help is wrapped at; longer lines are hard to read."""


class WrongUsage(InvalidRequest):
    """Usage error: the arguments do not fit the options of the command."""

    code = "usage"


# -- times -----------------------------------------------------------------------------------------

_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_FORMS: Final = (
    "Write a date (2026-05-01), a time (2026-05-01T18:30), or hours, days or weeks (12h, 7d, 2w)."
)


def past(text: str, now: datetime) -> datetime:
    """Parse a time; a duration counts back from now."""
    return _moment(text, now, -1)


def future(text: str, now: datetime) -> datetime:
    """Parse a time in the future; a duration counts from now."""
    time = _moment(text, now, 1)
    if time <= now:
        raise InvalidRequest(f"{text} is over already.", hint="Name a time to come.")
    return time


def _moment(text: str, now: datetime, direction: int) -> datetime:
    """The time of an ISO date, an ISO time or a duration.

    A time without a zone is local time.
    """
    number, unit = text.strip()[:-1].strip(), text.strip()[-1:].lower()
    try:
        if unit in _UNITS and number.isdecimal() and len(number) <= 6:
            return now + direction * int(number) * _UNITS[unit]
        time = datetime.fromisoformat(text.strip())
        return time.astimezone() if time.tzinfo is None else time
    except OverflowError as error:
        raise InvalidRequest(f"{text} is outside the years 1 to 9999.", hint=_FORMS) from error
    except ValueError as error:
        raise InvalidRequest(f"{text!r} is not a time.", hint=_FORMS) from error


# -- options ---------------------------------------------------------------------------------------


class Option(Struct, frozen=True):
    """One option, or one argument where its name has no dashes: `--limit -n`, `FILE`."""

    flags: str
    help: str
    type: Any = bool
    name: str = ""
    """The keyword the function gets it by; by default the first flag as a Python name."""
    metavar: str = ""
    default: str = ""
    """The default as the help tells it; the function or the request has the value."""
    required: bool = False
    many: bool = False
    least: float | None = None
    most: float | None = None
    ahead: bool = False
    """Whether a time must lie ahead; a duration then counts from now."""
    off: str = ""
    """The flag that says the opposite."""
    variable: str = ""
    """The environment variable that gives the value where no option does."""

    @property
    def names(self) -> list[str]:
        """Its flags as they are typed, or the name of the argument."""
        return self.flags.split()

    @property
    def keyword(self) -> str:
        """The keyword the function gets it by."""
        return self.name or self.names[0].strip("-").replace("-", "_").lower()

    @property
    def positional(self) -> bool:
        """Whether it is an argument, told by its place."""
        return not self.flags.startswith("-")

    @property
    def value_name(self) -> str:
        """Placeholder of the value in usage and help; empty for a flag."""
        if self.positional:
            return self.flags
        named = {bool: "", int: "N", float: "NUMBER", Path: "FILE", datetime: "DATE"}
        return self.metavar or named.get(self.type, "NAME" if self.choices else "TEXT")

    @property
    def choices(self) -> list[str]:
        """The values there are, if the type is an enumeration."""
        known = isinstance(self.type, type) and issubclass(self.type, Enum)
        return [str(one.value) for one in self.type] if known else []

    @property
    def explained(self) -> str:
        """The help with the choices, the default and whether it may be repeated."""
        notes = [f"one of {', '.join(self.choices)}"] if self.choices else []
        if self.type is datetime:
            notes.append(f"as 2026-05-01, or 7d for {'in a week' if self.ahead else 'a week ago'}")
        notes += [f"default {self.default}"] if self.default else []
        notes += ["may be repeated"] if self.many and not self.positional else []
        notes += ["required"] if self.required and not self.positional else []
        return self.help + (f" [{'; '.join(notes)}]" if notes else "")

    @property
    def wants(self) -> str:
        """Description of a valid value, as the end of a sentence."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = "a whole number" if self.type is int else "a number"
        if self.least is not None and self.most is not None:
            return f"{kind} from {self.least:,} to {self.most:,}"
        return kind if self.least is None else f"{kind}, {self.least:,} or more"

    def convert(self, text: str) -> Any:
        """The value of a text; ValueError if there is none, InvalidRequest if it is no time."""
        if self.type is datetime:
            from scrubjay import bootstrap

            return (future if self.ahead else past)(text, bootstrap.clock().now())
        value = self.type(text)
        low = self.least is not None and not value >= self.least  # no number is nan
        if low or (self.most is not None and value > self.most):
            raise ValueError(text)
        return value

    def joined(self, before: Any, value: Any) -> Any:
        """The value together with those given before it."""
        if self.type is pair:
            return {**(before or {}), **value}
        return (*(before or ()), value) if self.many else value


class Fields(Struct, frozen=True):
    """Fields of a request as options; resolved only for the command that is run."""

    request: type[Struct]
    specs: tuple[str, ...]

    def options(self) -> Iterator[Option]:
        """Each field with the type, limits, default and help it has in the request."""
        known = {one.name: one for one in struct_fields(self.request)}
        for spec in self.specs:
            name, *words = spec.split()
            field = known[name]
            type_, meta, many = _taken_apart(field.type)
            if not words or (words[0].startswith("-") and not words[0].startswith("--")):
                words.insert(0, "--" + name.replace("_", "-"))
            text, of_python, _ = meta["description"].partition("; None ")
            default = field.default
            shown = default.value if isinstance(default, Enum) else default
            yield Option(
                flags=" ".join(words),
                help=f"{text}." if of_python else text,
                type=pair if type_ is Mapping else type_,
                name=name,
                metavar=_PLACEHOLDERS.get(name, ""),
                default=str(shown) if shown and isinstance(shown, str | int | float) else "",
                required=not words[0].startswith("-"),
                many=many,
                least=meta.get("ge"),
                most=meta.get("le"),
                ahead=name == "expires_at",
            )


def _taken_apart(hint: Any) -> tuple[Any, dict[str, Any], bool]:
    """Type of one value, its annotations, and whether it may be repeated."""
    meta: dict[str, Any] = {}
    many = False
    while (origin := get_origin(hint)) is not None:
        inner = get_args(hint)
        if origin is Annotated:
            notes = (note for note in inner[1:] if isinstance(note, Meta))
            found = [(name, getattr(note, name)) for note in notes for name in _NOTED]
            meta = {name: value for name, value in found if value is not None} | meta
        elif origin in (Union, UnionType):
            inner = tuple(one for one in inner if one is not NoneType)
        elif origin in _LISTS:
            many = True
        elif origin is Mapping:
            return Mapping, meta, True
        hint = inner[0]
    return (str if hint is Scope else hint), meta, many


_NOTED: Final = ("description", "ge", "le")
_PLACEHOLDERS: Final = {
    "session": "NAME", "tags": "TAG", "scopes": "SCOPE", "channel": "NAME", "where": "NAME=VALUE",
}  # fmt: skip


def pair(text: str) -> dict[str, Any]:
    """The object of `project=apollo`; the value is JSON where it reads as such, else text."""
    from json import loads

    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidRequest(f"{text!r} names no value.", hint="Write it as project=apollo.")
    try:
        return {name: loads(value)}
    except ValueError:
        return {name: value}


def fields(request: type[Struct], *specs: str) -> Fields:
    """Options from fields of a request: `limit -n`, `kinds --kind -k`, `query QUERY`."""
    return Fields(request, specs)


# -- commands --------------------------------------------------------------------------------------


Function = Callable[..., Output | int | None]


class Command(Struct, frozen=True):
    """A command: its name as it is typed, its function, and what it is told."""

    name: str
    function: Function
    declared: tuple[Option | Fields, ...]

    @property
    def options(self) -> list[Option]:
        """Every option and argument, fields resolved."""
        found: list[Option] = []
        for one in self.declared:
            found += one.options() if isinstance(one, Fields) else [one]
        return found

    @property
    def text(self) -> tuple[str, str]:
        """Its help text with an example."""
        lines = (self.function.__doc__ or "").strip().splitlines()
        does, _, example = "\n".join(line.strip() for line in lines).partition("\n\nExample: ")
        return does, example

    @property
    def summary(self) -> str:
        """Its first sentence."""
        return self.text[0].partition("\n\n")[0]

    def usage(self) -> str:
        """Its usage line."""
        named = [one for one in self.options if one.positional]
        words = [one.flags if one.required else f"[{one.flags}]" for one in named]
        return " ".join([PROGRAM, self.name, "[OPTIONS]", *words])

    def parse(self, words: Sequence[str]) -> dict[str, Any] | None:
        """Parse the arguments to keywords, without options that are not given; None for help."""
        options = self.options
        flagged = [one for one in options if not one.positional]
        by_flag = {flag: one for one in flagged for flag in (*one.names, one.off) if flag}
        takes = {flag: one.type is not bool for flag, one in by_flag.items()} | {"--help": False}
        short = "".join(flag[1] + ":" * takes[flag] for flag in takes if not flag.startswith("--"))
        long = [flag[2:] + "=" * takes[flag] for flag in takes if flag.startswith("--")]
        self._check_dashes(words, takes)
        try:
            found, rest = gnu_getopt(list(words), short, long)
        except GetoptError as error:
            flag = ("--" if len(error.opt) > 1 else "-") + error.opt
            if flag in takes:  # it lacks its value, or has one it does not take
                told = f"Option {flag} " + error.msg.partition(f"{flag} ")[2] + "."
            else:
                told = f"There is no option {flag}{did_you_mean(flag, list(takes))}"
            raise self._wrong(told) from error
        given: dict[str, Any] = {}
        for flag, text in found:
            if flag == "--help":
                return None
            one = by_flag[flag]
            value = flag != one.off if one.type is bool else self._value(one, text)
            given[one.keyword] = one.joined(given.get(one.keyword), value)
        for one in (one for one in options if one.positional):
            taken, rest = (rest, []) if one.many else (rest[:1], rest[1:])
            if taken:
                values = tuple(self._value(one, word) for word in taken)
                given[one.keyword] = values if one.many else values[0]
            elif one.required:
                raise self._wrong(f"Missing argument {one.flags}.")
        if rest:
            raise self._wrong(f"Unexpected argument {rest[0]!r}.")
        for one in flagged:
            named = settings.variable(one.variable) if one.variable else None
            if named and one.keyword not in given:
                words = named.split() if one.many else [named]
                values = tuple(self._value(one, word) for word in words)
                given[one.keyword] = values if one.many else values[0]
            if one.required and one.keyword not in given:
                raise self._wrong(f"Missing option {one.names[0]}.")
        return given

    def _check_dashes(self, words: Sequence[str], takes: Mapping[str, bool]) -> None:
        """Refuse `-kind`, which getopt reads as `-k ind`."""
        before = ""
        for word in words[: words.index("--")] if "--" in words else words:
            flag = f"-{word.partition('=')[0]}"
            if flag in takes and len(flag) > 3 and not takes.get(before):
                raise self._wrong(f"There is no option {flag[1:]}; did you mean {flag}?")
            before = word

    def _value(self, one: Option, text: str) -> Any:
        try:
            return one.convert(text)
        except ValueError as error:
            near = did_you_mean(text.lower(), one.choices)
            raise self._wrong(f"{one.names[0]} must be {one.wants}, not {text!r}{near}") from error

    def _wrong(self, sentence: str) -> WrongUsage:
        return WrongUsage(sentence, hint=f"See `{PROGRAM} {self.name} --help`.")

    def help(self) -> str:
        """Everything about it, wrapped for the terminal."""
        does, example = self.text
        arguments = [(one.flags, one.explained) for one in self.options if one.positional]
        shown = [
            (", ".join((*one.names[::-1], *filter(None, [one.off]))), one)
            for one in self.options
            if not one.positional
        ]
        options = [(f"{flags} {one.value_name}".strip(), one.explained) for flags, one in shown]
        parts = [f"Usage: {self.usage()}", *map(wrapped, does.split("\n\n"))]
        parts += [listed("Arguments", arguments)] if arguments else []
        parts.append(listed("Options", [*options, ("--help", "Show this text.")]))
        return "\n\n".join([*parts, f"Example: {example}"]) + "\n"


COMMANDS: Final[dict[str, Command]] = {}
"""The commands of the modules that are loaded, by name."""


def command(name: str, *declared: Option | Fields) -> Callable[[Function], Function]:
    """Declare a command: the function gets its options, and gives its output or an exit code."""

    def declare(function: Function) -> Function:
        COMMANDS[name] = Command(name, function, declared)
        return function

    return declare


# -- help ------------------------------------------------------------------------------------------


def did_you_mean(word: str, known: Sequence[str], others: Mapping[str, str] | None = None) -> str:
    """Suggestion of a similar word, as the end of a sentence; `others` stand for known ones."""
    from difflib import get_close_matches

    meant = {one: one for one in known} | dict(others or {})
    near = get_close_matches(word, meant, n=1)
    return f"; did you mean {meant[near[0]]}?" if near else "."


def wrapped(text: str, indent: int = 0, first: str = "") -> str:
    """A paragraph as lines that fit the terminal; `first` stands before the first of them."""
    from shutil import get_terminal_size
    from textwrap import fill

    width = min(get_terminal_size().columns, _WIDTH)
    before = first or " " * indent
    return fill(
        " ".join(text.split()),
        width=max(width, indent + 20),
        initial_indent=before,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )


def listed(title: str, pairs: Sequence[tuple[str, str]]) -> str:
    """A heading, and below it names with their help in two columns."""
    wide = min(max(len(name) for name, _ in pairs) + 4, 30)
    lines = [f"{title}:"]
    for name, text in pairs:
        first = f"  {name}".ljust(wide)
        if len(first) > wide or not first.endswith(" "):
            lines.append(first.rstrip())
            first = ""
        lines.append(wrapped(text, wide, first))
    return "\n".join(lines)


# -- options that many commands share ----------------------------------------------------------

SCOPE: Final = Option(
    "--scope -s", "Scope: whose memory, as tenant/owner or owner alone.", str, metavar="SCOPE",
    default="local/default",
)  # fmt: skip
JSON: Final = Option("--json", "Print the result as JSON.", name="as_json")
YES: Final = Option("--yes -y", "Skip the confirmation.")
DRY_RUN: Final = Option("--dry-run", "Preview: show what would be done, and change nothing.")
ANEW: Final = Option("--anew", "Recreate a destroyed scope, empty.")
RECEIPT: Final = Option(
    "--receipt", "File to write the erasure receipt to, for `verify --erased`.", Path
)
KEY: Final = Option("--key", "Key that opens a sealed file.", str, metavar="KEY")
PAGING: Final = fields(Paged, "limit -n", "cursor")
ID: Final = Option("ID", "Id of a memory.", str, required=True)
