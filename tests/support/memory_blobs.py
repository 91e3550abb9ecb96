"""Blobs in memory: a fake that keeps the contract of the port."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from scrubjay.model.errors import NotFound
from scrubjay.model.scope import check_place


class MemoryBlobs:
    """Blobs that last as long as the object; share the object to share the blobs."""

    def __init__(self) -> None:
        self._blobs: dict[tuple[str, str], bytes] = {}
        self._lock = threading.Lock()

    def put(self, address: str, name: str, content: bytes) -> None:
        """Write a blob, new or in place of the one of that name."""
        with self._lock:
            self._blobs[_place(address, name)] = bytes(content)

    def get(self, address: str, name: str) -> bytes:
        """Read a blob; NotFound if it is not there."""
        with self._lock:
            content = self._blobs.get(_place(address, name))
        if content is None:
            raise NotFound("There is no such blob.")
        return content

    def delete(self, address: str, name: str) -> None:
        """Delete a blob; an absent one is fine."""
        with self._lock:
            self._blobs.pop(_place(address, name), None)

    def names(self, address: str) -> Sequence[str]:
        """The names of a scope's blobs, sorted."""
        check_place("address", address)
        with self._lock:
            return sorted(name for owner, name in self._blobs if owner == address)

    def size(self, address: str) -> int:
        """Bytes of a scope's blobs."""
        return sum(len(content) for _, content in self.raw(address))

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        """Every byte kept for the scope as (place, bytes)."""
        check_place("address", address)
        with self._lock:
            kept = sorted(self._blobs.items())
        for (owner, name), content in kept:
            if owner == address:
                yield f"{owner}/{name}", content

    def remove(self, address: str) -> None:
        """Delete every blob of a scope; none is fine."""
        check_place("address", address)
        with self._lock:
            self._blobs = {place: raw for place, raw in self._blobs.items() if place[0] != address}


def _place(address: str, name: str) -> tuple[str, str]:
    return check_place("address", address), check_place("blob name", name)
