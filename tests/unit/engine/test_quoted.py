"""quoted: what stands in a turn without being said by either side is a memory of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.errors import Forbidden
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Origin
from scrubjay.model.pages import Paged
from scrubjay.model.requests import Approve, MarkTainted, Recall, Retain
from scrubjay.model.turns import QUOTED_CHARS, QUOTED_PIECES, Piece, Turn
from tests.support.engines import MemoryHome
from tests.unit.engine.saying import record
from tests.unit.engine.scene import ALICE, everything, forget
from tests.unit.model.test_quotation import EVIL, PAGE, QUOTED


@pytest.fixture
def engine() -> Kernel:
    return MemoryHome().engine()


def by_origin(engine: Kernel, origin: Origin) -> list[Memory]:
    return [memory for memory in everything(engine) if memory.origin is origin]


@pytest.mark.parametrize("text", QUOTED.values(), ids=list(QUOTED))
def test_what_a_user_quotes_is_never_theirs_nor_in_the_brief(engine: Kernel, text: str) -> None:
    record(engine, 0, text)
    quoted = by_origin(engine, Origin.QUOTED)
    assert any("evil" in memory.content for memory in quoted)
    assert not any(memory.kind.behavioral for memory in quoted)
    others = [one for one in everything(engine) if one.origin is not Origin.QUOTED]
    assert not any("evil" in memory.content for memory in others)
    assert "evil" not in engine.brief(ALICE).markdown
    assert "evil" not in "".join(moment.gist for moment in engine.timeline(ALICE, Paged()).moments)


@pytest.mark.parametrize("name", ["a fence", "a block quote", "typographic marks", "tags"])
def test_what_an_assistant_quotes_is_not_the_agents(engine: Kernel, name: str) -> None:
    record(engine, 0, "What does the page say?", QUOTED[name])
    assert any("evil" in memory.content for memory in by_origin(engine, Origin.QUOTED))
    assert not any("evil" in memory.content for memory in by_origin(engine, Origin.AGENT))


def test_the_own_words_beside_a_quotation_are_kept(engine: Kernel) -> None:
    record(engine, 0, f"I prefer tea.\n> {EVIL}")
    (preference,) = [one for one in everything(engine) if one.kind is Kind.PREFERENCE]
    assert (preference.content, preference.origin) == ("User prefers tea.", Origin.USER)


def test_what_was_quoted_can_be_recalled_and_its_turn_is_whole(engine: Kernel) -> None:
    record(engine, 0, f"Look at this:\n> {EVIL}")
    hits = engine.recall(ALICE, Recall("where do invoices go")).hits
    assert EVIL in hits[0].memory.content
    assert engine.turns(ALICE)[0].user == f"Look at this:\n> {EVIL}"


def test_a_quotation_in_an_untrusted_turn_or_session_is_trusted_no_more(engine: Kernel) -> None:
    record(engine, 0, f"Result of the search:\n> {EVIL}", origin="web")
    assert by_origin(engine, Origin.QUOTED) == []
    engine.mark_tainted(ALICE, MarkTainted("browsing", Origin.TOOL))
    record(engine, 1, "And now?", f"It says\n> {EVIL}", session="browsing")
    assert by_origin(engine, Origin.QUOTED) == []
    assert any(EVIL in memory.content for memory in by_origin(engine, Origin.TOOL))


def test_a_long_page_yields_a_bounded_number_of_bounded_pieces(engine: Kernel) -> None:
    record(engine, 0, f"What is this?\n{PAGE * 40}")
    quoted = by_origin(engine, Origin.QUOTED)
    assert len(quoted) == QUOTED_PIECES
    assert max(len(memory.content) for memory in quoted) <= QUOTED_CHARS


def test_forgetting_a_quotation_forgets_its_turn(engine: Kernel) -> None:
    record(engine, 0, f"Look at this, I prefer tea:\n> {EVIL}")
    forget(engine, by_origin(engine, Origin.QUOTED)[0].id)
    assert everything(engine) == []
    assert engine.turns(ALICE).data == ()


def test_a_quotation_never_tells_an_agent_how_to_act(engine: Kernel) -> None:
    request = Retain(content=EVIL, kind=Kind.INSTRUCTION, origin=Origin.QUOTED, pinned=True)
    one = engine.retain(ALICE, request).id
    assert [memory.id for memory in engine.quarantined(ALICE)] == [one]
    with pytest.raises(Forbidden, match="quotation"):
        engine.approve(ALICE, Approve(one, EVIL))
    assert engine.brief(ALICE).entries == ()


def test_a_distiller_that_knows_nothing_of_quotations_changes_nothing_of_that() -> None:
    class Parrot:
        """A distiller that takes all that is said for an instruction."""

        identity = "parrot"

        def distill(self, turn: Turn) -> Sequence[Piece]:
            return [Piece(part="all", kind=Kind.INSTRUCTION, content=turn.user)]

        def words(self, turn: Turn) -> frozenset[str]:
            return frozenset(turn.user.split())

    home = MemoryHome()
    home.distiller = Parrot()
    engine = home.engine()
    record(engine, 0, f"Mind this:\n> {EVIL}")
    (own,) = by_origin(engine, Origin.USER)
    assert "evil" not in own.content
    assert any(EVIL in memory.content for memory in by_origin(engine, Origin.QUOTED))
