"""Files that a person names: read whole, written atomically; and a spool of what is sent later."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from scrubjay.model.errors import Full, InvalidRequest, NotFound
from scrubjay.vault import KEY_BYTES, NONCE_BYTES, Purpose, Random, Sealer


def read(source: bytes | str | os.PathLike[str]) -> bytes:
    """The bytes, or those of the file that is named."""
    if isinstance(source, bytes):
        return source
    try:
        return Path(source).read_bytes()
    except FileNotFoundError as error:
        raise NotFound("There is no such file.", hint="Check the path.") from error
    except OSError as error:
        raise InvalidRequest(f"The file cannot be read: {error.strerror}.") from error
    except (TypeError, ValueError) as error:
        raise InvalidRequest("That is not a path.") from error


def write(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, whole or in pieces, with mode 0600; an existing one is replaced atomically."""
    if not path.name or "\x00" in str(path):
        raise InvalidRequest("That path names no file.")
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines([content] if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:  # seam: half a file may not stay, whatever kept it from being whole
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise Full("No space is left to write the file.") from error
        raise InvalidRequest(f"The file cannot be written: {error.strerror}.") from error


class Spool:
    """Temporary file without a name, sealed under a key in memory; for pieces that are sent later.

    Whoever reads it slowly holds no transaction, and the disk has nothing that can be read.
    """

    def __init__(self, random: Random) -> None:
        from tempfile import TemporaryFile  # costs a command that sends no file a few milliseconds

        self._random = random
        self._sealer = Sealer(random(KEY_BYTES), Purpose.BUNDLE, None, "spool")
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115  # closed with the spool
        self._sizes: list[int] = []
        self.size = 0
        """How many bytes all pieces have together."""

    def fill(self, pieces: Iterable[bytes]) -> None:
        """Take pieces in, in place of those before."""
        self._file.seek(0)
        self._sizes, self.size = [], 0
        try:
            for number, piece in enumerate(pieces):
                nonce = self._random(NONCE_BYTES)
                cell = self._sealer.seal(piece, row_id=b"", version=number, nonce=nonce)
                self._file.write(cell)
                self._sizes.append(len(cell))
                self.size += len(piece)
            self._file.flush()
        except OSError as error:
            raise Full("No space is left for a temporary file.") from error

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        for number, size in enumerate(self._sizes):
            yield self._sealer.unseal(self._file.read(size), row_id=b"", version=number)

    def close(self) -> None:
        """Delete it; idempotent."""
        self._file.close()
