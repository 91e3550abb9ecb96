"""Settings: the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where things are kept, and how patient and how careful the store is."""

    data: Path
    keys: Path
    lock_seconds: float = 30.0
    """How long a writer waits for another before it gives up as Busy."""
    ballast_bytes: int = 4 * 1024 * 1024
    """Space held in reserve, so that erasure works on a full disk."""
    passphrase: str | None = None

    def __repr__(self) -> str:
        return f"Settings(data={str(self.data)!r}, keys={str(self.keys)!r})"


def read(
    environment: Mapping[str, str] | None = None, *, home: str | os.PathLike[str] | None = None
) -> Settings:
    """The settings the environment asks for; `home` goes before `$SCRUBJAY_HOME`.

    `$SCRUBJAY_HOME` holds the data and, in a folder of its own, the keys. Without it the data is
    in the XDG data folder and the keys are apart from it, in the XDG configuration folder.
    """
    env = os.environ if environment is None else environment
    home = home or env.get("SCRUBJAY_HOME")
    passphrase = env.get("SCRUBJAY_PASSPHRASE")
    if home:
        return at_home(Path(home), passphrase=passphrase)
    user = Path(env.get("HOME") or Path.home())
    data = Path(env.get("XDG_DATA_HOME") or user / ".local" / "share")
    config = Path(env.get("XDG_CONFIG_HOME") or user / ".config")
    return Settings(
        data=data / "scrubjay", keys=config / "scrubjay" / "keys", passphrase=passphrase
    )


def at_home(home: Path, *, passphrase: str | None = None) -> Settings:
    """The settings for one folder that holds everything."""
    return Settings(data=home / "data", keys=home / "keys", passphrase=passphrase)
