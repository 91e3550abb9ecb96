"""Erasure receipts: sealed in the catalog, and as a JSON document for the person."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import msgspec

from scrubjay import vault
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.installation import installation_key
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.results import BackupNote, Erasure
from scrubjay.vault import Purpose, Sealer

_FORMAT = "scrubjay-receipt"
_LATER = frozenset({"copies", "again", "generation", "noise_from", "memories", "blobs"})
"""Fields of newer receipts, left out where they are 0: so the older ones are written as ever."""


def to_json(receipt: Erasure) -> str:
    """The receipt as a document that `verify` reads again."""
    body = msgspec.to_builtins(receipt) | {"at": receipt.at.isoformat()}
    body = {name: told for name, told in body.items() if told or name not in _LATER}
    return json.dumps({"format": _FORMAT, "version": 1, **body}, indent=2)


def from_json(text: str) -> Erasure:
    """The receipt a document holds; InvalidRequest if it is not one."""
    try:
        body: dict[str, Any] = json.loads(text)
        if (body.pop("format", _FORMAT), body.pop("version", 1)) != (_FORMAT, 1):
            raise InvalidRequest("That receipt is of another format or version.")
        receipt = msgspec.convert(body, Erasure)
        sizes = {len(bytes.fromhex(cell.nonce)) for cell in receipt.cells}
        if not {"cells", "backups"} <= body.keys() <= set(Erasure.__struct_fields__):
            raise ValueError("It has fields a receipt does not have, or lacks some.")
        if not sizes <= {vault.NONCE_BYTES} or receipt.at.tzinfo is None:
            raise ValueError("A field holds something else than in a receipt.")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidRequest(
            "That is not an erasure receipt.", hint="Give the JSON that forget or destroy printed."
        ) from error
    return receipt


def _sealer(ports: Ports) -> Sealer:
    return Sealer(installation_key(ports), Purpose.RECEIPT, None, "catalog")


def keep(ports: Ports, receipt: Erasure) -> None:
    """Keep a receipt in the catalog, sealed under the installation key."""
    nonce = ports.clock.random(vault.NONCE_BYTES)
    body = vault.pad(to_json(receipt).encode())
    cell = _sealer(ports).seal(body, row_id=receipt.address.encode(), version=0, nonce=nonce)
    ports.store.catalog.add_receipt(receipt.address, cell)


def kept(ports: Ports, address: str) -> tuple[Erasure, ...]:
    """The receipts kept for a scope, oldest first."""
    sealer = _sealer(ports)
    return tuple(
        from_json(vault.unpad(sealer.unseal(cell, row_id=address.encode(), version=0)).decode())
        for cell in ports.store.catalog.receipts(address)
    )


def backup_notes(ports: Ports, address: str) -> tuple[BackupNote, ...]:
    """Backups that may still hold what is erased now, with their expiry."""
    return tuple(
        BackupNote(name=backup.name, expires=as_date(backup.expires))
        for backup in ports.store.catalog.backups(address)
    )


def as_date(days: int) -> date:
    """A day counted from 1970-01-01 as a date."""
    return date(1970, 1, 1) + timedelta(days=days)
