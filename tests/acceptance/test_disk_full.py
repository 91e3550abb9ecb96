"""A full disk or a failing sync costs the write that met it, and nothing else."""

from __future__ import annotations

import errno
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel
from scrubjay.model.errors import Full, NotFound, StoreError
from scrubjay.model.requests import Browse, Destroy, Forget, Get, History, Retain, Supersede
from scrubjay.model.results import Outcome
from scrubjay.model.scope import Scope
from tests.support.faulty import FaultyVfs

SCOPE = Scope("acme", "alice")
LOOPS = 20
BALLAST = 2
SIZE = "16m"


class Tmpfs:
    """A small disk of its own, filled by a file and freed by deleting that."""

    kind = "tmpfs"
    vfs = None

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Take every page that is left."""
        with self._filler.open("ab") as file:
            for piece in (1 << 20, 1 << 16, 1 << 12):
                while self._takes(file.fileno(), bytes(piece)):
                    pass

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink()

    def _takes(self, fd: int, piece: bytes) -> bool:
        try:
            return os.write(fd, piece) == len(piece)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return False


class Refusing:
    """Where nothing may be mounted: files that grow no more, until the ballast is released."""

    kind = "vfs"

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._vfs = FaultyVfs()
        self.vfs = self._vfs.name

    def fill(self) -> None:
        """Refuse to grow."""
        ballast = self.home / "data" / "ballast"
        self._vfs.is_full = lambda: ballast.exists() and ballast.stat().st_size == BALLAST << 20

    def free(self) -> None:
        """Grow again."""
        self._vfs.is_full = lambda: False


@pytest.fixture
def volume() -> Iterator[Tmpfs | Refusing]:
    # Not below pytest's own folder: what is left mounted there would be in everybody's way.
    with TemporaryDirectory(prefix="scrubjay-volume-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            yield Refusing(Path(folder))
            return
        try:
            yield Tmpfs(Path(folder))
        finally:
            # Lazily: a test that failed may have left a file open.
            subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_refuses_writes_but_still_reads_and_forgets(
    volume: Tmpfs | Refusing, record_property: Callable[..., None]
) -> None:
    place = replace(settings.at_home(volume.home), ballast_megabytes=BALLAST)
    engine = bootstrap.build(place, vfs=volume.vfs)
    diary = Diary(engine)
    for loop in range(LOOPS):
        diary.write(f"{loop}/before")
        corrected = diary.correct()
        volume.fill()
        refused = diary.write_until_refused(loop)
        diary.check()
        assert len(engine.history(SCOPE, History(corrected))) == 2
        diary.forget(engine)
        diary.check()
        volume.free()
        assert engine.retain(SCOPE, refused).outcome is Outcome.STORED
        diary.note(refused, engine)
        engine.finish_due(SCOPE)
        assert engine.verify(SCOPE).problems == ()
        assert engine.verify_erased(SCOPE, engine.receipts(SCOPE)[-1]).problems == ()
        assert (volume.home / "data" / "ballast").stat().st_size == BALLAST << 20
        diary.check()
    engine.close()
    record_property("loops", LOOPS)
    record_property("on", volume.kind)
    record_property("refused", diary.refused)
    record_property("acknowledged", diary.acknowledged)


def test_a_process_that_starts_on_a_full_disk_still_reads_and_forgets(
    volume: Tmpfs | Refusing,
) -> None:
    place = replace(settings.at_home(volume.home), ballast_megabytes=BALLAST)
    engine = bootstrap.build(place, vfs=volume.vfs)
    diary = Diary(engine)
    for number in range(5):
        diary.write(f"before/{number}")
    engine.close()
    volume.fill()

    engine = bootstrap.build(place, vfs=volume.vfs)
    diary.engine = engine
    diary.check()
    diary.forget(engine)
    diary.check()
    volume.free()
    diary.write("after")
    engine.finish_due(SCOPE)
    assert engine.verify(SCOPE).problems == ()
    diary.check()
    engine.close()


def test_a_scope_can_be_destroyed_on_a_full_disk(volume: Tmpfs | Refusing) -> None:
    place = replace(settings.at_home(volume.home), ballast_megabytes=BALLAST)
    engine = bootstrap.build(place, vfs=volume.vfs)
    diary = Diary(engine)
    diary.write("before")
    volume.fill()
    receipt = engine.destroy(SCOPE, Destroy(confirm=str(SCOPE)))
    assert receipt.erased == 1
    assert engine.verify_erased(SCOPE, receipt).problems == ()
    volume.free()
    engine.open(SCOPE, anew=True)
    assert len(engine.browse(SCOPE, Browse())) == 0
    engine.close()


def test_a_sync_that_fails_costs_only_the_write_that_met_it(tmp_path: Path) -> None:
    """Whether that write happened is not known, so it is repeated under its key."""
    vfs = FaultyVfs()
    engine = bootstrap.build(settings.at_home(tmp_path), vfs=vfs.name)
    diary = Diary(engine)
    diary.write("before")
    vfs.sync_fails = lambda: True
    with pytest.raises(StoreError) as refused:
        engine.retain(SCOPE, memory("refused"))
    assert not isinstance(refused.value, Full)
    assert "before" in [shown.content for shown in engine.browse(SCOPE, Browse())]
    vfs.sync_fails = lambda: False
    diary.write("refused")
    diary.write("after")
    diary.check()
    assert engine.verify(SCOPE).problems == ()
    engine.close()


def test_syncs_that_fail_now_and_then_lose_nothing_acknowledged(
    tmp_path: Path, seed: int, more: bool, record_property: Callable[..., None]
) -> None:
    chance, vfs = random.Random(seed), FaultyVfs()
    engine = bootstrap.build(settings.at_home(tmp_path), vfs=vfs.name)
    diary = Diary(engine)
    engine.open(SCOPE)
    vfs.sync_fails = lambda: chance.random() < 0.1
    for number in range(2_000 if more else 400):
        try:
            diary.write(f"memory {number}")
        except StoreError:
            diary.refused += 1
    vfs.sync_fails = lambda: False
    engine.close()

    diary.engine = bootstrap.build(settings.at_home(tmp_path))
    shown = {found.key: found for found in diary.engine.browse(SCOPE, Browse(limit=10_000))}
    lost = diary.keys - shown.keys()
    assert not lost, f"seed {seed}: {len(lost)} of {len(diary.keys)} lost"
    assert diary.engine.verify(SCOPE).problems == (), f"seed {seed}"
    diary.engine.close()
    record_property("acknowledged", diary.acknowledged)
    record_property("failed", diary.refused)


def memory(name: str) -> Retain:
    """A memory whose key is its content."""
    return Retain(content=name, key=name)


class Diary:
    """What was acknowledged on one scope: what must be there, and what must not."""

    def __init__(self, engine: Kernel) -> None:
        self.engine = engine
        self.keys: set[str] = set()
        self.refused = 0
        self.acknowledged = 0
        self._ids: dict[str, str] = {}
        self._gone: set[str] = set()

    def write(self, name: str) -> None:
        """Retain a memory."""
        self.note(memory(name), self.engine)

    def note(self, request: Retain, engine: Kernel) -> None:
        """Retain, or retain again, and remember that it was acknowledged."""
        done = engine.retain(SCOPE, request)
        assert request.key is not None
        self._ids[done.id] = request.content
        self.keys.add(request.key)
        self.acknowledged += 1

    def correct(self) -> str:
        """Supersede the newest memory; the id of the new version."""
        old = next(reversed(self._ids))
        new = self.engine.supersede(SCOPE, Supersede(id=old, content=self._ids[old] + " corrected"))
        self._ids[new.id] = self._ids[old] + " corrected"
        self.acknowledged += 1
        return new.id

    def write_until_refused(self, loop: int) -> Retain:
        """Retain until the disk is full; the request that was refused."""
        for number in range(10_000):
            request = Retain(content=f"{loop}/{number} ".ljust(2_000, "x"), key=f"{loop}/{number}")
            try:
                self.note(request, self.engine)
            except Full:
                self.refused += 1
                return request
        raise AssertionError("the disk never was full")

    def forget(self, engine: Kernel) -> None:
        """Forget the oldest memory; it is gone at once."""
        oldest = next(iter(self._ids))
        receipt = engine.forget(SCOPE, Forget(ids=(oldest,)))
        assert receipt.erased == 1
        self.acknowledged += 1
        self._ids.pop(oldest)
        self._gone.add(oldest)

    def check(self) -> None:
        """Everything acknowledged is there, once, and nothing else; reads do not fail."""
        shown = self.engine.browse(SCOPE, Browse(limit=10_000, superseded=True))
        assert {found.id: found.content for found in shown} == self._ids
        assert self.engine.get(SCOPE, Get(shown[0].id)) == shown[0]
        for gone in self._gone:
            with pytest.raises(NotFound):
                self.engine.get(SCOPE, Get(gone))


def test_a_disk_full_of_the_log_is_usable_again_when_nobody_reads_any_more(
    volume: Tmpfs | Refusing,
) -> None:
    """A reader that stands still keeps the log from beginning anew, until it fills the disk."""
    place = replace(settings.at_home(volume.home), ballast_megabytes=BALLAST)
    engine = bootstrap.build(place, vfs=volume.vfs)
    diary = Diary(engine)
    for number in range(5):
        diary.write(f"before/{number}")
        diary.note(Retain(f"{number} " + "word " * 8_000, key=f"long/{number}"), engine)
    (file,) = (volume.home / "data" / "scopes").glob("*.sqlite")
    reader = apsw.Connection(str(file))
    reader.execute("BEGIN")
    assert reader.execute("SELECT * FROM head").fetchall()
    with pytest.raises(Full):
        fill_with_rotations(engine, volume)
    with pytest.raises(Full):
        engine.retain(SCOPE, memory("refused"))
    volume.fill()  # others take what is left
    reader.close()
    diary.write("after")
    diary.check()
    engine.finish_due(SCOPE)
    assert engine.verify(SCOPE).problems == ()
    engine.close()


def fill_with_rotations(engine: Kernel, volume: Tmpfs | Refusing) -> None:
    """Write all rows again and again, until no space is left for the log."""
    for number in range(400):
        if number == 5 and isinstance(volume, Refusing):
            volume.fill()
        engine.rotate(SCOPE)
