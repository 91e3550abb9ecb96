"""Threads that write while something fails, and know what was acknowledged to them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from scrubjay.model.errors import ScrubjayError

_PATIENCE: Final = 180.0
Write = Callable[[str], object]
"""Writes a memory with this text, and this text as its key."""


class Writers:
    """Each writes one memory after the other, and the same again until it is acknowledged."""

    def __init__(self, nodes: Sequence[Write], count: int = 16) -> None:
        self._nodes = nodes
        self.acknowledged = set[str]()
        self.tried = set[str]()
        self._over = threading.Event()
        self._news = threading.Condition()
        self._threads = [
            threading.Thread(target=self._write, args=(number,), daemon=True)
            for number in range(count)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(_PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads), "a writer hangs"

    def until(self, more: int) -> None:
        """Wait until so many more were acknowledged."""
        with self._news:
            wanted = len(self.acknowledged) + more
            written = self._news.wait_for(lambda: len(self.acknowledged) >= wanted, _PATIENCE)
        assert written, "nobody writes"

    def check(self, there: Sequence[str]) -> None:
        """What is there is what was acknowledged, once each, and at most what was tried."""
        assert len(there) == len(set(there)), "doubled"
        assert self.acknowledged <= set(there), "lost"
        assert set(there) <= self.tried, "a ghost"

    def _write(self, number: int) -> None:
        written = 0
        while not self._over.is_set():
            name = f"{number}/{written}"
            self.tried.add(name)
            try:
                self._nodes[number % len(self._nodes)](name)
            except ScrubjayError:
                continue  # it may be there or not: the same is tried again under its key
            written += 1
            with self._news:
                self.acknowledged.add(name)
                self._news.notify_all()
