"""Blobs as files: `<directory>/<address>/<name>`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from scrubjay.adapters.disk import Disk, failures
from scrubjay.model.errors import NotFound, StoreError
from scrubjay.model.scope import check_place

_PLACE: Final = "blobs folder"
_TRIES: Final = 8


class FileBlobs:
    """One folder per address, one file per blob; safe for several threads and processes.

    A writer that dies leaves a hidden file, which `names` does not show and `raw` does. The next
    `put`, `delete` or `remove` at the same address removes it.
    """

    def __init__(self, directory: Path, *, disk: Disk | None = None) -> None:
        self._directory = directory
        self._disk = disk or Disk()

    def put(self, address: str, name: str, content: bytes) -> None:
        """Write a blob: atomic, and durable on return."""
        path = self._path(address, name)
        with failures(_PLACE):
            for _ in range(_TRIES):
                self._disk.make_folder(path.parent)
                try:
                    self._disk.sweep(path.parent)
                    self._disk.replace(path, content)
                    return
                except FileNotFoundError:
                    continue  # somebody removed the folder meanwhile
        raise StoreError("The blobs folder was removed again and again while it was written to.")

    def get(self, address: str, name: str) -> bytes:
        """Read a blob; NotFound if it is not there."""
        path = self._path(address, name)
        with failures(_PLACE):
            content = self._disk.read(path)
        if content is None:
            raise NotFound("There is no such blob.")
        return content

    def delete(self, address: str, name: str) -> None:
        """Delete a blob, durably; an absent one is fine."""
        path = self._path(address, name)
        with failures(_PLACE):
            self._disk.sweep(path.parent)
            self._disk.delete(path)

    def names(self, address: str) -> Sequence[str]:
        """The names of a scope's blobs, sorted."""
        with failures(_PLACE):
            found = self._disk.names(self._folder(address))
        return [name for name in found if not name.startswith(".")]

    def size(self, address: str) -> int:
        """Bytes of a scope's blobs."""
        with (
            failures(_PLACE),
            suppress(FileNotFoundError),
            os.scandir(self._folder(address)) as entries,
        ):
            return sum(entry.stat().st_size for entry in entries)
        return 0

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        """Every byte kept for the scope as (place, bytes), half-written leftovers included."""
        folder = self._folder(address)
        with failures(_PLACE):
            for name in self._disk.names(folder):
                content = self._disk.read(folder / name)
                if content is not None:
                    yield f"{address}/{name}", content

    def remove(self, address: str) -> None:
        """Delete every blob of a scope; none is fine."""
        folder = self._folder(address)
        with failures(_PLACE):
            self._disk.sweep(folder)
            for name in self.names(address):
                self._disk.delete(folder / name)
            self._disk.remove_folder(folder)

    def _folder(self, address: str) -> Path:
        return self._directory / check_place("address", address)

    def _path(self, address: str, name: str) -> Path:
        return self._folder(address) / check_place("blob name", name)
