"""The privacy book of an installation: what outlives a person's memory, and has none of it.

Requests with their due dates, notices, recipients and export jobs are documents of the scope
`system/privacy`, which no key covers: sealed and audited like any others. Nothing of what is
remembered is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from scrubjay.access import SYSTEM_TENANT
from scrubjay.engine import Kernel
from scrubjay.model.documents import Document, ListDocuments, Put, ReadDocument, Remove, Stored
from scrubjay.model.errors import NotFound
from scrubjay.model.origin import Origin
from scrubjay.model.pages import PAGE_LIMIT, every
from scrubjay.model.requests import SYSTEM
from scrubjay.model.scope import Scope

PRIVACY: Final = Scope(SYSTEM_TENANT, "privacy")
Sheet = TypeVar("Sheet", bound=Struct)


class Book:
    """Sheets of the book by name; each changes by compare-and-set."""

    def __init__(self, engine: Kernel) -> None:
        self._engine = engine

    def find(self, kind: type[Sheet], *name: str) -> tuple[Sheet, str] | None:
        """The sheet of this name with its revision; None if there is none."""
        try:
            found: Document = self._engine.document(PRIVACY, ReadDocument(name), SYSTEM)
        except NotFound:
            return None
        return _read(kind, found), found.revision

    def write(self, sheet: Struct, *name: str, revision: str | None = None) -> str:
        """Write a sheet; Stale if it is not in the revision that was read, `0` for none yet."""
        self._engine.open(PRIVACY, create=True)
        request = Put(
            name,
            msgspec.to_builtins(sheet),
            expected_revision=revision,
            origin=Origin.OPERATOR,
        )
        put: Stored = self._engine.put(PRIVACY, request, SYSTEM)
        return put.document.revision

    def remove(self, *name: str) -> None:
        """Remove a sheet; a missing one is fine."""
        try:
            self._engine.remove(PRIVACY, Remove(name), SYSTEM)
        except NotFound:
            return

    def sheets(self, kind: type[Sheet], *folder: str) -> Iterator[tuple[tuple[str, ...], Sheet]]:
        """Every sheet in a folder, by name."""
        try:
            self._engine.open(PRIVACY, create=False)
        except NotFound:
            return

        def listed(cursor: str | None) -> Any:
            request = ListDocuments(folder, limit=PAGE_LIMIT, cursor=cursor)
            return self._engine.documents(PRIVACY, request, SYSTEM)

        for found in every(listed):
            yield tuple(found.name), _read(kind, found)


def _read(kind: type[Sheet], found: Document) -> Sheet:
    return msgspec.convert(found.value, kind)


def place(scope: Scope) -> tuple[str, str]:
    """The folder of a scope."""
    return scope.tenant, scope.owner
