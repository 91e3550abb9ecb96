"""Provisions: keys and blobs that a transaction uses, fetched or stored before it begins.

A store may be a server, and so may the blobs and the keyring: nobody calls those while the head is
locked. Work that meets something it lacks raises `Need`; the transaction is rolled back, the need
is met outside of it, and the work runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from scrubjay.model.rows import Collection

Made = dict[str, tuple[bytes, bytes, Callable[[], None]]]
"""Keys of epochs by slot, as they are wrapped, and what follows once they are kept."""


class Need(Exception):
    """What a transaction lacks; `meet` gets it. It never leaves `OpenScope.write`."""

    def __init__(self, meet: Callable[[], object]) -> None:
        super().__init__()
        self.meet = meet


class LongBody(Struct, frozen=True):
    """A body that is stored in a blob, and the row that it belongs to."""

    collection: Collection
    row_id: bytes
    version: int
    epoch: int
    body: bytes


class Provisions(Struct, kw_only=True):
    """What one write has at hand when its transaction begins."""

    streams: dict[str, bytes | None] = {}
    """Blobs that were read, by name; None for one that is not there."""
    names: dict[LongBody, str] = {}
    """The names of the blobs that this write stores bodies in."""
    bodies: dict[str, LongBody] = {}
    """The same by name: the transaction may read what it has written."""
    stored: set[str] = set()
    """Those of the blobs that are stored, and pending."""
    wanted: set[str] = set()
    """Those that the last attempt referred to, and that are not stored yet."""
    moment: datetime | None = None
    """When the write began that asked for the time: all its attempts seal the same bodies."""
    fresh: int = 0
    """How many memories the last attempt added."""
    made: Made = {}
    """Keys of epochs that this write begins where slots lie beside the rows, as `make` made them.

    The transaction may wait for so long that the root key which wrapped them has ended.
    """
    keys: dict[tuple[Collection, int], bytes] = {}
    """Those that this attempt keeps in a slot; nobody else may use them before its commit."""
    missing: set[tuple[Collection, int]] = set()
    """Epochs whose keys are gone."""
    examined: bool = False
    """Whether a file that looked too old was compared with the catalog."""
