"""Limits per session: 20 stores, 5 supersedes, 5 deletes, counted with what is done."""

from __future__ import annotations

from datetime import timedelta

from tests.dialects.carapace.scene import Stage

STORES = "Maximum 20 memory_store calls per session reached."
SUPERSEDES = "Maximum 5 supersedes per session reached."
DELETES = "Maximum 5 memory_delete calls per session reached."


def limited(message: str) -> dict[str, object]:
    """The error of a limit that is used up."""
    return {"code": "RATE_LIMITED", "message": message, "retriable": False}


def use_up_stores(stage: Stage) -> list[str]:
    return [stage.store(f"entry {number}") for number in range(20)]


def test_the_twenty_first_store_is_refused(stage: Stage) -> None:
    use_up_stores(stage)
    assert stage.fail("memory_store", type="fact", content="x") == limited(STORES)
    assert len(stage.found(limit=100)) == 20


def test_the_sixth_supersede_is_refused_and_plain_stores_go_on(stage: Stage) -> None:
    last = stage.store("0")
    for number in range(5):
        last = stage.store(f"{number + 1}", supersedes=last)
    error = stage.fail("memory_store", type="fact", content="x", supersedes=last)
    assert error == limited(SUPERSEDES)
    stage.store("a plain one")


def test_a_supersede_counts_as_a_store_as_well(stage: Stage) -> None:
    first = stage.store("0")
    stage.store("1", supersedes=first)
    for number in range(18):
        stage.store(f"more {number}")
    assert stage.fail("memory_store", type="fact", content="x") == limited(STORES)


def test_the_sixth_delete_is_refused_though_stores_are_used_up_too(stage: Stage) -> None:
    ids = use_up_stores(stage)
    for public_id in ids[:5]:
        stage.call("memory_delete", id=public_id)
    assert stage.fail("memory_delete", id=ids[5]) == limited(DELETES)
    assert len(stage.found(limit=100)) == 15


def test_calls_that_fail_are_free(stage: Stage) -> None:
    for _ in range(30):
        stage.fail("memory_store", type="fact", content="")
        stage.fail("memory_store", type="nonsense", content="x")
        stage.fail("memory_store", type="fact", content="x", supersedes="mem-nothing")
        stage.fail("memory_delete", id="mem-nothing")
    use_up_stores(stage)


def test_a_restart_does_not_refill_them(stage: Stage) -> None:
    ids = use_up_stores(stage)
    for public_id in ids[:5]:
        stage.call("memory_delete", id=public_id)
    later = stage.restarted()
    assert later.fail("memory_store", type="fact", content="x") == limited(STORES)
    assert later.fail("memory_delete", id=ids[5]) == limited(DELETES)


def test_they_are_each_sessions_own(stage: Stage) -> None:
    use_up_stores(stage)
    stage.as_session("s2").store("from another session")


def test_they_are_each_groups_own(stage: Stage) -> None:
    use_up_stores(stage)
    stage.as_session("s1", "other").store("the same name in another group")


def test_a_day_of_silence_begins_a_session_anew(stage: Stage) -> None:
    use_up_stores(stage)
    stage.home.clock.advance(timedelta(hours=23))
    assert stage.fail("memory_store", type="fact", content="x")["code"] == "RATE_LIMITED"
    stage.home.clock.advance(timedelta(hours=1))
    stage.store("the next day")


def test_reading_is_not_limited(stage: Stage) -> None:
    use_up_stores(stage)
    for _ in range(40):
        stage.search(query="entry")
        stage.call("memory_brief")
