"""Many texts at once: the same is found as text by text."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrubjay.engine.search import analysis, vocabulary
from scrubjay.engine.search.postings import Postings
from scrubjay.engine.search.sounds import sounds
from scrubjay.model.memory import Kind, Memory, wording

PIECES = [
    *(
        "I",
        "don't",
        "John's",
        "Always",
        "answer",
        "in",
        "on",
        "Friday",
        "1,000.5",
        "3pm",
        "'quoted'",
    ),
    *("der", "und", "nicht", "wir", "le", "que", "Muhammad", "Catherine", "Tea?", "the", "is", "?"),
    *(
        "x" * 70,
        "\x00",
        "\x1c",
        "caf\u00e9",
        "\u4e2d\u6587",
        "I\u2019m",
        "prefer",
        "...",
        "A-B",
        "_",
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=260).map(" ".join)
WHEN = datetime(2024, 1, 1, tzinfo=UTC)


def _memory(text: str, speaker: str | None, tags: list[str]) -> Memory:
    return Memory(
        id="m", kind=Kind.FACT, content=text, recorded_at=WHEN, speaker=speaker, tags=tuple(tags)
    )


def _one_by_one(memories: list[Memory]) -> tuple[bytes, list[str], list[analysis.Signs]]:
    said = [wording(one.content, one.tags) for one in memories]
    found = [
        analysis.analyze(f"{one.speaker}: {text}" if one.speaker else text)
        for one, text in zip(memories, said, strict=True)
    ]
    postings = Postings.of([terms for terms, _ in found], [sounds(text) for text in said])
    signs = [analysis.read_signs(one.content) for one in memories]
    return postings.pack(), [language for _, language in found], signs


def _at_once(memories: list[Memory]) -> tuple[bytes, list[str], list[analysis.Signs]]:
    found = vocabulary.analyze(memories)
    postings = Postings.occurring(found.keys, found.rows, found.lengths)
    return postings.pack(), found.languages, found.signs


@given(
    st.lists(
        st.builds(
            _memory,
            TEXTS,
            st.sampled_from([None, "Ann", "Mary Ann", "J\u00fcrgen"]),
            st.lists(
                st.sampled_from(["tea", "red wine", "category:Paris", "se\u00f1al"]), max_size=2
            ),
        ),
        max_size=8,
    )
)
@example([_memory("wir " * 201 + "the " * 300, None, []), _memory("the", None, [])])
@example([_memory("the " * 250 + "Friday", None, []), _memory("?", "Ann", [])])
def test_many_texts_are_analyzed_as_each_is(memories: list[Memory]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for few in (0, 3, 100):
            patch.setattr(vocabulary, "_FEW", few)
            assert _at_once(memories) == _one_by_one(memories)


def test_more_memories_than_a_run_keep_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_RUN", 3)
    monkeypatch.setattr(vocabulary, "_FEW", 1)
    memories = [_memory(f"Alice drinks tea {number}", None, []) for number in range(10)]
    assert _at_once(memories) == _one_by_one(memories)


def test_a_full_vocabulary_begins_anew_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "CACHED_WORDS", 5)
    monkeypatch.setattr(vocabulary, "_FEW", 1)
    memories = [_memory(f"Bob met Carol on day {number}", "Bob", []) for number in range(10)]
    assert [_at_once([one]) for one in memories] == [_one_by_one([one]) for one in memories]
    assert len(vocabulary._usable()) <= 5 + 10


def test_what_is_too_long_for_a_word_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_FEW", 1)
    text = "y" * 5_000
    assert _at_once([_memory(text, None, [])]) == _one_by_one([_memory(text, None, [])])
    assert text not in vocabulary._usable()
