"""What every Extractor must do. Subclass the contract, give an extractor, and run pytest.

class TestMyExtractor(ExtractorContract):
    @pytest.fixture
    def extractor(self):
        return MyExtractor()
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from scrubjay.domain.errors import ExtractorError
from scrubjay.domain.memory import Kind
from scrubjay.domain.text import check_content, check_share, check_tags
from scrubjay.domain.turns import MODEL_PART, MODEL_PIECES, Turn
from scrubjay.ports import Extractor
from scrubjay.testing.distiller_contract import NOON, TURNS


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
            check_content(piece.content)
            check_tags(piece.tags)
            check_share("The importance", piece.importance)

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
