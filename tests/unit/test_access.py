"""API keys: shown once, kept as a hash, bounded in scope, use and time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scrubjay.access import KEYS, Grant, Keys, everything
from scrubjay.engine import Engine
from scrubjay.model.errors import Forbidden, InvalidRequest, NotFound
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.scope import Scope
from tests.support.engines import MemoryHome

ALICE = Scope("acme", "alice")


@pytest.fixture
def keys(engine: Engine, home: MemoryHome) -> Keys:
    return Keys(engine, home.clock)


def test_a_key_is_found_by_its_whole_token_only(keys: Keys) -> None:
    token = keys.create(name="n", scopes=["acme/alice"]).token
    keys.refresh()
    assert keys.find(token) is not None
    for other in (token[:-1], token + "a", token.upper(), token.replace("sj_", "sk_"), "", "sj__"):
        assert keys.find(other) is None


def test_nothing_that_is_kept_is_the_secret(keys: Keys, engine: Engine) -> None:
    secret = keys.create(name="n", scopes=["acme/alice"]).token.split("_")[2]
    assert secret.encode() not in engine.export(KEYS).content


def test_another_process_sees_a_key_that_is_made_and_revoked(
    keys: Keys, engine: Engine, home: MemoryHome
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


def test_what_a_key_allows_is_kept_whole(keys: Keys, engine: Engine, home: MemoryHome) -> None:
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


def test_the_signing_secret_is_made_once(keys: Keys, engine: Engine, home: MemoryHome) -> None:
    secret, written = keys.signing_secret(), engine.head(KEYS)
    assert Keys(engine, home.clock).signing_secret() == secret
    assert engine.head(KEYS).memory == written.memory
    assert keys.all() == ()


def test_who_needs_no_key_still_cannot_reach_what_is_ours() -> None:
    assert everything().covers(ALICE)
    assert not everything().covers(KEYS)
