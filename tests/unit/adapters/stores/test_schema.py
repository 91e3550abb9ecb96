"""Schema and migrations: forward only, wholly or not at all, and never into a foreign file."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from scrubjay.adapters.stores.sqlite.schema import CATALOG, SCOPE, Schema
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.model.errors import Conflict, SchemaTooNew, StoreError
from scrubjay.model.rows import CatalogEntry, Collection, Row
from scrubjay.ports import Failpoint, pass_by

A = "address"
NEXT = replace(
    SCOPE,
    newest=SCOPE.newest + "CREATE TABLE later (n INTEGER PRIMARY KEY, x BLOB) STRICT;",
    steps=[
        *SCOPE.steps,
        "CREATE TABLE later (n INTEGER PRIMARY KEY) STRICT;",
        "ALTER TABLE later ADD COLUMN x BLOB;",
    ],
)


class Stop(BaseException):
    """What a test raises where a process would die."""


def shape(connection: apsw.Connection) -> list[tuple[str, ...]]:
    """Every table and index, without regard to spacing."""
    rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema")
    return sorted((*row[:3], "".join(str(row[3]).split())) for row in rows)


def migrated(schema: Schema) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.pragma("application_id", schema.mark)
    schema.migrate(connection, pass_by)
    return connection


def open_raw(folder: Path) -> apsw.Connection:
    return apsw.Connection(str(folder / "scopes" / f"{A}.sqlite"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path)
    store.create(A)
    put(store)
    store.close()
    return tmp_path


def put(store: SqliteStore) -> Row:
    row = Row(id=os.urandom(16), version=1, epoch=1, cell=b"cell")
    return store.write(A, lambda tx: tx.put(Collection.MEMORY, row))


@pytest.mark.parametrize("schema", [SCOPE, CATALOG, NEXT], ids=["scope", "catalog", "next"])
def test_the_schema_is_what_the_migrations_make(schema: Schema) -> None:
    built = apsw.Connection(":memory:")
    schema.build(built)
    stepped = migrated(schema)
    assert shape(built) == shape(stepped)
    assert built.pragma("user_version") == stepped.pragma("user_version") == schema.version
    assert built.execute("SELECT count(*) FROM sqlite_schema").get


def test_the_first_head_is_the_same_however_it_was_made() -> None:
    built = apsw.Connection(":memory:")
    SCOPE.build(built)
    query = "SELECT * FROM head"
    assert list(built.execute(query)) == list(migrated(SCOPE).execute(query))


def test_an_older_file_is_brought_up_when_it_is_opened(folder: Path) -> None:
    reached: list[Failpoint] = []
    store = SqliteStore(folder, schema=NEXT, reach=reached.append)
    assert put(store).seq == 2
    assert reached[:2] == [Failpoint.STORE_MIGRATING] * 2
    assert store.check(A) == []
    store.close()
    connection = open_raw(folder)
    assert connection.pragma("user_version") == NEXT.version
    assert list(connection.execute("SELECT n, x FROM later")) == []
    connection.close()


@pytest.mark.parametrize("arrival", [1, 2])
def test_a_migration_cut_short_leaves_the_old_version(folder: Path, arrival: int) -> None:
    arrivals = 0

    def reach(_: Failpoint) -> None:
        nonlocal arrivals
        arrivals += 1
        if arrivals == arrival:
            raise Stop

    store = SqliteStore(folder, schema=NEXT, reach=reach)
    with pytest.raises(Stop):
        put(store)
    store.abandon()
    connection = open_raw(folder)
    assert connection.pragma("user_version") == SCOPE.version
    assert not connection.table_exists("main", "later")
    connection.close()
    again = SqliteStore(folder, schema=NEXT)
    assert put(again).seq == 2
    again.close()


def test_a_step_that_fails_is_a_store_error_and_leaves_the_old_version(folder: Path) -> None:
    broken = replace(SCOPE, steps=[*SCOPE.steps, "CREATE TABLE memory (x)"])
    store = SqliteStore(folder, schema=broken)
    with pytest.raises(StoreError):
        put(store)
    store.close()
    old = SqliteStore(folder)
    assert put(old).seq == 2
    old.close()


def test_a_file_of_a_newer_version_is_refused_and_not_touched(folder: Path) -> None:
    newer = SqliteStore(folder, schema=NEXT)
    put(newer)
    newer.abandon()
    files = sorted((folder / "scopes").glob("*.sqlite*"))
    before = [path.read_bytes() for path in files if not path.name.endswith("-shm")]
    store = SqliteStore(folder)
    for call in (lambda: put(store), lambda: store.check(A), lambda: store.size(A)):
        with pytest.raises(SchemaTooNew):
            call()
    store.close()
    assert before == [path.read_bytes() for path in files if not path.name.endswith("-shm")]
    again = SqliteStore(folder, schema=NEXT)
    assert put(again).seq == 3
    again.close()


def _scrambled(content: bytes) -> bytes:
    return b"This is not a database. " * (len(content) // 24)


def _empty(_: bytes) -> bytes:
    return b""


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _holed(content: bytes) -> bytes:
    return content[:4096] + bytes(len(content) - 4096)


@pytest.mark.parametrize("damage", [_scrambled, _empty, _cut, _holed])
def test_a_damaged_file_is_a_store_error_with_a_hint(folder: Path, damage) -> None:
    path = folder / "scopes" / f"{A}.sqlite"
    content = damage(path.read_bytes())
    path.write_bytes(content)
    store = SqliteStore(folder)
    with pytest.raises(StoreError) as caught:
        put(store)
    assert not isinstance(caught.value, SchemaTooNew | Conflict)
    assert caught.value.__cause__ is not None or "scrubjay" in caught.value.message
    assert caught.value.hint
    assert str(folder) not in f"{caught.value}{caught.value.hint}"
    assert store.check(A)
    store.close()
    if damage in (_scrambled, _empty):
        assert path.read_bytes() == content


def test_a_database_of_somebody_else_is_refused(folder: Path) -> None:
    path = folder / "scopes" / f"{A}.sqlite"
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    store = SqliteStore(folder)
    with pytest.raises(StoreError, match="not one of scrubjay's"):
        put(store)
    store.close()


def test_a_folder_in_the_place_of_a_file_is_a_store_error(folder: Path) -> None:
    path = folder / "scopes" / f"{A}.sqlite"
    path.unlink()
    path.mkdir()
    store = SqliteStore(folder)
    with pytest.raises(StoreError, match="cannot be opened"):
        put(store)
    store.close()


def test_a_file_in_the_place_of_the_data_folder_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "data").create(A)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is denied to a superuser")
def test_a_file_that_may_not_be_read_is_a_store_error(folder: Path) -> None:
    (folder / "scopes" / f"{A}.sqlite").chmod(0)
    store = SqliteStore(folder)
    with pytest.raises(StoreError, match="cannot be opened"):
        put(store)
    store.close()


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("UPDATE head SET memory_seq = 0", "out of the order"),
        ("UPDATE memory SET erased = 1", "still have content"),
        ("UPDATE head SET audit_count = 3", "the head knows 3"),
        ("INSERT INTO audit VALUES (1, x'', x''), (3, x'', x'')", "missing in between"),
    ],
)
def test_check_says_what_is_wrong(folder: Path, statement: str, finding: str) -> None:
    connection = open_raw(folder)
    connection.execute(statement)
    connection.close()
    store = SqliteStore(folder)
    assert any(finding in sentence for sentence in store.check(A))
    store.close()


def test_the_catalog_is_checked_like_any_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.catalog.enroll(CatalogEntry(address=A, name=b"name"))
    store.close()
    (tmp_path / "catalog.sqlite").write_bytes(b"no catalog" * 1_000)
    again = SqliteStore(tmp_path)
    with pytest.raises(StoreError):
        again.catalog.entries()
    again.close()


def test_the_versions_are_those_the_format_page_names() -> None:
    assert (SCOPE.version, CATALOG.version) == (3, 2)
    assert SCOPE.mark != CATALOG.mark


@pytest.mark.parametrize("name", ["schema.sql", "migrations.sql", "queries.sql"])
def test_the_sql_is_part_of_the_package(name: str) -> None:
    found = files("scrubjay.adapters.stores.sqlite").joinpath(name).read_text("utf-8")
    assert found.startswith("-- ")
