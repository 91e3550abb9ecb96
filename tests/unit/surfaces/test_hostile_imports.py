"""Files and streams of strangers: none costs more than its length, none is a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path

import apsw
import pytest

from scrubjay.engine.transfer import bundle
from scrubjay.model.errors import InvalidRequest
from scrubjay.surfaces.imports import carapace, sqlite
from scrubjay.vault import Purpose, Sealer
from tests.dialects.carapace.old_database import DOCUMENTED, row, write

SCOPE = '{"type": "scope", "scope": "a/b", "made_at": "2026-05-01T10:00:00Z", "lookup": null}'
NESTED = "[" * 1_000_000 + "]" * 1_000_000
FOR_EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
ABOUT = """
    CREATE TABLE about (name TEXT, value TEXT);
    INSERT INTO about VALUES ('format', 'scrubjay-sqlite'), ('version', '1'), ('scope', 'a/b'),
        ('made_at', '');
"""
BOMBS = (
    # Rows without an end, and a first row that never comes.
    f"CREATE VIEW memories AS {FOR_EVER} SELECT '{{}}' AS record FROM n",
    f"CREATE VIEW memories AS {FOR_EVER} SELECT count(*) AS record FROM n",
    # A file that says it holds more than it does.
    "CREATE TABLE memories (x, record TEXT AS (hex(zeroblob(400000000))));"
    "INSERT INTO memories (x) VALUES (1)",
    "CREATE TABLE memories (x, record TEXT AS ('{\"a\": \"' || hex(zeroblob(9000)) || '\"}'));"
    "INSERT INTO memories (x) VALUES (1), (2), (3), (4), (5), (6)",
    "CREATE VIRTUAL TABLE memories USING fts5(record); INSERT INTO memories VALUES ('{}')",
    # Nested deeper than any stack.
    f"CREATE TABLE memories (record TEXT); INSERT INTO memories VALUES ('{NESTED}')",
)


def made(statements: str) -> bytes:
    database = apsw.Connection(":memory:")
    database.execute(statements)
    raw = database.serialize("main")
    database.close()
    return raw


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_a_copy_that_is_a_bomb_is_refused(bomb: str) -> None:
    with pytest.raises(InvalidRequest):
        sqlite.read(made(f"{ABOUT} {bomb}"))


def test_a_copy_that_is_none_of_these_is_read() -> None:
    good = "CREATE TABLE memories (record TEXT); INSERT INTO memories VALUES ('{}'), ('{}')"
    assert json.loads(sqlite.read(made(f"{ABOUT} {good}")))["count"] == 2


def test_pages_that_are_used_again_and_again_tell_nothing() -> None:
    """A table of five pages whose inner pages have the same child at every place."""
    page = 512
    database = apsw.Connection(":memory:")
    database.execute(f"PRAGMA page_size = {page}; CREATE TABLE memories (record TEXT); {ABOUT}")
    database.executemany("INSERT INTO memories VALUES (?)", [("{}",)] * 100_000)
    whole = database.serialize("main")
    database.close()

    def with_child(number: int, child: int) -> tuple[bytes, int]:
        """An inner page with one child everywhere, and the child it had at first."""
        raw = bytearray(whole[(number - 1) * page : number * page])
        assert raw[0] == 5
        cells = [12 + 2 * place for place in range(int.from_bytes(raw[3:5]))]
        places = [8, *(int.from_bytes(raw[at : at + 2]) for at in cells)]
        first = int.from_bytes(raw[places[1] : places[1] + 4])
        for at in places:
            raw[at : at + 4] = child.to_bytes(4)
        return bytes(raw), first

    root, below = with_child(2, 4)
    inner, leaf = with_child(below, 5)
    forged = whole[:page] + root + whole[2 * page : 3 * page] + inner
    forged += whole[(leaf - 1) * page : leaf * page]
    forged = forged[:28] + (5).to_bytes(4) + forged[32:]
    told = apsw.Connection(":memory:")
    told.deserialize("main", forged)
    ((rows,),) = told.execute("SELECT count(*) FROM memories")
    told.close()
    assert rows > 10 * len(forged)
    with pytest.raises(InvalidRequest, match="damaged"):
        sqlite.read(forged)


def test_a_database_of_carapace_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    columns = ", ".join(f"'x' AS {name}" for name in row("mem-1"))
    path = tmp_path / "bomb.sqlite"
    database = apsw.Connection(str(path))
    database.execute(f"CREATE VIEW entries AS {FOR_EVER} SELECT {columns} FROM n")
    database.close()
    with pytest.raises(InvalidRequest):
        carapace.read(path)


def test_an_entry_nested_too_deep_is_skipped(tmp_path: Path) -> None:
    rows = [row("mem-1", tags=NESTED), row("mem-2")]
    found = carapace.read(write(tmp_path / "main.sqlite", rows, DOCUMENTED))
    assert [memory.id for memory in found.memories] == ["mem-2"]
    assert len(found.skipped) == 1


@pytest.mark.parametrize(
    "document",
    [
        NESTED,
        f'{{"format": "scrubjay-export", "version": 2, "memories": {NESTED}}}',
        '{"a":' * 200_000 + "1" + "}" * 200_000,
        '{"format": "scrubjay-export", "count": ' + "9" * 100_000 + "}",
        json.dumps({"format": "scrubjay-export", "version": bundle.VERSION, "count": 10**9}),
    ],
    ids=["array", "memories", "objects", "digits", "declared"],
)
def test_a_document_that_is_nested_or_boasts_is_refused(document: str) -> None:
    with pytest.raises(InvalidRequest):
        bundle.from_json(document.encode())


@pytest.mark.parametrize(
    "body",
    [
        NESTED,
        "[]",
        "{}",
        "",
        "9" * 100_000,
        '{"scope": "a/b", "made_at": ' + NESTED + ', "lookup": null}',
        '{"scope": "a/b", "made_at": 1, "lookup": 5}',
        SCOPE + '\n{"type": []}',
        SCOPE + '\n{"type": "memory", "memory": ' + NESTED + "}",
        SCOPE + '\n{"type": "tombstone", "id": "zz"}',
        SCOPE + '\n{"type": "audit", "cell": 1e999, "mac": null}',
        SCOPE + '\n{"type": "counter", "id": "x", "counter": {"times": 1e400}}',
        SCOPE + '\n{"type": "retention", "retention": [[]]}',
        SCOPE + '\n{"type": "entries", "record": {"id": -1}}',
    ],
    ids=range(14),
)
def test_a_bundle_that_opens_and_holds_something_else_is_refused(body: str) -> None:
    """Whoever made it chose the key, too; that it opens is no reason to believe what is inside."""
    header = json.dumps({"format": bundle.BUNDLE, "version": 1, "name": "b"}).encode()
    sealer = Sealer(bytes(32), Purpose.BUNDLE, None, "bundle")
    sealed = sealer.seal_pieces([body.encode()], row_id=b"b", version=1, random=os.urandom)
    with pytest.raises(InvalidRequest):
        bundle.unseal(header + b"\n" + b"".join(sealed), bytes(32))
