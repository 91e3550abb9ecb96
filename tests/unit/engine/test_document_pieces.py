"""What recall finds of an indexed document, and what becomes of it when a piece is forgotten."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.engine.ledger import documents
from scrubjay.model.documents import Document, ListDocuments, Move, Put, ReadDocument, Remove
from scrubjay.model.errors import Conflict, NotFound, Stale
from scrubjay.model.jobs import JobKind, Work
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.requests import Amend, Forget, Get, Load, Purge, Recall, Restore
from scrubjay.model.retention import KindLimit, SetRetention
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    address,
    browse,
    everything,
    forget,
    retain,
    supersede,
)

CONSOLIDATION = Work(kinds=(JobKind.CONSOLIDATION,))
HERON = "The heron stands on one leg. " * 40
"""Text of a piece of its own."""
EGRET = "The egret flies over the reeds. " * 40
CRANE = "The crane dances in the morning. " * 40
BIRDS = "\n\n".join(one.strip() for one in (HERON, EGRET, CRANE))


@pytest.fixture
def home() -> MemoryHome:
    return MemoryHome()


@pytest.fixture
def engine(home: MemoryHome) -> Kernel:
    return home.engine()


def put(engine: Kernel, name: str, value: Any = BIRDS, **fields: Any) -> Document:
    return engine.put(ALICE, Put(name, value, indexed=True, **fields)).document


def text(engine: Kernel, name: str) -> Any:
    return engine.document(ALICE, ReadDocument(name)).value


def piece(engine: Kernel, word: str) -> Memory:
    """The piece that holds a word."""
    (one,) = (one for one in browse(engine, limit=1_000) if word in one.content)
    return one


def of(memory: Memory) -> object:
    """The name of the document that a piece is of."""
    return memory.metadata["document"]


def told(engine: Kernel) -> list[str]:
    """The first word of each piece that is about a bird, in the order of the alphabet."""
    return sorted(one.content.split()[1] for one in browse(engine, limit=1_000))


def gone(engine: Kernel, word: str) -> bool:
    """Whether a word is nowhere any more: recall, documents, history of changes, export."""
    hits = engine.recall(ALICE, Recall(query=word, limit=100)).hits
    page = engine.documents(ALICE, ListDocuments())
    texts = [*(hit.memory.content for hit in hits), *(str(one.value) for one in page)]
    texts += [one.content for one in everything(engine)]
    texts.append(engine.export(ALICE).content.decode())
    assert engine.verify(ALICE).problems == ()
    return not any(word in one for one in texts)


def test_a_forgotten_piece_is_cut_out_of_its_document(engine: Kernel) -> None:
    before = put(engine, "birds")
    receipt = forget(engine, piece(engine, "egret").id)
    assert text(engine, "birds").split() == f"{HERON} {CRANE}".split()
    assert gone(engine, "egret")
    assert engine.verify_erased(ALICE, receipt).sound
    assert told(engine) == ["crane", "heron"]
    with pytest.raises(Stale):
        put(engine, "birds", expected_revision=before.revision)


def test_what_is_left_of_a_document_keeps_its_pieces_and_what_was_made_of_them(
    engine: Kernel,
) -> None:
    put(engine, "birds")
    heron, egret, crane = (piece(engine, bird) for bird in ("heron", "egret", "crane"))
    engine.amend(ALICE, Amend(heron.id, pinned=True))
    fact = retain(engine, "Herons stand.", sources=(heron.id,))
    both = retain(engine, "Herons stand, and egrets fly.", sources=(heron.id, egret.id))
    corrected = supersede(engine, crane.id, "The crane dances at dusk.")
    forget(engine, egret.id)
    left = engine.document(ALICE, ReadDocument("birds"))
    here = engine.get(ALICE, Get(heron.id))
    assert (here.pinned, here.sources, here.number) == (True, (left.id,), heron.number)
    assert engine.get(ALICE, Get(fact)).live
    assert engine.get(ALICE, Get(corrected)).sources == (left.id,)
    with pytest.raises(NotFound):
        engine.get(ALICE, Get(both))
    assert gone(engine, "egret")
    forget(engine, left.id)
    assert everything(engine) == []


@pytest.mark.parametrize("then", ["move", "put", "remove", "folder"])
def test_a_forgotten_piece_is_not_told_again_whatever_becomes_of_its_document(
    engine: Kernel, then: str
) -> None:
    put(engine, "a/birds")
    forget(engine, piece(engine, "egret").id)
    if then == "move":
        engine.move(ALICE, Move("a/birds", to="b"))
    elif then == "folder":
        engine.move(ALICE, Move("a", to="b/c", tree=True))
    elif then == "put":
        put(engine, "a/birds", text(engine, "a/birds"))
    else:
        engine.remove(ALICE, Remove("a/birds"))
    assert gone(engine, "egret")
    assert told(engine) == ([] if then == "remove" else ["crane", "heron"])


def test_neither_a_backup_nor_an_export_brings_a_forgotten_piece_back(
    home: MemoryHome, engine: Kernel
) -> None:
    put(engine, "birds")
    export = engine.export(ALICE).content
    backup, _ = engine.backup(ALICE)
    forget(engine, piece(engine, "egret").id)
    after = engine.export(ALICE).content
    engine.load(ALICE, Load(export))
    assert gone(engine, "egret")
    assert told(engine) == ["crane", "heron"]
    engine.load(BOB, Load(after))
    there = [one.content.split()[1] for one in browse(engine, scope=BOB)]
    assert sorted(there) == ["crane", "heron"]
    engine.close()
    home.store.remove(address(home))
    home.blobs.remove(address(home))
    engine = home.engine()
    engine.restore(ALICE, Restore(backup))
    assert gone(engine, "egret")


def test_a_document_of_which_no_text_is_left_goes_whole(engine: Kernel) -> None:
    put(engine, "one", {"text": ["The egret flies."], "wings": 2})
    request = Forget((piece(engine, "egret").id,))
    shown = engine.preview(ALICE, request)
    assert (shown.documents, shown.cut) == (1, ())
    engine.forget(ALICE, request)
    assert engine.documents(ALICE, ListDocuments()).data == ()
    assert gone(engine, "egret")


def test_a_preview_names_the_documents_that_are_cut_and_nothing_that_stays(engine: Kernel) -> None:
    put(engine, "a/birds")
    one = piece(engine, "egret")
    shown = engine.preview(ALICE, Forget((one.id,)))
    assert (shown.memories, shown.others) == ((one,), ())
    assert (shown.documents, shown.cut) == (0, ("a/birds",))
    assert shown.in_words() == "1 memory (documents it is cut out of: 1)"
    request = Forget((one.id,), confirm=shown.token)
    put(engine, "a/birds", f"{BIRDS}\nMore.")
    with pytest.raises((Conflict, NotFound)):
        engine.forget(ALICE, request)


def test_pieces_that_are_copies_of_each_other_are_cut_together(engine: Kernel) -> None:
    """They are the same text in one document; in another one it goes with its copies only."""
    letters = "x" * 7_500
    put(engine, "a", [letters, HERON])
    put(engine, "b", [letters, EGRET])
    pieces = [one for one in browse(engine, limit=100) if set(one.content) == {"x"}]
    assert len(pieces) == 8
    (last,) = (one for one in pieces if len(one.content) == 3_000 and of(one) == "a")
    forget(engine, last.id)
    assert "x" * 3_000 not in text(engine, "a")[0]
    assert text(engine, "a")[1] == HERON
    assert text(engine, "b") == [letters, EGRET]
    engine.move(ALICE, Move("a", to="c"))
    assert not any(one.content == last.content for one in browse(engine) if of(one) == "c")
    (other,) = (one for one in browse(engine) if one.content == last.content)
    for_all = Forget((other.id,), copies=True)
    put(engine, "d", [letters])
    engine.forget(ALICE, for_all)
    assert gone(engine, "x" * 3_000)


def test_a_copy_elsewhere_in_a_cut_document_goes_with_the_copies(engine: Kernel) -> None:
    tea = "Alice drinks green tea every single morning."
    one = retain(engine, tea)
    put(engine, "birds", f"{HERON}\nHello there. {tea} Goodbye.\n{EGRET}")
    request = Forget((one, piece(engine, "egret").id), copies=True)
    shown = engine.preview(ALICE, request)
    assert shown.cut == ("birds",)
    engine.forget(ALICE, request)
    assert gone(engine, "egret")
    assert gone(engine, "every single")
    assert text(engine, "birds").split() == f"{HERON} Hello there. Goodbye.".split()
    assert "heron" in "".join(one.content for one in browse(engine))


def test_a_document_loses_pieces_and_copies_at_once(engine: Kernel) -> None:
    """Where pieces are no sentences, so that only the one or the other finds them."""
    tea, letters = "Alice drinks green tea every single morning.", "x" * 7_500
    one = retain(engine, tea)
    for name in ("a", "b"):
        put(engine, name, [letters, f"Hello there. {tea} Goodbye."])
    (last, *_) = (other for other in browse(engine) if other.content == "x" * 3_000)
    receipt = engine.forget(ALICE, Forget((one, last.id), copies=True))
    for name in ("a", "b"):
        assert text(engine, name) == ["x" * 1_500, "Hello there. Goodbye."]
    assert gone(engine, "every single")
    assert gone(engine, last.content)
    assert engine.verify_erased(ALICE, receipt).sound


@pytest.mark.parametrize("then", ["move", "cut"])
def test_a_forgotten_fact_is_not_found_again_in_a_document_that_moves_or_is_cut(
    engine: Kernel, then: str
) -> None:
    """Its pieces stay the ones that were consolidated."""
    put(engine, "me", f"I live in Lyon with my two cats.\n{'Cats sleep a lot. ' * 90}\n{EGRET}")
    assert engine.work(ALICE, CONSOLIDATION).memories == 1
    (fact,) = (one for one in browse(engine) if one.kind is Kind.FACT)
    forget(engine, fact.id)
    if then == "move":
        engine.move(ALICE, Move("me", to="you"))
    else:
        forget(engine, piece(engine, "egret").id)
    assert engine.work(ALICE, CONSOLIDATION).memories == 0
    assert not any(one.kind is Kind.FACT for one in browse(engine))


@pytest.mark.parametrize("purged", [False, True])
def test_a_correction_stays_when_another_piece_is_forgotten(engine: Kernel, purged: bool) -> None:
    put(engine, "birds")
    corrected = supersede(engine, piece(engine, "crane").id, "The crane dances at dusk.")
    if purged:
        engine.purge(ALICE, Purge(superseded_days=0))
    forget(engine, piece(engine, "egret").id)
    assert engine.get(ALICE, Get(corrected)).live


def test_a_correction_goes_with_what_its_document_said(engine: Kernel) -> None:
    put(engine, "birds")
    egret = piece(engine, "egret")
    corrected = supersede(engine, egret.id, "The egrets wade.")
    assert engine.preview(ALICE, Forget((egret.id,))).others[0].id == corrected
    forget(engine, egret.id)
    assert told(engine) == ["crane", "heron"]


def test_a_corrected_piece_is_forgotten_with_what_its_document_said(engine: Kernel) -> None:
    put(engine, "birds")
    corrected = supersede(engine, piece(engine, "egret").id, "The egrets wade.")
    engine.move(ALICE, Move("birds", to="b"))
    assert engine.get(ALICE, Get(corrected)).metadata == {"document": "b"}
    assert not any("flies" in one.content for one in browse(engine))
    forget(engine, corrected)
    assert gone(engine, "egret")


def test_a_moved_document_keeps_its_pieces_as_they_are(engine: Kernel) -> None:
    """Purged, archived and pinned ones, too: only the name that they tell is another."""
    put(engine, "birds")
    engine.set_retention(ALICE, SetRetention(limits=(KindLimit(kind=Kind.EPISODE, number=2),)))
    engine.purge(ALICE, Purge())
    engine.amend(ALICE, Amend(piece(engine, "crane").id, archived=True))
    before = everything(engine)
    engine.move(ALICE, Move("birds", to="b"))
    after = everything(engine)
    assert {one.id for one in after} == {one.id for one in before}
    assert {one.metadata["document"] for one in after} == {"b"}
    assert told(engine) == ["egret"]
    assert engine.verify(ALICE).problems == ()


@pytest.mark.parametrize(
    ("value", "cut", "left"),
    [
        ("One.\r\nTwo words\there.\n\nThree.", "Two words here.", "One.\r\n\n\nThree."),
        (["One", {"two": "a", "n": 5}, "b c"], "a b", ["One", {"two": "", "n": 5}, " c"]),
        ("OK is OK\nOK\nBOOK", "OK", "OK is OK\n\nBOOK"),
        ("OK is BOOK", "OK", " is BOOK"),
        ("東京東京に住む", "東京", "に住む"),
        ("One.", "Two.", "One."),
        ("One.", "", "One."),
        ({"One.": "One."}, "One.", None),
    ],
)  # fmt: skip
def test_a_piece_is_cut_wherever_it_stands(value: Any, cut: str, left: Any) -> None:
    moment = MemoryHome().clock.now()
    one = Document(id="doc-1", name=("a",), value=value, created_at=moment, updated_at=moment)
    rest = documents.without(one, [cut])
    assert (None if rest is None else rest.value) == left


# -- a sentence that is cut with copies --------------------------------------------------------

TEA = "Alice drinks green tea every single morning."


def cut_with_copies(engine: Kernel, *ids: str) -> None:
    """Forget a memory that says a sentence of documents, with its copies."""
    request = Forget((retain(engine, TEA), *ids), copies=True)
    engine.forget(ALICE, request)
    assert gone(engine, "every single")


def test_pieces_without_a_sentence_that_is_cut_with_copies_stay_as_they_are(
    engine: Kernel,
) -> None:
    put(engine, "birds", f"{BIRDS}\n\n{TEA}")
    heron, egret = (piece(engine, bird) for bird in ("heron", "egret"))
    engine.amend(ALICE, Amend(heron.id, pinned=True))
    fact = retain(engine, "Herons stand.", sources=(heron.id,))
    corrected = supersede(engine, egret.id, "The egret wades at dusk.")
    before = engine.document(ALICE, ReadDocument("birds"))
    cut_with_copies(engine)
    left = engine.document(ALICE, ReadDocument("birds"))
    assert left.id != before.id
    here = engine.get(ALICE, Get(heron.id))
    assert (here.pinned, here.sources, here.number) == (True, (left.id,), heron.number)
    assert engine.get(ALICE, Get(fact)).live
    assert engine.get(ALICE, Get(corrected)).sources == (left.id,)
    assert engine.get(ALICE, Get(egret.id)).superseded_by == corrected
    shown = browse(engine, kinds=(Kind.EPISODE,), limit=100)
    assert sorted(one.content.split()[1] for one in shown) == ["crane", "egret", "heron"]
    assert not any("flies" in one.content for one in shown)


def test_what_is_left_of_a_piece_that_a_sentence_is_cut_out_of_is_found_as_it_was(
    engine: Kernel,
) -> None:
    """Pinned, and where it was; what was made of it goes, since it may tell the sentence."""
    put(engine, "a/birds", f"{HERON}\nHello there. {TEA} Goodbye.\n{EGRET}")
    one = piece(engine, "every single")
    engine.amend(ALICE, Amend(one.id, pinned=True))
    fact = retain(engine, "Alice likes tea.", sources=(one.id,))
    cut_with_copies(engine)
    left = piece(engine, "Hello there. Goodbye.")
    assert (left.pinned, of(left)) == (True, "a/birds")
    assert left.sources == (engine.document(ALICE, ReadDocument("a/birds")).id,)
    with pytest.raises(NotFound):
        engine.get(ALICE, Get(fact))
    forget(engine, left.id)
    assert gone(engine, "Goodbye")


@pytest.mark.parametrize("tells", [False, True])
@pytest.mark.parametrize("purged", [False, True])
def test_a_correction_of_a_piece_outlives_a_sentence_that_is_cut_with_copies(
    engine: Kernel, tells: bool, purged: bool
) -> None:
    """Nor is the piece told again; a correction that tells the sentence itself loses that."""
    put(engine, "birds", f"{HERON}\n{TEA}\n\n{EGRET}")
    text_now = f"The heron sits. {TEA} It rests." if tells else "The heron sits. It rests."
    supersede(engine, piece(engine, "every single").id, text_now)
    if purged:
        engine.purge(ALICE, Purge(superseded_days=0))
    cut_with_copies(engine)
    left = {one.content: one for one in browse(engine, kinds=(Kind.EPISODE,), limit=100)}
    assert sorted(left) == [EGRET.strip(), "The heron sits. It rests."]
    forget(engine, left[EGRET.strip()].id)
    assert [one.content for one in everything(engine)] == ["The heron sits. It rests."]


@pytest.mark.parametrize("where", ["same", "other"])
def test_a_forgotten_fact_is_not_consolidated_again_after_a_cut_with_copies(
    engine: Kernel, where: str
) -> None:
    cats = "Cats sleep a lot. " * 90
    me = f"I live in Lyon with my two cats.\n{cats}"
    put(engine, "me", f"{TEA}\n{me}\n{EGRET}" if where == "same" else f"{me}\n{EGRET}\n{TEA}")
    engine.work(ALICE, CONSOLIDATION)
    (fact,) = (one for one in browse(engine) if "Lyon" in one.content and one.kind is Kind.FACT)
    forget(engine, fact.id)
    cut_with_copies(engine)
    engine.work(ALICE, CONSOLIDATION)
    assert not any("Lyon" in one.content for one in browse(engine) if one.kind is Kind.FACT)


def test_a_piece_that_lost_a_sentence_is_consolidated_again(engine: Kernel) -> None:
    """What was made of it went along, and nothing of that was forgotten by itself."""
    put(engine, "me", f"I live in Lyon with my two cats. {TEA}")
    engine.work(ALICE, CONSOLIDATION)
    cut_with_copies(engine)
    engine.work(ALICE, CONSOLIDATION)
    assert any("Lyon" in one.content for one in browse(engine) if one.kind is Kind.FACT)


def test_a_sentence_across_two_pieces_is_cut_out_of_both(engine: Kernel) -> None:
    first = " ".join(f"word{number}" for number in range(200))
    text_now = f"{first[:1_470].strip()}. {TEA} {' '.join(f'other{n}' for n in range(250))}."
    put(engine, "long", text_now)
    assert not any(TEA in one.content for one in browse(engine))
    cut_with_copies(engine)
    found = " ".join(one.content for one in sorted(browse(engine), key=lambda one: one.number))
    assert "morning" not in found
    assert "Alice" not in found
    assert found.replace(" . ", " ").split() == str(text(engine, "long")).split()


def test_pieces_that_retention_purged_are_not_told_again_by_a_cut(
    home: MemoryHome, engine: Kernel
) -> None:
    put(engine, "birds", f"{BIRDS}\n{TEA}")
    engine.set_retention(ALICE, SetRetention(limits=(KindLimit(kind=Kind.EPISODE, number=1),)))
    home.clock.advance(days=2)
    engine.purge(ALICE, Purge())
    (one,) = browse(engine, kinds=(Kind.EPISODE,))
    forget(engine, one.id)
    assert everything(engine) == []


def test_a_piece_of_which_another_was_a_part_is_found_by_what_is_left(engine: Kernel) -> None:
    put(engine, "a", ["x" * 1_400, f"{'y' * 200} {'x' * 1_400}"])
    short, long = sorted(browse(engine), key=lambda one: len(one.content))
    forget(engine, short.id)
    (left,) = everything(engine)
    assert left.content == "y" * 200
    assert text(engine, "a") == ["", f"{'y' * 200} "]
    assert left.id != long.id


def test_a_cut_in_a_document_that_is_json_leaves_its_other_pieces_as_they_are(
    engine: Kernel,
) -> None:
    """Spaces and escapes stand as they were written, so the pieces are still its text."""
    members = {f"bird {number}": f"\u00e9gret {number} {HERON[:290]}" for number in range(12)}
    value = json.dumps({**members, "tea": f"Hello. {TEA} Bye."}, indent=2)
    put(engine, "birds.json", value)
    before = {one.id for one in browse(engine)}
    last = piece(engine, "Hello.").id
    engine.forget(ALICE, Forget((retain(engine, TEA),), copies=True))
    assert text(engine, "birds.json") == value.replace(f" {TEA} Bye", " Bye", 1)
    after = browse(engine)
    assert before - {one.id for one in after} == {last}
    left = " ".join(one.content for one in sorted(after, key=lambda one: one.number))
    assert left.split() == text(engine, "birds.json").split()


def test_a_document_that_is_json_stays_json_when_the_name_of_a_member_is_cut(
    engine: Kernel,
) -> None:
    put(engine, "tea.json", json.dumps({TEA: 5, "a": ["b", f"Hello. {TEA}"]}))
    cut_with_copies(engine)
    assert json.loads(text(engine, "tea.json")) == {"": 5, "a": ["b", "Hello."]}
