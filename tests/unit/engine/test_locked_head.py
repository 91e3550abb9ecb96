"""While the head of a scope is locked, nobody asks anything that may be far away."""

from __future__ import annotations

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.requests import Destroy
from scrubjay.model.turns import Record
from tests.support.watched import Watch
from tests.unit.engine.scene import ALICE, LONG
from tests.unit.engine.test_crashes import VERBS, Scene, Verb, set_up

MORE: dict[str, Verb] = {
    "destroy": lambda _, engine: engine.destroy(ALICE, Destroy(confirm="local/alice")),
    "record a long turn": lambda _, engine: engine.record(
        ALICE, Record(id="t1", session="s", user=f"I like tea. {LONG}", assistant="Noted.")
    ),
}


@pytest.mark.parametrize("name", [*VERBS, *MORE])
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_no_verb_asks_blobs_keyring_or_catalog_in_its_transaction(name: str, warm: bool) -> None:
    """Whether the process has the keys in its memory or not."""
    scene: Scene = set_up(name)
    watch = Watch()
    engine = Kernel(watch.over(scene.home.ports()))
    if warm and name != "restore a lost file":
        engine.browse(ALICE)
        engine.export(ALICE)
    (VERBS | MORE)[name](scene, engine)
    assert watch.calls == []


def test_a_call_inside_a_transaction_would_be_noticed() -> None:
    scene = set_up("retain")
    watch = Watch()
    ports = watch.over(scene.home.ports())
    (entry, *_) = ports.store.catalog.entries()
    ports.store.write(entry.address, lambda _: ports.blobs.names(entry.address))
    ports.store.write(entry.address, lambda _: ports.store.catalog.entry(entry.address))
    ports.store.write(entry.address, lambda _: ports.store.exists(entry.address))
    noticed = ["MemoryBlobs.names", "MemoryCatalog.entry", "LastingStore.exists"]
    assert watch.calls == noticed
