"""Pool of connections to PostgreSQL, with a deadline for every answer and bounded retries."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from scrubjay.adapters.stores.postgres import faults
from scrubjay.adapters.stores.postgres.schema import QUERIES, migrate
from scrubjay.model.endpoints import check_region, is_loopback
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
_WATCHED: Final = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
    " -c tcp_user_timeout=10000"
)
"""The same for the server: a node that vanished would keep its locks for two hours."""


def checked_url(url: str) -> str:
    """The connection string of a URL: TLS verified beyond this machine, no password within."""
    if not url.startswith(("postgres://", "postgresql://")):
        raise InvalidRequest("The address of the database is not a postgres:// URL.")
    try:
        given: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise InvalidRequest("The address of the database is not a postgres:// URL.") from error
    if given.get("password"):
        raise InvalidRequest(
            "The address of the database contains a password.",
            hint="Keep it in libpq's password file, or in PGPASSWORD.",
        )
    if given.get("service"):
        raise InvalidRequest(
            "The address of the database names a service, which may be anywhere.",
            hint="Name the host.",
        )
    # Where the URL names no host, libpq takes that of PGHOST, or of PGSERVICE.
    told = {**_told_elsewhere(), **given}
    hosts = str(told.get("hostaddr") or told.get("host") or "").split(",")
    if not all(host == "" or host.startswith(("/", "@")) or is_loopback(host) for host in hosts):
        if given.setdefault("sslmode", "verify-full") != "verify-full":
            raise InvalidRequest(
                "The database is on another machine, and its certificate is not verified.",
                hint="Leave sslmode out, or set it to verify-full; sslrootcert names a file.",
            )
        given.setdefault("sslrootcert", "system")
    return make_conninfo(**{**_DEFAULTS, **given})


def _told_elsewhere() -> dict[str, str]:
    """Defaults of libpq, those of its variables and files among them."""
    options = psycopg.pq.Conninfo.get_defaults()
    return {one.keyword.decode(): one.val.decode() for one in options if one.val}


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """Connection whose every answer has a deadline: a network may swallow what is sent."""

    limit = 0.0

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.limit if timeout is None else timeout)


class Connections:
    """Pool of connections, each made by the thread that needs it; they belong to one process.

    psycopg's own pool connects in threads of its own, with pauses that grow while the server is
    away; here whoever waits has a deadline, and is served as soon as the server is back.
    """

    def __init__(
        self, url: str, *, size: int, timeout: float, pooler: bool, region: str, reach: Reach
    ) -> None:
        self._idle: deque[Database] = deque()
        self.timeout = timeout
        self.asked_first = ""
        """The value that a view asked for: the next one gets it with the head, in one trip."""
        self._url = checked_url(url)
        if not pooler:  # which knows no options, and watches its clients itself
            given = {**_told_elsewhere(), **conninfo_to_dict(self._url)}.get("options", "")
            self._url = make_conninfo(self._url, options=f"{_WATCHED} {given}")
        self._region = region
        self._reach = reach
        # A pooler gives each transaction another session: none may have statements of its own.
        self._prepare_after = None if pooler else 5
        limited = {"limit": timeout + _SILENCE}
        self._connection: type[TimedConnection] = type("Limited", (TimedConnection,), limited)
        self._room = threading.BoundedSemaphore(size)
        self._mutex = threading.Lock()
        self._lent: dict[int, int] = {}
        """The thread that took a connection, by the id of the connection."""
        self._owner: int | None = None
        """The process that they belong to, once the schema is there."""
        self._migrator: int | None = None
        """The thread that sees to the schema."""
        self._beginning = threading.Lock()
        self._closed = False

    def take(self) -> Database:
        """A connection to use alone, until it is given back; Busy if none comes free.

        A thread that has one gets another at once: two who wait for each other would wait for long.
        """
        self.check()
        me = threading.get_ident()
        if self._owner != os.getpid() and self._migrator != me:
            self._begin()
        with self._mutex:
            waits = me not in self._lent.values()
        if waits and not self._room.acquire(timeout=self._patient()):
            raise faults.unreachable()
        try:
            connection = self._idle_or_new()
        except BaseException:  # seam: who gets none has nothing to give back
            if waits:
                self._room.release()
            raise
        with self._mutex:
            self._lent[id(connection)] = me
        return connection

    def _idle_or_new(self) -> Database:
        with suppress(IndexError):
            return self._idle.pop()
        return self._connection.connect(
            self._url, autocommit=True, prepare_threshold=self._prepare_after
        )

    def give(self, connection: Database, *, sound: bool = True) -> None:
        """Give a connection back; one that is not sound is closed."""
        with self._mutex:
            taker = self._lent.pop(id(connection))
            is_last = taker not in self._lent.values()
        if sound and not (self._closed or connection.closed):
            self._idle.append(connection)
        else:
            connection.close()
        if is_last:
            self._room.release()

    def begin(self, start: Callable[[Database], Answer]) -> tuple[Database, Answer]:
        """A connection on which `start` was carried out; it is given back by the caller.

        Every lost connection, deadlock and failed serialization is tried again, until time is up.
        """
        until, pause = monotonic() + self._patient(), _FIRST_PAUSE
        while True:
            connection: Database | None = None
            try:
                connection = self.take()
                return connection, start(connection)
            except BaseException as error:  # seam: whatever stopped it, its transaction ends
                if connection is not None:
                    self.give(connection, sound=False)
                if not isinstance(error, psycopg.Error):
                    raise
                if not faults.is_passing(error) or monotonic() + pause >= until:
                    raise faults.fault(error) from error
            self._drop_idle()
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

    def check(self) -> None:
        """Raise unless it may be used."""
        if self._closed:
            raise StoreError("The store is closed.", hint="Open it again.")

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._drop_idle()

    def __del__(self) -> None:
        """An abandoned pool lets go of its connections."""
        self._drop_idle()

    def _drop_idle(self) -> None:
        """Close the idle connections: when one broke, they may all lead to a former primary."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _patient(self) -> float:
        # Patience is for locks. To connect takes a moment even for whoever waits for none.
        return max(_CONNECT_SECONDS, patient(self.timeout))

    def _begin(self) -> None:
        if self._owner is not None:
            raise StoreError("The store was opened by the parent process: open it again.")
        with self._beginning:
            if self._owner is None:
                self._migrator = threading.get_ident()
                try:
                    self.ask(lambda connection: migrate(connection, self._reach))
                    self._check_region()
                    self._owner = os.getpid()
                finally:
                    self._migrator = None

    def _check_region(self) -> None:
        """Check the label of the database, which whoever names a region first puts there."""
        found = self.run("region")
        if self._region and not found:
            self.run("label", self._region)
            found = self.run("region")
        check_region("database", found[0][0] if found else "", self._region)


def fetched(connection: Database, query: bytes, *bindings: object) -> list[tuple[Any, ...]]:
    """Every row that a query yields on this connection."""
    return connection.execute(query, bindings, binary=True).fetchall()
