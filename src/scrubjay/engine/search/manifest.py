"""The manifest: which segments make up the index of a scope, in one sealed value.

It changes only inside a transaction, beside the head: so what it lists is always an index of the
rows as they were at its `upto`, without anything that was erased up to its `known`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from scrubjay import vault
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import KeyMissing, SealBroken
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection, Head
from scrubjay.ports import Tx, View
from scrubjay.vault import Purpose, Sealer

NAME = "segments"
_PLACE = b"segments"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One segment: the blobs its three parts are in, and its rows that count no more."""

    columns: str
    postings: str
    vectors: str
    dead: tuple[int, ...] = ()

    @property
    def blobs(self) -> tuple[str, str, str]:
        """The names of its blobs."""
        return self.columns, self.postings, self.vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The segments of a scope, oldest first."""

    id: str
    """Another one with every change, so that two writers of one notice each other."""
    epoch: int
    upto: int
    """The last change that is in the segments."""
    known: int
    """No row that was erased up to this change is in the segments."""
    analyzer: str
    """Which version of the analysis made them."""
    segments: tuple[Listed, ...] = ()

    @property
    def blobs(self) -> frozenset[str]:
        """The names of all its blobs."""
        return frozenset(name for listed in self.segments for name in listed.blobs)

    def current(self, head: Head) -> bool:
        """Whether it is sealed under the present key and holds nothing that was erased."""
        position = head.memory
        return self.epoch == position.epoch and self.known >= position.erased_seq


def read(opened: OpenScope, view: View) -> Manifest | None:
    """The manifest of this state; None if there is none, or none that opens."""
    cell = view.value(NAME)
    if cell is None:
        return None
    try:
        raw = sealer(opened, vault.epoch_of(cell)).unseal(cell, row_id=_PLACE, version=0)
    except (SealBroken, KeyMissing):
        # The index can be made again from the rows, so damage to it costs time, not memories. An
        # old view whose key a rotation has deleted looks the same; its rows will not open either.
        _log.warning("index.manifest_damaged")
        return None
    found = json.loads(raw)
    found["segments"] = tuple(
        Listed(**{**listed, "dead": tuple(listed["dead"])}) for listed in found["segments"]
    )
    return Manifest(**found)


def write(opened: OpenScope, tx: Tx, manifest: Manifest | None) -> None:
    """Put a manifest in the place of the one before; None for none."""
    if manifest is None:
        tx.set_value(NAME, None)
        return
    nonce = opened.ports.clock.random(vault.NONCE_BYTES)
    raw = json.dumps(asdict(manifest)).encode()
    seal = sealer(opened, manifest.epoch)
    tx.set_value(NAME, seal.seal(raw, row_id=_PLACE, version=0, nonce=nonce))


def sealer(opened: OpenScope, epoch: int) -> Sealer:
    """What seals segments and their manifest."""
    return opened.sealer(Collection.MEMORY, Purpose.SEGMENT, epoch)


def outdated(view: View) -> bool:
    """Whether there is a manifest under a key that is to be deleted."""
    cell = view.value(NAME)
    return cell is not None and vault.epoch_of(cell) < view.head().memory.epoch


def renew(opened: OpenScope) -> None:
    """Have the segments written anew if they are under an old key or hold what was erased."""

    def due(view: View) -> bool:
        found = read(opened, view)
        return outdated(view) or (found is not None and not found.current(view.head()))

    if opened.read(due):
        from scrubjay.engine.search import segments  # loads numpy, which few scopes need for this

        segments.renew(opened)


def check(opened: OpenScope, view: View) -> list[str]:
    """What is wrong with the segments, one sentence each."""
    if view.value(NAME) is None:
        return []
    from scrubjay.engine.search import segments  # loads numpy, which few scopes need for this

    return list(segments.check(opened, view))


def erased_cells(opened: OpenScope, ids: Iterable[bytes]) -> list[ErasedCell]:
    """The cells of the segments that hold some rows, as a receipt names them."""
    if opened.read(lambda view: view.value(NAME)) is None:
        return []
    from scrubjay.engine.search import segments  # loads numpy, which few scopes need for this

    return list(segments.erased_cells(opened, ids))


def listed(opened: OpenScope, view: View) -> frozenset[str]:
    """The blobs the manifest names, as far as one can be read."""
    found = read(opened, view)
    return frozenset() if found is None else found.blobs


def delete_blobs(opened: OpenScope, names: Iterable[str]) -> None:
    """Delete blobs that no manifest lists any more."""
    for name in names:
        opened.ports.blobs.delete(opened.address, name)
