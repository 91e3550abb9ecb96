"""What every Embedder must do. Subclass the contract, give an embedder, and run pytest.

    class TestMyEmbedder(VectorContract):
        @pytest.fixture
        def embedder(self, clock):
            return MyEmbedder(clock)

`VectorContract` is for embedders that give vectors, which all but one do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scrubjay.model.errors import EmbedderError, Timeout
from scrubjay.ports import Clock, Embedder, Floats
from scrubjay.testing.clock import FakeClock


class FakeEmbedder:
    """An Embedder of a fake clock: what it costs, how long it takes and when it fails is given."""

    def __init__(
        self, clock: FakeClock, *, name: str = "fake", costly: bool = True, dimensions: int = 32
    ) -> None:
        self.seconds = 0.0
        """How long each call takes."""
        self.failure: EmbedderError | None = None
        """What each call raises, if anything."""
        self.texts: list[str] = []
        """Every text it was asked for, in order."""
        self.known: frozenset[str] | None = None
        """The languages it says it was made for."""
        self._clock = clock
        self._name = name
        self._costly = costly
        self._dimensions = dimensions

    @property
    def identity(self) -> str:
        """Its name and shape."""
        return f"{self._name}:{self._dimensions}"

    @property
    def dimensions(self) -> int:
        """Dimensions of a vector."""
        return self._dimensions

    @property
    def costly(self) -> bool:
        """Whether its vectors are kept."""
        return self._costly

    @property
    def languages(self) -> frozenset[str] | None:
        """Those it was given; None for any."""
        return self.known

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        """The sum of the words' own directions, brought to length 1."""
        if self.seconds:
            self._clock.advance(seconds=self.seconds)
        if deadline is not None and self._clock.monotonic() >= deadline:
            raise Timeout("The embedder did not answer in time.")
        if self.failure is not None:
            raise self.failure
        self.texts += texts
        rows = [self._row(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self._dimensions)

    def _row(self, text: str) -> Floats:
        total = np.zeros(self._dimensions, np.float32)
        for word in text.lower().split():
            digest = hashlib.shake_256(f"{self._name} {word}".encode(errors="replace"))
            total += np.frombuffer(digest.digest(self._dimensions), np.int8)
        length = np.float32(np.linalg.norm(total))
        return total / length if length else total


TEXTS = (
    "Alice: I adopted a puppy last week and she sleeps on my feet.",
    "The quarterly report is due on Friday.",
    "Wir fahren im Sommer nach Österreich in die Berge.",
    "我喜欢绿茶。",
    "def main(): return 0",
)
ODD_TEXTS = (
    "\x00",
    "a\x00b",
    "\ud800 half a pair",
    "\u200b\u202e\ufeff",
    "👩‍👩‍👧‍👦",
    "x" * 5_000,
    "word " * 5_000,
    "e\u0301" * 300,
    "\u2028\u2029\t\r\n.",
)
CLOSE = 1e-5


class EmbedderContract:
    """The promises of the port, one test each."""

    @pytest.fixture
    def clock(self) -> Clock:
        """The clock the embedder under test goes by."""
        return FakeClock()

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError("Give an embedder.")

    def test_the_identity_is_one_word_that_stays(self, embedder: Embedder) -> None:
        before = embedder.identity
        embedder.embed(TEXTS)
        assert embedder.identity == before
        assert before.isascii()
        assert before.split() == [before]

    def test_the_languages_are_some_or_any_and_stay(self, embedder: Embedder) -> None:
        known = embedder.languages
        assert known is None or known
        embedder.embed(TEXTS)
        assert embedder.languages == known

    def test_there_is_one_row_of_floats_per_text(self, embedder: Embedder) -> None:
        for count in (0, 1, len(TEXTS)):
            rows = embedder.embed(TEXTS[:count])
            assert rows.shape == (count, embedder.dimensions)
            assert rows.dtype == np.float32

    @pytest.mark.parametrize("text", ["", " ", "\n\t "])
    def test_a_text_that_says_nothing_has_no_direction(self, embedder: Embedder, text: str) -> None:
        rows = embedder.embed([TEXTS[0], text, TEXTS[1]])
        assert not rows[1].any()
        assert np.allclose(rows[[0, 2]], embedder.embed(TEXTS[:2]), atol=CLOSE)

    def test_rows_are_of_length_one_or_zero_whatever_the_text(self, embedder: Embedder) -> None:
        lengths = np.linalg.norm(embedder.embed(ODD_TEXTS), axis=1)
        assert all(abs(length - 1) < CLOSE or length == 0 for length in lengths)

    def test_a_text_has_the_same_row_whatever_stands_beside_it(self, embedder: Embedder) -> None:
        together = embedder.embed(TEXTS)
        alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
        backwards = embedder.embed(TEXTS[::-1])[::-1]
        assert np.allclose(together, alone, atol=CLOSE)
        assert np.allclose(together, backwards, atol=CLOSE)

    def test_a_repeated_call_gives_the_same_bytes(self, embedder: Embedder) -> None:
        assert embedder.embed(TEXTS).tobytes() == embedder.embed(TEXTS).tobytes()

    def test_many_texts_keep_their_order(self, embedder: Embedder) -> None:
        texts = [TEXTS[number % len(TEXTS)] for number in range(300)]
        few = embedder.embed(TEXTS)
        assert np.allclose(embedder.embed(texts), few[np.arange(300) % len(TEXTS)], atol=CLOSE)

    def test_threads_get_the_same_rows(self, embedder: Embedder) -> None:
        expected = embedder.embed(TEXTS)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(embedder.embed, [TEXTS] * 12))
        assert all(np.allclose(answer, expected, atol=CLOSE) for answer in answers)

    def test_rows_belong_to_the_caller(self, embedder: Embedder) -> None:
        rows = embedder.embed(TEXTS)
        expected = rows.copy()
        rows += 1
        assert np.allclose(embedder.embed(TEXTS), expected, atol=CLOSE)


class VectorContract(EmbedderContract):
    """The promises of an embedder that gives vectors."""

    def test_every_text_has_a_direction_of_its_own(self, embedder: Embedder) -> None:
        rows = embedder.embed([TEXTS[0], TEXTS[1], TEXTS[4]])
        likeness = rows @ rows.T
        assert np.allclose(np.diag(likeness), 1, atol=CLOSE)
        assert (likeness[~np.eye(3, dtype=bool)] < 0.999).all()

    def test_a_deadline_that_has_passed_is_a_timeout(
        self, embedder: Embedder, clock: Clock
    ) -> None:
        with pytest.raises(Timeout) as caught:
            embedder.embed(TEXTS, deadline=clock.monotonic() - 1)
        assert isinstance(caught.value, EmbedderError)

    def test_a_deadline_far_off_changes_nothing(self, embedder: Embedder, clock: Clock) -> None:
        rows = embedder.embed(TEXTS, deadline=clock.monotonic() + 1_000)
        assert np.allclose(rows, embedder.embed(TEXTS), atol=CLOSE)
