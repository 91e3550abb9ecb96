"""An export that is cut off at any step ends as if it had not been."""

from __future__ import annotations

import json

import pyrage
import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import NotFound
from scrubjay.model.origin import Actor
from scrubjay.model.requests import Destroy, Retain
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint
from scrubjay.surfaces.personal.copies import CopyForm, CopyOrder
from scrubjay.surfaces.personal.exports import Exports, ExportState, ExportStep, Reach
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
    assert [one for one in names if one.startswith("parcel.")] == [f"parcel.{id}"]
    assert job.download_url is not None
    until, signature = (one.partition("=")[2] for one in job.download_url.split("?")[1].split("&"))
    content = after.take(id, until, signature)
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
