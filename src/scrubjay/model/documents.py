"""Documents: text or JSON under a name, with compare-and-set, generations and filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import field
from msgspec.structs import force_setattr

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import ChannelName, Json, KeyId, Result, SessionName, TextOrigin
from scrubjay.model.origin import Actor, Origin, OriginArg
from scrubjay.model.pages import Cursor, PageLimit
from scrubjay.model.results import Outcome, RedactedSecrets, WriteOutcome
from scrubjay.model.text import TURN_BYTES, CheckedRequest, Id, Name, Time, doc

PARTS: Final = 64
"""Maximum number of parts of a name."""
PATH_BYTES: Final = 4_096
"""Maximum length of a whole name, as a path in UTF-8."""
NO_REVISION: Final = "0"
"""The expected revision of a conversation or document that must not exist yet."""
_ORDERED: Final = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}

if TYPE_CHECKING:
    NameArg = str | Sequence[str]
else:
    NameArg = str | tuple[Name, ...]
DocumentName = Annotated[
    tuple[Name, ...],
    doc("The name: its folders, then its key.", max_length=PARTS, extra={"repeats": True}),
]
GivenName = Annotated[
    NameArg,
    doc(
        "The name: a path such as `notes/tea.md`, or its parts as a list.", extra={"repeats": True}
    ),
]
Value = Annotated[
    Json,
    doc(
        "Text, or any JSON value; secrets are removed from every text in it.",
        extra={"json": True, "most_bytes": TURN_BYTES},
    ),
]
FilterMap = Annotated[
    Mapping[str, Json],
    doc(
        "Filter on JSON members: each equals its value, or meets `$eq`, `$ne`, "
        "`$gt`, `$gte`, `$lt` and `$lte`."
    ),
]
ExpectedRevision = Annotated[
    Name | None, doc("Optimistic lock: the revision that was read, or `0` for none yet.")
]


class Document(Result, frozen=True, kw_only=True):
    """A document: a value under a name, in its present version."""

    id: Annotated[Id, doc("The id of this generation: a name may be used again.")]
    name: DocumentName
    value: Value = None
    created_at: Annotated[Time, doc("The time of its first write, in UTC.")]
    updated_at: Annotated[Time, doc("The time of its last write, in UTC.")]
    indexed: Annotated[bool, doc("Whether recall finds its text.")] = False
    origin: TextOrigin = Origin.USER
    session: SessionName = None
    channel: ChannelName = None
    key_id: KeyId = None
    actor: Annotated[Actor, doc("The actor who wrote it last.")] = Actor.USER
    revision: Annotated[str, doc("Changes with every write; compare it only.")] = ""

    @property
    def path(self) -> str:
        """The name as a path."""
        return "/".join(self.name)


class Stored(Result, frozen=True, kw_only=True):
    """Receipt of a document, given once it is durable."""

    document: Annotated[Document, doc("The document as it is now, without its value.")]
    outcome: WriteOutcome = Outcome.STORED
    redacted: RedactedSecrets = field(default_factory=dict)


class Removed(Result, frozen=True, kw_only=True):
    """Result of a removal."""

    removed: Annotated[int, doc("How many documents were removed.")]


def parts_of(given: object, *, least: int = 1) -> object:
    """A path as its parts; what is no text is left to the check of types."""
    if not isinstance(given, str):
        return given
    parts = tuple(given.strip("/").split("/")) if given.strip("/") else ()
    if len(parts) < least or any(part in ("", ".", "..") for part in parts):
        raise InvalidRequest(
            "A path has parts with a slash between them, none of them empty, `.` or `..`.",
            hint="For example notes/tea.md.",
        )
    return parts


def check_name(parts: Sequence[str]) -> None:
    """InvalidRequest for a name of no parts, or of too many or too long ones together."""
    if not 0 < len(parts) <= PARTS or len("/".join(parts).encode()) > PATH_BYTES:
        raise InvalidRequest(f"A name has 1 to {PARTS} parts, and at most {PATH_BYTES:,} bytes.")


class _WithName(CheckedRequest, frozen=True):
    """The name may be given by position, all else by name."""

    name: GivenName

    def __post_init__(self) -> None:
        force_setattr(self, "name", parts_of(self.name))
        CheckedRequest.__post_init__(self)
        check_name(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """The name as its parts."""
        return tuple(self.name)


class _WithValue(_WithName, frozen=True):
    """The name and the value may be given by position, all else by name."""

    value: Value


class Put(_WithValue, frozen=True, kw_only=True):
    """Write a document under a name, new or in place of the one that is there."""

    expected_revision: ExpectedRevision = None
    indexed: Annotated[bool, doc("Whether recall finds its text, as memories derived from it.")] = (
        False
    )
    session: SessionName = None
    origin: Annotated[OriginArg, doc("The origin: by which channel the text came in.")] = (
        Origin.USER
    )
    channel: ChannelName = None


class ReadDocument(_WithName, frozen=True, kw_only=True):
    """Read one document by its name."""

    session: Annotated[
        Name | None, doc("The session that reads it: an untrusted document taints it.")
    ] = None


class ListDocuments(CheckedRequest, frozen=True):
    """List documents in the order of their names."""

    prefix: Annotated[
        NameArg, doc("The folder: a path or its parts; empty for all.", extra={"repeats": True})
    ] = ()
    where: FilterMap = field(default_factory=dict)
    limit: PageLimit = 100
    cursor: Cursor = None
    values: Annotated[bool, doc("Whether to return the values, too.")] = True

    def __post_init__(self) -> None:
        force_setattr(self, "prefix", parts_of(self.prefix, least=0))
        CheckedRequest.__post_init__(self)
        check_operators(self.where)

    def accepts(self, document: Document) -> bool:
        """Whether it stands in the folder and its value matches."""
        folder = tuple(self.prefix)
        inside = document.name[: len(folder)] == folder
        return inside and (not self.where or matches(document.value, self.where))


class _OneOrTree(_WithName, frozen=True, kw_only=True):
    """One document, or with `tree` all in a folder as well."""

    expected_revision: ExpectedRevision = None
    tree: Annotated[bool, doc("Whether the name is a folder, too: all documents in it.")] = False

    def __post_init__(self) -> None:
        _WithName.__post_init__(self)
        if self.tree and self.expected_revision is not None:
            raise InvalidRequest("A folder has no revision.", hint="Leave it out.")


class Move(_OneOrTree, frozen=True, kw_only=True):
    """Give a document another name, which must be free."""

    to: GivenName

    def __post_init__(self) -> None:
        force_setattr(self, "to", parts_of(self.to))
        _OneOrTree.__post_init__(self)
        check_name(tuple(self.to))


class Remove(_OneOrTree, frozen=True, kw_only=True):
    """Remove a document; its name may be used again."""


# -- filters ---------------------------------------------------------------------------------


def check_operators(where: Mapping[str, Json]) -> None:
    """InvalidRequest for an operator that is not known, whatever there is to be filtered."""
    waiting = list(where.values())
    while waiting:
        wanted = waiting.pop()
        if isinstance(wanted, list):
            waiting += wanted
        elif isinstance(wanted, dict) and not any(name.startswith("$") for name in wanted):
            waiting += wanted.values()
        elif isinstance(wanted, dict) and not wanted.keys() <= {"$eq", "$ne", *_ORDERED}:
            raise InvalidRequest(
                "A filter has an operator that is not known.",
                hint=f"Use $eq, $ne, {', '.join(_ORDERED)}.",
            )


def matches(value: Json, where: Mapping[str, Json]) -> bool:
    """Whether a JSON object meets a filter on its members."""
    return isinstance(value, Mapping) and all(
        _meets(value.get(name), wanted) for name, wanted in where.items()
    )


def _meets(value: Any, wanted: Any) -> bool:
    """Equal, member by member; operators compare; what has no order is not above or below."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, bound) for name, bound in wanted.items())
        return matches(value, wanted)
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same and all(map(_meets, value, wanted))
    return bool(value == wanted)


def _compares(value: Any, operator: str, bound: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool((value == bound) is (operator == "$eq"))
    try:
        return bool(_ORDERED[operator](float(value), float(bound)))
    except (TypeError, ValueError, OverflowError):
        return False
