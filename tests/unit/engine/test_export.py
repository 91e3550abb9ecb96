"""export and load: everything out and in again, all of it or nothing."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.engine.transfer import bundle
from scrubjay.model.errors import Conflict, InvalidRequest, SealBroken, WrongKey
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Amend, Export, Get, History, Load, Purge, Restore, Supersede
from scrubjay.model.results import Loaded
from tests.strategies import retains
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    contents,
    everything,
    forget,
    head,
    ids,
    retain,
    supersede,
)

Damage = Callable[[dict[str, Any]], object]


def transfer(engine: Kernel, target: Kernel, *, sealed: bool, scope: Any = BOB) -> Loaded:
    """Everything of Alice, loaded into another scope."""
    exported = engine.export(ALICE, Export(sealed=sealed))
    return target.load(scope, Load(exported.content, key=exported.key))


def plain(memories: list[Memory]) -> list[Memory]:
    """The memories in the order of creation, without their numbers: erased ones leave gaps."""
    return [replace(one, number=0) for one in sorted(memories, key=lambda one: one.number)]


# -- without loss --------------------------------------------------------------------------------


@st.composite
def scopes(draw: st.DrawFn) -> Kernel:
    """An engine whose Alice holds arbitrary memories with chains, lineage, pins and gaps."""
    engine = MemoryHome().engine()
    engine.open(ALICE)
    known: list[str] = []
    for request in draw(st.lists(retains(), max_size=5)):
        step = draw(st.sampled_from(["new", "derive", "correct", "pin", "forget"]))
        chosen = draw(st.sampled_from(known)) if known else ""
        sources = (chosen,) if step == "derive" and chosen else ()
        known.append(engine.retain(ALICE, replace(request, sources=sources)).id)
        if step == "correct" and chosen and engine.get(ALICE, Get(chosen)).live:
            known.append(supersede(engine, chosen, request.content))
        elif step == "pin" and chosen:
            engine.amend(ALICE, Amend(chosen, pinned=True))
        elif step == "forget" and chosen:
            forget(engine, chosen)
            known = ids(everything(engine))
    return engine


@given(scopes(), st.booleans())
def test_what_is_exported_and_loaded_is_the_same(engine: Kernel, sealed: bool) -> None:
    before = everything(engine)
    loaded = transfer(engine, engine, sealed=sealed)
    assert loaded == Loaded(loaded=len(before))
    assert plain(everything(engine, scope=BOB)) == plain(before)
    assert engine.verify(BOB).sound
    for memory in before:
        theirs = engine.history(BOB, History(memory.id))
        assert ids(theirs) == ids(engine.history(ALICE, History(memory.id)))


@pytest.mark.parametrize("sealed", [False, True])
def test_another_installation_takes_it_too(engine: Kernel, sealed: bool) -> None:
    supersede(engine, retain(engine, LONG, key="k", session="s"), "short")
    other = MemoryHome("another").engine()
    transfer(engine, other, sealed=sealed, scope=ALICE)
    assert plain(everything(other)) == plain(everything(engine))
    assert retain(other, "again", key="k") == everything(engine)[0].id
    assert forget(other, session="s").erased == 1


def test_an_export_is_json_a_person_can_read(engine: Kernel) -> None:
    public_id = retain(engine, "Grüner Tee", tags=("drink",))
    exported = engine.export(ALICE)
    document = json.loads(exported.content)
    assert "Grüner Tee" in exported.content.decode()
    assert (document["format"], document["version"]) == ("scrubjay-export", 1)
    assert (document["scope"], document["count"]) == ("local/alice", 1)
    assert document["memories"][0]["id"] == public_id
    assert exported.key is None


def test_a_sealed_export_shows_nothing(engine: Kernel) -> None:
    retain(engine, "Nightingale", tags=("Wagtail",))
    exported = engine.export(ALICE, Export(sealed=True))
    for word in (b"Nightingale", b"Wagtail", b"alice"):
        assert word not in exported.content


PHRASE = "caf\u00e9 au lait"


def test_a_sealed_export_opens_with_its_passphrase(engine: Kernel) -> None:
    retain(engine, "Nightingale")
    exported = engine.export(ALICE, Export(sealed=True, passphrase=PHRASE))
    assert exported.key is None
    assert b"Nightingale" not in exported.content
    decomposed = unicodedata.normalize("NFD", PHRASE)
    assert engine.load(BOB, Load(exported.content, passphrase=decomposed)).loaded == 1


def test_a_passphrase_is_salted_anew_for_every_export(engine: Kernel) -> None:
    engine.open(ALICE)
    request = Export(sealed=True, passphrase=PHRASE)
    first, second = (engine.export(ALICE, request).content for _ in range(2))
    assert bundle.secret_of(first, passphrase=PHRASE) != bundle.secret_of(second, passphrase=PHRASE)


def test_another_passphrase_or_none_loads_nothing(engine: Kernel) -> None:
    retain(engine, "Nightingale")
    raw = engine.export(ALICE, Export(sealed=True, passphrase=PHRASE)).content
    for request, refusal in (
        (Load(raw, passphrase="another one"), WrongKey),
        (Load(raw, passphrase=""), InvalidRequest),
        (Load(raw, bundle.print_key(bytes(32))), WrongKey),
        (Load(raw), WrongKey),
    ):
        with pytest.raises(refusal):
            engine.load(ALICE, request)
    with pytest.raises(InvalidRequest, match="export"):
        engine.restore(ALICE, Restore(raw, passphrase=PHRASE))


def test_a_bundle_under_a_key_refuses_a_passphrase(engine: Kernel) -> None:
    engine.open(ALICE)
    raw, _ = engine.backup(ALICE)
    with pytest.raises(InvalidRequest, match="opens with its key"):
        engine.load(ALICE, Load(raw, passphrase=PHRASE))
    with pytest.raises(InvalidRequest, match="opens with its key"):
        engine.restore(ALICE, Restore(raw, passphrase=PHRASE))


def test_a_short_passphrase_and_one_of_a_readable_file_are_refused() -> None:
    with pytest.raises(InvalidRequest):
        Export(sealed=True, passphrase="1234567")
    with pytest.raises(InvalidRequest, match="sealed"):
        Export(passphrase=PHRASE)


@pytest.mark.parametrize(
    "change",
    [
        {"memory_kib": 1024 * 1024},
        {"passes": 33},
        {"lanes": 0},
        {"memory_kib": "much"},
        {"salt": "00"},
        {"threads": 4},
    ],
)
def test_an_absurd_cost_is_refused_before_it_is_paid(
    engine: Kernel, change: dict[str, Any]
) -> None:
    engine.open(ALICE)
    raw = engine.export(ALICE, Export(sealed=True, passphrase=PHRASE)).content
    line, _, stream = raw.partition(b"\n")
    header = json.loads(line)
    header["argon2id"] |= change
    raw = json.dumps(header).encode() + b"\n" + stream
    with pytest.raises((InvalidRequest, SealBroken), match="limits"):
        engine.load(BOB, Load(raw, passphrase=PHRASE))


def test_superseded_memories_are_in_an_export_and_erased_ones_are_not(engine: Kernel) -> None:
    supersede(engine, retain(engine, "tea"), "coffee")
    forget(engine, retain(engine, "gone"))
    exported = engine.export(ALICE)
    assert exported.memories == 2
    assert b"gone" not in exported.content


def test_two_sealed_exports_have_nothing_in_common(engine: Kernel) -> None:
    retain(engine, "tea")
    first, second = (engine.export(ALICE, Export(sealed=True)) for _ in range(2))
    assert first.key != second.key
    with pytest.raises(WrongKey):
        engine.load(BOB, Load(first.content, key=second.key))


def test_an_empty_scope_is_exported_and_loaded(engine: Kernel) -> None:
    engine.open(ALICE)
    for sealed in (False, True):
        assert transfer(engine, engine, sealed=sealed) == Loaded()


# -- merging -------------------------------------------------------------------------------------


def test_a_second_load_changes_nothing(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    transfer(engine, engine, sealed=False)
    before = head(home, BOB).memory
    assert transfer(engine, engine, sealed=False) == Loaded(known=1)
    assert head(home, BOB).memory == before


def test_what_was_forgotten_here_stays_out(engine: Kernel) -> None:
    gone = retain(engine, "tea", key="k")
    export = engine.export(ALICE).content
    forget(engine, gone)
    assert engine.load(ALICE, Load(export)) == Loaded(forgotten=1)
    assert contents(engine) == []


def test_a_memory_whose_key_was_forgotten_here_stays_out(engine: Kernel) -> None:
    retain(engine, "tea", key="k")
    forget(engine, retain(engine, "tea", scope=BOB, key="k"), scope=BOB)
    assert transfer(engine, engine, sealed=False) == Loaded(forgotten=1)


def test_a_newer_version_takes_the_place_of_an_older_one(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    transfer(engine, engine, sealed=False)
    engine.amend(ALICE, Amend(public_id, pinned=True))
    assert transfer(engine, engine, sealed=False) == Loaded(loaded=1)
    assert engine.get(BOB, Get(public_id)).pinned


def test_an_older_version_changes_nothing(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    export = engine.export(ALICE).content
    engine.amend(ALICE, Amend(public_id, pinned=True))
    assert engine.load(ALICE, Load(export)) == Loaded(known=1)
    assert engine.get(ALICE, Get(public_id)).pinned


def test_a_correction_made_elsewhere_is_taken_over(engine: Kernel) -> None:
    old = retain(engine, "tea")
    transfer(engine, engine, sealed=False)
    supersede(engine, old, "coffee")
    transfer(engine, engine, sealed=False)
    assert contents(engine, scope=BOB) == ["coffee"]
    assert engine.verify(BOB).sound


def test_a_chain_never_forks(home: MemoryHome, engine: Kernel) -> None:
    """Two corrections of one memory are refused, and nothing is loaded."""
    old = retain(engine, "tea")
    transfer(engine, engine, sealed=False)
    engine.supersede(BOB, Supersede(id=old, content="water"))
    supersede(engine, old, "coffee")
    before = head(home, BOB).memory
    with pytest.raises(Conflict):
        transfer(engine, engine, sealed=False)
    assert head(home, BOB).memory == before


def test_a_correction_made_elsewhere_retires_what_was_changed_here(engine: Kernel) -> None:
    old = retain(engine, "tea")
    transfer(engine, engine, sealed=False)
    engine.amend(BOB, Amend(old, pinned=True))
    new = supersede(engine, old, "coffee")
    transfer(engine, engine, sealed=False)
    assert contents(engine, scope=BOB) == ["coffee"]
    before, after = engine.history(BOB, History(old))
    assert (before.superseded_by, before.pinned) == (new, True)
    assert before.retired_at == after.recorded_at
    assert engine.verify(BOB).sound


def test_a_correction_made_here_is_not_undone_by_a_change_elsewhere(engine: Kernel) -> None:
    old = retain(engine, "tea")
    transfer(engine, engine, sealed=False)
    engine.supersede(BOB, Supersede(id=old, content="water"))
    engine.amend(ALICE, Amend(old, pinned=True))
    engine.amend(ALICE, Amend(old, pinned=False))
    engine.amend(ALICE, Amend(old, pinned=True))
    assert transfer(engine, engine, sealed=False) == Loaded(loaded=1)
    assert contents(engine, scope=BOB) == ["water"]
    assert engine.get(BOB, Get(old)).pinned
    assert engine.verify(BOB).sound


def test_a_correction_of_what_was_purged_elsewhere_is_taken_over(engine: Kernel) -> None:
    old = retain(engine, "tea")
    transfer(engine, engine, sealed=False)
    supersede(engine, old, "coffee")
    engine.purge(ALICE, Purge(superseded_days=0))
    transfer(engine, engine, sealed=False)
    assert contents(engine, scope=BOB) == ["coffee"]
    assert engine.verify(BOB).sound


def test_a_key_that_names_another_memory_here_is_refused(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea", key="k")
    retain(engine, "coffee", scope=BOB, key="k")
    before = head(home, BOB)
    with pytest.raises(Conflict):
        transfer(engine, engine, sealed=False)
    assert head(home, BOB).memory == before.memory


def test_origins_are_kept(engine: Kernel) -> None:
    retain(engine, "tea", origin=Origin.WEB)
    transfer(engine, engine, sealed=True)
    assert everything(engine, scope=BOB)[0].origin is Origin.WEB
