"""The index of one scope: whatever the order of changes, it knows what a fresh one would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scrubjay.engine.search.analysis import Wanted, terms
from scrubjay.engine.search.scope_index import ScopeIndex
from scrubjay.engine.search.segment import (
    NOTHING,
    Columns,
    IndexEntry,
    Segment,
    Vectors,
    unpack_arrays,
)
from scrubjay.model.memory import Kind, Memory, Provenance

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("tea", "coffee", "mountain", "river", "Paris", "violin", "garden")
DIMENSIONS = 8


def _entry(number: int, seq: int, word: str) -> IndexEntry:
    memory = Memory(
        id=f"mem-{number}",
        kind=Kind.FACT,
        content=f"something about {word}",
        recorded_at=START + timedelta(minutes=number),
        provenance=Provenance(session=f"session {number % 3}"),
        speaker=("Ann", "Bob", None)[number % 3],
        position=number,
        tags=(word, "all")[: number % 3],
        number=number,
    )
    return IndexEntry(row_id=number.to_bytes(16), seq=seq, memory=memory)


def _vectors(entries: Sequence[IndexEntry]) -> np.ndarray:
    rng = np.random.default_rng(len(entries))
    return rng.standard_normal((len(entries), DIMENSIONS)).astype(np.float32)


def _add(index: ScopeIndex, *entries: IndexEntry) -> None:
    index.add(entries)


def _holders(index: ScopeIndex, term: str) -> set[bytes]:
    """The ids of the rows that count and hold a term."""
    scores = index.snapshot().match([Wanted(term)]).scores
    rows = np.flatnonzero(scores > 0)
    return {index.columns().row_id[row].tobytes() for row in rows}


def _empty() -> ScopeIndex:
    return ScopeIndex(identity="test:8", dimensions=DIMENSIONS, vectorize=_vectors)


@pytest.fixture
def index() -> ScopeIndex:
    return _empty()


def test_what_was_added_is_found(index: ScopeIndex) -> None:
    _add(index, _entry(1, 1, "tea"), _entry(2, 2, "river"))
    assert _holders(index, "tea") == {(1).to_bytes(16)}


def test_what_was_erased_is_not(index: ScopeIndex) -> None:
    _add(index, _entry(1, 1, "tea"), _entry(2, 2, "tea"))
    index.settle()
    index.erase([(1).to_bytes(16)])
    assert _holders(index, "tea") == {(2).to_bytes(16)}


def test_a_memory_that_changed_counts_once_and_as_it_is_now(index: ScopeIndex) -> None:
    _add(index, _entry(1, 1, "tea"))
    index.settle()
    _add(index, _entry(1, 2, "river"))
    assert _holders(index, "tea") == set()
    assert _holders(index, "river") == {(1).to_bytes(16)}
    assert len(index.columns()) == 1


def test_a_snapshot_stays_as_it_was_while_the_index_moves_on(index: ScopeIndex) -> None:
    """Who ranks by it in another thread must not see rows come, go, or change their numbers."""
    _add(index, _entry(1, 1, "tea"), _entry(2, 2, "river"))
    before = index.snapshot()
    index.erase([(1).to_bytes(16)])
    _add(index, _entry(3, 3, "tea"))
    after = index.snapshot()
    assert np.flatnonzero(before.match([Wanted("tea")]).scores).tolist() == [0]
    assert len(before.columns) == len(before.cosine(np.ones(DIMENSIONS, np.float32))[0]) == 2
    assert after.columns.row_id[:, -1].tolist() == [2, 3]


def test_without_a_change_the_snapshot_is_the_same_one(index: ScopeIndex) -> None:
    _add(index, _entry(1, 1, "tea"))
    first = index.snapshot()
    assert index.snapshot() is first
    _add(index, _entry(2, 2, "river"))
    assert index.snapshot() is not first


@pytest.mark.parametrize("asked", [1, 2])
def test_the_first_question_and_the_next_one_measure_alike(index: ScopeIndex, asked: int) -> None:
    _add(index, *(_entry(number, number, WORDS[number % 7]) for number in range(1, 30)))
    index.settle()
    index.erase([(3).to_bytes(16)])
    floats = _vectors([None] * 29)  # type: ignore[list-item]  # only their number counts
    kept = np.delete(Vectors.quantize("test:8", floats).floats(), 2, axis=0)
    query = np.arange(DIMENSIONS, dtype=np.float32)
    turned = (query - kept.mean(axis=0)) / np.linalg.norm(query - kept.mean(axis=0))
    apart = kept - kept.mean(axis=0)
    expected = apart @ turned / np.linalg.norm(apart, axis=1)
    found = [index.snapshot().cosine(query)[0] for _ in range(asked)][-1]
    assert np.allclose(found, expected, atol=1e-5)


def test_an_empty_index_answers_with_nothing(index: ScopeIndex) -> None:
    assert len(index.columns()) == 0
    assert len(index.snapshot().match([Wanted("tea")]).scores) == 0
    assert len(index.snapshot().cosine(np.ones(DIMENSIONS, np.float32))[0]) == 0
    assert index.plan() is None


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from(WORDS), st.booleans()), max_size=150
    )
)
def test_any_order_of_changes_leaves_what_a_fresh_index_has(
    steps: list[tuple[int, str, bool]],
) -> None:
    index, model, born = _empty(), dict[int, str](), dict[int, int]()
    for seq, (number, word, erase) in enumerate(steps, start=1):
        if erase:
            index.erase([number.to_bytes(16)])
            model.pop(number, None)
        else:
            born.setdefault(number, seq)
            entry = _entry(number, seq, word)
            _add(index, replace(entry, memory=replace(entry.memory, number=born[number])))
            model[number] = word
        if seq % 7 == 0:
            index.settle()
    index.settle()
    for word in WORDS:
        expected = {number.to_bytes(16) for number, held in model.items() if held == word}
        found = {
            index.columns().row_id[row].tobytes()
            for row in range(len(index.columns()))
            if _content_holds(index, row, word)
        }
        assert found == expected


def _content_holds(index: ScopeIndex, row: int, word: str) -> bool:
    term = terms(word)[0]
    return bool(index.snapshot().match([Wanted(term)]).scores[row] > 0)


def test_a_segment_reads_back_as_it_was_written() -> None:
    entries = [_entry(number, number, WORDS[number % 7]) for number in range(1, 40)]
    written = Segment.of(entries, _vectors(entries), "test:8")
    read = Segment.unpack(written.pack())
    assert read.columns.names == written.columns.names
    assert (read.postings.keys == written.postings.keys).all()
    assert (read.columns.row_id == written.columns.row_id).all()
    assert (read.vectors.steps == written.vectors.steps).all()
    assert read.vectors.identity == "test:8"


def test_a_merge_leaves_no_trace_of_what_was_left_out() -> None:
    secret = replace(_entry(1, 1, "tea").memory, content="xylophone", tags=("hush",), speaker="Zoe")
    entries = [IndexEntry(row_id=bytes(16), seq=1, memory=secret), _entry(2, 2, "river")]
    one = Segment.of(entries, _vectors(entries), "test:8")
    merged = Segment.merge([one], [np.array([False, True])])
    raw = b"".join(merged.pack())
    assert not any(word in raw for word in (b"xyloph", b"hush", b"Zoe", b"zoe"))
    assert len(merged) == 1


def test_tags_are_and_ed() -> None:
    entries = [_entry(number, number, "tea") for number in range(6)]
    held = Columns.of(entries)
    assert held.tagged(["tea", "all"]).tolist() == [False, False, True, False, False, True]
    assert not held.tagged(["no such tag"]).any()


def test_a_name_nobody_has_has_no_code() -> None:
    assert Columns.of([]).code("Ann") == NOTHING


def test_bytes_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="no arrays"):
        unpack_arrays(b"something else")


def test_a_quantized_vector_points_where_it_did() -> None:
    floats = np.random.default_rng(7).standard_normal((50, 256)).astype(np.float32)
    back = Vectors.quantize("x", floats).floats()
    cosine = (floats * back).sum(1) / np.linalg.norm(floats, axis=1) / np.linalg.norm(back, axis=1)
    assert cosine.min() > 0.9995


def test_a_vector_of_zeros_stays_one() -> None:
    assert not Vectors.quantize("x", np.zeros((2, 4), np.float32)).floats().any()


@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_bytes_are_multiplied_as_exactly_as_floats(rows: int) -> None:
    chance = np.random.default_rng(rows)
    floats = chance.standard_normal((rows + 2, 256)).astype(np.float32)
    floats /= np.linalg.norm(floats, axis=1, keepdims=True)
    held, queries = Vectors.quantize("x", floats[2:]), floats[:2]
    exact = held.floats().astype(np.float64) @ queries.T.astype(np.float64)
    for query, dots in zip(queries, exact.T, strict=True):
        assert np.allclose(held.dot(query), dots, rtol=0, atol=1e-5)
    assert np.allclose(held.total(), held.floats().sum(axis=0), atol=1e-4)


THREADS = """
import os
from pathlib import Path
import numpy as np
from scrubjay.ports import SystemClock
from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.engine.search.segment import Vectors

def others():
    used = {one.name: int((one / "schedstat").read_text().split()[0]) for one in TASKS.iterdir()}
    used.pop(str(os.getpid()))
    return sum(used.values())

TASKS, before = Path("/proc/self/task"), 0
embedder = StaticEmbedder(SystemClock())
before = others()
held = Vectors.quantize("x", embedder.embed(["green tea in the morning " * 40] * 3_000))
for _ in range(20):
    held.dot(embedder.embed(["What does Alice drink? " * 40])[0])
held.total()
print(others() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are told apart by /proc")
def test_vectors_are_computed_without_the_threads_of_blas() -> None:
    """As installed: with no variable that bounds them."""
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", THREADS], env=free, capture_output=True, check=True
    )
    assert int(done.stdout) == 0
