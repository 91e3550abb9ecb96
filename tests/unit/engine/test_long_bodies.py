"""Bodies too long for a cell: every verb that writes them anew ends, whatever the clock says."""

from __future__ import annotations

import pytest

from scrubjay.engine import Kernel
from scrubjay.engine.scope.open_scope import CELL_BYTES
from scrubjay.model.compaction import Compact, CompactionOutcome
from scrubjay.model.conversations import Append, Branch, NewEntry, Rewind
from scrubjay.model.documents import Move, Put, ReadDocument
from scrubjay.model.memory import Kind
from scrubjay.model.requests import Amend
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, everything, retain, supersede

LONG = "A long story of tea and rain. " * 2_184
"""The longest text: with its other fields it is longer than a cell."""


@pytest.fixture
def engine() -> Kernel:
    """Its clock never tells the same time twice."""
    return MemoryHome().engine()


def long(number: int = 0) -> str:
    return f"{number} {LONG}"[:CELL_BYTES]


def test_a_long_memory_is_archived_and_taken_back(engine: Kernel) -> None:
    one = retain(engine, long())
    assert engine.amend(ALICE, Amend(one, archived=True)).archived_at
    assert not engine.amend(ALICE, Amend(one, archived=False)).archived_at


def test_a_long_memory_is_corrected_with_what_was_derived_from_it(engine: Kernel) -> None:
    source = retain(engine, long(1))
    derived = retain(engine, long(2), kind=Kind.SUMMARY, sources=(source,))
    supersede(engine, source, long(3))
    (hidden,) = (one for one in everything(engine) if one.id == derived)
    assert hidden.hidden


def test_a_long_document_moves(engine: Kernel) -> None:
    engine.put(ALICE, Put("notes/tea.md", long()))
    engine.move(ALICE, Move("notes", to="old", tree=True))
    assert engine.document(ALICE, ReadDocument("old/tea.md")).value == long()


def test_a_conversation_of_long_entries_is_branched_and_rewound(engine: Kernel) -> None:
    entries = tuple(NewEntry(body={"text": long(number)}, id=f"e{number}") for number in range(3))
    engine.append(ALICE, Append("talk", entries))
    assert engine.branch(ALICE, Branch("talk", into="other")).entries == 3
    assert engine.rewind(ALICE, Rewind("talk", entry="e1")).entries == 2


def test_long_episodes_are_compacted(engine: Kernel) -> None:
    words = ("harbor", "orchard", "quarry", "meadow", "library", "foundry", "mill")
    for number in range(150):
        said = " ".join(f"{word}{number}" for word in words)
        text = long(number) if number < 3 else f"We met at {said} and spoke."
        retain(engine, text, kind=Kind.EPISODE)
    done = engine.compact(ALICE, Compact(tokens=1, share=0.9))
    assert done.outcome is CompactionOutcome.APPLIED
    assert done.archived
