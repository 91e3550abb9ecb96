"""The turn: one exchange as it happened, and what may be derived from it.

A turn is stored as it came and never recalled itself. The memories derived from it are a function
of the set of turns, not of the order in which they arrived.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from scrubjay.model import echo
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import (
    ChannelName,
    Content,
    Importance,
    Json,
    KeyId,
    MemoryKind,
    MetadataMap,
    Result,
    SessionName,
    Tags,
    plain_labels,
)
from scrubjay.model.origin import Actor, Origin, OriginArg
from scrubjay.model.results import Outcome, RedactedSecrets, TokensIn, TokensOut, WriteOutcome
from scrubjay.model.text import CheckedRequest, Id, Name, Speech, Time, check, doc

SHOWN_TEXTS: Final = 1_000
TURNS_CHARS: Final = 16 * 1024 * 1024
"""Maximum characters of the turns in one answer, which ends early before it exceeds them."""
LOOK_BACK: Final = 10
"""Number of earlier turns that a turn is compared with."""
ALIKE: Final = 0.85
"""Share of common words from which two turns are a repetition, unless their statements differ."""
ORDINARY: Final = 0.5
"""Importance of an ordinary turn."""
IDLE: Final = timedelta(minutes=30)
"""Length of a pause that ends an episode."""
EPISODE_TURNS: Final = 20
"""Number of turns after which an episode ends without a pause."""
EPISODE_PART: Final = "episode"
"""Part name of the episode, which stands for the whole turn."""
QUOTED_PART: Final = "quoted-"
"""Prefix of part names that were quoted or pasted into the turn; a number from 0 follows."""
QUOTED_PIECES: Final = 16
"""Maximum number of quotations of one turn that become memories."""
QUOTED_CHARS: Final = 400
"""Maximum length of each of them: short enough to have a place beside trusted memories."""
MODEL_PART: Final = "model-"
"""Prefix of part names that a model found; a number from 0 follows."""
MODEL_PIECES: Final = 8
"""Maximum number of findings of a model in one turn."""
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NAMES: Final = ("session", "model", "channel")
_MARKS: Final = " .,;:!…。\uff01\uff0c"
_WORDS: Final = re.compile(r"\w+")


if TYPE_CHECKING:
    ShownTexts = Sequence[str]
else:
    ShownTexts = Annotated[tuple[Speech, ...], Meta(max_length=SHOWN_TEXTS)]


class State(IntEnum):
    """State of a turn after distilling."""

    KEPT = 0
    REPEATED = 1
    """It repeats one of the turns just before it; counted, nothing derived."""
    TRIVIAL = 2
    """It has nothing worth storing; counted, nothing derived."""
    FAILED = 3
    """It could not be distilled; it is in the ledger, and reindex tries again."""

    def __str__(self) -> str:
        return self.name.lower()  # its numbers are for cells, and say nothing


TurnId = Annotated[Id, doc("The id of the turn, from its writer: a second write changes nothing.")]
TurnTime = Annotated[datetime, doc("The time of the turn, in UTC.")]
UserText = Annotated[Speech, doc("The user's side: the text said to the agent.")]
AssistantText = Annotated[Speech, doc("The assistant's side: the text the agent answered.")]
ModelName = Annotated[Name | None, doc("The name of the language model that answered.")]
UserOrigin = Annotated[
    Origin, doc("The origin of the user's side, which decides trust; the answer is the agent's.")
]
TurnState = Annotated[State, doc("State: kept, repeated, trivial, or failed to be distilled.")]


class Turn(Result, frozen=True, kw_only=True):
    """One exchange: the user's text and the agent's answer."""

    id: TurnId
    at: TurnTime
    user: UserText = ""
    assistant: AssistantText = ""
    session: SessionName = None
    model: ModelName = None
    channel: ChannelName = None
    key_id: KeyId = None
    origin: UserOrigin = Origin.USER
    actor: Annotated[Actor, doc("The actor who wrote it.")] = Actor.AGENT
    metadata: MetadataMap = field(default_factory=dict)

    @property
    def place(self) -> tuple[int, int]:
        """Its place in time, with a tie-break for turns of the same time."""
        return place(self.at, self.id)

    @property
    def labels(self) -> list[str]:
        """Filter labels: one for each plain value of its metadata."""
        return plain_labels(self.metadata)

    def own_words(self) -> tuple[Turn, tuple[str, ...]]:
        """The turn without what either side quoted or pasted, and the quotations."""
        user = echo.own_words(self.user, typed=True)
        assistant = echo.own_words(self.assistant, typed=False)
        quoted = user.quoted + assistant.quoted
        if not quoted:
            return self, ()
        return replace(self, user=user.own, assistant=assistant.own), quoted


class _WithWords(CheckedRequest, frozen=True):
    """Both sides may be given by position, all else by name."""

    user: UserText = ""
    assistant: AssistantText = ""


class Record(_WithWords, frozen=True, kw_only=True):
    """Write one turn; memories are derived from it at once."""

    id: Annotated[
        Id | None, doc("The id of the turn: a second write changes nothing; None makes a new id.")
    ] = None
    at: Annotated[Time | None, doc("The time of the turn; None for now.")] = None
    session: SessionName = None
    model: ModelName = None
    channel: ChannelName = None
    origin: Annotated[OriginArg, doc("The origin of the user's side, which decides trust.")] = (
        Origin.USER
    )
    metadata: MetadataMap = field(default_factory=dict)
    shown: Annotated[
        ShownTexts,
        doc(
            "What memory put before the model in this turn: an answer that only "
            "repeats it, now or later in the session, is not remembered again."
        ),
    ] = ()

    @property
    def silent(self) -> bool:
        """Whether neither side has any text: there is nothing to write then."""
        return not (self.user.strip() or self.assistant.strip())

    def turn(self, turn_id: str, now: datetime, actor: Actor, key_id: str | None = None) -> Turn:
        """The turn this request describes; its fields have the names of a turn's."""
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        told |= {"id": turn_id, "at": self.at or now, "metadata": dict(self.metadata)}
        del told["shown"]  # kept with the session, as hashes
        return Turn(**told, actor=actor, key_id=key_id)


class Piece(Struct, frozen=True, kw_only=True):
    """One finding of a distiller or model in a turn; becomes a memory."""

    part: Annotated[
        str, doc("Name of the piece within its turn; the same text always yields the same names.")
    ]
    kind: MemoryKind
    content: Content
    said_by_user: Annotated[
        bool, doc("Whether it rests on the user's words alone, and so has their origin.")
    ] = True
    slot: Annotated[
        str | None,
        doc("Slot: the attribute it fills, such as the user's name; the later of two counts."),
    ] = None
    importance: Importance = ORDINARY
    tags: Tags = ()
    quoted: Annotated[bool, doc("Whether it was quoted or pasted: it has the origin `quoted`.")] = (
        False
    )
    said: Annotated[
        str | None, doc("The sentence of the turn it rests on, if it tells that in other words.")
    ] = None


class Extracted(Struct, frozen=True, kw_only=True):
    """A model's answer about one turn, and its token cost."""

    pieces: Annotated[tuple[Piece, ...], doc("The pieces the model found.")] = ()
    usable: Annotated[
        bool, doc("Whether the answer could be parsed; its tokens are spent either way.")
    ] = True
    tokens_in: TokensIn = 0
    tokens_out: TokensOut = 0


class Recorded(Result, frozen=True, kw_only=True):
    """Receipt of a turn, given once it is durable."""

    id: TurnId
    outcome: WriteOutcome = Outcome.STORED
    state: TurnState = State.KEPT
    memories: Annotated[tuple[str, ...], doc("Ids of the memories derived from it.")] = ()
    redacted: RedactedSecrets = field(default_factory=dict)


class Moment(Result, frozen=True, kw_only=True):
    """One turn in the timeline: time, state and gist, without decrypting the turn."""

    id: TurnId
    at: TurnTime
    state: TurnState
    gist: Annotated[str, doc("Gist: the beginning of its text, on one line.")]

    @property
    def memory(self) -> str:
        """The id of the episode derived from it, if it was kept."""
        return derived_id(self.id, EPISODE_PART)


class Timeline(Result, frozen=True, kw_only=True):
    """The latest turns of a scope, or those before a page of them; oldest first."""

    moments: Annotated[tuple[Moment, ...], doc("The turns of this page, oldest first.")] = ()
    earlier: Annotated[int, doc("How many turns there are before the first moment.")] = 0
    since: Annotated[
        datetime | None, doc("Time of the first turn in the ledger; None if there is none.")
    ] = None
    begun: Annotated[int, doc("How many turns before the first moment belong to its episode.")] = 0
    next_cursor: Annotated[
        str | None, doc("Pagination cursor of the earlier turns; None if there are none.")
    ] = None

    def episodes(self) -> list[list[Moment]]:
        """The moments as episodes: a long pause or many turns end one.

        Episode boundaries follow from all turns of the scope, not only from those here: the first
        episode may lack its beginning, and no other boundary moves when a turn is added.
        """
        found: list[list[Moment]] = []
        room = EPISODE_TURNS - self.begun
        for moment in self.moments:
            if not found or not room or moment.at - found[-1][-1].at >= IDLE:
                room = room if not found else EPISODE_TURNS
                found.append([])
            found[-1].append(moment)
            room -= 1
        return found


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of words are alike."""
    if not one or not other:
        return False
    common = len(one & other)
    return common >= ALIKE * (len(one) + len(other) - common)


def stated(turn: Turn, pieces: Iterable[Piece]) -> dict[str, str]:
    """Statements of a turn, which distinguish it from another of nearly the same words.

    By slot, its value; a turn that stands out counts by all its words, in their order.
    """
    found: dict[str, str] = {}
    for piece in pieces:
        if piece.slot is not None:
            value = " ".join(piece.content.split()).strip(_MARKS)
            found[f"{turn.origin.value}/{piece.slot}"] = value
        elif piece.importance > ORDINARY:
            found[" ".join(_WORDS.findall(piece.content))] = ""
    return found


def place(at: datetime, turn_id: str) -> tuple[int, int]:
    """Place of a turn in time."""
    tie = hashlib.sha256(turn_id.encode()).digest()[:6]
    return (at - _START) // _MICROSECOND, int.from_bytes(tie)


def time_of(micros: int) -> datetime:
    """The time of a place."""
    return _START + micros * _MICROSECOND


def derived_id(turn_id: str, part: str) -> str:
    """The id of a memory derived from a turn: the same wherever and whenever it is derived.

    It is not keyed by the scope, so that an export that is loaded elsewhere still fits its turns.
    """
    digest = hashlib.sha256(f"scrubjay/derived\0{turn_id}\0{part}".encode()).digest()
    return f"mem-{UUID(bytes=digest[:16], version=4)}"


def model_ids(turn_id: str) -> tuple[str, ...]:
    """The ids of the memories that a model may find in a turn."""
    return tuple(derived_id(turn_id, f"{MODEL_PART}{number}") for number in range(MODEL_PIECES))


def rest_id(turn_id: str) -> str:
    """The id of what remains of a turn when a sentence is cut out of it.

    Another one, because the id of the whole is buried: no replay or backup brings that back.
    """
    digest = hashlib.sha256(f"scrubjay/rest\0{turn_id}".encode()).digest()
    return f"turn-{UUID(bytes=digest[:16], version=4)}"


# -- the turn as JSON --------------------------------------------------------------------------


def to_record(turn: Turn) -> dict[str, Json]:
    """The turn as a JSON object; what is empty is left out."""
    record: dict[str, Json] = {"id": turn.id, "at": turn.at.isoformat().replace("+00:00", "Z")}
    for name in ("user", "assistant", *_NAMES, "key_id"):
        if value := getattr(turn, name):
            record[name] = value
    record |= {"origin": turn.origin.value, "actor": turn.actor.value}
    if turn.metadata:
        record["metadata"] = dict(turn.metadata)
    return record


def encode(turn: Turn) -> bytes:
    """The bytes that go into a cell."""
    return json.dumps(to_record(turn), ensure_ascii=False, separators=(",", ":")).encode()


def decode(cell: bytes) -> Turn:
    """The turn a cell holds; the cell is authentic, so its fields are not checked again."""
    record: dict[str, Any] = json.loads(cell)
    return Turn(
        **{
            **record,
            "at": datetime.fromisoformat(record["at"]),
            "origin": Origin(record["origin"]),
            "actor": Actor(record["actor"]),
        }
    )


def from_record(record: Json) -> Turn:
    """The turn a foreign record describes, every field checked; InvalidRequest if one is wrong."""
    if not isinstance(record, dict):
        raise InvalidRequest("The turn is not a JSON object.")
    fields: dict[str, Any] = dict(record)
    try:
        at = datetime.fromisoformat(fields["at"])
        actor = check("actor", Actor, fields.pop("actor", Actor.AGENT))
        turn_id = check("id", Id, fields["id"])
        key_id = check("key_id", Name | None, fields.pop("key_id", None))
        return Record(**{**fields, "at": at}).turn(turn_id, at, actor, key_id)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequest("The turn has unknown fields, or lacks some.") from error
