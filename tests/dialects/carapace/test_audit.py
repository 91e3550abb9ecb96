"""The record: every call, refused ones too, with session and group, and without content."""

from __future__ import annotations

import logging

import pytest

from scrubjay.model.scope import Scope
from scrubjay.surfaces.carapace.call_audit import CallOutcome, CallRecord, lines
from scrubjay.surfaces.carapace.wire import Code
from tests.dialects.carapace.oddity import Oddity
from tests.dialects.carapace.scene import MAIN, Stage
from tests.support.engines import MemoryHome

FIELDS = ["seq", "timestamp", "group", "source", "topic", "stage", "outcome"]


def told(stage: Stage) -> list[tuple[object, ...]]:
    return [
        (line["topic"], line["stage"], line["outcome"], line.get("error"))
        for line in lines(stage.engine, stage.session.group)
    ]


def test_calls_that_went_well_are_in_it_reads_included(stage: Stage) -> None:
    public_id = stage.store("x")
    stage.search(query="x")
    stage.call("memory_brief")
    stage.call("memory_delete", id=public_id)
    tools = ["memory_store", "memory_search", "memory_brief", "memory_delete"]
    assert told(stage) == [(f"tool.invoke.{tool}", "route", "routed", None) for tool in tools]


def test_calls_that_were_refused_are_in_it_with_the_stage_and_the_code(stage: Stage) -> None:
    stage.send("nonsense", {})
    stage.send("tool.invoke.dream", {})
    stage.fail("memory_search", limit=1000)
    stage.fail("memory_delete", id="mem-1")
    assert told(stage) == [
        ("tool.invoke.other", "topic", "rejected", {"code": "UNKNOWN_TOOL"}),
        ("tool.invoke.other", "topic", "rejected", {"code": "UNKNOWN_TOOL"}),
        ("tool.invoke.memory_search", "payload", "rejected", {"code": "VALIDATION_FAILED"}),
        ("tool.invoke.memory_delete", "route", "error", {"code": "HANDLER_ERROR"}),
    ]


def test_a_used_up_limit_is_in_it_as_an_error_of_the_route(stage: Stage) -> None:
    for number in range(20):
        stage.store(f"{number}")
    stage.fail("memory_store", type="fact", content="x")
    limited = ("tool.invoke.memory_store", "route", "error", {"code": "RATE_LIMITED"})
    assert told(stage)[-1] == limited


def test_what_is_no_message_is_in_it(stage: Stage) -> None:
    stage.host.answer(b"\xff", stage.session)
    (line,) = lines(stage.engine, "main")
    assert (line["outcome"], line["error"]) == ("rejected", {"code": "VALIDATION_FAILED"})


def test_a_line_has_the_fields_of_carapaces_log_and_counts_from_one(stage: Stage) -> None:
    for _ in range(3):
        stage.search()
    found = list(lines(stage.engine, "main"))
    assert [list(line) for line in found] == [FIELDS] * 3
    assert [line["seq"] for line in found] == [1, 2, 3]
    assert found[0]["group"] == "main"


def test_sessions_are_told_apart_by_pseudonyms(stage: Stage) -> None:
    stage.search()
    stage.as_session("s2").search()
    stage.search()
    sources = [line["source"] for line in lines(stage.engine, "main")]
    assert sources[0] == sources[2] != sources[1]
    assert "s1" not in sources


def test_a_call_is_in_the_trail_of_its_group_alone(stage: Stage) -> None:
    stage.search()
    stage.as_session("s1", "other").search()
    assert len(list(lines(stage.engine, "main"))) == 1
    assert len(list(lines(stage.engine, "other"))) == 1


def test_no_content_is_in_it(stage: Stage) -> None:
    stage.store("a very private thing", tags=["private"])
    stage.search(query="private thing")
    assert "private" not in str(stage.engine.audit(MAIN))


def test_the_trail_is_whole_afterwards_and_after_a_restart(stage: Stage) -> None:
    stage.store("x")
    stage.fail("memory_search", limit=0)
    later = stage.restarted()
    later.search()
    assert later.engine.verify_audit(MAIN).sound
    assert len(list(lines(later.engine, "main"))) == 3


def test_a_record_that_cannot_be_written_costs_a_warning_and_not_the_answer(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(record: CallRecord) -> None:
        raise RuntimeError

    stage.host.pipeline._record = fail
    assert stage.search() == []
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == [
        "carapace.not_recorded"
    ]


@pytest.mark.parametrize("tool", ["", "UPPER", "with space", "x" * 30, "a.b", "memory_store"])
@pytest.mark.parametrize("code", [None, *Code])
def test_every_record_has_a_name_the_trail_takes(tool: str, code: Code | None) -> None:
    engine = MemoryHome().engine()
    record = CallRecord(group="g", session="s", tool=tool, outcome=CallOutcome.REJECTED, code=code)
    from scrubjay.surfaces.carapace.call_audit import AuditRecorder

    AuditRecorder(engine)(record)
    assert engine.audit(Scope("local", "g"))[-1].verb == record.verb
    assert len(list(lines(engine, "g"))) == 1


def test_another_plugins_calls_are_recorded_by_the_same_host(stage: Stage) -> None:
    from scrubjay.surfaces.carapace.call_audit import AuditRecorder
    from scrubjay.surfaces.carapace.host import Host

    stage.host = Host(
        [stage.memory, Oddity()], stage.home.clock, record=AuditRecorder(stage.engine)
    )
    stage.call("odd")
    assert told(stage) == [("tool.invoke.odd", "route", "routed", None)]
