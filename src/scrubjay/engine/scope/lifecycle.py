"""Lifecycle of scopes: open, create, list, destroy."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from itertools import count

from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.memories import receipts
from scrubjay.engine.scope.open_scope import DESTROYED, LOOKUP, OpenScope, Ports, changes, slot
from scrubjay.model.errors import (
    Destroyed,
    Full,
    KeyMissing,
    NeedsConfirmation,
    NotFound,
    StoreError,
)
from scrubjay.model.results import Erasure
from scrubjay.model.rows import CatalogEntry, Collection, Head
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint, Tx
from scrubjay.vault import KEY_BYTES, Purpose, Sealer


def open_scope(
    ports: Ports,
    scope: Scope,
    *,
    create: bool = True,
    anew: bool = False,
    restoring: bool = False,
) -> OpenScope:
    """Open a scope, creating a new one; a destroyed one is created again only with `anew`."""
    address, entry = locate(ports, scope)
    if entry is not None and entry.destroyed:
        if not anew:
            raise Destroyed(f"The scope {scope} was destroyed.")
        address, entry = _address(ports, scope, _generation(ports, scope) + 1), None
    if entry is None:
        if not create:
            raise NotFound(f"There is no scope {scope}.", hint="The first write creates it.")
        make(ports, scope, address)
    elif not ports.store.exists(address):
        raise StoreError(
            f"The data file of {scope} is missing.", hint="Put it back, or restore a backup."
        )
    try:
        opened = OpenScope(ports, scope, address, restoring=restoring)
    except KeyMissing as error:
        raise KeyMissing(f"The keys of {scope} are not in the keyring.") from error
    opened.read(lambda view: view.head())
    return opened


def locate(ports: Ports, scope: Scope) -> tuple[str, CatalogEntry | None]:
    """Address of the scope's latest generation, and its catalog entry."""
    address = _address(ports, scope, _generation(ports, scope))
    if DESTROYED in ports.keyring.purposes(address):
        _finish_destroy(ports, address)
    return address, ports.store.catalog.entry(address)


def _generation(ports: Ports, scope: Scope) -> int:
    """Generation of the scope: 1, and one more for each destroy."""
    entry = ports.store.catalog.entry
    return next(n for n in count(1) if entry(_address(ports, scope, n + 1)) is None)


def earlier_lives(ports: Ports, scope: Scope) -> list[str]:
    """Addresses of earlier, destroyed generations of the scope."""
    return [_address(ports, scope, number) for number in range(1, _generation(ports, scope))]


def _address(ports: Ports, scope: Scope, generation: int) -> str:
    """Address of a scope: an opaque name, safe for case-insensitive file systems."""
    key = vault.derive(ports.keyring.installation(), Purpose.ADDRESS)
    name = vault.keyed_hash(key, vault.join(scope.tenant, scope.owner, generation))
    return base64.b32encode(name).decode().rstrip("=").lower()


def make(ports: Ports, scope: Scope, address: str, lookup: bytes | None = None) -> None:
    """Create an empty scope: keys, then the file, then the catalog entry."""
    random, add = ports.clock.random, ports.keyring.add
    add(address, LOOKUP, lookup or random(KEY_BYTES))
    for collection in Collection:
        add(address, slot(collection, 1), random(KEY_BYTES))
    ports.reach(Failpoint.CREATE_KEYS_ADDED)
    ports.store.create(address)
    ports.reach(Failpoint.CREATE_STORED)
    body = vault.pad(json.dumps([scope.tenant, scope.owner]).encode())
    nonce = random(vault.NONCE_BYTES)
    name = _name_sealer(ports).seal(body, row_id=address.encode(), version=0, nonce=nonce)
    ports.store.catalog.enroll(CatalogEntry(address=address, name=name))


def _name_sealer(ports: Ports) -> Sealer:
    return Sealer(ports.keyring.installation(), Purpose.NAME, None, "catalog")


def scopes(ports: Ports) -> tuple[Scope, ...]:
    """Existing scopes, sorted by name."""
    sealer = _name_sealer(ports)
    names = [
        json.loads(vault.unpad(sealer.unseal(e.name, row_id=e.address.encode(), version=0)))
        for e in ports.store.catalog.entries()
        if not e.destroyed
    ]
    return tuple(Scope(tenant, owner) for tenant, owner in sorted(names))


def destroy(ports: Ports, scope: Scope, confirm: str | None) -> Erasure:
    """Erase a whole scope, its keys first; a second time returns the same receipt."""
    if confirm != str(scope):
        raise NeedsConfirmation(
            f"Destroying {scope} cannot be undone.", hint=f'Confirm with confirm="{scope}".'
        )
    address, entry = locate(ports, scope)
    if entry is None:
        raise NotFound(f"There is no scope {scope}.")
    if not entry.destroyed:
        # From this slot on the destroy is finished, whatever happens.
        key = ports.clock.random(KEY_BYTES)
        try:
            ports.keyring.add(address, DESTROYED, key)
        except Full:
            # Space is held in reserve for what erases, and the store alone may give it up.
            ports.store.write(
                address, lambda _: ports.keyring.add(address, DESTROYED, key), erasing=True
            )
        _finish_destroy(ports, address)
    return receipts.kept(ports, address)[-1]


def _finish_destroy(ports: Ports, address: str) -> None:
    """Complete a destroy, from wherever it was interrupted."""

    def shut(tx: Tx) -> None:
        tx.set_head(replace(tx.head(), destroyed=True))

    def empty(tx: Tx) -> None:
        # The receipt is kept while the rows can still be counted: nobody could do so afterwards.
        rows = sum(not row.erased for one in Collection for row in changes(tx, one))
        _keep_receipt(ports, address, tx.head(), rows)
        tx.truncate()
        shut(tx)

    # A process with an open handle has the keys in its memory, and would go on to write what
    # nobody else can open: it is told before the first key goes. But a file that cannot be
    # written must not keep its keys; emptying it says what is wrong.
    with suppress(NotFound, StoreError):
        ports.store.write(address, shut, erasing=True)
    for purpose in ports.keyring.purposes(address):
        if purpose != DESTROYED:
            ports.keyring.delete(address, purpose)
    ports.reach(Failpoint.DESTROY_KEYS_DELETED)
    # Another process may carry the same destroy to its end, and be faster.
    with suppress(NotFound):
        ports.store.write(address, empty, erasing=True)
        ports.store.settle(address)
    ports.reach(Failpoint.DESTROY_EMPTIED)
    ports.store.remove(address)
    ports.blobs.remove(address)
    ports.reach(Failpoint.DESTROY_UNLINKED)
    _keep_receipt(ports, address, Head(), 0)
    ports.store.catalog.mark_destroyed(address)
    ports.keyring.remove(address)


def _keep_receipt(ports: Ports, address: str, head: Head, rows: int) -> None:
    """Store the receipt of a destroy, once; it names no cells, because every key is gone."""
    if any(receipt.verb == "destroy" for receipt in receipts.kept(ports, address)):
        return
    receipt = Erasure(
        address=address,
        verb="destroy",
        at=ports.clock.now(),
        erased=rows,
        rotated=True,
        backups=receipts.backup_notes(ports, address),
        audit_count=head.audit_count,
        audit_mac=head.audit_mac.hex(),
    )
    receipts.keep(ports, receipt)
