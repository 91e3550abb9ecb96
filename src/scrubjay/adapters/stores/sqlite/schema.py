"""SQL of the store: queries, schemas and forward migrations."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

import apsw
from msgspec import Struct

from scrubjay.adapters.stores.sql import sections
from scrubjay.adapters.stores.sqlite import faults
from scrubjay.model.errors import SchemaTooNew
from scrubjay.model.rows import Collection
from scrubjay.ports import Failpoint, Reach

_COLUMNS: Final = "seq, id, born, version, epoch, expiry, erased, session, key, cell, vector, blob"

QUERIES: Final = sections(__file__, "queries.sql")
TABLES: Final = MappingProxyType(
    {
        table: {
            name: text.replace("{columns}", _COLUMNS).replace("{table}", table.value)
            for name, text in QUERIES.items()
            if "{table}" in text
        }
        for table in Collection
    }
)
"""The queries of each collection's table."""


class Schema(Struct, frozen=True, kw_only=True):
    """Schema of one kind of file: application id, newest tables, and migrations.

    Migration n brings a file of version n - 1 to version n; version 0 is an empty file.
    """

    mark: int
    newest: str
    steps: Sequence[str]

    @property
    def version(self) -> int:
        """The schema version that this code writes."""
        return len(self.steps)

    def build(self, connection: apsw.Connection) -> None:
        """Create the newest schema in an empty file, in one transaction."""
        with connection:
            connection.execute(self.newest)
            connection.pragma("application_id", self.mark)
            connection.pragma("user_version", self.version)

    def is_current(self, connection: apsw.Connection) -> bool:
        """Whether the file needs no migration; raises if this code cannot open it."""
        if connection.pragma("application_id") != self.mark:
            raise faults.foreign()
        version = int(connection.pragma("user_version"))
        if version > self.version:
            raise SchemaTooNew(
                f"A file of the store has version {version}; this scrubjay knows {self.version}."
            )
        return version == self.version

    def migrate(self, connection: apsw.Connection, reach: Reach) -> None:
        """Run every missing migration in one transaction; the caller holds the lock."""
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # a savepoint, so that whatever is raised leaves nothing behind
            for number in range(int(connection.pragma("user_version")), self.version):
                connection.execute(self.steps[number])
                connection.pragma("user_version", number + 1)
                reach(Failpoint.STORE_MIGRATING)
        connection.execute("COMMIT")


def _schema(kind: str, mark: bytes) -> Schema:
    steps = sections(__file__, "migrations.sql")
    count = sum(heading.split()[0] == kind for heading in steps)
    return Schema(
        mark=int.from_bytes(mark),
        newest=sections(__file__, "schema.sql")[kind],
        steps=tuple(steps[f"{kind} {number}"] for number in range(1, count + 1)),
    )


SCOPE: Final = _schema("scope", b"jay1")
CATALOG: Final = _schema("catalog", b"jayc")
