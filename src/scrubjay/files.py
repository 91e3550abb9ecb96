"""Files that a person names: read whole, written atomically."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from scrubjay.model.errors import Full, InvalidRequest, NotFound


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


def write(path: Path, content: bytes) -> None:
    """Write a file with mode 0600; an existing file is replaced atomically."""
    if not path.name or "\x00" in str(path):
        raise InvalidRequest("That path names no file.")
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise Full("No space is left to write the file.") from error
        raise InvalidRequest(f"The file cannot be written: {error.strerror}.") from error
