"""The cluster of examples/cluster, started and stopped by its own script."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from scrubjay import client
from tests.processes import free_ports
from tests.support.postgres import kill_server

ROOT: Final = Path(__file__).parents[2]
_SCRIPT: Final = ROOT / "examples" / "cluster" / "cluster.sh"
_PORTS: Final = 40


class Example:
    """The example in a folder of its own, on ports that nobody listens on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_ports(_PORTS)
        self._clients = ExitStack()
        self._variables = {
            **os.environ,
            "CLUSTER_DIR": str(folder),
            "CLUSTER_PORT": str(self.port),
            "SCRUBJAY": str(ROOT / ".venv" / "bin" / "scrubjay"),
        }

    def start(self, *parts: str) -> None:
        """Start these parts, or all of them; each is ready when this returns."""
        self.run("start", *parts)

    def stop(self, *parts: str) -> None:
        """Stop these parts, or all of them."""
        self.run("stop", *parts)

    def run(self, *words: str) -> str:
        """What a command of the script prints."""
        done = subprocess.run(
            [_SCRIPT, *words], env=self._variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stderr[-3_000:]}{self._logs()}"
        return done.stdout

    def kill(self, process: str) -> None:
        """Kill a process, as an accident would; a database with what watches over it."""
        os.killpg(int((self.folder / "pid" / process).read_text()), signal.SIGKILL)
        if (data := self.folder / process / "data").exists():
            kill_server(data)

    def primary(self) -> str:
        """The process of the server that takes writes now."""
        return f"postgres{self.run('primary').strip()}"

    def variables(self) -> dict[str, str]:
        """How a node finds everything."""
        return dict(line.split("=", 1) for line in self.run("env").splitlines())

    def key(self) -> str:
        """The API key for every scope."""
        return (self.folder / "api-key").read_text().strip()

    def connect(self, scope: str, *, node: int = 0) -> client.Client:
        """A client of this scope: by the balancer, or of one node."""
        url = f"http://127.0.0.1:{self.port + node}"
        made = client.connect(url, self.key(), scope=scope, create=True)
        return self._clients.enter_context(made)

    def end(self) -> None:
        """Close every client, and stop everything."""
        self._clients.close()
        self.stop()

    def _logs(self) -> str:
        ends = {one.name: one.read_text()[-500:] for one in (self.folder / "log").glob("*")}
        return "".join(f"\n-- {name}\n{end}" for name, end in ends.items())
