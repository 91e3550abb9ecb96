"""Files that a person names: read whole, written atomically; and a spool of what is sent later."""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from scrubjay.model.errors import Full, InvalidRequest, NotFound
from scrubjay.vault import KEY_BYTES, NONCE_BYTES, Purpose, Random, Sealer

FILE_BYTES: Final = 64 * 1024 * 1024
"""Most of a file that nobody named, but that lay where one was looked for."""


def read(source: bytes | str | os.PathLike[str]) -> bytes:
    """The bytes, or those of the file that is named."""
    if isinstance(source, bytes):
        return source
    try:
        return Path(source).read_bytes()
    except FileNotFoundError as error:
        raise NotFound("There is no such file.", hint="Check the path.") from error
    except OSError as error:
        raise InvalidRequest(f"{os.fspath(source)} cannot be read: {error.strerror}.") from error
    except (TypeError, ValueError) as error:
        raise InvalidRequest("That is not a path.") from error


def regular(path: Path, *, follow: bool = True) -> bytes | None:
    """The bytes of a file that somebody else may have put there; None if there is none.

    A pipe, a device, a file over `FILE_BYTES` and, without `follow`, a link are refused.
    """
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidRequest(f"{path} is no file.", hint="Nothing was changed.")
            raw = file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise InvalidRequest(f"{path} cannot be read: {why}.") from error
    if len(raw) > FILE_BYTES:
        raise InvalidRequest(f"{path} is larger than {FILE_BYTES >> 20} MB.")
    return raw


def make_folder(path: Path) -> None:
    """Make a folder for the user alone, with those above it; one that is there is fine."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(
            f"The folder {path} cannot be made: {error.strerror}.",
            hint="Name another folder, or have this one made for the user who runs this.",
        ) from error


def write(path: Path, content: bytes | Iterable[bytes], *, mode: int = 0o600) -> None:
    """Write a file, whole or in pieces; an existing one, or a link, is replaced atomically."""
    if not path.name or "\x00" in str(path):
        raise InvalidRequest("That path names no file.")
    from tempfile import mkstemp  # costs a command that writes no file a few milliseconds

    try:
        # A name that nobody can guess: others may write to the folder, and lay a link there.
        descriptor, name = mkstemp(prefix=f".{path.name[:64]}.", suffix=".new", dir=path.parent)
        fresh = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
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
        if error.errno == errno.ENOENT:
            raise InvalidRequest(f"There is no folder {path.parent}.") from error
        raise InvalidRequest(f"{path} cannot be written: {error.strerror}.") from error


class Spool:
    """Temporary file without a name, sealed under a key in memory; for pieces that are sent later.

    Whoever reads it slowly holds no transaction, and the disk has nothing that can be read.
    """

    def __init__(self, random: Random) -> None:
        from tempfile import TemporaryFile  # costs a command that sends no file a few milliseconds

        self._random = random
        self._sealer = Sealer(random(KEY_BYTES), Purpose.BUNDLE, None, "spool")
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115  # closed with the spool
        # An answer that is given up, because of an error or a deadline, closes nothing.
        self._close = weakref.finalize(self, self._file.close)
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
        """Delete it; idempotent. A spool that nobody holds any more is deleted, too."""
        self._close()
