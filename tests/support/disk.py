"""Disks that die, refuse or lose power at a chosen step: `Disk(watch=...)` takes any of these."""

from __future__ import annotations

import os
from pathlib import Path

from scrubjay.adapters.disk import Step


class Killed(BaseException):
    """The process died here; no cleanup of ours may run."""


class Steps:
    """Records the steps taken, and dies or fails instead of taking one of them."""

    def __init__(self, *, die_at: int | None = None, fail_at: int | None = None, errno: int = 0):
        self.taken: list[tuple[Step, Path]] = []
        self._die_at = die_at
        self._fail_at = fail_at
        self._errno = errno

    def __call__(self, step: Step, path: Path) -> None:
        """Take the next step."""
        number = len(self.taken)
        if number == self._die_at:
            raise Killed
        self.taken.append((step, path))
        if number == self._fail_at:
            raise OSError(self._errno, os.strerror(self._errno))


class PowerCut:
    """Remembers what a disk would still hold if the power failed: only what was synced."""

    def __init__(self, root: Path, *, die_at: int | None = None) -> None:
        self._root = root
        self._steps = Steps(die_at=die_at)
        self._contents: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, tuple[int, bool]]] = {}
        self._held: list[int] = []

    def __call__(self, step: Step, path: Path) -> None:
        """Take the next step."""
        self._steps(step, path)
        if step is Step.SYNC and path.exists():
            # Held open, so that the number of this file is not given to another one.
            self._held.append(os.open(path, os.O_RDONLY))
            self._contents[path.stat().st_ino] = path.read_bytes()
        if step is Step.SYNC_FOLDER:
            self._names[path] = {
                child.name: (child.stat().st_ino, child.is_dir()) for child in path.iterdir()
            }

    def die_after(self, steps: int) -> None:
        """Let the process die that many steps from now."""
        self._steps = Steps(die_at=steps)

    def restore(self, target: Path) -> Path:
        """The disk as it is after the power came back, written to `target`."""
        for fd in self._held:
            os.close(fd)
        self._held.clear()
        self._restore(self._root, target)
        return target

    def _restore(self, folder: Path, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        for name, (number, is_folder) in self._names.get(folder, {}).items():
            if is_folder:
                self._restore(folder / name, target / name)
            else:
                (target / name).write_bytes(self._contents.get(number, b""))
