"""Plugins: the contract, the host that loads them, and one of somebody else."""

from __future__ import annotations

from typing import Any

import pytest

from scrubjay.model.errors import Conflict, InvalidRequest
from scrubjay.surfaces.carapace.memory import ScrubjayMemory
from scrubjay.surfaces.carapace.wire import Code, ToolError
from scrubjay.testing.plugin_contract import MemoryPluginContract
from tests.dialects.carapace.notebook import Notebook
from tests.dialects.carapace.oddity import Oddity, answer, answer_to, host
from tests.dialects.carapace.scene import home_without_vectors
from tests.support.engines import MemoryHome


class TestScrubjayMemory(MemoryPluginContract):
    @pytest.fixture
    def plugin(self) -> Any:
        return ScrubjayMemory(home_without_vectors().engine())


class TestScrubjayMemoryWithVectors(MemoryPluginContract):
    @pytest.fixture
    def plugin(self) -> Any:
        return ScrubjayMemory(MemoryHome().engine())


class TestSomebodyElsesMemory(MemoryPluginContract):
    @pytest.fixture
    def plugin(self) -> Any:
        return Notebook()


def test_another_backend_takes_our_place_without_the_host_noticing() -> None:
    other = host(Notebook())
    stored = answer_to(other, "memory_store", type="preference", content="Prefers tea")
    assert stored["result"]["behavioral"] is True
    assert "- [preference] Prefers tea (0d ago)" in other.brief("main")


def test_several_memory_plugins_may_be_loaded_if_one_claims_the_hook() -> None:
    both = host(Notebook(), Oddity())
    assert answer(both)["result"] == "done"
    assert answer_to(both, "memory_search")["result"] == {"results": []}


def test_two_plugins_that_claim_the_hook_refuse_the_start_by_name() -> None:
    first = Oddity("first", hooks=("memory_brief",))
    second = Oddity("second", tool="other", hooks=("memory_brief",))
    with pytest.raises(Conflict, match="first and second claim the hook memory_brief"):
        host(first, second)


def test_two_plugins_with_the_same_tool_refuse_the_start_by_name() -> None:
    with pytest.raises(Conflict, match='"odd" is a tool of first and of second'):
        host(Oddity("first"), Oddity("second"))


@pytest.mark.parametrize(
    "declared",
    [
        {"arguments_schema": {"type": "object", "patternProperties": {}}},
        {"arguments_schema": {"properties": {"a": {"type": "string", "pattern": "x"}}}},
        {"arguments_schema": {"type": "list"}},
        {"arguments_schema": None},
    ],
)
def test_a_schema_that_is_not_understood_refuses_the_start(declared: Any) -> None:
    with pytest.raises(InvalidRequest):
        host(Oddity(**declared))


# -- what a plugin may answer ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply", [None, {}, "text", [], {"ok": True}, {"ok": False}, {"ok": False, "error": "x"}]
)
def test_what_is_no_reply_is_an_error_of_the_plugin(reply: Any) -> None:
    plugin = Oddity()
    plugin.reply = reply
    assert answer(host(plugin))["error"]["code"] == "PLUGIN_ERROR"


def test_what_a_plugin_raises_is_told_without_anything_of_its_inside() -> None:
    plugin = Oddity()
    plugin.reply = RuntimeError("password=hunter22 in line 3")
    error = answer(host(plugin))["error"]
    assert error["code"] == "PLUGIN_ERROR"
    assert "hunter" not in str(error)


RESERVED = [
    "UNKNOWN_TOOL",
    "VALIDATION_FAILED",
    "UNAUTHORIZED",
    "RATE_LIMITED",
    "CONFIRMATION_TIMEOUT",
    "CONFIRMATION_DENIED",
]


@pytest.mark.parametrize("code", RESERVED)
def test_a_raised_code_of_the_core_becomes_the_handlers(code: str) -> None:
    plugin = Oddity()
    plugin.reply = ToolError(Code(code), "no")
    assert answer(host(plugin))["error"]["code"] == "HANDLER_ERROR"


@pytest.mark.parametrize("code", [*RESERVED, "PLUGIN_UNAVAILABLE", "MADE_UP"])
def test_of_the_cores_codes_a_reply_may_only_have_the_limit(code: str) -> None:
    plugin = Oddity()
    plugin.reply = {"ok": False, "error": {"code": code, "message": "no", "retriable": False}}
    kept = {"RATE_LIMITED", "PLUGIN_UNAVAILABLE"}
    error = answer(host(plugin))["error"]
    assert error["code"] == (code if code in kept else "HANDLER_ERROR")
    assert error["retriable"] is False


def test_a_plugin_that_hangs_is_a_timeout_that_may_be_tried_again() -> None:
    plugin = Oddity()
    plugin.reply = "hang"
    try:
        error = answer(host(plugin, tool_seconds=0.01))["error"]
    finally:
        plugin.shutdown()
    assert (error["code"], error["retriable"]) == ("PLUGIN_TIMEOUT", True)


def test_a_reply_over_a_mebibyte_is_refused_with_advice() -> None:
    plugin = Oddity()
    plugin.reply = {"ok": True, "result": "x" * 1024 * 1024}
    error = answer(host(plugin))["error"]
    assert error["code"] == "HANDLER_ERROR"
    assert "lower limit" in error["message"]
