"""Pool of connections to PostgreSQL, with a deadline for every answer and bounded retries."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from scrubjay.adapters.stores.postgres import faults
from scrubjay.adapters.stores.postgres.schema import QUERIES, migrate
from scrubjay.model.endpoints import is_loopback
from scrubjay.model.errors import InvalidRequest, StoreError
from scrubjay.ports import Reach, patient

Answer = TypeVar("Answer")
Database = psycopg.Connection[tuple[Any, ...]]
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
_CONNECT_SECONDS: Final = 1.0
_SILENCE: Final = 10.0
"""How long a server may be silent beyond the wait for a lock; then the connection is given up."""
_DEFAULTS: Final = {
    "application_name": "scrubjay",
    "connect_timeout": "5",
    "target_session_attrs": "read-write",
    "tcp_user_timeout": "10000",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
}


def checked_url(url: str) -> str:
    """The connection string of a URL: TLS verified beyond this machine, no password within."""
    try:
        given: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise InvalidRequest("The address of the database is not a postgres:// URL.") from error
    if given.get("password"):
        raise InvalidRequest(
            "The address of the database contains a password.",
            hint="Keep it in libpq's password file, or in PGPASSWORD.",
        )
    hosts = str(given.get("hostaddr") or given.get("host") or "").split(",")
    if not all(host == "" or host.startswith(("/", "@")) or is_loopback(host) for host in hosts):
        if given.setdefault("sslmode", "verify-full") != "verify-full":
            raise InvalidRequest(
                "The database is on another machine, and its certificate is not verified.",
                hint="Leave sslmode out, or set it to verify-full; sslrootcert names a file.",
            )
        given.setdefault("sslrootcert", "system")
    return make_conninfo(**{**_DEFAULTS, **given})


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """Connection whose every answer has a deadline: a network may swallow what is sent."""

    limit = 0.0

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.limit if timeout is None else timeout)


class Connections:
    """Connection pool, opened by the first use; it knows which process it belongs to."""

    def __init__(self, url: str, *, size: int, timeout: float, pooler: bool, reach: Reach) -> None:
        self.timeout = timeout
        self._reach = reach
        self._owner: int | None = None
        """The process that opened the pool."""
        self._ready: int | None = None
        """The same once the schema is there."""
        self._opening = threading.RLock()
        self._closed = False
        timed = type("Timed", (TimedConnection,), {"limit": timeout + _SILENCE})
        self._pool = ConnectionPool(
            checked_url(url),
            connection_class=timed,
            # A pooler gives each transaction another session: none may have statements of its own.
            kwargs={"autocommit": True, **({"prepare_threshold": None} if pooler else {})},
            min_size=0,
            max_size=size,
            open=False,
        )

    def take(self) -> Database:
        """A connection to use alone, until it is given back; Busy if none comes free."""
        self.check()
        if self._ready != os.getpid():
            self._open()
        try:
            return self._pool.getconn(self._patient())
        except PoolTimeout as error:
            raise faults.unreachable() from error
        except PoolClosed as error:
            raise _closed() from error

    def give(self, connection: Database, *, sound: bool = True) -> None:
        """Give a connection back; one that is not sound is closed."""
        if not sound:
            connection.close()
        self._pool.putconn(connection)

    def begin(self, start: Callable[[Database], Answer]) -> tuple[Database, Answer]:
        """A connection on which `start` was carried out; it is given back by the caller.

        Every lost connection, deadlock and failed serialization is tried again, until time is up.
        """
        until, pause = monotonic() + self._patient(), _FIRST_PAUSE
        while True:
            connection = self.take()
            try:
                return connection, start(connection)
            except psycopg.Error as error:
                self.give(connection, sound=False)
                if not faults.is_passing(error) or monotonic() + pause >= until:
                    raise faults.fault(error) from error
            except BaseException:  # seam: whatever stopped it, its transaction must not go on
                self.give(connection, sound=False)
                raise
            self.refresh()
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def ask(self, call: Callable[[Database], Answer]) -> Answer:
        """Carry out a call that may be repeated, until its answer arrives or time is up."""
        connection, answer = self.begin(call)
        self.give(connection)
        return answer

    def run(self, query: str, *bindings: object) -> list[tuple[Any, ...]]:
        """Every row that one of our statements yields, if any; it may be repeated."""

        def call(connection: Database) -> list[tuple[Any, ...]]:
            cursor = connection.execute(QUERIES[query], bindings, binary=True)
            return cursor.fetchall() if cursor.description else []

        return self.ask(call)

    def refresh(self) -> None:
        """Drop the idle connections that no longer work: after a failover, all of them."""
        try:
            self._pool.check()
        except psycopg.Error:  # seam: it is found out again by whoever takes the next one
            return

    def check(self) -> None:
        """Raise unless it may be used."""
        if self._closed:
            raise _closed()

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        if self._owner == os.getpid():
            self._pool.close()

    def _patient(self) -> float:
        # Patience is for locks. To connect takes a moment even for whoever waits for none.
        return max(_CONNECT_SECONDS, patient(self.timeout))

    def _open(self) -> None:
        with self._opening:
            me = os.getpid()
            if self._owner == me:  # by this thread, which migrates, or by another that is done
                return
            if self._owner is not None:
                raise StoreError("The store was opened by the parent process: open it again.")
            self._pool.open()
            self._owner = me
            try:
                self.ask(lambda connection: migrate(connection, self._reach))
            except BaseException:  # seam: whoever comes next begins with the migration, too
                self._owner = None
                raise
            self._ready = me


def fetched(connection: Database, query: bytes, *bindings: object) -> list[tuple[Any, ...]]:
    """Every row that a query yields on this connection."""
    return connection.execute(query, bindings, binary=True).fetchall()


def _closed() -> StoreError:
    return StoreError("The store is closed.", hint="Open it again.")
