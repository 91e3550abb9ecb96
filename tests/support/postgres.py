"""A real PostgreSQL server of our own: in a temporary folder, on a Unix socket, ended with it.

`tools/setup.sh` installs it; where that failed, what it said is the reason for which tests skip.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.processes import free_ports

REFUSED: Final = Path(__file__).parents[2] / ".venv" / "not-installable"
RAM_DISK: Final = Path("/dev/shm")
_SETTINGS: Final = {
    "listen_addresses": "''",
    "fsync": "off",  # a killed process leaves its pages to the system; only power loss would not
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "autovacuum": "off",
    "deadlock_timeout": "10ms",
}


@cache
def binaries() -> Path:
    """The folder of the server's programs; skips where they could not be installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    refused = REFUSED / "postgresql"
    if refused.exists():
        pytest.skip(f"PostgreSQL is not installable here: {refused.read_text()[-500:]}")
    raise FileNotFoundError("No PostgreSQL server: run make setup.")


def as_server() -> dict[str, Any]:
    """How a process is started as the user that a server may run as: never as root."""
    return {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}


class PostgresServer:
    """A server, or the standby of one, with databases that tests make for themselves."""

    def __init__(
        self,
        *,
        of: PostgresServer | None = None,
        durable: bool = False,
        folder: Path | None = None,
        address: str = "127.0.0.1",
        cert: Path | None = None,
        key: Path | None = None,
        **settings: str,
    ) -> None:
        """Start one; in a `folder` that has its data already, that one again.

        With a certificate it listens on an address, too, and speaks TLS there alone.
        """
        base = RAM_DISK if RAM_DISK.is_dir() and not durable else None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="scrubjay-postgres-", dir=base))
        self.folder.mkdir(exist_ok=True)
        self.data = self.folder / "data"
        self.settings = {**_SETTINGS, "unix_socket_directories": f"'{self.folder}'", **settings}
        if durable:
            self.settings["fsync"] = "on"
        self._numbers = itertools.count(1)
        self.port = 5432
        if owner := as_server():
            shutil.chown(self.folder, **owner)
        data = str(self.data)
        if (self.data / "PG_VERSION").exists():
            (self.data / "postmaster.pid").unlink(missing_ok=True)
        elif of is None:
            self._run("initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-D", data)
        else:
            source = f"host={of.folder} user=postgres application_name=standby"
            self._run("pg_basebackup", "-R", "-X", "stream", "-c", "fast", "-D", data, "-d", source)
            self.settings["primary_conninfo"] = f"'{source}'"
        if cert is not None and key is not None:
            self._speak_tls(address, cert, key)
        self.start()

    def _speak_tls(self, address: str, cert: Path, key: Path) -> None:
        self.port = free_ports(1)
        for name, content in (("cert", cert), ("key", key)):
            place = self.folder / name
            place.write_bytes(content.read_bytes())
            place.chmod(0o600)
            if owner := as_server():
                shutil.chown(place, **owner)
            self.settings[f"ssl_{name}_file"] = f"'{place}'"
        self.settings |= {"ssl": "on", "listen_addresses": f"'{address}'", "port": str(self.port)}
        rules = self.data / "pg_hba.conf"
        rules.write_text("local all all trust\nhostssl all all all trust\n")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        lines = "".join(f"{name} = {value}\n" for name, value in self.settings.items())
        (self.data / "postgresql.auto.conf").write_text(lines)
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server in good order, or at once."""
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """Kill it as an accident would: every process of it."""
        kill_server(self.data)

    def process(self, kind: str) -> int:
        """The id of one of its processes."""
        leader = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        named = {Path(f"/proc/{one}/cmdline").read_text(): int(one) for one in children}
        return next(one for name, one in named.items() if kind in name)

    def promote(self) -> None:
        """Let a standby take over."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def end(self) -> None:
        """Stop it and remove its folder."""
        subprocess.run(
            [binaries() / "pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop"],
            **as_server(), capture_output=True, cwd="/", check=False,
        )  # fmt: skip
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases."""
        return f"postgres:///{database}?host={self.folder}&port={self.port}&user=postgres"

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"home{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drop a database, whoever still uses it."""
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def sql(self, statement: str, url: str = "") -> list[tuple[Any, ...]]:
        """Run a statement as an administrator."""
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [binaries() / program, *arguments],
            **as_server(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", text=True,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            start_new_session=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stderr}"


def kill_server(data: Path) -> None:
    """Kill every process of the server with this data folder."""
    leader = int((data / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
    for process in (leader, *map(int, children)):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
