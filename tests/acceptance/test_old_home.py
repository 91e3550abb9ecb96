"""A home that older code made opens in this one, and says the same."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from scrubjay import Jay, Scope
from scrubjay.adapters.stores.sqlite.schema import SCOPE
from scrubjay.conversation.outgoing import render_brief
from scrubjay.ports import Failpoint
from tests import old_home
from tests.old_home import EXPECTED, QUERIES, SCOPES
from tests.support.killing import die_at


@pytest.fixture(params=SCOPES, ids=str)
def jay(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Jay]:
    """One scope of the old home, opened by this code, later."""
    scope: Scope = request.param
    with old_home.open_home(old_home.unpack(tmp_path / "home"), scope) as opened:
        yield opened


@pytest.fixture
def expected(jay: Jay) -> dict[str, Any]:
    """What the old code read from that scope."""
    found: dict[str, Any] = json.loads(EXPECTED.read_text())[str(jay.scope)]
    return found


def test_an_old_home_opens_and_verifies(jay: Jay, expected: dict[str, Any]) -> None:
    assert old_home.audit(jay) == expected["audit"]
    assert [*jay.verify().problems, *jay.verify_audit().problems] == expected["problems"] == []


def test_an_old_home_is_recalled_by_its_old_segments_as_by_new_ones(jay: Jay) -> None:
    old = {query: old_home.recalled(jay, query) for query in QUERIES}
    jay.reindex()
    for query in QUERIES:
        ids, scores = zip(*old[query], strict=True)
        new_ids, new_scores = zip(*old_home.recalled(jay, query), strict=True)
        assert ids == new_ids, query
        assert scores == pytest.approx(new_scores, abs=2e-6), query


def test_what_an_old_home_recalled_is_still_recalled(jay: Jay, expected: dict[str, Any]) -> None:
    """The order is today's ranking; what is in quarantine was recalled unasked, and is no more."""
    for query in QUERIES:
        old = {one for one, _ in expected["recall"][query]} - set(expected["quarantined"])
        found = {hit.memory.id for hit in jay.recall(query, limit=100).hits}
        assert old <= found, query


def test_an_old_home_exports_alike(jay: Jay, expected: dict[str, Any]) -> None:
    assert old_home.exported(jay) == expected["export"]


def test_an_old_home_briefs_alike(jay: Jay, expected: dict[str, Any]) -> None:
    """The same memories in the same order; what an agent noted now has a heading of its own."""
    brief = jay.brief()
    assert brief.made_at is not None
    assert render_brief(brief.entries, brief.made_at) == expected["brief"]
    assert "### Noted by the Agent" in brief.markdown


def test_an_old_home_lists_alike(jay: Jay, expected: dict[str, Any]) -> None:
    assert old_home.browsed(jay) == expected["browse"]
    assert old_home.browsed(jay, superseded=True) == expected["superseded"]
    assert [memory.id for memory in jay.quarantined()] == expected["quarantined"]
    assert old_home.history(jay, expected["history_of"]) == expected["history"]
    assert old_home.turns(jay) == expected["turns"]
    assert old_home.sessions(jay) == expected["sessions"]


def test_an_old_receipt_still_proves_its_erasure(
    jay: Jay, expected: dict[str, Any], tmp_path: Path
) -> None:
    assert old_home.receipts(jay) == expected["receipts"] != []
    for kept, document in zip(jay.receipts(), expected["receipts"], strict=True):
        file = tmp_path / "receipt.json"
        file.write_text(json.dumps(document))
        assert jay.verify(kept).sound
        assert jay.verify(file).sound


def test_an_old_home_can_be_written_corrected_and_forgotten_in(
    jay: Jay, expected: dict[str, Any]
) -> None:
    new = jay.retain("The ferry leaves at eight").id
    corrected = jay.supersede(expected["history_of"], "Alice lives in Trieste").id
    assert [one.id for one in jay.history(corrected)][:-1] == [
        one[0] for one in expected["history"]
    ]
    assert new in [hit.memory.id for hit in jay.recall("When does the ferry leave?").hits]
    receipt = jay.forget([corrected, new])
    assert receipt.erased == len(expected["history"]) + 2
    assert jay.verify(receipt).sound
    assert jay.verify().problems == jay.verify_audit().problems == ()


def versions(home: Path) -> set[int]:
    """The schema versions of the scopes' files."""
    files = (home / "data" / "scopes").glob("*.sqlite")
    return {int(apsw.Connection(str(one)).pragma("user_version")) for one in files}


def test_an_old_home_survives_a_kill_at_each_step_of_its_migration(tmp_path: Path) -> None:
    home = old_home.unpack(tmp_path / "home")
    (old,) = versions(home)
    for step in range(1, SCOPE.version - old + 1):
        for scope in SCOPES:
            child = os.fork()
            if child == 0:
                reach = die_at(Failpoint.STORE_MIGRATING, step)
                old_home.open_home(home, scope, reach=reach).verify()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            assert old in versions(home)
    for scope in SCOPES:
        with old_home.open_home(home, scope) as jay:
            jay.retain("The ferry leaves at eight")
            assert jay.verify().problems == jay.verify_audit().problems == ()
    assert versions(home) == {SCOPE.version}
