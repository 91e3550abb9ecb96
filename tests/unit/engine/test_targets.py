"""Previews, and forgetting by words: nothing goes that was not shown."""

from __future__ import annotations

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.conversations import Append, ReadConversation
from scrubjay.model.errors import Conflict, InvalidRequest, NeedsConfirmation
from scrubjay.model.memory import Kind
from scrubjay.model.requests import Amend, Browse, Forget
from scrubjay.model.retention import KindLimit, SetRetention
from scrubjay.model.turns import Record
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, contents, retain, supersede


@pytest.fixture
def engine() -> Kernel:
    return MemoryHome().engine()


def shown(engine: Kernel, **target: object) -> tuple[list[str], list[str]]:
    """What a preview names, and what would go with it."""
    found = engine.preview(ALICE, Forget(**target))  # type: ignore[arg-type]
    return [one.content for one in found.memories], [one.content for one in found.others]


def test_a_preview_shows_what_is_named_and_what_would_go_with_it(engine: Kernel) -> None:
    old = retain(engine, "tea", session="s")
    new = supersede(engine, old, "coffee", session="t")
    retain(engine, "awake", sources=(new,))
    assert shown(engine, ids=(new,)) == (["coffee"], ["tea", "awake"])
    assert shown(engine, session="s") == (["tea"], [])
    assert sorted(contents(engine)) == ["awake", "coffee"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("dentists", ["The dentist is Dr. Wu", "My DENTIST moved to Bonn"]),
        ("dentist Bonn", ["My DENTIST moved to Bonn"]),
        ("the dentist", ["The dentist is Dr. Wu", "My DENTIST moved to Bonn"]),
        ("Zahnärzte", ["Die Zahnärztin ist nett und die Zahnärzte sind es auch"]),
        ("牙医", ["我的牙医姓吴"]),
        ("health", ["An apple a day"]),
        ("surgeon", []),
        ("?!", []),
    ],
)
def test_a_query_names_every_memory_that_holds_all_its_words(
    engine: Kernel, query: str, found: list[str]
) -> None:
    retain(engine, "The dentist is Dr. Wu")
    retain(engine, "My DENTIST moved to Bonn")
    retain(engine, "Die Zahnärztin ist nett und die Zahnärzte sind es auch")
    retain(engine, "我的牙医姓吴")
    retain(engine, "An apple a day", tags=("health",))
    assert shown(engine, query=query) == (found, [])


def test_forgetting_by_words_needs_the_token_of_a_preview(engine: Kernel) -> None:
    retain(engine, "tea")
    with pytest.raises(NeedsConfirmation):
        engine.forget(ALICE, Forget(query="tea"))
    assert contents(engine) == ["tea"]


def test_exactly_what_was_shown_is_forgotten(engine: Kernel) -> None:
    retain(engine, "green tea")
    retain(engine, "coffee")
    token = engine.preview(ALICE, Forget(query="tea")).token
    receipt = engine.forget(ALICE, Forget(query="tea", confirm=token))
    assert receipt.erased == 1
    assert contents(engine) == ["coffee"]


@pytest.mark.parametrize("target", [{"query": "tea"}, {"session": "s"}, {"tags": ("t",)}])
def test_a_memory_that_came_since_the_preview_stops_it(
    engine: Kernel, target: dict[str, object]
) -> None:
    retain(engine, "green tea", session="s", tags=("t",))
    token = engine.preview(ALICE, Forget(**target)).token  # type: ignore[arg-type]
    retain(engine, "black tea", session="s", tags=("t",))
    with pytest.raises(Conflict):
        engine.forget(ALICE, Forget(**target, confirm=token))  # type: ignore[arg-type]
    assert sorted(contents(engine)) == ["black tea", "green tea"]


def test_what_was_derived_since_the_preview_stops_it_too(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    token = engine.preview(ALICE, Forget(ids=(tea,))).token
    retain(engine, "thirst", sources=(tea,))
    with pytest.raises(Conflict):
        engine.forget(ALICE, Forget(ids=(tea,), confirm=token))


def test_a_token_of_another_scope_or_of_nobody_is_refused(engine: Kernel) -> None:
    tea = retain(engine, "tea")
    for token in ("0" * 32, "é"):
        with pytest.raises(Conflict):
            engine.forget(ALICE, Forget(ids=(tea,), confirm=token))
    assert contents(engine) == ["tea"]


@pytest.mark.parametrize("query", ["", "  ", 7, "\ud800"])
def test_a_query_is_text(query: object) -> None:
    with pytest.raises(InvalidRequest):
        Forget(query=query)  # type: ignore[arg-type]


def test_kinds_name_every_memory_of_them_also_those_out_of_sight(engine: Kernel) -> None:
    limits = [KindLimit(kind=Kind.FACT, number=1)]
    engine.set_retention(ALICE, SetRetention(limits=limits))
    first = retain(engine, "archived")
    engine.amend(ALICE, Amend(first, archived=True))
    old = retain(engine, "superseded")
    supersede(engine, old, "retired")
    new = retain(engine, "in sight")
    retain(engine, "derived", sources=(new,), kind=Kind.SUMMARY)
    retain(engine, "another", kind=Kind.EPISODE)
    assert sorted(shown(engine, kinds={Kind.FACT})[0]) == sorted(
        ["archived", "superseded", "retired", "in sight"]
    )
    done = engine.forget(ALICE, Forget(kinds="fact"))  # type: ignore[arg-type]
    assert (done.erased, done.derived) == (5, 1)
    engine.set_retention(ALICE, SetRetention())
    everything = engine.browse(ALICE, Browse(archived=None, superseded=True))
    assert [one.content for one in everything] == ["another"]


def test_kinds_leave_turns_and_conversations_alone(engine: Kernel) -> None:
    engine.record(ALICE, Record(user="I live in Rome", assistant="Noted", session="s"))
    engine.append(ALICE, Append("s", [{"body": "hello"}]))
    engine.forget(ALICE, Forget(kinds=frozenset(Kind) - {Kind.EPISODE}))
    assert [one.kind for one in engine.browse(ALICE)] == [Kind.EPISODE]  # the words of the turn
    assert len(engine.turns(ALICE)) == 1
    assert len(engine.conversation(ALICE, ReadConversation("s")).entries) == 1
