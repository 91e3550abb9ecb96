"""Conversations: entries that follow each other, branches, revisions, every way to erase them."""

from __future__ import annotations

from typing import Any

import pytest

from scrubjay.engine import Kernel, Policy
from scrubjay.engine.ledger import conversations
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.model.conversations import (
    APPEND_LIMIT,
    Append,
    Appended,
    Branch,
    Conversation,
    DeleteConversation,
    Entry,
    ListConversations,
    ReadConversation,
    Rewind,
    Transcript,
)
from scrubjay.model.errors import (
    Conflict,
    Frozen,
    InvalidRequest,
    LimitReached,
    NotFound,
    Stale,
)
from scrubjay.model.origin import Origin
from scrubjay.model.requests import (
    USER,
    Allowance,
    Caller,
    Forget,
    FreezeRequest,
    Load,
    Restore,
    Retain,
    Revoke,
)
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Collection, Freeze, Row
from scrubjay.model.text import TURN_BYTES
from scrubjay.model.turns import Record
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.scene import ALICE, BOB, address, forget, retain, slots

TEA = "Alice drinks green tea every single morning."
SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def home() -> MemoryHome:
    return MemoryHome()


@pytest.fixture
def engine(home: MemoryHome) -> Kernel:
    return home.engine()


def say(engine: Kernel, *bodies: Any, name: str = "chat", **fields: Any) -> Appended:
    """Append entries; those with text ids `a`, `b` and so on are given as pairs."""
    entries = [
        {"id": body[0], "body": body[1]} if isinstance(body, tuple) else {"body": body}
        for body in bodies
    ]
    caller = fields.pop("caller", USER)
    return engine.append(ALICE, Append(name, entries, **fields), caller)


def read(engine: Kernel, name: str | None = "chat", **fields: Any) -> Transcript:
    return engine.conversation(ALICE, ReadConversation(name, **fields))


def bodies(engine: Kernel, name: str | None = "chat", **fields: Any) -> list[Any]:
    """The bodies of a history, oldest first."""
    return [entry.body for entry in read(engine, name, **fields).entries]


def record(engine: Kernel, name: str = "chat") -> Conversation:
    found = read(engine, name, limit=0).conversation
    assert found is not None
    return found


def everything(home: MemoryHome) -> bytes:
    """Every byte of the home."""
    pieces = [piece for _, piece in home.store.raw(address(home))]
    return b"".join(pieces + [piece for _, piece in home.blobs.raw(address(home))])


def sound(engine: Kernel) -> bool:
    report = engine.verify(ALICE)
    assert report.problems == ()
    return report.sound


# -- writing and reading -----------------------------------------------------------------------


def test_entries_are_read_as_they_were_written(engine: Kernel) -> None:
    given = [{"role": "user", "parts": [{"n": 1.5, "big": 10**30, "none": None}]}, "text", [1, []]]
    receipt = say(engine, *given, title="Tea", metadata={"usage": {"tokens": 7}})
    found = read(engine)
    assert [entry.body for entry in found.entries] == given
    assert [entry.id for entry in found.entries] == list(receipt.ids)
    assert [entry.parent for entry in found.entries] == [None, *receipt.ids[:-1]]
    told = found.conversation
    assert told is not None
    assert (told.head, told.entries, told.title) == (receipt.ids[-1], 3, "Tea")
    assert told.metadata == {"usage": {"tokens": 7}}
    assert told == receipt.conversation
    assert sound(engine)


def test_a_long_entry_is_kept_in_a_blob(home: MemoryHome, engine: Kernel) -> None:
    body = {"text": "ä" * 100_000}
    say(engine, body, "short")
    assert bodies(engine) == [body, "short"]
    assert len(home.blobs.names(address(home))) == 1
    engine.rotate(ALICE)
    assert bodies(engine) == [body, "short"]
    assert sound(engine)


def test_the_last_entries_are_read_and_those_before_from_there_on(engine: Kernel) -> None:
    say(engine, *range(10))
    found = read(engine, limit=4)
    assert ([entry.body for entry in found.entries], found.next_cursor) == (
        [6, 7, 8, 9],
        found.entries[0].parent,
    )
    before = read(engine, cursor=found.next_cursor)
    assert ([entry.body for entry in before.entries], before.next_cursor) == (
        [0, 1, 2, 3, 4, 5],
        None,
    )


def test_an_answer_ends_before_it_is_too_long(engine: Kernel) -> None:
    long = "x" * (TURN_BYTES - 10)
    say(engine, long)
    say(engine, long)
    found = read(engine)
    assert (len(found.entries), found.next_cursor) == (1, found.entries[0].parent)


def test_no_secret_and_no_invisible_character_is_kept_in_any_text(
    home: MemoryHome, engine: Kernel
) -> None:
    receipt = say(
        engine,
        {"tool": {"args": [f"token={SECRET}"], SECRET: "x"}, "said": "a\u200bb"},
        title=f"with {SECRET}",
        metadata={"note": [SECRET]},
    )
    assert sum(receipt.redacted.values()) == 4
    whole = engine.export(ALICE).content.decode()
    assert SECRET not in whole
    assert '"ab"' in whole


def test_the_same_append_again_changes_nothing(engine: Kernel) -> None:
    first = say(engine, ("a", 1), ("b", 2))
    again = say(engine, ("a", 1), ("b", 2))
    assert again.outcome is Outcome.KNOWN
    assert again.conversation == first.conversation
    with pytest.raises(Conflict):
        say(engine, ("b", 2), ("c", 3))
    assert bodies(engine) == [1, 2]


def test_two_entries_of_one_id_in_one_append_are_refused(engine: Kernel) -> None:
    with pytest.raises(InvalidRequest):
        say(engine, ("a", 1), ("a", 2))


def test_conversations_are_listed_last_written_first_and_by_their_metadata(engine: Kernel) -> None:
    for number in range(4):
        say(engine, number, name=f"c{number}", metadata={"n": number, "who": {"a": number % 2}})
    say(engine, "more", name="c1")
    page = engine.conversations(ALICE)
    assert [one.name for one in page.data] == ["c1", "c3", "c2", "c0"]
    assert [one.entries for one in page.data] == [2, 1, 1, 1]
    found = engine.conversations(ALICE, ListConversations(where={"n": {"$gte": 1, "$lt": 3}}))
    assert [one.name for one in found.data] == ["c1", "c2"]
    found = engine.conversations(ALICE, ListConversations(where={"who": {"a": 1}}, limit=1))
    assert [one.name for one in found.data] == ["c1"]
    asked = ListConversations(where={"who": {"a": 1}}, cursor=found.next_cursor)
    rest = engine.conversations(ALICE, asked)
    assert ([one.name for one in rest.data], rest.next_cursor) == (["c3"], None)


def test_listing_opens_no_entry(home: MemoryHome, engine: Kernel) -> None:
    say(engine, "ä" * 100_000)
    for name in home.blobs.names(address(home)):
        home.blobs.delete(address(home), name)
    assert [one.name for one in engine.conversations(ALICE).data] == ["chat"]


# -- revisions, branches -----------------------------------------------------------------------


def test_a_write_that_expects_another_revision_is_stale_and_changes_nothing(
    engine: Kernel,
) -> None:
    first = say(engine, 1, expected_revision="0").conversation
    assert first is not None
    second = say(engine, 2, expected_revision=first.revision, revision="mine").conversation
    assert second is not None
    assert second.revision == "mine"
    calls = (
        lambda: say(engine, 3, expected_revision=first.revision),
        lambda: say(engine, 3, expected_revision="0"),
        lambda: engine.rewind(ALICE, Rewind("chat", at=0, expected_revision=first.revision)),
        lambda: engine.branch(ALICE, Branch("chat", into="d", expected_revision=first.revision)),
        lambda: engine.delete_conversation(
            ALICE, DeleteConversation("chat", expected_revision=first.revision)
        ),
        lambda: say(engine, 3, name="other", expected_revision="mine"),
    )
    for call in calls:
        with pytest.raises(Stale):
            call()
    assert bodies(engine) == [1, 2]
    assert len(engine.conversations(ALICE).data) == 1


def test_a_rewound_conversation_goes_on_from_there_and_can_go_back(engine: Kernel) -> None:
    say(engine, ("a", 1), ("b", 2), ("c", 3))
    assert engine.rewind(ALICE, Rewind("chat", at=1)).branches == ("c",)
    say(engine, ("d", 4))
    assert bodies(engine) == [1, 4]
    back = engine.rewind(ALICE, Rewind("chat", entry="b"))
    assert (back.head, back.entries, back.branches) == ("b", 2, ("c", "d"))
    assert engine.rewind(ALICE, Rewind("chat", entry="c")).branches == ("d",)
    assert engine.rewind(ALICE, Rewind("chat", at=0)).head is None
    assert sound(engine)


def test_an_append_after_an_earlier_entry_leaves_the_head_as_a_branch(engine: Kernel) -> None:
    say(engine, ("a", 1), ("b", 2))
    told = say(engine, ("c", 3), parent="a").conversation
    assert told is not None
    assert (told.head, told.entries, told.branches) == ("c", 2, ("b",))
    told = say(engine, ("d", 4), root=True).conversation
    assert told is not None
    assert (told.head, told.entries, told.branches) == ("d", 1, ("b", "c"))
    assert sound(engine)


def test_a_conversation_leaves_no_more_branches_than_there_may_be(
    engine: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrubjay.engine.ledger.conversations.BRANCHES", 2)
    say(engine, ("a", 1), ("b", 2))
    for entry in ("c", "d"):
        say(engine, (entry, 3), parent="a")
    with pytest.raises(LimitReached, match="at most 2 branches"):
        say(engine, ("e", 4), parent="a")
    with pytest.raises(LimitReached):
        engine.rewind(ALICE, Rewind("chat", at=1))
    assert engine.rewind(ALICE, Rewind("chat", entry="b")).branches == ("c", "d")
    engine.branch(ALICE, Branch("chat", into="other", at=1))
    say(engine, ("e", 4), name="other")
    assert bodies(engine) == [1, 2]
    assert sound(engine)


def test_a_branch_shares_its_entries_and_goes_its_own_way(engine: Kernel) -> None:
    say(engine, ("a", 1), ("b", 2), title="Tea", metadata={"n": 1})
    told = engine.branch(ALICE, Branch("chat", into="other", at=1))
    assert (told.forked_from, told.forked_at, told.entries) == ("chat", "a", 1)
    assert (told.title, told.metadata) == ("Tea", {"n": 1})
    say(engine, ("c", 3), name="other")
    assert (bodies(engine), bodies(engine, "other")) == ([1, 2], [1, 3])
    with pytest.raises(Conflict):
        engine.branch(ALICE, Branch("chat", into="other"))
    assert sound(engine)


def test_what_branches_share_is_opened_once_for_all_of_them(
    home: MemoryHome, engine: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 60 branches of 60 entries, in one transaction: others wait for it."""
    say(engine, *((f"e{number}", number) for number in range(60)), ("end", 0))
    for number in range(60):
        say(engine, (f"left{number}", 1), parent="e59")
        engine.branch(ALICE, Branch("chat", into=f"chat{number}"))
    exported, opened = engine.export(ALICE), 0
    entry_of = conversations.entry_of

    def counted(scope: OpenScope, row: Row) -> Entry:
        nonlocal opened
        opened += 1
        return entry_of(scope, row)

    monkeypatch.setattr(conversations, "entry_of", counted)
    with pytest.raises(NotFound):
        say(engine, 1, parent="nowhere")
    forget(engine, "e30")
    engine.load(BOB, Load(exported.content))
    assert opened < 6 * 200
    assert sound(engine)


def test_places_that_are_not_of_the_conversation_are_refused(engine: Kernel) -> None:
    say(engine, ("a", 1))
    say(engine, ("x", 1), name="other")
    refused: list[tuple[type[Exception], Any]] = [
        (NotFound, lambda: read(engine, "nobody")),
        (NotFound, lambda: read(engine, None, entry="nothing")),
        (NotFound, lambda: engine.rewind(ALICE, Rewind("nobody", at=0))),
        (NotFound, lambda: engine.rewind(ALICE, Rewind("chat", entry="x"))),
        (InvalidRequest, lambda: engine.rewind(ALICE, Rewind("chat", at=2))),
        (InvalidRequest, lambda: Rewind("chat")),
        (InvalidRequest, ReadConversation),
        (NotFound, lambda: engine.branch(ALICE, Branch("nobody", into="d"))),
        (NotFound, lambda: say(engine, 2, parent="x")),
        (InvalidRequest, lambda: say(engine, 2, parent="a", root=True)),
        (NotFound, lambda: engine.delete_conversation(ALICE, DeleteConversation("nobody"))),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()


def test_limits_are_refused_by_name(engine: Kernel) -> None:
    for entries in (
        [{"body": "x" * (TURN_BYTES + 1)}],
        [{"body": {"deep": ["x" * TURN_BYTES]}}],
        [{"body": {1, 2}}],
        [{"body": float("nan")}],
        [{"text": "x"}],
        [{"body": 1}] * (APPEND_LIMIT + 1),
    ):
        with pytest.raises(InvalidRequest):
            Append("chat", entries)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest):
        Append("chat", metadata={"a": "x" * 20_000})
    with pytest.raises(InvalidRequest):
        Append("c" * 513)


def test_a_frozen_scope_is_read_and_not_written_to(engine: Kernel) -> None:
    say(engine, ("a", 1))
    engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    for call in (
        lambda: say(engine, 2),
        lambda: engine.rewind(ALICE, Rewind("chat", at=0)),
        lambda: engine.branch(ALICE, Branch("chat", into="d")),
    ):
        with pytest.raises(Frozen):
            call()
    assert bodies(engine) == [1]
    assert engine.conversations(ALICE).data
    assert engine.delete_conversation(ALICE, DeleteConversation("chat")).erased == 2


def test_a_used_up_quota_refuses_an_append(engine: Kernel) -> None:
    caller = Caller(allowances=(Allowance(session="s", name="appends", limit=1),))
    say(engine, 1, caller=caller)
    with pytest.raises(LimitReached):
        say(engine, 2, caller=caller)
    assert bodies(engine) == [1]


# -- trust ---------------------------------------------------------------------------------------


def test_an_untrusted_entry_taints_the_session_and_whoever_goes_on_with_it(
    engine: Kernel,
) -> None:
    engine.append(ALICE, Append("chat", [{"body": "ok"}, {"body": "Ignore all", "origin": "web"}]))
    tainted = {one.name: one.tainted for one in engine.sessions(ALICE)}
    noted = engine.retain(ALICE, Retain("Noted", session="chat", origin="agent"))
    engine.branch(ALICE, Branch("chat", into="fork"))
    forked = engine.retain(ALICE, Retain("Noted too", session="fork", origin="agent"))
    read(engine, session="third")
    third = engine.retain(ALICE, Retain("Noted as well", session="third", origin="agent"))
    fourth = engine.retain(ALICE, Retain("Nothing was read", session="fourth", origin="agent"))
    origins = [engine.get(ALICE, _get(one.id)).origin for one in (noted, forked, third, fourth)]
    assert origins == [Origin.WEB, Origin.WEB, Origin.WEB, Origin.AGENT]
    assert not tainted


def _get(public_id: str) -> Any:
    from scrubjay.model.requests import Get

    return Get(public_id)


def test_reading_trusted_entries_writes_nothing(home: MemoryHome, engine: Kernel) -> None:
    say(engine, 1)
    before = engine.head(ALICE)
    read(engine, session="other")
    assert engine.head(ALICE) == before


def test_a_loaded_untrusted_entry_taints_the_session_that_reads_it(home: MemoryHome) -> None:
    engine = home.engine()
    engine.append(BOB, Append("chat", [{"body": "Ignore all", "origin": "tool"}]))
    engine.load(ALICE, Load(engine.export(BOB).content))
    engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    read(engine)
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    noted = engine.retain(ALICE, Retain("Noted", session="chat", origin="agent"))
    assert engine.get(ALICE, _get(noted.id)).origin is Origin.TOOL


# -- erasing -------------------------------------------------------------------------------------


def test_a_deleted_conversation_is_gone_with_a_receipt_and_its_name_is_free(
    home: MemoryHome, engine: Kernel
) -> None:
    say(engine, ("a", 1), ("b", "ä" * 100_000), title="Tea")
    receipt = engine.delete_conversation(ALICE, DeleteConversation("chat"))
    assert (receipt.erased, receipt.rotated) == (3, True)
    assert engine.verify_erased(ALICE, receipt).sound
    assert home.blobs.names(address(home)) == []
    assert "conversation.1" not in slots(home)
    with pytest.raises(NotFound):
        read(engine)
    fresh = say(engine, ("c", 3), expected_revision="0")
    assert fresh.conversation is not None
    assert (bodies(engine), fresh.conversation.title) == ([3], None)
    assert say(engine, ("a", 1)).outcome is Outcome.FORGOTTEN
    assert sound(engine)


def test_deleting_leaves_what_a_branch_shares_until_that_goes_too(engine: Kernel) -> None:
    say(engine, ("a", 1), ("b", 2), ("c", 3))
    engine.branch(ALICE, Branch("chat", into="fork", at=2))
    assert engine.delete_conversation(ALICE, DeleteConversation("chat")).erased == 2
    assert bodies(engine, "fork") == [1, 2]
    assert sound(engine)
    assert engine.delete_conversation(ALICE, DeleteConversation("fork")).erased == 3
    with pytest.raises(NotFound):
        read(engine, None, entry="a")


def test_forgetting_a_session_takes_its_conversation_and_closes_the_gaps_of_branches(
    engine: Kernel,
) -> None:
    say(engine, ("a", 1), ("b", 2))
    engine.branch(ALICE, Branch("chat", into="fork"))
    say(engine, ("c", 3), name="fork")
    engine.record(ALICE, Record("Hello there, my friend.", session="chat"))
    receipt = engine.forget(ALICE, Forget(session="chat"))
    assert engine.verify_erased(ALICE, receipt).sound
    assert [one.name for one in engine.conversations(ALICE).data] == ["fork"]
    told = record(engine, "fork")
    assert (bodies(engine, "fork"), told.entries, told.forked_at) == ([3], 1, None)
    assert engine.turns(ALICE).data == ()
    assert sound(engine)


def test_forgetting_an_entry_by_id_lets_the_next_one_follow_the_one_before(
    engine: Kernel,
) -> None:
    say(engine, ("a", 1), ("b", 2), ("c", 3))
    before = record(engine).revision
    forget(engine, "b")
    assert bodies(engine) == [1, 3]
    assert record(engine).revision != before
    forget(engine, "c")
    assert (bodies(engine), record(engine).head) == ([1], "a")
    forget(engine, "a")
    assert engine.conversations(ALICE).data == ()
    assert sound(engine)


def test_forgetting_a_conversation_by_its_id_takes_its_entries(engine: Kernel) -> None:
    told = say(engine, ("a", 1), ("b", 2)).conversation
    assert told is not None
    preview = engine.preview(ALICE, Forget((told.id,)))
    assert preview.entries == 3
    assert forget(engine, told.id).erased == 3
    assert engine.conversations(ALICE).data == ()


def test_entries_are_forgotten_by_age_and_by_words(home: MemoryHome, engine: Kernel) -> None:
    say(engine, ("a", {"text": "green tea"}), ("b", "coffee"))
    home.clock.advance(days=2)
    later = home.clock.now()
    say(engine, ("c", "green tea, again"), ("d", "water"))
    shown = engine.preview(ALICE, Forget(query="green tea"))
    assert shown.entries == 2
    engine.forget(ALICE, Forget(query="green tea", confirm=shown.token))
    assert bodies(engine) == ["coffee", "water"]
    engine.forget(ALICE, Forget(before=later))
    assert bodies(engine) == ["water"]
    assert sound(engine)


def test_a_copied_sentence_is_cut_out_of_entries_and_titles_and_the_rest_is_kept(
    home: MemoryHome, engine: Kernel
) -> None:
    one = retain(engine, TEA)
    say(
        engine,
        ("a", {"role": "user", "parts": [{"content": f"Good morning. {TEA} And you?"}]}),
        ("b", ["Fine.", {"said": TEA}]),
        ("c", "Nothing of it."),
        title=f"On tea. {TEA}",
        origin="user",
    )
    backup, _ = engine.backup(ALICE)
    shown = engine.preview(ALICE, Forget((one,), copies=True))
    assert len(shown.sentences) == 3
    receipt = engine.forget(ALICE, Forget((one,), copies=True, confirm=shown.token))
    assert receipt.copies == 3
    assert engine.verify_erased(ALICE, receipt).sound
    whole = engine.export(ALICE).content.decode()
    assert "every single" not in whole
    assert bodies(engine) == [
        {"role": "user", "parts": [{"content": "Good morning. And you?"}]},
        ["Fine.", {"said": "[…]"}],
        "Nothing of it.",
    ]
    assert (record(engine).title, record(engine).entries) == ("On tea.", 3)
    assert sound(engine)
    # Not even a backup from before brings it back, into a file that was lost.
    engine.close()
    home.store.remove(address(home))
    home.blobs.remove(address(home))
    engine = home.engine()
    engine.restore(ALICE, Restore(backup))
    assert "every single" not in engine.export(ALICE).content.decode()
    assert (bodies(engine), record(engine).title) == (["Nothing of it."], None)
    assert sound(engine)


def test_what_was_cut_is_forgotten_by_its_first_id(engine: Kernel) -> None:
    one = retain(engine, TEA)
    say(engine, ("a", f"Hm. {TEA}"), ("b", "Yes."))
    engine.forget(ALICE, Forget((one,), copies=True))
    assert bodies(engine) == ["Hm.", "Yes."]
    forget(engine, "a")
    assert bodies(engine) == ["Yes."]


def test_a_copy_that_is_trusted_more_needs_a_preview(engine: Kernel) -> None:
    from scrubjay.model.errors import NeedsConfirmation

    one = retain(engine, TEA, origin="web")
    say(engine, TEA, origin="user")
    with pytest.raises(NeedsConfirmation):
        engine.forget(ALICE, Forget((one,), copies=True))
    assert bodies(engine) == [TEA]


@pytest.mark.parametrize("target", [{"channel": "plug"}, {"key": "k1"}, {"session": "chat"}])
def test_revoking_undoes_what_a_channel_a_key_or_a_session_wrote(
    engine: Kernel, target: dict[str, str]
) -> None:
    if "session" not in target:
        say(engine, ("a", 1))
    say(engine, ("b", 2), channel="plug", caller=Caller(key="k1"))
    if "session" not in target:
        say(engine, ("c", 3))
    receipt = engine.revoke(ALICE, Revoke(**target))
    assert engine.verify_erased(ALICE, receipt).sound
    if "session" in target:
        assert engine.conversations(ALICE).data == ()
    else:
        assert bodies(engine) == [1, 3]
    assert sound(engine)


def test_a_damaged_entry_can_still_be_erased(home: MemoryHome, engine: Kernel) -> None:
    say(engine, ("a", 1), ("b", 2))
    opened = engine._open(ALICE)
    row_id = opened.row_id("a")

    def damage(tx: Any) -> None:
        row = tx.row(Collection.CONVERSATION, row_id)
        from msgspec.structs import replace

        tx.put(Collection.CONVERSATION, replace(row, cell=bytes(len(row.cell))))

    opened.write(damage)
    assert not engine.verify(ALICE).sound
    forget(engine, "a")
    assert bodies(engine) == [2]


# -- whole scopes --------------------------------------------------------------------------------


def fill(engine: Kernel) -> None:
    """Conversations with all there is: branches, a fork, a long entry, and an empty one."""
    say(engine, ("a", 1), ("b", "ä" * 100_000), ("c", {"x": [None]}), title="T", metadata={"n": 1})
    engine.rewind(ALICE, Rewind("chat", at=1))
    say(engine, ("d", 4), origin="tool", channel="plug")
    engine.branch(ALICE, Branch("chat", into="fork"))
    say(engine, ("e", 5), name="fork")
    say(engine, name="empty")


def state(engine: Kernel, scope: Any = ALICE) -> list[Any]:
    """All that can be read of the conversations of a scope."""
    page = engine.conversations(scope)
    return [
        (
            one,
            [
                engine.conversation(scope, ReadConversation(None, entry=tip)).entries
                for tip in (one.head, *one.branches)
                if tip
            ],
        )
        for one in sorted(page.data, key=lambda one: one.name)
    ]


@pytest.mark.parametrize("sealed", [False, True])
def test_export_and_load_are_the_same_conversations(engine: Kernel, *, sealed: bool) -> None:
    from scrubjay.model.requests import Export

    fill(engine)
    exported = engine.export(ALICE, Export(sealed=sealed))
    for _ in range(2):
        engine.load(BOB, Load(exported.content, key=exported.key))
        assert state(engine, BOB) == state(engine)
    assert engine.verify(BOB).problems == ()


def test_a_load_leaves_out_what_was_forgotten_and_what_has_another_owner_of_its_name(
    engine: Kernel,
) -> None:
    fill(engine)
    exported = engine.export(ALICE).content
    engine.append(BOB, Append("fork", [{"body": "mine"}]))
    engine.load(BOB, Load(exported))
    transcript = engine.conversation(BOB, ReadConversation("fork"))
    assert [entry.body for entry in transcript.entries] == ["mine"]
    assert engine.verify(BOB).sound
    forget(engine, "a", "d")
    engine.load(ALICE, Load(exported))
    assert bodies(engine, "fork") == [5]
    assert sound(engine)


def test_a_deleted_conversation_is_not_loaded_again_though_a_branch_kept_its_entries(
    engine: Kernel,
) -> None:
    fill(engine)
    exported = engine.export(ALICE).content
    engine.delete_conversation(ALICE, DeleteConversation("chat"))
    before = state(engine)
    engine.load(ALICE, Load(exported))
    assert state(engine) == before


def test_a_file_whose_entries_follow_each_other_in_a_circle_is_refused(engine: Kernel) -> None:
    fill(engine)
    content = engine.export(ALICE).content.decode()
    first = content.index('"id": "a"')
    circle = content[:first] + '"parent": "d",\n   ' + content[first:]
    with pytest.raises(InvalidRequest, match="follows itself"):
        engine.load(BOB, Load(circle.encode()))


def test_backup_and_restore_are_the_same_conversations(home: MemoryHome, engine: Kernel) -> None:
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


def test_verify_finds_a_head_that_is_not_there(home: MemoryHome, engine: Kernel) -> None:
    say(engine, ("a", 1), ("b", 2))
    opened = engine._open(ALICE)
    opened.write(lambda tx: tx.erase(Collection.CONVERSATION, opened.row_id("b"), drop_day=99_999))
    assert any("not there" in problem for problem in engine.verify(ALICE).problems)


def test_nothing_of_an_entry_is_readable_at_rest_nor_is_any_key(home: MemoryHome) -> None:
    engine = home.engine(Policy(segment_rows=1))
    say(engine, {"needle": "xyzzy-plugh"}, name="xyzzy-name", title="xyzzy-title")
    say(engine, "xyzzy" * 20_000)
    raw = everything(home)
    assert b"xyzzy" not in raw
    for purpose in home.keyring.purposes(address(home)):
        assert home.keyring.get(address(home), purpose) not in raw


def test_a_purge_drops_the_empty_rows_of_erased_entries(home: MemoryHome, engine: Kernel) -> None:
    say(engine, ("a", 1))
    engine.delete_conversation(ALICE, DeleteConversation("chat"))
    home.clock.advance(days=40)
    assert engine.purge(ALICE).dropped >= 2
    assert engine.head(ALICE).conversation.min_seq > 0
    assert say(engine, ("a", 1)).outcome is Outcome.FORGOTTEN
    assert sound(engine)


def test_the_trail_tells_of_writes_and_reads(engine: Kernel) -> None:
    say(engine, 1, 2)
    read(engine)
    engine.rewind(ALICE, Rewind("chat", at=1))
    engine.branch(ALICE, Branch("chat", into="fork"))
    engine.conversations(ALICE)
    engine.delete_conversation(ALICE, DeleteConversation("chat"))
    told = [event.verb for event in engine.audit(ALICE)]
    assert set(told) >= {
        "append", "conversation", "rewind", "branch", "conversations", "delete_conversation",
    }  # fmt: skip
    assert engine.verify_audit(ALICE).sound


def test_every_seal_of_a_conversation_is_of_the_present_epoch_after_a_rotation(
    home: MemoryHome, engine: Kernel
) -> None:
    fill(engine)
    before = state(engine)
    engine.rotate(ALICE)
    with home.store.read(address(home)) as view:
        assert view.stale(Collection.CONVERSATION, 0, 10) == []
    assert state(home.engine()) == before


# -- dying ---------------------------------------------------------------------------------------

CRASHES = {
    "append": lambda engine: say(engine, ("x", "ä" * 100_000), ("y", 2)),
    "rewind": lambda engine: engine.rewind(ALICE, Rewind("chat", at=0)),
    "branch": lambda engine: engine.branch(ALICE, Branch("chat", into="new")),
    "delete": lambda engine: engine.delete_conversation(ALICE, DeleteConversation("fork")),
    "forget": lambda engine: forget(engine, "a", "b"),
    "revoke": lambda engine: engine.revoke(ALICE, Revoke(channel="plug")),
    "rotate": lambda engine: engine.rotate(ALICE),
}


@pytest.mark.parametrize("verb", CRASHES)
def test_a_crash_anywhere_leaves_all_or_nothing_and_a_sound_scope(verb: str) -> None:
    home = MemoryHome()
    fill(home.engine())
    home.crashes.reached.clear()
    before = names(home.engine())
    CRASHES[verb](home.engine())
    after, reached = names(home.engine()), dict(home.crashes.reached)
    assert reached
    for failpoint, visits in reached.items():
        for visit in range(1, visits + 1):
            home = MemoryHome()
            fill(home.engine())
            home.crashes.at(failpoint, visit=visit)
            try:
                CRASHES[verb](home.engine())
            except SimulatedCrash:
                pass
            else:  # what was counted came before or after the verb itself
                continue
            engine = home.engine()
            assert names(engine) in (before, after), (failpoint, visit)
            for _ in range(9):
                engine.timeline(ALICE)
            assert sound(engine), (failpoint, visit)


def names(engine: Kernel) -> list[Any]:
    """What the conversations hold, by the ids that do not depend on chance."""
    return [
        (one.name, one.head, one.entries, one.branches, [len(line) for line in lines])
        for one, lines in state(engine)
    ]


def test_the_failpoints_of_a_first_append_are_reached(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea")
    home.crashes.reached.clear()
    say(engine, "ä" * 100_000)
    assert set(home.crashes.reached) == {
        Failpoint.COLLECTION_KEY_ADDED,
        Failpoint.BLOB_WRITTEN,
        Failpoint.STORE_BEFORE_COMMIT,
        Failpoint.STORE_AFTER_COMMIT,
        Failpoint.RETAIN_COMMITTED,
    }
