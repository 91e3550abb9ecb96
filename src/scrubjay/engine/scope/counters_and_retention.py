"""Counters of recalls, and the retention: the sealed values of a scope beside its rows.

Counters say how often memories were recalled, and when last. They are counted in memory, and
written by the first recall a minute after the last write, and on close. A page is a sealed value
with the counters of 512 creation numbers, always of one size. It is sealed under the key of the
memories: an erasure clears its counter in its own transaction, and a rotation renews the page.

A cap of the retention retires memories without touching their rows: the value has the number
below which they are retired. So a retain beyond a cap costs one small cell, and the index does not
change.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from struct import Struct as Layout
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.model.errors import KeyMissing, ScrubjayError, SealBroken
from scrubjay.model.memory import Memory
from scrubjay.model.retention import Duplicates, RetentionState
from scrubjay.model.rows import Collection, Freeze, Row
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock, Failpoint, Tx, View, patience
from scrubjay.vault import Purpose, Sealer

if TYPE_CHECKING:
    from scrubjay.engine.scope.open_scope import OpenScope

PAGE: Final = 512
"""How many creation numbers a page is for."""
SECONDS: Final = 60.0
"""The least time between two writes of counters by one process, but for the last, on close."""
_ITEM: Final = Layout("<II")
_MOST: Final = 2**32 - 1
_log = logging.getLogger(__name__)


class Recalls(Struct, frozen=True):
    """How often a memory was recalled, and when last, in seconds since 1970."""

    times: int
    last: int

    def joined(self, other: Recalls) -> Recalls:
        """Both together."""
        return Recalls(min(self.times + other.times, _MOST), max(self.last, other.last))

    @property
    def at(self) -> datetime:
        """The time of the last recall."""
        return datetime.fromtimestamp(self.last, UTC)


NEVER: Final = Recalls(0, 0)


class Counters:
    """The counters of one scope; thread-safe."""

    def __init__(self, opened: OpenScope) -> None:
        self._opened, self._clock = opened, opened.ports.clock
        self._mutex = threading.Lock()
        self._pending: dict[tuple[str, int], Recalls] = {}
        """By id and number: after a restore another memory may have the number."""
        self._since = self._clock.monotonic()
        """When they were last written or tried to be, or the scope was opened."""

    # -- in memory ---------------------------------------------------------------------

    def note(self, recalled: Iterable[Memory]) -> None:
        """Count a recall of each of these memories."""
        one = Recalls(1, int(self._clock.now().timestamp()))
        self._add({(memory.id, memory.number): one for memory in recalled})

    @property
    def late(self) -> bool:
        """Whether the next recall is to write them."""
        return self._clock.monotonic() >= self._since + SECONDS

    @property
    def pending(self) -> Mapping[int, Recalls]:
        """What this process has counted and not written yet, by number."""
        with self._mutex:
            return {number: one for (_, number), one in self._pending.items()}

    def settle(self) -> None:
        """Write them if it is time, and nobody holds the scope; a recall never fails for it."""
        if not self.late or self._opened.frozen is not Freeze.NONE:
            return
        try:
            with patience(0):
                self.flush()
        except ScrubjayError as error:
            _log.warning("counters.left", extra={"code": error.code})

    def flush(self) -> None:
        """Write what was counted, but of memories that are gone; nothing while it is frozen."""
        with self._mutex:
            taken, self._pending = self._pending, {}
            self._since = self._clock.monotonic()

        def store(tx: Tx) -> bool:
            if tx.head().frozen is not Freeze.NONE:
                return False
            rows = {name: tx.row(Collection.MEMORY, self._opened.row_id(name[0])) for name in taken}
            there = {name[1]: row for name, row in rows.items() if row and not row.erased}
            counted = {name[1]: one for name, one in taken.items()}
            self.add(tx, {n: counted[n] for n, row in there.items() if row.born == n})
            return True

        written = False
        try:
            if taken and (written := self._opened.write(store, frozen_too=True)):
                self._opened.ports.reach(Failpoint.COUNTERS_WRITTEN)
        finally:
            if not written:
                self._add(taken)

    def _add(self, counted: Mapping[tuple[str, int], Recalls]) -> None:
        with self._mutex:
            for name, one in counted.items():
                self._pending[name] = one.joined(self._pending.get(name, NEVER))

    # -- in pages ----------------------------------------------------------------------

    def of(self, view: View, numbers: Iterable[int]) -> dict[int, Recalls]:
        """The written counters of these numbers; those that were never recalled are left out."""
        found = dict[int, Recalls]()
        for number, some in groupby(sorted(numbers), key=lambda one: one // PAGE):
            page = self._read(view, number)
            found |= {one: recalls for one in some if (recalls := _at(page, one)).times}
        return found

    def every(self, view: View) -> dict[int, Recalls]:
        """All written counters, by number."""
        return self.of(view, (one for page in _pages(view) for one in _numbers(page)))

    def add(self, tx: Tx, counted: Mapping[int, Recalls]) -> None:
        """Add to the counters of these numbers; only their pages are written."""
        for number, some in groupby(sorted(counted), key=lambda one: one // PAGE):
            page = self._read(tx, number)
            for one in some:
                self._set(page, one, _at(page, one).joined(counted[one]))
            self._write(tx, number, page)

    def adopt(self, tx: Tx, carried: Mapping[int, Recalls]) -> None:
        """Take over the counters of a backup, where nothing is counted yet."""
        known = self.of(tx, carried)
        self.add(tx, {number: one for number, one in carried.items() if number not in known})

    def erase(self, tx: Tx, row: Row) -> None:
        """Clear the counter of a memory that is erased."""
        page = self._read(tx, row.born // PAGE)
        if _at(page, row.born).times:
            self._set(page, row.born, NEVER)
            self._write(tx, row.born // PAGE, page)

    def outdated(self, view: View) -> bool:
        """Whether a page is sealed under a key that is to be deleted."""
        epoch = view.head().memory.epoch
        return any(vault.epoch_of(cell) < epoch for cell in _pages(view).values())

    def renew(self, tx: Tx) -> None:
        """Seal the pages under the present key; one that does not open is dropped."""
        epoch = tx.head().memory.epoch
        for number, cell in _pages(tx).items():
            if vault.epoch_of(cell) < epoch:
                self._write(tx, number, self._read(tx, number))

    def check(self, view: View, numbers: Container[int]) -> Iterator[str]:
        """What is wrong with the pages: one does not open, or counts what is not there."""
        for number, cell in _pages(view).items():
            try:
                page = self._open(number, cell)
            except (SealBroken, KeyMissing):
                yield f"Page {number} of the counters does not open; it begins anew when written."
                continue
            gone = [one for one in _numbers(number) if _at(page, one).times and one not in numbers]
            if gone:
                yield f"Page {number} of the counters counts {len(gone)} memories that are gone."

    def _read(self, view: View, number: int) -> bytearray:
        if (cell := view.value(_name(number))) is not None:
            try:
                return bytearray(self._open(number, cell))
            except (SealBroken, KeyMissing) as error:
                _log.warning("counters.damaged", extra={"code": error.code})
        return bytearray(PAGE * _ITEM.size)

    def _open(self, number: int, cell: bytes) -> bytes:
        place = _name(number).encode()
        return self._sealer(vault.epoch_of(cell)).unseal(cell, row_id=place, version=0)

    def _sealer(self, epoch: int) -> Sealer:
        return self._opened.sealer(Collection.MEMORY, Purpose.COUNTERS, epoch)

    def _write(self, tx: Tx, number: int, page: bytearray) -> None:
        cell = None
        if any(page):
            place, nonce = _name(number).encode(), self._clock.random(vault.NONCE_BYTES)
            seal = self._sealer(tx.head().memory.epoch).seal
            cell = seal(bytes(page), row_id=place, version=0, nonce=nonce)
        tx.set_value(_name(number), cell)

    @staticmethod
    def _set(page: bytearray, number: int, recalls: Recalls) -> None:
        _ITEM.pack_into(page, number % PAGE * _ITEM.size, recalls.times, recalls.last)


def _at(page: bytearray | bytes, number: int) -> Recalls:
    return Recalls(*_ITEM.unpack_from(page, number % PAGE * _ITEM.size))


def _name(page: int) -> str:
    return f"counters.{page}"


def _numbers(page: int) -> range:
    return range(page * PAGE, (page + 1) * PAGE)


def _pages(view: View) -> dict[int, bytes]:
    """The cells of the pages that were ever written."""
    last = view.head().memory.seq // PAGE
    cells = ((number, view.value(_name(number))) for number in range(last + 1))
    return {number: cell for number, cell in cells if cell is not None}


# -- retention -------------------------------------------------------------------------------------

RETENTION: Final = "retention"
_PLACE: Final = b"retention"


class ScopeLimits:
    """The retention of one scope; the last state is cached by the bytes of its cell."""

    def __init__(self, lookup: bytes, scope: Scope, clock: Clock) -> None:
        self._sealer = Sealer(lookup, Purpose.RETENTION, scope, RETENTION)
        self._clock = clock
        self._last: tuple[bytes, RetentionState] | None = None

    def read(self, view: View) -> RetentionState | None:
        """The state; None if no retention is set, or it does not open, which `verify` reports."""
        cell = view.value(RETENTION)
        if cell is None:
            return None
        if (last := self._last) is not None and last[0] == cell:
            return last[1]
        try:
            state = self.open(cell)
        except SealBroken as error:
            _log.warning("retention.damaged", extra={"code": error.code})
            return None
        self._last = (cell, state)
        return state

    def open(self, cell: bytes) -> RetentionState:
        """The state in a cell; SealBroken if it is damaged."""
        body = vault.unpad(self._sealer.unseal(cell, row_id=_PLACE, version=0))
        return msgspec.msgpack.decode(body, type=RetentionState)

    def check(self, view: View) -> list[str]:
        """What is wrong with the stored retention, a sentence."""
        try:
            if (cell := view.value(RETENTION)) is not None:
                self.open(cell)
        except SealBroken:
            return ["The retention of the scope does not open; set it again."]
        return []

    def write(self, tx: Tx, state: RetentionState | None) -> None:
        """Replace the state; None removes it."""
        if state is None:
            tx.set_value(RETENTION, None)
            return
        body, nonce = msgspec.msgpack.encode(state), self._clock.random(vault.NONCE_BYTES)
        cell = self._sealer.seal(vault.pad(body), row_id=_PLACE, version=0, nonce=nonce)
        tx.set_value(RETENTION, cell)
        self._last = (cell, state)

    def follow(
        self, tx: Tx, memory: Memory, number: int, *, erased: bool = False
    ) -> RetentionState | None:
        """Count the memory of a number that was written or erased; retire what is past a cap.

        The state then; None if no retention is set.
        """
        state = self.read(tx)
        if state is None or memory.kind not in state.queues:
            return state
        then = state.following(memory, number, erased=erased, now=self._clock.now())
        if then is not state:
            self.write(tx, then)
        return then

    def keeps_latest(self, view: View) -> bool:
        """Whether a memory takes the place of one that says the same."""
        state = self.read(view)
        return state is not None and state.policy.duplicates is Duplicates.LATEST

    def retires(self, view: View, memory: Memory) -> bool:
        """Whether a memory is past a limit."""
        state = self.read(view)
        return state is not None and state.retired(memory, self._clock.now())

    def seen(self, view: View, memory: Memory) -> Memory:
        """The memory as a reader sees it: retired now, if it is past a limit."""
        if memory.retired_at is not None or not self.retires(view, memory):
            return memory
        return replace(memory, retired_at=self._clock.now())
