"""The columns of a head row, as stores in SQL keep them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from scrubjay.model.rows import Collection, Due, Freeze, Head, Position

ERASED_SEQ: Final = 2
MIN_SEQ: Final = 3
_AT: Final = {collection: 4 * place for place, collection in enumerate(Collection)}
_REST: Final = 4 * len(Collection)
"""Where the columns after the positions begin."""
_AUDIT_COUNT: Final = _REST + 2
_AUDIT_MAC: Final = _REST + 3
_FREEZE: Final = {level.value: level for level in Freeze}
_DUE: Final = {value: Due(value) for value in range(16)}


class HeadColumns:
    """Columns of a head row; the `Head` value is built on demand."""

    __slots__ = ("_head", "columns", "moved")

    def __init__(self, columns: tuple[Any, ...]) -> None:
        self.columns = list(columns)
        self.moved = False
        self._head: Head | None = None

    def head(self) -> Head:
        """The head these columns make."""
        if self._head is None:
            # No head is met twice in what a transaction writes.
            self._head = _made(*self.columns) if self.moved else _head(tuple(self.columns))
        return self._head

    def set(self, head: Head) -> None:
        """Copy all fields of a head except the seqs, which only row changes move."""
        columns = self.columns
        for collection, at in _AT.items():
            columns[at + 1] = head.at(collection).epoch
        columns[_REST:] = [
            head.frozen.value, int(head.destroyed), head.audit_count, head.audit_mac,
            int(head.due), head.due_since,
        ]  # fmt: skip
        self._touch()

    def place(self, head: Head) -> None:
        """Copy all fields of a head, the seqs included."""
        for collection, at in _AT.items():
            now = head.at(collection)
            self.columns[at : at + 4] = [now.seq, now.epoch, now.erased_seq, now.min_seq]
        self.set(head)

    def seq(self, collection: Collection) -> int:
        """Present seq of a collection."""
        seq: int = self.columns[_AT[collection]]
        return seq

    def next_seq(self, collection: Collection) -> int:
        """Advance the collection by one; returns the new seq."""
        at = _AT[collection]
        seq: int = self.columns[at] + 1
        self.columns[at] = seq
        self._touch()
        return seq

    def raise_to(self, collection: Collection, which: int, seq: int) -> None:
        """Raise `ERASED_SEQ` or `MIN_SEQ` of a collection to `seq`, never lower it."""
        at = _AT[collection] + which
        self.columns[at] = max(self.columns[at], seq)
        self._touch()

    def next_audit(self, mac: bytes) -> int:
        """Advance the audit chain to `mac`; returns the count."""
        count: int = self.columns[_AUDIT_COUNT] + 1
        self.columns[_AUDIT_COUNT] = count
        self.columns[_AUDIT_MAC] = mac
        self._touch()
        return count

    def _touch(self) -> None:
        self.moved = True
        self._head = None


# Heads and positions are values, and most are met again: a read finds the head of the last one,
# a write moves one position of five.
@lru_cache(maxsize=256)
def _head(columns: tuple[Any, ...]) -> Head:
    return _made(*columns)


def _made(*columns: Any) -> Head:
    frozen, destroyed, audit_count, audit_mac, due, due_since = columns[_REST:]
    return Head(
        memory=_position(*columns[0:4]),
        turn=_position(*columns[4:8]),
        session=_position(*columns[8:12]),
        conversation=_position(*columns[12:16]),
        document=_position(*columns[16:20]),
        frozen=_FREEZE[frozen],
        destroyed=destroyed == 1,
        audit_count=audit_count,
        audit_mac=audit_mac,
        due=_DUE[due],
        due_since=due_since,
    )


@lru_cache(maxsize=1024)
def _position(seq: int, epoch: int, erased_seq: int, min_seq: int) -> Position:
    return Position(seq=seq, epoch=epoch, erased_seq=erased_seq, min_seq=min_seq)
