"""Correcting a fact: what was derived from the old value is out of sight, and due again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scrubjay.engine import Kernel
from scrubjay.engine.ledger import derivation
from scrubjay.engine.ledger.derivation import Derivation
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Kind
from scrubjay.model.requests import (
    Amend,
    BriefRequest,
    Get,
    Load,
    Purge,
    Recall,
    Restore,
    Retain,
    Revoke,
    Supersede,
)
from scrubjay.model.rows import Collection
from scrubjay.ports import Failpoint
from tests.support.engines import MemoryHome, SimulatedCrash
from tests.unit.engine.saying import record
from tests.unit.engine.scene import ALICE, address, contents, everything, forget, retain, supersede

OLD = "The dentist of Alice is Doctor Ames in the Harbor Street"
NEW = "The dentist of Alice is Doctor Brown in the Mill Lane"
TEA = "Alice drinks green tea in the morning"
SUMMARY = "Alice sees Doctor Ames in the Harbor Street and drinks green tea"


def told(engine: Kernel) -> tuple[str, str, str]:
    """Two facts and the summary that was derived from both."""
    fact, tea = retain(engine, OLD), retain(engine, TEA)
    return fact, tea, retain(engine, SUMMARY, kind=Kind.SUMMARY, sources=(fact, tea))


def seen(engine: Kernel) -> str:
    """Everything that is told without being asked for by id."""
    asked = Recall("Who is the dentist of Alice, Doctor Ames in the Harbor Street?")
    hits = [hit.memory.content for hit in engine.recall(ALICE, asked).hits]
    return "\n".join([*hits, engine.brief(ALICE, BriefRequest()).markdown, *contents(engine)])


def due(engine: Kernel) -> list[Derivation]:
    """What waits to be derived again."""
    opened = engine._open(ALICE)
    return opened.read(lambda view: derivation.due(ScopeValues(opened, view)))


def test_what_was_derived_from_the_old_value_is_out_of_recall_brief_and_lists(
    engine: Kernel,
) -> None:
    fact, tea, summary = told(engine)
    assert SUMMARY in seen(engine)
    receipt = engine.supersede(ALICE, Supersede(fact, NEW))
    assert "Ames" not in seen(engine)
    assert NEW in seen(engine)
    assert receipt.hidden == 1
    assert due(engine) == [Derivation(sources=(fact, tea), hidden=summary)]
    assert engine.get(ALICE, Get(summary)).hidden


def test_the_jobs_are_a_note_in_the_published_format(engine: Kernel) -> None:
    fact, tea, summary = told(engine)
    supersede(engine, fact, NEW)
    opened = engine._open(ALICE)
    note = opened.read(lambda view: ScopeValues(opened, view).get("derivations"))
    assert note == [{"sources": [fact, tea], "hidden": summary}]


def test_what_was_derived_from_that_is_hidden_as_well(engine: Kernel) -> None:
    fact, _, summary = told(engine)
    second = retain(engine, "All about Alice: Doctor Ames", kind=Kind.SUMMARY, sources=(summary,))
    assert engine.supersede(ALICE, Supersede(fact, NEW)).hidden == 2
    assert "Ames" not in seen(engine)
    assert {job.hidden for job in due(engine)} == {summary, second}


def test_what_is_derived_late_from_the_old_value_comes_hidden(engine: Kernel) -> None:
    """Who summarizes read the old value, and writes after the correction."""
    fact, tea = retain(engine, OLD), retain(engine, TEA)
    supersede(engine, fact, NEW)
    receipt = engine.retain(ALICE, Retain(content=SUMMARY, sources=(fact, tea)))
    assert (receipt.hidden, SUMMARY in seen(engine)) == (1, False)
    wanted = Derivation(sources=(fact, tea), hidden=receipt.id, kind=Kind.FACT)
    assert due(engine) == [wanted]


def test_a_correction_of_the_summary_by_hand_is_in_sight_and_no_longer_due(engine: Kernel) -> None:
    fact, _, summary = told(engine)
    supersede(engine, fact, NEW)
    supersede(engine, summary, "Alice sees Doctor Brown")
    assert "Alice sees Doctor Brown" in contents(engine)
    assert due(engine) == []


def test_revoking_the_correction_shows_the_summary_again(engine: Kernel) -> None:
    fact, tea, summary = told(engine)
    supersede(engine, fact, NEW, session="wrong")
    engine.revoke(ALICE, Revoke(session="wrong"))
    assert {OLD, TEA, SUMMARY} == set(contents(engine))
    assert due(engine) == []
    supersede(engine, fact, NEW, session="one")
    supersede(engine, tea, "Alice drinks coffee", session="two")
    engine.revoke(ALICE, Revoke(session="one"))
    assert engine.get(ALICE, Get(summary)).hidden  # the tea is still corrected
    engine.revoke(ALICE, Revoke(session="two"))
    assert SUMMARY in contents(engine)


def test_a_later_statement_of_the_user_hides_what_was_derived_from_the_earlier(
    engine: Kernel,
) -> None:
    record(engine, 1, "My favorite color is green.")
    fact = next(m for m in everything(engine) if m.kind is not Kind.EPISODE)
    retain(engine, "The kitchen is to be painted green", sources=(fact.id,))
    record(engine, 2, "My favorite color is blue.")
    assert "The kitchen is to be painted green" not in contents(engine)
    forget(engine, "turn-2")
    assert "The kitchen is to be painted green" in contents(engine)


def test_forgetting_a_source_erases_the_text_and_leaves_a_job_of_the_rest(engine: Kernel) -> None:
    fact, tea, _ = told(engine)
    receipt = forget(engine, fact)
    assert (receipt.erased, receipt.derived, receipt.again) == (2, 1, 1)
    assert due(engine) == [Derivation(sources=(tea,))]
    assert [memory.id for memory in everything(engine)] == [tea]
    assert forget(engine, tea).again == 0
    assert due(engine) == []


def test_forgetting_the_summary_itself_leaves_nothing_due(engine: Kernel) -> None:
    fact, _, summary = told(engine)
    assert forget(engine, summary).again == 0
    assert due(engine) == []
    again = retain(engine, SUMMARY, sources=(fact,))
    supersede(engine, fact, NEW)
    forget(engine, again)
    assert due(engine) == []


def test_of_a_chain_of_summaries_the_job_has_what_is_left_at_its_roots(engine: Kernel) -> None:
    fact, tea, summary = told(engine)
    cat = retain(engine, "Alice has a cat")
    retain(engine, "Everything about Alice", sources=(summary, cat))
    assert forget(engine, fact).again == 2
    everything_else = Derivation(sources=(tea, cat), kind=Kind.FACT)
    assert due(engine) == [Derivation(sources=(tea,)), everything_else]


def test_a_job_follows_its_sources_to_their_newest_versions(
    engine: Kernel, home: MemoryHome
) -> None:
    fact, tea, summary = told(engine)
    new = supersede(engine, fact, NEW)
    home.clock.advance(days=31)
    assert engine.purge(ALICE, Purge()).superseded == 1  # the old value; the summary waits
    assert due(engine) == [Derivation(sources=(new, tea), hidden=summary)]
    forget(engine, new)
    assert due(engine) == [Derivation(sources=(tea,))]


class TestAfterPurge:
    """Purge took an old value; what was derived from it is still reached by a forget."""

    def test_forgetting_the_newest_version_erases_what_came_of_the_oldest(
        self, engine: Kernel, home: MemoryHome
    ) -> None:
        for purges in (1, 3):  # all at once, or one after another
            fact, _, summary = told(engine)
            newest = fact
            for number in range(3):
                home.clock.advance(days=31 if purges == 3 else 0)
                engine.purge(ALICE, Purge())
                newest = supersede(engine, newest, f"{NEW}, as of {number}")
            home.clock.advance(days=31)
            engine.purge(ALICE, Purge())
            assert engine.get(ALICE, Get(summary)).hidden
            forget(engine, newest)
            assert_gone(engine, summary)

    def test_so_it_is_after_the_empty_rows_were_dropped(
        self, engine: Kernel, home: MemoryHome
    ) -> None:
        fact, _, summary = told(engine)
        new = supersede(engine, fact, NEW)
        for _ in range(3):
            home.clock.advance(days=40)
            engine.purge(ALICE, Purge())
        forget(engine, new)
        assert_gone(engine, summary)

    def test_an_earlier_version_is_erased_although_the_one_between_has_expired(
        self, engine: Kernel, home: MemoryHome
    ) -> None:
        fact, tea, summary = told(engine)
        middle = supersede(engine, fact, NEW)
        engine.amend(ALICE, Amend(middle, expires_at=home.clock.now() + timedelta(days=1)))
        newest = supersede(engine, middle, f"{NEW}, again")
        engine.amend(ALICE, Amend(newest, expires_at=None))
        home.clock.advance(days=2)
        assert engine.purge(ALICE, Purge()).expired == 1
        forget(engine, newest)
        assert_gone(engine, fact, summary)
        assert engine.get(ALICE, Get(tea)).current

    def test_forgetting_an_expired_memory_by_its_id_erases_what_came_of_it(
        self, engine: Kernel, home: MemoryHome
    ) -> None:
        fact, _, summary = told(engine)
        second = retain(engine, "All about Alice", sources=(summary,))
        for expiring in (fact, summary):
            engine.amend(ALICE, Amend(expiring, expires_at=home.clock.now() + timedelta(days=1)))
        home.clock.advance(days=2)
        assert engine.purge(ALICE, Purge()).expired == 2
        receipt = forget(engine, fact)
        assert (receipt.already, receipt.erased) == (1, 1)
        assert_gone(engine, second)

    def test_forgetting_a_turn_whose_episode_has_expired_erases_what_it_told(
        self, engine: Kernel, home: MemoryHome
    ) -> None:
        record(engine, 1, "My favorite color is green.")
        record(engine, 2, "My favorite color is blue.")
        fact = next(m for m in everything(engine) if "blue" in m.content and m.kind != "episode")
        episode = next(
            m for m in everything(engine) if m.sources == ("turn-2",) and m.kind == "episode"
        )
        engine.amend(ALICE, Amend(episode.id, expires_at=home.clock.now() + timedelta(days=1)))
        home.clock.advance(days=2)
        assert engine.purge(ALICE, Purge()).expired == 1
        forget(engine, "turn-2")
        assert_gone(engine, fact.id)
        assert any("green" in content for content in contents(engine))

    def test_revoking_a_correction_does_not_erase_what_came_of_the_old_value(
        self, engine: Kernel, home: MemoryHome
    ) -> None:
        fact, _, summary = told(engine)
        new = supersede(engine, fact, NEW, session="one")
        newest = supersede(engine, new, f"{NEW}, again")
        home.clock.advance(days=31)
        engine.purge(ALICE, Purge(superseded_days=31))
        engine.revoke(ALICE, Revoke(session="one"))
        assert engine.get(ALICE, Get(summary)).hidden
        forget(engine, newest)
        assert_gone(engine, summary)

    def test_nothing_of_it_is_left_when_nothing_was_derived(
        self, engine: Kernel, home: MemoryHome
    ) -> None:
        newest = retain(engine, OLD)
        for number in range(4):
            newest = supersede(engine, newest, f"{NEW}, as of {number}")
        home.clock.advance(days=31)
        engine.purge(ALICE, Purge())
        assert not any("/link/" in place for place, _ in home.store.raw(address(home)))


def assert_gone(engine: Kernel, *ids: str) -> None:
    for one in ids:
        with pytest.raises(NotFound):
            engine.get(ALICE, Get(one))


def test_a_copy_of_the_scope_keeps_hidden_what_was_hidden(engine: Kernel, home: MemoryHome) -> None:
    fact, tea, summary = told(engine)
    supersede(engine, fact, NEW)
    exported = engine.export(ALICE).content
    raw, receipt = engine.backup(ALICE)
    elsewhere = MemoryHome().engine()
    elsewhere.load(ALICE, Load(exported))
    assert "Ames" not in seen(elsewhere)
    assert due(elsewhere) == [Derivation(sources=(fact, tea), hidden=summary)]
    restored = MemoryHome().engine()
    restored.restore(ALICE, Restore(raw, receipt.key))
    assert "Ames" not in seen(restored)
    assert due(restored) == [Derivation(sources=(fact, tea), hidden=summary)]


def test_a_load_does_not_bring_what_was_derived_from_a_corrected_value_into_sight(
    engine: Kernel,
) -> None:
    elsewhere = MemoryHome().engine()
    fact, _, _ = told(elsewhere)
    retain(engine, OLD, id=fact)
    supersede(engine, fact, NEW)
    engine.load(ALICE, Load(elsewhere.export(ALICE).content))
    assert SUMMARY not in seen(engine)


@pytest.mark.parametrize("dies", [Failpoint.STORE_BEFORE_COMMIT, Failpoint.SUPERSEDE_COMMITTED])
def test_a_crash_leaves_the_old_value_with_its_summary_or_neither(dies: Failpoint) -> None:
    home = MemoryHome()
    fact, _, summary = told(home.engine())
    engine = home.engine()
    home.crashes.at(dies)
    with pytest.raises(SimulatedCrash):
        supersede(engine, fact, NEW)
    engine = home.engine()
    corrected = not engine.get(ALICE, Get(fact)).live
    assert engine.get(ALICE, Get(summary)).hidden is corrected
    assert bool(due(engine)) is corrected


def test_the_jobs_are_sealed_and_name_no_erased_memory(engine: Kernel, home: MemoryHome) -> None:
    retain(engine, OLD, id="needle-fact")
    retain(engine, TEA, id="needle-tea")
    retain(engine, SUMMARY, id="needle-summary", sources=("needle-fact", "needle-tea"))
    supersede(engine, "needle-fact", NEW)
    receipt = forget(engine, "needle-fact")
    assert due(engine)[0].hidden is None
    assert "needle-fact" not in str(due(engine))
    assert "needle-summary" not in str(due(engine))
    raw = b"".join(piece for _, piece in home.store.raw(address(home)))
    assert b"needle" not in raw
    assert {cell.collection for cell in receipt.cells} >= {Collection.SESSION.value}
    assert engine.verify_erased(ALICE, receipt).sound
