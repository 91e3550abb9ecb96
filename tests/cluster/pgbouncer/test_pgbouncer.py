"""A store behind PgBouncer in transaction mode keeps the contract: no session lasts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from scrubjay.adapters.stores.postgres.store import PostgresStore
from scrubjay.testing.store_contract import DurableStoreContract, OpenStore, SlotsBesideContract
from tests.processes import free_ports, until_it_listens
from tests.support.postgres import PostgresServer, as_server

_SETTINGS = """
[databases]
* = host={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 40
max_client_conn = 400
server_fast_close = 1
"""


@pytest.fixture(scope="module")
def pooler(postgres: PostgresServer) -> Iterator[str]:
    """The host and port of a PgBouncer in front of the server."""
    with TemporaryDirectory(prefix="scrubjay-pgbouncer-") as name:
        folder, port = Path(name), free_ports(1)
        folder.chmod(0o777)
        settings = folder / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(server=postgres.folder, port=port, folder=folder))
        running = subprocess.Popen(
            ["/usr/sbin/pgbouncer", "--quiet", settings],
            **as_server(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until_it_listens(running, port)
        yield f"127.0.0.1:{port}"
        running.terminate()
        running.wait(60)


class TestBehindPgBouncer(SlotsBesideContract, DurableStoreContract):
    @pytest.fixture
    def open_store(self, pooler: str, database: str) -> OpenStore:
        name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
        url = f"postgres://postgres@{pooler}/{name}"
        return partial(PostgresStore, url, lock_timeout=10.0, pooler=True)
