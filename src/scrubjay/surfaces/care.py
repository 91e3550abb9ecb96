"""The verbs on a whole scope: keys, clean-up, copies out and in, and proof."""

from __future__ import annotations

import os
from pathlib import Path

from scrubjay.domain.origin import Actor
from scrubjay.domain.results import (
    AuditEvent,
    BackedUp,
    Erasure,
    Extraction,
    ExtractionStatus,
    Loaded,
    Purged,
    Reindexed,
    Report,
    Rotated,
)
from scrubjay.domain.scope import Scope
from scrubjay.domain.text import check_choice
from scrubjay.engine import Engine, receipts
from scrubjay.engine.extract import SECONDS as EXTRACT_SECONDS
from scrubjay.engine.extract import TURNS as EXTRACT_TURNS
from scrubjay.engine.purge import SUPERSEDED_DAYS
from scrubjay.engine.transfer import BACKUP_DAYS, Exported
from scrubjay.ports import Progress, no_progress
from scrubjay.surfaces import files


class Care:
    """What `Jay` can do with its scope as a whole."""

    def __init__(self, engine: Engine, scope: Scope, *, actor: Actor = Actor.USER) -> None:
        self._engine = engine
        self.scope = scope
        self._actor = check_choice("The actor", actor, Actor)

    def purge(self, *, superseded_days: int = SUPERSEDED_DAYS) -> Purged:
        """Clean up what is expired, long superseded, or long forgotten."""
        return self._engine.purge(self.scope, superseded_days=superseded_days, actor=self._actor)

    def rotate(self) -> Rotated:
        """Seal everything under new keys and delete the old ones."""
        return self._engine.rotate(self.scope, actor=self._actor)

    # -- whole scopes out and in ---------------------------------------------------------

    def export(
        self, path: str | os.PathLike[str] | None = None, *, sealed: bool = False
    ) -> Exported:
        """Every memory as JSON, or sealed under the key in the answer; to a file if named."""
        exported = self._engine.export(self.scope, sealed=sealed, actor=self._actor)
        if path is not None:
            files.write(Path(path), exported.content)
        return exported

    def load(self, source: bytes | str | os.PathLike[str], *, key: str | None = None) -> Loaded:
        """Add what an export holds, from a file or its bytes: all of it or nothing."""
        return self._engine.load(self.scope, files.read(source), key=key, actor=self._actor)

    def backup(self, path: str | os.PathLike[str], *, days: int = BACKUP_DAYS) -> BackedUp:
        """Write a sealed copy of the scope; keep the key in the answer in a safe place."""
        _, receipt = self._engine.backup(
            self.scope,
            days=days,
            deliver=lambda raw: files.write(Path(path), raw),
            actor=self._actor,
        )
        return receipt

    def restore(self, source: bytes | str | os.PathLike[str], *, key: str | None = None) -> Loaded:
        """Merge a backup; what was forgotten since it was made stays forgotten."""
        return self._engine.restore(self.scope, files.read(source), key=key)

    def reindex(self, *, progress: Progress = no_progress) -> Reindexed:
        """Make the index again from the memories, with a vector for each."""
        return self._engine.reindex(self.scope, progress=progress, actor=self._actor)

    # -- a model that reads turns ----------------------------------------------------------

    def extract(
        self,
        *,
        limit: int = EXTRACT_TURNS,
        seconds: float = EXTRACT_SECONDS,
        again: bool = False,
    ) -> Extraction:
        """Have the model read turns that wait; `again` also those it has read before."""
        return self._engine.extract(
            self.scope, limit=limit, seconds=seconds, again=again, actor=self._actor
        )

    def extraction(self) -> ExtractionStatus:
        """How far the model has come with the turns, and what that cost."""
        return self._engine.extraction(self.scope)

    def pause_extraction(self, *, paused: bool = True) -> ExtractionStatus:
        """Send no turns of this scope to the model, or go on sending them."""
        return self._engine.pause_extraction(self.scope, paused=paused, actor=self._actor)

    # -- checking ------------------------------------------------------------------------

    def verify(self, erased: Erasure | str | os.PathLike[str] | None = None) -> Report:
        """Open everything and check it; with a receipt, or its file, prove that erasure."""
        if erased is None:
            return self._engine.verify(self.scope)
        if not isinstance(erased, Erasure):
            erased = receipts.from_json(files.read(erased).decode(errors="replace"))
        return self._engine.verify_erased(erased)

    def receipts(self) -> tuple[Erasure, ...]:
        """The erasure receipts kept for this scope, oldest first."""
        return self._engine.receipts(self.scope)

    def audit(self, *, after: int = 0, limit: int = 1000) -> tuple[AuditEvent, ...]:
        """The audit trail after a count, oldest first."""
        return self._engine.audit(self.scope, after=after, limit=limit)

    def verify_audit(self) -> Report:
        """Whether the audit trail is whole."""
        return self._engine.verify_audit(self.scope)
