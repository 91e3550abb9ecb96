"""The shape of a file and how an older one is brought to it; forward only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from scrubjay.adapters.stores.sqlite import connections
from scrubjay.adapters.stores.sqlite.connections import sections
from scrubjay.model.errors import SchemaTooNew
from scrubjay.ports import Failpoint, Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """One kind of file: the mark in its header, its newest shape, and the steps that led there.

    Step n brings a file of version n - 1 to version n; version 0 is an empty file.
    """

    mark: int
    newest: str
    steps: Sequence[str]

    @property
    def version(self) -> int:
        """The version this code writes."""
        return len(self.steps)

    def build(self, connection: apsw.Connection) -> None:
        """Make the newest shape in an empty file, in one transaction."""
        with connection:
            connection.execute(self.newest)
            connection.pragma("application_id", self.mark)
            connection.pragma("user_version", self.version)

    def is_current(self, connection: apsw.Connection) -> bool:
        """Whether the file needs no step; raises unless it is one this code may open."""
        if connection.pragma("application_id") != self.mark:
            raise connections.foreign()
        version = int(connection.pragma("user_version"))
        if version > self.version:
            raise SchemaTooNew(
                f"A file of the store has version {version}; this scrubjay knows {self.version}."
            )
        return version == self.version

    def migrate(self, connection: apsw.Connection, reach: Reach) -> None:
        """Take every step that is missing, in one transaction; the caller holds the lock."""
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # a savepoint, so that whatever is raised leaves nothing behind
            for number in range(int(connection.pragma("user_version")), self.version):
                connection.execute(self.steps[number])
                connection.pragma("user_version", number + 1)
                reach(Failpoint.STORE_MIGRATING)
        connection.execute("COMMIT")


def _schema(kind: str, mark: bytes) -> Schema:
    steps = sections("migrations.sql")
    count = sum(heading.split()[0] == kind for heading in steps)
    return Schema(
        mark=int.from_bytes(mark),
        newest=sections("schema.sql")[kind],
        steps=tuple(steps[f"{kind} {number}"] for number in range(1, count + 1)),
    )


SCOPE: Final = _schema("scope", b"jay1")
CATALOG: Final = _schema("catalog", b"jayc")
