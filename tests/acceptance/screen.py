"""A command on a pseudo-terminal that is its own: what it shows, and keys that are pressed."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.processes import default_signals

CTRL_C = b"\x03"
PATIENCE = 120.0
"""Seconds until a command that shows nothing more is given up."""
_OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal the command's own, so that Ctrl-C reaches all that was started in it."""


class Screen:
    """A running command and what it has shown so far."""

    def __init__(self, ours: int, running: subprocess.Popen[bytes]) -> None:
        self._ours = ours
        self._running = running
        self._shown = b""

    @property
    def text(self) -> str:
        """All that was shown, with plain line breaks."""
        return self._shown.decode(errors="replace").replace("\r\n", "\n")

    def until(self, words: str) -> str:
        """Wait until the words stand there; all that was shown."""
        while words not in self.text:
            assert self._read(), f"{words!r} was never shown:\n{self.text}"
        return self.text

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._ours, keys)

    def end(self) -> int:
        """Wait until everything that has the terminal open has ended; the exit code."""
        while self._read():
            pass
        return self._running.wait(PATIENCE)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], PATIENCE)[0]:
            return False
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # how Linux says that nobody has the other end open any more
            return False
        self._shown += piece
        return bool(piece)


@contextmanager
def showing(*command: str, folder: Path, env: Mapping[str, str]) -> Iterator[Screen]:
    """Start a command on a terminal of its own; it is ended if it has not ended by then."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        default_signals([sys.executable, "-c", _OWN_TERMINAL, *command]),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=dict(env),
        start_new_session=True,
    )
    os.close(theirs)
    screen = Screen(ours, running)
    try:
        yield screen
        assert running.poll() is not None, "it was not waited for"
    finally:
        if running.poll() is None:
            screen.press(CTRL_C)
            running.terminate()
            running.wait(PATIENCE)
        os.close(ours)
