"""TransferVerbs: export, backup, verify, receipts and audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrubjay.engine.open_scopes import LazyModule
from scrubjay.engine.scope import lifecycle
from scrubjay.engine.scope.pending_blobs import PARCEL
from scrubjay.engine.search.verbs import SearchVerbs
from scrubjay.model.errors import Destroyed, NotFound, ScrubjayError
from scrubjay.model.origin import Actor
from scrubjay.model.pages import FIRST, Page, Paged, cursor_at, place
from scrubjay.model.requests import (
    NOTHING,
    USER,
    AuditRequest,
    Backup,
    Caller,
    Export,
    Load,
    NoFields,
    Restore,
)
from scrubjay.model.results import (
    AuditEvent,
    BackedUp,
    Erasure,
    Exported,
    FileInspection,
    Loaded,
    MovedScope,
    Report,
)
from scrubjay.model.scope import Scope
from scrubjay.model.user_keys import OPEN_SECONDS
from scrubjay.ports import Deliver

if TYPE_CHECKING:
    from scrubjay.engine.memories import receipts
    from scrubjay.engine.transfer import copies
    from scrubjay.engine.transfer import move as moving
    from scrubjay.engine.transfer import verify as verifying
else:
    receipts = LazyModule("memories.receipts")
    copies = LazyModule("transfer.copies")
    moving = LazyModule("transfer.move")
    verifying = LazyModule("transfer.verify")


class TransferVerbs(SearchVerbs):
    """Verbs on whole scopes: export, backup, verify; receipts and the audit trail."""

    def export(
        self,
        scope: Scope,
        request: Export = Export(),
        caller: Caller = USER,
        *,
        deliver: Deliver | None = None,
        form: Callable[[Any], Iterator[bytes]] | None = None,
    ) -> Exported:
        """Every memory as JSON, or as a sealed bundle with a key of its own or a passphrase.

        `deliver` gets the file in pieces; it may be called again, and then begins it again. `form`
        makes the pieces of another form, from the memories, turns and so on that it is given.
        """
        opened = self._look(scope, caller)
        return copies.export(opened, request, caller.actor, deliver=deliver, form=form)

    def keep_parcel(self, scope: Scope, name: str, pieces: Iterable[bytes]) -> None:
        """Keep a sealed file beside the blobs of a scope, to be fetched later; destroy takes it.

        Each piece is a blob of its own, so that a file of any size takes the memory of one.
        """
        self.drop_parcel(scope, name)  # pieces that a process left which died
        ports = self._check_open()
        address, _ = lifecycle.locate(ports, scope)
        for number, piece in enumerate(pieces):
            ports.blobs.put(address, f"{PARCEL}{name}.{number:05}", piece)
        found, entry = lifecycle.locate(ports, scope)
        if found != address or (entry is not None and entry.destroyed):
            ports.blobs.remove(address)
            raise Destroyed("The scope was destroyed while a file of it was written.")

    def parcel(self, scope: Scope, name: str) -> Iterator[bytes]:
        """The pieces of a sealed file that is kept, read one by one; NotFound if it is gone."""
        blobs, (address, *names) = self._check_open().blobs, self._pieces(scope, name)
        if not names:
            raise NotFound("There is no such file.")
        return (blobs.get(address, one) for one in names)

    def drop_parcel(self, scope: Scope, name: str) -> None:
        """Delete a sealed file, its last piece first; an absent one is fine."""
        address, *names = self._pieces(scope, name)
        for one in reversed(names):
            self._check_open().blobs.delete(address, one)

    def _pieces(self, scope: Scope, name: str) -> list[str]:
        """The address of a scope, and the names of the blobs of a parcel."""
        ports = self._check_open()
        address, _ = lifecycle.locate(ports, scope)
        names = ports.blobs.names(address)
        return [address, *(one for one in names if one.startswith(f"{PARCEL}{name}."))]

    def load(self, scope: Scope, request: Load, caller: Caller = USER) -> Loaded:
        """Import an export, all or nothing; trusted no more than the caller."""
        loaded = copies.load(self._begin(scope), request, caller)
        if loaded.loaded > self._ports.policy.segment_rows:
            self._take_in(scope)
        return loaded

    def shards(self, scopes: Sequence[Scope] = ()) -> Mapping[str, str]:
        """The databases and, of each scope that is named, the one it is in."""
        ports = self._check_open()
        store = moving.sharded(ports.store)
        places = {str(one): store.place(lifecycle.locate(ports, one)[0]) for one in scopes}
        return places or dict.fromkeys(store.names(), "")

    def move_scope(self, scope: Scope, to: str) -> MovedScope:
        """Move a scope to another database while it is in use; a move cut off is continued."""
        address = self._begin(scope, create=False).address
        ports = self._check_open()
        shards = moving.sharded(ports.store)
        return moving.move_shard(shards, address, to, random=ports.clock.random)

    def backup(
        self,
        scope: Scope,
        request: Backup = Backup(),
        caller: Caller = USER,
        *,
        deliver: Callable[[bytes], None] = lambda _: None,
    ) -> tuple[bytes, BackedUp]:
        """A sealed copy of the scope under its own key, which expires; `deliver` stores it."""
        return copies.backup(
            self._begin(scope), days=request.days, deliver=deliver, actor=caller.actor
        )

    def restore(self, scope: Scope, request: Restore, caller: Caller = USER) -> Loaded:
        """Merge a backup, trusted no more than the caller; forgotten memories stay forgotten."""
        with self._mutex:
            ports, half = self._check_open(), None
            if opened := self._opened.pop(scope, None):
                half = None if opened.keys.locked else opened.keys.half
                # The rows may be made anew, and their numbers then mean other changes.
                self._shelf.drop(opened.address)
                opened.close()
            try:
                return copies.restore(ports, scope, request, caller, half)
            finally:
                if half is not None:  # whoever had it open has it open afterwards
                    with suppress(ScrubjayError):
                        opened = self._open(scope, create=False)
                        opened.keys.take_half(half, OPEN_SECONDS)

    def verify(self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER) -> Report:
        """Check the integrity of the scope: decrypt everything, and check every invariant."""
        return verifying.verify(self._open(scope, create=False))

    def inspect(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> FileInspection:
        """What a thief of the scope's data file can read without a key."""
        opened = self._open(scope, create=False)
        opened.note_read("inspect", caller.actor)
        return opened.ports.store.inspect(opened.address)

    def verify_erased(self, scope: Scope, receipt: Erasure) -> Report:
        """Prove an erasure: it is known here, and no key opens a cell that was erased."""
        return verifying.verify_erased(self._check_open(), scope, receipt)

    def receipts(
        self, scope: Scope, request: Paged = FIRST, caller: Caller = USER
    ) -> Page[Erasure]:
        """The erasure receipts kept for a scope, oldest first, also after destroy."""
        ports = self._check_open()
        address, _ = lifecycle.locate(ports, scope)
        kept = receipts.kept(ports, address)
        (begin,) = place(request.cursor)  # receipts are only added, at the end
        end = begin + request.limit
        return Page(data=kept[begin:end], next_cursor=cursor_at(end) if kept[end:] else None)

    def audit(
        self, scope: Scope, request: AuditRequest = AuditRequest(), caller: Caller = USER
    ) -> Page[AuditEvent]:
        """The audit trail, oldest first; on request its newest events."""
        opened = self._open(scope, create=False)
        opened.flush_reads()
        return verifying.audit(opened, request)

    def note(self, scope: Scope, verb: str, *, session: str | None = None, actor: Actor) -> None:
        """Write an event to the audit trail that changed nothing, such as a refused call."""
        verifying.note_event(self._begin(scope), verb, session=session, actor=actor)

    def verify_audit(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> Report:
        """Whether the audit trail is whole."""
        return verifying.verify_audit(self._open(scope, create=False))
