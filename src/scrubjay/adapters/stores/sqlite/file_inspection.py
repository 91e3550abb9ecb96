"""inspect: what somebody who has a file of the store, but no key, can see of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import apsw
from msgspec.structs import replace

from scrubjay.adapters.stores.sqlite import connections
from scrubjay.adapters.stores.sqlite.schema import CATALOG, SCOPE
from scrubjay.model.results import Exhibit
from scrubjay.model.rows import Collection

MAGIC: Final = b"SQLite format 3\x00"
_SHOWN: Final = 12
_SIDE_FILES: Final = ("", "-wal")
# Twelve letters in a row are rare in random bytes, about one in fifty million.
_WORDS: Final = re.compile(rb"[A-Za-z][A-Za-z ,.'-]{10,}[A-Za-z.]")


def inspect(path: Path) -> Exhibit:
    """Look at a scope file or the catalog as a thief would, on a copy."""
    with TemporaryDirectory(prefix="scrubjay-inspect-") as folder:
        copy = _copy(path, Path(folder))
        raw = b"".join(file.read_bytes() for file in sorted(Path(folder).iterdir()))
        try:
            connection = apsw.Connection(str(copy))
            mark = connection.pragma("application_id")
            shown = _scope(connection) if mark == SCOPE.mark else _catalog(connection, mark)
            own = [MAGIC, *_schema_texts(connection), *_addresses(connection, mark)]
            connection.close()
        except apsw.Error as error:
            raise connections.fault(error) from error
    return replace(shown, words=readable(raw, own))


def _schema_texts(connection: apsw.Connection) -> Iterator[bytes]:
    """The texts of the schema as they stand in its page: of tables and columns, of nobody."""
    for kind, name, table, sql in connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    ):
        yield f"{kind}{name}{table}".encode()
        yield (sql or "").encode()


def _addresses(connection: apsw.Connection, mark: int) -> Iterator[bytes]:
    """The names of the scopes' files: keyed hashes in letters, shown as what they are."""
    if mark == CATALOG.mark:
        for (address,) in connection.execute("SELECT address FROM entry"):
            yield address.encode()


def _copy(path: Path, folder: Path) -> Path:
    """The file with what is still in its log, so that looking leaves no trace."""
    for suffix in _SIDE_FILES:
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copyfile(source, folder / f"copy{suffix}")
    return folder / "copy"


def readable(raw: bytes, own: Iterable[bytes] = ()) -> tuple[str, ...]:
    """Readable text in bytes, apart from the texts that are known to be there."""
    for text in sorted(own, key=len, reverse=True):
        raw = raw.replace(text, bytes(1)) if text else raw
    return tuple(sorted({match.group().decode() for match in _WORDS.finditer(raw)}))


def _scope(connection: apsw.Connection) -> Exhibit:
    counts = {name.value: _count(connection, name.value) for name in Collection}
    facts = [(f"{name} rows", str(number)) for name, number in counts.items()]
    facts += [
        (name, str(_count(connection, name))) for name in ("tombstone", "lineage", "value", "audit")
    ]
    return Exhibit(
        title="a scope: sealed rows",
        facts=(*facts, *_head(connection)),
        columns=("seq", "born", "version", "epoch", "erased", "id", "expiry", "cell"),
        rows=tuple(_rows(connection)),
        omitted=max(0, counts["memory"] - _SHOWN),
    )


def _count(connection: apsw.Connection, table: str) -> int:
    # The table's name is one of ours, never a caller's.
    return int(connection.execute(f"SELECT count(*) FROM {table}").get)  # noqa: S608


def _head(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    cursor = connection.execute("SELECT * FROM head")
    names = [column[0] for column in cursor.get_description()]
    for name, value in zip(names[1:], next(cursor)[1:], strict=True):
        yield f"head.{name}", value.hex() if isinstance(value, bytes) else str(value)


def _rows(connection: apsw.Connection) -> Iterator[tuple[str, ...]]:
    query = "SELECT seq, born, version, epoch, erased, id, expiry, cell FROM memory LIMIT ?"
    for *numbers, row_id, expiry, cell in connection.execute(query, (_SHOWN,)):
        sealed = "" if cell is None else f"{cell[:24].hex()}… ({len(cell)} bytes)"
        yield (*map(str, numbers), row_id.hex(), "" if expiry is None else str(expiry), sealed)


def _catalog(connection: apsw.Connection, mark: int) -> Exhibit:
    if mark != CATALOG.mark:
        raise connections.foreign()
    tables = ("entry", "tombstone", "receipt", "backup")
    query = "SELECT address, name, destroyed FROM entry ORDER BY address LIMIT ?"
    return Exhibit(
        title="the catalog: which scope is in which file",
        facts=tuple((f"{name} rows", str(_count(connection, name))) for name in tables),
        columns=("file", "sealed name", "destroyed"),
        rows=tuple(
            (address, f"{name[:24].hex()}… ({len(name)} bytes)", str(destroyed))
            for address, name, destroyed in connection.execute(query, (_SHOWN,))
        ),
        omitted=max(0, _count(connection, "entry") - _SHOWN),
    )
