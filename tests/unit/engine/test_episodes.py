"""Where episodes begin follows from all turns, not from those a reader happens to look at."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scrubjay.model.pages import Paged
from scrubjay.model.requests import Forget
from scrubjay.model.turns import EPISODE_TURNS, IDLE, Record
from tests.support.engines import MemoryHome
from tests.unit.engine.saying import said
from tests.unit.engine.scene import ALICE

PAUSES = st.lists(st.sampled_from([1, 1, 1, 1, 1, 1, 1, 1, 29, 30, 90]), max_size=260)


def starts(times: list[datetime]) -> list[datetime]:
    """When the episodes of all turns begin, by the rule itself."""
    found: list[datetime] = []
    size = 0
    for number, at in enumerate(times):
        if not number or size == EPISODE_TURNS or at - times[number - 1] >= IDLE:
            found.append(at)
            size = 0
        size += 1
    return found


@given(pauses=PAUSES, limit=st.integers(1, 260), seed=st.randoms(), gone=st.integers(0, 30))
def test_whatever_window_one_looks_through_episodes_begin_where_they_do(
    pauses: list[int], limit: int, seed: object, gone: int
) -> None:
    minute, records = 0, []
    for number, pause in enumerate([0, *pauses]):
        minute += pause
        records.append(Record(id=f"t{number}", at=said(minute, "").at, user="ok"))
    engine = MemoryHome().engine()
    for one in seed.sample(records, len(records)):  # type: ignore[attr-defined]
        engine.record(ALICE, one)
    forgotten = {str(one.id) for one in records[:: gone or len(records) + 1]}
    if forgotten:
        engine.forget(ALICE, Forget(ids=tuple(forgotten)))
    times = [one.at for one in records if one.id not in forgotten and one.at]
    timeline = engine.timeline(ALICE, Paged(limit))
    groups = timeline.episodes()
    seen = [group[0].at for group in groups][1 if timeline.begun else 0 :]
    assert seen == [at for at in starts(times) if at in times[-limit:]]
    if timeline.begun:
        first = max(at for at in starts(times) if at < groups[0][0].at)
        assert timeline.begun == times.index(groups[0][0].at) - times.index(first)


def test_a_closed_episode_stays_as_it_is_while_the_conversation_goes_on() -> None:
    engine = MemoryHome().engine()
    start = said(0, "").at
    assert start is not None
    closed: dict[str, int] = {}
    for number in range(300):
        at = start + timedelta(minutes=number)
        engine.record(ALICE, Record(id=f"t{number}", at=at, user="ok"))
        timeline = engine.timeline(ALICE, Paged(100))
        whole = timeline.episodes()[1 if timeline.begun else 0 : -1]
        for group in whole:
            assert closed.setdefault(group[0].id, len(group)) == len(group) == EPISODE_TURNS
    assert sorted(closed) == sorted(f"t{number}" for number in range(0, 280, EPISODE_TURNS))
