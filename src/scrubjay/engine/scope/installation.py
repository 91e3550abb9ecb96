"""The installation key: it names the files of scopes and seals their names in the catalog."""

from __future__ import annotations

import hashlib
import json

from scrubjay import vault
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.model.errors import KeyMissing, NotFound, SealBroken
from scrubjay.model.rows import CatalogEntry
from scrubjay.model.scope import Scope
from scrubjay.ports import every_entry
from scrubjay.vault import Purpose, Sealer


def installation_key(ports: Ports, *, make: bool = False) -> bytes:
    """The installation key; KeyMissing unless it is the one the catalog was written with.

    The catalog's commitment to its key are the names of its scopes: nothing else opens them. Only
    where no scope ever was, a key may be made; without `make` that is NotFound.
    """
    catalog = ports.store.catalog
    try:
        key = ports.keyring.installation()
    except (KeyMissing, SealBroken) as error:
        if isinstance(error, SealBroken) or catalog.entries(limit=1):
            raise _key_missing(ports, error.message) from error
        if not make:
            raise NotFound(
                "Nothing was ever remembered here.", hint="The first write makes a home."
            ) from error
        return ports.keyring.found()
    proof = hashlib.sha256(key).digest()
    if proof not in ports.proven and catalog.entries(limit=1):
        if not any(scope_name(key, entry) for entry in every_entry(catalog)):
            raise _key_missing(ports, "They are the keys of another home.")
        ports.proven.add(proof)
    return key


def _key_missing(ports: Ports, reason: str) -> KeyMissing:
    return KeyMissing(
        f"The keys in {ports.keyring.place} do not open this data folder. {reason}",
        hint="Put the keys that belong to it there; nothing was made or changed. How a home is "
        "moved to another machine is in docs/howto.md.",
    )


def name_sealer(installation: bytes) -> Sealer:
    """What seals the names of scopes in the catalog."""
    return Sealer(installation, Purpose.NAME, None, "catalog")


def scope_name(installation: bytes, entry: CatalogEntry) -> Scope | None:
    """The name of a scope in the catalog; None if the key does not open it."""
    try:
        body = name_sealer(installation).unseal(
            entry.name, row_id=entry.address.encode(), version=0
        )
    except SealBroken:
        return None
    tenant, owner = json.loads(vault.unpad(body))
    return Scope(tenant, owner)
