"""The floors: the same bytes in bare SQLite, with the same durability and nothing else."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import apsw
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Cell = tuple[bytes, bytes]
NONCE_BYTES: Final = 12
_INSERT: Final = "INSERT INTO t VALUES (?, ?)"


class BareTable:
    """`t(id BLOB PRIMARY KEY, body BLOB)` in a file of its own: WAL, every commit synced."""

    def __init__(self, path: Path, vfs: str | None = None) -> None:
        self.path = path
        self.connection = apsw.Connection(os.fspath(path), vfs=vfs)
        self.connection.pragma("journal_mode", "wal")
        self.connection.pragma("synchronous", "full")
        self.connection.execute("CREATE TABLE IF NOT EXISTS t(id BLOB PRIMARY KEY, body BLOB)")
        self.cursor = self.connection.cursor()

    def insert_each(self, cells: Iterable[Cell]) -> None:
        """Insert each cell and make it durable before the next."""
        execute = self.cursor.execute
        for cell in cells:
            execute(_INSERT, cell)

    def insert_all(self, cells: Sequence[Cell]) -> None:
        """Insert all cells in one transaction."""
        execute = self.cursor.execute
        execute("BEGIN IMMEDIATE")
        self.cursor.executemany(_INSERT, cells)
        execute("COMMIT")

    def settle(self) -> None:
        """Bring the log into the database and empty it."""
        self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file, checkpointed."""
        self.connection.close()


class _Ticket:
    __slots__ = ("cell", "done", "gate")

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.gate = threading.Lock()
        self.done = False


class GroupCommit:
    """The least that group commit takes: one leads, who came meanwhile shares the next sync."""

    def __init__(self, table: BareTable) -> None:
        self._table = table
        self._mutex = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._led = False

    def insert(self, cell: Cell) -> None:
        """Insert a cell; it is durable on return."""
        ticket = _Ticket(cell)
        ticket.gate.acquire()
        with self._mutex:
            leads, self._led = not self._led, True
            if not leads:
                self._waiting.append(ticket)
        if not leads:
            ticket.gate.acquire()
        if not ticket.done:
            self._lead(ticket)

    def _lead(self, ticket: _Ticket) -> None:
        with self._mutex:
            batch = [ticket, *self._waiting]
            self._waiting = []
        self._table.insert_all([one.cell for one in batch])
        with self._mutex:
            successor = self._waiting.pop(0) if self._waiting else None
            self._led = successor is not None
        if successor is not None:
            successor.gate.release()
        for one in batch[1:]:
            one.done = True
            one.gate.release()


class SealedTable(BareTable):
    """A bare table whose bodies are AES-256-GCM, and the least that each verb takes on it."""

    def __init__(self, path: Path, like: Iterable[Cell]) -> None:
        """Fill it with as many JSON bodies as there are cells in `like`, of their sizes."""
        super().__init__(path)
        self._cipher = AESGCM(os.urandom(32))
        cells = [(os.urandom(16), self._seal(_body(len(cell)))) for _, cell in like]
        self.insert_all(cells)
        self.settle()
        self.ids = [row_id for row_id, _ in cells]

    def _seal(self, body: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, body, None)

    def _open(self, cell: bytes, cipher: AESGCM | None = None) -> bytes:
        return (cipher or self._cipher).decrypt(cell[:NONCE_BYTES], cell[NONCE_BYTES:], None)

    def rotate(self, batch: int) -> int:
        """Seal every row under a new key, a transaction per batch; how many there were."""
        old, self._cipher = self._cipher, AESGCM(os.urandom(32))
        execute, after, count = self.cursor.execute, 0, 0
        while True:
            execute("BEGIN IMMEDIATE")
            rows: list[Any] = execute(
                "SELECT rowid, body FROM t WHERE rowid > ? ORDER BY rowid LIMIT ?", (after, batch)
            ).fetchall()
            for rowid, cell in rows:
                again = self._seal(self._open(cell, old))
                execute("UPDATE t SET body = ? WHERE rowid = ?", (again, rowid))
            execute("COMMIT")
            if not rows:
                self.settle()
                return count
            after, count = rows[-1][0], count + len(rows)

    def get(self, row_id: bytes) -> object:
        """Read one row."""
        query = "SELECT body FROM t WHERE id = ?"
        found: list[Any] = self.cursor.execute(query, (row_id,)).fetchall()
        return json.loads(self._open(found[0][0]))

    def newest(self, limit: int) -> list[object]:
        """Read the rows inserted last."""
        query = "SELECT body FROM t ORDER BY rowid DESC LIMIT ?"
        found: list[Any] = self.cursor.execute(query, (limit,)).fetchall()
        return [json.loads(self._open(cell)) for (cell,) in found]

    def supersede(self, row_id: bytes, body: bytes) -> bytes:
        """Mark one row as replaced and insert another, in one transaction; the new one's id."""
        execute, new = self.cursor.execute, os.urandom(16)
        execute("BEGIN IMMEDIATE")
        found: list[Any] = execute("SELECT body FROM t WHERE id = ?", (row_id,)).fetchall()
        old = json.loads(self._open(found[0][0]))
        retired = self._seal(json.dumps({**old, "superseded_by": new.hex()}).encode())
        execute("UPDATE t SET body = ? WHERE id = ?", (retired, row_id))
        execute(_INSERT, (new, self._seal(body)))
        execute("COMMIT")
        return new

    def check(self) -> int:
        """Check the file and open every row; how many there were."""
        execute = self.cursor.execute
        assert execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows: list[Any] = execute("SELECT body FROM t").fetchall()
        return len([json.loads(self._open(cell)) for (cell,) in rows])


def _body(size: int) -> bytes:
    """A JSON object that has exactly `size` bytes once sealed."""
    room = size - NONCE_BYTES - 16
    text = json.dumps({"id": os.urandom(16).hex(), "content": ""})
    return text.replace('""', f'"{"x" * (room - len(text))}"').encode()
