"""Lifecycle of scopes: open, create, list, destroy."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import count, pairwise
from typing import Final

from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.memories import receipts
from scrubjay.engine.scope import root_key, user_keys
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.installation import installation_key, name_sealer, scope_name
from scrubjay.engine.scope.open_scope import DESTROYED, OpenScope
from scrubjay.engine.scope.quota import quota_of
from scrubjay.engine.scope.scope_keys import LOOKUP, slot
from scrubjay.engine.scope.views import changes
from scrubjay.model.errors import (
    Damaged,
    Destroyed,
    KeyMissing,
    LimitReached,
    NeedsConfirmation,
    NotFound,
    SealBroken,
    StoreError,
)
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Destroy
from scrubjay.model.results import DestroyToken, Erasure, Holdings
from scrubjay.model.rows import CatalogEntry, Collection, Head
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint, Progress, Tx, View, commit, every_entry, no_progress
from scrubjay.vault import KEY_BYTES, Purpose

TOKEN_TIME: Final = timedelta(hours=1)
_DESTROY_STEPS: Final = 5
"""How long the token that confirms a destroy holds."""


def open_scope(
    ports: Ports,
    scope: Scope,
    *,
    create: bool = True,
    anew: bool = False,
    restoring: bool = False,
) -> OpenScope:
    """Open a scope, creating a new one; a destroyed one is created again only with `anew`."""
    address, entry = locate(ports, scope, make=create)
    while entry is not None and entry.destroyed:
        if not anew:
            raise Destroyed(f"The scope {scope} was destroyed.")
        # Counted from the one that was seen: another process may have begun the next by now.
        made = _addresses(installation_key(ports), scope)
        address = next(after for before, after in pairwise(made) if before == address)
        entry = ports.store.catalog.entry(address)
    if entry is None:
        if not create:
            raise NotFound(f"There is no scope {scope}.", hint="The first write creates it.")
        _check_tenant(ports, scope)
        make(ports, scope, address)
        if _is_ending(ports, address):
            _finish_destroy(ports, address)  # what was just made goes, too
            raise Destroyed(f"The scope {scope} was destroyed while it was made.")
    elif not ports.store.exists(address):
        if _is_ending(ports, address):
            raise Destroyed(f"The scope {scope} was destroyed.")
        raise StoreError(
            f"The data file of {scope} is missing.", hint="Put it back, or restore a backup."
        )
    try:
        opened = OpenScope(ports, scope, address, restoring=restoring)
    except (KeyMissing, SealBroken) as error:
        if _is_ending(ports, address):
            raise Destroyed(f"The scope {scope} was destroyed.") from error
        raise KeyMissing(
            f"The keys of {scope} are not in {ports.keyring.place}, or are those of another scope.",
            hint="Put the whole keys folder back that belongs to this data; nothing was changed.",
        ) from error
    opened.head()
    opened.examine()
    return opened


def _check_tenant(ports: Ports, scope: Scope) -> None:
    """LimitReached if the tenant has its quota of scopes already."""
    most = quota_of(ports.policy).scopes
    if most and sum(one.tenant == scope.tenant for one in scopes(ports)[0]) >= most:
        raise LimitReached(
            f"The tenant {scope.tenant} has reached its quota of {most:,} scopes.",
            hint="Nothing was made. Destroy a scope that is not needed, or have the quota raised.",
        )


def locate(ports: Ports, scope: Scope, *, make: bool = False) -> tuple[str, CatalogEntry | None]:
    """Address of the scope's latest generation, and its catalog entry.

    `make` allows a new home to be begun, with keys of its own, where there never was one.
    """
    *_, (address, entry) = _lives(ports, scope, installation_key(ports, make=make))
    if _is_cut_off(ports, address, entry):
        _finish_destroy(ports, address)
        entry = ports.store.catalog.entry(address)
    return address, entry


def _is_ending(ports: Ports, address: str) -> bool:
    """Whether the scope is destroyed, or just being so."""
    entry = ports.store.catalog.entry(address)
    return _is_cut_off(ports, address, entry) or (entry is not None and entry.destroyed)


def _is_cut_off(ports: Ports, address: str, entry: CatalogEntry | None) -> bool:
    """Whether a destroy was begun and not finished: by the head, or by the mark in the keyring."""
    if entry is not None and not entry.destroyed:
        with suppress(NotFound, Damaged), ports.store.read(address) as view:
            if view.head().destroyed:
                return True
    return DESTROYED in ports.keyring.purposes(address)


def _lives(ports: Ports, scope: Scope, key: bytes) -> Iterator[tuple[str, CatalogEntry | None]]:
    """Generations of a scope with their entries: the first, and one more for each destroy."""
    made, entry = _addresses(key, scope), ports.store.catalog.entry
    yield (first := next(made)), entry(first)
    for address in made:
        if (found := entry(address)) is None:
            return
        yield address, found


def lives(ports: Ports, scope: Scope) -> list[str]:
    """Addresses of all generations of the scope; all but the last are destroyed."""
    return [address for address, _ in _lives(ports, scope, installation_key(ports))]


def _addresses(key: bytes, scope: Scope) -> Iterator[str]:
    """Addresses of the generations of a scope: opaque, safe for case-insensitive file systems."""
    hashing = vault.derive(key, Purpose.ADDRESS)
    for generation in count(1):
        name = vault.keyed_hash(hashing, vault.join(scope.tenant, scope.owner, generation))
        yield base64.b32encode(name).decode().rstrip("=").lower()


def make(ports: Ports, scope: Scope, address: str, lookup: bytes | None = None) -> None:
    """Create an empty scope: keys, then the file, then the catalog entry."""
    random, add = ports.clock.random, ports.keyring.add
    add(address, LOOKUP, lookup or random(KEY_BYTES), scope)
    for collection in (Collection.MEMORY, Collection.TURN, Collection.SESSION):
        # Others get theirs when first used.
        add(address, slot(collection, 1), random(KEY_BYTES), scope)
    ports.reach(Failpoint.CREATE_KEYS_ADDED)
    ports.store.create(address)
    ports.reach(Failpoint.CREATE_STORED)
    body = vault.pad(json.dumps([scope.tenant, scope.owner]).encode())
    nonce = random(vault.NONCE_BYTES)
    name = name_sealer(installation_key(ports)).seal(
        body, row_id=address.encode(), version=0, nonce=nonce
    )
    ports.store.catalog.enroll(CatalogEntry(address=address, name=name))


def scopes(ports: Ports) -> tuple[tuple[Scope, ...], tuple[str, ...]]:
    """Existing scopes, sorted by name, and the addresses whose names do not open."""
    entries = [one for one in every_entry(ports.store.catalog) if not one.destroyed]
    if not entries:
        return (), ()
    key = installation_key(ports)
    names = {one.address: scope_name(key, one) for one in entries}
    found = sorted((one for one in names.values() if one), key=Scope.order)
    return tuple(found), tuple(address for address, name in names.items() if name is None)


def destroy_token(opened: OpenScope, actor: Actor) -> DestroyToken:
    """A token that confirms the destroy of a scope, bound to its audit head and an hour."""
    opened.note_read("destroy_token", actor)
    opened.flush_reads()
    until = opened.ports.clock.now().replace(microsecond=0) + TOKEN_TIME

    def look(view: View) -> DestroyToken:
        count = view.head().audit_count
        token = _token(opened, view, count, int(until.timestamp()))
        return DestroyToken(token=token, expires_at=until, rows=sum(_living(view).values()))

    return opened.read(look)


def holdings(opened: OpenScope, actor: Actor) -> Holdings:
    """How many rows a scope has in each collection, and its state."""

    def look(view: View) -> Holdings:
        found, head, user = _living(view), view.head(), user_keys.read(opened, view)
        return Holdings(
            memories=found[Collection.MEMORY],
            turns=found[Collection.TURN],
            conversations=found[Collection.CONVERSATION],
            documents=found[Collection.DOCUMENT],
            frozen=head.frozen,
            audit_events=head.audit_count,
            user_held=user is not None,
            locked=opened.locked,
            waiting=0 if user is None else user.waiting,
        )

    counted = opened.read(look)
    opened.note_read("holdings", actor)
    return counted


def _token(opened: OpenScope, view: View, count: int, until: int) -> str:
    """The token over an audit head, and the rows as they are: reads and a freeze change neither."""
    head, events = view.head(), view.audit(count - 1, 1)
    mac = events[0].mac if events else b""
    seqs = [getattr(head, one.value).seq for one in Collection if one is not Collection.SESSION]
    body = vault.join("destroy", opened.address, count, mac, until, *seqs)
    return f"{until}.{count}.{opened.token([body])}"


def _check_token(opened: OpenScope, view: View, token: str) -> None:
    """NeedsConfirmation unless the token is for the scope as it is, and not yet an hour old."""
    until, _, rest = token.partition(".")
    count, _, _ = rest.partition(".")
    given = [int(one) for one in (until, count) if one.isdecimal() and len(one) < 16]
    now = opened.ports.clock.now().timestamp()
    if len(given) != 2 or given[0] <= now or token != _token(opened, view, given[1], given[0]):
        raise NeedsConfirmation(
            "The token is not for this scope as it is now, or older than an hour.",
            hint="Nothing was destroyed. Ask for a new token, and use it before the next write.",
        )


def _living(view: View) -> dict[Collection, int]:
    """How many rows of each collection are not erased."""
    return {one: sum(not row.erased for row in changes(view, one)) for one in Collection}


def destroy(
    ports: Ports,
    scope: Scope,
    request: Destroy,
    opened: OpenScope | None = None,
    progress: Progress = no_progress,
) -> Erasure:
    """Erase a whole scope, its keys first; a second time returns the same receipt.

    A token is checked in the transaction that marks the head, on the scope that is `opened`.
    """
    if request.token is None and request.confirm != str(scope):
        raise NeedsConfirmation(
            f"Destroying {scope} cannot be undone.", hint=f'Confirm with confirm="{scope}".'
        )
    address, entry = locate(ports, scope)
    if entry is None:
        raise NotFound(f"There is no scope {scope}.")
    if not entry.destroyed:
        # Who cannot delete keys now, because another process holds them, leaves all as it is.
        ports.keyring.check_deletable()
        token = request.token or ""

        def check(tx: Tx) -> None:
            if opened is not None:
                _check_token(opened, tx, token)

        _finish_destroy(ports, address, check, progress)
    return receipts.kept(ports, address)[-1]


def _finish_destroy(
    ports: Ports,
    address: str,
    check: Callable[[Tx], None] = lambda _: None,
    progress: Progress = no_progress,
) -> None:
    """Carry out a destroy, from its beginning or from wherever it was interrupted."""

    def shut(tx: Tx) -> None:
        if not tx.head().destroyed:
            check(tx)
            tx.set_head(replace(tx.head(), destroyed=True))

    def empty(tx: Tx) -> None:
        tx.truncate()
        shut(tx)

    # A process with an open handle has the keys in its memory, and would go on to write what
    # nobody else can open: it is told before the first key goes, or none goes. Only a file that
    # is damaged, which nobody can write to, must not keep its keys.
    with suppress(NotFound, Damaged):
        commit(ports.store, address, shut, erasing=True)
    ports.reach(Failpoint.DESTROY_MARKED)
    progress(1, _DESTROY_STEPS)
    # What the head says is lost with the file: from this slot on, the destroy is finished anyway.
    ports.keyring.add(address, DESTROYED, ports.clock.random(KEY_BYTES))
    purposes = ports.keyring.purposes(address)
    ports.keyring.delete(address, *(one for one in purposes if one != DESTROYED))
    ports.reach(Failpoint.DESTROY_KEYS_DELETED)
    progress(2, _DESTROY_STEPS)
    # Another process may carry the same destroy to its end, and be faster.
    with suppress(NotFound):
        # The receipt is kept while the rows can still be counted: nobody could do so afterwards.
        with ports.store.read(address) as view:
            found = _living(view)
            rows, memories = sum(found.values()), found[Collection.MEMORY]
            head = view.head()
        blobs = len(ports.blobs.names(address))
        _keep_receipt(ports, address, head, rows, memories=memories, blobs=blobs)
        progress(3, _DESTROY_STEPS)
        commit(ports.store, address, empty, erasing=True)
        ports.store.settle(address)
    ports.reach(Failpoint.DESTROY_EMPTIED)
    progress(4, _DESTROY_STEPS)
    ports.store.remove(address)
    ports.blobs.remove(address)
    ports.reach(Failpoint.DESTROY_UNLINKED)
    _keep_receipt(ports, address, Head(), 0)
    ports.store.catalog.mark_destroyed(address)
    ports.keyring.remove(address)
    progress(_DESTROY_STEPS, _DESTROY_STEPS)


def _keep_receipt(
    ports: Ports, address: str, head: Head, rows: int, *, memories: int = 0, blobs: int = 0
) -> None:
    """Store the receipt of a destroy, once; it names no cells, because every key is gone."""
    if any(receipt.verb == "destroy" for receipt in receipts.kept(ports, address)):
        return
    receipt = Erasure(
        address=address,
        verb="destroy",
        at=ports.clock.now(),
        erased=rows,
        memories=memories,
        blobs=blobs,
        rotated=True,
        backups=receipts.backup_notes(ports, address),
        generation=ports.keyring.generation,
        noise_from=root_key.noise_from(ports),
        audit_count=head.audit_count,
        audit_mac=head.audit_mac.hex(),
    )
    receipts.keep(ports, receipt)
