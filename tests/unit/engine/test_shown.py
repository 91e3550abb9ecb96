"""The echo guard of record: what memory showed is not remembered again, at any door."""

from __future__ import annotations

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.requests import MarkTainted
from scrubjay.model.turns import SHOWN_TEXTS, Record
from tests.support.engines import MemoryHome
from tests.unit.engine.saying import record
from tests.unit.engine.scene import ALICE, address, contents, forget, retain

FACT = "The dentist of Alice is Doctor Ames in the Harbor Street"
ANSWER = f"{FACT}. I have booked the train for nine o'clock."
REST = "I have booked the train for nine o'clock."


def answers(engine: Kernel) -> list[str]:
    """What was answered in the turns that are kept, oldest first."""
    return [turn.assistant for turn in engine.turns(ALICE)][::-1]


def test_an_answer_is_kept_without_what_memory_had_shown(engine: Kernel) -> None:
    record(engine, 1, "Who is my dentist, and when is the train?", ANSWER, shown=[f"- {FACT} (3d)"])
    assert answers(engine) == [REST]
    assert "Ames" not in "\n".join(contents(engine))


def test_what_was_shown_earlier_in_the_session_counts_as_well(engine: Kernel) -> None:
    record(engine, 1, "Good morning, is there anything new?", "No.", session="s", shown=[FACT])
    record(engine, 2, "Who is my dentist, and when is the train?", ANSWER, session="s")
    record(engine, 3, "Who is my dentist, and the train?", ANSWER, session="other")
    assert answers(engine) == ["No.", REST, ANSWER]


def test_the_words_of_the_user_stay_the_users(engine: Kernel) -> None:
    record(engine, 1, f"{FACT}, remember that.", "I will.", session="s", shown=[FACT])
    assert next(iter(engine.turns(ALICE))).user == f"{FACT}, remember that."


def test_a_fact_that_was_shown_and_repeated_is_gone_when_it_is_forgotten(engine: Kernel) -> None:
    """Without the guard the answer would keep it, whoever records it."""
    fact = retain(engine, FACT)
    record(engine, 1, "Who is my dentist, and when is the train?", ANSWER, shown=[FACT])
    forget(engine, fact)
    assert "Ames" not in "\n".join([*contents(engine), *answers(engine)])


def test_of_what_was_shown_no_text_is_kept(engine: Kernel, home: MemoryHome) -> None:
    record(engine, 1, "Who is my dentist?", "Yes.", session="s", shown=[FACT])
    engine.mark_tainted(ALICE, MarkTainted("s"))
    opened = engine._open(ALICE)

    def bodies() -> list[bytes]:
        from scrubjay.engine.scope.views import changes
        from scrubjay.model.rows import Collection

        return opened.read(
            lambda view: [
                opened.open_body(Collection.SESSION, row)
                for row in changes(view, Collection.SESSION)
                if not row.erased
            ]
        )

    assert any(b'"shown"' in body for body in bodies())
    assert not any(b"Ames" in body or b"ames" in body for body in bodies())
    assert b"Ames" not in b"".join(piece for _, piece in home.store.raw(address(home)))
    record(engine, 2, "And who is my dentist now?", ANSWER, session="s")
    assert answers(engine)[-1] == REST


def test_only_the_latest_of_what_was_shown_is_known(engine: Kernel) -> None:
    many = [f"Sentence number {number} that memory has shown." for number in range(600)]
    record(engine, 1, "Good morning, is there anything new?", "No.", session="s", shown=many)
    answer = f"{many[0]} {many[-1]}"
    record(engine, 2, "Please tell me what you know about it.", answer, session="s")
    assert answers(engine)[-1] == many[0]


@pytest.mark.parametrize("shown", [[1], ["x"] * (SHOWN_TEXTS + 1), ["\ud800"]])
def test_what_is_no_list_of_texts_is_refused(shown: object) -> None:
    with pytest.raises(InvalidRequest):
        Record("Hello", shown=shown)  # type: ignore[arg-type]
