"""An environment of its own for each peer, so that none gets another's versions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SECONDS = 900
"""How long one environment may take to install."""
_UV = Path(sys.executable).with_name("uv")
_CANDIDATES = (
    sys.executable,
    "/usr/bin/python3",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3",
)
# Two peers keep vectors in an extension of SQLite, which not every Python can load.
_FIT = """
import sqlite3, sys
sys.exit(sys.version_info < (3, 11) or not hasattr(sqlite3.Connection, "enable_load_extension"))
"""
_PLACES = re.compile(r"\S*://\S+|(?<!\S)\W?/\S+")
# No peer needs torch for this; one that asked for it would bring gigabytes of CUDA along.
_REFUSED = "torch<0\n"


class Unavailable(Exception):
    """The environment cannot be had, for the reason given."""


def interpreter() -> str:
    """A Python that can load extensions of SQLite, or else the one that runs this."""
    found = filter(None, map(shutil.which, _CANDIDATES))
    return next(filter(_is_fit, found), sys.executable)


def _is_fit(python: str) -> bool:
    tried = subprocess.run([python, "-c", _FIT], check=False, capture_output=True)
    return tried.returncode == 0


def ensure(folder: Path, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment with these installed; made when it is not there."""
    python, stamp = folder / "bin" / "python", folder / "installed.json"
    wanted = json.dumps(list(requirements))
    if not stamp.exists() or stamp.read_text() != wanted:
        _uv("venv", "--clear", "--python", interpreter(), str(folder))
        refused = folder / "refused.txt"
        refused.write_text(_REFUSED)
        _uv("pip", "install", "--python", str(python), "--constraint", str(refused), *requirements)
        stamp.write_text(wanted)
    return python


def fetch(folder: Path, requirement: str) -> Path:
    """The folder into which the files of one package are laid, without what it depends on."""
    if not folder.exists():
        part = folder.with_suffix(".part")
        place = ("--python", sys.executable, "--target", str(part))
        _uv("pip", "install", *place, "--no-deps", requirement)
        part.rename(folder)
    return folder


def _uv(*arguments: str) -> None:
    try:
        done = subprocess.run(
            [str(_UV), *arguments, "--quiet"],
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"installing took longer than {SECONDS} s") from error
    if done.returncode != 0:
        raise Unavailable(f"it does not install: {shorten(done.stderr)}")


def shorten(text: str) -> str:
    """What an installer says, short, on one line, and without places of this machine."""
    return _PLACES.sub("…", " ".join(text.split()))[:300]
