"""The register of requests: due dates, answers, and an alarm before one is late."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from scrubjay.surfaces.personal.register import Register
from tests.dialects.personal.conftest import Person


@pytest.mark.parametrize(
    ("right", "days"),
    [("access", 1), ("erasure", 30), ("rectification", 30), ("portability", 30)],
)
def test_a_request_has_the_due_date_of_its_right(alice: Person, right: str, days: int) -> None:
    made = alice.owner.do("requests", right=right)
    times = (datetime.fromisoformat(made[name]) for name in ("received_at", "due_at"))
    received, due = times
    assert due - received == timedelta(days=days)
    assert alice.admin.look("requests")["data"] == [made]


def test_an_open_request_that_is_nearly_late_raises_the_alarm_and_an_answer_ends_it(
    alice: Person,
) -> None:
    register = Register(alice.engine, alice.clock)
    made = alice.owner.do("requests", right="access")

    def alarmed() -> bool:
        return made["id"] in [one.id for one in register.alarms()]

    assert not alarmed()
    alice.clock.advance(seconds=19 * 3600)
    assert alarmed()
    assert alice.admin.do(f"requests/{made['id']}")["answered_at"]
    assert not alarmed()


def test_a_request_outlives_the_memory_it_is_about(alice: Person) -> None:
    alice.store("Alice drinks tea")
    made = alice.owner.do("requests", right="erasure")
    token = alice.owner.do("destroy")["confirmation_token"]
    alice.owner.do("destroy", confirmation_token=token)
    assert [one["id"] for one in alice.owner.look("requests")["data"]] == [made["id"]]


def test_a_request_of_another_person_is_not_there(alice: Person, bob: Person) -> None:
    made = alice.owner.do("requests", right="access")
    assert bob.owner.refused(f"requests/{made['id']}") == (404, "not_found")
    assert bob.owner.look("requests")["data"] == []
