"""Moving scopes to another store, sealed as they are: rows in their order, wrapped keys, blobs.

copied while others write → the head locked: what has changed since is copied and compared, slots
sealed under a key of chance → that head says that the scope was moved, and the key → the copy is
opened: it has arrived. A process may die at any arrow. Until the head says so the scope is where
it was, and nobody can open the copy; from then on whoever looks for the scope lets it arrive.
Between the databases of one installation that head stays, otherwise all is removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.keyring import INSTALLATION
from scrubjay.engine.scope.views import changes
from scrubjay.model.errors import (
    Conflict,
    Destroyed,
    InvalidRequest,
    NotFound,
    SealBroken,
    StoreError,
)
from scrubjay.model.results import Migrated, MovedScope
from scrubjay.model.rows import (
    COPIED,
    MOVED,
    OPENING,
    AuditRow,
    Collection,
    Due,
    Freeze,
    Head,
)
from scrubjay.ports import (
    Blobs,
    Catalog,
    Progress,
    Shards,
    Slots,
    Store,
    SystemClock,
    Tx,
    View,
    commit,
    every_entry,
    no_progress,
)

_PAGE = 500
_RANDOM: Final = SystemClock().random
Step = Callable[[str], None]
"""Told what was reached: `copied`, `verified`, `switched`, `arrived`, `noted` or `removed`."""


def _pass(_: str) -> None:
    """Go on."""


def move(
    source: Store,
    target: Store,
    address: str,
    *,
    to: str,
    here: str = "",
    apart: tuple[Slots, Slots] | None = None,
    blobs: tuple[Blobs, Blobs] | None = None,
    random: Callable[[int], bytes] = _RANDOM,
    step: Step = _pass,
) -> MovedScope:
    """Move a scope to another store; writers wait only while what has changed is copied.

    `to` is what is left behind as its name, `here` what a copy says until it has arrived. `apart`
    are the places of the slots where they do not lie beside the rows in both stores; then nobody
    may use what is left behind any more.
    """
    if not source.exists(address):
        with target.read(address) as copy:
            return digest(copy, address)
    target.create(address)
    with target.read(address) as found:
        before = found.value(OPENING)
    with source.read(address) as view:
        _check_goal(view, to)
        if Due.MOVED not in view.head().due:
            commit(target, address, lambda tx: _mirror_ahead(view, tx, before, here))
            _copy_blobs(blobs, address)
    step("copied")

    def switch(tx: Tx) -> bytes:
        _check_goal(tx, to)
        if Due.MOVED in tx.head().due:  # it was killed right after
            return tx.value(OPENING) or b""
        if apart is None and tx.head().destroyed:
            raise Destroyed("The scope was destroyed while it was moved.")
        slots = _locked_slots(source, tx) if apart is None else apart[0].read(address)
        key, told = random(vault.KEY_BYTES), digest(tx, address)
        # Sealed, so that a copy that never arrives keeps no key which is deleted here later.
        packed = msgspec.msgpack.encode(slots if apart is None else None)
        place = {"address": address, "purpose": MOVED}
        sealed = vault.wrap(key, packed, nonce=bytes(vault.NONCE_BYTES), **place)

        def copied(far: Tx) -> None:
            _check_free(far)
            mirror(tx, far)
            if digest(far, address) != told:
                raise StoreError("The copy of a scope is not what was copied.")
            far.set_value(COPIED, sealed)
            _be_away(far, here)

        commit(target, address, copied)
        if apart is not None:
            put_slots(apart[1], address, slots)
        _copy_blobs(blobs, address)
        step("verified")
        frozen = tx.head().frozen if apart is None else Freeze.ALL
        left = replace(tx.head(), due=Due.MOVED, frozen=frozen)
        tx.truncate()
        for purpose in slots if apart is None else ():
            tx.set_slot(purpose, None)
        tx.set_value(MOVED, to.encode())
        tx.set_value(OPENING, key)
        tx.set_head(left)
        return key

    key = commit(source, address, switch)
    step("switched")
    arrive(target, address, key)
    step("arrived")
    with target.read(address) as copy:
        return digest(copy, address)


def arrive(target: Store, address: str, key: bytes) -> None:
    """Let a copy be the scope; one that has arrived, or is another move's, stays as it is."""
    with target.read(address) as view:
        if view.value(COPIED) is None:
            return

    def open_it(tx: Tx) -> None:
        try:
            packed = vault.unwrap(key, tx.value(COPIED) or b"", address=address, purpose=MOVED)
        except SealBroken:
            return
        slots = msgspec.msgpack.decode(packed, type=dict[str, bytes] | None)
        for purpose in () if slots is None else {*slots, *tx.slots()}:
            tx.set_slot(purpose, slots.get(purpose))
        for name in (MOVED, COPIED):
            tx.set_value(name, None)
        tx.place_head(replace(tx.head(), due=tx.head().due & ~Due.MOVED))

    commit(target, address, open_it)


def _check_goal(view: View, to: str) -> None:
    """Conflict if it is being moved somewhere else."""
    if Due.MOVED in view.head().due and view.value(MOVED) != to.encode():
        raise Conflict("The scope was moved to another store already.")


def _check_free(target: Tx) -> None:
    """Conflict if a scope is there: not a copy, not what a move left, not an empty one."""
    if not _is_free(target.head()):
        raise Conflict("The scope is in that store already.")


def _is_free(head: Head) -> bool:
    return Due.MOVED in head.due or head == Head()


def _be_away(target: Tx, at: str) -> None:
    """Say that the scope is not here; nobody writes to a copy."""
    target.set_value(MOVED, at.encode())
    target.place_head(replace(target.head(), due=target.head().due | Due.MOVED))


def _locked_slots(source: Store, tx: Tx) -> Mapping[str, bytes]:
    """The slots beside the rows, while nobody adds one."""
    assert source.slots is not None
    tx.set_slot(MOVED, None)  # waits for whoever adds one just now, and locks them out
    return dict(tx.slots())


def put_slots(place: Slots, address: str, slots: Mapping[str, bytes]) -> None:
    """Keep slots as they are in another place, in place of those it has."""
    held = place.read(address)
    place.delete(address, held.keys() - slots.keys())
    for purpose, slot in slots.items():
        kept = place.add(address, purpose, lambda one=slot: one)  # type: ignore[misc]
        if kept != slot:
            place.exchange(address, purpose, kept, slot)


def _copy_blobs(places: tuple[Blobs, Blobs] | None, address: str) -> None:
    """Make the blobs of a scope there what they are here: a name has one content."""
    if places is None:
        return
    here, there = places
    wanted, held = set(here.names(address)), set(there.names(address))
    for name in sorted(held - wanted):
        there.delete(address, name)
    for name in sorted(wanted - held):
        try:
            there.put(address, name, here.get(address, name))
        except NotFound:  # it was deleted just now
            continue


def mirror(source: View, target: Tx) -> None:
    """Make a scope of the other store what it is here; what is alike already stays."""
    if not _continues(source, target.head()):
        target.truncate()
        target.place_head(Head())
    for collection in Collection:
        _mirror_rows(source, target, collection)
    for name in {*source.value_names(), *target.value_names()}:
        if (cell := source.value(name)) != target.value(name):
            target.set_value(name, cell)
    links, there = set(source.links()), set(target.links())
    for link in there - links:
        target.unlink(*link)
    for link in links - there:
        target.link(*link)
    target.bury(set(source.tombstones()).difference(target.tombstones()))
    for page in _audit_pages(source, target.head().audit_count):
        target.place_audit(page)
    target.place_head(source.head())


def _mirror_ahead(source: View, target: Tx, before: bytes | None, here: str) -> None:
    """Mirror a scope that others still write to, and move; the copy cannot arrive.

    `before` is the key of what an earlier move left there, as it was before the scope was seen in
    `source`: the scope that it opens has arrived by then. Another one may be needed.
    """
    _check_free(target)
    if target.value(COPIED) is not None:  # complete: it may be about to arrive
        return
    if (key := target.value(OPENING)) != before:
        raise Conflict("The scope was moved by somebody else just now; look where it is.")
    if key is not None:  # a head without its rows
        target.truncate()
        target.place_head(Head())
    mirror(source, target)
    _be_away(target, here)


def _mirror_rows(source: View, target: Tx, collection: Collection) -> None:
    ids = [row.id for row in changes(target, collection, page=_PAGE)]
    for at in range(0, len(ids), _PAGE):
        page = ids[at : at + _PAGE]
        if gone := set(page).difference(source.rows(collection, page)):
            target.place(collection, [], gone)
    after = 0
    while rows := source.changes(collection, after, _PAGE):
        held = target.rows(collection, [row.id for row in rows])
        if changed := [row for row in rows if held.get(row.id) != row]:
            target.place(collection, changed, [])
        after = rows[-1].seq


def _continues(source: View, there: Head) -> bool:
    """Whether the audit trail of the copy is the beginning of this one."""
    if not there.audit_count:
        return True
    last = source.audit(there.audit_count - 1, 1)
    return [(row.count, row.mac) for row in last] == [(there.audit_count, there.audit_mac)]


def _audit_pages(view: View, after: int) -> Iterator[list[AuditRow]]:
    while page := list(view.audit(after, _PAGE)):
        yield page
        after = page[-1].count


def digest(view: View, address: str) -> MovedScope:
    """What a scope is made of: how many rows, and the hash of everything in it."""
    hashed, rows = hashlib.sha256(), 0
    for collection in Collection:
        for row in changes(view, collection, page=_PAGE):
            hashed.update(msgspec.msgpack.encode(row))
            rows += 1
    for name in view.value_names():
        hashed.update(msgspec.msgpack.encode((name, view.value(name))))
    hashed.update(msgspec.msgpack.encode((sorted(view.links()), sorted(view.tombstones()))))
    for page in _audit_pages(view, 0):
        hashed.update(msgspec.msgpack.encode(page))
    head = view.head()
    hashed.update(msgspec.msgpack.encode(head))
    return MovedScope(address=address, rows=rows, audit=head.audit_count, digest=hashed.hexdigest())


def sharded(store: Store) -> Shards:
    """The store as one over several; InvalidRequest if there is only one."""
    if not isinstance(store, Shards):
        raise InvalidRequest(
            "There is one database only.", hint="Name others by `shards`: name=postgres://…"
        )
    return store


def move_shard(
    shards: Shards,
    address: str,
    to: str,
    *,
    random: Callable[[int], bytes] = _RANDOM,
    step: Step = _pass,
) -> MovedScope:
    """Move a scope to the database of another name.

    A head that says so stays behind: without it, a node that knows the place of before would write
    into the empty scope that a move back begins with.
    """
    target, place = shards.named(to), shards.find(address)
    if place == to:
        with target.read(address) as view:
            return digest(view, address)
    source = shards.named(place)
    try:
        moved = move(source, target, address, to=to, here=place, random=random, step=step)
    except (NotFound, Destroyed):
        with suppress(NotFound):
            if _is_free(target.head(address)):
                target.remove(address)  # a copy of what was destroyed meanwhile
        raise
    shards.replace_place(address, to)
    step("noted")
    return moved


# -- a whole installation ----------------------------------------------------------------------


def check_target(source: Ports, target: Ports) -> None:
    """Conflict if another installation's scopes are there, and whatever a store refuses with."""
    here, there = (one.keyring.slots.read(INSTALLATION.address) for one in (source, target))
    if here and there and here != there:
        raise Conflict(
            "The other store has another installation's scopes.", hint="Name an empty database."
        )
    target.store.catalog.entries(limit=1)


def migrate(
    source: Ports,
    target: Ports,
    *,
    to: str,
    blobs_too: bool,
    progress: Progress = no_progress,
    step: Step = _pass,
) -> Migrated:
    """Move every scope with its keys, blobs, tombstones and receipts; it may be begun again."""
    here, there = source.keyring.slots, target.keyring.slots
    blobs = (source.blobs, target.blobs) if blobs_too else None
    if installed := here.read(INSTALLATION.address):
        put_slots(there, INSTALLATION.address, installed)
    _copy_blobs(blobs, INSTALLATION.address)
    copy_catalog(source.store.catalog, target.store.catalog)
    entries, moved = list(every_entry(target.store.catalog)), list[MovedScope]()
    for number, entry in enumerate(entries):
        address = entry.address
        if source.store.exists(address) or target.store.exists(address):
            told = move(
                source.store, target.store, address,
                to=to, apart=(here, there), blobs=blobs, random=source.clock.random, step=step,
            )  # fmt: skip
            moved.append(told)
            late = here.read(address)  # one that was added while the head was being locked
            put_slots(there, address, {**there.read(address), **late})
            here.remove(address)
            source.store.remove(address)
            if blobs is not None:
                blobs[0].remove(address)
            step("removed")
        elif slots := here.read(address):  # a destroy that was cut off
            put_slots(there, address, slots)
        progress(number + 1, len(entries))
    copy_catalog(source.store.catalog, target.store.catalog)
    here.remove(INSTALLATION.address)
    return Migrated(to=to, scopes=tuple(moved))


def copy_catalog(source: Catalog, target: Catalog) -> None:
    """Make another catalog know what this one does; what it knows already stays."""
    for entry in every_entry(source):
        address = entry.address
        target.enroll(entry)
        if entry.destroyed:
            target.mark_destroyed(address)
        target.note_audit(address, entry.audit_count, entry.audit_mac)
    for address in (INSTALLATION.address, *(entry.address for entry in every_entry(source))):
        target.bury(address, source.tombstones(address))
        for cell in source.receipts(address):
            target.add_receipt(address, cell)
        for backup in source.backups(address):
            target.add_backup(backup)
