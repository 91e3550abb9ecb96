"""An export that is cut off at any step ends as if it had not been."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest

import scrubjay
from scrubjay import bootstrap
from scrubjay.engine import Kernel
from scrubjay.model.errors import Destroyed, NotFound
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Destroy, Retain
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint
from scrubjay.surfaces.personal.copies import CopyForm, CopyOrder
from scrubjay.surfaces.personal.exports import Exports, ExportSheet, ExportState, ExportStep, Reach
from tests.processes import running
from tests.support.engines import MemoryHome, SimulatedCrash

ALICE = Scope("acme", "alice")
READER = pyrage.x25519.Identity.generate()
SECRET = bytes(32)


@pytest.fixture
def home() -> MemoryHome:
    return MemoryHome()


def dying(step: ExportStep | None) -> Reach:
    """What dies at a step."""

    def reach(reached: ExportStep) -> None:
        if reached is step:
            raise SimulatedCrash(reached)

    return reach


def begun(home: MemoryHome, engine: Kernel, step: ExportStep | None = None) -> tuple[Exports, str]:
    """A noted export, and its worker."""
    exports = Exports(engine, home.clock, SECRET, reach=dying(step))
    order = CopyOrder(scope=ALICE, at=home.clock.now())
    id = exports.begin(order, CopyForm.JSON, Actor.USER, recipient=str(READER.to_public()))
    return exports, id


@pytest.mark.parametrize("step", [ExportStep.SEALED, ExportStep.KEPT, ExportStep.READY])
def test_an_export_that_is_killed_while_it_is_made_is_made_by_the_next_process(
    home: MemoryHome, step: ExportStep
) -> None:
    engine = home.engine()
    engine.retain(ALICE, Retain("Alice drinks tea"))
    exports, id = begun(home, engine, step)
    with pytest.raises(SimulatedCrash):
        exports.work()
    after = Exports(home.engine(), home.clock, SECRET)
    after.work()
    job = after.job(ALICE, id)
    assert job.state is ExportState.READY
    names = [name for names in [home.blobs.names(one) for one in home.rows()] for name in names]
    assert [one for one in names if one.startswith("parcel.")] == [f"parcel.{id}.00000"]
    assert job.download_url is not None
    until, signature = (one.partition("=")[2] for one in job.download_url.split("?")[1].split("&"))
    content = b"".join(after.take(id, until, signature))
    assert json.loads(pyrage.decrypt(content, [READER]))["record_count"] == 1


@pytest.mark.parametrize("step", [ExportStep.TAKEN, ExportStep.DROPPED])
def test_a_file_whose_delivery_was_killed_is_gone_after_the_next_look(
    home: MemoryHome, step: ExportStep
) -> None:
    engine = home.engine()
    engine.retain(ALICE, Retain("Alice drinks tea"))
    exports, id = begun(home, engine, step)
    exports.work()
    link = exports.job(ALICE, id).download_url or ""
    until, signature = (one.partition("=")[2] for one in link.split("?")[1].split("&"))
    with pytest.raises(SimulatedCrash):
        exports.take(id, until, signature)
    after = Exports(home.engine(), home.clock, SECRET)
    after.work()
    with pytest.raises(NotFound):
        after.take(id, until, signature)
    assert not [name for one in home.rows() for name in home.blobs.names(one) if "parcel" in name]


def test_a_destroy_while_a_file_is_written_leaves_nothing_of_it(home: MemoryHome) -> None:
    engine = home.engine()
    engine.retain(ALICE, Retain("Alice drinks tea"))
    token = engine.destroy_token(ALICE).token

    def pieces() -> Iterator[bytes]:
        yield b"one"
        home.engine().destroy(ALICE, Destroy(token=token))
        yield b"two"

    with pytest.raises(Destroyed):
        engine.keep_parcel(ALICE, "a", pieces())
    assert not [name for one in home.rows() for name in home.blobs.names(one)]


# -- a real process, and SIGKILL -------------------------------------------------------------------

WORKER = """
import os, signal, sys
from scrubjay import bootstrap, settings
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.surfaces.personal.copies import CopyForm, CopyOrder
from scrubjay.surfaces.personal.exports import Exports

folder, step, reader = sys.argv[1:]
engine, clock = bootstrap.build(settings.read(home=folder)), bootstrap.clock()
scope, keep = Scope("acme", "alice"), engine.keep_parcel

def die(reached):
    if reached == step:
        os.kill(os.getpid(), signal.SIGKILL)

def keep_parcel(scope, name, pieces):
    def told():
        for number, piece in enumerate(pieces):
            die(f"piece {number}")
            yield piece
    keep(scope, name, told())

engine.keep_parcel = keep_parcel
exports = Exports(engine, clock, bytes(32), reach=die)
order = CopyOrder(scope=scope, at=clock.now())
id = exports.begin(order, CopyForm.JSON, Actor.USER, recipient=reader)
exports.work()
link = exports.job(scope, id).download_url
exports.take(id, *(one.partition("=")[2] for one in link.split("?")[1].split("&")))
"""
MADE = [ExportStep.NOTED, ExportStep.SEALED, "piece 1", ExportStep.KEPT, ExportStep.READY]
TAKEN = [ExportStep.TAKEN, ExportStep.DROPPED]


@pytest.mark.parametrize("step", [*MADE, *TAKEN])
def test_an_export_whose_process_is_killed_is_whole_or_gone_and_never_half(
    tmp_path: Path, step: str
) -> None:
    said, reader = "x" * 300_000, str(READER.to_public())
    with scrubjay.open("acme/alice", home=tmp_path) as jay:
        jay.retain("Alice drinks tea")
        for number in range(5):
            jay.put(("notes", str(number)), f"{said}{number}")
        command = [sys.executable, "-c", WORKER, tmp_path, step, reader]
        with running(command) as process:
            assert process.wait(60) == -signal.SIGKILL
        engine, clock = jay._engine, bootstrap.clock()
        after = Exports(engine, clock, SECRET)
        after.work()
        ((_, sheet),) = after._book.sheets(ExportSheet, "exports")
        names = [one for one in blobs(tmp_path) if one.startswith("parcel.")]
        if step in TAKEN:
            assert (sheet.state, names) == (ExportState.TAKEN, [])
            return
        assert (sheet.state, len(names)) == (ExportState.READY, 2)
        link = after.told(sheet).download_url or ""
        until, signature = (one.partition("=")[2] for one in link.split("?")[1].split("&"))
        content = b"".join(after.take(sheet.id, until, signature))
        told = json.loads(pyrage.decrypt(content, [READER]))
        assert [one["value"] for one in told["documents"]] == [f"{said}{one}" for one in range(5)]
        assert (told["record_count"], len(content)) == (1, sheet.size)
        assert not [one for one in blobs(tmp_path) if one.startswith("parcel.")]


def blobs(home: Path) -> list[str]:
    """The names of the blobs of all scopes."""
    return [one.name for one in home.rglob("*") if one.parent.parent.name == "blobs"]


DESTROY = [one for one in Failpoint if one.value.startswith("destroy")]


@pytest.mark.parametrize("failpoint", DESTROY)
def test_a_destroy_by_token_that_is_killed_ends_with_the_receipt_of_any_other(
    home: MemoryHome, failpoint: Failpoint
) -> None:
    engine = home.engine()
    engine.retain(ALICE, Retain("Alice drinks tea"))
    token = engine.destroy_token(ALICE).token
    home.crashes.at(failpoint)
    with pytest.raises(SimulatedCrash):
        engine.destroy(ALICE, Destroy(token=token))
    after = home.engine()
    receipt = after.destroy(ALICE, Destroy(token=token))
    assert (receipt.verb, receipt.memories) == ("destroy", 1)
    assert after.destroy(ALICE, Destroy(token=token)) == receipt
