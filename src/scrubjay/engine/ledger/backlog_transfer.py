"""The backlog of extraction in a backup: a paused scope is paused where it is restored, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, cast

from scrubjay.engine.ledger.backlog import Backlog
from scrubjay.engine.ledger.turn_ledger import scan
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import Notes
from scrubjay.model.memory import Json
from scrubjay.ports import Tx, View

_PLACES: Final = frozenset({"cursor", "redo", "again"})


def carried(opened: OpenScope, view: View) -> Mapping[str, Json] | None:
    """The backlog as a backup has it: by the ids of turns, since their places will be others."""
    notes = Notes(opened, view)
    if not Backlog.begun(notes):
        return None
    backlog = Backlog.of(notes)
    fresh: list[Json] = [turn.id for row, turn in scan(opened, view) if row.seq > backlog.cursor]
    kept = {name: value for name, value in asdict(backlog).items() if name not in _PLACES}
    return {**kept, "waiting": [*fresh, *backlog.again]}


def adopt(opened: OpenScope, tx: Tx, found: Mapping[str, Json], *, empty: bool) -> None:
    """Go on as the backup was, unless the scope has a backlog of its own.

    A scope that was `empty` before has no other turns than the backup's, so that none but those
    that waited there has to be read.
    """
    notes = Notes(opened, tx)
    if Backlog.begun(notes):
        return
    known = {one.name: found[one.name] for one in fields(Backlog) if one.name in found}
    backlog = Backlog(**cast(dict[str, Any], known))
    if empty:
        backlog.cursor = tx.head().turn.seq
        backlog.again = dict.fromkeys(map(str, cast(list[Json], found["waiting"])), 0)
    backlog.put(notes)
    notes.write(tx)
