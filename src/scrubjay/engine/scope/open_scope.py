"""An open scope: its keys, its address, and the guarded way to its rows."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

from scrubjay import vault
from scrubjay.engine.scope.plaintext_cache import Kept
from scrubjay.model.errors import (
    Destroyed,
    Frozen,
    Full,
    KeyMissing,
    NotFound,
    ScrubjayError,
    SealBroken,
    StoreError,
)
from scrubjay.model.memory import Memory
from scrubjay.model.records import decode
from scrubjay.model.results import AuditEvent
from scrubjay.model.rows import AuditRow, Collection, Due, Freeze, Head, Row
from scrubjay.model.scope import Scope
from scrubjay.model.text import key_name
from scrubjay.ports import (
    Blobs,
    Clock,
    Distiller,
    Embedder,
    Extractor,
    Keyring,
    Reach,
    Store,
    Tx,
    View,
    pass_by,
)
from scrubjay.vault import Mac, Purpose, Sealer

_SUBJECTS = 64
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Trail:
    """The keys of one scope's audit trail; they live as long as the scope."""

    mac: Mac
    sealer: Sealer
    clock: Clock

    @classmethod
    def of(cls, lookup: bytes, scope: Scope, clock: Clock) -> Trail:
        """The trail whose keys come from a scope's lookup key."""
        sealer = Sealer(lookup, Purpose.AUDIT, scope, "audit")
        return cls(Mac(vault.derive(lookup, Purpose.CHAIN, scope)), sealer, clock)

    def record(
        self, tx: Tx, verb: str, actor: str, ids: Iterable[bytes] = (), *, number: int = 1
    ) -> None:
        """Append one event; it is durable together with the change, or neither is."""
        head = tx.head()
        count = head.audit_count + 1
        micros = (self.clock.now() - _START) // _MICROSECOND
        names = "".join(f',"{row_id[:8].hex()}"' for row_id in islice(ids, _SUBJECTS))
        # JSON by hand: verbs, actors and hexadecimal digits need no escape.
        body = f'["{verb}","{actor}",{micros},{number}{names}]'.encode()
        nonce = self.clock.random(vault.NONCE_BYTES)
        cell = self.sealer.seal(vault.pad(body), row_id=b"", version=count, nonce=nonce)
        tx.append_audit(cell, self.link(head.audit_mac, count, cell))

    def link(self, previous: bytes, count: int, cell: bytes) -> bytes:
        """The link of the chain that follows `previous`."""
        return vault.chain(self.mac, previous, count, cell)

    def event(self, row: AuditRow) -> AuditEvent:
        """The event in an audit row; SealBroken if it was altered or moved."""
        body = self.sealer.unseal(row.cell, row_id=b"", version=row.count)
        verb, actor, micros, number, *names = json.loads(vault.unpad(body))
        return AuditEvent(
            count=row.count,
            at=_START + micros * _MICROSECOND,
            verb=verb,
            actor=actor,
            subjects=tuple(names),
            number=number,
        )


Result = TypeVar("Result")
LOOKUP = "lookup"
DESTROYED = "destroyed"
"""A slot of this name is written before the first key is deleted, so that a destroy that was
cut off is finished, while a keys folder that is merely absent never deletes anything."""
_READ_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When work is done at once and when it is left due."""

    rotate_below: int = 32 * 1024 * 1024
    """Scopes smaller than this rotate before forget returns."""
    slice_seconds: float = 0.05
    """How long a verb may work on what earlier verbs left due."""
    placeholder: str = "[REDACTED]"
    """What stands where a secret was."""
    drop_days: int = 30
    """How long the row of an erased memory is kept, without content."""
    segment_rows: int = 512
    """How many memories may be in no segment on disk before one is written."""
    evicted_rows: int = 32
    """The same for an index that has to make room for others: it will be wanted again."""
    shelf_bytes: int = 256 * 1024 * 1024
    """How much memory the open indexes of all scopes may take together."""
    kept_bytes: int = 8 * 1024 * 1024
    """How much memory the memories of one scope that were opened lately may take."""
    embed_seconds: float = 10.0
    """How long a retain waits for an embedder whose vectors are kept."""
    turn_embed_seconds: float = 1.5
    """The same for all that a turn yields: who reports turns does not wait longer than 2 s."""
    extract_seconds: float = 30.0
    """How long a model may take over one turn."""
    daily_tokens: int = 0
    """How many tokens a scope may have a model use in a day, UTC; 0 for any number."""
    raise_on_embedder_change: bool = False
    """Whether vectors of another embedder are an error rather than left out of the ranking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What the engine stands on."""

    store: Store
    blobs: Blobs
    keyring: Keyring
    clock: Clock
    embedder: Embedder
    distiller: Distiller | None = None
    """What finds in a turn what is worth remembering; without one, turns are only kept."""
    extractor: Extractor | None = None
    """What asks a model for more, later; without one, no turn leaves this machine."""
    reach: Reach = pass_by
    policy: Policy = field(default_factory=Policy)


def day(time: datetime) -> int:
    """The day of a time, counted from 1970-01-01."""
    return int(time.astimezone(UTC).timestamp()) // 86_400


def slot(collection: Collection, epoch: int) -> str:
    """The keyring purpose of one epoch key."""
    return f"{collection.value}.{epoch}"


def slots(ports: Ports, address: str, collection: Collection) -> list[int]:
    """The epochs of a collection whose keys are in the keyring, ascending."""
    names = (purpose.partition(".") for purpose in ports.keyring.purposes(address))
    return sorted(int(epoch) for name, _, epoch in names if name == collection.value)


class OpenScope:
    """One scope, ready for verbs; safe for several threads."""

    def __init__(
        self, ports: Ports, scope: Scope, address: str, *, restoring: bool = False
    ) -> None:
        self.ports = ports
        self.scope = scope
        self.address = address
        lookup = ports.keyring.get(address, LOOKUP)
        self._id_mac = Mac(vault.derive(lookup, Purpose.ID, scope))
        self._key_mac = Mac(vault.derive(lookup, Purpose.KEY, scope))
        self._session_mac = Mac(vault.derive(lookup, Purpose.SESSION, scope))
        self._approval_mac = Mac(vault.derive(lookup, Purpose.APPROVAL, scope))
        self.trail = Trail.of(lookup, scope, ports.clock)
        self._sealers: dict[tuple[Collection, Purpose, int], Sealer] = {}
        self._mutex = threading.Lock()
        self._reads: Counter[tuple[str, str]] = Counter()
        self._seen = Head()
        self._restoring = restoring
        self.kept = Kept(ports.policy.kept_bytes)
        self._progress: dict[Collection, tuple[int, int]] = {}

    # -- hashes and sealers ------------------------------------------------------------

    def row_id(self, public_id: str) -> bytes:
        """Under which id the store knows a memory."""
        return self._id_mac.short(public_id)

    def key_hash(self, key: str | None) -> bytes | None:
        """The idempotency key as the store knows it."""
        return None if key is None else self._key_mac.short(key_name(key))

    def session_hash(self, session: str | None) -> bytes | None:
        """The session name as the store knows it."""
        return None if session is None else self._session_mac.short(session)

    def sign(self, memory: Memory) -> str:
        """The signature of exactly what a memory says, for who approved it."""
        said = vault.join(memory.id, memory.kind.value, memory.content, *memory.tags)
        return self._approval_mac.digest(said).hex()

    def token(self, ids: Iterable[bytes]) -> str:
        """A confirmation that names exactly these rows."""
        return self._approval_mac.digest(vault.join(*sorted(ids))).hex()[:32]

    def sealer(self, collection: Collection, purpose: Purpose, epoch: int) -> Sealer:
        """The sealer for one purpose and epoch; KeyMissing if the epoch's key is gone."""
        found = self._sealers.get((collection, purpose, epoch))
        if found is None:
            found = self._new_sealer(collection, purpose, epoch)
            with self._mutex:
                self._sealers[collection, purpose, epoch] = found
        return found

    def _new_sealer(self, collection: Collection, purpose: Purpose, epoch: int) -> Sealer:
        try:
            secret = self.ports.keyring.get(self.address, slot(collection, epoch))
        except KeyMissing as error:
            raise KeyMissing(
                f"A {collection.value} of {self.scope} is sealed under key {epoch}, which is gone.",
                hint="The data file is older than the keys folder: restore from a backup.",
            ) from error
        return Sealer(secret, purpose, self.scope, collection.value, epoch)

    def slots(self, collection: Collection) -> list[int]:
        """The epochs of a collection whose keys are in the keyring."""
        return slots(self.ports, self.address, collection)

    def drop_sealers(self, collection: Collection, below: int) -> None:
        """Let go of the keys of epochs that have been rotated away."""
        with self._mutex:
            for name in [n for n in self._sealers if n[0] is collection and n[2] < below]:
                del self._sealers[name]

    def epoch(self, collection: Collection) -> int:
        """The epoch of a collection as last seen; every write checks it against the head."""
        return self._seen.at(collection).epoch

    @property
    def due(self) -> Due:
        """What is left to be finished, as last seen."""
        return self._seen.due

    @property
    def frozen(self) -> Freeze:
        """How much of the scope is stopped, as last seen."""
        return self._seen.frozen

    def resume_at(self, collection: Collection) -> int:
        """Up to which seq this process has sealed anew for the present epoch."""
        epoch, seq = self._progress.get(collection, (0, 0))
        return seq if epoch == self.epoch(collection) else 0

    def note_progress(self, collection: Collection, seq: int) -> None:
        """Remember how far a rotation came, so that the next slice need not look again."""
        self._progress[collection] = (self.epoch(collection), max(seq, 0))

    def unseal(self, row: Row) -> Memory:
        """The memory in a row that is not erased."""
        return decode(self.open_body(Collection.MEMORY, row), number=row.born, version=row.version)

    def open_body(self, collection: Collection, row: Row) -> bytes:
        """The plaintext of a row's body, from its cell or from its blob."""
        assert row.cell is not None
        sealer = self.sealer(collection, Purpose.CELL, row.epoch)
        body = vault.unpad(sealer.unseal(row.cell, row_id=row.id, version=row.version))
        if row.blob is None:
            return body
        try:
            stream = self.ports.blobs.get(self.address, row.blob)
        except NotFound as error:
            raise SealBroken("The blob of a row is missing.") from error
        sealer = self.sealer(collection, Purpose.BLOB, row.epoch)
        place = vault.join(row.id, row.blob)
        chunks = sealer.unseal_stream(stream, row_id=place, version=row.version)
        return b"".join(chunks)

    # -- the guarded way to the rows ---------------------------------------------------

    def read(self, look: Callable[[View], Result]) -> Result:
        """Run `look` on a consistent view; Destroyed if the scope is gone.

        A rotation that ends between reading a row and opening it takes the row's key or blob
        away; the view is then merely old, and a fresh one is tried. Damage shows every time.
        """
        for _ in range(_READ_TRIES - 1):
            with suppress(KeyMissing, SealBroken):
                return self._look(look)
        return self._look(look)

    def _look(self, look: Callable[[View], Result]) -> Result:
        try:
            with self.ports.store.read(self.address) as view:
                self._note(view.head())
                return look(view)
        except NotFound as error:
            self._explain_absence(error)
            raise

    def write(
        self, work: Callable[[Tx], Result], *, frozen_too: bool = False, erasing: bool = False
    ) -> Result:
        """Run `work` in a transaction, unless the scope is destroyed or frozen for it."""
        reads = self._take_reads()

        def guarded(tx: Tx) -> Result:
            head = tx.head()
            self._note(head)
            if head.frozen is not Freeze.NONE and not frozen_too:
                raise Frozen(f"The scope {self.scope} is frozen.")
            for (verb, actor), number in reads:
                self.trail.record(tx, verb, actor, number=number)
            return work(tx)

        try:
            result = self.ports.store.write(self.address, guarded, erasing=erasing)
        except ScrubjayError as error:
            self._give_back(reads)
            if isinstance(error, NotFound):
                self._explain_absence(error)
            raise
        if erasing:
            self.kept.clear()
        return result

    def _note(self, head: Head) -> None:
        if head.destroyed:
            self.kept.clear()
            raise Destroyed(f"The scope {self.scope} was destroyed.")
        if not head.audit_count and not self._restoring:
            self._check_whole()
        self._seen = head
        self.kept.noticed(head.memory.erased_seq)

    def _check_whole(self) -> None:
        """Refuse a file that was lost and made again, until a restore has filled it.

        It has no tombstones yet, so what was forgotten could be written to it as something new.
        """
        catalog = self.ports.store.catalog
        entry = catalog.entry(self.address)
        if (entry is not None and entry.audit_count) or catalog.tombstones(self.address):
            with self.ports.store.read(self.address) as view:
                if view.head().audit_count:
                    return  # it was written, and the catalog told, since the caller looked
            raise StoreError(
                f"The data file of {self.scope} was lost, and is empty.",
                hint="Restore a backup; one that was cut off can be repeated.",
            )

    def _explain_absence(self, error: NotFound) -> None:
        """Say Destroyed rather than NotFound when that is why the rows are gone."""
        entry = self.ports.store.catalog.entry(self.address)
        ended = entry is not None and entry.destroyed
        if ended or DESTROYED in self.ports.keyring.purposes(self.address):
            self.kept.clear()
            raise Destroyed(f"The scope {self.scope} was destroyed.") from error

    # -- reads are audited in batches --------------------------------------------------

    def note_read(self, verb: str, actor: str, number: int = 1) -> None:
        """Count a read; it reaches the audit trail with the next write, or on close."""
        with self._mutex:
            self._reads[verb, actor] += number

    def flush_reads(self) -> None:
        """Write the counted reads to the audit trail now, or later if there is no space."""
        if not self._reads:
            return
        # Reading goes on while the disk is full: the reads stay counted.
        with suppress(Full):
            self.write(lambda _: None, frozen_too=True)

    def _take_reads(self) -> list[tuple[tuple[str, str], int]]:
        if not self._reads:
            return []
        with self._mutex:
            reads, self._reads = self._reads, Counter()
        return sorted(reads.items())

    def _give_back(self, reads: list[tuple[tuple[str, str], int]]) -> None:
        with self._mutex:
            self._reads.update(dict(reads))
