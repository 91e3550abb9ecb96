"""An export is written piece by piece: no door holds the file, and every door writes the same."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import scrubjay
from scrubjay import Grant, Jay, connect, files
from scrubjay.engine.transfer import bundle
from scrubjay.model.errors import StoreError
from scrubjay.model.requests import Export
from scrubjay.testing.clock import FakeClock
from tests.serving import serving
from tests.support.engines import SqliteHome

TEXT = "tea " * 15_000
NUMBER = 200
WHOLE = len(TEXT) * NUMBER


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve megabytes of memories, and a few turns, entries and documents."""
    home = tmp_path_factory.mktemp("home")
    with scrubjay.open("acme/alice", home=home) as jay:
        jay.retain_many(f"{number} {TEXT}" for number in range(NUMBER))
        jay.supersede(jay.retain("one", key="k").id, "two")
        jay.record("I live in Rome.", "Noted.", id="turn-1", session="s")
        jay.append("c", [{"body": {"a": ["ü\u2028", None]}}, {"body": "x"}])
        jay.put("f/a", {"n": 2})
    return home


@pytest.fixture
def jay(home: Path) -> Iterator[Jay]:
    with scrubjay.open("acme/alice", home=home) as jay:
        jay.count()
        yield jay


def peak(jay: Jay, to: Path, **how: object) -> int:
    """The most memory an export takes, in bytes."""
    tracemalloc.start()
    try:
        jay.export(to, **how)  # type: ignore[arg-type]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("sealed", [False, True])
def test_an_export_takes_a_small_part_of_the_memory_its_file_would(
    jay: Jay, tmp_path: Path, sealed: bool
) -> None:
    file = tmp_path / "file"
    taken = peak(jay, file, sealed=sealed)
    assert file.stat().st_size > WHOLE
    assert taken < WHOLE / 3


def test_the_client_holds_no_file_either(home: Path, tmp_path: Path) -> None:
    engine = SqliteHome(home).engine()
    with serving(engine, FakeClock()) as running:
        key = running.key("acme/alice", grants=tuple(Grant))
        with connect(running.url, key) as jay:
            assert peak(jay, tmp_path / "file") < WHOLE / 3, "client and service are one process"
    engine.close()


def test_every_way_out_writes_the_same_file(jay: Jay, home: Path, tmp_path: Path) -> None:
    held = bundle.from_json(jay.export().content)
    file, stream = tmp_path / "file", io.BytesIO()
    jay.export(file)
    jay.export(stream)
    printed = subprocess.run(
        [sys.executable, "-m", "scrubjay", "export", "--scope", "acme/alice"],
        env={**os.environ, "SCRUBJAY_HOME": str(home)},
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout
    for raw in (file.read_bytes(), stream.getvalue(), printed):
        again = json.dumps(json.loads(raw), ensure_ascii=False, indent=1) + "\n"
        assert again.encode() == raw, "as json.dumps would write it"
        told = bundle.from_json(raw)
        assert (told.memories, told.turns, told.entries) == (
            held.memories,
            held.turns,
            held.entries,
        )
        assert (told.conversations, told.documents) == (held.conversations, held.documents)


def test_an_export_that_begins_again_is_whole(jay: Jay) -> None:
    """A rotation that ends while it is read makes it begin again."""
    stream, tries = io.BytesIO(), list[int]()

    def deliver(pieces: Iterable[bytes]) -> None:
        stream.seek(0)
        stream.truncate()
        tries.append(0)
        for piece in pieces:
            stream.write(piece)
            if len(tries) == 1:
                raise scrubjay.SealBroken("A key was deleted meanwhile.")

    jay._engine.export(jay.scope, Export(), deliver=deliver)
    assert len(tries) == 2
    assert len(bundle.from_json(stream.getvalue()).memories) == NUMBER + 4


def test_half_a_file_does_not_stay(jay: Jay, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise StoreError("The answer of the service was cut off.")

    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(StoreError):
        files.write(tmp_path / "file", broken())
    assert (tmp_path / "file").read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_spool_gives_back_its_last_filling_and_is_not_readable() -> None:
    spool = files.Spool(FakeClock().random)
    spool.fill([b"the first"])
    spool.fill([b"tea", b"", b"green"])
    assert (list(spool), list(spool), spool.size) == ([b"tea", b"", b"green"],) * 2 + (8,)
    spool._file.seek(0)
    assert b"green" not in spool._file.read()
    spool.close()
