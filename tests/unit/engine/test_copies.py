"""Forget and copies: what says the same goes along, what only resembles it is shown and stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.conversations import Append, ReadConversation
from scrubjay.model.documents import Put
from scrubjay.model.errors import Conflict, NeedsConfirmation
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import Forget, FreezeRequest, Load, Recall, Restore, Retain
from scrubjay.model.results import Outcome, Preview
from scrubjay.model.rows import Collection
from scrubjay.model.turns import Turn, rest_id
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.saying import record, said, turn_rows
from tests.unit.engine.scene import ALICE, address, contents, everything, forget, retain, supersede

FACT = "The dentist of Alice is Dr. Ames in the Harbor Street"
ANSWER = f"Of course. {FACT}! The train leaves at nine from the main station."
REST = "Of course. The train leaves at nine from the main station."


def preview(engine: Kernel, *ids: str, **target: object) -> Preview:
    """What forgetting these would erase."""
    return engine.preview(ALICE, Forget(ids=ids, **target))  # type: ignore[arg-type]


def turns(engine: Kernel) -> list[Turn]:
    """Every turn, oldest first."""
    return list(engine.turns(ALICE))[::-1]


def everywhere(engine: Kernel) -> str:
    """All that a scope says: memories, turns, timeline and answers."""
    told = [memory.content for memory in everything(engine)]
    told += [text for turn in turns(engine) for text in (turn.user, turn.assistant)]
    told += [moment.gist for moment in engine.timeline(ALICE).moments]
    asked = Recall("Who is the dentist of Alice in the Harbor Street?")
    return "\n".join([*told, *(hit.memory.content for hit in engine.recall(ALICE, asked))])


def test_a_fact_that_was_repeated_in_an_answer_is_gone_with_its_copies(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    record(engine, 1, "When does the train leave, and who was my dentist?", ANSWER)
    receipt = forget(engine, fact, copies=True)
    assert "Ames" not in everywhere(engine)
    assert [turn.assistant for turn in turns(engine)] == [REST]
    assert any("The train leaves at nine" in one for one in contents(engine))
    assert (receipt.copies, receipt.erased) == (1, 3)  # the fact, the turn and its episode
    assert engine.verify(ALICE).sound
    assert engine.verify_erased(ALICE, receipt).sound


@pytest.mark.parametrize(
    "answer",
    [
        f"You said: {FACT}.",
        f"As you told me, {FACT}; anything else?",
        f'In your words, "{FACT}", so I looked there.',
        f"Found it — {FACT} — in my notes.",
        f"你说过：{FACT}。",  # noqa: RUF001 - punctuation of another script
    ],
)
def test_a_fact_that_an_answer_introduces_is_gone_with_its_copies(
    engine: Kernel, answer: str
) -> None:
    """Whatever stands before it in the sentence: what is between marks is compared."""
    fact = retain(engine, FACT)
    record(engine, 1, "Who was my dentist?", answer)
    engine.append(ALICE, Append("talk", [{"body": {"text": answer}}]))
    engine.put(ALICE, Put(("notes", "a"), [answer], indexed=True))
    forget(engine, fact, copies=True)
    assert "Ames" not in everywhere(engine)
    assert "Ames" not in engine.export(ALICE).content.decode()
    assert engine.verify(ALICE).sound


def test_a_message_that_a_sentence_is_cut_out_of_is_still_one_that_a_model_takes(
    engine: Kernel,
) -> None:
    """The arguments of a call are JSON in a text, and stay that; no text is left empty."""
    fact, called = retain(engine, FACT), {"content": FACT, "tags": ["health"], "of": {"who": FACT}}
    body = {"text": f"{FACT}.", "arguments": json.dumps(called), "broken": f'{{"a": "{FACT}'}
    key = json.dumps({FACT: True})
    engine.append(ALICE, Append("talk", [{"body": {**body, "key": key}}]))
    assert forget(engine, fact, copies=True).copies == 5
    (entry,) = engine.conversation(ALICE, ReadConversation("talk")).entries
    left: Any = entry.body
    assert left["text"] == "[…]"
    cut = {"content": "[…]", "tags": ["health"], "of": {"who": "[…]"}}
    assert json.loads(left["arguments"]) == cut
    assert "Ames" not in engine.export(ALICE).content.decode()


def test_a_title_that_is_the_beginning_of_a_forgotten_sentence_goes_too(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    for name, title in (("cut", f"Note: {FACT[:40]}"), ("short", "Note: The dentist of")):
        engine.append(ALICE, Append(name, [{"body": {"text": "hello"}}], title=title))
    assert forget(engine, fact, copies=True).copies == 1
    titles = {one.name: one.title for one in engine.conversations(ALICE)}
    assert titles == {"cut": "Note:", "short": "Note: The dentist of"}


def test_a_preview_says_in_numbers_what_goes_and_whether_copies_go_only_with_its_token(
    engine: Kernel,
) -> None:
    page = retain(engine, FACT, origin=Origin.WEB)
    engine.append(ALICE, Append("talk", [{"body": {"text": FACT}}]))
    assert preview(engine, page).in_words() == "1 memory"
    shown = preview(engine, page, copies=True)
    assert (shown.asks, shown.in_words()) == (True, "1 memory (sentences that say it: 1)")
    engine.append(ALICE, Append("other", [{"body": {"text": "hello"}}]))
    record(engine, 1, "ok", "ok")
    turn = preview(engine, "turn-1")
    assert (bool(turn), turn.turns) == (True, 1)
    alone = engine.preview(ALICE, Forget(session="other"))
    assert bool(alone)
    assert "messages: " in alone.in_words()


def test_a_statement_goes_with_the_sentence_that_it_tells_in_other_words(engine: Kernel) -> None:
    record(engine, 1, "Good to know: my dentist is Dr. Ames in the harbor. It rains here.")
    (statement,) = [one for one in everything(engine) if one.kind is Kind.FACT]
    assert statement.content == "User's dentist is Dr. Ames in the harbor."
    forget(engine, statement.id, copies=True)
    assert "Ames" not in everywhere(engine)
    assert [turn.user for turn in turns(engine)] == ["It rains here."]


def test_without_asking_for_copies_they_stay_and_the_preview_names_them(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    copy = retain(engine, "  the DENTIST of alice is dr ames, in the harbor street… ")
    record(engine, 1, "Who was my dentist?", ANSWER)
    shown = preview(engine, fact)
    assert [one.id for one in shown.copies] == [copy]
    assert [one.turn for one in shown.sentences] == ["turn-1"]
    assert [one.id for one in shown.memories] == [fact]
    assert forget(engine, fact, confirm=shown.token).copies == 0
    assert "Ames" in everywhere(engine)


def test_a_paraphrase_is_shown_as_near_and_stays(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    near = retain(engine, "Alice goes to Dr. Ames, her dentist in the Harbor Street, every May")
    shown = preview(engine, fact, copies=True)
    assert (shown.copies, [one.id for one in shown.near]) == ((), [near])
    forget(engine, fact, copies=True)
    assert [memory.id for memory in everything(engine)] == [near]
    engine.freeze(ALICE, FreezeRequest("all"))
    assert preview(engine, near).near == ()


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        (FACT.upper(), True),
        (f"{FACT}.", True),
        ("The dentist of Alice is Dr Ames in the Harbor Street", True),
        (FACT.replace("The", "\uff34he"), True),  # full width
        (f"{FACT} or near it", False),
        (f"I think {FACT}", False),
        ("The dentist of Alice", False),
    ],
)
def test_a_copy_is_equal_after_normalization(engine: Kernel, text: str, copied: bool) -> None:
    fact = retain(engine, FACT)
    retain(engine, text)
    record(engine, 1, f"Please look this up for me again now.\n{text}\nThank you for it.", "Done.")
    shown = preview(engine, fact)
    assert (len(shown.copies), len(shown.sentences)) == (copied, copied)


def test_short_texts_are_anybodys_and_have_no_copies(engine: Kernel) -> None:
    tea = retain(engine, "Alice drinks tea")
    retain(engine, "Alice drinks tea")
    shown = preview(engine, tea, copies=True)
    assert (shown.copies, shown.sentences) == ((), ())


def test_each_sentence_of_what_is_forgotten_is_cut_out_of_turns(engine: Kernel) -> None:
    two = retain(engine, f"{FACT}. Her telephone there is five five five one.")
    record(engine, 1, "Her telephone there is five five five one! And the weather is fine.", "Yes.")
    assert forget(engine, two, copies=True).copies == 1
    assert [turn.user for turn in turns(engine)] == ["And the weather is fine."]


def test_what_it_said_before_a_correction_has_copies_too(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    retain(engine, FACT)
    new = supersede(engine, fact, "The dentist of Alice is Dr. Brown")
    assert forget(engine, new, copies=True).copies == 1
    assert everything(engine) == []


def test_what_was_noted_from_a_forgotten_turn_has_copies(engine: Kernel) -> None:
    record(engine, 1, "My favorite color of all is ultramarine blue.")
    record(engine, 2, "Which paint?", "My favorite color of all is ultramarine blue. You said so.")
    assert forget(engine, "turn-1", copies=True).copies == 1
    assert "ultramarine" not in everywhere(engine)


def test_what_another_turn_stated_before_a_forgotten_one_has_no_copies_taken(
    engine: Kernel,
) -> None:
    record(engine, 1, "My favorite color of all is ultramarine blue.")
    retain(engine, "My favorite color of all is ultramarine blue.")
    record(engine, 2, "My favorite color of all is emerald green now.")
    assert forget(engine, "turn-2", copies=True).copies == 0
    assert "ultramarine" in everywhere(engine)


def test_what_was_derived_from_a_copy_goes_with_it(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    copy = retain(engine, FACT)
    retain(engine, "Alice has a dentist", kind=Kind.SUMMARY, sources=(copy,))
    receipt = forget(engine, fact, copies=True)
    assert everything(engine) == []
    assert (receipt.erased, receipt.derived, receipt.copies) == (3, 1, 1)


def test_more_than_a_hundred_copies_need_the_token_of_a_preview(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    for _ in range(101):
        retain(engine, FACT)
    with pytest.raises(NeedsConfirmation):
        forget(engine, fact, copies=True)
    assert len(everything(engine)) == 102
    shown = preview(engine, fact, copies=True)
    assert forget(engine, fact, copies=True, confirm=shown.token).copies == 101
    assert everything(engine) == []


def test_a_copy_that_is_trusted_more_needs_the_token_of_a_preview(engine: Kernel) -> None:
    """Else a web page that was noted could take the user's own words along."""
    page = retain(engine, FACT, origin=Origin.WEB)
    own = retain(engine, FACT)
    with pytest.raises(NeedsConfirmation):
        forget(engine, page, copies=True)
    record(engine, 1, f"{FACT}.", "All right.")
    shown = preview(engine, page, copies=True)
    retain(engine, FACT)
    with pytest.raises(Conflict):  # it is not what was shown any more
        forget(engine, page, copies=True, confirm=shown.token)
    token = preview(engine, page, copies=True).token
    forget(engine, page, copies=True, confirm=token)
    assert own not in {memory.id for memory in everything(engine)}
    assert forget(engine, retain(engine, FACT), copies=True).copies == 0


def test_the_token_tells_cutting_from_erasing_a_whole_turn(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    record(engine, 1, "Who was my dentist?", ANSWER)
    cut = preview(engine, fact, copies=True).token
    episodes = [memory.id for memory in everything(engine) if memory.kind is Kind.EPISODE]
    with pytest.raises(Conflict):
        forget(engine, fact, "turn-1", *episodes, confirm=cut)


def test_a_cut_turn_does_not_come_back_by_replay_load_or_restore(engine: Kernel) -> None:
    fact = retain(engine, FACT)
    record(engine, 1, "When does the train leave?", ANSWER)
    exported, (raw, receipt) = engine.export(ALICE).content, engine.backup(ALICE)
    forget(engine, fact, copies=True)
    assert record(engine, 1, "When does the train leave?", ANSWER).outcome is Outcome.FORGOTTEN
    engine.load(ALICE, Load(exported))
    engine.restore(ALICE, Restore(raw, receipt.key))
    assert "Ames" not in everywhere(engine)
    assert [turn.id for turn in turns(engine)] == [rest_id("turn-1")]


def test_forgetting_a_turn_by_its_first_id_takes_what_was_left_of_it(engine: Kernel) -> None:
    fact, tea = (
        retain(engine, FACT),
        retain(engine, "The train leaves at nine from the main station"),
    )
    record(engine, 1, "When does the train leave, please?", ANSWER)
    forget(engine, fact, copies=True)
    forget(engine, tea, copies=True)  # cut twice
    assert [turn.assistant for turn in turns(engine)] == ["Of course."]
    forget(engine, "turn-1")
    assert turns(engine) == []
    assert everything(engine) == []


def test_what_was_forgotten_of_a_turn_by_itself_is_not_derived_from_its_rest(
    engine: Kernel,
) -> None:
    fact = retain(engine, FACT)
    record(engine, 1, f"My favorite color of all is ultramarine blue. {FACT}.")
    noted = next(one for one in everything(engine) if one.kind not in (Kind.EPISODE, Kind.FACT))
    forget(engine, noted.id)
    forget(engine, fact, copies=True)
    assert [turn.user for turn in turns(engine)] == [
        "My favorite color of all is ultramarine blue."
    ]
    kinds = {memory.kind for memory in everything(engine)}
    assert kinds == {Kind.EPISODE}


def test_a_turn_of_which_nothing_is_left_is_gone(engine: Kernel, home: MemoryHome) -> None:
    fact = retain(engine, FACT)
    record(engine, 1, f"{FACT}.", "")
    forget(engine, fact, copies=True)
    assert (turns(engine), everything(engine)) == ([], [])
    assert all(row.erased for row in turn_rows(home))


def test_a_damaged_turn_hinders_no_erasure(engine: Kernel, home: MemoryHome) -> None:
    fact = retain(engine, FACT)
    record(engine, 1, "Who was my dentist?", ANSWER)
    record(engine, 2, "Hello there, what is the weather going to be?", "It will rain tomorrow.")
    rows = turn_rows(home)

    def damage(tx: object) -> None:
        from msgspec.structs import replace

        row = rows[1]
        cell = bytes([*(row.cell or b"")[:-1], (row.cell or b"\0")[-1] ^ 1])
        tx.reseal(Collection.TURN, [(row, replace(row, cell=cell))])  # type: ignore[attr-defined]

    home.store.write(address(home), damage)
    assert forget(engine, fact, copies=True).copies == 1


def test_a_copy_that_comes_while_the_scope_is_searched_goes_too(
    engine: Kernel, home: MemoryHome
) -> None:
    """The search opens the whole scope before the transaction, which looks at what is newer."""
    fact = retain(engine, FACT)
    retain(engine, FACT)
    record(engine, 1, "When does the train leave?", ANSWER)
    other, write = home.engine(), home.store.write

    def late(*args: object, **more: object) -> object:
        home.store.write = write  # type: ignore[method-assign]
        retain(other, FACT)
        record(other, 2, "When does the train to Oslo leave?", ANSWER)
        return write(*args, **more)  # type: ignore[arg-type]

    home.store.write = late  # type: ignore[method-assign, assignment]
    assert forget(engine, fact, copies=True).copies == 4
    assert "Ames" not in everywhere(engine)


POINTS = [
    Failpoint.STORE_BEFORE_COMMIT,
    Failpoint.FORGET_COMMITTED,
    Failpoint.FORGET_PUSHED,
    Failpoint.ROTATE_SLOT_ADDED,
    Failpoint.ROTATE_BATCH_SEALED,
    Failpoint.ROTATE_RESEALED,
    Failpoint.ROTATE_SLOT_DELETED,
]


@pytest.mark.parametrize("dies", POINTS)
def test_a_crash_cuts_every_copy_or_none(dies: Failpoint) -> None:
    home = MemoryHome()
    engine = home.engine()
    fact = retain(engine, FACT)
    retain(engine, FACT)
    retain(engine, "Something else that stays")
    record(engine, 1, "When does the train leave?", ANSWER)
    home.crashes.at(dies)
    with pytest.raises(SimulatedCrash):
        forget(engine, fact, copies=True)
    engine = home.engine()
    committed = dies not in (Failpoint.STORE_BEFORE_COMMIT, Failpoint.ROTATE_SLOT_ADDED)
    assert ("Ames" in everywhere(engine)) is not committed
    assert len(turns(engine)) == 1
    if not committed:
        forget(engine, fact, copies=True)
    engine.rotate(ALICE)
    assert "Ames" not in everywhere(engine)
    assert engine.verify(ALICE).sound


def test_no_byte_of_a_cut_sentence_is_left(engine: Kernel, home: MemoryHome) -> None:
    """The rows are sealed anyway; so it is the cells of the receipt that must be gone."""
    fact = retain(engine, FACT)
    record(engine, 1, "When does the train leave?", ANSWER)
    before = [row.cell for row in turn_rows(home) if row.cell]
    receipt = forget(engine, fact, copies=True)
    collections = {cell.collection for cell in receipt.cells}
    assert collections == {"memory", "turn", "session"}
    raw = b"".join(piece for _, piece in home.store.raw(address(home)))
    assert not any(cell in raw for cell in before)
    assert engine.verify_erased(ALICE, receipt).sound


def test_an_import_of_the_same_text_is_no_copy_of_another_scope(engine: Kernel) -> None:
    from tests.unit.engine.scene import BOB

    fact = retain(engine, FACT)
    engine.retain(BOB, Retain(content=FACT))
    engine.record(BOB, said(1, "Who was my dentist?", ANSWER))
    assert forget(engine, fact, copies=True).copies == 0
    assert contents(engine, scope=BOB)
