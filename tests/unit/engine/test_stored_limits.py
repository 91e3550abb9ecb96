"""Whatever a verb stores is read, exported, loaded and verified again.

A placeholder is longer than a short secret, a folder that is moved gives longer names, and a job
notes things beside the metadata of a caller: none of these may leave a row that its own limits
refuse, which would close the whole scope.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.ledger import documents
from scrubjay.guard.admission import admit
from scrubjay.model.conversations import Append, ListConversations
from scrubjay.model.documents import PARTS, ListDocuments, Move, Put
from scrubjay.model.errors import InvalidRequest, SealBroken
from scrubjay.model.jobs import JobKind, Work
from scrubjay.model.memory import Json, Kind
from scrubjay.model.requests import Load, Retain, Supersede
from scrubjay.model.text import CONTENT_BYTES, METADATA_BYTES, NAME_CHARS, TURN_BYTES
from scrubjay.model.turns import Piece, Record
from tests.support.engines import MemoryHome
from tests.unit.engine.scene import ALICE, BOB, contents, retain

Write = Callable[[Kernel], object]


def secrets(size: int) -> str:
    """Text of a size, with secrets that are shorter than their placeholder."""
    one = "pwd=Xy7zQ9 "
    some = one * min(20, size // len(one))
    return some + ("word " * size)[: size - len(some) - 1] + "."


WRITES: dict[str, Write] = {
    "content": lambda one: one.retain(ALICE, Retain(secrets(CONTENT_BYTES))),
    "tags": lambda one: one.retain(ALICE, Retain("x", tags=(secrets(128),))),
    "speaker": lambda one: one.retain(ALICE, Retain("x", speaker=secrets(NAME_CHARS))),
    "metadata": lambda one: one.retain(
        ALICE, Retain("x", metadata={"a": secrets(METADATA_BYTES - 9)})
    ),
    "a correction": lambda one: one.supersede(
        ALICE, Supersede(id=retain(one, "x"), content=secrets(CONTENT_BYTES))
    ),
    "a title": lambda one: one.append(
        ALICE, Append("c", ({"body": 1},), title=secrets(NAME_CHARS))
    ),
    "metadata of a conversation": lambda one: one.append(
        ALICE, Append("c", ({"body": 1},), metadata={"a": secrets(METADATA_BYTES - 9)})
    ),
    "an entry": lambda one: one.append(ALICE, Append("c", ({"body": secrets(TURN_BYTES - 2)},))),
    "a document": lambda one: one.put(ALICE, Put("c", secrets(TURN_BYTES - 2))),
    "a turn": lambda one: one.record(
        ALICE, Record(id="turn-1", user=secrets(TURN_BYTES), assistant="Yes.")
    ),
    "metadata of a turn": lambda one: one.record(
        ALICE, Record(id="turn-1", user="Hello", metadata={"a": secrets(METADATA_BYTES - 9)})
    ),
}


def is_whole(engine: Kernel) -> None:
    """Every list answers, what is exported is loaded again, and nothing is damaged."""
    engine.conversations(ALICE, ListConversations())
    engine.documents(ALICE)
    exported = engine.export(ALICE)
    engine.load(BOB, Load(exported.content))
    report = engine.verify(ALICE)
    assert report.problems == ()
    assert {one.content for one in engine.browse(BOB).data} == {
        one.content for one in engine.browse(ALICE).data
    }


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_placeholders_bring_nothing_beyond_its_limit(home: MemoryHome, write: Write) -> None:
    engine = home.engine()
    retain(engine, "tea")
    with pytest.raises(InvalidRequest):
        write(engine)
    is_whole(engine)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_stays_within_its_limit_without_its_secrets_is_stored(
    home: MemoryHome, write: Write
) -> None:
    """With a placeholder that is as long as the secret the same texts fit."""
    engine = home.engine(Policy(placeholder="[gone]"))
    retain(engine, "tea")
    write(engine)
    is_whole(engine)


def test_a_finding_of_a_model_is_cut_instead() -> None:
    """A job that fails at one text would meet it again and again."""
    piece = Piece(part="fact", kind=Kind.FACT, content=secrets(CONTENT_BYTES - 1))
    admitted, found = admit(piece)
    assert len(admitted.content.encode()) <= CONTENT_BYTES
    assert found


@pytest.mark.parametrize(
    "to", [tuple("x" * (PARTS - 1)), tuple("z" * 500 for _ in range(8))], ids=["parts", "bytes"]
)
def test_a_folder_moves_nowhere_where_a_name_would_be_too_long(
    home: MemoryHome, to: tuple[str, ...]
) -> None:
    engine = home.engine()
    engine.put(ALICE, Put(("a", "b", "c" * 200), "text", indexed=True))
    with pytest.raises(InvalidRequest, match="A name has"):
        engine.move(ALICE, Move("a", to=to, tree=True))
    assert len(engine.documents(ALICE).data) == 1
    is_whole(engine)


def test_the_longest_name_of_an_indexed_document_is_loaded_again(home: MemoryHome) -> None:
    engine = home.engine()
    name = tuple("\x01" * 400 for _ in range(10))
    engine.put(ALICE, Put(name, "A text about tea", indexed=True))
    is_whole(engine)


def test_a_job_leaves_full_metadata_loadable(home: MemoryHome) -> None:
    engine = home.engine()
    full: dict[str, Json] = {"a": "x" * (METADATA_BYTES - 10)}
    engine.retain(ALICE, Retain("I like tea", kind=Kind.EPISODE, metadata=full))
    assert engine.work(ALICE, Work(kinds=[JobKind.CONSOLIDATION])).memories == 1
    is_whole(engine)


def test_a_row_beyond_its_limits_is_reported_as_damage(home: MemoryHome) -> None:
    """Where earlier code wrote one: verify names it, and memories are served as before."""
    engine = home.engine()
    retain(engine, "tea")
    stored = engine.put(ALICE, Put("a", 1)).document
    opened = engine._begin(ALICE)
    longer = replace(stored, name=tuple("x" * (PARTS + 1)))
    opened.write(lambda tx: documents.put_row(opened, tx, longer))
    assert engine.verify(ALICE).problems
    assert contents(engine) == ["tea"]
    with pytest.raises(SealBroken):
        engine.documents(ALICE)


@pytest.mark.parametrize(
    "where", [{"x": {"$foo": 1}}, {"x": {"$gt": 5, "$foo": 1}}, {"x": [{"y": {"$foo": 1}}]}]
)
def test_an_unknown_operator_is_refused_whatever_there_is(where: dict[str, Json]) -> None:
    with pytest.raises(InvalidRequest, match="operator"):
        ListDocuments(where=where)
    with pytest.raises(InvalidRequest, match="operator"):
        ListConversations(where=where)


def test_a_member_may_be_called_like_an_operator(engine: Kernel) -> None:
    engine.put(ALICE, Put("a", {"$foo": 1}))
    assert len(engine.documents(ALICE, ListDocuments(where={"$foo": 1})).data) == 1
