"""export, load, backup and restore: whole scopes out and in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.ledger import backlog_transfer, turn_ledger, turns
from scrubjay.engine.memories import receipts
from scrubjay.engine.memories.targets import scan
from scrubjay.engine.scope import cells, due, lifecycle, rotate
from scrubjay.engine.scope.open_scope import LOOKUP, OpenScope, Ports, day, slots
from scrubjay.engine.transfer import audit, bundle
from scrubjay.guard.admission import admit, admit_turn
from scrubjay.model.errors import Conflict, Destroyed, Forbidden, InvalidRequest, KeyMissing
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.results import BackedUp, Loaded
from scrubjay.model.rows import BackupEntry, Collection, Due, Head
from scrubjay.model.scope import Scope
from scrubjay.model.text import key_name
from scrubjay.model.turns import Turn
from scrubjay.ports import Failpoint, Tx, View
from scrubjay.vault import KEY_BYTES, Mac, Purpose

Held = TypeVar("Held", Memory, Turn)


def lowered(held: Iterable[Held], most: Origin) -> tuple[Held, ...]:
    """The memories or turns, none of them more trusted than `most`."""
    return tuple(replace(one, origin=lowest((most, one.origin))) for one in held)


def check(here: Memory | None, memory: Memory) -> None:
    """Refuse to put a memory in the place of one that is trusted more."""
    if here is not None and here.origin.trust > memory.origin.trust:
        raise Forbidden(
            f"A memory of origin {here.origin} cannot be replaced by origin {memory.origin}.",
            hint="Nothing was loaded. Load it as somebody who is trusted as much.",
        )


_ALL = 2**31


class Exported(Struct, frozen=True, kw_only=True):
    """A scope as a file's bytes; `key` opens them if they are sealed."""

    content: bytes
    memories: int
    key: str | None = None


def export(opened: OpenScope, *, sealed: bool = False, actor: Actor = Actor.USER) -> Exported:
    """Every memory that is not erased, superseded ones too, as JSON or as a sealed bundle."""
    content = opened.read(lambda view: _collect(opened, view))
    opened.note_read("export", actor)
    opened.flush_reads()
    number = len(content.memories)
    if not sealed:
        return Exported(content=bundle.to_json(content), memories=number)
    random = opened.ports.clock.random
    key, name = random(KEY_BYTES), random(16).hex()
    raw = bundle.seal(content, name=name, key=key, random=random)
    return Exported(content=raw, memories=number, key=bundle.print_key(key))


def _collect(opened: OpenScope, view: View) -> bundle.Content:
    memories = sorted((m for _, m in scan(opened, view)), key=lambda memory: memory.number)
    said = sorted((t for _, t in turn_ledger.scan(opened, view)), key=lambda turn: turn.place)
    return bundle.Content(
        scope=opened.scope,
        made_at=opened.ports.clock.now().isoformat(),
        memories=tuple(memories),
        turns=tuple(said),
    )


def load(
    opened: OpenScope,
    raw: bytes,
    *,
    key: str | None = None,
    origin: Origin | None = None,
    actor: Actor = Actor.USER,
) -> Loaded:
    """Add what an export holds; all of it or, if it is damaged anywhere, nothing.

    Nothing is more trusted than `origin`, the channel it came in by; None is the owner's own,
    for whom it stays as it was.
    """
    content = _read(raw, key)
    memories = tuple(_admitted(opened, memory) for memory in content.memories)
    said = tuple(admit_turn(turn, opened.ports.policy.placeholder)[0] for turn in content.turns)

    def store(tx: Tx) -> Loaded:
        loaded = _merge(opened, tx, memories, said, origin)
        opened.trail.record(tx, "load", actor, number=loaded.loaded)
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


def _read(raw: bytes, key: str | None) -> bundle.Content:
    if bundle.name_of(raw) is None:
        return bundle.from_json(raw)
    if key is None:
        raise KeyMissing(
            "The bundle is sealed and no key was given.",
            hint="Give the key printed when it was made.",
        )
    return bundle.unseal(raw, bundle.read_key(key))


def _merge(
    opened: OpenScope,
    tx: Tx,
    memories: tuple[Memory, ...],
    said: tuple[Turn, ...],
    origin: Origin | None = None,
) -> Loaded:
    """Write the memories that are new or newer here; never one that was forgotten here."""
    if origin is not None:
        memories, said = lowered(memories, origin), lowered(said, origin)
    names = {memory.id: opened.row_id(memory.id) for memory in memories}
    keys = {memory.id: opened.key_hash(memory.key) for memory in memories}
    buried = tx.buried([*names.values(), *(key for key in keys.values() if key)])
    loaded = known = forgotten = 0
    for memory in memories:
        if names[memory.id] in buried or keys[memory.id] in buried:
            forgotten += 1
        elif _is_known(tx, names[memory.id], memory):
            known += 1
        else:
            if origin is not None:
                for replaced in (memory.id, memory.supersedes):
                    check(_peek(opened, tx, replaced), memory)
            _write(opened, tx, _in_line(opened, tx, memory))
            loaded += 1
    turns.load(opened, tx, said, memories)
    return Loaded(loaded=loaded, known=known, forgotten=forgotten)


def _is_known(tx: Tx, row_id: bytes, memory: Memory) -> bool:
    row = tx.row(Collection.MEMORY, row_id)
    return row is not None and (row.erased or row.version >= memory.version)


def _in_line(opened: OpenScope, tx: Tx, memory: Memory) -> Memory:
    """The memory as it fits the versions that are here; a chain that would fork is refused."""
    here = _peek(opened, tx, memory.id)
    if here is not None and here.superseded_by is not None:
        _check_successor(here, memory.superseded_by or here.superseded_by)
        memory = replace(
            memory,
            superseded_by=here.superseded_by,
            retired_at=memory.retired_at or here.retired_at,
        )
    before = _peek(opened, tx, memory.supersedes)
    if before is not None and before.superseded_by is None:
        retired = replace(before, superseded_by=memory.id, retired_at=memory.recorded_at)
        cells.put(opened, tx, replace(retired, version=before.version + 1))
    elif before is not None:
        _check_successor(before, memory.id)
    return memory


def _peek(opened: OpenScope, tx: Tx, public_id: str | None) -> Memory | None:
    row = None if public_id is None else tx.row(Collection.MEMORY, opened.row_id(public_id))
    return None if row is None or row.erased else opened.unseal(row)


def _check_successor(old: Memory, successor: str) -> None:
    if old.superseded_by != successor:
        raise Conflict(
            f"{old.id} was superseded by {successor}, but here by {old.superseded_by}.",
            hint="Nothing was loaded. Forget one of the two, or load into another scope.",
        )


def _write(opened: OpenScope, tx: Tx, memory: Memory) -> None:
    row = cells.put(opened, tx, memory)
    for source in memory.sources:
        tx.link(opened.row_id(source), row.id)


# -- backup and restore ---------------------------------------------------------------------


def backup(
    opened: OpenScope,
    *,
    days: int,
    deliver: Callable[[bytes], None] = lambda _: None,
    actor: Actor = Actor.USER,
) -> tuple[bytes, BackedUp]:
    """A sealed copy of the scope, with all that a restore on another machine needs.

    Its key is kept in the keyring until it expires, and in the receipt for safekeeping. It is
    noted before `deliver` gets it, so that no erasure meanwhile overlooks it; if that fails,
    there is no backup.
    """
    ports, random = opened.ports, opened.ports.clock.random
    key, name = random(KEY_BYTES), random(16).hex()
    content = opened.read(lambda view: _collect_all(opened, view))
    raw = bundle.seal(content, name=name, key=key, random=random)
    ports.keyring.add(opened.address, f"backup.{name}", key)
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
        memories=len(content.memories),
        key=bundle.print_key(key),
        expires=receipts.as_date(expires),
    )
    return raw, made


def strike(ports: Ports, backup: BackupEntry) -> None:
    """Delete the key of a backup and its note; without its printed key it is noise."""
    ports.keyring.delete(backup.address, f"backup.{backup.name}")
    ports.store.catalog.remove_backup(backup)


def _collect_all(opened: OpenScope, view: View) -> bundle.Content:
    return dataclasses.replace(
        _collect(opened, view),
        lookup=opened.ports.keyring.get(opened.address, LOOKUP),
        tombstones=tuple(view.tombstones()),
        audit=tuple((row.cell, row.mac) for row in view.audit(0, _ALL)),
        extraction=backlog_transfer.carried(opened, view),
    )


def restore(
    ports: Ports,
    scope: Scope,
    raw: bytes,
    *,
    key: str | None = None,
    anew: bool = False,
    origin: Origin | None = None,
    actor: Actor = Actor.USER,
) -> Loaded:
    """Merge a backup into its scope, made anew if its data is gone.

    The catalog's tombstones are applied in the same transaction, so that nothing forgotten
    since the backup was made is ever to be seen again. Who has the key of a backup can make one
    up: nothing in it is more trusted than `origin`, unless that is None, for the owner.
    """
    address, entry = lifecycle.locate(ports, scope)
    content = bundle.unseal(raw, _backup_key(ports, address, raw, key))
    if content.lookup is None:
        raise InvalidRequest("That is an export, not a backup.", hint="Load it instead.")
    if content.scope != scope:
        raise InvalidRequest(
            f"That is a backup of {content.scope}.", hint=f"To copy it into {scope}, load it."
        )
    if entry is not None and entry.destroyed and not anew:
        raise Destroyed(f"The scope {scope} was destroyed.")
    if entry is None or not (entry.destroyed or _is_usable(ports, address)):
        lifecycle.make(ports, scope, address, content.lookup)
    opened = lifecycle.open_scope(ports, scope, anew=anew, restoring=True)
    ports.reach(Failpoint.RESTORE_KEYS_ADDED)
    loaded = opened.write(lambda tx: _restore(opened, tx, content, origin, actor), erasing=True)
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
    outdated = [one for one in Collection if _is_outdated(ports, address, one, head)]
    if outdated:
        ports.store.remove(address)
    return not outdated


def _is_outdated(ports: Ports, address: str, collection: Collection, head: Head) -> bool:
    epochs = slots(ports, address, collection)
    epoch = head.at(collection).epoch
    return epoch not in epochs and any(later > epoch for later in epochs)


def _backup_key(ports: Ports, address: str, raw: bytes, key: str | None) -> bytes:
    name = bundle.sealed_name(raw)
    if key is not None:
        return bundle.read_key(key)
    try:
        return ports.keyring.get(address, f"backup.{name}")
    except (KeyMissing, InvalidRequest) as error:
        raise KeyMissing(
            "The key of this backup is not in the keyring.",
            hint="Give the key printed when the backup was made.",
        ) from error


def _restore(
    opened: OpenScope, tx: Tx, content: bundle.Content, origin: Origin | None, actor: Actor
) -> Loaded:
    _pass_lost_epochs(opened, tx)
    tx.bury(opened.ports.store.catalog.tombstones(opened.address))
    if opened.ports.keyring.get(opened.address, LOOKUP) == content.lookup:
        tx.bury(content.tombstones)
        if tx.head().audit_count == 0:
            for cell, mac in content.audit:
                tx.append_audit(cell, mac)
            _own_up(opened, tx)
    memories = tuple(_not_forgotten_before(opened, content))
    if origin is not None:
        memories = tuple(_admitted(opened, memory) for memory in memories)
    empty = not tx.head().turn.seq
    said = tuple(_turns_not_forgotten(opened, content))
    loaded = _merge(opened, tx, memories, said, origin)
    if content.extraction is not None:
        backlog_transfer.adopt(opened, tx, content.extraction, empty=empty)
    due.leave(opened, tx, Due.PUSH)
    opened.trail.record(tx, "restore", actor, number=loaded.loaded)
    left_out = len(content.memories) - len(memories)
    return replace(loaded, forgotten=loaded.forgotten + left_out)


def _own_up(opened: OpenScope, tx: Tx) -> None:
    """Note in the trail itself that events the catalog knows of were lost with the file."""
    entry = opened.ports.store.catalog.entry(opened.address)
    if entry is not None and entry.audit_count > tx.head().audit_count:
        opened.trail.record(tx, audit.LOST, Actor.SYSTEM, number=entry.audit_count)


def _not_forgotten_before(opened: OpenScope, content: bundle.Content) -> Iterator[Memory]:
    """The memories that no earlier life of the scope forgot; the backup may be of one of these."""
    assert content.lookup is not None
    buried = _buried_before(opened)
    of_id = Mac(vault.derive(content.lookup, Purpose.ID, opened.scope))
    of_key = Mac(vault.derive(content.lookup, Purpose.KEY, opened.scope))
    for memory in content.memories:
        names = {of_id.short(memory.id)}
        if memory.key:
            names.add(of_key.short(key_name(memory.key)))
        if buried.isdisjoint(names):
            yield memory


def _buried_before(opened: OpenScope) -> frozenset[bytes]:
    lives = lifecycle.earlier_lives(opened.ports, opened.scope)
    return frozenset[bytes]().union(*map(opened.ports.store.catalog.tombstones, lives))


def _turns_not_forgotten(opened: OpenScope, content: bundle.Content) -> Iterator[Turn]:
    """The same for turns."""
    assert content.lookup is not None
    buried = _buried_before(opened)
    of_id = Mac(vault.derive(content.lookup, Purpose.ID, opened.scope))
    return (turn for turn in content.turns if of_id.short(turn.id) not in buried)


def _pass_lost_epochs(opened: OpenScope, tx: Tx) -> None:
    """Go on above the epochs of a file that was lost and made again, at epoch 1.

    Receipts, and processes that had it open, know those numbers as the names of other keys.
    """
    for collection in Collection:
        last = max(opened.slots(collection))
        if last > tx.head().at(collection).epoch:
            rotate.raise_epoch(opened, tx, collection, last + 1)
            due.leave(opened, tx, Due.ROTATE)
