"""Short forms for what nearly every engine test does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.engine.scope.lifecycle import locate
from scrubjay.model.memory import Memory
from scrubjay.model.pages import Paged
from scrubjay.model.requests import USER, Browse, Caller, Forget, Retain, Supersede
from scrubjay.model.results import Erasure
from scrubjay.model.rows import Collection, Head, Row
from scrubjay.model.scope import Scope
from scrubjay.ports import Tx
from tests.support.engines import MemoryHome

ALICE = Scope("local", "alice")
BOB = Scope("local", "bob")
LONG = "ä" * (32 * 1024)
"""The longest content there may be: with its fields it is too long for a cell."""


def retain(
    engine: Kernel,
    content: str,
    *,
    scope: Scope = ALICE,
    caller: Caller = USER,
    **fields: Any,
) -> str:
    """Write a memory; its id."""
    return engine.retain(scope, Retain(content=content, **fields), caller).id


def supersede(
    engine: Kernel, public_id: str, content: str, *, caller: Caller = USER, **fields: Any
) -> str:
    """Replace a memory; the id of the new one."""
    request = Supersede(id=public_id, content=content, **fields)
    return engine.supersede(ALICE, request, caller).id


def forget(engine: Kernel, *ids: str, scope: Scope = ALICE, **target: Any) -> Erasure:
    """Erase memories."""
    return engine.forget(scope, Forget(ids=ids, **target))


def browse(engine: Kernel, *, scope: Scope = ALICE, **filters: Any) -> tuple[Memory, ...]:
    """The memories a filter shows, newest first."""
    return engine.browse(scope, Browse(**filters)).data


def contents(engine: Kernel, *, scope: Scope = ALICE, **filters: Any) -> list[str]:
    """What the memories a filter shows say, newest first."""
    return [memory.content for memory in browse(engine, scope=scope, **filters)]


def everything(engine: Kernel, *, scope: Scope = ALICE) -> list[Memory]:
    """Every memory of a scope that is not erased, oldest first."""
    return list(engine.follow(scope, Paged(limit=1000)).memories)


def address(home: MemoryHome, scope: Scope = ALICE) -> str:
    """Where the store keeps a scope."""
    return locate(home.ports(), scope)[0]


def rows(home: MemoryHome, scope: Scope = ALICE) -> list[Row]:
    """A scope's rows as the store holds them, in the order they changed."""
    with home.store.read(address(home, scope)) as view:
        return list(view.changes(Collection.MEMORY, 0, 2**31))


def head(home: MemoryHome, scope: Scope = ALICE) -> Head:
    """A scope's head as the store holds it."""
    with home.store.read(address(home, scope)) as view:
        return view.head()


def slots(home: MemoryHome, scope: Scope = ALICE) -> list[str]:
    """The purposes that have a key, without the lookup key and those of backups."""
    purposes = home.keyring.purposes(address(home, scope))
    return [one for one in purposes if one != "lookup" and not one.startswith("backup.")]


def verbs(engine: Kernel, *, scope: Scope = ALICE) -> list[str]:
    """The verbs of the audit trail, oldest first."""
    return [event.verb for event in engine.audit(scope)]


def ids(memories: Iterable[Memory]) -> list[str]:
    """The ids of memories, in their order."""
    return [memory.id for memory in memories]


def change(home: MemoryHome, work: Callable[[Tx], object], scope: Scope = ALICE) -> None:
    """Change a scope's rows behind the engine's back, as damage or a thief would."""
    home.store.write(address(home, scope), work)


def flip_cell(home: MemoryHome, seq: int, *, at: int = -1) -> None:
    """Flip one bit in the cell of the row with this seq."""

    def flip(tx: Tx) -> None:
        (row,) = (one for one in tx.changes(Collection.MEMORY, seq - 1, 1) if one.seq == seq)
        cell = bytearray(row.cell or b"")
        cell[at] ^= 1
        tx.reseal(Collection.MEMORY, [(row, replace(row, cell=bytes(cell)))])

    change(home, flip)
