"""What every Distiller must do. Subclass the contract, give a distiller, and run pytest.

class TestMyDistiller(DistillerContract):
    @pytest.fixture
    def distiller(self):
        return MyDistiller()
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import asdict

from scrubjay.model.errors import ExtractorError
from scrubjay.model.memory import Kind
from scrubjay.model.text import checked
from scrubjay.model.turns import EPISODE_PART, MODEL_PART, MODEL_PIECES, Piece, Turn
from scrubjay.ports import Distiller, Extractor

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TURNS = (
    ("I prefer tea. My dentist is Dr. Wu. Call me Sam.", "Gladly, Sam."),
    ("Which museum has the blue whale?", "The one by the harbor."),
    ("ok", "ok"),
    ("", ""),
    ("", "Only an answer, and a rather long one, of more words than a courtesy would need."),
    ("word " * 20_000, "answer " * 20_000),
    ("\u2028```\ncode", "[1, 2"),
    ("我的牙医是吴医生。", "好的，记住了，下次我会提醒你去看吴医生。"),  # noqa: RUF001
)


def turn(user: str, assistant: str = "I see.", **fields: Any) -> Turn:
    """A turn that says this."""
    return Turn(id="turn-1", at=NOON, user=user, assistant=assistant, **fields)


@pytest.mark.parametrize(("user", "assistant"), TURNS, ids=range(len(TURNS)))
class DistillerContract:
    """The promises of the port, one test each, for turns of many sorts."""

    @pytest.fixture
    def distiller(self) -> Distiller:
        """The distiller under test."""
        raise NotImplementedError("Give a distiller.")

    def test_the_same_turn_yields_the_same(
        self, distiller: Distiller, user: str, assistant: str
    ) -> None:
        first, again = turn(user, assistant), turn(user, assistant)
        assert list(distiller.distill(first)) == list(distiller.distill(again))
        assert distiller.words(first) == distiller.words(again)

    def test_what_it_yields_does_not_depend_on_the_id_and_of_the_time_only_on_the_day(
        self, distiller: Distiller, user: str, assistant: str
    ) -> None:
        other = Turn(id="other", at=NOON.replace(hour=7), user=user, assistant=assistant)
        assert list(distiller.distill(other)) == list(distiller.distill(turn(user, assistant)))

    def test_what_names_no_date_does_not_depend_on_the_time(
        self, distiller: Distiller, user: str, assistant: str
    ) -> None:
        other = Turn(id="turn-1", at=NOON.replace(year=2020), user=user, assistant=assistant)
        assert list(distiller.distill(other)) == list(distiller.distill(turn(user, assistant)))

    def test_the_episode_comes_first_and_every_part_once(
        self, distiller: Distiller, user: str, assistant: str
    ) -> None:
        pieces = list(distiller.distill(turn(user, assistant)))
        parts = [piece.part for piece in pieces]
        assert len(parts) == len(set(parts))
        assert not parts or (parts[0], pieces[0].kind) == (EPISODE_PART, Kind.EPISODE)

    def test_every_piece_can_be_kept_as_a_memory(
        self, distiller: Distiller, user: str, assistant: str
    ) -> None:
        for piece in distiller.distill(turn(user, assistant)):
            checked(Piece, asdict(piece))

    def test_what_rests_on_the_answer_is_not_said_by_the_user(
        self, distiller: Distiller, user: str, assistant: str
    ) -> None:
        for piece in distiller.distill(turn(user, assistant)):
            if assistant.strip() and assistant.strip()[:20] in piece.content:
                assert not piece.said_by_user

    def test_several_threads_get_the_same(
        self, distiller: Distiller, user: str, assistant: str
    ) -> None:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(distiller.distill, [turn(user, assistant)] * 8))
        assert all(list(one) == list(found[0]) for one in found)


def _turn(user: str, assistant: str) -> Turn:
    return Turn(id="turn-1", at=NOON, user=user, assistant=assistant)


@pytest.mark.parametrize(("user", "assistant"), TURNS, ids=range(len(TURNS)))
class ExtractorContract:
    """The promises of the port, one test each, for turns of many sorts."""

    @pytest.fixture
    def extractor(self) -> Extractor:
        """The extractor under test, its model in good health."""
        raise NotImplementedError("Give an extractor.")

    def test_parts_are_numbered_from_the_first_and_are_not_many(
        self, extractor: Extractor, user: str, assistant: str
    ) -> None:
        pieces = extractor.extract(_turn(user, assistant), ()).pieces
        expected = [f"{MODEL_PART}{number}" for number in range(len(pieces))]
        assert [piece.part for piece in pieces] == expected
        assert len(pieces) <= MODEL_PIECES

    def test_nothing_is_an_episode_or_a_summary_or_said_by_the_user(
        self, extractor: Extractor, user: str, assistant: str
    ) -> None:
        for piece in extractor.extract(_turn(user, assistant), ()).pieces:
            assert piece.kind not in (Kind.EPISODE, Kind.SUMMARY)
            assert not piece.said_by_user

    def test_every_piece_can_be_kept_as_a_memory(
        self, extractor: Extractor, user: str, assistant: str
    ) -> None:
        for piece in extractor.extract(_turn(user, assistant), ()).pieces:
            checked(Piece, asdict(piece))

    def test_an_answer_says_what_it_cost(
        self, extractor: Extractor, user: str, assistant: str
    ) -> None:
        answer = extractor.extract(_turn(user, assistant), ("Noted before.",))
        assert answer.usable
        assert min(answer.tokens_in, answer.tokens_out) > 0

    def test_a_deadline_that_has_passed_is_an_error(
        self, extractor: Extractor, user: str, assistant: str
    ) -> None:
        with pytest.raises(ExtractorError):
            extractor.extract(_turn(user, assistant), (), deadline=0.0)

    def test_several_threads_get_an_answer(
        self, extractor: Extractor, user: str, assistant: str
    ) -> None:
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(extractor.extract, _turn(user, assistant), ()) for _ in range(8)]
        assert all(one.result().usable for one in asked)
