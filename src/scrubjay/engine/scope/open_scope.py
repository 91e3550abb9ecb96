"""An open scope: its keys, sealing and opening of rows, and guarded reads and writes."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.scope import pending_blobs
from scrubjay.engine.scope.audit_trail import AuditTrail
from scrubjay.engine.scope.counters_and_retention import Counters, ScopeLimits
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.provisions import LongBody, Need, Provisions
from scrubjay.engine.scope.quota import QuotaCheck, quota_of
from scrubjay.engine.scope.scope_keys import (
    USER_HELD,
    PlaintextCache,
    ScopeKeys,
    epochs,
    slot,
)
from scrubjay.engine.scope.views import changes, living
from scrubjay.model import records, turns
from scrubjay.model.echo import plain_words
from scrubjay.model.errors import (
    Busy,
    Destroyed,
    Frozen,
    Full,
    KeyMissing,
    NotFound,
    Restricted,
    ScrubjayError,
    SealBroken,
    StoreError,
)
from scrubjay.model.memory import PREFIX_CHARS, Memory, made_id
from scrubjay.model.results import ErasedCell
from scrubjay.model.retention import Duplicates
from scrubjay.model.rows import Collection, Due, Freeze, Head, Row
from scrubjay.model.scope import Quota, Scope
from scrubjay.model.text import key_name
from scrubjay.model.turns import Turn
from scrubjay.ports import Failpoint, Tx, View, commit, patience
from scrubjay.vault import Mac, Purpose, Sealer

Result = TypeVar("Result")
DESTROYED = "destroyed"
"""A slot of this name is written before the first key is deleted, so that a destroy that was
cut off is finished, while a keys folder that is merely absent never deletes anything."""
CELL_BYTES = 64 * 1024
"""A body longer than this goes to a blob, in chunks."""
_READ_TRIES = 5
_WRITE_TRIES = 512
"""How often a transaction may begin again with what it lacked: at most once per key or blob."""
_FLUSH_SECONDS = 1.0
_log = logging.getLogger(__name__)


def day(time: datetime) -> int:
    """The day of a time, counted from 1970-01-01."""
    return int(time.astimezone(UTC).timestamp()) // 86_400


def slots(ports: Ports, address: str, collection: Collection) -> list[int]:
    """The epochs of a collection whose keys are in the keyring, ascending."""
    return epochs(ports.keyring.purposes(address), collection)


class OpenScope:
    """One open scope; thread-safe."""

    def __init__(
        self, ports: Ports, scope: Scope, address: str, *, restoring: bool = False
    ) -> None:
        self.ports = ports
        self.scope = scope
        self.address = address
        self.keys = ScopeKeys(ports.keyring, ports.clock, scope, address)
        lookup = self.keys.lookup
        self._id_mac = Mac(vault.derive(lookup, Purpose.ID, scope))
        self._key_mac = Mac(vault.derive(lookup, Purpose.KEY, scope))
        self._session_mac = Mac(vault.derive(lookup, Purpose.SESSION, scope))
        self._approval_mac = Mac(vault.derive(lookup, Purpose.APPROVAL, scope))
        self.trail = AuditTrail.of(lookup, scope, ports.clock)
        self.limits = ScopeLimits(lookup, scope, ports.clock)
        self.counters = Counters(self)
        self._local = threading.local()
        self._mutex = threading.Lock()
        self._reads: Counter[tuple[str, str]] = Counter()
        self._seen = Head()
        self.ended = False
        """Whether this life of the scope was seen to be over: whoever asks has to open it anew."""
        self._restoring = restoring
        self.rolled_back = False
        """Whether the file was seen to be older than the catalog's copy of its audit head, or than
        this handle: it has no tombstones of what was forgotten since."""
        self._reached = 0
        self.kept = PlaintextCache(ports.policy.kept_bytes)
        self._progress: dict[Collection, tuple[int, int]] = {}
        self._quota = QuotaCheck(ports, scope, address)
        self.leased: dict[str, str] = {}
        """Jobs that this process took a lease of, and the holder's name."""

    # -- hashes and sealers ------------------------------------------------------------

    def row_id(self, public_id: str) -> bytes:
        """The row id of a memory, turn or note: a keyed hash of its public id."""
        return self._id_mac.short(public_id)

    def key_hash(self, key: str | None) -> bytes | None:
        """Keyed hash of an idempotency key; None stays None."""
        return None if key is None else self._key_mac.short(key_name(key))

    def session_hash(self, session: str) -> bytes:
        """Keyed hash of a session name."""
        return self._session_mac.short(session)

    def said_hash(self, memory: Memory) -> bytes:
        """Keyed hash of what a memory says, in plain words, as copies are compared."""
        # No session has such a name, so that it cannot be taken for one.
        said = f"\0said\0{memory.kind}\0{plain_words(memory.content)}"
        if not self.user_held:
            return self._session_mac.short(said)
        # Who can guess a text could otherwise prove the guess with what the host holds alone.
        return Mac(vault.derive(self.keys.half, Purpose.SESSION, self.scope)).short(said)

    def begins_hash(self, public_id: str) -> bytes:
        """Keyed hash of the beginning of an id, by which it may be asked for."""
        return self._session_mac.short(f"\0begins\0{public_id[:PREFIX_CHARS]}")

    def sign(self, memory: Memory) -> str:
        """Signature of an approval: an HMAC over the text of a memory."""
        said = vault.join(memory.id, memory.kind.value, memory.content, *memory.tags)
        return self._approval_mac.digest(said).hex()

    def token(self, ids: Iterable[bytes]) -> str:
        """Confirmation token: an HMAC over exactly these row ids."""
        return self._approval_mac.digest(vault.join(*sorted(ids))).hex()[:32]

    def sealer(self, collection: Collection, purpose: Purpose, epoch: int) -> Sealer:
        """The sealer for one purpose and epoch; KeyMissing if the epoch's key is gone."""
        if (found := self.keys.sealers.get((collection, purpose, epoch))) is not None:
            return found
        ahead = self._provisions
        fresh = ahead is not None and (collection, epoch) in ahead.keys
        if not fresh and not self.keys.held(collection, epoch):
            self._secure(collection, epoch)
        return self.keys.sealer(collection, purpose, epoch, ahead)

    @property
    def _provisions(self) -> Provisions | None:
        """What the transaction that this thread is in has at hand; None outside of one."""
        return getattr(self._local, "provisions", None)

    def _secure(self, collection: Collection, epoch: int) -> None:
        """Get an epoch key at hand; in a transaction it has to be fetched before."""
        ahead = self._provisions
        if ahead is not None and (collection, epoch) not in ahead.missing:
            raise Need(partial(self._fetch, ahead, collection, epoch))
        try:
            if ahead is not None:
                raise KeyMissing("It was looked for before the transaction began.")
            self.keys.secret(collection, epoch)
        except KeyMissing as error:
            raise KeyMissing(
                f"A {collection.value} of {self.scope} is sealed under key {epoch}, "
                f"which is gone from {self.ports.keyring.place}.",
                hint="The data file is older than the keys folder: restore from a backup.",
            ) from error

    def _fetch(self, ahead: Provisions, collection: Collection, epoch: int) -> None:
        """Fetch a key ahead of a transaction, or note that it is gone."""
        try:
            self._secure(collection, epoch)
        except KeyMissing:
            ahead.missing.add((collection, epoch))

    def slots(self, collection: Collection) -> list[int]:
        """The epochs of a collection whose keys are in the keyring."""
        return slots(self.ports, self.address, collection)

    def epoch(self, collection: Collection) -> int:
        """The epoch of a collection as last seen; every write checks it against the head."""
        epoch: int = getattr(self._seen, collection).epoch  # as `Head.at`, in the path of a write
        return epoch

    @property
    def user_held(self) -> bool:
        """Whether one half of its keys is with its user."""
        return self._seen.memory.epoch >= USER_HELD

    @property
    def locked(self) -> bool:
        """Whether its user has to unlock it before anything is read."""
        return self.user_held and self.keys.locked

    def lock(self) -> None:
        """Drop the user's half of the keys, and what was decrypted with them."""
        self.keys.lock()
        self.kept.clear()

    @property
    def due(self) -> Due:
        """The due work, as last seen."""
        return self._seen.due

    @property
    def frozen(self) -> Freeze:
        """The freeze level, as last seen."""
        return self._seen.frozen

    def check_free(self, head: Head | None = None, *, writing: bool = False) -> None:
        """Raise Restricted while it is frozen whole, Frozen while writes are; as last seen."""
        if (level := (head or self._seen).frozen) is Freeze.ALL:
            raise Restricted(f"Processing of {self.scope} is restricted: it is only stored.")
        if writing and level is not Freeze.NONE:
            raise Frozen(f"The scope {self.scope} is frozen.")

    def resume_at(self, collection: Collection) -> int:
        """Seq up to which this process has re-encrypted rows for the present epoch."""
        epoch, seq = self._progress.get(collection, (0, 0))
        return seq if epoch == self.epoch(collection) else 0

    def note_progress(self, collection: Collection, seq: int) -> None:
        """Remember the progress of a rotation for the next slice."""
        self._progress[collection] = (self.epoch(collection), max(seq, 0))

    # -- between memories, turns and their sealed rows ---------------------------------

    def unseal(self, row: Row) -> Memory:
        """The memory in a row that is not erased."""
        body = self.open_body(Collection.MEMORY, row)
        return records.decode(body, number=row.born, version=row.version)

    def unseal_sound(self, row: Row) -> Memory | None:
        """The memory in a row; None if it is damaged, since it must still be erasable."""
        try:
            return self.unseal(row)
        except (SealBroken, KeyMissing, NotFound):
            return None

    def unseal_turn(self, row: Row) -> Turn:
        """The turn in a row that is not erased."""
        return turns.decode(self.open_body(Collection.TURN, row))

    def unseal_sound_turn(self, row: Row) -> Turn | None:
        """The turn in a row; None if it is damaged."""
        with suppress(SealBroken, KeyMissing, NotFound):
            return self.unseal_turn(row)
        return None

    def peek(self, view: View, public_id: str | None) -> Memory | None:
        """The memory with this id, superseded or not; None if it does not exist."""
        row = public_id and living(view, Collection.MEMORY, self.row_id(public_id))
        return self.unseal(row) if row else None

    def memories(self, view: View) -> Iterator[tuple[Row, Memory]]:
        """Every memory that is not erased, with its row."""
        rows = changes(view, Collection.MEMORY)
        return ((row, self.unseal(row)) for row in rows if not row.erased)

    def turns(self, view: View) -> Iterator[tuple[Row, Turn]]:
        """Every turn that is not erased, with its row."""
        rows = changes(view, Collection.TURN)
        return ((row, self.unseal_turn(row)) for row in rows if not row.erased)

    def open_body(self, collection: Collection, row: Row) -> bytes:
        """The plaintext of a row's body, from its cell or from its blob."""
        assert row.cell is not None
        sealer = self.sealer(collection, Purpose.CELL, row.epoch)
        body = vault.unpad(sealer.unseal(row.cell, row_id=row.id, version=row.version))
        if row.blob is None:
            return body
        if (ahead := self._provisions) is not None and row.blob in ahead.bodies:
            return ahead.bodies[row.blob].body
        if (stream := self._stream(row.blob)) is None:
            raise SealBroken("The blob of a row is missing.")
        sealer = self.sealer(collection, Purpose.BLOB, row.epoch)
        place = vault.join(row.id, row.blob)
        chunks = sealer.unseal_stream(stream, row_id=place, version=row.version)
        return b"".join(chunks)

    def seal_body(self, collection: Collection, row: Row, body: bytes) -> Row:
        """Seal a body for a row: in its cell or, if long, in a blob that the cell names."""
        name = None
        if len(body) > CELL_BYTES:
            name = self._blob_of(LongBody(collection, row.id, row.version, row.epoch, body))
            body = name.encode()
        return self.seal_cell(collection, replace(row, blob=name), body)

    def seal_cell(self, collection: Collection, row: Row, content: bytes) -> Row:
        """Seal the content of a row's cell: its body, or the name of its blob."""
        nonce = self.ports.clock.random(vault.NONCE_BYTES)
        sealer = self.sealer(collection, Purpose.CELL, row.epoch)
        cell = sealer.seal(vault.pad(content), row_id=row.id, version=row.version, nonce=nonce)
        return replace(row, cell=cell)

    def seal(self, memory: Memory, epoch: int, vector: bytes | None = None) -> Row:
        """Seal a memory, with its packed vector if it is stored, as a row of an epoch."""
        session, row_id = memory.provenance.session, self.row_id(memory.id)
        row = Row(
            id=row_id,
            version=memory.version,
            epoch=epoch,
            cell=None,
            vector=None if vector is None else self.seal_vector(vector, row_id, epoch),
            session=None if session is None else self.session_hash(session),
            key=self.key_hash(memory.key),
            expiry=None if memory.expires_at is None else day(memory.expires_at),
        )
        return self.seal_body(Collection.MEMORY, row, records.encode(memory))

    def seal_ahead(self, memory: Memory, vector: bytes | None) -> Row | None:
        """The memory sealed before a transaction, in the epoch as last seen.

        None if only the transaction can do that: another process has rotated that key away, or the
        body is long, and its blob is stored only for a memory that is really new.
        """
        try:
            return self.seal(memory, self.epoch(Collection.MEMORY), vector)
        except (KeyMissing, Need):
            return None

    # -- blobs ---------------------------------------------------------------------------

    def _stream(self, name: str) -> bytes | None:
        """A blob; None if it is not there. In a transaction only one that was read before."""
        ahead = self._provisions
        if ahead is None:
            with suppress(NotFound):
                return self.ports.blobs.get(self.address, name)
            return None
        if name not in ahead.streams:
            raise Need(partial(self._read_ahead, ahead, name))
        return ahead.streams[name]

    def _read_ahead(self, ahead: Provisions, name: str) -> None:
        ahead.streams[name] = self._stream(name)

    def _blob_of(self, long: LongBody) -> str:
        """The name of the pending blob of a body; what is not stored yet is wanted."""
        if (ahead := self._provisions) is None:
            raise Need(lambda: None)
        if (name := ahead.names.get(long)) is None:
            name = ahead.names[long] = self.ports.clock.random(16).hex()
            ahead.bodies[name] = long
        if name not in ahead.stored:
            # The attempt goes on, so that all the bodies it wants to store are known at its end.
            ahead.wanted.add(name)
        return name

    def seal_stream(self, long: LongBody, name: str) -> bytes:
        """The content of the blob of a body."""
        sealer = self.sealer(long.collection, Purpose.BLOB, long.epoch)
        place, random = vault.join(long.row_id, name), self.ports.clock.random
        return sealer.seal_stream(long.body, row_id=place, version=long.version, random=random)

    def put_blobs(self, streams: Mapping[str, bytes], *, erasing: bool = False) -> None:
        """Store blobs ahead of the transaction that refers to them; until then they are pending."""
        today = day(self.ports.clock.now())
        self.write(
            lambda tx: pending_blobs.note(tx, streams, today), frozen_too=True, erasing=erasing
        )
        for name, stream in streams.items():
            self.ports.blobs.put(self.address, name, stream)

    def _store_wanted(self, ahead: Provisions, *, erasing: bool) -> None:
        streams = {name: self.seal_stream(ahead.bodies[name], name) for name in ahead.wanted}
        self.put_blobs(streams, erasing=erasing)
        self.ports.reach(Failpoint.BLOB_WRITTEN)
        ahead.stored |= ahead.wanted

    def _claim(self, tx: Tx, name: str) -> None:
        """Refer to a pending blob in a transaction; one that a sweep took is stored again."""
        ahead = self._provisions
        assert ahead is not None
        if name not in ahead.wanted and pending_blobs.claim(tx, [name]):
            ahead.stored.remove(name)
            del ahead.names[ahead.bodies.pop(name)]
            raise Need(lambda: None)

    def seal_vector(self, packed: bytes | None, row_id: bytes, epoch: int) -> bytes | None:
        """Seal a packed vector as a cell; None stays None.

        It is bound to the id alone, because the text of a memory never changes under its id.
        """
        if packed is None:
            return None
        nonce = self.ports.clock.random(vault.NONCE_BYTES)
        sealer = self.sealer(Collection.MEMORY, Purpose.VECTOR, epoch)
        return sealer.seal(packed, row_id=row_id, version=0, nonce=nonce)

    def open_vector(self, row: Row) -> bytes | None:
        """The packed vector stored with a memory; None if there is none."""
        if row.vector is None:
            return None
        sealer = self.sealer(Collection.MEMORY, Purpose.VECTOR, row.epoch)
        return sealer.unseal(row.vector, row_id=row.id, version=0)

    def sound_vector(self, row: Row) -> bytes | None:
        """The packed vector of a memory; None also if it is damaged."""
        try:
            return self.open_vector(row)
        except SealBroken as error:
            _log.warning("vector.damaged", extra={"code": error.code})
            return None

    def put(self, tx: Tx, memory: Memory, vector: bytes | None = None) -> Row:
        """Seal a memory in the present epoch and write it, with its stored vector."""
        old = tx.row(Collection.MEMORY, self.row_id(memory.id)) if memory.version > 1 else None
        if old is not None:
            vector = self.sound_vector(old)
            if old.blob is not None:  # of the version that is replaced, once the new one is durable
                self.leave_due(tx, Due.SWEEP)
        return self.write_memory(tx, memory, self.seal(memory, tx.head().memory.epoch, vector))

    def write_memory(self, tx: Tx, memory: Memory, row: Row) -> Row:
        """Write the row of a memory, and let the limits of the scope follow."""
        row = self.write_row(tx, Collection.MEMORY, row)
        state = self.limits.follow(tx, memory, row.born)
        if state is not None and state.policy.duplicates is Duplicates.LATEST and memory.current:
            tx.link(self.said_hash(memory), row.id)
        if memory.archived_at is not None and made_id(memory.id):  # it is in no index
            tx.link(self.begins_hash(memory.id), row.id)
        return row

    def erase_memory(self, tx: Tx, row: Row, memory: Memory | None) -> None:
        """Erase the row of a memory; one that does not open may stay counted below a cap."""
        tx.erase(Collection.MEMORY, row.id, drop_day=self.drop_day())
        self.counters.erase(tx, row)
        if memory is not None:
            self.limits.follow(tx, memory, row.born, erased=True)

    def put_body(
        self,
        tx: Tx,
        collection: Collection,
        row_id: bytes,
        body: bytes,
        *,
        session: bytes | None = None,
        key: bytes | None = None,
    ) -> Row:
        """Seal a body in the present epoch and write it as the next version of a row."""
        known = tx.row(collection, row_id)
        if known is not None and known.blob is not None:
            self.leave_due(tx, Due.SWEEP)
        version = 1 if known is None else known.version + 1
        position = tx.head().at(collection)
        if not position.seq:  # the first row: only a new scope's own collections have a key
            self._require_slot(tx, collection, position.epoch, Failpoint.COLLECTION_KEY_ADDED)
        row = Row(
            id=row_id, version=version, epoch=position.epoch, cell=None, session=session, key=key
        )
        return self.write_row(tx, collection, self.seal_body(collection, row, body))

    def write_row(self, tx: Tx, collection: Collection, row: Row) -> Row:
        """Write a row that was sealed in the present epoch."""
        if row.blob is not None:
            self._claim(tx, row.blob)
        written = tx.put(collection, row)
        if collection is Collection.MEMORY and written.born == written.seq and self._provisions:
            self._provisions.fresh += 1
        return written

    def erased_cells(self, collection: Collection, row: Row) -> list[ErasedCell]:
        """The cells of a row, as a receipt names them."""
        nonces = [vault.nonce_of(cell) for cell in (row.cell, row.vector) if cell is not None]
        if row.blob is not None and (stream := self._stream(row.blob)) is not None:
            nonces += vault.stream_nonces(stream)
        return [
            ErasedCell(collection=collection.value, epoch=row.epoch, nonce=nonce.hex())
            for nonce in nonces
        ]

    def moment(self) -> datetime:
        """The present; within a write, that of its first attempt."""
        ahead = self._provisions or Provisions()
        ahead.moment = ahead.moment or self.ports.clock.now()
        return ahead.moment

    def drop_day(self) -> int:
        """Day on which a row that is erased now may be dropped."""
        return day(self.ports.clock.now() + timedelta(days=self.ports.policy.drop_days))

    # -- what a transaction leaves to be finished --------------------------------------

    def leave_due(self, tx: Tx, work: Due) -> None:
        """Mark work as due, in the transaction that causes it."""
        head = tx.head()
        since = head.due_since if head.due else day(self.ports.clock.now())
        tx.set_head(replace(head, due=head.due | work, due_since=since))

    def clear_due(self, work: Due, seen: Head, *, old_slots: Iterable[str] = ()) -> None:
        """Clear a due mark and old slots, unless the scope has changed since (compare-and-set)."""

        def store(tx: Tx) -> None:
            head = tx.head()
            if work is Due.ROTATE:
                unchanged = all(head.at(one).epoch == seen.at(one).epoch for one in Collection)
            else:
                unchanged = head.audit_count == seen.audit_count
            if unchanged:
                for name in old_slots:
                    tx.set_slot(name, None)
                left = head.due & ~work
                tx.set_head(replace(head, due=left, due_since=head.due_since if left else None))

        if seen.due & work or old_slots:
            self.write(store, frozen_too=True, erasing=True)

    def raise_epoch(self, tx: Tx, collection: Collection, epoch: int | None = None) -> None:
        """Move a collection to a new epoch: later transactions seal under the new key only.

        The new key is durable before the head names it. A key that an interrupted attempt left in
        the slot was never used and is reused.
        """
        head = tx.head()
        position = head.at(collection)
        epoch = epoch or position.epoch + 1
        self._require_slot(tx, collection, epoch, Failpoint.ROTATE_SLOT_ADDED)
        tx.set_head(head.moved(collection, replace(position, epoch=epoch)))

    def _require_slot(self, tx: Tx, collection: Collection, epoch: int, added: Failpoint) -> None:
        """Begin an epoch in a transaction: its key is in a slot by then, or with its commit."""
        if self.keys.held(collection, epoch):
            return
        name, ahead = slot(collection, epoch), self._provisions
        if not self.keys.beside_rows or name in tx.slots():
            raise Need(partial(self._add_slot, collection, epoch, added))
        assert ahead is not None
        if name not in ahead.made:
            raise Need(partial(self._make_slot, ahead, collection, epoch, added))
        ahead.keys[collection, epoch], wrapped, _ = ahead.made[name]
        tx.set_slot(name, wrapped)

    def _make_slot(
        self, ahead: Provisions, collection: Collection, epoch: int, added: Failpoint
    ) -> None:
        ahead.made[slot(collection, epoch)] = self.keys.make(collection, epoch)
        self.ports.reach(added)

    def _add_slot(self, collection: Collection, epoch: int, added: Failpoint) -> None:
        self.keys.add(collection, epoch)
        self.ports.reach(added)

    # -- the guarded way to the rows ---------------------------------------------------

    def read(self, look: Callable[[View], Result]) -> Result:
        """Run `look` on a consistent view; Destroyed if the scope is gone.

        A rotation that ends between reading a row and decrypting it deletes the row's key or blob;
        the view is then merely old, and the read is retried on a fresh one. Damage fails again.
        """
        for _ in range(_READ_TRIES - 1):
            with suppress(KeyMissing, SealBroken):
                return self._look(look)
        return self._look(look)

    def head(self) -> Head:
        """The head as it is now, in one call of the store; Destroyed if the scope is gone."""
        try:
            head = self.ports.store.head(self.address)
            if self._doubtful(head):
                self.examine()
                head = self.ports.store.head(self.address)
        except NotFound as error:
            self._explain_absence(error)
            raise
        self._note_durable(head)
        return head

    def _look(self, look: Callable[[View], Result]) -> Result:
        self.keys.renew()
        try:
            with self.ports.store.read(self.address) as view:
                head = view.head()
                if not self._doubtful(head):
                    self._note_durable(head)
                    return look(view)
            self.examine()
            with self.ports.store.read(self.address) as view:
                self._note_durable(view.head())
                return look(view)
        except NotFound as error:
            self._explain_absence(error)
            raise

    def write(
        self, work: Callable[[Tx], Result], *, frozen_too: bool = False, erasing: bool = False
    ) -> Result:
        """Run `work` in a transaction, unless the scope is destroyed or frozen for it.

        What it lacks is fetched outside of the transaction, and `work` runs again: it decides by
        the view it is given, and keeps nothing of an attempt that was rolled back.
        """
        ahead, room = Provisions(), False
        limits = Quota() if frozen_too or erasing else quota_of(self.ports.policy)
        if limits.megabytes:
            self._quota.check_size(limits.megabytes)
        for _ in range(_WRITE_TRIES):
            try:
                return self._attempt(
                    work, ahead, limits.memories, frozen_too=frozen_too, erasing=erasing
                )
            except Need as need:
                try:
                    need.meet()
                except Full:
                    if not erasing or room:
                        raise
                    room = True
                    self.ports.store.make_room()
        raise Busy(f"Others change the keys of {self.scope} faster than this write can follow.")

    def _attempt(
        self,
        work: Callable[[Tx], Result],
        ahead: Provisions,
        most: int,
        *,
        frozen_too: bool,
        erasing: bool,
    ) -> Result:
        self.keys.renew()
        taken: Counter[tuple[str, str]] | None = None
        if self._reads:
            with self._mutex:
                taken, self._reads = self._reads, Counter()

        def guarded(tx: Tx) -> Result:
            head = tx.head()
            if self._doubtful(head) and not ahead.examined:
                raise Need(partial(self._examine_ahead, ahead))
            self._note(head)
            if not frozen_too:
                self.check_free(head, writing=True)
            ahead.wanted.clear()
            ahead.fresh = 0
            ahead.keys.clear()
            self._local.provisions = ahead
            try:
                for (verb, actor), number in sorted(taken.items()) if taken else ():
                    self.trail.record(tx, verb, actor, number=number)
                result = work(tx)
            finally:
                self._local.provisions = None
            if most and ahead.fresh:
                self._quota.check_number(tx, head.memory.seq, ahead.fresh, most)
            if ahead.wanted:
                raise Need(partial(self._store_wanted, ahead, erasing=erasing))
            return result

        try:
            result = commit(self.ports.store, self.address, guarded, erasing=erasing)
        except (ScrubjayError, Need) as error:
            if taken:
                with self._mutex:
                    self._reads.update(taken)
            if isinstance(error, NotFound):
                self._explain_absence(error)
            raise
        self.keys.hold(ahead.keys, ahead.made)
        if erasing:
            self.kept.clear()
        return result

    def is_there(self) -> bool:
        """Whether the scope can be read, and was not destroyed since it was opened."""
        try:
            self.head()
        except Destroyed:
            return False
        return True

    def _destroyed(self) -> Destroyed:
        self.kept.clear()
        self.ended = True
        return Destroyed(f"The scope {self.scope} was destroyed.")

    def _note(self, head: Head) -> None:
        if head.destroyed:
            raise self._destroyed()
        before, self._seen = self._seen, head
        if head.memory.erased_seq > before.memory.erased_seq:
            self.kept.noticed(head.memory.erased_seq)

    def _note_durable(self, head: Head) -> None:
        """Note a head that a reader sees; what a transaction sees may still be undone."""
        self._note(head)
        self._reached = max(self._reached, head.audit_count)

    def _doubtful(self, head: Head) -> bool:
        """Whether the file may have been lost and made again, or rolled back."""
        if head.destroyed or self._restoring:
            return False
        return not head.audit_count or head.audit_count < self._reached or self.rolled_back

    def _examine_ahead(self, ahead: Provisions) -> None:
        self.examine()
        self.check_current()
        ahead.examined = True

    def check_current(self) -> None:
        """StoreError if the file was rolled back, except for a restore."""
        if not self.rolled_back or self._restoring:
            return
        self.examine()  # the newer file may be back
        if self.rolled_back:
            raise StoreError(
                f"The data file of {self.scope} is older than what the catalog knows of it.",
                hint="Put the newer file back, or restore a backup; verify says what is missing.",
            )

    def examine(self) -> None:
        """Compare the file with what the catalog and this handle know of it.

        The catalog's copy of the audit head may only lag behind, so it is read first. A file
        without any event was lost and made again: it has no tombstones yet, and what was forgotten
        could be written to it as something new. It is refused until a restore has filled it.
        """
        catalog = self.ports.store.catalog
        entry = catalog.entry(self.address)
        known = 0 if entry is None else entry.audit_count
        buried = not known and bool(catalog.tombstones(self.address))
        before = self._reached  # other threads may see later events than the view has
        with self.ports.store.read(self.address) as view:
            reached = view.head().audit_count
            if not reached:
                if (known or buried) and not self._restoring:
                    raise StoreError(
                        f"The data file of {self.scope} was lost, and is empty.",
                        hint="Restore a backup; one that was cut off can be repeated.",
                    )
                return
            copied = entry is None or not known or reached >= known
            if copied and entry is not None and known:
                copied = [row.mac for row in view.audit(known - 1, 1)] == [entry.audit_mac]
            seen = reached >= before
            if not (copied and seen):
                # A restore into a file that lacks events says so in the trail.
                lost = self.trail.lost(view)
                copied, seen = copied or lost >= known, seen or lost >= before
                if seen:
                    self._reached = reached
                    self.kept.clear()
        self.rolled_back = not (copied and seen)

    def _explain_absence(self, error: NotFound) -> None:
        """Raise Destroyed instead of NotFound if that is why the rows are gone."""
        entry = self.ports.store.catalog.entry(self.address)
        ended = entry is not None and entry.destroyed
        if ended or DESTROYED in self.ports.keyring.purposes(self.address):
            raise self._destroyed() from error

    # -- reads are audited in batches --------------------------------------------------

    def note_read(self, verb: str, actor: str, number: int = 1) -> None:
        """Count a read; it is written to the audit trail with the next write, or on close."""
        with self._mutex:
            self._reads[verb, actor] += number

    def flush_reads(self) -> None:
        """Write the counted reads to the audit trail, or later if the disk is full."""
        # Reading goes on while the disk is full or a writer stands still: the reads stay counted.
        with suppress(Full, Busy), patience(_FLUSH_SECONDS):
            if self._reads:
                self.write(lambda _: None, frozen_too=True)

    def copy_audit_head(self) -> Head:
        """Copy the audit head to the catalog, so that a truncated trail is detected."""
        head = self.head()
        catalog = self.ports.store.catalog
        entry = catalog.entry(self.address)
        if entry is not None and entry.audit_count < head.audit_count:
            with suppress(Busy), patience(_FLUSH_SECONDS):  # the next copy has this one's events
                catalog.note_audit(self.address, head.audit_count, head.audit_mac)
        return head

    def close(self) -> None:
        """Write what was counted of reads and recalls, and copy the audit head, if possible.

        It never fails: after a destroy, or on a full disk, only the count of reads is lost.
        """
        try:
            with suppress(Full, Busy), patience(_FLUSH_SECONDS):
                self.counters.flush()  # and the reads with it
            self.flush_reads()
            self.copy_audit_head()
        except ScrubjayError as error:
            _log.warning("close.reads_not_written", extra={"code": error.code})
