"""One pagination: every verb that lists takes `limit` and `cursor`, and gives `next_cursor`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

import pytest

import scrubjay
from scrubjay import Changes, InvalidRequest, Jay, Page, Timeline, Transcript
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.verbs import VERBS
from tests.support.engines import MemoryHome

LISTS: dict[str, dict[str, Any]] = {
    "browse": {},
    "history": {"id": "mem-1"},
    "quarantined": {},
    "turns": {},
    "sessions": {},
    "conversations": {},
    "documents": {"values": False},
    "receipts": {},
    "audit": {},
}
"""The verbs of a scope that give a page, with the fields they need."""
OTHERS = {Timeline: "moments", Transcript: "entries", Changes: "changes"}
"""Results with a cursor that have more than entries."""
OF_SERVICE = {"scopes", "list_keys"}


@pytest.fixture(scope="module")
def jay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jay]:
    """Five entries in every list."""
    with scrubjay.open("alice", home=tmp_path_factory.mktemp("home")) as jay:
        jay.retain("version 0", id="mem-1")
        last = "mem-1"
        for number in range(1, 5):
            last = jay.supersede(last, f"version {number}").id
        for number in range(5):
            jay.retain("Obey", kind="instruction", origin="web", session=f"s{number}")
            jay.record(f"I live on planet {number}.", id=f"turn-{number}", session=f"t{number}")
            jay.append(f"c{number}", [{"body": number}])
            jay.append("long", [{"body": number}])
            jay.put(f"f/{number}", number)
            jay.forget([jay.retain("gone").id])
        yield jay


def test_every_verb_with_a_page_or_a_limit_of_entries_is_here() -> None:
    paged = {name for name, verb in VERBS.items() if get_origin(verb.gives) is Page}
    assert paged == LISTS.keys() | OF_SERVICE
    fields = {name: verb.request.__struct_fields__ for name, verb in VERBS.items()}
    with_cursor = {name for name, some in fields.items() if "cursor" in some}
    assert with_cursor - paged == {"timeline", "follow", "conversation"}
    for some in fields.values():
        assert not {"after", "offset", "before_id"} & {*some}


@pytest.mark.parametrize("name", LISTS)
def test_pages_of_any_length_are_the_whole_list_without_gap_or_repeat(jay: Jay, name: str) -> None:
    verb, fields = getattr(jay, name), LISTS[name]
    whole = verb(limit=1000, **fields)
    assert len(whole) >= 5
    assert whole.next_cursor is None
    for limit in (1, 2, len(whole) - 1, len(whole)):
        pages, cursor = list[Any](), None
        while not pages or cursor is not None:
            pages.append(verb(limit=limit, cursor=cursor, **fields))
            cursor = pages[-1].next_cursor
        if name != "audit":  # each look is an event
            assert [one for page in pages for one in page] == list(whole)
        assert all(len(page) == limit for page in pages[:-1])
        assert len(pages[-1]) > 0, "no page is empty but that of an empty list"


class Changing:
    """Five entries in every list, and what happens to each: one comes at either end, one goes."""

    def __init__(self, jay: Jay) -> None:
        self.jay = jay
        self.chain = [jay.retain("version 0").id]
        for number in range(1, 5):
            self.chain.append(jay.supersede(self.chain[-1], f"version {number}").id)
        for number in range(5):
            jay.retain("Obey", kind="instruction", origin="web", id=f"bad-{number}")
            jay.record(f"I live on planet {number}.", id=f"turn-{number}", session=f"t{number}")
            jay.append(f"c{number}", [{"body": number}])
            jay.put(f"f/{number}", number)
            jay.forget([jay.retain("gone").id])

    def read(
        self, name: str, limit: int, cursor: str | None = None
    ) -> tuple[list[Any], str | None]:
        fields = {"id": self.chain[-1]} if name == "history" else LISTS[name]
        page = getattr(self.jay, name)(limit=limit, cursor=cursor, **fields)
        names = ("name", "id", "audit_count", "count")
        return [
            next(getattr(one, at) for at in names if hasattr(one, at)) for one in page
        ], page.next_cursor

    def browse(self) -> None:
        self.jay.retain("another")
        self.jay.forget([self.read("browse", 1)[0][0]])

    def history(self) -> None:
        self.chain.append(self.jay.supersede(self.chain[-1], "version 9").id)
        self.jay.forget([self.chain[0]])

    def quarantined(self) -> None:
        self.jay.reject("bad-0")
        self.jay.retain("Obey", kind="instruction", origin="web", id="bad-9")

    def turns(self) -> None:
        self.jay.record("I live on planet 9.", id="turn-9")
        self.jay.forget(["turn-4"])

    def sessions(self) -> None:
        self.jay.record("I live on planet 9.", id="turn-9", session="t9")
        self.jay.forget(session="t4")

    def conversations(self) -> None:
        self.jay.append("c9", [{"body": 9}])
        self.jay.append("c3", [{"body": "said again"}])
        self.jay.delete_conversation("c4")

    def documents(self) -> None:
        self.jay.put("f/00", "before what was shown")
        self.jay.put("f/9", "behind it")
        self.jay.remove("f/0")

    def receipts(self) -> None:
        self.jay.forget([self.jay.retain("gone").id])

    audit = receipts


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_changes_between_two_pages_repeats_nothing_and_skips_nothing(
    name: str, home: MemoryHome
) -> None:
    scene = Changing(Jay(home.engine(), Scope("local", "alice"), actor=Actor.OPERATOR))
    before, _ = scene.read(name, 1000)
    shown, cursor = scene.read(name, 2)
    assert cursor is not None
    getattr(scene, name)()
    after, _ = scene.read(name, 1000)
    rest = list[Any]()
    while cursor is not None:
        some, cursor = scene.read(name, 2, cursor)
        rest += some
    assert not {*shown} & {*rest}
    assert len(rest) == len({*rest})
    left = [one for one in before if one in after and one not in shown]
    assert [one for one in rest if one in left] == left
    assert len(left) >= 2


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("cursor", ["x", "-1", "1.x", "1.2.3", "9" * 19, "٣", "1\n"])
def test_a_cursor_of_no_list_is_refused(jay: Jay, name: str, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        getattr(jay, name)(cursor=cursor, **LISTS[name])


def test_every_entry_is_read_page_by_page(jay: Jay) -> None:
    ids = [one.id for one in scrubjay.every(jay.turns, limit=2)]
    assert ids == [f"turn-{number}" for number in reversed(range(5))]
    assert [one.id for one in scrubjay.every(jay.turns, session="t1")] == ["turn-1"]


def test_a_history_and_a_timeline_go_back_page_by_page(jay: Jay) -> None:
    said, cursor = list[Any](), None
    while not said or cursor is not None:
        part = jay.conversation("long", limit=2, cursor=cursor)
        said = [*(one.body for one in part.entries), *said]
        cursor = part.next_cursor
    assert said == list(range(5))
    whole = jay.timeline()
    moments, cursor = list[Any](), None
    while not moments or cursor is not None:
        line = jay.timeline(2, cursor=cursor)
        moments = [*line.moments, *moments]
        assert line.earlier == 5 - len(moments)
        cursor = line.next_cursor
    assert tuple(moments) == whole.moments


def test_a_change_feed_goes_on_where_the_last_answer_ended(jay: Jay, tmp_path: Path) -> None:
    whole, seen, cursor = jay.follow(1000), list[Any](), None
    while (told := jay.follow(3, cursor=cursor)).changes:
        seen += told.changes
        cursor = told.next_cursor
    assert tuple(seen) == whole.changes
    assert told.next_cursor == whole.next_cursor
