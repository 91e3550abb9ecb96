"""The PostgreSQL store: sealed rows of many scopes, read and written by many nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic, sleep
from typing import Any, Final
from weakref import WeakValueDictionary

import psycopg
from psycopg import errors

from scrubjay.adapters.group_commit import CommitQueue, Request
from scrubjay.adapters.stores.head_columns import HeadColumns
from scrubjay.adapters.stores.postgres import faults
from scrubjay.adapters.stores.postgres.connections import Connections, Database, fetched
from scrubjay.adapters.stores.postgres.schema import EACH, QUERIES, SCOPED
from scrubjay.adapters.stores.postgres.transaction import PostgresTx, PostgresView
from scrubjay.model.errors import OutcomeUnknown
from scrubjay.model.results import FileInspection
from scrubjay.model.rows import BackupEntry, CatalogEntry, Collection, Head
from scrubjay.model.scope import check_place
from scrubjay.ports import CATALOG_PAGE, Failpoint, Reach, Result, Tx, pass_by, patient

_RESOLVE_SECONDS: Final = 5.0
_LAST_SECONDS: Final = 1.0
_PAUSE: Final = 0.02


class PostgresStore:
    """Store in one PostgreSQL database; safe for several threads and many nodes.

    Without a synchronous standby a failover may lose what was acknowledged; old keys are then
    kept until every standby that is seen has caught up, and for `keep_seconds` at least.
    """

    def __init__(
        self,
        url: str,
        *,
        reach: Reach = pass_by,
        lock_timeout: float = 30.0,
        connections: int = 20,
        pooler: bool = False,
        region: str = "",
        keep_seconds: float = 0.0,
    ) -> None:
        self._connections = Connections(
            url, size=connections, timeout=lock_timeout, pooler=pooler, region=region, reach=reach
        )
        self._reach = reach
        self._keep_seconds = keep_seconds
        self._queues: WeakValueDictionary[str, CommitQueue] = WeakValueDictionary()
        self._mutex = threading.Lock()
        self._catalog = PostgresCatalog(self._connections)
        self._shared = PostgresShared(self._connections)
        self._slots = PostgresSlots(self._connections)

    @property
    def catalog(self) -> PostgresCatalog:
        """The catalog of this installation."""
        self._connections.check()
        return self._catalog

    @property
    def shared(self) -> PostgresShared:
        """Small values that all nodes share."""
        return self._shared

    @property
    def slots(self) -> PostgresSlots:
        """The slots, in the same database."""
        return self._slots

    def create(self, address: str) -> None:
        self._connections.run("create", address)

    def exists(self, address: str) -> bool:
        return bool(self._connections.run("head", address))

    def head(self, address: str) -> Head:
        if not (found := self._connections.run("head", address)):
            raise faults.absent()
        return HeadColumns(found[0][:-1]).head()

    def read(self, address: str) -> PostgresView:
        self._connections.check()
        return PostgresView(self._connections, address)

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        self._connections.check()
        with self._mutex:
            if (queue := self._queues.get(address)) is None:
                writer = ScopeWriter(self._connections, address, self._reach)
                queue = CommitQueue(writer, self._connections.timeout)
                self._queues[address] = queue
        result: Result = queue.submit(work, erasing=erasing)
        return result

    def resolve(self, address: str, commit: str) -> bool | None:
        """By the status of the transaction; of one of a former primary, only that it failed.

        After a failover its number may have been given to another transaction.
        """
        del address
        number, _, timeline = commit.partition("/")
        if not number.isdigit():
            return None

        def call(connection: Database) -> tuple[str, str | None]:
            try:
                ((present, status),) = fetched(connection, QUERIES["status"], number)
            except errors.InvalidParameterValue:  # this primary has not come so far
                return "", "aborted"
            return present, status

        until = monotonic() + patient(_RESOLVE_SECONDS)
        while True:
            present, status = self._connections.ask(call)
            if status == "aborted":
                return False
            if status == "committed":
                return True if present == timeline else None
            if status is None or monotonic() >= until:
                return None
            sleep(_PAUSE)

    def lasting(self, address: str) -> bool:
        ((synchronous, _),) = self._connections.run("standbys")
        if not synchronous:
            ((seconds,),) = self._connections.run("turned", address)
            if seconds is not None and seconds < self._keep_seconds:
                return False
        ((position,),) = self._connections.run("wal_position")
        until = monotonic() + patient(_LAST_SECONDS)
        while True:
            ((one_has_it, one_lacks_it),) = self._connections.run("replicated", position, position)
            if one_has_it if synchronous else not one_lacks_it:
                return True
            if monotonic() >= until:
                return False
            sleep(_PAUSE)

    def warnings(self) -> Sequence[str]:
        ((synchronous, standbys),) = self._connections.run("standbys")
        if not synchronous:
            return [
                "No standby is synchronous: a failover may lose what was acknowledged, and bring"
                " back what was forgotten."
            ]
        if not standbys:
            return ["No synchronous standby is seen: it is away, or pg_monitor is not granted."]
        return []

    def make_room(self) -> None:
        self._connections.check()

    def settle(self, address: str) -> None:
        """What deletion leaves in pages and the log is the server's to overwrite; it is sealed."""
        self.head(address)

    def size(self, address: str) -> int:
        with self.read(address) as view:
            scope, connection = view.scope, view.connection
            return sum(int(fetched(connection, query, scope)[0][0]) for query in EACH["size"])

    def check(self, address: str) -> Sequence[str]:
        found = []
        with self.read(address) as view:
            head, names = view.head(), list(Collection)
            seqs = [head.at(collection).seq for collection in names]
            for number, count in view.run("beyond_head", view.scope, seqs):
                found.append(
                    f"{count} rows of {names[number]} are out of the order the head knows."
                )
            for number, count in view.run("erased_with_content", view.scope):
                found.append(f"{count} erased rows of {names[number]} still have content.")
            ((count, first, last),) = view.run("audit_extent", view.scope)
            if count and last - first + 1 != count:
                found.append("Audit rows are missing in between.")
            # A scope that was destroyed keeps the count of the rows it once had.
            if last != head.audit_count and not (head.destroyed and not count):
                found.append(
                    f"The audit ends at {last}, but the head knows {head.audit_count} rows."
                )
        return found

    def inspect(self, address: str) -> FileInspection:
        with self.read(address) as view:
            facts = [(f"{one.value} rows", str(view.count(one))) for one in Collection]
            facts += [("head", str(view.head()))]
        return FileInspection(title="a scope: sealed rows", facts=tuple(facts))

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        """Every byte that a query can see; a server's files and log are searched on its disk."""
        self._connections.check()
        if found := self._connections.run("head", address):
            yield from self._connections.run("raw_scope", *[found[0][-1]] * len(SCOPED))
        yield from self._connections.run("raw_catalog")

    def remove(self, address: str) -> None:
        def call(connection: Database) -> None:
            with connection.transaction():
                for (scope,) in fetched(connection, QUERIES["remove"], address):
                    for query in EACH["clear"]:
                        connection.execute(query, (scope,))

        self._connections.ask(call)

    def strays(self) -> Sequence[str]:
        return [sentence for (sentence,) in self._connections.run("strays")]

    def close(self) -> None:
        self._connections.close()


class PostgresCatalog:
    """Catalog of all scopes; a change whose answer is lost is repeated."""

    def __init__(self, connections: Connections) -> None:
        self._run = connections.run

    def enroll(self, entry: CatalogEntry) -> CatalogEntry:
        self._run(
            "enroll", entry.address, entry.name, entry.destroyed, entry.audit_count, entry.audit_mac
        )
        held = self.entry(entry.address)
        assert held is not None
        return held

    def entry(self, address: str) -> CatalogEntry | None:
        return next(iter(_entries(self._run("entry", address))), None)

    def entries(self, after: str = "", limit: int = CATALOG_PAGE) -> Sequence[CatalogEntry]:
        return _entries(self._run("entries", after, limit))

    def mark_destroyed(self, address: str) -> None:
        self._run("mark_destroyed", address)

    def note_audit(self, address: str, count: int, mac: bytes) -> None:
        self._run("note_audit", count, mac, address, count)

    def bury(self, address: str, ids: Iterable[bytes]) -> None:
        self._run("bury_in_catalog", address, list(ids))

    def tombstones(self, address: str) -> frozenset[bytes]:
        return frozenset(found for (found,) in self._run("tombstones_in_catalog", address))

    def add_receipt(self, address: str, cell: bytes) -> None:
        self._run("add_receipt", address, cell)

    def receipts(self, address: str) -> Sequence[bytes]:
        return [found for (found,) in self._run("receipts", address)]

    def add_backup(self, backup: BackupEntry) -> None:
        self._run("add_backup", backup.address, backup.expires, backup.name)

    def backups(self, address: str) -> Sequence[BackupEntry]:
        return [
            BackupEntry(address=found, expires=expires, name=name)
            for found, expires, name in self._run("backups", address)
        ]

    def remove_backup(self, backup: BackupEntry) -> None:
        self._run("remove_backup", backup.address, backup.expires, backup.name)


def _entries(found: Iterable[tuple[Any, ...]]) -> list[CatalogEntry]:
    fields = CatalogEntry.__struct_fields__
    return [CatalogEntry(**dict(zip(fields, columns, strict=True))) for columns in found]


class PostgresShared:
    """Small values that all nodes share."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, name: str, now: float) -> bytes | None:
        found = self._connections.run("shared", name, now)
        return found[0][0] if found else None

    def exchange(
        self, name: str, old: bytes | None, new: bytes | None, *, now: float, until: float
    ) -> bool:
        """As the port says; if the answer to a first try was lost, `new` in its place is ours."""
        tries = 0

        def call(connection: Database) -> bool:
            nonlocal tries
            tries += 1
            with connection.transaction():
                connection.execute(QUERIES["lock_shared"], (name,))
                found = fetched(connection, QUERIES["shared"], name, now)
                held = found[0][0] if found else None
                if held != old:
                    return tries > 1 and held == new
                if new is None:
                    connection.execute(QUERIES["remove_shared"], (name,))
                else:
                    connection.execute(QUERIES["set_shared"], (name, new, until))
                # Others may be removing the same ones: whoever comes second passes them over.
                connection.execute(QUERIES["expire_shared"], (now,))
                return True

        return self._connections.ask(call)

    def names(self, prefix: str, after: str, limit: int, now: float) -> Sequence[str]:
        return [
            name for (name,) in self._connections.run("shared_names", after, prefix, now, limit)
        ]


class PostgresSlots:
    """Wrapped keys in the same database, changed together with the head of their scope.

    A deleted slot stays in the log, on standbys and in backups, wrapped by the root key of its
    generation; it is gone for good when that generation is destroyed.
    """

    place = "the database"
    beside_rows = True
    traceless = False

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def read(self, address: str, *, settled: bool = False) -> Mapping[str, bytes]:
        del settled  # a deletion is done at once
        return dict(self._connections.run("slots", check_place("address", address)))

    def add(self, address: str, purpose: str, wrap: Callable[[], bytes]) -> bytes:
        check_place("purpose", purpose)
        mine = list[bytes]()

        def call(connection: Database) -> bytes:
            with connection.transaction():
                connection.execute(QUERIES["lock_slots"], (check_place("address", address),))
                held = dict(fetched(connection, QUERIES["slots"], address))
                if purpose not in held:
                    if not mine:
                        mine.append(wrap())
                    held[purpose] = mine[0]
                    connection.execute(QUERIES["add_slot"], (address, purpose, mine[0]))
                return bytes(held[purpose])

        return self._connections.ask(call)

    def exchange(self, address: str, purpose: str, old: bytes, new: bytes) -> bool:
        check_place("purpose", purpose)
        tries = 0

        def call(connection: Database) -> bool:
            nonlocal tries
            tries += 1
            with connection.transaction():
                connection.execute(QUERIES["lock_slots"], (check_place("address", address),))
                bindings = (new, address, purpose, old)
                if fetched(connection, QUERIES["exchange_slot"], *bindings):
                    return True
                held = dict(fetched(connection, QUERIES["slots"], address))
                return tries > 1 and held.get(purpose) == new  # the answer to a first try was lost

        return self._connections.ask(call)

    def delete(self, address: str, purposes: Iterable[str]) -> None:
        gone = [check_place("purpose", purpose) for purpose in purposes]
        self._locked(check_place("address", address), "delete_slots", address, gone)

    def remove(self, address: str) -> None:
        self._locked(check_place("address", address), "remove_slots", address)

    def addresses(self, after: str, limit: int) -> Sequence[str]:
        return [address for (address,) in self._connections.run("slot_addresses", after, limit)]

    def check_deletable(self) -> None:
        """Raise what any call would raise now."""
        self._connections.run("slot_addresses", "", 1)

    def _locked(self, address: str, query: str, *bindings: object) -> None:
        def call(connection: Database) -> None:
            with connection.transaction():
                connection.execute(QUERIES["lock_slots"], (address,))
                connection.execute(QUERIES[query], bindings)

        self._connections.ask(call)


# -- the writer of one scope ----------------------------------------------------------------------


class ScopeWriter:
    """Commits batches to one scope; its queue allows one thread at a time."""

    def __init__(self, connections: Connections, address: str, reach: Reach) -> None:
        self._connections = connections
        self._address = address
        self._reach = reach
        self._tx = PostgresTx(connections, address)

    def acquire(self, timeout: float) -> None:
        """Begin a transaction and lock the head; nothing has run yet, so it may be tried again."""
        self._tx = PostgresTx(self._connections, self._address)
        try:
            self._tx.begin(timeout)
        except BaseException:  # seam: who fails to begin has nothing to release
            self._tx.end()
            raise

    def release(self) -> None:
        """Give the connection back; a transaction that has not ended is undone with it."""
        self._tx.end()

    def commit(self, batch: Sequence[Request]) -> None:
        """Run and commit the batch, setting the outcome of each; raises a failure of all.

        If the connection breaks, or PostgreSQL aborts the transaction in favor of another one,
        it is OutcomeUnknown, and the name of the commit tells what became of it.
        """
        try:
            undone = self._attempt(self._tx, batch)
        except psycopg.Error as error:
            self._tx.failure = error
            if faults.is_passing(error):
                unknown = OutcomeUnknown("The answer to a commit was lost.", commit=self._tx.name)
                raise unknown from error
            raise faults.fault(error) from error
        if not undone:
            self._reach(Failpoint.STORE_AFTER_COMMIT)

    def _attempt(self, tx: PostgresTx, batch: Sequence[Request]) -> bool:
        """Run every request and commit; whether there was nothing to commit."""
        if len(batch) == 1:
            batch[0].run(tx, is_own=True)
            if batch[0].error is not None:
                tx.rollback()
                return True
        else:
            for request in batch:
                saved = tx.save()
                request.run(tx, is_own=request is batch[0])
                if request.error is not None:
                    tx.restore(saved)
                tx.release()
        tx.flush()
        self._reach(Failpoint.STORE_BEFORE_COMMIT)
        tx.commit()
        return False
