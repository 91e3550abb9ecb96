"""MemoryVerbs: write, read and erase memories."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from scrubjay.engine.memories import read
from scrubjay.engine.open_scopes import LazyModule
from scrubjay.engine.search.kinds import kind_of
from scrubjay.engine.search.verbs import Found, SearchVerbs
from scrubjay.model.batches import RetainedMany, RetainMany
from scrubjay.model.errors import (
    Frozen,
    InvalidRequest,
    NeedsConfirmation,
    NotFound,
    UserLocked,
)
from scrubjay.model.memory import Edition, Kind, Memory, abbreviated
from scrubjay.model.overview import Changes, Lineage, RecallCounter
from scrubjay.model.pages import FIRST, Page, Paged, cursor_at, paged, place
from scrubjay.model.requests import (
    NOTHING,
    SYSTEM,
    USER,
    Amend,
    Approve,
    Browse,
    Caller,
    CountersRequest,
    Forget,
    FreezeRequest,
    Get,
    History,
    LineageRequest,
    NoFields,
    Purge,
    Recall,
    Reject,
    Retain,
    Revoke,
    Supersede,
)
from scrubjay.model.results import Erasure, Preview, Purged, Retained
from scrubjay.model.retention import Retention, SetRetention
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope

if TYPE_CHECKING:
    from scrubjay.engine.ledger import inbox
    from scrubjay.engine.memories import forget as forgetting
    from scrubjay.engine.memories import purge as purging
    from scrubjay.engine.memories import retain as retaining
    from scrubjay.engine.memories import retention as limiting
    from scrubjay.engine.memories import trust
    from scrubjay.engine.search import overview
else:
    forgetting = LazyModule("memories.forget")
    inbox = LazyModule("ledger.inbox")
    limiting = LazyModule("memories.retention")
    overview = LazyModule("search.overview")
    purging = LazyModule("memories.purge")
    retaining = LazyModule("memories.retain")
    trust = LazyModule("memories.trust")

_NEAR = 5
"""Maximum number of paraphrases in a preview."""
_NEAR_TARGETS = 3
"""Number of memories to be forgotten whose paraphrases a preview searches for."""
_SHOWN = 10
"""Number of ids that an ambiguous beginning is refused with."""
_NEAR_CHARS = 1_000
"""Length of the query made from each of them, in characters."""


class MemoryVerbs(SearchVerbs):
    """Verbs on memories: write, read, erase, trust. A preview of forget searches, too."""

    def kind_of(self, text: str) -> Kind:
        """The kind a text reads like: preference or instruction, else fact."""
        return kind_of(text)

    def retain(self, scope: Scope, request: Retain, caller: Caller = USER) -> Retained:
        """Write a memory; durable when this returns, idempotent by `key`.

        While its user has the scope locked, it waits in the inbox.
        """
        opened = self._begin(scope)
        with suppress(UserLocked):  # another process may just have put it under keys of its user
            if not opened.locked:
                return retaining.retain(opened, request, caller)
        return inbox.post_memory(opened, request, caller)

    def retain_many(self, scope: Scope, request: RetainMany, caller: Caller = USER) -> RetainedMany:
        """Write many memories with all checks of retain; a receipt for each, in their order.

        They are written in chunks, each durable as a whole. An item that is wrong is refused by
        itself, and its receipt says why; with `atomic` it refuses all of them. The index follows a
        large batch while it is written, so that the next recall does not wait for it.
        """
        large = len(request) > self._ports.policy.segment_rows
        follow = partial(self._take_in, scope) if large else None
        return retaining.retain_many(self._begin(scope), request, caller, follow)

    def supersede(self, scope: Scope, request: Supersede, caller: Caller = USER) -> Retained:
        """Replace a memory; fields left out are taken from the old one, which stays as history."""
        opened = self._begin(scope)
        return self._by_id(
            scope,
            request.id,
            lambda id: retaining.supersede(opened, replace(request, id=id), caller),
        )

    def amend(
        self,
        scope: Scope,
        request: Amend,
        caller: Caller = USER,
        *,
        expected: frozenset[Edition] | None = None,
    ) -> Memory:
        """Pin, archive or expire a memory, or take that back: unpin, unarchive, no expiry.

        `expected` is an optimistic lock: Stale if the memory is in none of these editions.
        """
        opened = self._begin(scope)
        return self._by_id(
            scope,
            request.id,
            lambda id: retaining.amend(opened, replace(request, id=id), caller, expected),
        )

    def _by_id(self, scope: Scope, id: str, look: Callable[[str], Found]) -> Found:
        """What is found under an id, or under the only id made here that begins so."""
        try:
            return look(id)
        except NotFound:
            whole = self._whole_id(scope, id) if abbreviated(id) else None
            if whole is None:
                raise
            return look(whole)

    def _whole_id(self, scope: Scope, prefix: str) -> str | None:
        """The id that begins so, of the memories in the index and the archived ones."""
        found = self._with_index(scope, lambda one: overview.ids(one, prefix))
        if len(found) > 1:
            more = f" and {len(found) - _SHOWN:,} more" * (len(found) > _SHOWN)
            raise InvalidRequest(
                f"{prefix} is the beginning of {len(found):,} ids: "
                f"{', '.join(found[:_SHOWN])}{more}.",
                hint="Give more characters of the one you mean.",
            )
        return found[0] if found else None

    def freeze(
        self,
        scope: Scope,
        request: FreezeRequest = FreezeRequest(),
        caller: Caller = USER,
        *,
        lifts: bool = True,
    ) -> Freeze:
        """Block writes, or writes and recall; `none` lifts it. Returns the level before."""
        level = Freeze(request.level)
        return retaining.freeze(self._begin(scope), level, actor=caller.actor, lifts=lifts)

    def get(self, scope: Scope, request: Get, caller: Caller = USER) -> Memory:
        """One memory by id, superseded or not; by 8 characters or more, if only one begins so."""
        opened, as_of, actor = self._look(scope, caller), request.as_of, caller.actor
        return self._by_id(
            scope, request.id, lambda id: read.get(opened, id, as_of=as_of, actor=actor)
        )

    def browse(
        self, scope: Scope, request: Browse = Browse(), caller: Caller = USER
    ) -> Page[Memory]:
        """Memories by filter, last recorded first."""
        return read.browse(self._look(scope, caller), request, actor=caller.actor)

    def history(self, scope: Scope, request: History, caller: Caller = USER) -> Page[Memory]:
        """The chain of versions a memory belongs to, oldest first."""
        opened, actor = self._look(scope, caller), caller.actor
        chain = self._by_id(scope, request.id, lambda id: read.history(opened, id, actor=actor))
        (last,) = place(request.cursor)
        # Whoever forgets a version forgets those before it: all that is left is yet to be shown.
        begin = next((at for at, one in enumerate(chain, 1) if one.number == last), 0)
        end = begin + request.limit
        next_cursor = cursor_at(chain[end - 1].number) if chain[end:] else None
        return Page(data=chain[begin:end], next_cursor=next_cursor)

    def counters(
        self, scope: Scope, request: CountersRequest, caller: Caller = USER
    ) -> tuple[RecallCounter, ...]:
        """How often each of these memories was recalled, and when last; in their order."""
        opened, actor = self._look(scope, caller), caller.actor
        return tuple(
            self._by_id(scope, one, lambda id: read.counter(opened, id, actor=actor))
            for one in request.ids
        )

    def lineage(self, scope: Scope, request: LineageRequest, caller: Caller = USER) -> Lineage:
        """What a memory was derived from, and what was derived from it: two steps, at most 50."""
        opened, actor = self._look(scope, caller), caller.actor
        return self._by_id(scope, request.id, lambda id: read.lineage(opened, id, actor=actor))

    def follow(self, scope: Scope, request: Paged = FIRST, caller: Caller = USER) -> Changes:
        """Change feed: the changes of memories since the last answer, oldest first."""
        return read.follow(self._look(scope, caller), request, actor=caller.actor)

    def forget(
        self,
        scope: Scope,
        request: Forget,
        caller: Caller = USER,
        *,
        expected: frozenset[Edition] | None = None,
        turns_only: bool = False,
    ) -> Erasure:
        """Erase memories for good, with their earlier versions and what was derived from them.

        Exactly one target. `query` means every memory that holds all its words, and needs
        `confirm`, the token of a preview: exactly what was shown is erased, or nothing. So does the
        beginning of an id instead of a whole one.
        """
        opened = self._begin(scope)
        if request.confirm is not None:
            request = self._spelled_out(scope, request)
        try:
            return forgetting.forget(
                opened, request, caller, expected=expected, turns_only=turns_only
            )
        except NotFound as error:
            if turns_only or self._spelled_out(scope, request) == request:
                raise
            raise NeedsConfirmation(
                "Forget by the beginning of an id needs the token of a preview.",
                hint="Look at preview(…) and repeat the call with confirm=preview.token.",
            ) from error

    def _spelled_out(self, scope: Scope, request: Forget) -> Forget:
        """The request with whole ids, where one is given by its beginning."""
        opened = self._look(scope)
        ids = [] if request.unseen else [id for id in request.ids if abbreviated(id)]
        missing = opened.read(lambda view: forgetting.missing(opened, view, ids)) if ids else []
        whole = {id: self._whole_id(scope, id) or id for id in missing}
        return replace(request, ids=tuple(whole.get(id, id) for id in request.ids))

    def preview(self, scope: Scope, request: Forget, caller: Caller = USER) -> Preview:
        """What a forget would erase, and the token that confirms exactly that."""
        request = self._spelled_out(scope, request)
        found = forgetting.preview(self._look(scope, caller), request, caller)
        shown = {one.id for one in (*found.memories, *found.others, *found.copies)}
        near: dict[str, Memory] = {}
        with suppress(Frozen):
            for memory in found.memories[:_NEAR_TARGETS]:
                asked = Recall(memory.content[:_NEAR_CHARS], limit=_NEAR + len(shown))
                for hit in self.recall(scope, asked, caller, local=True, counted=False).hits:
                    near.setdefault(hit.memory.id, hit.memory)
        others = [one for one in near.values() if one.id not in shown]
        return replace(found, near=tuple(others[:_NEAR]))

    def purge(self, scope: Scope, request: Purge = Purge(), caller: Caller = SYSTEM) -> Purged:
        """Delete memories that are expired, long superseded or long forgotten."""
        return purging.purge(self._begin(scope), request.superseded_days, actor=caller.actor)

    def retention(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> Retention:
        """The retention of the scope: limits by kind, and what becomes of repeats."""
        return limiting.retention(self._look(scope), caller.actor)

    def set_retention(
        self, scope: Scope, request: SetRetention = SetRetention(), caller: Caller = USER
    ) -> Retention:
        """Set the retention, in place of what was set; without fields nothing is limited.

        Memories past a number or an age are retired: they are out of sight, and purge erases them.
        """
        return limiting.set_retention(self._begin(scope), request, caller)

    def quarantined(
        self, scope: Scope, request: Paged = FIRST, caller: Caller = USER
    ) -> Page[Memory]:
        """List the memories in quarantine, which wait for a person, oldest first."""
        found = trust.quarantined(self._look(scope, caller), actor=caller.actor)
        return paged(found, request.limit, request.cursor, lambda one: (one.number,))

    def approve(self, scope: Scope, request: Approve, caller: Caller = USER) -> Memory:
        """Release a memory from quarantine, given the exact text that was shown."""
        opened, text, actor = self._begin(scope), request.content, caller.actor
        return self._by_id(
            scope, request.id, lambda id: trust.approve(opened, id, text, actor=actor)
        )

    def reject(self, scope: Scope, request: Reject, caller: Caller = USER) -> Erasure:
        """Erase a memory that is in quarantine."""
        return trust.reject(self._begin(scope), request.id, actor=caller.actor)

    def revoke(self, scope: Scope, request: Revoke, caller: Caller = USER) -> Erasure:
        """Undo all writes of one session, channel or key, with everything derived from them.

        Memories that they had superseded become the newest version again.
        """
        return trust.revoke(self._begin(scope), request, caller)
