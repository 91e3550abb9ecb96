"""What the commands that serve have in common: what they need, and how they end."""

from __future__ import annotations

import signal
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from scrubjay.domain.errors import InvalidRequest
from scrubjay.surfaces.cli.exits import Exit

if TYPE_CHECKING:
    from uvicorn import Server


def check_installed() -> None:
    """Refuse to serve where the libraries that serve are not there."""
    if not all(map(find_spec, ("starlette", "uvicorn", "pydantic", "jwt", "httpx2"))):
        raise InvalidRequest(
            "The service is not installed.", hint="pip install 'scrubjay[server]' brings it."
        )


def heed() -> None:
    """From now on SIGTERM and Ctrl-C are no failure: they are how serving is meant to end.

    To be called before anybody is told where it serves, and so may end it.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)  # the server passes it on when it is done


def until_told(server: Server, bound: socket.socket) -> None:
    """Serve until it is told to end."""
    from scrubjay.surfaces.http import logs

    sys.stdout.flush()
    logs.to_stderr()
    server.run(sockets=[bound])


def _end(_number: int, _frame: object) -> None:
    """End in peace, by way of closing the engine."""
    raise SystemExit(Exit.OK)
