"""Inspection of a file without its keys: structural faults, raw bytes, a thief's view."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import apsw
from msgspec.structs import replace

from scrubjay.adapters.stores.sqlite import faults
from scrubjay.adapters.stores.sqlite.schema import CATALOG, QUERIES, SCOPE, TABLES
from scrubjay.adapters.stores.sqlite.transaction import SqliteView
from scrubjay.model.results import FileInspection
from scrubjay.model.rows import Collection

MAGIC: Final = b"SQLite format 3\x00"
OVERLAP: Final = 64
_CHUNK: Final = 1 << 20
_SHOWN: Final = 12
# Twelve letters in a row are rare in random bytes, about one in fifty million.
_WORDS: Final = re.compile(rb"[A-Za-z][A-Za-z ,.'-]{10,}[A-Za-z.]")


def findings(view: SqliteView) -> Iterator[str]:
    """Structural faults, one sentence each."""
    for (finding,) in view.all(QUERIES["integrity"]):
        if finding != "ok":
            yield f"The file is damaged: {finding}."
    for collection, queries in TABLES.items():
        if count := view.all(queries["beyond_head"])[0][0]:
            yield f"{count} rows of {collection} are out of the order the head knows."
        if count := view.all(queries["erased_with_content"])[0][0]:
            yield f"{count} erased rows of {collection} still have content."
    count, first, last = view.all(QUERIES["audit_extent"])[0]
    head = view.head()
    if count and last - first + 1 != count:
        yield "Audit rows are missing in between."
    # A scope that was destroyed keeps the count of the rows it once had.
    if last != head.audit_count and not (head.destroyed and not count):
        yield f"The audit ends at {last}, but the head knows {head.audit_count} rows."


def residue(database: str) -> Iterator[tuple[str, bytes]]:
    """Raw bytes that deletions may have left: `database` and all files beside it.

    They come as (file name, bytes) pieces that overlap. The -shm file is left out: it holds page
    numbers and checksums, never a byte of a row, and closing a file descriptor on it would drop
    the locks SQLite holds there for this process.
    """
    folder, stem = os.path.split(database)
    for name in sorted(path.name for path in Path(folder).glob(f"{stem}*")):
        path = os.path.join(folder, name)
        try:
            if name == stem:
                # SQLite's own files know of each other and keep the locks when one is closed.
                with closing(_VfsFile(path)) as file:
                    yield from _pieces(name, file.xFileSize(), file.xRead)
            elif not name.endswith("-shm"):
                with Path(path).open("rb") as side:
                    fd = side.fileno()
                    yield from _pieces(name, os.fstat(fd).st_size, partial(os.pread, fd))
        except (OSError, apsw.Error):
            # A log may go while this runs: the last connection brought it into the database.
            if os.path.lexists(path):
                raise


def _pieces(name: str, size: int, read: Callable[[int, int], bytes]) -> Iterator[tuple[str, bytes]]:
    for at in range(0, max(size - OVERLAP, 1 if size else 0), _CHUNK - OVERLAP):
        yield name, read(min(_CHUNK, size - at), at)


class _VfsFile(apsw.VFSFile):
    def __init__(self, path: str) -> None:
        super().__init__("", path, [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])

    def close(self) -> None:
        self.xClose()


def inspect(path: Path, raw: bytes) -> FileInspection:
    """Inspect a scope file or the catalog as a thief would, on a copy that leaves no trace.

    Of any other file it shows the bytes.
    """
    import shutil
    from tempfile import TemporaryDirectory

    if not raw.startswith(MAGIC):
        facts = (("first bytes", raw[:32].hex()),)
        return FileInspection(title="a file of bytes", facts=facts, words=readable(raw))
    with TemporaryDirectory(prefix="scrubjay-inspect-") as folder:
        copy, raw = Path(folder) / "copy", b""
        for suffix in ("", "-wal"):  # what is still in the log belongs to the file
            source = path.with_name(path.name + suffix)
            if source.exists():
                shutil.copyfile(source, f"{copy}{suffix}")
                raw += Path(f"{copy}{suffix}").read_bytes()
        try:
            connection = apsw.Connection(str(copy))
            mark = connection.pragma("application_id")
            view = SqliteView(connection)
            own = _schema_texts(view)
            if mark == SCOPE.mark:
                shown = _scope(view)
            elif mark == CATALOG.mark:
                shown = _catalog(view)
                # The names of the scopes' files: keyed hashes in letters, shown as what they are.
                addresses = view.all("SELECT address FROM entry")
                own += [address.encode() for (address,) in addresses]
            else:
                raise faults.foreign()
            connection.close()
        except apsw.Error as error:
            raise faults.fault(error) from error
    return replace(shown, words=readable(raw, own))


def inspect_open(view: SqliteView, database: str) -> FileInspection:
    """Inspect the file of a scope that is open, without a copy.

    Its bytes come through SQLite: to open and close it otherwise would drop the locks on it.
    """
    own, words, size = _schema_texts(view), set[str](), 0
    for _, piece in residue(database):
        words.update(readable(piece, own))
        size += len(piece)
    shown = _scope(view)
    facts = (("size", f"about {size:,} bytes"), *shown.facts)
    return replace(shown, facts=facts, words=tuple(sorted(words)))


def _schema_texts(view: SqliteView) -> list[bytes]:
    """The texts of the schema as they stand in its page: of tables and columns, of nobody."""
    own = [MAGIC]
    for kind, name, table, sql in view.all("SELECT type, name, tbl_name, sql FROM sqlite_schema"):
        own += [f"{kind}{name}{table}".encode(), (sql or "").encode()]
    return own


def readable(raw: bytes, own: Iterable[bytes] = ()) -> tuple[str, ...]:
    """Readable text in bytes, apart from the texts that are known to be there."""
    for text in sorted(own, key=len, reverse=True):
        raw = raw.replace(text, bytes(1)) if text else raw
    return tuple(sorted({match.group().decode() for match in _WORDS.finditer(raw)}))


def _counts(view: SqliteView, *tables: str) -> dict[str, int]:
    # The names of the tables are ours, never a caller's.
    return {
        table: int(view.all(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608
        for table in tables
    }


def _scope(view: SqliteView) -> FileInspection:
    rows = _counts(view, *Collection)
    more = _counts(view, "tombstone", "lineage", "value", "audit")
    facts = [(f"{name} rows", str(number)) for name, number in rows.items()]
    facts += [(name, str(number)) for name, number in more.items()]
    names = [name for (name,) in view.all("SELECT name FROM pragma_table_info('head')")]
    for name, value in zip(names[1:], view.all("SELECT * FROM head")[0][1:], strict=True):
        facts.append((f"head.{name}", value.hex() if isinstance(value, bytes) else str(value)))
    shown = []
    query = "SELECT seq, born, version, epoch, erased, id, expiry, cell FROM memory LIMIT ?"
    for *numbers, row_id, expiry, cell in view.all(query, (_SHOWN,)):
        sealed = "" if cell is None else f"{cell[:24].hex()}… ({len(cell)} bytes)"
        day = "" if expiry is None else str(expiry)
        shown.append((*map(str, numbers), row_id.hex(), day, sealed))
    return FileInspection(
        title="a scope: sealed rows",
        facts=tuple(facts),
        columns=("seq", "born", "version", "epoch", "erased", "id", "expiry", "cell"),
        rows=tuple(shown),
        omitted=max(0, rows["memory"] - _SHOWN),
    )


def _catalog(view: SqliteView) -> FileInspection:
    counts = _counts(view, "entry", "tombstone", "receipt", "backup")
    query = "SELECT address, name, destroyed FROM entry ORDER BY address LIMIT ?"
    return FileInspection(
        title="the catalog: which scope is in which file",
        facts=tuple((f"{name} rows", str(number)) for name, number in counts.items()),
        columns=("file", "sealed name", "destroyed"),
        rows=tuple(
            (address, f"{name[:24].hex()}… ({len(name)} bytes)", str(destroyed))
            for address, name, destroyed in view.all(query, (_SHOWN,))
        ),
        omitted=max(0, counts["entry"] - _SHOWN),
    )
