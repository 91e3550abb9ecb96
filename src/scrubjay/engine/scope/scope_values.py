"""Scope values: small sealed values of a scope, by name.

They are rows of the session collection: so a rotation re-encrypts them, a transaction changes them
together with other rows, and an erasure can name their cells.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import ClassVar, Self, cast

from msgspec import Struct, convert, to_builtins

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.views import living
from scrubjay.model.memory import Json
from scrubjay.model.results import ErasedCell
from scrubjay.model.rows import Collection
from scrubjay.ports import Tx, View

_HOME = Collection.SESSION


class ScopeValues:
    """Values of a scope in one transaction; changes are buffered until `write`."""

    def __init__(self, opened: OpenScope, view: View) -> None:
        self._opened = opened
        self._view = view
        self._read: dict[str, Json] = {}
        self._changed: dict[str, None] = {}

    def get(self, name: str) -> Json:
        """The value of this name; None if there is none."""
        if name not in self._read:
            row = living(self._view, _HOME, self._row_id(name))
            body = None if row is None else self._opened.open_body(_HOME, row)
            self._read[name] = None if body is None else cast(Json, json.loads(body))
        return self._read[name]

    def put(self, name: str, value: Json) -> None:
        """Change a value; None removes it."""
        self._read[name] = value
        self._changed[name] = None

    def replaced(self) -> list[ErasedCell]:
        """Cells that the buffered changes will replace, as a receipt names them."""
        rows = (living(self._view, _HOME, self._row_id(name)) for name in self._changed)
        return [cell for row in rows if row for cell in self._opened.erased_cells(_HOME, row)]

    def write(self, tx: Tx) -> None:
        """Write the buffered changes, sealed in the present epoch."""
        for name in self._changed:
            row_id, value = self._row_id(name), self._read[name]
            if value is None:
                tx.erase(_HOME, row_id, drop_day=self._opened.drop_day())
            else:
                raw = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
                self._opened.put_body(tx, _HOME, row_id, raw)
        self._changed.clear()

    def _row_id(self, name: str) -> bytes:
        # No public id begins with a slash, so nobody can name a value by accident.
        return self._opened.row_id(f"/{name}")


class SealedState(Struct, kw_only=True):
    """A Struct that is one value of the scope, as it is in one transaction."""

    NAME: ClassVar[str]

    @classmethod
    def of(cls, values: ScopeValues) -> Self:
        """What is stored; the defaults if nothing ever was."""
        return convert(values.get(cls.NAME) or {}, cls)

    def put(self, values: ScopeValues) -> None:
        """Buffer it; written with the other values."""
        values.put(self.NAME, to_builtins(self))

    @classmethod
    def change(
        cls, opened: OpenScope, work: Callable[[Tx, Self], bool], *, frozen_too: bool = False
    ) -> None:
        """Change it in a transaction of its own; written if `work` returns true."""

        def store(tx: Tx) -> None:
            values = ScopeValues(opened, tx)
            state = cls.of(values)
            if work(tx, state):
                state.put(values)
                values.write(tx)

        opened.write(store, frozen_too=frozen_too)
