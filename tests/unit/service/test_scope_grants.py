"""Grants of a key per scope: what it may in one scope it may not in another, by any verb."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay import connect
from scrubjay.access import Grant, Key, Keys, narrowed
from scrubjay.model.errors import Forbidden, InvalidRequest
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from tests.serving import Running, serving
from tests.support.engines import MemoryHome, SqliteHome

TEAM, MINE = "team/x", "me/y"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    home = SqliteHome(tmp_path / "home")
    engine = home.engine()
    with serving(engine, home.clock) as service:
        yield service
    engine.close()


def test_a_key_may_in_each_scope_what_it_was_granted_there(running: Running) -> None:
    everyone = running.key("*")
    with connect(running.url, everyone, scope=TEAM, create=True) as team:
        theirs = team.retain("The team drinks tea", pinned=True).id
    granted = {TEAM: (Grant.READ,), MINE: (Grant.READ, Grant.WRITE)}
    key = running.key(by_scope=granted)
    with connect(running.url, key, scope=MINE, create=True) as mine:
        mine.retain("I drink coffee")
        assert mine.count() == 1
        assert len(mine.recall("drink", scopes=[TEAM]).hits) == 2
        both = mine.brief(scopes=[TEAM])
        assert [str(one) for one in both.scopes] == [TEAM, MINE]
        assert both.markdown.count("- [") == 2
    with connect(running.url, key, scope=TEAM) as team:
        assert team.get(theirs).id == theirs
        for refused in (
            lambda: team.retain("no"),
            lambda: team.forget([theirs]),
            team.inspect,
        ):
            with pytest.raises(Forbidden):
                refused()


def test_a_key_sees_nothing_of_a_scope_it_may_not_read(running: Running) -> None:
    with connect(running.url, running.key("*"), scope=TEAM, create=True) as team:
        theirs = team.retain("The team drinks tea", metadata={"a": 1}).id
    key = running.key(by_scope={TEAM: (Grant.WRITE,), MINE: (Grant.READ, Grant.WRITE)})
    with connect(running.url, key, scope=MINE, create=True) as mine:
        mine.retain("I drink coffee")
        for refused in (
            lambda: mine.recall("tea", scopes=[TEAM]),
            lambda: mine.brief(scopes=[TEAM]),
        ):
            with pytest.raises(Forbidden):
                refused()
        with pytest.raises(Exception, match="no memory"):
            mine.get(theirs[:12])
        assert (mine.count(where={"a": 1}), mine.statistics().live) == (0, 1)
        assert len(mine.follow().changes) == 1
    for scope in (TEAM, "other/z"):
        with connect(running.url, key, scope=scope) as other:
            for verb in (
                other.count,
                other.statistics,
                other.follow,
                other.browse,
                lambda: other.lineage(theirs),
                lambda: other.get(theirs[:12]),
                lambda: other.preview([theirs[:12]]),
            ):
                with pytest.raises(Forbidden):
                    verb()


def test_stored_keys_keep_their_grants_by_scope_and_need_a_scope(home: MemoryHome) -> None:
    engine = home.engine()
    made = Keys(engine, home.clock).create(name="n", scopes=(), by_scope={TEAM: ["read"]})
    again = Keys(engine, home.clock)
    again.refresh()
    assert again.find(made.token) == made.key
    assert made.key.only_scope == Scope("team", "x")
    with pytest.raises(InvalidRequest):
        again.create(name="n", scopes=())


@pytest.mark.parametrize(
    "by_scope",
    [{TEAM: ["read"]}, {MINE: ["export"]}, {"me/*": ["read"]}, {"*": ["read"]}, {MINE: ["write"]}],
)
def test_a_key_makes_keys_only_where_it_is_admin_and_for_what_it_may_there(
    by_scope: dict[str, list[str]],
) -> None:
    issuer = Key(
        id="a",
        name="n",
        scopes=(),
        grants=(),
        by_scope={
            TEAM: (Grant.READ, Grant.WRITE, Grant.EXPORT),
            MINE: (Grant.READ, Grant.ADMIN),
        },
    )
    with pytest.raises(Forbidden):
        narrowed(
            issuer,
            scopes=(),
            grants=(),
            by_scope=by_scope,
            actor=Actor.AGENT,
            expires_at=None,
        )
    allowed = {MINE: ["read"]}
    narrowed(issuer, scopes=(), grants=(), by_scope=allowed, actor=Actor.AGENT, expires_at=None)
