"""What every handle on a scope must do with turns and sessions; part of the surface contract."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scrubjay.domain.errors import InvalidRequest
from scrubjay.domain.origin import Origin
from scrubjay.domain.results import Outcome
from scrubjay.domain.turns import State

Handle = Any
"""Whatever has the verbs of `Jay`; layers keep its class out of here."""
_TEA = "Alice prefers green tea in the morning"


class LedgerContract:
    """The verbs on turns and sessions."""

    def test_a_turn_is_kept_as_it_was_said(self, handle: Handle) -> None:
        said = {
            "user": "I prefer green tea.",
            "assistant": "Noted.",
            "at": datetime(2026, 5, 1, 8, 30, tzinfo=UTC),
            "session": "s/1",
            "model": "m-1",
            "channel": "chat",
            "metadata": {"cups": 2, "deep": [{"a": None}, "ü"]},
        }
        receipt = handle.record(id="turn-1", **said)
        assert (receipt.id, receipt.outcome, receipt.state) == (
            "turn-1",
            Outcome.STORED,
            State.KEPT,
        )
        (turn,) = handle.turns()
        assert {name: getattr(turn, name) for name in said} == said
        assert (turn.id, turn.origin) == ("turn-1", Origin.USER)

    def test_what_follows_from_a_turn_is_remembered(self, handle: Handle) -> None:
        receipt = handle.record("I prefer green tea.", "Noted.", session="s1")
        derived = {memory.id: memory for memory in handle.browse(session="s1")}
        assert set(receipt.memories) == set(derived)
        assert "I prefer green tea." in [memory.content for memory in derived.values()]

    def test_the_same_id_records_once_and_no_id_is_another_turn(self, handle: Handle) -> None:
        outcomes = [handle.record("Tell me of Rome.", id="turn-1").outcome for _ in range(2)]
        assert outcomes == [Outcome.STORED, Outcome.KNOWN]
        for _ in range(2):
            assert handle.record("Tell me of Rome.").outcome is Outcome.STORED
        assert len(handle.turns()) == 3

    def test_turns_are_paged_by_the_last_one_and_none_is_left_out(self, handle: Handle) -> None:
        there = datetime(2026, 5, 1, tzinfo=UTC)
        for number in range(7):  # pairs of one moment
            at = there + timedelta(seconds=number // 2)
            session = "odd" if number % 2 else "even"
            handle.record(f"Tell me of {number}.", id=f"t-{number}", at=at, session=session)
        seen: list[str] = []
        page = handle.turns(2)
        while page:
            seen += [turn.id for turn in page]
            page = handle.turns(2, before=page[-1])
        assert sorted(seen) == [f"t-{number}" for number in range(7)]
        assert {turn.id for turn in handle.turns(before=there + timedelta(seconds=1))} == {
            "t-0",
            "t-1",
        }
        odd = handle.turns(session="odd", before=there + timedelta(seconds=2))
        assert [turn.id for turn in odd] == ["t-3", "t-1"]

    def test_the_timeline_says_when_and_roughly_what_about(self, handle: Handle) -> None:
        there = datetime(2026, 5, 1, tzinfo=UTC)
        for number in range(3):
            at = there + timedelta(minutes=number)
            handle.record(f"Tell me of planet {number}.", id=f"t-{number}", at=at)
        line = handle.timeline(2)
        assert [moment.id for moment in line.moments] == ["t-1", "t-2"]
        assert (line.earlier, line.since) == (1, there)
        assert (line.moments[0].gist, line.moments[0].state) == (
            "Tell me of planet 1.",
            State.KEPT,
        )

    def test_sessions_are_listed_newest_first_with_what_is_kept_of_them(
        self, handle: Handle
    ) -> None:
        first, last = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)
        handle.retain(_TEA, session="old", said_at=first)
        handle.record("Tell me of Rome.", at=last, session="old")
        handle.retain("Alice lives in Rome")
        handle.retain("tea", session="new/1", said_at=last + timedelta(days=1))
        handle.mark_tainted("new/1", "web")
        new, old = handle.sessions()
        assert (new.name, new.memories, new.turns, new.tainted) == ("new/1", 1, 0, Origin.WEB)
        assert (old.name, old.first, old.last, old.turns) == ("old", first, last, 1)
        assert (old.memories, old.tainted) == (len(handle.browse(session="old")), None)
        assert handle.sessions(1) == (new,)

    def test_a_session_that_is_forgotten_is_listed_no_more(self, handle: Handle) -> None:
        handle.record("Tell me of Rome.", session="s1")
        handle.retain(_TEA, session="s2")
        handle.forget(session="s1")
        assert [session.name for session in handle.sessions()] == ["s2"]
        assert handle.turns() == ()

    @pytest.mark.parametrize("limit", [0, -1, 10**6, True])
    def test_a_limit_that_is_none_is_refused(self, handle: Handle, limit: int) -> None:
        for verb in (handle.turns, handle.timeline, handle.sessions):
            with pytest.raises(InvalidRequest):
                verb(limit)

    def test_a_turn_that_cannot_be_written_is_refused(self, handle: Handle) -> None:
        for wrong in ({"id": "no spaces"}, {"origin": "nobody"}, {"session": " "}):
            with pytest.raises(InvalidRequest):
                handle.record(user="tea", **wrong)
        assert handle.turns() == ()
