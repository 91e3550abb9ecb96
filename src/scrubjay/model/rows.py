"""Rows: what a store sees of a scope, sealed rows, their order, and the head."""

from __future__ import annotations

from enum import IntFlag, StrEnum

from msgspec import Struct
from msgspec.structs import replace


class Collection(StrEnum):
    """The kinds of row a scope is made of, each with its own order and epoch."""

    MEMORY = "memory"
    TURN = "turn"
    SESSION = "session"
    CONVERSATION = "conversation"
    DOCUMENT = "document"


class Freeze(StrEnum):
    """Freeze level of a scope."""

    NONE = "none"
    WRITES = "writes"
    ALL = "all"


class Due(IntFlag):
    """Due work: flags of deferred work that a committed verb left."""

    NOTHING = 0
    ROTATE = 1
    """Rows sealed under an older epoch are left, or an erasure has not been rotated away."""
    PUSH = 2
    """Tombstones of this scope are not all in the catalog yet."""
    SWEEP = 4
    """Blobs may be left that no row points to."""
    MOVED = 8
    """The scope is not here, but where the value `moved` says, or onward from there.

    It was moved away, or what is here is a copy that has not arrived.
    """


MOVED = "moved"
"""Name of the value that says where to look for a scope that is not here."""
OPENING = "opening"
"""Name of the value with the key of the copy, in what a move leaves behind."""
COPIED = "copied"
"""Name of the value with the slots of a scope, sealed under that key, in its copy."""


class Row(Struct, frozen=True, kw_only=True, gc=False):
    """One sealed row. Nothing in it can be read without the scope's keys."""

    id: bytes
    """HMAC of the public id under the lookup key, 16 bytes."""
    version: int
    """Raised by every change of the content; bound into the cell."""
    epoch: int
    """Which epoch key opens the cell."""
    cell: bytes | None
    vector: bytes | None = None
    blob: str | None = None
    """Name of the blob that holds the body, when the cell only points to it."""
    session: bytes | None = None
    key: bytes | None = None
    expiry: int | None = None
    """Day (since 1970-01-01) on which it expires or, when erased, may be dropped."""
    erased: bool = False
    seq: int = 0
    """Place in the order of changes; given by the store."""
    born: int = 0
    """The seq of its first write; given by the store."""


class Position(Struct, frozen=True, kw_only=True):
    """Position of one collection: sequence numbers and epoch."""

    seq: int = 0
    epoch: int = 1
    erased_seq: int = 0
    """Seq of the last erasure: copies of older states may hold erased text."""
    min_seq: int = 0
    """Below this seq the list of changes is incomplete: a reader must read all rows again."""


class Head(Struct, frozen=True, kw_only=True):
    """Head: the one row per scope that every read compares and every write moves."""

    memory: Position = Position()
    turn: Position = Position()
    session: Position = Position()
    conversation: Position = Position()
    document: Position = Position()
    frozen: Freeze = Freeze.NONE
    destroyed: bool = False
    audit_count: int = 0
    audit_mac: bytes = bytes(32)
    due: Due = Due.NOTHING
    due_since: int | None = None
    """Day on which the oldest due work was left."""

    def at(self, collection: Collection) -> Position:
        """The position of one collection."""
        position: Position = getattr(self, collection)
        return position

    @property
    def erasures(self) -> int:
        """A number that grows with every erasure, of whatever collection."""
        return sum(self.at(one).erased_seq for one in Collection)

    def moved(self, collection: Collection, position: Position) -> Head:
        """The head with one collection moved on."""
        return replace(self, **{collection.value: position})


class AuditRow(Struct, frozen=True, kw_only=True):
    """One sealed audit event and the link of its chain."""

    count: int
    cell: bytes
    mac: bytes


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """Catalog entry of one scope."""

    address: str
    name: bytes
    """The scope's name, sealed under the installation key."""
    destroyed: bool = False
    audit_count: int = 0
    audit_mac: bytes = bytes(32)
    """Copy of the audit head, so that a truncated trail is detected."""


class BackupEntry(Struct, frozen=True, kw_only=True):
    """A backup that may still hold what was forgotten since."""

    address: str
    name: str
    expires: int
    """Day after which its key is deleted."""
