"""Notes: small sealed values of a scope that belong to the rows, and are found by name.

They are rows of their own beside the sessions: so a rotation seals them anew, a transaction
changes them together with what they are about, and an erasure can name their cells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import cast

from scrubjay.engine.scope import cells, due
from scrubjay.engine.scope.open_scope import OpenScope, day
from scrubjay.model.memory import Json
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.ports import Tx, View

_HOME = Collection.SESSION


class Notes:
    """The notes of a scope in one state of it; changes are kept until they are written."""

    def __init__(self, opened: OpenScope, view: View) -> None:
        self._opened = opened
        self._view = view
        self._read: dict[str, Json] = {}
        self._changed: dict[str, None] = {}

    def get(self, name: str) -> Json:
        """The note of this name; None if there is none."""
        if name not in self._read:
            row = self._row(name)
            body = None if row is None else self._opened.open_body(_HOME, row)
            self._read[name] = None if body is None else cast(Json, json.loads(body))
        return self._read[name]

    def put(self, name: str, value: Json) -> None:
        """Change a note; None removes it."""
        self._read[name] = value
        self._changed[name] = None

    def replaced(self) -> Iterator[ErasedCell]:
        """The cells that writing the changes will do away with, as a receipt names them."""
        for name in self._changed:
            if (row := self._row(name)) is not None:
                yield from cells.erased_cells(self._opened, _HOME, row)

    def write(self, tx: Tx) -> None:
        """Write every change, sealed in the present epoch."""
        for name in self._changed:
            if self._read[name] is None:
                self._remove(tx, name)
            else:
                self._write(tx, name)
        self._changed.clear()

    def _row(self, name: str) -> Row | None:
        row = self._view.row(_HOME, self._row_id(name))
        return None if row is None or row.erased else row

    def _row_id(self, name: str) -> bytes:
        # No public id begins with a slash, so nobody can name a note by accident.
        return self._opened.row_id(f"/{name}")

    def _remove(self, tx: Tx, name: str) -> None:
        clock, policy = self._opened.ports.clock, self._opened.ports.policy
        tx.erase(
            _HOME,
            self._row_id(name),
            drop_day=day(clock.now() + timedelta(days=policy.drop_days)),
        )

    def _write(self, tx: Tx, name: str) -> None:
        row_id, epoch = self._row_id(name), tx.head().session.epoch
        known = tx.row(_HOME, row_id)
        version = 1 if known is None else known.version + 1
        raw = json.dumps(self._read[name], ensure_ascii=False, separators=(",", ":")).encode()
        body = cells.seal_body(
            self._opened, _HOME, raw, row_id=row_id, version=version, epoch=epoch
        )
        row = Row(id=row_id, version=version, epoch=epoch, cell=body.cell, blob=body.blob)
        if known is not None and known.blob is not None:
            due.leave(self._opened, tx, Due.SWEEP)
        cells.write_blob(self._opened, cells.Sealed(row, body.stream))
        tx.put(_HOME, row)
