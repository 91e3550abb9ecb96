"""The head of a scope as the columns of its row, changed in place and written once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from scrubjay.domain.rows import Collection, Due, Freeze, Head, Position

SEQ: Final = 0
ERASED_SEQ: Final = 2
MIN_SEQ: Final = 3
_AT: Final = {Collection.MEMORY: 0, Collection.TURN: 4, Collection.SESSION: 8}
_AUDIT_COUNT: Final = 14
_AUDIT_MAC: Final = 15
_FREEZE: Final = {level.value: level for level in Freeze}
_DUE: Final = {value: Due(value) for value in range(8)}


class HeadColumns:
    """The columns of a head row; the value they make is built when somebody asks for it."""

    __slots__ = ("_head", "columns", "moved")

    def __init__(self, columns: tuple[Any, ...]) -> None:
        self.columns = list(columns)
        self.moved = False
        self._head: Head | None = None

    def head(self) -> Head:
        """The head these columns make."""
        if self._head is None:
            self._head = _head(tuple(self.columns))
        return self._head

    def set(self, head: Head) -> None:
        """Take over all of a head but the seqs, which only changes of rows may move."""
        columns = self.columns
        for collection, at in _AT.items():
            columns[at + 1] = head.at(collection).epoch
        columns[12:] = [
            head.frozen.value, int(head.destroyed), head.audit_count, head.audit_mac,
            int(head.due), head.due_since,
        ]  # fmt: skip
        self._touch()

    def seq(self, collection: Collection) -> int:
        """The seq a collection has come to."""
        seq: int = self.columns[_AT[collection]]
        return seq

    def next_seq(self, collection: Collection) -> int:
        """Move the collection on by one; the seq it came to."""
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
        """Move the audit chain on to `mac`; its count."""
        count: int = self.columns[_AUDIT_COUNT] + 1
        self.columns[_AUDIT_COUNT] = count
        self.columns[_AUDIT_MAC] = mac
        self._touch()
        return count

    def _touch(self) -> None:
        self.moved = True
        self._head = None


# Heads and positions are values, and most are met again: a read finds the head of the last one,
# a write moves one position of three.
@lru_cache(maxsize=256)
def _head(columns: tuple[Any, ...]) -> Head:
    return Head(
        memory=_position(*columns[0:4]),
        turn=_position(*columns[4:8]),
        session=_position(*columns[8:12]),
        frozen=_FREEZE[columns[12]],
        destroyed=columns[13] == 1,
        audit_count=columns[14],
        audit_mac=columns[15],
        due=_DUE[columns[16]],
        due_since=columns[17],
    )


@lru_cache(maxsize=1024)
def _position(seq: int, epoch: int, erased_seq: int, min_seq: int) -> Position:
    return Position(seq=seq, epoch=epoch, erased_seq=erased_seq, min_seq=min_seq)
