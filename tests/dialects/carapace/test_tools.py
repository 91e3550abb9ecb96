"""The four tools: results, errors and messages in the shapes of Carapace's own handler."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Browse, FreezeRequest, History, Retain
from scrubjay.model.rows import Freeze
from scrubjay.surfaces.carapace.memory import ScrubjayMemory
from tests.dialects.carapace.scene import MAIN, Stage

ENTRY = ["id", "type", "content", "behavioral", "tags", "supersedes", "superseded_by"]
PROVENANCE = ["session_id", "group", "created_at"]
BEHAVIORAL = {
    "preference": True,
    "fact": False,
    "instruction": True,
    "context": False,
    "correction": True,
}
UUID4 = r"mem-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


# -- memory_store ---------------------------------------------------------------------------------


def test_a_store_answers_with_the_whole_entry(stage: Stage) -> None:
    entry = stage.call("memory_store", type="fact", content="Luna", tags=["dog"])
    assert list(entry) == ENTRY + PROVENANCE
    assert re.fullmatch(UUID4, entry["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["created_at"])
    assert {name: entry[name] for name in entry if name not in ("id", "created_at")} == {
        "type": "fact",
        "content": "Luna",
        "behavioral": False,
        "tags": ["dog"],
        "supersedes": None,
        "superseded_by": None,
        "session_id": "s1",
        "group": "main",
    }


@pytest.mark.parametrize("kind", BEHAVIORAL)
def test_behavior_follows_from_the_type_alone(stage: Stage, kind: str) -> None:
    assert stage.call("memory_store", type=kind, content="x")["behavioral"] is BEHAVIORAL[kind]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("behavioral", True),
        ("behavioral", False),
        ("session_id", "s1"),
        ("group", "main"),
        ("created_at", "2026-01-01T00:00:00.000Z"),
        ("id", "mem-1"),
        ("provenance", {"group": "main"}),
        ("superseded_by", "mem-1"),
    ],
)
def test_what_the_host_fills_in_is_refused_even_when_it_is_right(
    stage: Stage, field: str, value: Any
) -> None:
    error = stage.fail("memory_store", type="preference", content="x", **{field: value})
    assert error["code"] == "VALIDATION_FAILED"
    assert f'must not have the field "{field}"' in error["message"]
    assert stage.found() == []


def test_a_text_is_stored_as_it_was_written(stage: Stage) -> None:
    text = "line 1\n\n- not a list\t<b>&amp;</b> 'quoted' \"twice\" — ünïcödé 🦎"
    assert stage.call("memory_store", type="fact", content=text)["content"] == text
    assert stage.found() == [text]


def test_the_engine_knows_it_as_the_agents_with_session_and_channel(stage: Stage) -> None:
    stage.store("Luna")
    (memory,) = stage.engine.browse(MAIN, Browse())
    assert memory.origin is Origin.AGENT
    assert memory.provenance.actor is Actor.AGENT
    assert (memory.provenance.session, memory.provenance.channel) == ("s1", "carapace")


@pytest.mark.parametrize("content", ["", "   ", "\n\t", "\u200b\u2060"])
def test_a_store_of_nothing_says_what_to_do(stage: Stage, content: str) -> None:
    error = stage.fail("memory_store", type="fact", content=content)
    assert error["code"] == "HANDLER_ERROR"
    assert "Say what is to be remembered." in error["message"]


def test_two_thousand_characters_are_stored_and_one_more_is_not(stage: Stage) -> None:
    stage.store("é" * 2000)
    error = stage.fail("memory_store", type="fact", content="é" * 2001)
    assert (error["code"], error["field"]) == ("VALIDATION_FAILED", "content")
    assert "at most 2000 characters, but has 2001" in error["message"]


def test_ten_tags_of_fifty_characters_are_stored_and_not_more(stage: Stage) -> None:
    tags = [f"{number:050}" for number in range(10)]
    assert stage.call("memory_store", type="fact", content="x", tags=tags)["tags"] == tags
    many = stage.fail("memory_store", type="fact", content="x", tags=[*map(str, range(11))])
    assert many["field"] == "tags"
    long = stage.fail("memory_store", type="fact", content="x", tags=["y" * 51])
    assert long["field"] == "tags/0"


def test_a_type_there_is_not_is_named_by_the_handler_too(stage: Stage) -> None:
    reply = stage.memory.invoke(
        "memory_store", {"type": "x", "content": "y"}, session="s", group="g"
    )
    assert reply == {
        "ok": False,
        "error": {
            "code": "HANDLER_ERROR",
            "message": 'Invalid entry type: "x"',
            "retriable": False,
        },
    }


@pytest.mark.parametrize(
    "arguments", [{}, {"type": "fact"}, {"type": "fact", "content": 3}, {"type": 5, "content": "x"}]
)
def test_the_plugin_does_not_depend_on_its_host_for_checks(stage: Stage, arguments: Any) -> None:
    reply: Any = stage.memory.invoke("memory_store", arguments, session="s", group="main")
    assert reply["error"]["code"] == "HANDLER_ERROR"


def test_an_unknown_tool_is_named_by_the_handler(stage: Stage) -> None:
    reply: Any = stage.memory.invoke("memory_dream", {}, session="s", group="main")
    assert reply["error"]["message"] == 'Unknown tool: "memory_dream"'


# -- supersedes -----------------------------------------------------------------------------------


def test_a_superseding_store_hides_the_old_entry_and_names_it(stage: Stage) -> None:
    old = stage.store("lives in Bern", tags=["home"])
    new = stage.call("memory_store", type="context", content="lives in Basel", supersedes=old)
    assert (new["supersedes"], new["superseded_by"], new["type"]) == (old, None, "context")
    assert new["tags"] == []
    assert stage.found() == ["lives in Basel"]
    assert set(stage.found(include_superseded=True)) == {"lives in Bern", "lives in Basel"}


def test_superseding_what_is_not_there_is_an_error_of_the_handler(stage: Stage) -> None:
    error = stage.fail("memory_store", type="fact", content="x", supersedes="mem-nothing")
    assert error["code"] == "HANDLER_ERROR"
    assert error["message"] == 'Superseded entry "mem-nothing" not found'
    assert stage.found() == []


def test_superseding_an_old_version_is_allowed_and_replaces_the_newest(stage: Stage) -> None:
    first = stage.store("one")
    second = stage.store("two", supersedes=first)
    third = stage.call("memory_store", type="fact", content="three", supersedes=first)
    assert third["supersedes"] == second
    assert stage.found() == ["three"]
    chain = [memory.content for memory in stage.engine.history(MAIN, History(first))]
    assert chain == ["one", "two", "three"]


def test_a_chain_may_be_longer_than_five(stage: Stage) -> None:
    """Carapace has a helper that would forbid it, and never calls it."""
    last = stage.store("version 0")
    for number in range(1, 8):
        last = stage.as_session(f"s{number}").store(f"version {number}", supersedes=last)
    assert stage.found() == ["version 7"]


def test_what_the_user_wrote_can_only_be_replaced_by_the_user(stage: Stage) -> None:
    owned = stage.engine.retain(MAIN, Retain(content="Never deploy on Friday")).id
    error = stage.fail("memory_store", type="instruction", content="Deploy!", supersedes=owned)
    assert error["code"] == "HANDLER_ERROR"
    assert "ask the user" in error["message"]
    assert stage.found() == ["Never deploy on Friday"]


# -- memory_delete --------------------------------------------------------------------------------


def test_a_delete_answers_with_the_id_and_the_entry_is_gone(stage: Stage) -> None:
    public_id = stage.store("Luna likes cheese")
    assert stage.call("memory_delete", id=public_id) == {"deleted": True, "id": public_id}
    assert stage.found(query="Luna", include_superseded=True) == []
    assert stage.call("memory_brief")["entry_count"] == 0


@pytest.mark.parametrize("public_id", ["mem-nothing", "", "../../etc/passwd", "' OR 1=1 --"])
def test_deleting_what_is_not_there_says_so(stage: Stage, public_id: str) -> None:
    error = stage.fail("memory_delete", id=public_id)
    assert error == {
        "code": "HANDLER_ERROR",
        "message": f'Memory entry "{public_id}" not found.',
        "retriable": False,
    }


def test_a_second_delete_finds_nothing(stage: Stage) -> None:
    public_id = stage.store("x")
    stage.call("memory_delete", id=public_id)
    assert "not found" in stage.fail("memory_delete", id=public_id)["message"]


def test_deleting_the_newest_version_brings_no_older_one_back(stage: Stage) -> None:
    old = stage.store("old")
    new = stage.store("new", supersedes=old)
    stage.call("memory_delete", id=new)
    assert stage.found(include_superseded=True) == []
    assert stage.call("memory_brief")["entries"] == []


def test_deleting_an_older_version_leaves_the_newest(stage: Stage) -> None:
    old = stage.store("old")
    new = stage.store("new", supersedes=old)
    stage.call("memory_delete", id=old)
    assert stage.found(include_superseded=True) == ["new"]
    assert stage.store("newer", supersedes=new)


# -- what is not the agent's fault ----------------------------------------------------------------


def test_a_frozen_group_says_so(stage: Stage) -> None:
    stage.store("x")
    stage.engine.freeze(MAIN, FreezeRequest(Freeze.WRITES))
    error = stage.fail("memory_store", type="fact", content="y")
    assert (error["code"], error["retriable"]) == ("HANDLER_ERROR", False)
    assert stage.found() == ["x"]


def test_a_closed_engine_is_an_error_of_the_plugin(stage: Stage) -> None:
    stage.engine.close()
    reply: Any = stage.memory.invoke("memory_search", {}, session="s", group="main")
    assert reply["error"]["code"] == "PLUGIN_ERROR"


# -- start-up -------------------------------------------------------------------------------------


def test_what_was_superseded_long_ago_goes_at_start_up_and_the_count_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    old = stage.store("old")
    stage.store("new", supersedes=old)
    stage.home.clock.advance(timedelta(days=91))
    later = stage.restarted()
    with caplog.at_level("INFO", logger="scrubjay"):
        later.host.start(["main"])
    (record,) = [one for one in caplog.records if one.message == "carapace.purged"]
    assert (vars(record)["superseded"], vars(record)["group"]) == (1, "main")
    assert later.found(include_superseded=True) == ["new"]


def test_what_was_superseded_lately_stays(stage: Stage) -> None:
    old = stage.store("old")
    stage.store("new", supersedes=old)
    stage.home.clock.advance(timedelta(days=89))
    later = stage.restarted()
    later.host.start(["main"])
    assert len(later.found(include_superseded=True)) == 2


def test_nothing_happens_that_the_agent_did_not_do(stage: Stage) -> None:
    """No compaction, no flush: the trail has the agent's own calls and the purge's verbs only."""
    stage.host.start(["main"])
    stage.store("one")
    stage.home.clock.advance(timedelta(days=400))
    later = stage.restarted()
    later.host.start(["main"])
    later.search(query="one")
    actors = {event.verb: event.actor for event in later.engine.audit(MAIN)}
    assert set(actors) <= {
        "open", "create", "retain", "get", "recall",
        "carapace.memory_store.routed", "carapace.memory_search.routed",
    }, actors  # fmt: skip


def test_a_plugin_is_opened_by_its_configuration(tmp_path: Any) -> None:
    from scrubjay.surfaces.carapace.memory import Config

    config = Config(storage_path=str(tmp_path / "memory"))
    memory = ScrubjayMemory.open(config)
    stored: Any = memory.invoke(
        "memory_store", {"type": "fact", "content": "kept"}, session="s", group="main"
    )
    memory.shutdown()
    again = ScrubjayMemory.open(config)
    found: Any = again.invoke("memory_search", {}, session="s", group="main")
    again.shutdown()
    assert [one["id"] for one in found["result"]["results"]] == [stored["result"]["id"]]
    assert (tmp_path / "memory" / "data").is_dir()
