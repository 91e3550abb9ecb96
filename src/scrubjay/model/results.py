"""What the engine answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from enum import StrEnum

from msgspec import Struct

from scrubjay.model.memory import Memory
from scrubjay.model.origin import Origin
from scrubjay.model.scope import Scope


class Outcome(StrEnum):
    """What became of a write."""

    STORED = "stored"
    KNOWN = "known"
    """It was there already; nothing changed."""
    FORGOTTEN = "forgotten"
    """It was forgotten once and stays so; nothing changed."""


class Retained(Struct, frozen=True, kw_only=True):
    """The receipt of a write, given once it is durable."""

    id: str
    outcome: Outcome = Outcome.STORED
    redacted: Mapping[str, int] = {}
    """The kinds of secrets that were taken out of it, and how many of each."""


class Page(Struct, frozen=True, kw_only=True):
    """Memories, newest first, and where the next page begins."""

    memories: tuple[Memory, ...]
    next: int | None = None

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)

    def __getitem__(self, index: int) -> Memory:
        return self.memories[index]


class Session(Struct, frozen=True, kw_only=True):
    """One conversation: when it was, and how much of it is kept."""

    name: str
    first: datetime
    last: datetime
    memories: int = 0
    """How many are current; what was superseded or has expired does not count."""
    turns: int = 0
    tainted: Origin | None = None
    """The least trusted it has read, where a host said so."""


class Hit(Struct, frozen=True, kw_only=True):
    """One memory that answers a question."""

    memory: Memory
    score: float
    """From 0 to 1; compares within one answer and never rises from hit to hit."""
    why: Mapping[str, float]
    """What the score is made of: the named parts sum to it."""
    scope: Scope
    """Where it was found."""


class Recalled(Struct, frozen=True, kw_only=True):
    """The answer to a question, best first."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    """What could not be used for this answer, a sentence each; nothing if all could."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Brief(Struct, frozen=True, kw_only=True):
    """What a session should know before its first word: pinned, behavioral, then facts."""

    entries: tuple[Memory, ...]
    omitted: int = 0
    """How many more there are that the limits left out."""
    total: int = 0
    """How many memories the scope holds, superseded ones and such as are in no brief included."""
    made_at: datetime | None = None
    """When it was made, which ages count from."""
    markdown: str = ""
    """The entries as a text to put before a prompt, one line each; empty if there are none."""

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class Reindexed(Struct, frozen=True, kw_only=True):
    """What making the index again did."""

    memories: int
    embedded: int
    """How many of them were given a vector they did not have."""


class Stopped(StrEnum):
    """Why an extraction ended although turns may wait."""

    PAUSED = "paused"
    SPENT = "spent"
    """The scope has used up its tokens of this day."""
    UNAVAILABLE = "unavailable"
    """The model cannot be had."""


class Extraction(Struct, frozen=True, kw_only=True):
    """What a model found in turns, and what that cost."""

    turns: int = 0
    """How many it was asked about, and answered."""
    memories: int = 0
    repeats: int = 0
    """How many things it found that were noted of the turn already."""
    failed: int = 0
    """How many it had no usable answer to."""
    tokens_in: int = 0
    tokens_out: int = 0
    left: int = 0
    """How many turns still wait, at most."""
    stopped: Stopped | None = None


class ExtractionStatus(Struct, frozen=True, kw_only=True):
    """How far a model has come with the turns of a scope, and what it cost so far."""

    configured: bool
    """Whether there is a model at all."""
    paused: bool = False
    waiting: int = 0
    done: int = 0
    """How many turns it has answered."""
    failed: int = 0
    """How many turns were given up, after several attempts."""
    memories: int = 0
    repeats: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_today: int = 0
    daily_tokens: int = 0
    """How many the scope may use in a day; 0 if that is not limited."""


class ErasedCell(Struct, frozen=True, kw_only=True):
    """An erased cell by its nonce: random bytes that name it and nothing else."""

    collection: str
    epoch: int
    nonce: str


class BackupNote(Struct, frozen=True, kw_only=True):
    """A backup that may hold what was erased until its key is deleted."""

    name: str
    expires: date


class Erasure(Struct, frozen=True, kw_only=True):
    """The receipt of an erasure: nothing in it says what was erased."""

    address: str
    verb: str
    at: datetime
    erased: int
    derived: int = 0
    """How many of the erased were not named but derived from, or earlier versions of, those."""
    already: int = 0
    """How many of the named were erased before."""
    cells: tuple[ErasedCell, ...] = ()
    rotated: bool = False
    """Whether the keys that opened the erased cells are gone already, or will be by a due job."""
    backups: tuple[BackupNote, ...] = ()
    audit_count: int = 0
    audit_mac: str = ""


class Preview(Struct, frozen=True, kw_only=True):
    """What a forget would erase."""

    memories: tuple[Memory, ...]
    """Those that are named, oldest first."""
    others: tuple[Memory, ...]
    """Those that would go with them: earlier versions, and what was derived."""
    token: str
    """The confirmation that erases exactly these."""

    def __len__(self) -> int:
        return len(self.memories) + len(self.others)


class Purged(Struct, frozen=True, kw_only=True):
    """What a clean-up took."""

    expired: int = 0
    superseded: int = 0
    dropped: int = 0
    """Tombstoned rows whose remaining metadata went; their tombstones stay."""
    backups: int = 0
    """Backups whose keys were deleted because their time was over."""


class Rotated(Struct, frozen=True, kw_only=True):
    """What a rotation did."""

    resealed: int
    epochs: dict[str, int]


class Loaded(Struct, frozen=True, kw_only=True):
    """What a load or restore did."""

    loaded: int = 0
    known: int = 0
    forgotten: int = 0
    """Memories left out because they were forgotten here."""


class BackedUp(Struct, frozen=True, kw_only=True):
    """The receipt of a backup. The key opens it anywhere and is shown only here."""

    name: str
    memories: int
    key: str
    expires: date


class AuditEvent(Struct, frozen=True, kw_only=True):
    """One line of the audit trail: who did what when, to which pseudonyms."""

    count: int
    at: datetime
    verb: str
    actor: str
    subjects: tuple[str, ...] = ()
    number: int = 0


class Report(Struct, frozen=True, kw_only=True):
    """What verify found; sound when there are no problems."""

    checked: int
    problems: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    """Where an erased cell's bytes are still found; no key opens them."""

    @property
    def sound(self) -> bool:
        """Whether everything was as promised."""
        return not self.problems


class Changes(Struct, frozen=True, kw_only=True):
    """What changed in a scope since a reader last looked."""

    memories: tuple[Memory, ...]
    erased: frozenset[bytes]
    seq: int
    """Up to where this answer goes: what to ask for next is what comes after it."""
    min_seq: int
    anew: bool = False
    """The reader must drop what it has first: changes before this were cleaned up."""


class Exhibit(Struct, frozen=True, kw_only=True):
    """What somebody without a key can see of one file."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    omitted: int = 0
    """How many rows are there beyond the ones shown."""
    words: tuple[str, ...] = ()
    """Readable text in its bytes beyond the names of tables and columns."""
