"""The retention of a scope in its file: one sealed value, changed in the transaction of a write.

A cap retires memories without touching their rows: the value has the number below which they are
retired. So a retain beyond a cap costs one small cell, and the index does not change.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.model.errors import SealBroken
from scrubjay.model.memory import Memory
from scrubjay.model.retention import RetentionState
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock, Tx, View
from scrubjay.vault import Purpose, Sealer

NAME: Final = "retention"
_PLACE: Final = b"retention"
_log = logging.getLogger(__name__)


class ScopeLimits:
    """The retention of one scope; the last state is cached by the bytes of its cell."""

    def __init__(self, lookup: bytes, scope: Scope, clock: Clock) -> None:
        self._sealer = Sealer(lookup, Purpose.RETENTION, scope, NAME)
        self._clock = clock
        self._last: tuple[bytes, RetentionState] | None = None

    def read(self, view: View) -> RetentionState | None:
        """The state; None if no retention is set, or it does not open, which `verify` reports."""
        cell = view.value(NAME)
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
            if (cell := view.value(NAME)) is not None:
                self.open(cell)
        except SealBroken:
            return ["The retention of the scope does not open; set it again."]
        return []

    def write(self, tx: Tx, state: RetentionState | None) -> None:
        """Replace the state; None removes it."""
        if state is None:
            tx.set_value(NAME, None)
            return
        body, nonce = msgspec.msgpack.encode(state), self._clock.random(vault.NONCE_BYTES)
        cell = self._sealer.seal(vault.pad(body), row_id=_PLACE, version=0, nonce=nonce)
        tx.set_value(NAME, cell)
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

    def retires(self, view: View, memory: Memory) -> bool:
        """Whether a memory is past a limit."""
        state = self.read(view)
        return state is not None and state.retired(memory, self._clock.now())

    def seen(self, view: View, memory: Memory) -> Memory:
        """The memory as a reader sees it: retired now, if it is past a limit."""
        if memory.retired_at is not None or not self.retires(view, memory):
            return memory
        return replace(memory, retired_at=self._clock.now())
