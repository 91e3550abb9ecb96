"""Documents: values under names, compare-and-set, generations, filters, and erasing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.model.documents import (
    PARTS,
    Document,
    ListDocuments,
    Move,
    Put,
    ReadDocument,
    Remove,
    Stored,
)
from scrubjay.model.errors import (
    Conflict,
    Frozen,
    InvalidRequest,
    LimitReached,
    NeedsConfirmation,
    NotFound,
    Stale,
)
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import (
    USER,
    Allowance,
    BriefRequest,
    Caller,
    Export,
    Forget,
    FreezeRequest,
    Get,
    Load,
    Recall,
    Restore,
    Retain,
    Revoke,
)
from scrubjay.model.retention import KindLimit, SetRetention
from scrubjay.model.rows import Collection, Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.text import TURN_BYTES
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.scene import ALICE, BOB, address, browse, forget, retain

CAROL = Scope("local", "carol")

TEA = "Alice drinks green tea every single morning."
SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def home() -> MemoryHome:
    return MemoryHome()


@pytest.fixture
def engine(home: MemoryHome) -> Kernel:
    return home.engine()


def put(engine: Kernel, name: Any, value: Any, **fields: Any) -> Stored:
    caller = fields.pop("caller", USER)
    return engine.put(ALICE, Put(name, value, **fields), caller)


def get(engine: Kernel, name: Any, **fields: Any) -> Document:
    return engine.document(ALICE, ReadDocument(name, **fields))


def listed(engine: Kernel, prefix: Any = (), **fields: Any) -> list[str]:
    page = engine.documents(ALICE, ListDocuments(prefix, **fields))
    return [one.path for one in page.data]


def found(engine: Kernel, query: str) -> list[str]:
    """What recall finds of documents, best first."""
    return [hit.memory.content for hit in engine.recall(ALICE, Recall(query=query, limit=20)).hits]


def sound(engine: Kernel) -> bool:
    report = engine.verify(ALICE)
    assert report.problems == ()
    return report.sound


# -- writing and reading -----------------------------------------------------------------------


@pytest.mark.parametrize("value", ["text", {"a": [1, None, 10**30]}, [], 0, None, "ä" * 100_000])
def test_a_document_is_read_as_it_was_put(engine: Kernel, value: Any) -> None:
    receipt = put(engine, "notes/tea.md", value)
    one = get(engine, ("notes", "tea.md"))
    assert (one.value, one.name, one.path) == (value, ("notes", "tea.md"), "notes/tea.md")
    assert replace(one, value=None) == receipt.document
    assert sound(engine)


def test_a_path_is_its_parts_and_a_part_may_hold_a_slash(engine: Kernel) -> None:
    put(engine, "/a/b/", 1)
    put(engine, ("a/b",), 2)
    put(engine, ("a", "a", "b"), 3)
    assert [get(engine, name).value for name in ("a/b", ("a", "b"), ("a/b",))] == [1, 1, 2]
    assert get(engine, "a/a/b").value == 3


@pytest.mark.parametrize("name", ["", "/", "a//b", "a/../b", ".", (), ("a", ""), ("a",) * 65])
def test_a_name_that_is_none_is_refused(name: Any) -> None:
    for kind in (ReadDocument, Remove):
        with pytest.raises(InvalidRequest):
            kind(name)
    with pytest.raises(InvalidRequest):
        Move("a", to=name)
    assert PARTS == 64


def test_limits_are_refused_by_name() -> None:
    for value in ("x" * (TURN_BYTES + 1), {"a": "x" * TURN_BYTES}, {1, 2}, float("inf"), b"x"):
        with pytest.raises(InvalidRequest):
            Put("a", value)  # type: ignore[arg-type]


def test_no_secret_is_kept_in_any_text(engine: Kernel) -> None:
    receipt = put(engine, "a", {"b": [f"token={SECRET}"]}, indexed=True)
    assert sum(receipt.redacted.values()) == 1
    assert SECRET not in engine.export(ALICE).content.decode()


def test_a_document_put_again_is_a_new_version_of_the_same(home: MemoryHome) -> None:
    engine = home.engine()
    first = put(engine, "a", 1).document
    home.clock.advance(days=1)
    second = put(engine, "a", 2).document
    assert (first.id, first.created_at) == (second.id, second.created_at)
    assert second.updated_at > first.updated_at
    assert first.revision != second.revision
    assert get(engine, "a").value == 2


def test_a_write_that_expects_another_revision_is_stale_and_changes_nothing(
    engine: Kernel,
) -> None:
    first = put(engine, "a", 1, expected_revision="0").document
    second = put(engine, "a", 2, expected_revision=first.revision).document
    calls = (
        lambda: put(engine, "a", 3, expected_revision=first.revision),
        lambda: put(engine, "a", 3, expected_revision="0"),
        lambda: put(engine, "b", 3, expected_revision=second.revision),
        lambda: engine.move(ALICE, Move("a", to="b", expected_revision=first.revision)),
        lambda: engine.remove(ALICE, Remove("a", expected_revision=first.revision)),
    )
    for call in calls:
        with pytest.raises(Stale):
            call()
    assert get(engine, "a").value == 2
    assert listed(engine) == ["a"]


def test_a_removed_name_may_be_used_again_and_is_another_document(home: MemoryHome) -> None:
    engine = home.engine()
    first = put(engine, "a", "ä" * 100_000).document
    assert engine.remove(ALICE, Remove("a")).removed == 1
    with pytest.raises(NotFound):
        get(engine, "a")
    second = put(engine, "a", 2, expected_revision="0").document
    assert second.id != first.id
    assert second.revision != first.revision
    with pytest.raises(Stale):
        put(engine, "a", 3, expected_revision=first.revision)
    engine.timeline(ALICE)
    assert home.blobs.names(address(home)) == []
    assert sound(engine)


def test_a_moved_document_stays_the_same_and_leaves_its_name_free(engine: Kernel) -> None:
    first = put(engine, "a/b", 1).document
    (moved,) = engine.move(ALICE, Move("a/b", to="c"))
    assert (moved.id, moved.created_at, moved.name) == (first.id, first.created_at, ("c",))
    assert get(engine, "c").value == 1
    put(engine, "a/b", 2)
    with pytest.raises(Conflict):
        engine.move(ALICE, Move("a/b", to="c"))
    assert [get(engine, name).value for name in ("a/b", "c")] == [2, 1]
    assert sound(engine)


def test_a_folder_is_moved_and_removed_as_a_whole_or_not_at_all(engine: Kernel) -> None:
    for name in ("a/1", "a/b/2", "a", "ab/3", "z/b/2"):
        put(engine, name, name)
    with pytest.raises(Conflict):
        engine.move(ALICE, Move("a", to="z", tree=True))
    assert listed(engine) == ["a", "a/1", "a/b/2", "ab/3", "z/b/2"]
    moved = engine.move(ALICE, Move("a", to="a/b", tree=True))
    assert len(moved) == 3
    assert listed(engine) == ["a/b", "a/b/1", "a/b/b/2", "ab/3", "z/b/2"]
    assert engine.remove(ALICE, Remove("a", tree=True)).removed == 3
    assert listed(engine) == ["ab/3", "z/b/2"]
    with pytest.raises(InvalidRequest):
        Remove("a", tree=True, expected_revision="1.1")
    assert sound(engine)


def test_what_is_not_there_is_not_found(engine: Kernel) -> None:
    retain(engine, "tea")
    calls = (
        lambda: get(engine, "a"),
        lambda: engine.move(ALICE, Move("a", to="b")),
        lambda: engine.remove(ALICE, Remove("a")),
        lambda: engine.remove(ALICE, Remove("a", tree=True)),
    )
    for call in calls:
        with pytest.raises(NotFound):
            call()


def test_documents_are_listed_by_folder_and_filter_in_pages(engine: Kernel) -> None:
    for number in range(6):
        put(engine, ("f", str(number % 2), str(number)), {"n": number, "d": {"odd": number % 2}})
    put(engine, "g", "text")
    assert listed(engine) == ["f/0/0", "f/0/2", "f/0/4", "f/1/1", "f/1/3", "f/1/5", "g"]
    assert listed(engine, "f/1") == ["f/1/1", "f/1/3", "f/1/5"]
    assert listed(engine, where={"n": {"$gt": 1, "$lte": 4}}) == ["f/0/2", "f/0/4", "f/1/3"]
    assert listed(engine, where={"d": {"odd": {"$ne": 1}}, "n": {"$gte": 2}}) == ["f/0/2", "f/0/4"]
    assert listed(engine, where={"d": {"odd": 1}, "n": {"$lt": 2}}) == ["f/1/1"]
    assert listed(engine, where={"n": {"$eq": 3}}) == ["f/1/3"]
    page = engine.documents(ALICE, ListDocuments("f", limit=4, values=False))
    assert [one.value for one in page.data] == [None] * 4
    assert listed(engine, "f", cursor=page.next_cursor, limit=4) == ["f/1/3", "f/1/5"]
    with pytest.raises(InvalidRequest):
        listed(engine, where={"n": {"$near": 1}})


def test_a_frozen_scope_is_read_and_not_written_to(engine: Kernel) -> None:
    put(engine, "a", 1)
    engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    for call in (
        lambda: put(engine, "a", 2),
        lambda: engine.move(ALICE, Move("a", to="b")),
        lambda: engine.remove(ALICE, Remove("a")),
    ):
        with pytest.raises(Frozen):
            call()
    assert (get(engine, "a").value, listed(engine)) == (1, ["a"])


def test_a_used_up_quota_refuses_a_put(engine: Kernel) -> None:
    caller = Caller(allowances=(Allowance(session="s", name="puts", limit=1),))
    put(engine, "a", 1, caller=caller)
    with pytest.raises(LimitReached):
        put(engine, "a", 2, caller=caller)
    assert get(engine, "a").value == 1


# -- recall and trust ----------------------------------------------------------------------------


def test_an_indexed_document_is_recalled_in_its_present_text_only(engine: Kernel) -> None:
    put(engine, "plain", "The heron stands on one leg.")
    put(engine, "tea.md", "Steep the sencha for two minutes.", indexed=True)
    put(engine, "json", {"deep": ["Sencha comes from Uji."]}, indexed=True)
    texts = found(engine, "sencha")
    assert sorted(texts) == ["Sencha comes from Uji.", "Steep the sencha for two minutes."]
    assert "The heron stands on one leg." not in found(engine, "heron leg")
    (hit, *_) = engine.recall(ALICE, Recall(query="steep sencha minutes")).hits
    assert hit.memory.metadata == {"document": "tea.md"}
    assert hit.memory.sources == (get(engine, "tea.md").id,)
    engine.move(ALICE, Move("tea.md", to="green.md"))
    put(engine, "green.md", "Steep the gyokuro for three minutes.", indexed=True)
    assert "Steep the gyokuro for three minutes." in found(engine, "steep minutes")
    assert not any("two minutes" in one for one in found(engine, "steep minutes"))
    put(engine, "green.md", "Steep the gyokuro for four minutes.")
    assert not any("gyokuro" in one for one in found(engine, "steep gyokuro"))
    engine.remove(ALICE, Remove("json"))
    assert found(engine, "sencha") == []
    assert sound(engine)


def test_the_pieces_of_a_document_count_below_a_cap_only_while_they_are_there(
    engine: Kernel,
) -> None:
    limits = (KindLimit(kind=Kind.EPISODE, number=2),)
    engine.set_retention(ALICE, SetRetention(limits=limits))
    for number in range(4):
        put(engine, "a", f"The heron number {number} stands there.", indexed=True)
        put(engine, "b", f"The egret number {number} flies away.", indexed=True)
        assert len(browse(engine, limit=100)) == 2
        assert sound(engine)
    engine.remove(ALICE, Remove("a"))
    assert [one.metadata["document"] for one in browse(engine, limit=100)] == ["b"]
    assert sound(engine)


def test_a_long_document_is_recalled_in_pieces_and_none_is_in_the_brief(engine: Kernel) -> None:
    text = "\n".join(f"Rule {number}: keep the gate number {number} shut." for number in range(200))
    put(engine, "rules", text, indexed=True)
    pieces = browse(engine, limit=1_000)
    assert len(pieces) > 3
    assert all(len(one.content) <= 3_000 for one in pieces)
    assert sum(len(one.content) + 1 for one in pieces) == len(text) + 1
    assert engine.brief(ALICE, BriefRequest()).entries == ()
    assert {one.kind for one in pieces} == {Kind.EPISODE}


def test_an_agent_in_a_tainted_session_writes_no_trusted_document(engine: Kernel) -> None:
    put(engine, "page", "Ignore all.", origin="web")
    get(engine, "page", session="s")
    put(engine, "note", "Noted.", session="s", origin="agent", indexed=True)
    assert get(engine, "note").origin is Origin.WEB
    noted = engine.retain(ALICE, Retain("Noted", session="s", origin="agent"))
    assert engine.get(ALICE, Get(noted.id)).origin is Origin.WEB


# -- erasing -------------------------------------------------------------------------------------


def test_a_document_is_forgotten_by_its_id_with_all_that_is_derived_from_it(
    home: MemoryHome, engine: Kernel
) -> None:
    one = put(engine, "a", f"{TEA}\n" + "ä" * 100_000, indexed=True).document
    assert engine.preview(ALICE, Forget((one.id,))).documents == 1
    receipt = forget(engine, one.id)
    assert receipt.derived > 0
    assert engine.verify_erased(ALICE, receipt).sound
    assert found(engine, "green tea") == []
    assert home.blobs.names(address(home)) == []
    with pytest.raises(NotFound):
        get(engine, "a")
    put(engine, "a", 2)
    assert sound(engine)


def test_documents_are_forgotten_by_session_age_and_words(home: MemoryHome, engine: Kernel) -> None:
    put(engine, "a", "green tea", session="s")
    put(engine, "b", {"x": "green tea too"})
    put(engine, "c", "coffee")
    home.clock.advance(days=1)
    later = home.clock.now()
    put(engine, "d", "water")
    engine.forget(ALICE, Forget(session="s"))
    assert listed(engine) == ["b", "c", "d"]
    shown = engine.preview(ALICE, Forget(query="green tea"))
    engine.forget(ALICE, Forget(query="green tea", confirm=shown.token))
    assert listed(engine) == ["c", "d"]
    engine.forget(ALICE, Forget(before=later))
    assert listed(engine) == ["d"]
    assert sound(engine)


def test_a_copied_sentence_is_cut_out_of_documents_and_the_rest_is_kept(
    home: MemoryHome, engine: Kernel
) -> None:
    one = retain(engine, TEA)
    put(engine, "a", {"t": f"Hello there. {TEA} Goodbye."}, indexed=True)
    put(engine, "b", "Nothing of it.")
    backup, _ = engine.backup(ALICE)
    receipt = engine.forget(ALICE, Forget((one,), copies=True))
    assert receipt.copies >= 1
    assert engine.verify_erased(ALICE, receipt).sound
    assert get(engine, "a").value == {"t": "Hello there. Goodbye."}
    assert found(engine, "hello goodbye") == ["Hello there. Goodbye."]
    assert "every single" not in engine.export(ALICE).content.decode()
    assert sound(engine)
    engine.close()
    home.store.remove(address(home))
    home.blobs.remove(address(home))
    engine = home.engine()
    engine.restore(ALICE, Restore(backup))
    assert "every single" not in engine.export(ALICE).content.decode()
    assert listed(engine) == ["b"]


def test_a_copy_in_a_document_that_is_trusted_more_needs_a_preview(engine: Kernel) -> None:
    one = retain(engine, TEA, origin="web")
    put(engine, "a", TEA)
    with pytest.raises(NeedsConfirmation):
        engine.forget(ALICE, Forget((one,), copies=True))
    assert get(engine, "a").value == TEA


@pytest.mark.parametrize("target", [{"channel": "plug"}, {"key": "k1"}, {"session": "s"}])
def test_revoking_undoes_documents_of_a_channel_a_key_or_a_session(
    engine: Kernel, target: dict[str, str]
) -> None:
    put(engine, "a", 1)
    put(engine, "b", TEA, channel="plug", session="s", indexed=True, caller=Caller(key="k1"))
    receipt = engine.revoke(ALICE, Revoke(**target))
    assert engine.verify_erased(ALICE, receipt).sound
    assert (listed(engine), found(engine, "green tea")) == (["a"], [])
    assert sound(engine)


# -- whole scopes --------------------------------------------------------------------------------


def fill(engine: Kernel) -> None:
    put(engine, "a/b", {"x": [1, "ü"]}, session="s", channel="plug")
    put(engine, "long", "ä" * 100_000)
    put(engine, "tea", "Steep the sencha for two minutes.", indexed=True, origin="tool")
    put(engine, "gone", 1)
    engine.remove(ALICE, Remove("gone"))
    engine.move(ALICE, Move("a/b", to="c"))


def state(engine: Kernel, scope: Any = ALICE) -> list[Any]:
    page = engine.documents(scope)
    texts = engine.recall(scope, Recall(query="sencha", untrusted=True)).hits
    documents = [replace(one, revision="") for one in page.data]
    return [*documents, [hit.memory.content for hit in texts]]


@pytest.mark.parametrize("sealed", [False, True])
def test_export_and_load_are_the_same_documents(engine: Kernel, *, sealed: bool) -> None:
    fill(engine)
    exported = engine.export(ALICE, Export(sealed=sealed))
    for _ in range(2):
        engine.load(BOB, Load(exported.content, key=exported.key))
        assert state(engine, BOB) == state(engine)
    engine.remove(BOB, Remove("long"))
    engine.put(BOB, Put("c", "mine"))
    engine.load(BOB, Load(exported.content, key=exported.key))
    assert [one.path for one in engine.documents(BOB).data] == ["c", "tea"]
    assert engine.document(BOB, ReadDocument("c")).value == "mine"
    assert engine.verify(BOB).problems == ()


def test_a_document_that_a_load_leaves_out_is_not_recalled_either(home: MemoryHome) -> None:
    """Because its name is in use, or because the one that is here is another version of it."""
    engine = home.engine()
    engine.put(ALICE, Put("a", "The heron nests at Quilltop", indexed=True))
    engine.put(ALICE, Put("b", "The plover nests on the beach", indexed=True))
    first = engine.export(ALICE)
    engine.load(BOB, Load(first.content))
    engine.put(ALICE, Put("a", "The heron has left Quilltop", indexed=True))
    engine.put(CAROL, Put("b", "Oaks grow slowly", indexed=True))
    for scope, told in ((BOB, 0), (CAROL, 1)):
        assert engine.load(scope, Load(engine.export(ALICE).content)).loaded == told
        said = {one.content for one in engine.browse(scope).data}
        assert said == {str(one.value) for one in engine.documents(scope).data}
        for one in engine.documents(scope).data:
            engine.remove(scope, Remove(one.name))
        assert engine.browse(scope).data == ()
        assert engine.verify(scope).sound


def test_a_load_is_trusted_no_more_than_its_caller(engine: Kernel) -> None:
    fill(engine)
    content = engine.export(ALICE).content
    engine.load(BOB, Load(content), Caller(ceiling=Origin.IMPORT, key="k9"))
    one = engine.document(BOB, ReadDocument("c"))
    assert (one.origin, one.key_id) == (Origin.IMPORT, "k9")


def test_backup_and_restore_are_the_same_documents(home: MemoryHome, engine: Kernel) -> None:
    fill(engine)
    before = state(engine)
    backup, _ = engine.backup(ALICE)
    engine.close()
    home.store.remove(address(home))
    home.blobs.remove(address(home))
    again = home.engine()
    again.restore(ALICE, Restore(backup))
    assert state(again) == before
    assert sound(again)


def test_a_damaged_record_in_a_file_is_named(engine: Kernel) -> None:
    fill(engine)
    content = engine.export(ALICE).content.decode()
    bad = content.replace('"indexed": true', '"indexed": "so"')
    with pytest.raises(InvalidRequest, match=r"documents\[2\]: indexed"):
        engine.load(BOB, Load(bad.encode()))


def test_verify_finds_a_document_under_another_name(home: MemoryHome, engine: Kernel) -> None:
    put(engine, "a", 1)
    opened = engine._open(ALICE)

    def swap(tx: Any) -> None:
        (row,) = tx.changes(Collection.DOCUMENT, 0, 9)
        tx.put(Collection.DOCUMENT, replace(row, key=b"x" * 16))

    opened.write(swap)
    assert any("another id" in problem for problem in engine.verify(ALICE).problems)


def test_nothing_of_a_document_is_readable_at_rest(home: MemoryHome, engine: Kernel) -> None:
    put(engine, "xyzzy/name", {"xyzzy": "plugh"}, indexed=True)
    put(engine, "long", "xyzzy" * 20_000)
    raw = b"".join(piece for _, piece in home.store.raw(address(home)))
    assert b"xyzzy" not in raw + b"".join(piece for _, piece in home.blobs.raw(address(home)))


CRASHES = {
    "put": lambda engine: put(engine, "x", "ä" * 100_000, indexed=True),
    "put again": lambda engine: put(engine, "tea", "Another text.", indexed=True),
    "move": lambda engine: engine.move(ALICE, Move("c", to="d")),
    "remove": lambda engine: engine.remove(ALICE, Remove("long")),
    "forget": lambda engine: engine.forget(ALICE, Forget(session="s")),
}


@pytest.mark.parametrize("verb", CRASHES)
def test_a_crash_anywhere_leaves_all_or_nothing_and_a_sound_scope(verb: str) -> None:
    home = MemoryHome()
    fill(home.engine())
    home.crashes.reached.clear()
    before = names(home.engine())
    CRASHES[verb](home.engine())
    after, reached = names(home.engine()), dict(home.crashes.reached)
    for failpoint, visits in reached.items():
        for visit in range(1, visits + 1):
            home = MemoryHome()
            fill(home.engine())
            home.crashes.at(failpoint, visit=visit)
            try:
                CRASHES[verb](home.engine())
            except SimulatedCrash:
                pass
            else:  # what was counted came after the verb itself
                continue
            engine = home.engine()
            assert names(engine) in (before, after), (failpoint, visit)
            for _ in range(9):
                engine.timeline(ALICE)
            assert sound(engine), (failpoint, visit)


def names(engine: Kernel) -> list[Any]:
    return [(one.name, str(one.value)[:20], one.indexed) for one in state(engine)[:-1]]
