"""A key in a file: made once, for the person at this machine, and readable by nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.origin import Actor
from scrubjay.domain.scope import Scope
from scrubjay.surfaces import files
from scrubjay.surfaces.keys import Grant, Keys

_OTHERS: Final = 0o077


def keep(path: Path, keys: Keys, scope: Scope) -> None:
    """See to it that the file holds a good key for the scope; one that is there stays."""
    if path.exists():
        _check(path, keys, scope)
        return
    _make_folder(path.parent)
    issued = keys.create(
        name=f"file {path.name}", scopes=[str(scope)], grants=tuple(Grant), actor=Actor.USER
    )
    files.write(path, f"{issued.token}\n".encode())


def _make_folder(folder: Path) -> None:
    """See to it that there is a place for the file before there is a key nobody would know."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(
            f"There is no folder {folder} for the key: {error.strerror}."
        ) from error


def _check(path: Path, keys: Keys, scope: Scope) -> None:
    if path.stat().st_mode & _OTHERS:
        raise InvalidRequest(
            f"Others may read the key in {path}.",
            hint=f"Run `chmod 600 {path}`, or remove it to have a new one made.",
        )
    keys.refresh()
    found = keys.find(files.read(path).decode("latin-1").strip())
    if found is None or not found.covers(scope):
        raise InvalidRequest(
            f"What {path} holds is no good key for {scope}.",
            hint="Remove it to have a new one made, or name another file.",
        )
