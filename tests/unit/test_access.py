"""API keys: shown once, kept as a hash, bounded in scope, use and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scrubjay.access import KEYS, Access, Grant, Keys, everything
from scrubjay.engine import Kernel
from scrubjay.model.conversations import ReadConversation
from scrubjay.model.documents import ReadDocument
from scrubjay.model.errors import Forbidden, InvalidRequest, NotFound
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Browse, Caller, Get, Load, Retain, Revoke
from scrubjay.model.scope import Scope
from scrubjay.verbs import VERBS, Verbs, perform
from tests.support.engines import MemoryHome

ALICE = Scope("acme", "alice")
AT_ONCE = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def keys(engine: Kernel, home: MemoryHome) -> Keys:
    return Keys(engine, home.clock)


def test_a_key_is_found_by_its_whole_token_only(keys: Keys) -> None:
    token = keys.create(name="n", scopes=["acme/alice"]).token
    keys.refresh()
    assert keys.find(token) is not None
    for other in (token[:-1], token + "a", token.upper(), token.replace("sj_", "sk_"), "", "sj__"):
        assert keys.find(other) is None


def test_nothing_that_is_kept_is_the_secret(keys: Keys, engine: Kernel) -> None:
    secret = keys.create(name="n", scopes=["acme/alice"]).token.split("_")[2]
    assert secret.encode() not in engine.export(KEYS).content


def test_another_process_sees_a_key_that_is_made_and_revoked(
    keys: Keys, engine: Kernel, home: MemoryHome
) -> None:
    elsewhere = Keys(engine, home.clock)
    issued = keys.create(name="n", scopes=["acme/alice"])
    elsewhere.refresh()
    assert elsewhere.find(issued.token) == issued.key
    keys.revoke(issued.key.id)
    home.clock.advance(seconds=1)
    assert elsewhere.stale
    elsewhere.refresh()
    assert elsewhere.find(issued.token) is None


def test_a_key_is_found_however_many_there_are(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an administrator who makes many would keep those of others from working."""
    monkeypatch.setattr("scrubjay.access.PAGE_LIMIT", 3)
    issued = [keys.create(name=f"n{number}", scopes=["acme/alice"]) for number in range(10)]
    keys.refresh()
    assert all(keys.find(one.token) for one in issued)


def test_a_revoked_key_is_refused_at_once_where_it_was_revoked(keys: Keys) -> None:
    issued = keys.create(name="n", scopes=["acme/alice"])
    assert keys.all() == (issued.key,)
    keys.revoke(issued.key.id)
    assert keys.stale
    assert keys.all() == ()
    with pytest.raises(NotFound):
        keys.revoke(issued.key.id)


def test_a_key_dies_at_its_time(keys: Keys, home: MemoryHome) -> None:
    soon = home.clock.now() + timedelta(seconds=5)
    issued = keys.create(name="n", scopes=["acme/alice"], expires_at=soon)
    keys.refresh()
    assert keys.find(issued.token) is not None
    home.clock.advance(seconds=6)
    assert keys.find(issued.token) is None
    assert keys.all() == ()
    with pytest.raises(InvalidRequest):
        keys.create(name="n", scopes=["acme/alice"], expires_at=soon)


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [
        ("acme/alice", {"acme/alice"}),
        ("alice", {"local/alice"}),
        ("acme/*", {"acme/alice", "acme/bob"}),
        ("*", {"acme/alice", "acme/bob", "local/alice", "acme2/alice"}),
    ],
)
def test_a_key_covers_what_it_names_and_never_what_is_ours(
    keys: Keys, pattern: str, covered: set[str]
) -> None:
    key = keys.create(name="n", scopes=[pattern]).key
    everybody = ("acme/alice", "acme/bob", "local/alice", "acme2/alice", "system/keys")
    assert {name for name in everybody if key.covers(Scope.parse(name))} == covered


@pytest.mark.parametrize("scopes", [["system/keys"], ["system/*"]])
def test_no_key_is_made_for_what_is_ours(keys: Keys, scopes: list[str]) -> None:
    with pytest.raises(Forbidden):
        keys.create(name="n", scopes=scopes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": []},
        {"scopes": ["a/b/c"]},
        {"scopes": ["a*"]},
        {"scopes": ["*/alice"]},
        {"name": ""},
        {"grants": []},
        {"grants": ["everything"]},
        {"actor": "robot"},
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(keys: Keys, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        keys.create(**{"name": "n", "scopes": ["acme/alice"], **wrong})  # type: ignore[arg-type]
    assert keys.all() == ()


@pytest.mark.parametrize(
    "change", [{"archived": True}, {"expires_at": AT_ONCE}, {"pinned": False}], ids=str
)
def test_who_may_only_write_takes_nothing_out_of_sight_that_is_more_trusted(
    keys: Keys, engine: Kernel, change: dict[str, Any]
) -> None:
    """An expiry in the past would have it erased by the next purge."""
    engine.open(ALICE)
    owners = engine.retain(ALICE, Retain("the owner's")).id
    agents = engine.retain(ALICE, Retain("an agent's", origin=Origin.AGENT)).id

    def access(*grants: Grant) -> Access:
        made = keys.create(name="n", scopes=["acme/alice"], grants=grants, actor=Actor.AGENT)
        return Access(engine, keys, made.key)

    writer = access(Grant.READ, Grant.WRITE)
    with pytest.raises(Forbidden, match="more trusted"):
        perform(writer, VERBS["amend"], ALICE, {"id": owners, **change})
    perform(writer, VERBS["amend"], ALICE, {"id": owners, "pinned": True})
    perform(writer, VERBS["amend"], ALICE, {"id": agents, **change})
    perform(access(Grant.WRITE, Grant.FORGET), VERBS["amend"], ALICE, {"id": owners, **change})


def test_what_a_key_allows_is_kept_whole(keys: Keys, engine: Kernel, home: MemoryHome) -> None:
    issued = keys.create(
        name="Ann's agent",
        scopes=["acme/alice", "acme/bob"],
        grants=["forget", "read"],
        actor=Actor.OPERATOR,
        origin=Origin.WEB,
    )
    assert issued.key.grants == (Grant.READ, Grant.FORGET)
    assert Keys(engine, home.clock).all() == (issued.key,)
    assert issued.key.only_scope is None


def test_the_signing_secret_is_made_once(keys: Keys, engine: Kernel, home: MemoryHome) -> None:
    secret, written = keys.signing_secret(), engine.head(KEYS)
    assert Keys(engine, home.clock).signing_secret() == secret
    assert engine.head(KEYS).memory == written.memory
    assert keys.all() == ()


def test_who_needs_no_key_still_cannot_reach_what_is_ours() -> None:
    assert everything().covers(ALICE)
    assert not everything().covers(KEYS)


# -- whose key it was ----------------------------------------------------------------------------


def written(engine: Kernel, keys: Keys, name: str) -> tuple[str, list[Memory]]:
    """What the holder of a new key writes by each verb that writes; the key's id, the memories."""
    holder = keys.create(name=name, scopes=["acme/alice"], grants=tuple(Grant)).key
    reach = Access(engine, keys, holder)
    one = perform(reach, Verbs.retain, ALICE, {"content": f"{name} drinks tea", "channel": "app"})
    perform(reach, Verbs.supersede, ALICE, {"id": one.id, "content": f"{name} drinks milk"})
    perform(reach, Verbs.record, ALICE, {"user": f"My name is {name}.", "channel": "app"})
    memories = engine.browse(ALICE, Browse(limit=100, superseded=True)).data
    return holder.id, [one for one in memories if one.provenance.key_id == holder.id]


def test_what_came_by_a_key_is_stamped_with_its_id(keys: Keys, engine: Kernel) -> None:
    key_id, memories = written(engine, keys, "Eve")
    contents = {memory.content for memory in memories}
    assert {"Eve drinks tea", "Eve drinks milk", "My name is Eve."} <= contents
    assert {turn.key_id for turn in engine.turns(ALICE)} == {key_id}
    local = Access(engine, keys, everything())
    one = perform(local, Verbs.retain, ALICE, {"content": "Alice drinks tea"})
    assert engine.get(ALICE, Get(one.id)).provenance.key_id is None


def test_no_request_can_name_a_key_as_its_own(keys: Keys, engine: Kernel) -> None:
    reach = Access(engine, keys, keys.create(name="n", scopes=["acme/alice"]).key)
    for verb, fields in ((Verbs.retain, {"content": "tea"}), (Verbs.record, {"user": "tea"})):
        with pytest.raises(InvalidRequest):
            perform(reach, verb, ALICE, {**fields, "key_id": "another"})


def test_revoke_of_a_key_undoes_what_came_by_it_and_nothing_else(
    keys: Keys, engine: Kernel
) -> None:
    """Whatever channel its holder named."""
    bobs, _ = written(engine, keys, "Bob")
    before = engine.export(ALICE).content
    eves, memories = written(engine, keys, "Eve")
    reach = Access(engine, keys, everything())
    receipt = perform(reach, Verbs.revoke, ALICE, {"key": eves})
    assert receipt.erased >= len(memories)
    assert "Eve" not in engine.export(ALICE).content.decode()
    assert {turn.key_id for turn in engine.turns(ALICE)} == {bobs}
    assert len(engine.export(ALICE).content) == len(before)


def test_what_a_key_loads_is_stamped_whatever_the_file_says(keys: Keys, engine: Kernel) -> None:
    written(engine, keys, "Eve")
    exported = engine.export(ALICE).content
    bob = Scope("acme", "bob")
    engine.load(bob, Load(exported), Caller(ceiling=Origin.AGENT, key="loader"))
    memories = engine.browse(bob, Browse(limit=100, superseded=True)).data
    assert {memory.provenance.key_id for memory in memories} == {"loader"}
    assert {turn.key_id for turn in engine.turns(bob)} == {"loader"}
    carol = Scope("acme", "carol")
    engine.load(carol, Load(exported))
    assert engine.export(carol).memories == len(memories)
    found = engine.browse(carol, Browse(limit=100)).data
    assert all(memory.provenance.key_id not in (None, "loader") for memory in found)


def test_revoke_takes_exactly_one_target() -> None:
    for fields in ({}, {"key": "k", "channel": "c"}, {"key": "k", "session": "s"}):
        with pytest.raises(InvalidRequest, match="exactly one"):
            Revoke(**fields)


def test_no_entry_and_no_document_is_trusted_more_than_its_key(keys: Keys, engine: Kernel) -> None:
    holder = keys.create(name="agent", scopes=["acme/alice"], actor="agent").key
    reach, scope = Access(engine, keys, holder), ALICE
    for verb, fields in (
        ("append", {"conversation": "c", "entries": [{"body": 1, "origin": "user"}]}),
        ("append", {"conversation": "c", "entries": [{"body": 1}], "origin": Origin.USER}),
        ("put", {"name": "a", "value": 1, "origin": Origin.USER}),
    ):
        with pytest.raises(Forbidden):
            perform(reach, VERBS[verb], scope, fields)
    perform(reach, VERBS["append"], scope, {"conversation": "c", "entries": [{"body": 1}]})
    perform(reach, VERBS["put"], scope, {"name": "a", "value": 1})
    (entry,) = engine.conversation(scope, ReadConversation("c")).entries
    document = engine.document(scope, ReadDocument("a"))
    stamps = [(one.origin, one.key_id, one.actor) for one in (entry, document)]
    assert stamps == [(Origin.AGENT, holder.id, Actor.AGENT)] * 2
