"""retain: durable once, only once, and never what was forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import AGENT, Amend, Get, Retain, Supersede
from scrubjay.model.results import Outcome
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    address,
    browse,
    contents,
    forget,
    head,
    retain,
    rows,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
EVERYTHING: dict[str, Any] = {
    "content": "Tea,\nwith milk\n",
    "kind": Kind.PREFERENCE,
    "tags": ("drink", "größe"),
    "importance": 0.9,
    "pinned": True,
    "key": "k",
    "session": "s",
    "speaker": "Alice",
    "position": 3,
    "origin": Origin.AGENT,
    "channel": "chat",
    "message_id": "m",
    "said_at": NOON,
    "valid_from": NOON,
    "valid_to": NOON,
    "expires_at": NOON,
    "metadata": {"a": [1, None, {"b": "ä"}]},
}


def test_what_was_retained_is_got_with_every_field(engine: Kernel) -> None:
    source = retain(engine, "source", origin=Origin.AGENT)
    receipt = engine.retain(ALICE, Retain(**EVERYTHING, sources=(source,)), AGENT)
    memory = engine.get(ALICE, Get(receipt.id))
    assert receipt.outcome is Outcome.STORED
    assert memory == Memory(
        id=receipt.id,
        recorded_at=memory.recorded_at,
        number=2,
        sources=(source,),
        provenance=Provenance(
            actor=Actor.AGENT, session="s", channel="chat", message_id="m", said_at=NOON
        ),
        **{
            name: EVERYTHING[name]
            for name in EVERYTHING
            if name not in ("session", "channel", "message_id", "said_at")
        },
    )


def test_a_new_process_finds_it(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    engine.close()
    assert home.engine().get(ALICE, Get(public_id)).content == "tea"


def test_it_is_recorded_at_the_time_of_the_call(home: MemoryHome, engine: Kernel) -> None:
    before = home.clock.now()
    memory = engine.get(ALICE, Get(retain(engine, "tea")))
    assert before < memory.recorded_at < home.clock.now()


def test_ids_are_new_and_say_that_they_name_memories(engine: Kernel) -> None:
    first, second = retain(engine, "tea"), retain(engine, "tea")
    assert first != second
    assert first.startswith("mem-")


def test_a_second_write_under_the_same_key_changes_nothing(
    home: MemoryHome, engine: Kernel
) -> None:
    first = retain(engine, "tea", key="drink")
    before = head(home)
    receipt = engine.retain(ALICE, Retain(content="coffee", key="drink"))
    assert (receipt.id, receipt.outcome) == (first, Outcome.KNOWN)
    assert contents(engine) == ["tea"]
    assert head(home) == before


def test_a_key_counts_within_its_scope_only(engine: Kernel) -> None:
    retain(engine, "tea", key="drink")
    receipt = engine.retain(BOB, Retain(content="coffee", key="drink"))
    assert receipt.outcome is Outcome.STORED


@pytest.mark.parametrize("origin", [Origin.QUOTED, Origin.OTHER_AGENT, Origin.TOOL, Origin.WEB])
def test_what_is_not_trusted_keeps_no_trusted_memory_from_its_key(
    home: MemoryHome, engine: Kernel, origin: Origin
) -> None:
    page = retain(engine, "a page", key="drink", origin=origin)
    receipt = engine.retain(ALICE, Retain(content="tea", key="drink"))
    assert receipt.outcome is Outcome.STORED
    assert (engine.get(ALICE, Get(receipt.id)).key, engine.get(ALICE, Get(page)).key) == (
        "drink",
        None,
    )
    for again in (engine, home.engine()):
        known = again.retain(ALICE, Retain(content="a page", key="drink", origin=origin))
        assert (known.id, known.outcome) == (receipt.id, Outcome.KNOWN)
    forget(engine, page)  # the key is not buried with what had it before
    known = engine.retain(ALICE, Retain(content="tea", key="drink"))
    assert (known.id, known.outcome) == (receipt.id, Outcome.KNOWN)


def test_a_key_is_given_up_to_what_is_trusted_in_the_end(engine: Kernel) -> None:
    page = retain(engine, "a page", key="drink", origin=Origin.WEB)
    derived = engine.retain(ALICE, Retain(content="tea", key="drink", sources=(page,)))
    other = engine.retain(ALICE, Retain(content="tea", key="drink", origin=Origin.TOOL))
    assert [derived.id, other.id] == [page, page]
    assert contents(engine) == ["a page"]


def test_what_is_refused_takes_no_key(engine: Kernel) -> None:
    page = retain(engine, "a page", key="drink", origin=Origin.WEB)
    with pytest.raises(NotFound):
        engine.retain(ALICE, Retain(content="tea", key="drink", sources=("mem-none",)))
    assert engine.get(ALICE, Get(page)).key == "drink"


def test_a_correction_takes_the_key_of_what_is_not_trusted(engine: Kernel) -> None:
    told = retain(engine, "tea")
    page = retain(engine, "a page", key="drink", origin=Origin.WEB)
    receipt = engine.supersede(ALICE, Supersede(id=told, content="coffee", key="drink"))
    assert receipt.outcome is Outcome.STORED
    assert set(contents(engine)) == {"a page", "coffee"}
    assert engine.get(ALICE, Get(page)).key is None


def test_a_correction_takes_the_key_of_the_page_it_corrects(engine: Kernel) -> None:
    page = retain(engine, "a page", key="drink", origin=Origin.WEB)
    receipt = engine.supersede(ALICE, Supersede(id=page, content="tea", key="drink"))
    assert receipt.outcome is Outcome.STORED
    assert contents(engine) == ["tea"]


def test_a_key_is_remembered_by_the_next_process(home: MemoryHome, engine: Kernel) -> None:
    first = retain(engine, "tea", key="drink")
    assert retain(home.engine(), "coffee", key="drink") == first


def test_a_stable_id_is_kept_and_written_once(engine: Kernel) -> None:
    receipt = engine.retain(ALICE, Retain(content="tea", id="hist1_0af"))
    again = engine.retain(ALICE, Retain(content="coffee", id="hist1_0af"))
    assert (receipt.id, receipt.outcome) == ("hist1_0af", Outcome.STORED)
    assert (again.id, again.outcome) == ("hist1_0af", Outcome.KNOWN)
    assert contents(engine) == ["tea"]


def test_a_key_decides_before_a_stable_id(engine: Kernel) -> None:
    first = retain(engine, "tea", key="drink")
    receipt = engine.retain(ALICE, Retain(content="coffee", key="drink", id="mine"))
    assert (receipt.id, receipt.outcome) == (first, Outcome.KNOWN)


@pytest.mark.parametrize("fields", [{"id": "mine"}, {"key": "drink"}, {"id": "mine", "key": "k"}])
def test_what_was_forgotten_stays_out(engine: Kernel, fields: dict[str, Any]) -> None:
    forget(engine, retain(engine, "tea", **fields))
    receipt = engine.retain(ALICE, Retain(content="tea", **fields))
    assert receipt.outcome is Outcome.FORGOTTEN
    assert contents(engine) == []


def test_a_forgotten_key_stays_out_under_a_new_id(engine: Kernel) -> None:
    forget(engine, retain(engine, "tea", key="drink"))
    receipt = engine.retain(ALICE, Retain(content="tea", key="drink", id="other"))
    assert receipt.outcome is Outcome.FORGOTTEN


def test_a_forgotten_id_stays_out_under_a_new_key(engine: Kernel) -> None:
    forget(engine, retain(engine, "tea", id="mine"))
    receipt = engine.retain(ALICE, Retain(content="tea", id="mine", key="new"))
    assert receipt.outcome is Outcome.FORGOTTEN


def test_sources_lower_the_origin(engine: Kernel) -> None:
    web = retain(engine, "from a page", origin=Origin.WEB)
    own = retain(engine, "from the user")
    derived = retain(engine, "both", sources=(own, web))
    assert engine.get(ALICE, Get(derived)).origin is Origin.WEB


def test_sources_never_raise_the_origin(engine: Kernel) -> None:
    own = retain(engine, "from the user")
    derived = retain(engine, "guessed", sources=(own,), origin=Origin.AGENT)
    assert engine.get(ALICE, Get(derived)).origin is Origin.AGENT


def test_an_unknown_source_is_refused_and_nothing_is_written(engine: Kernel) -> None:
    known = retain(engine, "tea")
    with pytest.raises(NotFound, match="mem-nowhere"):
        retain(engine, "derived", sources=(known, "mem-nowhere"))
    assert contents(engine) == ["tea"]


def test_a_forgotten_source_is_refused(engine: Kernel) -> None:
    gone = retain(engine, "tea")
    forget(engine, gone)
    with pytest.raises(NotFound):
        retain(engine, "derived", sources=(gone,))


def test_what_would_have_expired_already_is_refused(home: MemoryHome, engine: Kernel) -> None:
    with pytest.raises(InvalidRequest, match="expired"):
        retain(engine, "tea", expires_at=home.clock.now() - timedelta(seconds=1))


def test_a_memory_is_gone_from_sight_when_it_expires(home: MemoryHome, engine: Kernel) -> None:
    public_id = retain(engine, "tea", expires_at=home.clock.now() + timedelta(hours=1))
    assert contents(engine) == ["tea"]
    home.clock.advance(seconds=3600)
    assert contents(engine) == []
    with pytest.raises(NotFound):
        engine.get(ALICE, Get(public_id))


@pytest.mark.parametrize("content", ["a" * 65_536, LONG, "\n" * 65_535 + "x", '"\\' * 32_768])
def test_the_longest_content_comes_back_whole(engine: Kernel, content: str) -> None:
    assert engine.get(ALICE, Get(retain(engine, content))).content == content
    assert contents(engine) == [content]


def test_a_long_body_goes_to_a_blob_and_a_short_one_does_not(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, "tea")
    retain(engine, LONG)
    short, long = rows(home)
    assert short.blob is None
    assert home.blobs.names(address(home)) == [long.blob]


def test_a_long_memory_that_is_known_leaves_no_second_blob(
    home: MemoryHome, engine: Kernel
) -> None:
    retain(engine, LONG, key="k")
    retain(engine, LONG, key="k")
    assert len(home.blobs.names(address(home))) == 1


def test_nothing_readable_reaches_the_store(home: MemoryHome, engine: Kernel) -> None:
    """Neither content nor tags, session, key, speaker or ids stand anywhere in clear."""
    words = ("Nightingale", "Kestrel", "Wagtail", "Siskin", "Brambling", "Dunnock", "Whinchat")
    content, tag, session, key, speaker, public_id, source = words
    retain(engine, source, id=source)
    retain(
        engine, content + "x" * 65_000, tags=(tag,), session=session, key=key, speaker=speaker,
        id=public_id, sources=(source,), metadata={tag: tag * 100},
    )  # fmt: skip
    pieces = [*home.store.raw(address(home)), *home.blobs.raw(address(home))]
    kept = b"".join(place.encode() + piece for place, piece in pieces)
    assert not [word for word in words if word.encode() in kept]


def test_scopes_do_not_see_each_other(engine: Kernel) -> None:
    public_id = retain(engine, "tea")
    engine.open(BOB)
    assert contents(engine, scope=BOB) == []
    with pytest.raises(NotFound):
        engine.get(BOB, Get(public_id))


def test_equal_memories_of_two_scopes_share_nothing_in_the_store(
    home: MemoryHome, engine: Kernel
) -> None:
    for scope in (ALICE, BOB):
        engine.retain(scope, Retain(content="tea", id="same", key="k", session="s"))
    (alices,), (bobs,) = rows(home, ALICE), rows(home, BOB)
    assert address(home, ALICE) != address(home, BOB)
    for name in ("id", "key", "session", "cell"):
        assert getattr(alices, name) != getattr(bobs, name), name


def test_an_engine_that_slept_through_a_rotation_still_writes(home: MemoryHome) -> None:
    """The key it would have sealed with is gone; it seals under the one that is there now."""
    sleeper, other = home.engine(), home.engine()
    sleeper.open(ALICE)
    forget(other, retain(other, "gone"))
    public_id = retain(sleeper, "tea")
    assert other.get(ALICE, Get(public_id)).content == "tea"


def test_an_engine_that_knows_the_old_key_by_heart_seals_under_the_new_one(
    home: MemoryHome,
) -> None:
    sleeper, other = home.engine(), home.engine()
    gone = retain(sleeper, "gone")
    forget(other, gone)
    public_id = retain(sleeper, "tea")
    assert other.get(ALICE, Get(public_id)).content == "tea"
    assert [row.epoch for row in rows(home) if not row.erased] == [2]


def test_each_memory_is_numbered_in_the_order_of_creation(engine: Kernel) -> None:
    for content in "abc":
        retain(engine, content)
    engine.amend(ALICE, Amend(browse(engine)[-1].id, pinned=True))
    assert [memory.number for memory in browse(engine)] == [3, 2, 1]
