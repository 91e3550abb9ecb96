"""Jay: the handle on one scope, with every verb; AsyncJay is the same for `await`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from scrubjay import bootstrap, codec, files, settings
from scrubjay.engine import Kernel
from scrubjay.engine.memories import receipts
from scrubjay.model.compaction import Compact, Compacted
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json, Memory
from scrubjay.model.origin import Actor
from scrubjay.model.pages import FIRST, Page, Paged, paged
from scrubjay.model.requests import NOTHING, Backup, Caller, Export, Load, Restore
from scrubjay.model.results import BackedUp, Erasure, Exported, Loaded, Reindexed, Report
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.text import check
from scrubjay.ports import Progress, no_progress
from scrubjay.verbs import AsyncHandle, Handle, Verb, Verbs

Named = bytes | str | os.PathLike[str]
"""A file's bytes, or its path."""
P = ParamSpec("P")
R = TypeVar("R")


class Engine:
    """All scopes of one home, which share its catalog, keys and indexes.

    Files of idle scopes are closed, and opened again when needed.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        passphrase: str | None = None,
        actor: Actor = Actor.USER,
    ) -> None:
        found = settings.read(home=home)
        if passphrase is not None:
            found = replace(found, passphrase=passphrase)
        self._actor = actor
        self._engine = bootstrap.build(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        import asyncio  # loaded by those who await, and by no command

        await asyncio.to_thread(self.close)

    def scope(self, name: str, *, create: bool = True, anew: bool = False) -> Jay:
        """The handle on a scope: `"alice"` for `local/alice`, or `"tenant/owner"`.

        Closing it does not close the engine. A missing scope is created, unless `create` is
        false; a destroyed one only with `anew`.
        """
        scope = Scope.parse(name)
        self._engine.open(scope, create=create, anew=anew)
        return Jay(self._engine, scope, actor=self._actor, shared=True)

    def scopes(self, limit: int = FIRST.limit, *, cursor: str | None = None) -> Page[Scope]:
        """List the scopes that are not destroyed, by name."""
        request = Paged(limit, cursor=cursor)
        return paged(self._engine.scopes(), request.limit, request.cursor, Scope.order)

    def close(self) -> None:
        """Close every file; idempotent."""
        self._engine.close()


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

    `home` is the folder for data and keys; by default the environment decides. A missing scope is
    created, unless `create` is false; a destroyed one only with `anew`.
    """
    Scope.parse(scope)  # before anything is made
    engine = Engine(home, passphrase=passphrase, actor=actor)
    try:
        jay = engine.scope(scope, create=create, anew=anew)
    except BaseException:  # seam: nothing may stay open when opening fails, whatever it was
        engine.close()
        raise
    jay.shared = False
    return jay


class Jay(Verbs, Handle):
    """Handle on one scope with all verbs; thread-safe, closed by `with` or `close`."""

    def __init__(
        self, engine: Kernel, scope: Scope, *, actor: Actor = Actor.USER, shared: bool = False
    ) -> None:
        self._engine = engine
        self.scope = scope
        self.shared = shared
        """Whether the engine is shared: then closing the handle does not close it."""
        self._caller = Caller(actor=check("actor", Actor, actor))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.scope}>"

    def close(self) -> None:
        """Close every file, unless the engine is shared; idempotent."""
        if not self.shared:
            self._engine.close()

    def _carry_out(self, verb: Verb[..., Any], request: Struct) -> Any:
        return getattr(self._engine, verb.name)(self.scope, request, self._caller)

    # -- short forms -------------------------------------------------------------------

    def pin(self, id: str) -> Memory:
        """Pin a memory: it comes first in the brief, and no limit retires it."""
        return self.amend(id, pinned=True)

    def unpin(self, id: str) -> Memory:
        """Unpin a memory."""
        return self.amend(id, pinned=False)

    def archive(self, id: str) -> Memory:
        """Archive a memory: it is neither searched, listed nor in the brief, but kept."""
        return self.amend(id, archived=True)

    def unarchive(self, id: str) -> Memory:
        """Take a memory back from the archive; LimitReached if it is past the retention."""
        return self.amend(id, archived=False)

    def expire(self, id: str, at: datetime | None) -> Memory:
        """Set the time a memory expires; None for never."""
        return self.amend(id, expires_at=at)

    def unfreeze(self) -> Freeze:
        """Lift a freeze; returns the level before."""
        return self.freeze(Freeze.NONE)

    # -- files, receipts and progress ----------------------------------------------------

    def export(
        self,
        to: str | os.PathLike[str] | IO[bytes] | None = None,
        *,
        sealed: bool = False,
        passphrase: str | None = None,
        where: Mapping[str, Json] | None = None,
    ) -> Exported:
        """Every memory as JSON, or sealed under a passphrase or a new key.

        It is written piece by piece to a path or an open binary file; without one it is the
        `content` of the answer.
        """
        request = Export(sealed=sealed, passphrase=passphrase, where=where or {})
        if to is None:
            return self._engine.export(self.scope, request, self._caller)
        if isinstance(to, str | os.PathLike):
            path = partial(files.write, Path(to))
            return self._engine.export(self.scope, request, self._caller, deliver=path)
        with closing(files.Spool(bootstrap.clock().random)) as spool:  # a pipe cannot begin again
            exported = self._engine.export(self.scope, request, self._caller, deliver=spool.fill)
            to.writelines(spool)
        return exported

    def load(
        self, source: Named, *, key: str | None = None, passphrase: str | None = None
    ) -> Loaded:
        """Add what an export holds, from a file or its bytes: all of it or nothing."""
        request = Load(files.read(source), key, passphrase)
        return self._engine.load(self.scope, request, self._caller)

    def backup(self, path: str | os.PathLike[str], *, days: int = Backup().days) -> BackedUp:
        """Write a sealed copy of the scope; keep the key in the answer in a safe place."""
        request = Backup(days=days)
        _, receipt = self._engine.backup(
            self.scope,
            request,
            self._caller,
            deliver=lambda raw: files.write(Path(path), raw),
        )
        return receipt

    def restore(
        self, source: Named, *, key: str | None = None, passphrase: str | None = None
    ) -> Loaded:
        """Merge a backup; what was forgotten since it was made stays forgotten."""
        request = Restore(files.read(source), key, passphrase)
        return self._engine.restore(self.scope, request, self._caller)

    def reindex(self, *, progress: Progress = no_progress) -> Reindexed:
        """Rebuild the index from the memories, with a vector for each."""
        return self._engine.reindex(self.scope, NOTHING, self._caller, progress=progress)

    def compact(self, /, *, progress: Progress = no_progress, **fields: object) -> Compacted:
        """Compact older episodes into summaries and archive them, if recall does not suffer.

        The fields are those of `Compact`; with `dry_run` it only proves and reports.
        """
        request = codec.request(Compact, fields)
        return self._engine.compact(self.scope, request, self._caller, progress=progress)

    def verify(self, erased: Erasure | str | os.PathLike[str] | None = None) -> Report:
        """Check the integrity of the scope; with a receipt, or its file, prove that erasure."""
        if erased is None:
            return self._engine.verify(self.scope)
        if not isinstance(erased, Erasure):
            erased = receipts.from_json(files.read(erased).decode(errors="replace"))
        return self._engine.verify_erased(self.scope, erased)


class _Awaited(Generic[P, R]):
    """A method of `Jay` that is not a plain verb, for `await`; once begun it is finished."""

    def __init__(self, method: Callable[Concatenate[Jay, P], R], *, heavy: bool = True) -> None:
        self._method = method
        self._heavy = heavy
        self.__doc__ = method.__doc__

    def __get__(self, handle: AsyncJay, owner: type) -> Callable[P, Awaitable[R]]:
        @wraps(self._method)
        async def run(*args: P.args, **named: P.kwargs) -> R:
            work = partial(self._method, handle.sync, *args, **named)
            return await handle._bridge.write(work, heavy=self._heavy)

        return run


class AsyncJay(Verbs, AsyncHandle):
    """A `Jay` for `await`: the same methods, run in threads beside the event loop.

    It wraps an open handle, and closes it: `async with AsyncJay(scrubjay.open("alice")) as jay`.
    """

    def __init__(self, jay: Jay) -> None:
        from scrubjay.bridge import Bridge

        if not isinstance(jay, Jay):
            raise InvalidRequest("It wraps an open handle: AsyncJay(scrubjay.open(…)).")
        self._jay = jay
        self._bridge = Bridge()
        self.scope = jay.scope

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncJay {self.scope}>"

    async def close(self) -> None:
        """Finish the running writes and close every file; idempotent."""
        await self._bridge.close()
        self._jay.close()

    def _carry_out(self, verb: Verb[..., Any], request: Struct) -> Awaitable[Any]:
        work = partial(self._jay._carry_out, verb, request)
        if verb.writes:
            return self._bridge.write(work, heavy=verb.heavy)
        return self._bridge.read(work, heavy=verb.heavy)

    pin = _Awaited(Jay.pin, heavy=False)
    unpin = _Awaited(Jay.unpin, heavy=False)
    archive = _Awaited(Jay.archive, heavy=False)
    unarchive = _Awaited(Jay.unarchive, heavy=False)
    expire = _Awaited(Jay.expire, heavy=False)
    unfreeze = _Awaited(Jay.unfreeze, heavy=False)
    export = _Awaited(Jay.export)
    load = _Awaited(Jay.load)
    backup = _Awaited(Jay.backup)
    restore = _Awaited(Jay.restore)
    reindex = _Awaited(Jay.reindex)
    compact = _Awaited(Jay.compact)
    verify = _Awaited(Jay.verify)

    @property
    def sync(self) -> Jay:
        """The wrapped handle."""
        return self._jay
