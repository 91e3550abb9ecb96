"""export, load, backup and restore: whole scopes out and in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.ledger import backlog, conversations, derivation, documents, turns
from scrubjay.engine.memories import receipts, retention
from scrubjay.engine.scope import lifecycle, user_keys
from scrubjay.engine.scope.audit_trail import LOST
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.open_scope import OpenScope, day, slots
from scrubjay.engine.scope.scope_keys import LOOKUP, USER_HELD
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import changes, living
from scrubjay.engine.transfer import bundle
from scrubjay.guard.admission import admit
from scrubjay.model.conversations import Entry
from scrubjay.model.documents import Document
from scrubjay.model.errors import (
    Conflict,
    Destroyed,
    Forbidden,
    InvalidRequest,
    KeyMissing,
    SealBroken,
    WrongKey,
)
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor, lowest
from scrubjay.model.requests import Caller, Export, Load, Restore
from scrubjay.model.results import BackedUp, Exported, Loaded
from scrubjay.model.rows import BackupEntry, CatalogEntry, Collection, Due, Row
from scrubjay.model.scope import Scope
from scrubjay.model.text import key_name
from scrubjay.model.turns import Turn
from scrubjay.model.user_keys import OPEN_SECONDS
from scrubjay.ports import Deliver, Failpoint, Tx, View
from scrubjay.vault import KEY_BYTES, SALT_BYTES, Mac, Purpose

_ALL = 2**31
_FEW = 16
"""Rows that are held at a time while a file is written."""
Spoken = TypeVar("Spoken", Entry, Document)
Held = TypeVar("Held")


Form = Callable[[bundle.Content], Iterator[bytes]]
"""What makes the pieces of a file."""


def export(
    opened: OpenScope,
    request: Export,
    actor: Actor,
    *,
    deliver: Deliver | None = None,
    form: Form | None = None,
) -> Exported:
    """Every memory that is not erased, superseded ones too, as JSON or as a sealed bundle.

    With `where`, those memories and turns that have the metadata. `deliver` gets the file in
    pieces, from one consistent view; without it the file is in the answer, whole. `form` makes
    the pieces of a plain file in another form than ours.
    """
    random, kept = opened.ports.clock.random, list[bytes]()
    key, salted = random(KEY_BYTES), None
    if request.sealed and request.passphrase is not None:
        salted = bundle.SaltedCost(salt=random(SALT_BYTES).hex())
        key = salted.key_from(request.passphrase)

    def hold(pieces: Iterator[bytes]) -> None:
        kept[:] = pieces

    def hand_over(view: View) -> int:
        content = _collect(opened, view, request)
        pieces = (form or bundle.json_pieces)(content)
        if request.sealed:
            name = random(16).hex()
            pieces = bundle.sealed_pieces(content, name=name, key=key, random=random, salted=salted)
        (deliver or hold)(pieces)
        return len(content.memories)

    number = opened.read(hand_over)
    opened.note_read("export", actor)
    opened.flush_reads()
    shown = bundle.print_key(key) if request.sealed and salted is None else None
    return Exported(content=b"".join(kept), memories=number, key=shown)


class _Opened(Sequence[Held]):
    """Rows of one view as values, each decrypted when it is looked at and not held."""

    def __init__(
        self, view: View, collection: Collection, ids: Sequence[bytes], read: Callable[[Row], Held]
    ) -> None:
        self._view = view
        self._collection = collection
        self._ids = ids
        self._read = read

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, at: Any) -> Any:
        if (row := living(self._view, self._collection, self._ids[at])) is None:
            raise SealBroken("A row was erased while it was read.")  # the read begins again
        return self._read(row)


def _collect(opened: OpenScope, view: View, request: Export) -> bundle.Content:
    """Content of a file, decrypted on access: only the ids of the rows are held in memory."""

    def held(
        collection: Collection,
        read: Callable[[Row], Held],
        place: Callable[[Row], Any] = lambda row: row.born,
        *,
        wanted: Callable[[Row], bool] = lambda _: True,
    ) -> _Opened[Held]:
        rows = changes(view, collection, page=_FEW)
        found = sorted((place(row), row.id) for row in rows if not row.erased and wanted(row))
        return _Opened(view, collection, [row_id for _, row_id in found], read)

    def asked_for(read: Callable[[Row], Memory | Turn]) -> Callable[[Row], bool]:
        return lambda row: not request.where or request.holds(read(row))

    def entry(row: Row) -> bool:
        return not request.where and not conversations.is_record(row)

    def record(row: Row) -> bool:  # a filter is about memories and turns
        return not request.where and conversations.is_record(row)

    def said_at(row: Row) -> tuple[int, int]:
        return opened.unseal_turn(row).place

    return bundle.Content(
        scope=opened.scope,
        made_at=opened.ports.clock.now().isoformat(),
        memories=held(Collection.MEMORY, opened.unseal, wanted=asked_for(opened.unseal)),
        turns=held(
            Collection.TURN, opened.unseal_turn, said_at, wanted=asked_for(opened.unseal_turn)
        ),
        conversations=held(
            conversations.HOME, partial(conversations.record_of, opened), wanted=record
        ),
        entries=held(conversations.HOME, partial(conversations.entry_of, opened), wanted=entry),
        documents=held(
            documents.HOME,
            lambda row: replace(documents.document_of(opened, row), revision=""),
            wanted=lambda _: not request.where,
        ),
    )


def load(opened: OpenScope, request: Load, caller: Caller) -> Loaded:
    """Add what an export holds; all of it or, if it is damaged anywhere, nothing.

    Nothing is more trusted than the ceiling of the caller; None is the owner's own,
    for whom it stays as it was.
    """
    content = bundle.read(request.content, request.key, request.passphrase)
    memories = tuple(_admitted(opened, memory) for memory in content.memories)
    said = tuple(admit(turn, opened.ports.policy.placeholder)[0] for turn in content.turns)

    def store(tx: Tx) -> Loaded:
        loaded = _merge(opened, tx, memories, said, caller, written=content.documents)
        _merge_later(opened, tx, content, caller, clean=True)
        opened.trail.record(tx, "load", caller.actor, number=loaded.loaded)
        return loaded

    loaded = opened.write(store)
    opened.ports.reach(Failpoint.LOAD_COMMITTED)
    return loaded


def _admitted(opened: OpenScope, memory: Memory) -> Memory:
    """The memory as it may be written here; an approval counts only if it was given here."""
    memory, _ = admit(memory, opened.ports.policy.placeholder)
    if memory.approved is not None and memory.approved != opened.sign(memory):
        memory = replace(memory, approved=None)
    return memory


def _merge(
    opened: OpenScope,
    tx: Tx,
    memories: Iterable[Memory],
    said: Iterable[Turn],
    caller: Caller,
    *,
    written: Iterable[Document],
) -> Loaded:
    """Write the memories that are new or newer here; never one that was forgotten here.

    Those that tell a document that stays out, stay out with it.
    """
    if (ceiling := caller.ceiling) is not None:
        memories = [replace(one, origin=lowest((ceiling, one.origin))) for one in memories]
        said = [replace(one, origin=lowest((ceiling, one.origin))) for one in said]
    memories = list(memories)
    if caller.key is not None:  # whatever key the file names
        said = [replace(one, key_id=caller.key) for one in said]
        stamped = [replace(one.provenance, key_id=caller.key) for one in memories]
        pairs = zip(memories, stamped, strict=True)
        memories = [replace(one, provenance=provenance) for one, provenance in pairs]
    names = {memory.id: opened.row_id(memory.id) for memory in memories}
    keys = {memory.id: opened.key_hash(memory.key) for memory in memories}
    buried = tx.buried([*names.values(), *(key for key in keys.values() if key)])
    left_out = documents.left_out(opened, tx, written)
    loaded = known = forgotten = 0
    for memory in memories:
        row = tx.row(Collection.MEMORY, names[memory.id])
        stays_out = bool(memory.sources) and left_out.issuperset(memory.sources)
        if names[memory.id] in buried or keys[memory.id] in buried:
            forgotten += 1
        elif stays_out or (row is not None and (row.erased or row.version >= memory.version)):
            known += 1
        else:
            told = _in_line(opened, tx, memory, trusted=caller.ceiling is None)
            if told.supersedes is None and derivation.outdated(opened, tx, told):
                told = replace(told, retired_at=told.retired_at or opened.moment())
            row = opened.put(tx, told)
            if told.hidden:
                derivation.hide_new(opened, tx, told)
            for source in memory.sources:
                tx.link(opened.row_id(source), row.id)
            loaded += 1
    turns.load(opened, tx, said, memories)
    return Loaded(loaded=loaded, known=known, forgotten=forgotten)


def _merge_later(
    opened: OpenScope, tx: Tx, content: bundle.Content, caller: Caller, *, clean: bool
) -> None:
    """Write the conversations and documents that are new here; never what was forgotten here."""

    def as_ours(one: Spoken) -> Spoken:
        if clean:
            one, _ = admit(one, opened.ports.policy.placeholder)
        if caller.ceiling is not None:
            one = replace(one, origin=lowest((caller.ceiling, one.origin)))
        return one if caller.key is None else replace(one, key_id=caller.key)

    talks = list(content.conversations)
    if clean:
        talks = [admit(one, opened.ports.policy.placeholder)[0] for one in talks]
    conversations.load(opened, tx, talks, list(map(as_ours, content.entries)))
    documents.load(opened, tx, map(as_ours, content.documents))


def _in_line(opened: OpenScope, tx: Tx, memory: Memory, *, trusted: bool) -> Memory:
    """The memory as it fits the versions that are here.

    A chain that would fork is refused; so is, unless the file is `trusted`, a memory in the place
    of one that is trusted more.
    """
    here, before = opened.peek(tx, memory.id), opened.peek(tx, memory.supersedes)
    for replaced in (here, before):
        if replaced and not trusted and replaced.origin.trust > memory.origin.trust:
            raise Forbidden(
                f"A memory of origin {replaced.origin} cannot be replaced by origin "
                f"{memory.origin}.",
                hint="Nothing was loaded. Use a key with an origin of the same trust.",
            )
    if here is not None and here.superseded_by is not None:
        _check_successor(here, memory.superseded_by or here.superseded_by)
        memory = replace(
            memory,
            superseded_by=here.superseded_by,
            retired_at=memory.retired_at or here.retired_at,
        )
    if before is not None and before.superseded_by is None:
        retired = replace(before, superseded_by=memory.id, retired_at=memory.recorded_at)
        opened.put(tx, replace(retired, version=before.version + 1))
        values = ScopeValues(opened, tx)
        derivation.refresh(opened, tx, values, retired)
        values.write(tx)
    elif before is not None:
        _check_successor(before, memory.id)
    return memory


def _check_successor(old: Memory, successor: str) -> None:
    if old.superseded_by != successor:
        raise Conflict(
            f"{old.id} was superseded by {successor}, but here by {old.superseded_by}.",
            hint="Nothing was loaded. Forget one of the two, or load into another scope.",
        )


# -- backup and restore ---------------------------------------------------------------------


def backup(
    opened: OpenScope,
    *,
    days: int,
    deliver: Callable[[bytes], None] = lambda _: None,
    actor: Actor = Actor.USER,
) -> tuple[bytes, BackedUp]:
    """A sealed copy of the scope, with all that a restore on another machine needs.

    Its key is kept in the keyring until it expires, and in the receipt for safekeeping; of a scope
    that its user holds only in the receipt, since the host must not open it alone. It is
    noted before `deliver` gets it, so that no erasure meanwhile overlooks it; if that fails,
    there is no backup.
    """
    ports, random = opened.ports, opened.ports.clock.random
    key, name = random(KEY_BYTES), random(16).hex()

    def sealed(view: View) -> tuple[bytes, int]:
        content, recalled = _collect(opened, view, Export()), opened.counters.every(view)
        counted = {
            one.id: recalled[one.number] for one in content.memories if one.number in recalled
        }
        content = replace(
            content,
            counters=counted,
            lookup=ports.keyring.get(opened.address, LOOKUP, opened.scope),
            tombstones=tuple(view.tombstones()),
            audit=tuple((row.cell, row.mac) for row in view.audit(0, _ALL)),
            extraction=backlog.carried(opened, view),
            retention=None if (limits := opened.limits.read(view)) is None else limits.policy,
            user=user_keys.carried(opened, view),
        )
        raw = bundle.seal(content, name=name, key=key, random=random)
        return raw, len(content.memories)

    opened.counters.flush()
    raw, memories = opened.read(sealed)
    if not opened.user_held:
        ports.keyring.add(opened.address, f"backup.{name}", key, opened.scope)
    expires = day(ports.clock.now() + timedelta(days=days))
    entry = BackupEntry(address=opened.address, name=name, expires=expires)
    ports.store.catalog.add_backup(entry)
    try:
        deliver(raw)
    except BaseException:  # seam: whatever kept it from being delivered, it does not exist
        strike(ports, entry)
        raise
    opened.note_read("backup", actor)
    opened.flush_reads()
    made = BackedUp(
        name=name,
        memories=memories,
        key=bundle.print_key(key),
        expires=receipts.as_date(expires),
    )
    return raw, made


def strike(ports: Ports, backup: BackupEntry) -> None:
    """Delete the key of a backup and its note; without its printed key it is noise."""
    ports.keyring.delete(backup.address, f"backup.{backup.name}")
    ports.store.catalog.remove_backup(backup)


def restore(
    ports: Ports, scope: Scope, request: Restore, caller: Caller, half: bytes | None = None
) -> Loaded:
    """Merge a backup into its scope, made anew if its data is gone.

    The catalog's tombstones are applied in the same transaction, so that nothing forgotten
    since the backup was made is ever to be seen again. Who has the key of a backup can make one
    up: nothing in it is more trusted than the caller's ceiling, unless that is None, for the owner.
    A scope that its user holds needs the user's `half`, or what the user has at hand.
    """
    address, entry = lifecycle.locate(ports, scope, make=True)
    raw, key, passphrase, anew = request.content, request.key, request.passphrase, request.anew
    name = bundle.sealed_name(raw)
    try:
        given = key is not None or passphrase is not None
        secret = None if given else ports.keyring.get(address, f"backup.{name}", scope)
    except (KeyMissing, InvalidRequest) as error:
        # One that is noted here should be in the keyring; of any other the caller has the key.
        known = any(one.name == name for one in ports.store.catalog.backups(address))
        raise (KeyMissing if known else WrongKey)(
            "The key of this backup is not in the keyring.",
            hint="Give the key printed when the backup was made (--key).",
        ) from error
    content = bundle.unseal(raw, secret or bundle.secret_of(raw, key, passphrase))
    if (lookup := content.lookup) is None:
        raise InvalidRequest(
            "That is an export, not a backup.", hint="Load it instead: `scrubjay import`."
        )
    if content.scope != scope:
        raise InvalidRequest(
            f"That is a backup of {content.scope}.",
            hint=f"To copy it into {scope}, load it: `scrubjay import`.",
        )
    if entry is not None and entry.destroyed and not anew:
        raise Destroyed(f"The scope {scope} was destroyed.")
    if entry is None or not (entry.destroyed or _is_usable(ports, address)):
        lifecycle.make(ports, scope, address, lookup)
    opened = lifecycle.open_scope(ports, scope, anew=anew, restoring=True)
    ports.reach(Failpoint.RESTORE_KEYS_ADDED)
    outside = _known_outside(opened, lookup)
    if half is not None:
        opened.keys.take_half(half, OPEN_SECONDS)
    else:
        user_keys.unlock_by_custody(opened, content.user)
    loaded = opened.write(
        lambda tx: _restore(opened, tx, content, outside, lookup=lookup, caller=caller),
        erasing=True,
    )
    ports.reach(Failpoint.RESTORE_COMMITTED)
    return loaded


def _is_usable(ports: Ports, address: str) -> bool:
    """Whether the scope's rows are there and not older than its keys.

    Old rows put back after a rotation have no key that opens them, and never will: only newer
    ones are in the keyring. They make room for what is restored.
    """
    if not ports.store.exists(address):
        return False
    with ports.store.read(address) as view:
        head = view.head()
    for collection in Collection:
        epochs, epoch = slots(ports, address, collection), head.at(collection).epoch
        if epoch not in epochs and any(later > epoch for later in epochs):
            ports.store.remove(address)
            return False
    return True


class KnownOutside(Struct, frozen=True, kw_only=True):
    """What keyring and catalog know of a scope, read before a restore's transaction begins.

    What others forget meanwhile has its tombstones in the file itself.
    """

    epochs: dict[Collection, int]
    """The latest epoch of each collection that has a key."""
    entry: CatalogEntry | None
    tombstones: frozenset[bytes]
    earlier_tombstones: frozenset[bytes]
    """Tombstones of earlier, destroyed lives of the scope."""
    same_lookup: bool
    """Whether the backup is of this life of the scope, and its keyed hashes are the same."""


def _known_outside(opened: OpenScope, lookup: bytes) -> KnownOutside:
    ports, catalog = opened.ports, opened.ports.store.catalog
    lives = lifecycle.lives(ports, opened.scope)[:-1]
    return KnownOutside(
        epochs={one: max(opened.slots(one), default=0) for one in Collection},
        entry=catalog.entry(opened.address),
        tombstones=catalog.tombstones(opened.address),
        earlier_tombstones=frozenset[bytes]().union(*map(catalog.tombstones, lives)),
        same_lookup=ports.keyring.get(opened.address, LOOKUP, opened.scope) == lookup,
    )


def _restore(
    opened: OpenScope,
    tx: Tx,
    content: bundle.Content,
    outside: KnownOutside,
    *,
    lookup: bytes,
    caller: Caller,
) -> Loaded:
    # A file that was lost and made again is at epoch 1. It goes on above the epochs it had:
    # receipts, and processes that had it open, know those numbers as the names of other keys.
    for collection, last in outside.epochs.items():
        if last > tx.head().at(collection).epoch:
            opened.raise_epoch(tx, collection, last + 1)
            opened.leave_due(tx, Due.ROTATE)
    if content.user is not None and tx.head().memory.epoch >= USER_HELD:
        user_keys.adopt(opened, tx, content.user)
    tx.bury(outside.tombstones)
    if outside.same_lookup:
        tx.bury(content.tombstones)
        if tx.head().audit_count == 0:
            for cell, mac in content.audit:
                tx.append_audit(cell, mac)
    # The trail itself says that events the catalog knows of were lost with the file.
    entry = outside.entry
    if entry and (entry.audit_count > tx.head().audit_count or opened.rolled_back):
        opened.trail.record(tx, LOST, Actor.SYSTEM, number=entry.audit_count)
    # The backup may be of an earlier life of the scope: what any of these forgot stays out.
    buried = outside.earlier_tombstones
    of_id = Mac(vault.derive(lookup, Purpose.ID, opened.scope))
    of_key = Mac(vault.derive(lookup, Purpose.KEY, opened.scope))
    memories = [
        memory
        for memory in content.memories
        if of_id.short(memory.id) not in buried
        and not (memory.key and of_key.short(key_name(memory.key)) in buried)
    ]
    left_out = len(content.memories) - len(memories)
    said = [turn for turn in content.turns if of_id.short(turn.id) not in buried]
    if caller.ceiling is not None:
        memories = [_admitted(opened, memory) for memory in memories]
    empty = not tx.head().turn.seq
    loaded = _merge(opened, tx, memories, said, caller, written=content.documents)
    later = {
        name: tuple(one for one in ones if of_id.short(one.id) not in buried)
        for name, ones in (
            ("conversations", content.conversations),
            ("entries", content.entries),
            ("documents", content.documents),
        )
    }
    rest = replace(content, **later)
    _merge_later(opened, tx, rest, caller, clean=caller.ceiling is not None)
    if content.counters and caller.ceiling is None:
        rows = {id: living(tx, Collection.MEMORY, opened.row_id(id)) for id in content.counters}
        counted = {row.born: content.counters[id] for id, row in rows.items() if row is not None}
        opened.counters.adopt(tx, counted)
    if content.extraction is not None:
        backlog.adopt(opened, tx, content.extraction, empty=empty)
    if content.retention is not None and caller.ceiling is None:
        retention.adopt(opened, tx, content.retention)
    opened.leave_due(tx, Due.PUSH)
    opened.trail.record(tx, "restore", caller.actor, number=loaded.loaded)
    return replace(loaded, forgotten=loaded.forgotten + left_out)
