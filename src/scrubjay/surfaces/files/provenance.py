"""Whose words a file holds: the owner's, an agent's, or those of whoever wrote to a repository."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Final

from scrubjay.model.errors import InvalidRequest
from scrubjay.surfaces.files.lines import items

_SECONDS: Final = 10.0
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def check_owner(path: Path) -> None:
    """Refuse a file or folder that anybody but its owner can write to, or that is a link."""
    for one in (path, path.parent):
        try:
            found = one.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & _OTHERS:
            raise InvalidRequest(
                f"{one} can be written to by others than you, or is a link.",
                hint="Only then are its lines not yours for sure: chmod go-w, or leave out "
                "--owner-only.",
            )


def committed(path: Path) -> frozenset[str]:
    """Digests of the lines that came with git: those of the file in the last commit."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the name of a file of ours
            ["git", "-C", path.parent, "show", f"HEAD:./{path.name}"],  # noqa: S607 - the user's git
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()  # no git, or no folder: then nothing came with it
    text = done.stdout.decode(errors="replace") if not done.returncode else ""
    return frozenset(item.digest for item in items(text))
