"""The narrow interfaces the engine stands on, with what each implementation promises.

`scrubjay.testing` has one contract suite per port; an implementation is one when it passes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import Struct

from scrubjay.model.errors import OutcomeUnknown
from scrubjay.model.jobs import Consolidated, ModelAnswer, Restated
from scrubjay.model.memory import Kind
from scrubjay.model.results import FileInspection
from scrubjay.model.rows import AuditRow, BackupEntry, CatalogEntry, Collection, Head, Row
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Extracted, Piece, Turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Result = TypeVar("Result")
CATALOG_PAGE = 1000
# A name only: whoever has no vectors to make does not load numpy for it.
Floats: TypeAlias = "NDArray[np.float32]"


class View(Protocol):
    """One consistent state of a scope; nothing another writer commits later shows in it."""

    def head(self) -> Head:
        """The head as of this state."""

    def row(self, collection: Collection, row_id: bytes) -> Row | None:
        """The row with this id, erased or not; None if there never was one or it was dropped."""

    def rows(self, collection: Collection, ids: Iterable[bytes]) -> Mapping[bytes, Row]:
        """The rows with these ids by id, erased or not, in one call; absent ones are left out."""

    def row_by_key(self, collection: Collection, key: bytes) -> Row | None:
        """The row written under this idempotency key hash, if it is not erased."""

    def rows_of_session(self, collection: Collection, session: bytes) -> Sequence[Row]:
        """The rows with this session hash that are not erased, by seq."""

    def changes(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        """Rows with seq > after, erased ones included, ascending, at most `limit`.

        Complete only when after >= the collection's min_seq.
        """

    def latest(self, collection: Collection, before: int, limit: int) -> Sequence[Row]:
        """Rows with seq < before that are not erased, descending, at most `limit`."""

    def overdue(self, collection: Collection, day: int, limit: int) -> Sequence[Row]:
        """Rows with expiry <= day, erased ones included, by seq, at most `limit`."""

    def stale(self, collection: Collection, after: int, limit: int) -> Sequence[Row]:
        """Rows not erased with seq > after and an epoch below the head's, ascending."""

    def count(self, collection: Collection) -> int:
        """How many rows of a collection are not erased."""

    def derived(self, source: bytes) -> Sequence[bytes]:
        """Ids of the rows linked as derived from `source`."""

    def buried(self, ids: Iterable[bytes]) -> frozenset[bytes]:
        """Those of the ids that are tombstoned."""

    def tombstones(self) -> Sequence[bytes]:
        """Every tombstone of the scope."""

    def value(self, name: str) -> bytes | None:
        """The small value kept under this name; None if there is none."""

    def value_names(self) -> Sequence[str]:
        """The names of all values, sorted."""

    def links(self) -> Sequence[tuple[bytes, bytes]]:
        """Every link as (source, derived), sorted."""

    def audit(self, after: int, limit: int) -> Sequence[AuditRow]:
        """Audit rows with count > after, ascending, at most `limit`."""


class Tx(View, Protocol):
    """A view that may be changed; it sees its own changes at once.

    All changes of a transaction become durable together or not at all.
    """

    def set_head(self, head: Head) -> None:
        """Replace the head; the seqs in it are still raised only by `put`, `erase` and `drop`."""

    def put(self, collection: Collection, row: Row) -> Row:
        """Write the row, new or in place of the one with its id, under the next seq.

        Returns it as stored: `seq` is the next, `born` the seq of its first write. Raises
        Conflict when another row that is not erased has the same key hash. An erased row may be
        written over, but is never made this way.
        """

    def reseal(self, collection: Collection, rows: Sequence[tuple[Row, Row]]) -> frozenset[bytes]:
        """Exchange cell, vector, blob and epoch of rows, given as read and as they are to be.

        Seq and version stay. A row that is not as it was read (another version, epoch or vector,
        erased, or gone) is passed over; returns the ids of those that were exchanged.
        """

    def erase(self, collection: Collection, row_id: bytes, *, drop_day: int) -> Row | None:
        """Take cell, vector, blob, hashes and lineage from a row and mark it erased.

        It gets the next seq, `erased_seq` is raised to it, and `expiry` becomes `drop_day`.
        Returns the row as it was; None, with no change, if it is absent or erased already.
        """

    def drop(self, collection: Collection, ids: Iterable[bytes]) -> int:
        """Remove erased rows for good and raise min_seq to the last of them; returns how many.

        Rows that are not erased are left alone. Tombstones stay.
        """

    def bury(self, ids: Iterable[bytes]) -> None:
        """Add tombstones; one that is there already stays as it is."""

    def link(self, source: bytes, derived: bytes) -> None:
        """Record that the row `derived` was made from `source`."""

    def set_value(self, name: str, cell: bytes | None) -> None:
        """Keep a value under a name, in place of the one before; None removes it.

        Values are outside the order of changes: what can be made again from the rows.
        """

    def slots(self) -> Mapping[str, bytes]:
        """The wrapped keys beside the rows, by purpose; none where `Store.slots` is None."""

    def set_slot(self, purpose: str, slot: bytes | None) -> None:
        """Keep a wrapped key beside the rows, in place of the one before; None deletes it.

        StoreError where `Store.slots` is None.
        """

    def append_audit(self, cell: bytes, mac: bytes) -> None:
        """Append one audit row and move the head's audit_count and audit_mac."""

    def place(self, collection: Collection, rows: Sequence[Row], gone: Iterable[bytes]) -> None:
        """Write rows as they are, seq and born included, and remove those whose ids are `gone`.

        With the three below, for a copy of a scope from another store, which `place_head` ends.
        """

    def unlink(self, source: bytes, derived: bytes) -> None:
        """Remove a link; an absent one is fine."""

    def place_audit(self, rows: Sequence[AuditRow]) -> None:
        """Append audit rows as they are."""

    def place_head(self, head: Head) -> None:
        """Replace the head with all that is in it, seqs included."""

    def truncate(self) -> None:
        """Remove every row, link, tombstone, value and audit row; head and slots stay as set."""


class Shared(Protocol):
    """Small values that all processes of an installation share, each with an end.

    For what must hold whichever process is asked: leases of due work, rate limits, repeats of a
    request, the last use of a key. Never content. Names are 1 to 200 characters of printable
    ASCII. Each call is atomic, and durable on return; times are seconds since 1970-01-01 of the
    caller's clock. A value past its end is as good as absent, and may be removed by any call.
    """

    def get(self, name: str, now: float) -> bytes | None:
        """The value under this name; None if there is none."""

    def exchange(
        self, name: str, old: bytes | None, new: bytes | None, *, now: float, until: float
    ) -> bool:
        """Replace a value if it is `old`, None for none; whether it was (compare-and-set)."""

    def names(self, prefix: str, after: str, limit: int, now: float) -> Sequence[str]:
        """Names > after that begin with the prefix, ascending, at most `limit`."""


class Catalog(Protocol):
    """What is known of all scopes of one installation. Every change is durable on return.

    A change that is repeated changes nothing: an adapter that lost the answer repeats it itself.
    """

    def enroll(self, entry: CatalogEntry) -> CatalogEntry:
        """Add an entry unless its address is known; returns what the catalog holds."""

    def entry(self, address: str) -> CatalogEntry | None:
        """The entry of one address."""

    def entries(self, after: str = "", limit: int = CATALOG_PAGE) -> Sequence[CatalogEntry]:
        """Entries with an address > after, ascending, at most `limit`; `every_entry` pages."""

    def mark_destroyed(self, address: str) -> None:
        """Mark the scope destroyed for good."""

    def note_audit(self, address: str, count: int, mac: bytes) -> None:
        """Copy the audit head here; a copy older than the one held is ignored."""

    def bury(self, address: str, ids: Iterable[bytes]) -> None:
        """Add tombstones of a scope; they outlive its file."""

    def tombstones(self, address: str) -> frozenset[bytes]:
        """The tombstones held for a scope."""

    def add_receipt(self, address: str, cell: bytes) -> None:
        """Keep a sealed receipt, unless the same one is kept already."""

    def receipts(self, address: str) -> Sequence[bytes]:
        """The sealed receipts of a scope, oldest first."""

    def add_backup(self, backup: BackupEntry) -> None:
        """Note that a backup was made."""

    def backups(self, address: str) -> Sequence[BackupEntry]:
        """The backups noted for a scope, by expiry."""

    def remove_backup(self, backup: BackupEntry) -> None:
        """Strike a backup whose key is gone."""


class Store(Protocol):
    """Sealed rows of many scopes, each under an opaque address. It never sees plaintext.

    Safe for use by several threads, and by several processes on one machine. A scope's writes
    are serial; reads go on beside them and never wait for a writer. Raises Busy when a lock is
    held too long, Full when no space is left, Damaged for a file that is not what was written,
    SchemaTooNew for one of a newer version, and StoreError for anything else. OutcomeUnknown, of
    a write alone, means that its answer was lost; `resolve` says what became of it.
    """

    @property
    def catalog(self) -> Catalog:
        """The catalog of this installation."""

    @property
    def shared(self) -> Shared:
        """Small values that all processes of this installation share."""

    @property
    def slots(self) -> Slots | None:
        """The place of slots beside the rows, in the same transactions; None if it has none.

        It is a place of slots like any other: an address needs no rows, and they stay until they
        are deleted, whatever becomes of the rows.
        """

    def create(self, address: str) -> None:
        """Make an empty scope unless it exists; durable on return."""

    def exists(self, address: str) -> bool:
        """Whether the scope's rows are there."""

    def head(self, address: str) -> Head:
        """The head as it is now, in one call; NotFound if the scope does not exist."""

    def read(self, address: str) -> AbstractContextManager[View]:
        """A view of the state at the first read; NotFound if the scope does not exist."""

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        """Run `work` in a transaction of its own and return its result once it is durable.

        `work` runs exactly once, alone, in any thread; what it raises is raised here and nothing
        of it is kept. Transactions of several threads may share one sync. An `erasing` write may
        use space held in reserve, so that erasure works on a full disk; others then raise Full.
        Only its work may run a second time, after a first run found no space and was rolled back.
        A write begun inside the work of another on the same scope is a StoreError.
        """

    def resolve(self, address: str, commit: str) -> bool | None:
        """Whether a commit that `OutcomeUnknown` names happened; None if nobody can tell (yet)."""

    def lasting(self, address: str) -> bool:
        """Whether all that was committed at an address, slots too, is as durable as promised.

        False while a commit could still be lost to a failover. Keys that an older copy would need
        are deleted only once it is true. An address without rows may have slots.
        """

    def warnings(self) -> Sequence[str]:
        """What this store cannot promise as it is set up, a sentence each; none is the rule."""

    def make_room(self) -> None:
        """Give the space held in reserve to an erasure whose keys or blobs find none."""

    def settle(self, address: str) -> None:
        """Drive what erasure left in side files out of them, as far as readers allow."""

    def size(self, address: str) -> int:
        """Bytes the scope's rows take, roughly."""

    def check(self, address: str) -> Sequence[str]:
        """Structural faults of the scope's file, one sentence each."""

    def inspect(self, address: str) -> FileInspection:
        """The scope's file as seen without a key; NotFound if the scope does not exist."""

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        """Every byte kept for the scope, and the catalog's, as (place, bytes) pieces.

        Includes what deletion may have left behind. Pieces of one place overlap by 64 bytes.
        """

    def remove(self, address: str) -> None:
        """Delete the scope's rows; absent ones are fine. Catalog and slots are not touched."""

    def strays(self) -> Sequence[str]:
        """What belongs to no scope of the catalog, or is missing from it, a sentence each."""

    def close(self) -> None:
        """Let go of every file; a later call on the store is a StoreError."""


Arrive = Callable[[Store, str, bytes], None]
"""Let the copy of a scope in a store be that scope, by the key that its move left behind."""


@runtime_checkable
class Shards(Protocol):
    """A store over several: which of them has a scope."""

    def names(self) -> Sequence[str]:
        """The names of the stores, sorted."""

    def named(self, name: str) -> Store:
        """The store of a name; NotFound if there is none."""

    def place(self, address: str) -> str:
        """The name of the store that has a scope, or would get it."""

    def find(self, address: str) -> str:
        """The name of the store that a scope turns out to be in; NotFound if it is in none."""

    def replace_place(self, address: str, name: str) -> None:
        """Note durably that a scope is in another store now."""


def every_entry(catalog: Catalog) -> Iterator[CatalogEntry]:
    """Every entry of a catalog, read in pages."""
    after = ""
    while page := catalog.entries(after):
        yield from page
        after = page[-1].address


class Blobs(Protocol):
    """Named sealed byte strings of a scope, for what is too large for a row.

    Safe for use by several threads and processes; `put` takes the place of a blob of that name.
    Names are 1 to 64 characters of a-z, 0-9, `-` and `.`, not beginning with a dot.
    """

    def put(self, address: str, name: str, content: bytes) -> None:
        """Write a blob: complete and durable on return, never seen half written."""

    def get(self, address: str, name: str) -> bytes:
        """Read a blob; NotFound if it is not there."""

    def delete(self, address: str, name: str) -> None:
        """Delete a blob, durably; an absent one is fine."""

    def names(self, address: str) -> Sequence[str]:
        """The names of a scope's blobs, sorted."""

    def size(self, address: str) -> int:
        """Bytes of a scope's blobs."""

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        """Every byte kept for the scope as (place, bytes), half-written leftovers included."""

    def remove(self, address: str) -> None:
        """Delete every blob of a scope; none is fine."""


class SlotPlace(Struct, frozen=True):
    """The place of a slot: whose keys they are, and which of them it holds."""

    address: str
    purpose: str
    owner: Scope | None = None
    """The scope of the address, for wrappers with a root key per owner; None where it has none."""


class Slots(Protocol):
    """Where wrapped keys lie: a few opaque bytes under an address and a purpose.

    A purpose is such as `lookup` or `memory.3`, and named like a blob; an address needs no rows.
    Safe for use by several threads and processes. Raises Full or StoreError when the medium fails
    and KeyMissing when it may not be read. Reading makes nothing and waits for nobody; every wait
    is bounded, by Busy. A deletion that was cut off may leave a slot that is listed and does not
    open, until it is deleted again.
    """

    @property
    def place(self) -> str:
        """Where the slots are looked for, as a person would say it."""

    @property
    def beside_rows(self) -> bool:
        """Whether they lie in the store, and `Tx.set_slot` changes them together with the head."""

    @property
    def traceless(self) -> bool:
        """Whether no byte of a deleted slot is left, in a log, a replica or a backup of theirs."""

    def read(self, address: str, *, settled: bool = False) -> Mapping[str, bytes]:
        """Every slot of an address by purpose, sorted, in one call; none is fine.

        `settled` waits a moment for whoever is just deleting one of them.
        """

    def add(self, address: str, purpose: str, wrap: Callable[[], bytes]) -> bytes:
        """Keep what `wrap` returns unless the slot is taken; returns what it holds, durable.

        `wrap` is called at most once, at a time when no slot here is deleted or exchanged.
        """

    def exchange(self, address: str, purpose: str, old: bytes, new: bytes) -> bool:
        """Replace a slot if it still holds `old`, durably; whether it did (compare-and-set)."""

    def delete(self, address: str, purposes: Iterable[str]) -> None:
        """Delete slots for good, durably; absent ones are fine."""

    def remove(self, address: str) -> None:
        """Delete every slot of an address for good, durably."""

    def addresses(self, after: str, limit: int) -> Sequence[str]:
        """Addresses > after that have a slot, ascending, at most `limit`."""

    def check_deletable(self) -> None:
        """Raise what a deletion would raise now, such as Busy; nothing is changed."""


class Wrapper(Protocol):
    """What wraps keys into slots: root keys, one per generation; the last of them wraps.

    Safe for use by several threads and processes. Raises Locked while it is locked, SealBroken
    for a slot that does not open, and KeyUnavailable while a root key that exists cannot be
    reached; it never says the one for the other. A slot that was wrapped opens as long as its
    generation is not destroyed.
    """

    @property
    def seconds(self) -> float:
        """How long an unwrapped key may be used before it is unwrapped again; inf for ever.

        So a root key that is withdrawn elsewhere opens nothing for longer than this.
        """

    @property
    def attended(self) -> bool:
        """Whether only a person may rotate it, who keeps what `renewed` then says."""

    @property
    def undo_days(self) -> int:
        """Days for which whoever keeps the root keys could still undo a destruction."""

    @property
    def renewed(self) -> str | None:
        """A recovery key that `begin` made in place of the one before; it is shown once."""

    def admit(self) -> None:
        """Raise Locked while it is locked; that there is a root key is not checked."""

    def found(self) -> None:
        """Make the first generation unless there is one; every process gets the same one."""

    def generations(self) -> Sequence[int]:
        """The numbers of the root keys, ascending; KeyMissing if there is none."""

    def generation_of(self, place: SlotPlace, slot: bytes) -> int | None:
        """The generation that wrapped a slot; None if it is none of these."""

    def wrap(self, place: SlotPlace, key: bytes) -> bytes:
        """A key of 32 bytes as a slot that opens only at this place; InvalidRequest otherwise."""

    def unwrap(self, place: SlotPlace, slot: bytes) -> bytes:
        """The key in a slot."""

    def rewrap(self, place: SlotPlace, slot: bytes) -> bytes:
        """The key of a slot under the last generation; the slot as it is if it is that already."""

    def begin(self) -> int:
        """Begin another generation, durably; returns its number.

        From its return on, whoever wraps, in any process, does so under this one.
        """

    def destroy(self, generation: int) -> None:
        """Destroy the root key of a past generation and of all before it, for good, durably."""


class Custody(Protocol):
    """What a user has at hand to open scopes of their own. KeyUnavailable if it does not answer."""

    def passphrase(self) -> str | None:
        """The passphrase that was given to this process; None if none was."""

    def keep(self, address: str, secret: bytes) -> None:
        """Keep a secret for an address in the keyring of the system; InvalidRequest without one."""

    def find(self, address: str) -> bytes | None:
        """The secret that is kept for an address; None if there is none."""

    def drop(self, address: str) -> None:
        """Drop the secret of an address; none is fine."""


class Embedder(Protocol):
    """Texts to vectors whose dot product says how alike two texts are.

    A question and a text are embedded alike. Safe for use by several threads. The same text
    gives the same vector whatever stands beside it, up to the rounding of a sum. Raises Timeout
    when the deadline passes first and EmbedderError when it fails, and no other error.
    """

    @property
    def identity(self) -> str:
        """Which vectors these are, in one word: equal exactly when two may be compared."""

    @property
    def dimensions(self) -> int:
        """Dimensions of a vector; 0 if there are none, or before the first answer."""

    @property
    def costly(self) -> bool:
        """Whether its vectors are kept with each memory, rather than made whenever needed."""

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages it was made for, as the analyzer names them; None for any.

        Its vectors of a text in another language are not asked for an opinion.
        """

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """One row per text, in their order, of length 1; zeros where a text says nothing.

        `deadline` is a reading of the clock's `monotonic`.
        """


class Distiller(Protocol):
    """Turns to what is worth remembering of them.

    Each answer is a function of the turn or text alone: the same always gives the same, whatever
    came before or after it. Safe for use by several threads; needs no network and no clock. What
    it raises costs the derived memories, never the turn.
    """

    @property
    def identity(self) -> str:
        """Which rules these are, in one word: another one where they would answer otherwise."""

    def distill(self, turn: Turn) -> Sequence[Piece]:
        """What the turn yields, the episode first, each part once; nothing if it is trivial."""

    def words(self, turn: Turn) -> frozenset[str]:
        """What the turn says, as words to compare with another turn's; values of slots apart."""


class Extractor(Protocol):
    """A language model: what it finds in turns and episodes, and texts it derives again.

    Safe for use by several threads; sends nothing but what it is given, as material and never as
    instructions. Raises
    ExtractorError when the model is unavailable or the deadline passes, and no other error. An
    answer nobody can read is not usable, and still costs its tokens.
    """

    @property
    def identity(self) -> str:
        """Which model this is, asked in which words, in one word."""

    def extract(
        self, turn: Turn, noted: Sequence[str], *, deadline: float | None = None
    ) -> Extracted:
        """At most `MODEL_PIECES`, as `model-0` and so on; no episode, nothing said by the user."""

    def consolidate(
        self, episodes: Sequence[str], *, deadline: float | None = None
    ) -> Consolidated:
        """Lasting facts that episodes tell, with the numbers of their episodes, from 1."""

    def restate(
        self, kind: Kind, sources: Sequence[str], *, deadline: float | None = None
    ) -> Restated:
        """One text of a kind that says what its sources say, and no more."""


class AskModel(Protocol):
    """A call of a language model by the program: instructions, and material to read.

    Safe for use by several threads. Raises ExtractorError when the model is unavailable or the
    deadline passes, and no other error.
    """

    def __call__(
        self, instructions: str, material: str, *, deadline: float | None = None
    ) -> ModelAnswer:
        """What the model answers; the material is not addressed to it."""


class Clock(Protocol):
    """Time, ids and randomness: everything that would make two runs differ."""

    def now(self) -> datetime:
        """The present time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations."""

    def new_id(self) -> str:
        """A fresh random UUID (version 4) as text."""

    def random(self, size: int) -> bytes:
        """Random bytes fit for keys and nonces."""


class SystemClock:
    """Clock of the operating system: no other shipped code asks it for time or randomness."""

    def now(self) -> datetime:
        """The present time, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations."""
        return time.monotonic()

    def new_id(self) -> str:
        """A fresh random UUID (version 4) as text."""
        # What uuid.uuid4() does, in a third of its time: every retain asks for one.
        number = int.from_bytes(os.urandom(16)) & ~(0xF << 76 | 0x3 << 62) | (0x4 << 76 | 0x2 << 62)
        text = f"{number:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def random(self, size: int) -> bytes:
        """Random bytes fit for keys and nonces."""
        return os.urandom(size)


class Failpoint(StrEnum):
    """Named places of the protocol (`docs/protocol.md`) where a process may die."""

    RETAIN_COMMITTED = "retain.committed"
    BLOB_WRITTEN = "blob.written"
    COUNTERS_WRITTEN = "counters.written"
    SEGMENT_BUILT = "segment.built"
    SEGMENT_WRITTEN = "segment.written"
    SEGMENT_PUBLISHED = "segment.published"
    SUPERSEDE_COMMITTED = "supersede.committed"
    FORGET_COMMITTED = "forget.committed"
    FORGET_PUSHED = "forget.pushed"
    ROTATE_SLOT_ADDED = "rotate.slot-added"
    ROTATE_EPOCH_RAISED = "rotate.epoch-raised"
    ROTATE_BATCH_SEALED = "rotate.batch-sealed"
    ROTATE_RESEALED = "rotate.resealed"
    ROTATE_SLOT_DELETED = "rotate.slot-deleted"
    EXTRACT_ANSWERED = "extract.answered"
    JOB_LEASED = "job.leased"
    JOB_ANSWERED = "job.answered"
    COMPACTION_NOTED = "compaction.noted"
    COMPACTION_APPLIED = "compaction.applied"
    PURGE_COMMITTED = "purge.committed"
    DESTROY_MARKED = "destroy.marked"
    DESTROY_KEYS_DELETED = "destroy.keys-deleted"
    DESTROY_EMPTIED = "destroy.emptied"
    DESTROY_UNLINKED = "destroy.unlinked"
    CREATE_KEYS_ADDED = "create.keys-added"
    CREATE_STORED = "create.stored"
    LOAD_COMMITTED = "load.committed"
    RESTORE_KEYS_ADDED = "restore.keys-added"
    RESTORE_COMMITTED = "restore.committed"
    COLLECTION_KEY_ADDED = "collection.key-added"
    HOLD_COMMITTED = "hold.committed"
    INBOX_POSTED = "inbox.posted"
    INBOX_TAKEN = "inbox.taken"
    ROOT_BEGUN = "root.begun"
    ROOT_REWRAPPED = "root.rewrapped"
    STORE_BEFORE_COMMIT = "store.before-commit"
    STORE_AFTER_COMMIT = "store.after-commit"
    STORE_MIGRATING = "store.migrating"


_WAITS: ContextVar[tuple[float, float] | None] = ContextVar("waits", default=None)
"""How long the waits of a verb may take, all together, and how long they have taken."""


class Patience:
    """Lets the waits for locks inside take no longer than its time, all of them together.

    Together they take no longer than a store or keyring allows for one of them, either: a verb that
    takes ten locks does not wait ten times as long.
    """

    __slots__ = ("_outer", "_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        limit, spent = self._outer = _WAITS.get() or (inf, 0.0)
        self._token = _WAITS.set((min(limit, spent + self._seconds), spent))

    def __exit__(self, *_: object) -> None:
        limit, spent = self._outer
        spent = (_WAITS.get() or self._outer)[1]
        _WAITS.reset(self._token)
        if _WAITS.get():
            _WAITS.set((limit, spent))


def patience(seconds: float = inf) -> Patience:
    """Let the waits for locks inside take no longer than this, all of them together."""
    return Patience(seconds)


def patient(timeout: float) -> float:
    """How long a wait may take here: its own timeout, less what was waited before, or less."""
    limit, spent = _WAITS.get() or (inf, 0.0)
    return max(0.0, min(timeout, limit) - spent)


def waited(seconds: float) -> None:
    """Note a wait that is over."""
    if (waits := _WAITS.get()) is not None:
        _WAITS.set((waits[0], waits[1] + seconds))


_TRIES: Final = 8
"""How often a commit is begun that did not happen."""


def commit(
    store: Store, address: str, work: Callable[[Tx], Result], *, erasing: bool = False
) -> Result:
    """Run `work` in a transaction and return its result once that is durable.

    Where the answer is lost: it happened, and the result is returned; it did not, and `work` runs
    again; or nobody can tell yet, and that is OutcomeUnknown.
    """
    results = list[Result]()
    for left in reversed(range(_TRIES)):
        try:
            store.write(address, lambda tx: results.append(work(tx)), erasing=erasing)
        except OutcomeUnknown as error:
            happened = store.resolve(address, error.commit)
            if happened is None or not (happened or left):
                raise
            if not happened:
                continue
        break
    return results[-1]


Deliver = Callable[[Iterator[bytes]], None]
"""Takes the pieces of a file; it may be called again, and then begins the file again."""
Progress = Callable[[int, int], None]
"""Told how much of a long work is done, and how much there is."""


def no_progress(_done: int, _total: int) -> None:
    """Tell nobody."""


Reach = Callable[[Failpoint], None]


def pass_by(_: Failpoint) -> None:
    """Reach a failpoint and go on: what every failpoint does outside tests."""
