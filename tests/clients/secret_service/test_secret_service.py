"""The root key in gnome-keyring, on a message bus and in a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRUBJAY = Path(sys.executable).with_name("scrubjay")
UNLOCK = "printf 'the password of the desktop' | gnome-keyring-daemon --unlock --components=secrets"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A desktop of its own: no bus, no secrets and no memory of whoever runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    places = {"HOME": "user", "XDG_RUNTIME_DIR": "run", "XDG_DATA_HOME": "user/data"}
    for place in places.values():
        (tmp_path / place).mkdir(parents=True, mode=0o700, exist_ok=True)
    return kept | {name: str(tmp_path / place) for name, place in places.items()}


def desktop(env: dict[str, str], script: str) -> subprocess.CompletedProcess[str]:
    """Run a script on a message bus of its own."""
    words = ["dbus-run-session", "--", "bash", "-c", script.replace("scrubjay", str(SCRUBJAY))]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_the_root_key_lives_in_the_secret_service(env: dict[str, str], tmp_path: Path) -> None:
    env["SCRUBJAY_HOME"] = str(tmp_path / "memory")
    first = desktop(
        env,
        f"{UNLOCK}; scrubjay remember 'Alice drinks green tea' && scrubjay vault keychain --yes "
        "&& scrubjay vault status && scrubjay recall tea && scrubjay rotate --root",
    )
    assert first.returncode == 0, first.stdout + first.stderr
    assert "keyring of the system" in first.stdout
    assert "green tea" in first.stdout
    keys = tmp_path / "memory" / "keys"
    assert sorted(one.name for one in keys.iterdir()) == ["keychain", "lock", "slots"]
    again = desktop(env, f"{UNLOCK}; scrubjay recall tea")
    assert "green tea" in again.stdout, again.stdout + again.stderr
    closed = desktop(env, "scrubjay recall tea")
    assert closed.returncode != 0
    assert "green tea" not in closed.stdout
    assert "keyring" in closed.stderr
    assert "Traceback" not in closed.stderr
