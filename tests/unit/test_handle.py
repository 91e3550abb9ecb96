"""Jay: the handle people hold, on the real default in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import scrubjay
from scrubjay import Freeze, InvalidRequest, Jay, Kind, Outcome
from scrubjay.engine.memories import receipts
from scrubjay.pydantic_ai import ScrubjayConversations


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home that the environment names."""
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SCRUBJAY_PASSPHRASE", raising=False)
    return tmp_path / "home"


@pytest.fixture
def jay(folder: Path) -> Iterator[Jay]:
    with scrubjay.open("alice") as opened:
        yield opened


# -- the verbs -------------------------------------------------------------------------------


def test_what_is_retained_is_got_and_browsed(jay: Jay) -> None:
    receipt = jay.retain(
        "Alice prefers green tea", kind="preference", tags=["drink"], key="k1", session="s1"
    )
    memory = jay.get(receipt.id)
    assert receipt.outcome is Outcome.STORED
    assert memory.content == "Alice prefers green tea"
    assert (memory.kind, memory.tags, memory.key) == (Kind.PREFERENCE, ("drink",), "k1")
    assert memory.provenance.session == "s1"
    assert list(jay.browse(kinds=["preference"], tags=["drink"], session="s1")) == [memory]


def test_a_key_makes_a_second_call_harmless(jay: Jay) -> None:
    first = jay.retain("tea", key="k1")
    again = jay.retain("tea", key="k1")
    assert (again.id, again.outcome) == (first.id, Outcome.KNOWN)
    assert len(jay.browse()) == 1


def test_a_correction_takes_the_place_of_what_it_corrects(jay: Jay) -> None:
    old = jay.retain("Alice lives in Rome").id
    new = jay.supersede(old, "Alice lives in Turin", reason="moved").id
    assert [memory.content for memory in jay.history(new)] == [
        "Alice lives in Rome",
        "Alice lives in Turin",
    ]
    assert [memory.id for memory in jay.browse()] == [new]
    assert len(jay.browse(superseded=True)) == 2


def test_what_is_forgotten_is_gone_for_good(jay: Jay) -> None:
    gone = jay.retain("tea", key="k1").id
    receipt = jay.forget([gone])
    assert (receipt.erased, receipt.rotated) == (1, True)
    with pytest.raises(scrubjay.NotFound):
        jay.get(gone)
    assert jay.retain("tea", key="k1").outcome is Outcome.FORGOTTEN
    assert jay.verify(receipt).sound
    assert jay.verify(receipt).found == ()


def test_a_session_tags_or_an_age_are_forgotten(jay: Jay) -> None:
    jay.retain("a", session="s1")
    jay.retain("b", tags=["x"])
    jay.retain("c")
    assert jay.forget(session="s1").erased == 1
    assert jay.forget(tags=["x"]).erased == 1
    assert jay.forget(before=datetime.now(UTC) + timedelta(days=1)).erased == 1
    assert len(jay.browse()) == 0


def test_an_id_is_forgotten_unseen(jay: Jay) -> None:
    assert jay.forget(["mem-later"], unseen=True).erased == 0


def test_pins_and_expiries_are_set_and_lifted(jay: Jay) -> None:
    public_id = jay.retain("tea").id
    assert jay.pin(public_id).pinned
    assert not jay.unpin(public_id).pinned
    jay.expire(public_id, datetime.now(UTC) - timedelta(seconds=1))
    assert len(jay.browse()) == 0
    jay.expire(public_id, None)
    assert len(jay.browse()) == 1


def test_a_freeze_is_set_by_its_name_and_lifted(jay: Jay) -> None:
    assert jay.freeze("all") is Freeze.NONE
    with pytest.raises(scrubjay.Frozen):
        jay.retain("tea")
    assert jay.unfreeze() is Freeze.ALL
    assert jay.retain("tea").outcome is Outcome.STORED
    with pytest.raises(scrubjay.InvalidRequest):
        jay.freeze("solid")  # type: ignore[arg-type]


def test_pages_are_turned_with_their_cursor(jay: Jay) -> None:
    for number in range(5):
        jay.retain(str(number))
    first = jay.browse(limit=2)
    second = jay.browse(limit=2, cursor=first.next_cursor)
    third = jay.browse(limit=2, cursor=second.next_cursor)
    assert [memory.content for page in (first, second, third) for memory in page] == list("43210")
    assert third.next_cursor is None


def test_a_scope_is_destroyed_by_its_full_name_only(jay: Jay) -> None:
    jay.retain("tea")
    for confirm in (None, "alice"):
        with pytest.raises(scrubjay.NeedsConfirmation):
            jay.destroy(confirm=confirm)
    receipt = jay.destroy(confirm="local/alice")
    assert receipt.erased == 1
    assert jay.destroy(confirm="local/alice") == receipt
    assert jay.verify(receipt).sound
    with pytest.raises(scrubjay.Destroyed):
        jay.retain("tea")
    with pytest.raises(scrubjay.Destroyed):
        scrubjay.open("alice")
    with scrubjay.open("alice", anew=True) as anew:
        assert len(anew.browse()) == 0


@pytest.mark.parametrize(
    ("verb", "args", "fields"),
    [
        ("destroy", ["local/alice"], {}),
        ("supersede", ["mem-1", "new", None, ["tag"]], {}),
        ("retain", ["tea"], {"content": "coffee"}),
        ("retain", [], {"content": "tea", "contents": "coffee"}),
        ("rotate", ["now"], {}),
    ],
)
def test_only_what_a_request_takes_by_position_is_taken_so_and_nothing_twice(
    jay: Jay, verb: str, args: list[object], fields: dict[str, object]
) -> None:
    kept = jay.retain("kept").id
    with pytest.raises(scrubjay.InvalidRequest):
        getattr(jay, verb)(*args, **fields)
    assert [memory.id for memory in jay.browse()] == [kept]


@pytest.mark.parametrize("said", [(), ("", ""), (" ", "\n")])
def test_a_turn_without_any_text_is_refused(jay: Jay, said: tuple[str, ...]) -> None:
    with pytest.raises(scrubjay.InvalidRequest, match="no text"):
        jay.record(*said)
    assert jay.turns().data == ()
    assert jay.record(assistant="Good morning.").outcome is Outcome.STORED


def test_keys_are_rotated_and_old_rows_purged(jay: Jay) -> None:
    jay.supersede(jay.retain("tea").id, "coffee")
    assert jay.rotate().resealed == 2
    assert jay.purge(superseded_days=0).superseded == 1
    assert jay.verify().sound


def test_the_trail_names_the_actor(folder: Path) -> None:
    with scrubjay.open("alice", actor=scrubjay.Actor.AGENT) as jay:
        jay.retain("tea")
        jay.browse()
        assert {event.actor for event in jay.audit()} == {"agent"}
        assert jay.audit(1, cursor=jay.audit(1).next_cursor)[0].verb == "browse"
        assert jay.verify_audit().sound


# -- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sealed", [False, True])
def test_an_export_is_loaded_from_its_file_or_its_bytes(
    jay: Jay, tmp_path: Path, sealed: bool
) -> None:
    jay.retain("tea")
    path = tmp_path / "alice.export"
    exported = jay.export(path, sealed=sealed)
    assert exported.content == b"", "it is in the file, and nowhere held whole"
    assert path.stat().st_mode & 0o777 == 0o600
    with scrubjay.open("bob") as bob:
        assert bob.load(path, key=exported.key).loaded == 1
        assert bob.load(str(path), key=exported.key).known == 1
        assert bob.load(path.read_bytes(), key=exported.key).known == 1


def test_a_backup_is_restored_from_its_file(jay: Jay, tmp_path: Path) -> None:
    gone = jay.retain("tea").id
    jay.retain("coffee")
    made = jay.backup(tmp_path / "backup", days=7)
    jay.forget([gone])
    restored = jay.restore(tmp_path / "backup")
    assert (made.memories, restored.known, restored.forgotten) == (2, 1, 1)
    assert [note.name for note in jay.receipts()[0].backups] == [made.name]


def test_a_receipt_is_verified_from_its_file(jay: Jay, tmp_path: Path) -> None:
    receipt = jay.forget([jay.retain("tea").id])
    path = tmp_path / "receipt.json"
    path.write_text(receipts.to_json(receipt))
    assert jay.verify(path).sound
    assert jay.receipts().data == (receipt,)
    path.write_text("tea")
    with pytest.raises(scrubjay.InvalidRequest):
        jay.verify(path)


def test_a_file_that_is_not_there_is_not_found(jay: Jay, tmp_path: Path) -> None:
    for read in (jay.load, jay.restore, jay.verify):
        with pytest.raises(scrubjay.NotFound):
            read(tmp_path / "nowhere")


@pytest.mark.parametrize("path", ["", ".", "/", "nowhere/file", "null\x00byte"])
def test_a_path_that_cannot_be_written_is_refused(
    jay: Jay, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(scrubjay.InvalidRequest):
        jay.export(path)
    assert list(tmp_path.iterdir()) == [tmp_path / "home"]


@pytest.mark.parametrize("source", ["", "null\x00byte", 7, None])
def test_a_path_that_cannot_be_read_is_refused(jay: Jay, source: object) -> None:
    with pytest.raises(scrubjay.InvalidRequest):
        jay.load(source)  # type: ignore[arg-type]


def test_a_file_in_the_way_is_replaced_whole(jay: Jay, tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.write_text("something much longer " * 1000)
    jay.export(path)
    assert json.loads(path.read_text())["count"] == 0


# -- the handle ------------------------------------------------------------------------------


def test_a_handle_says_whose_it_is(jay: Jay) -> None:
    assert repr(jay) == "<Jay local/alice>"
    assert jay.scope == scrubjay.Scope("local", "alice")


def test_a_tenant_may_be_named(folder: Path) -> None:
    with scrubjay.open("acme/alice") as jay:
        assert str(jay.scope) == "acme/alice"


def test_closing_twice_is_fine_and_use_after_it_is_a_clear_error(jay: Jay) -> None:
    public_id = jay.retain("tea").id
    jay.close()
    jay.close()
    for use in (
        lambda: jay.get(public_id),
        lambda: jay.retain("tea"),
        lambda: jay.forget([public_id]),
        lambda: jay.destroy(confirm="local/alice"),
        jay.receipts,
    ):
        with pytest.raises(scrubjay.StoreError, match="closed"):
            use()


def test_the_next_handle_finds_everything(folder: Path) -> None:
    with scrubjay.open("alice") as jay:
        public_id = jay.retain("tea").id
    with scrubjay.open("alice", create=False) as jay:
        assert jay.get(public_id).content == "tea"
        assert [event.verb for event in jay.audit()] == ["retain", "get"]


def test_two_handles_see_what_the_other_does(jay: Jay) -> None:
    with scrubjay.open("alice") as other:
        public_id = jay.retain("tea").id
        assert other.get(public_id).content == "tea"
        other.forget([public_id])
        with pytest.raises(scrubjay.NotFound):
            jay.get(public_id)
        assert jay.retain("coffee").outcome is Outcome.STORED


def test_a_scope_that_is_not_there_is_not_made_unasked(folder: Path) -> None:
    with pytest.raises(scrubjay.NotFound):
        scrubjay.open("alice", create=False)


@pytest.mark.parametrize("name", ["", "a b", "a/b/c", "-a", None])
def test_a_bad_name_makes_nothing(folder: Path, name: object) -> None:
    with pytest.raises(scrubjay.InvalidRequest):
        scrubjay.open(name)  # type: ignore[arg-type]
    assert not folder.exists()


def test_an_unknown_actor_is_refused(folder: Path) -> None:
    with pytest.raises(scrubjay.InvalidRequest):
        scrubjay.open("alice", actor="nobody")  # type: ignore[arg-type]


def test_a_home_may_be_named_in_the_call(folder: Path, tmp_path: Path) -> None:
    with scrubjay.open("alice", home=tmp_path / "other") as jay:
        jay.retain("tea")
    assert (tmp_path / "other" / "data").is_dir()
    assert (tmp_path / "other" / "keys").is_dir()
    assert not folder.exists()


def test_nothing_readable_is_in_the_folder(folder: Path) -> None:
    words = ["Nightingale", "Wagtail", "Siskin", "Kestrel", "alice"]
    with scrubjay.open("alice") as jay:
        jay.retain("Nightingale" + "x" * 65_000, tags=["Wagtail"], session="Siskin", key="Kestrel")
        jay.forget([jay.retain("Nightingale", session="Siskin").id])
    files = [path for path in folder.rglob("*") if path.is_file()]
    kept = b"".join(path.name.encode() + path.read_bytes() for path in files)
    assert not [word for word in words if word.encode() in kept]


def test_sixteen_threads_share_a_handle(jay: Jay) -> None:
    """Writes, reads and erasures at once: nothing is lost, doubled, or refused."""

    def work(number: int) -> str:
        kept = jay.retain(f"kept {number}", key=f"k{number % 8}-{number}").id
        gone = jay.retain(f"gone {number}").id
        assert jay.get(kept).content == f"kept {number}"
        if number % 4 == 0:
            jay.forget([gone])
        else:
            jay.supersede(gone, f"kept {number} too")
        jay.browse(limit=5)
        return kept

    with ThreadPoolExecutor(16) as threads:
        kept = list(threads.map(work, range(48)))
    contents = [memory.content for memory in jay.browse(limit=1000)]
    assert sorted(contents) == sorted(
        [f"kept {number}" for number in range(48)]
        + [f"kept {number} too" for number in range(48) if number % 4]
    )
    assert len(set(kept)) == 48
    assert jay.verify().sound


@pytest.mark.parametrize("kind", [scrubjay.AsyncJay, ScrubjayConversations])
@pytest.mark.parametrize("given", ["alice", None])
def test_what_wraps_a_handle_says_at_once_that_it_was_given_none(kind: Any, given: Any) -> None:
    with pytest.raises(InvalidRequest, match=rf"{kind.__name__}\(scrubjay.open\("):
        kind(given)
