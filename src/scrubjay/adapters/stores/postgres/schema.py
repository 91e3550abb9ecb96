"""SQL of the store: queries, and the migrations that make the schema."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import psycopg

from scrubjay.adapters.stores.sql import sections
from scrubjay.model.errors import SchemaTooNew
from scrubjay.model.rows import Collection
from scrubjay.ports import Failpoint, Reach

_ROW: Final = "seq, id, born, version, epoch, expiry, erased, session, key, cell, vector, blob"
_HEAD: Final = (
    *(f"{one}_{what}" for one in Collection for what in ("seq", "epoch", "erased_seq", "min_seq")),
    "frozen", "destroyed", "audit_count", "audit_mac", "due", "due_since",
)  # fmt: skip
SCOPED: Final = tuple(
    f"scrubjay.{table}" for table in ("sealed", "tombstone", "value", "lineage", "audit")
)
"""The tables whose rows belong to a scope."""
MIGRATIONS: Final = tuple(sections(__file__, "migrations.sql").values())
_PARTS: Final = {
    "{columns}": _ROW,
    "{head}": ", ".join(_HEAD),
    "{values}": ", ".join(["%s"] * len(_HEAD)),
}


def _filled(text: str) -> bytes:
    for name, part in _PARTS.items():
        text = text.replace(name, part)
    return text.encode()


QUERIES: Final = MappingProxyType(
    {name: _filled(text) for name, text in sections(__file__, "queries.sql").items()}
)
EACH: Final = MappingProxyType(
    {
        name: [QUERIES[name].replace(b"{table}", table.encode()) for table in SCOPED]
        for name in ("clear", "size")
    }
)
"""The queries that are the same for each of those tables."""
_LOCK: Final = 0x5363727562  # the advisory lock of migrations


def migrate(connection: psycopg.Connection, reach: Reach) -> None:
    """Bring the schema to the version of this code; of many who begin at once one does."""
    if (version := _version(connection)) == len(MIGRATIONS):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        version = _version(connection)
        if version == 0:
            connection.execute(QUERIES["begin_version"])
        for number, text in enumerate(MIGRATIONS[version:], version + 1):
            connection.execute(text.encode())
            connection.execute(QUERIES["set_version"], (number,))
            reach(Failpoint.STORE_MIGRATING)


def _version(connection: psycopg.Connection) -> int:
    # Of the catalog as it is now: a name that was not there is remembered within a transaction.
    if not connection.execute(QUERIES["has_version"]).fetchall():
        return 0
    found = connection.execute(QUERIES["version"]).fetchone()
    version: int = found[0] if found else 0
    if version > len(MIGRATIONS):
        raise SchemaTooNew(
            f"The database has version {version}; this scrubjay knows {len(MIGRATIONS)}."
        )
    return version
