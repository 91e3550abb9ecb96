"""Jay: the handle on one scope, with every verb."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from scrubjay import bootstrap, files, settings
from scrubjay.engine import Engine
from scrubjay.engine.ledger.extraction import SECONDS as EXTRACT_SECONDS
from scrubjay.engine.ledger.extraction import TURNS as EXTRACT_TURNS
from scrubjay.engine.memories import receipts
from scrubjay.engine.memories.purge import SUPERSEDED_DAYS
from scrubjay.engine.transfer.copies import BACKUP_DAYS, Exported
from scrubjay.model.memory import Json, Kind, Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import BriefRequest, Browse, Forget, Recall, Retain, Revoke, Supersede
from scrubjay.model.results import (
    AuditEvent,
    BackedUp,
    Brief,
    Erasure,
    Extraction,
    ExtractionStatus,
    Loaded,
    Page,
    Preview,
    Purged,
    Recalled,
    Reindexed,
    Report,
    Retained,
    Rotated,
    Session,
)
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.text import check_choice
from scrubjay.model.turns import Record, Recorded, Timeline, Turn
from scrubjay.ports import Progress, no_progress

Times = datetime | None


def open(
    scope: str = "default",
    *,
    home: str | os.PathLike[str] | None = None,
    passphrase: str | None = None,
    create: bool = True,
    anew: bool = False,
    actor: Actor = Actor.USER,
) -> Jay:
    """Open a scope: `"alice"` for `local/alice`, or `"tenant/owner"`.

    `home` is the folder for data and keys, otherwise the environment decides. A scope that does
    not exist is made, unless `create` is false; one that was destroyed only with `anew`.
    """
    name = Scope.parse(scope)
    found = settings.read(home=home)
    if passphrase is not None:
        found = replace(found, passphrase=passphrase)
    engine = bootstrap.build(found)
    try:
        engine.open(name, create=create, anew=anew)
    except BaseException:  # seam: nothing may stay open when opening fails, whatever it was
        engine.close()
        raise
    return Jay(engine, name, actor=actor)


class Jay:
    """One scope and all verbs on it; safe for several threads, closed by `with` or `close`."""

    def __init__(self, engine: Engine, scope: Scope, *, actor: Actor = Actor.USER) -> None:
        self._engine = engine
        self.scope = scope
        self._actor = check_choice("The actor", actor, Actor)

    def __enter__(self) -> Jay:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Jay {self.scope}>"

    def close(self) -> None:
        """Let go of every file; again is fine."""
        self._engine.close()

    # -- writing -----------------------------------------------------------------------

    def retain(
        self,
        content: str,
        *,
        kind: Kind | str = Kind.FACT,
        tags: Iterable[str] = (),
        importance: float = 0.5,
        pinned: bool = False,
        key: str | None = None,
        session: str | None = None,
        speaker: str | None = None,
        position: int | None = None,
        origin: Origin | str = Origin.USER,
        channel: str | None = None,
        message_id: str | None = None,
        said_at: Times = None,
        sources: Iterable[str] = (),
        valid_from: Times = None,
        valid_to: Times = None,
        expires_at: Times = None,
        metadata: Mapping[str, Json] = {},
    ) -> Retained:
        """Write a memory; durable when this returns, and only once per key."""
        request = Retain(
            content=content,
            kind=kind,  # type: ignore[arg-type]  # checked and turned into a Kind by Retain
            tags=tags,  # type: ignore[arg-type]
            importance=importance,
            pinned=pinned,
            key=key,
            session=session,
            speaker=speaker,
            position=position,
            origin=origin,  # type: ignore[arg-type]
            actor=self._actor,
            channel=channel,
            message_id=message_id,
            said_at=said_at,
            sources=sources,  # type: ignore[arg-type]
            valid_from=valid_from,
            valid_to=valid_to,
            expires_at=expires_at,
            metadata=metadata,
        )
        return self._engine.retain(self.scope, request)

    def supersede(
        self,
        id: str,
        content: str,
        *,
        kind: Kind | str | None = None,
        tags: Iterable[str] | None = None,
        importance: float | None = None,
        key: str | None = None,
        session: str | None = None,
        reason: str | None = None,
        origin: Origin | str = Origin.USER,
    ) -> Retained:
        """Replace a memory; what is not said is taken from the old one, which stays as history."""
        request = Supersede(
            id=id,
            content=content,
            kind=kind,  # type: ignore[arg-type]  # checked and turned into a Kind by Supersede
            tags=tags,  # type: ignore[arg-type]
            importance=importance,
            key=key,
            session=session,
            reason=reason,
            origin=origin,  # type: ignore[arg-type]
            actor=self._actor,
        )
        return self._engine.supersede(self.scope, request)

    def pin(self, id: str) -> Memory:
        """Pin a memory: it comes first in the brief and is not pruned."""
        return self._engine.pin(self.scope, id, actor=self._actor)

    def unpin(self, id: str) -> Memory:
        """Take the pin off."""
        return self._engine.pin(self.scope, id, pinned=False, actor=self._actor)

    def expire(self, id: str, at: Times) -> Memory:
        """Set the time a memory expires; None for never."""
        return self._engine.expire(self.scope, id, at, actor=self._actor)

    def freeze(self, level: Freeze | str = Freeze.WRITES) -> Freeze:
        """Stop writes, or with `all` writes and recall; returns the level before."""
        chosen = check_choice("The level", level, Freeze)
        return self._engine.freeze(self.scope, chosen, actor=self._actor)

    def unfreeze(self) -> Freeze:
        """Let everything work again; returns the level before."""
        return self._engine.freeze(self.scope, Freeze.NONE, actor=self._actor)

    # -- trust -------------------------------------------------------------------------

    def mark_tainted(self, session: str, origin: Origin | str = Origin.WEB) -> Origin:
        """Say that a session has read something of this origin.

        What the agent infers in it from then on is trusted no more than that.
        """
        chosen = check_choice("The origin", origin, Origin)
        return self._engine.mark_tainted(self.scope, session, chosen, actor=self._actor)

    def quarantined(self) -> tuple[Memory, ...]:
        """What tells an agent how to act, came from where nobody vouches for it, and waits."""
        return self._engine.quarantined(self.scope, actor=self._actor)

    def approve(self, id: str, content: str) -> Memory:
        """Let a memory out of quarantine; `content` is the exact text you have read."""
        return self._engine.approve(self.scope, id, content, actor=self._actor)

    def reject(self, id: str) -> Erasure:
        """Erase a memory that is in quarantine."""
        return self._engine.reject(self.scope, id, actor=self._actor)

    # -- reading -----------------------------------------------------------------------

    def get(self, id: str, *, as_of: Times = None) -> Memory:
        """One memory by id, superseded or not."""
        return self._engine.get(self.scope, id, as_of=as_of, actor=self._actor)

    def browse(
        self,
        *,
        kinds: Iterable[Kind | str] = (),
        tags: Iterable[str] = (),
        session: str | None = None,
        since: Times = None,
        before: Times = None,
        as_of: Times = None,
        superseded: bool = False,
        limit: int = 50,
        cursor: int | None = None,
    ) -> Page:
        """Memories by filter, newest first."""
        request = Browse(
            kinds=kinds,  # type: ignore[arg-type]  # checked and made a set by Browse
            tags=tags,  # type: ignore[arg-type]
            session=session,
            since=since,
            before=before,
            as_of=as_of,
            superseded=superseded,
            limit=limit,
            cursor=cursor,
        )
        return self._engine.browse(self.scope, request, actor=self._actor)

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: Iterable[Kind | str] = (),
        tags: Iterable[str] = (),
        session: str | None = None,
        since: Times = None,
        before: Times = None,
        asked_at: Times = None,
        as_of: Times = None,
        superseded: bool = False,
        scopes: Iterable[Scope | str] = (),
        max_bytes: int | None = None,
        max_tokens: int | None = None,
        seconds: float | None = None,
    ) -> Recalled:
        """The memories that answer a question, best first; each hit says why.

        `scopes` are others to look in as well. `seconds` bounds the time: what could not be used
        by then is named in `degraded`.
        """
        request = Recall(
            query=query,
            limit=limit,
            kinds=kinds,  # type: ignore[arg-type]  # checked and made a set by Recall
            tags=tags,  # type: ignore[arg-type]
            session=session,
            since=since,
            before=before,
            asked_at=asked_at,
            as_of=as_of,
            superseded=superseded,
            scopes=scopes,  # type: ignore[arg-type]
            max_bytes=max_bytes,
            max_tokens=max_tokens,
            seconds=seconds,
            actor=self._actor,
        )
        return self._engine.recall(self.scope, request)

    def brief(self, *, limit: int = 50, max_chars: int = 10_000) -> Brief:
        """What a session should know before its first word: `.entries`, and as `.markdown`."""
        request = BriefRequest(limit=limit, max_chars=max_chars, actor=self._actor)
        return self._engine.brief(self.scope, request)

    def history(self, id: str) -> tuple[Memory, ...]:
        """The chain of versions a memory belongs to, oldest first."""
        return self._engine.history(self.scope, id, actor=self._actor)

    # -- erasing -----------------------------------------------------------------------

    def forget(
        self,
        ids: Iterable[str] = (),
        *,
        session: str | None = None,
        tags: Iterable[str] = (),
        before: Times = None,
        query: str | None = None,
        confirm: str | None = None,
        unseen: bool = False,
    ) -> Erasure:
        """Erase memories for good, with their earlier versions and what was derived from them.

        Exactly one target. `query` means every memory that holds all its words, and needs
        `confirm`, the token of a preview; with one, exactly what was shown goes, or nothing.
        """
        request = Forget(
            ids=ids,  # type: ignore[arg-type]  # checked and made a tuple by Forget
            session=session,
            tags=tags,  # type: ignore[arg-type]
            before=before,
            query=query,
            confirm=confirm,
            unseen=unseen,
            actor=self._actor,
        )
        return self._engine.forget(self.scope, request)

    def preview(
        self,
        ids: Iterable[str] = (),
        *,
        session: str | None = None,
        tags: Iterable[str] = (),
        before: Times = None,
        query: str | None = None,
    ) -> Preview:
        """What `forget` with this target would erase, and the token to confirm it with."""
        request = Forget(
            ids=ids,  # type: ignore[arg-type]  # checked and made a tuple by Forget
            session=session,
            tags=tags,  # type: ignore[arg-type]
            before=before,
            query=query,
            actor=self._actor,
        )
        return self._engine.preview(self.scope, request)

    def revoke(self, *, session: str | None = None, channel: str | None = None) -> Erasure:
        """Undo what one session, or one channel, wrote, with everything derived from it.

        What it had superseded is the newest version again.
        """
        request = Revoke(session=session, channel=channel, actor=self._actor)
        return self._engine.revoke(self.scope, request)

    def destroy(self, *, confirm: str | None = None) -> Erasure:
        """Erase the whole scope, its keys first; `confirm` must be its full name."""
        return self._engine.destroy(self.scope, confirm=confirm)

    # -- turns and sessions ------------------------------------------------------------

    def record(
        self,
        user: str = "",
        assistant: str = "",
        *,
        id: str | None = None,
        at: datetime | None = None,
        session: str | None = None,
        model: str | None = None,
        channel: str | None = None,
        origin: Origin | str = Origin.USER,
        metadata: Mapping[str, Json] = {},
    ) -> Recorded:
        """Write a turn, and what follows from it; durable when this returns, once per id.

        Without an id it is a new turn each time.
        """
        request = Record(
            id=f"turn-{bootstrap.clock().new_id()}" if id is None else id,
            user=user,
            assistant=assistant,
            at=at,
            session=session,
            model=model,
            channel=channel,
            origin=origin,  # type: ignore[arg-type]  # checked and made an Origin by Record
            actor=self._actor,
            metadata=metadata,
        )
        return self._engine.record(self.scope, request)

    def turns(
        self,
        limit: int = 50,
        *,
        session: str | None = None,
        before: Turn | datetime | None = None,
    ) -> tuple[Turn, ...]:
        """Turns as they happened, newest first, of all or of one session.

        `before` is a time, or the last turn of the answer before this one; an empty answer is
        the end. Turns that say very much may come fewer at a time than the limit.
        """
        last = before if isinstance(before, Turn) else None
        return self._engine.turns(
            self.scope,
            limit,
            session=session,
            before=last.at if last else before,  # type: ignore[arg-type]  # no Turn here
            before_id=last.id if last else None,
            actor=self._actor,
        )

    def timeline(self, limit: int = 50) -> Timeline:
        """When the latest turns were, and roughly what about, oldest first."""
        return self._engine.timeline(self.scope, limit, actor=self._actor)

    def sessions(self, limit: int = 50) -> tuple[Session, ...]:
        """The sessions of which something is kept, the one that was spoken in last first."""
        return self._engine.sessions(self.scope, limit, actor=self._actor)

    # -- the scope as a whole ----------------------------------------------------------

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
