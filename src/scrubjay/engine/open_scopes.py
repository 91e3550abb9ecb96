"""OpenScopes: the caches every verb begins with: open scopes, and the shelf of their indexes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from functools import wraps
from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Protocol, TypeVar

from scrubjay.engine.scope import lifecycle
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.keyring import INSTALLATION
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.errors import Destroyed, InvalidRequest, StoreError
from scrubjay.model.origin import Actor
from scrubjay.model.purposes import PurposeState, SetPurpose
from scrubjay.model.requests import NOTHING, USER, Caller, Destroy, NoFields
from scrubjay.model.results import AuditEvent, DestroyToken, Erasure, Holdings, RootRotated, Rotated
from scrubjay.model.rows import Head
from scrubjay.model.scope import Scope
from scrubjay.model.user_keys import Held, Hold, Unlock, Unlocked
from scrubjay.ports import Progress, Shared, no_progress, patience


class LazyModule:
    """A module imported at its first call: a process that only reads loads no writing code."""

    def __init__(self, name: str) -> None:
        self._name = f"scrubjay.engine.{name}"

    def __getattr__(self, function: str) -> Any:
        found = getattr(import_module(self._name), function)
        setattr(self, function, found)  # the next call finds it at once
        return found


if TYPE_CHECKING:
    from scrubjay.engine.ledger import inbox, jobs
    from scrubjay.engine.scope import due_work, root_key, user_keys
    from scrubjay.engine.scope import exercised as exercise
    from scrubjay.engine.scope import purposes as asking
    from scrubjay.engine.scope import rotate as rotating
    from scrubjay.engine.scope.exercised import Life
    from scrubjay.engine.search.open_index import OpenIndex
else:
    asking = LazyModule("scope.purposes")
    due_work = LazyModule("scope.due_work")
    exercise = LazyModule("scope.exercised")
    inbox = LazyModule("ledger.inbox")
    jobs = LazyModule("ledger.jobs")
    root_key = LazyModule("scope.root_key")
    rotating = LazyModule("scope.rotate")
    user_keys = LazyModule("scope.user_keys")

# -- the shelf of indexes --------------------------------------------------------------------------


class Sized(Protocol):
    """Anything with an approximate size in bytes."""

    @property
    def size(self) -> int:
        """Bytes in memory."""


Item = TypeVar("Item", bound=Sized)


class Shelf(Generic[Item]):
    """LRU cache within a budget of bytes; thread-safe.

    An evicted entry stays usable for callers that still hold it.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._total = 0
        self._touched: set[str] = set()
        """Entries whose size may have changed; asking all of thousands would take too long."""
        self._mutex = threading.Lock()

    def take(self, name: str, make: Callable[[], Item]) -> Item:
        """The entry of this name, made if it is missing; it becomes the most recently used one."""
        with self._mutex:
            if name not in self._items:
                self._items[name] = make()
            self._items.move_to_end(name)
            self._touched.add(name)
            return self._items[name]

    def find(self, name: str) -> Item | None:
        """The entry of this name, or None; it becomes the most recently used one."""
        with self._mutex:
            if name not in self._items:
                return None
            self._items.move_to_end(name)
            self._touched.add(name)
            return self._items[name]

    @property
    def full(self) -> bool:
        """Whether the budget is exceeded, so that `trim` would evict."""
        with self._mutex:
            self._measure_touched()
            return self._total > self._budget

    def drop(self, name: str) -> None:
        """Drop one entry; a missing one is fine."""
        with self._mutex:
            self._items.pop(name, None)
            self._measure(name)

    def trim(self) -> list[Item]:
        """Evict the least recently used entries until the rest fits; the last one used stays."""
        gone: list[Item] = []
        with self._mutex:
            self._measure_touched()
            while self._total > self._budget and len(self._items) > 1:
                name, item = self._items.popitem(last=False)
                self._measure(name)
                gone.append(item)
        return gone

    @property
    def size(self) -> int:
        """Size in bytes when it was last trimmed."""
        return self._total

    def __len__(self) -> int:
        return len(self._items)

    def _measure_touched(self) -> None:
        while self._touched:
            self._measure(self._touched.pop())

    def _measure(self, name: str) -> None:
        item = self._items.get(name)
        before = self._sizes.pop(name, 0)
        if item is not None:
            self._sizes[name] = item.size
        self._total += self._sizes.get(name, 0) - before


# -- the open scopes -------------------------------------------------------------------------------

OPEN_SCOPES: Final = 512
"""Capacity of the LRU cache of open scopes: their keys, and the plaintext cache of each."""


class OpenScopes:
    """The open scopes of one installation, an LRU cache; every room of verbs builds on it."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._opened: dict[Scope, OpenScope] = {}
        self._used: dict[Scope, float] = {}
        """When each was last used: a reading of the clock's `monotonic`."""
        self._kept_on: date | None = None
        """The day on which the schedule of the root key was last looked at."""
        self._shelf: Shelf[OpenIndex] = Shelf(ports.policy.shelf_bytes)
        self._mutex = threading.RLock()
        self._closed = False

    def open(self, scope: Scope, *, create: bool = True, anew: bool = False) -> None:
        """Open the scope, or create it, and check that its keys open it."""
        with self._mutex:
            if anew:
                self._opened.pop(scope, None)
            opened = self._open(scope, create=create, anew=anew)
            if not opened.is_there():  # it may have been open for long
                self._open(scope, create=create, anew=anew)

    def _open(self, scope: Scope, *, create: bool = True, anew: bool = False) -> OpenScope:
        self._check_open()
        self._used[scope] = self._ports.clock.monotonic()
        found = self._opened.get(scope)
        if found is None or found.ended:
            with self._mutex:
                found = self._opened.get(scope)
                if found is not None and found.ended:
                    # There may be another life of the scope, at another address, by now.
                    self._shelf.drop(found.address)
                    found = None
                if found is None:
                    found = lifecycle.open_scope(self._ports, scope, create=create, anew=anew)
                    self._opened[scope] = found
                    self._let_go()
        if found.user_held:
            self._admit(found)
        return found

    def _admit(self, opened: OpenScope) -> None:
        """Lock a scope that was not used for too long; open one by what its user has at hand."""
        if opened.keys.lapsed:
            self._lock(opened)
        if opened.keys.locked:
            user_keys.unlock_by_custody(opened)
        else:
            opened.keys.touch()

    def _lock(self, opened: OpenScope) -> None:
        opened.lock()
        self._shelf.drop(opened.address)

    def _let_go(self) -> None:
        """Eviction of scopes that are idle, and of the least recently used ones past the capacity.

        A call that still has one in hand goes on with it.
        """
        since = self._ports.clock.monotonic() - self._ports.policy.idle_seconds
        for scope in sorted(self._opened, key=lambda one: self._used.get(one, 0.0)):
            if len(self._opened) <= OPEN_SCOPES and self._used.get(scope, 0.0) > since:
                return
            opened = self._opened.pop(scope)
            self._used.pop(scope, None)
            self._shelf.drop(opened.address)
            opened.close()

    @property
    def shared(self) -> Shared:
        """Small values that all processes of this installation share."""
        return self._check_open().store.shared

    def upkeep(self) -> None:
        """Close scopes that are idle, and keep the schedule of the root key: once in a while."""
        with self._mutex:
            ports = self._check_open()
            self._let_go()
            for opened in self._opened.values():
                if opened.keys.lapsed:
                    self._lock(opened)
        root_key.keep_schedule(ports)

    def _check_open(self) -> Ports:
        """The ports; an error if the engine was closed."""
        if self._closed:
            raise StoreError("This engine is closed.", hint="Open the scope again.")
        return self._ports

    def _begin(self, scope: Scope, *, create: bool = True) -> OpenScope:
        """The open scope, after a slice of the work earlier verbs left due."""
        opened = self._open(scope, create=create)
        opened.check_current()
        if opened.due:
            due_work.attempt(opened)
        if opened.user_held and inbox.waits(opened):
            inbox.drain(opened)
        if create:
            self._keep_root_key()
        return opened

    def _keep_root_key(self) -> None:
        """Keep the schedule of the root key: the first write of a day in each process."""
        policy = self._ports.policy
        if policy.root_days or policy.root_keep_days:
            today = self._ports.clock.now().date()
            if today != self._kept_on:
                self._kept_on = today
                root_key.keep_schedule(self._ports)

    def _look(self, scope: Scope, caller: Caller = USER) -> OpenScope:
        """The open scope for a verb that only reads: it makes none.

        While the scope is frozen whole, its owner and operators may look, and no agent.
        """
        opened = self._begin(scope, create=False)
        if caller.actor is Actor.AGENT:
            opened.check_free(opened.head())
        return opened

    def _indexed(self, scope: Scope) -> OpenIndex:
        from scrubjay.engine.search.open_index import OpenIndex

        opened = self._open(scope)
        return self._shelf.take(opened.address, lambda: OpenIndex(opened))

    def scopes(self) -> tuple[Scope, ...]:
        """Every scope of this installation that is not destroyed, of those whose names open."""
        return lifecycle.scopes(self._check_open())[0]

    def unreadable_scopes(self) -> tuple[str, ...]:
        """The addresses in the catalog that the installation key does not open."""
        return lifecycle.scopes(self._check_open())[1]

    def head(self, scope: Scope) -> Head:
        """The scope's head: sequence numbers, freeze level, due work."""
        return self._open(scope, create=False).head()

    def lives(self) -> Sequence[Life]:
        """Every life of every scope, destroyed ones too, and how long its trail is."""
        return exercise.lives(self._check_open())

    def exercised(self, life: Life, after: int) -> Sequence[AuditEvent]:
        """The rights that were exercised in a life since a count, as its audit trail has them."""
        if life.destroyed:
            return exercise.destroyed(self._check_open(), life)
        return exercise.exercised(self._open(life.scope, create=False), after)

    def holdings(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> Holdings:
        """Count the rows of the scope by collection; nothing is decrypted for it."""
        return lifecycle.holdings(self._begin(scope, create=False), caller.actor)

    def purposes(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> tuple[PurposeState, ...]:
        """List the purposes of processing: each is on or off, with its lawful basis."""
        return asking.purposes(self._begin(scope, create=False), caller.actor)

    def set_purpose(self, scope: Scope, request: SetPurpose, caller: Caller = USER) -> PurposeState:
        """Switch a purpose on or off: it holds from the next transaction on, in every process."""
        return asking.set_purpose(self._begin(scope), request, caller)

    def hold(self, scope: Scope, request: Hold, caller: Caller = USER) -> Held:
        """Put the scope under keys of its user, or change what opens it; gives a recovery key.

        Then the host cannot read it without the user: it is unlocked for as long as it is used, and
        while it is locked, writes wait in its inbox.
        """
        return user_keys.hold(self._begin(scope), request, caller)

    def unlock(self, scope: Scope, request: Unlock, caller: Caller = USER) -> Unlocked:
        """Unlock a scope that its user holds, in this process, and take in what waits for it."""
        opened = self._open(scope, create=False)
        user_keys.unlock(opened, request, caller)
        return inbox.drain(opened)

    def lock(self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER) -> Holdings:
        """Lock a scope that its user holds, in this process: its keys leave the memory."""
        opened = self._open(scope, create=False)
        if not opened.user_held:
            raise InvalidRequest(f"No user holds the keys of {scope}.", hint="`hold` puts it so.")
        self._lock(opened)
        return lifecycle.holdings(opened, caller.actor)

    def rotate(
        self,
        scope: Scope,
        request: NoFields = NOTHING,
        caller: Caller = USER,
        *,
        progress: Progress = no_progress,
    ) -> Rotated:
        """Rotate the keys: re-encrypt everything under new ones and delete the old ones."""
        return rotating.rotate(self._begin(scope), actor=caller.actor, progress=progress)

    def check_keys(self) -> None:
        """KeyMissing unless the keys are still where they were."""
        self._check_open().keyring.check()

    def check_blobs(self) -> None:
        """Raise unless the blobs can be listed."""
        self._check_open().blobs.names(INSTALLATION.address)

    def store_warnings(self) -> Sequence[str]:
        """What the store cannot promise as it is set up, a sentence each."""
        return self._check_open().store.warnings()

    def rotate_root(self, *, progress: Progress = no_progress) -> RootRotated:
        """Rotate the root key of the installation: wrap every slot anew, destroy the old one."""
        return root_key.rotate(self._check_open(), progress=progress)

    def destroy_token(
        self, scope: Scope, request: NoFields = NOTHING, caller: Caller = USER
    ) -> DestroyToken:
        """A token that confirms the destroy of the scope as it is now, for an hour."""
        return lifecycle.destroy_token(self._begin(scope, create=False), caller.actor)

    def destroy(
        self,
        scope: Scope,
        request: Destroy = Destroy(),
        caller: Caller = USER,
        *,
        progress: Progress = no_progress,
    ) -> Erasure:
        """Erase the whole scope, its keys first; confirmed by its full name or by a token."""
        with self._mutex:
            ports, opened = self._check_open(), None
            if request.token is not None:
                with suppress(Destroyed):  # by this token or by another: the receipt is the same
                    opened = self._begin(scope, create=False)
            receipt = lifecycle.destroy(ports, scope, request, opened, progress)
            self._shelf.drop(receipt.address)
            self._opened.pop(scope, None)
            return receipt

    def finish_due(self, scope: Scope) -> None:
        """Finish all work that earlier verbs left due."""
        due_work.finish(self._open(scope))

    def close(self) -> None:
        """Write pending audit counts and close every file; idempotent."""
        with self._mutex:
            if self._closed:
                return
            for opened in self._opened.values():
                if opened.leased:
                    jobs.release(opened)
                opened.close()
            self._closed = True
            self._opened.clear()
            self._ports.store.close()


# -- the waits of a verb -----------------------------------------------------------------------

Class = TypeVar("Class", bound=type)
Given = ParamSpec("Given")
Result = TypeVar("Result")


def bounded(verbs: Class) -> Class:
    """The class with every public method under `patience`: its waits are bounded together."""
    for name in dir(verbs):
        if not name.startswith("_") and isfunction(verb := getattr(verbs, name)):
            setattr(verbs, name, _patient(verb))
    return verbs


def _patient(verb: Callable[Given, Result]) -> Callable[Given, Result]:
    @wraps(verb)
    def waiting(*args: Given.args, **named: Given.kwargs) -> Result:
        with patience():
            return verb(*args, **named)

    return waiting
