"""HTTP/1.1 connections: deadlines, and a cap for each peer, so that half-open ones lock nobody out.

A connection that waits for a request gives way to a new one where its peer, or everybody together,
has too many: the one that has waited longest is closed. A connection whose request is being
answered never gives way. uvicorn has none of this: its timer stops at the first byte.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS: Final = 2048
"""How many connections may be open at once, where the system allows twice as many files."""
PEER_SHARE: Final = 4
"""One peer may have a fourth of all connections."""
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class Connection(H11Protocol):
    """One connection; its timer runs from its beginning, or the last answer, to the next request.

    The timer is uvicorn's own for keep-alive, which a request that has all its headers stops.
    """

    header_seconds = 10.0
    """How long the first request's headers may take, from the moment of the connection."""
    stall_seconds = 60.0
    """How long an answer may lie here without its reader taking any of it."""
    peer: str = ""
    waits_since: float = 0.0
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it in, and close the one that has waited longest if there are too many."""
        super().connection_made(transport)
        self.peer = peer_of(self.client[0]) if self.client else ""
        self.waits_since = self.loop.time()
        handler = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(self.header_seconds, handler)
        most = self.limit_concurrency or len(self.connections) + 1
        others = cast("set[Connection]", self.connections)
        alike = [one for one in others if one.peer == self.peer]
        if len(alike) > max(1, most // PEER_SHARE) and not _close_one(alike, self):
            transport.write(_REFUSAL)
            transport.close()
        elif len(others) >= most:
            _close_one(others, self)

    def data_received(self, data: bytes) -> None:
        """Take in bytes; they alone do not stop the timer."""
        self.conn.receive_data(data)
        self.handle_events()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waits_since = self.loop.time()
        super().on_response_complete()

    @property
    def waits(self) -> bool:
        """Whether no request is being answered here."""
        return self.cycle is None or self.cycle.response_complete

    def timeout_keep_alive_handler(self) -> None:
        """Close it, whatever of a request has come; an answer may still be taken for a while."""
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        if self.transport.get_write_buffer_size():
            self._expect_reader()
        self.transport.close()

    def pause_writing(self) -> None:
        """Begin to count how long the reader takes nothing."""
        super().pause_writing()
        self._expect_reader()

    def resume_writing(self) -> None:
        """The reader has taken something."""
        self._forgive_reader()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let it go, with its timers."""
        self._unset_keepalive_if_required()
        self._forgive_reader()
        super().connection_lost(exc)

    def _expect_reader(self) -> None:
        self._forgive_reader()
        self._stalled = self.loop.call_later(self.stall_seconds, self.transport.abort)

    def _forgive_reader(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def most_connections() -> int:
    """How many connections may be open at once; asks the system for the files they need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # some systems have a lower limit than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return CONNECTIONS if soft == resource.RLIM_INFINITY else min(CONNECTIONS, soft // 2)


def peer_of(address: str) -> str:
    """Who counts as one peer: an address, of IPv6 its network of 64 bits."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


def _close_one(crowd: Iterable[Connection], newcomer: Connection) -> bool:
    """Close the connection that has waited longest for a request; False if none waits."""
    waiting = [one for one in crowd if one.waits and one is not newcomer]
    if not waiting:
        return False
    min(waiting, key=lambda one: one.waits_since).timeout_keep_alive_handler()
    return True
