"""What every memory plugin of Carapace must do. Subclass the contract, give one, run pytest.

    class TestMyMemory(MemoryPluginContract):
        @pytest.fixture
        def plugin(self, tmp_path):
            return MyMemory(tmp_path)

The protocol is plain JSON both ways, so that nothing of scrubjay is needed to write a plugin. It is
described in docs/carapace.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

TOOLS = {"memory_store", "memory_search", "memory_brief", "memory_delete"}
FOUND = ["id", "type", "content", "behavioral", "tags", "created_at", "relevance_score"]
SHOWN = {"id", "type", "content", "behavioral", "tags", "age_days"}
BEHAVIORAL = {
    "preference": True,
    "fact": False,
    "instruction": True,
    "context": False,
    "correction": True,
}
ODD_QUERIES = (
    "don't",
    "C++",
    "foo-bar",
    "mem:",
    "a AND",
    "*",
    '"',
    "(",
    "NEAR(",
    "'; --",
    "\u2028",
)
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


class MemoryPluginContract:
    """The promises of the protocol, one test each."""

    @pytest.fixture
    def plugin(self) -> Any:
        """The plugin under test, with nothing in it."""
        raise NotImplementedError("Give a plugin.")

    @pytest.fixture(autouse=True)
    def _ready(self, plugin: Any) -> None:
        plugin.initialize("main")

    def test_it_has_a_name_and_a_manifest_of_four_tools(self, plugin: Any) -> None:
        provides = plugin.manifest()["provides"]
        assert plugin.name
        assert {tool["name"] for tool in provides["tools"]} >= TOOLS
        assert all(tool["arguments_schema"]["type"] == "object" for tool in provides["tools"])
        assert isinstance(provides["hooks"], list)

    def test_a_group_may_be_made_ready_again(self, plugin: Any) -> None:
        _stored(plugin, "kept")
        plugin.initialize("main")
        assert _contents(plugin) == ["kept"]

    @pytest.mark.parametrize("kind", BEHAVIORAL)
    def test_an_entry_is_stored_with_what_the_host_says_of_it(self, plugin: Any, kind: str) -> None:
        entry = _done(plugin, "memory_store", type=kind, content="one", tags=["a", "b"])
        assert entry["content"] == "one"
        assert entry["tags"] == ["a", "b"]
        assert entry["behavioral"] is BEHAVIORAL[kind]
        assert (entry["session_id"], entry["group"]) == ("s", "main")
        assert entry["supersedes"] is None

    def test_a_search_finds_by_words_and_has_seven_fields(self, plugin: Any) -> None:
        _stored(plugin, "The dog is called Luna")
        _stored(plugin, "Prefers tea to coffee")
        (first, *_) = _done(plugin, "memory_search", query="dog")["results"]
        assert list(first) == FOUND
        assert first["content"] == "The dog is called Luna"
        assert 0 <= first["relevance_score"] <= 1

    def test_scores_never_rise(self, plugin: Any) -> None:
        for content in ("tea", "tea and coffee", "coffee, tea and a newspaper", "bread"):
            _stored(plugin, content)
        found = _done(plugin, "memory_search", query="tea coffee")["results"]
        scores = [one["relevance_score"] for one in found]
        assert scores == sorted(scores, reverse=True)

    def test_without_a_query_the_newest_come_first(self, plugin: Any) -> None:
        for content in ("first", "second", "third"):
            _stored(plugin, content)
        assert _contents(plugin) == ["third", "second", "first"]
        assert _contents(plugin, limit=2) == ["third", "second"]

    def test_all_tags_must_be_there_and_the_limit_counts_what_has_them(self, plugin: Any) -> None:
        _stored(plugin, "wanted", tags=["a", "b"])
        for content in ("only a", "only a, too"):
            _stored(plugin, content, tags=["a"])
        assert _contents(plugin, tags=["a", "b"], limit=1) == ["wanted"]

    @pytest.mark.parametrize("query", ODD_QUERIES)
    def test_any_text_is_a_query(self, plugin: Any, query: str) -> None:
        _stored(plugin, "The dog is called Luna")
        assert isinstance(_done(plugin, "memory_search", query=query)["results"], list)

    def test_what_was_superseded_is_shown_only_if_asked_for(self, plugin: Any) -> None:
        old = _stored(plugin, "lives in Bern")
        new = _done(plugin, "memory_store", type="fact", content="lives in Basel", supersedes=old)
        assert new["supersedes"] == old
        assert _contents(plugin) == ["lives in Basel"]
        everything = _contents(plugin, include_superseded=True)
        assert sorted(everything) == ["lives in Basel", "lives in Bern"]

    def test_what_was_deleted_is_gone_and_cannot_be_deleted_again(self, plugin: Any) -> None:
        public_id = _stored(plugin, "wrong")
        assert _done(plugin, "memory_delete", id=public_id) == {"deleted": True, "id": public_id}
        assert _contents(plugin, include_superseded=True) == []
        assert _failed(plugin, "memory_delete", id=public_id)["code"] == "HANDLER_ERROR"

    def test_nothing_comes_back_when_its_successor_is_deleted(self, plugin: Any) -> None:
        old = _stored(plugin, "old")
        new = _done(plugin, "memory_store", type="fact", content="new", supersedes=old)["id"]
        _done(plugin, "memory_delete", id=new)
        assert _contents(plugin) == []

    def test_groups_know_nothing_of_each_other(self, plugin: Any) -> None:
        public_id = _stored(plugin, "a secret of main")
        plugin.initialize("other")
        answer = plugin.invoke("memory_search", {}, session="s", group="other")
        assert answer["result"]["results"] == []
        gone = plugin.invoke("memory_delete", {"id": public_id}, session="s", group="other")
        assert gone["ok"] is False
        assert plugin.get_brief("other")["entries"] == []
        assert _contents(plugin) == ["a secret of main"]

    def test_a_brief_has_behavior_first_and_one_line_for_each(self, plugin: Any) -> None:
        _stored(plugin, "fact\u2028with\x0ba\nbreak")
        _stored(plugin, "wish", type="preference")
        brief = plugin.get_brief("main")
        assert brief["entries"][0]["content"] == "wish"
        assert all(set(one) >= SHOWN for one in brief["entries"])
        assert not any(mark in one["content"] for one in brief["entries"] for mark in BREAKS)
        assert (brief["entry_count"], brief["brief_count"]) == (2, 2)

    def test_the_brief_tool_tells_the_same(self, plugin: Any) -> None:
        _stored(plugin, "fact")
        told = _done(plugin, "memory_brief")
        assert told["entries"] == plugin.get_brief("main")["entries"]

    def test_a_failure_is_a_reply(self, plugin: Any) -> None:
        error = _failed(plugin, "memory_dream")
        assert set(error) >= {"code", "message", "retriable"}

    def test_replies_are_json(self, plugin: Any) -> None:
        _stored(plugin, "fact")
        reply = plugin.invoke("memory_search", {}, session="s", group="main")
        assert json.loads(json.dumps(reply)) == reply
        assert json.loads(json.dumps(plugin.get_brief("main")))

    def test_it_may_be_shut_down_twice(self, plugin: Any) -> None:
        plugin.shutdown()
        plugin.shutdown()


def _done(plugin: Any, tool: str, **arguments: Any) -> Any:
    reply = plugin.invoke(tool, arguments, session="s", group="main")
    assert reply["ok"] is True, reply
    return reply["result"]


def _failed(plugin: Any, tool: str, **arguments: Any) -> Any:
    reply = plugin.invoke(tool, arguments, session="s", group="main")
    assert reply["ok"] is False, reply
    return reply["error"]


def _stored(plugin: Any, content: str, **fields: Any) -> str:
    stored = _done(plugin, "memory_store", **{"type": "fact", "content": content, **fields})
    return str(stored["id"])


def _contents(plugin: Any, **arguments: Any) -> list[str]:
    found = _done(plugin, "memory_search", **arguments)
    return [one["content"] for one in found["results"]]
