"""Ports that are watched: what is asked of blobs, keyring and catalog while a head is locked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from scrubjay.engine import Ports
from scrubjay.ports import Result, Tx


class Watch:
    """Notes every call of another port, and every second view, inside of a transaction."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._local = threading.local()

    def over(self, ports: Ports) -> Ports:
        """The same ports, watched."""
        return replace(
            ports,
            store=WatchedStore(ports.store, self),
            blobs=Watched(ports.blobs, self),
            keyring=Watched(ports.keyring, self),
        )

    def note(self, call: str) -> None:
        """Note a call, if this thread is in a transaction."""
        if getattr(self._local, "inside", False):
            self.calls.append(call)

    def inside(self, work: Callable[[Tx], Result]) -> Callable[[Tx], Result]:
        """The work of a transaction, watched."""

        def watched(tx: Tx) -> Result:
            self._local.inside = True
            try:
                return work(tx)
            finally:
                self._local.inside = False

        return watched


class Watched:
    """A port that notes what is asked of it."""

    def __init__(self, port: Any, watch: Watch) -> None:
        self._port = port
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        self._watch.note(f"{type(self._port).__name__}.{name}")
        return getattr(self._port, name)


class WatchedStore(Watched):
    """A store whose transactions are watched, with a watched catalog."""

    @property
    def catalog(self) -> Any:
        """The catalog, watched."""
        return Watched(self._port.catalog, self._watch)

    def write(self, address: str, work: Callable[[Tx], Result], *, erasing: bool = False) -> Result:
        """A transaction that is watched."""
        result: Result = self._port.write(address, self._watch.inside(work), erasing=erasing)
        return result
