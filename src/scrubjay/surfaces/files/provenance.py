"""Whose words a file holds: the owner's, an agent's, or those of whoever wrote to a repository.

Whoever can write to the folder may have made the repository, too. So git runs none of its commands
and fetches nothing, and whatever git cannot tell is taken for somebody else's words.
"""

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
# A missing object would be fetched by whatever command the repository names for it.
_CONFINED: Final = ("env", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1")
_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "safe.bareRepository=explicit",
)
_CONVERSIONS: Final = ("filter", "ident", "working-tree-encoding")
"""Attributes by which git checks a file out in other words than it was committed in."""
_UNSET: Final = (b"unspecified", b"unset")
_UNBORN: Final = 1


def check_no_link(folder: Path) -> None:
    """Refuse a folder whose own name, or that of the folder around it, is a link."""
    for one in (folder, folder.parent):
        if one.is_symlink():
            raise InvalidRequest(f"{one} is a link.", hint="Name the folder that it leads to.")


def check_owner(path: Path) -> None:
    """Refuse a file that anybody but its owner can write to, or put another in the place of."""
    around = path.absolute().parents
    for one in (path, *around):
        try:
            found = one.lstat()
        except FileNotFoundError:
            continue
        ours = (os.getuid(),) if one in (path, path.parent) else (os.getuid(), 0)
        # In a folder with the sticky bit nobody can rename what is another's.
        open_ = found.st_mode & _OTHERS and not (one in around and found.st_mode & stat.S_ISVTX)
        if stat.S_ISLNK(found.st_mode) or found.st_uid not in ours or open_:
            raise InvalidRequest(
                f"{one} can be written to by others than you, or is a link.",
                hint="Only then are its lines not yours for sure: chmod go-w, or leave out "
                "--owner-only.",
            )


class _Unclear(Exception):
    """Git does not say what was committed."""


def committed(path: Path, text: str) -> frozenset[str]:
    """Digests of the lines of `text` that came with git: those of the file in the last commit.

    All of them, if git checks the file out in other words, or does not tell.
    """
    try:
        if path.name not in _listed(path.parent):
            return frozenset()
        told = _git(path.parent, "check-attr", "-z", *_CONVERSIONS, "--", path.name)
        if any(value not in _UNSET for value in told.split(b"\0")[2::3]):
            raise _Unclear
        text = _git(path.parent, "cat-file", "blob", f"HEAD:./{path.name}").decode(errors="replace")
    except _Unclear:
        pass
    return frozenset(item.digest for item in items(text))


def unclear_or_committed(folder: Path, names: frozenset[str]) -> frozenset[str]:
    """Those of the files in a folder that are in the last commit; all, if git does not tell."""
    try:
        return names & _listed(folder)
    except _Unclear:
        return names


def _listed(folder: Path) -> frozenset[str]:
    """The names in a folder as of the last commit; none without a repository or a commit."""
    if not any((one / ".git").exists() for one in (folder, *folder.absolute().parents)):
        return frozenset()
    if _run(folder, "rev-parse", "--quiet", "--verify", "HEAD").returncode == _UNBORN:
        return frozenset()
    told = _git(folder, "ls-tree", "-z", "--name-only", "HEAD")
    return frozenset(os.fsdecode(name) for name in told.split(b"\0") if name)


def _git(folder: Path, *words: str) -> bytes:
    done = _run(folder, *words)
    if done.returncode:
        raise _Unclear
    return done.stdout


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    settings = [word for one in _SETTINGS for word in ("-c", one)]
    try:
        return subprocess.run(  # noqa: S603 - no shell, and the name of a file of ours
            [*_CONFINED, "git", *settings, "-C", folder, *words],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unclear from error
