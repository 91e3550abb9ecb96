"""The SQL of this store: text under `-- name --` headings, read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from scrubjay.domain.rows import Collection

COLUMNS: Final = "seq, id, born, version, epoch, expiry, erased, session, key, cell, vector, blob"
_HEADING = re.compile(r"^-- ([a-z_]+(?: \d+)?) --\n", re.MULTILINE)


def sections(name: str) -> Mapping[str, str]:
    """The named texts of one SQL file of this package."""
    # Beside this module: importlib.resources takes longer to import than the rest together.
    _, *parts = _HEADING.split(Path(__file__).with_name(name).read_text("utf-8"))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return MappingProxyType({heading: text.strip() for heading, text in pairs})


QUERIES: Final = sections("queries.sql")


class TableQueries:
    """The queries of one collection's table."""

    def __init__(self, collection: Collection) -> None:
        def query(name: str) -> str:
            text = QUERIES[name].replace("{columns}", COLUMNS)
            return text.replace("{table}", collection.value)

        self.row = query("row")
        self.row_by_key = query("row_by_key")
        self.rows_of_session = query("rows_of_session")
        self.changes = query("changes")
        self.latest = query("latest")
        self.overdue = query("overdue")
        self.stale = query("stale")
        self.insert = query("insert")
        self.rewrite = query("rewrite")
        self.reseal = query("reseal")
        self.erase = query("erase")
        self.drop = query("drop")
        self.clear = query("clear")
        self.beyond_head = query("beyond_head")
        self.erased_with_content = query("erased_with_content")


TABLES: Final = MappingProxyType({name: TableQueries(name) for name in Collection})
