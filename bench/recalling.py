"""What a recall costs, from a thousand memories to a hundred thousand, and what an index takes."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Final

import numpy as np

from bench.conversation import Conversation
from bench.measure import Comparison, Cost, Spread, alternate, timed
from bench.plot import loglog
from bench.report import Line, Section, duration
from bench.subject import scratch
from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel, Policy
from scrubjay.engine.search import question, recall
from scrubjay.engine.search.analysis import terms
from scrubjay.engine.search.open_index import OpenIndex
from scrubjay.engine.transfer import bundle
from scrubjay.model.memory import Memory
from scrubjay.model.requests import Forget, Load, Recall, Retain
from scrubjay.model.scope import Scope

SIZES: Final = (1_000, 5_000, 20_000, 50_000, 100_000)
QUICK: Final = (1_000, 5_000)
MOST: Final = 4.0
RECALL_SECONDS: Final = {5_000: 0.0013, 50_000: 0.007}
FORGET_SECONDS: Final = 0.25
ROWS_BYTES: Final = 6e6
_INDEXED: Final = 5_000
_MEDIUM: Final = 20_000
_WORD: Final = re.compile(r"\w+")
OPEN_SECONDS: Final = {5_000: 0.010, 50_000: 0.060}
RAM_BYTES: Final = 12_000_000
_SCOPE: Final = Scope.parse("bench")
_K1, _B = 1.2, 0.75
Curves = dict[str, dict[int, float]]
PLOT: Final = Path(__file__).parent / "recall.svg"


def run(*, quick: bool) -> Section:
    """Recall beside the floor, cold opens, RAM, and many scopes under one shelf."""
    return _over(QUICK if quick else SIZES, quick=quick, whole=True)


def musts(*, quick: bool) -> Section:
    """The same at the two sizes that have targets, without the picture and the many scopes."""
    return _over(QUICK if quick else tuple(RECALL_SECONDS), quick=quick, whole=False)


def _over(sizes: tuple[int, ...], *, quick: bool, whole: bool) -> Section:
    section = Section(
        "Recall",
        reason="docs/design.md says where the time goes; mind the machine's load above.",
    )
    section.notes.append(
        "Invented conversations (sessions of 25 turns, five speakers, word frequencies like real "
        "ones), sealed, static embedder, everything on, as installed. The floor scores *all* "
        "rows by bare postings of the question's words and one full dot product; *index + rank* is "
        "all a recall does besides reading the head and unsealing ten rows."
    )
    names = ("whole recall", "index + rank", "floor", "cold open", "retain", "forget")
    curves: Curves = {name: {} for name in names}
    for size in sizes:
        with scratch() as folder:
            _measure(section, curves, folder, size, quick=quick)
    if not whole:
        return section
    if not quick:
        PLOT.write_text(loglog("Cost against size", "memories in the scope", "ms", curves))
        section.notes.append(f"![Cost against size]({PLOT.name})")
    with scratch() as folder:
        _many(section, folder, quick=quick)
    return section


def _measure(section: Section, curves: Curves, folder: Path, size: int, *, quick: bool) -> None:
    talk = Conversation()
    memories = talk.memories(size)
    content = bundle.to_json(bundle.Content(scope=_SCOPE, made_at="", memories=tuple(memories)))
    questions = [talk.question() for _ in range(30 if quick else 100)]
    with _engine(folder) as engine:
        engine.load(_SCOPE, Load(content))
        engine.recall(_SCOPE, Recall(query="first"))
        if size == _INDEXED:
            section.lines.append(_from_rows(engine, memories))
        found = _ratio(engine, questions)
        section.compare(f"{size:,}: index + rank", found.wall, unit="ms", most=MOST)
        curves["index + rank"][size] = found.wall.ours.median * 1e3
        curves["floor"][size] = found.wall.floor.median * 1e3
        costs = [timed(lambda q=q: engine.recall(_SCOPE, Recall(query=q))) for q in questions]  # type: ignore[misc]
        curves["whole recall"][size] = median(one.wall for one in costs) * 1e3
        section.lines.append(_whole(size, costs))
        retained = [
            _seconds(lambda n=n: engine.retain(_SCOPE, Retain(content=f"{talk.question()} {n}")))  # type: ignore[misc]
            for n in range(10 if quick else 50)
        ]
        curves["retain"][size] = median(retained) * 1e3
    cold = [_open(folder) for _ in range(5 if quick else 15)]
    curves["cold open"][size] = median(cold) * 1e3
    section.lines.append(_cold(f"{size:,}: cold open", cold, OPEN_SECONDS.get(size)))
    with _engine(folder) as engine:
        engine.recall(_SCOPE, Recall(query="first"))
        forgotten = [
            _seconds(lambda n=n: _forget(engine, memories[size // 2 + n].id))  # type: ignore[misc]
            for n in range(1 if size > _MEDIUM else 5)
        ]
        curves["forget"][size] = median(forgotten) * 1e3
        section.lines.append(_forgotten(size, forgotten))
    after = [_open(folder) for _ in range(5 if quick else 15)]
    section.lines.append(
        _cold(f"{size:,}: cold open after a forget", after, 2 * median(cold), peer=median(cold))
    )
    if size == 5_000:
        section.lines.append(_ram(folder, 3 if quick else 8))


@contextmanager
def _engine(folder: Path, policy: Policy | None = None) -> Iterator[Kernel]:
    engine = bootstrap.build(settings.at_home(folder), policy=policy)
    try:
        yield engine
    finally:
        engine.close()


# -- ours beside the floor ----------------------------------------------------------------------


def _ratio(engine: Kernel, questions: list[str]) -> Comparison:
    opened, indexed = engine._open(_SCOPE), engine._indexed(_SCOPE)
    searched = [recall.ScopeSearch(indexed=indexed, snapshot=recall.catch_up(indexed, []))]
    floor = _Floor(indexed, opened.ports.embedder)
    asked = iter(questions * 2)
    again = iter(questions * 2)

    def ours() -> object:
        request = Recall(query=next(asked))
        parts = question.questions(request.query)
        vectors = recall.embed(opened.ports.embedder, parts)
        return recall.rank(recall.search(searched, request, parts, vectors), 10, 10)

    return alternate(len(questions), lambda: timed(ours), lambda: timed(lambda: floor(next(again))))


class _Floor:
    """Bare postings and a full dot product: the least that scores every row."""

    def __init__(self, indexed: OpenIndex, embedder: object) -> None:
        parts = indexed.ready._parts
        assert len(parts) == 1
        self._postings = parts[0].postings
        self._floats = parts[0].vectors.floats()
        self._embedder = embedder
        lengths = self._postings.lengths.astype(np.float32)
        self._norms = (_K1 * (1 - _B + _B * lengths / lengths.mean())).astype(np.float32)

    def __call__(self, question: str) -> object:
        rows = len(self._norms)
        scores = np.zeros(rows, np.float32)
        for term in set(terms(question, "english")):
            found, counts = self._postings.find([term])[0]
            rarity = np.float32(np.log1p((rows - len(found) + 0.5) / (len(found) + 0.5)))
            times = counts.astype(np.float32)
            scores[found] += rarity * times / (times + self._norms[found])
        vector = self._embedder.embed([question])[0]  # type: ignore[attr-defined]
        scores += np.einsum("ij,j->i", self._floats, vector)
        best = np.argpartition(-scores, 10)[:10]
        return best[np.argsort(-scores[best])]


def _whole(size: int, costs: list[Cost]) -> Line:
    times, most = Spread.of([one.wall for one in costs]), RECALL_SECONDS.get(size)
    p95 = quantiles([one.wall for one in costs], n=20, method="inclusive")[-1]
    cpu = duration(Spread.of([one.cpu for one in costs]), "ms")
    return Line(
        what=f"{size:,}: whole recall, warm",
        figure=f"{duration(times, 'ms')}, {p95 * 1e3:.1f} ms (p95), {cpu} of processor",
        target="-" if most is None else f"≤ {most * 1e3:g} ms",
        reached=None if most is None else times.median <= most,
    )


def _forget(engine: Kernel, id: str) -> None:
    engine.forget(_SCOPE, Forget(ids=(id,)))
    engine.finish_due(_SCOPE)


def _forgotten(size: int, times: list[float]) -> Line:
    most = FORGET_SECONDS if size == _INDEXED else None
    return Line(
        what=f"{size:,}: forget, sealed anew and indexed",
        figure=duration(Spread.of(times), "ms"),
        target="-" if most is None else f"≤ {most * 1e3:g} ms",
        reached=None if most is None else median(times) <= most,
    )


def _from_rows(engine: Kernel, memories: list[Memory]) -> Line:
    """The index made anew from sealed rows, beside a bare scan of their words."""
    indexed, texts = engine._indexed(_SCOPE), [memory.content for memory in memories]
    size = sum(len(text.encode()) for text in texts)

    def ours() -> None:
        indexed.start_over()
        indexed.settle(write=False)
        indexed.snapshot()

    def floor() -> None:
        for text in texts:
            _WORD.findall(text.lower())

    with indexed.lock:
        found = alternate(7, lambda: timed(ours), lambda: timed(floor))
    speeds = Spread.of([size / cost.wall / 1e6 for cost in found.ours])
    return Line(
        what=f"{len(texts):,}: index made from rows",
        figure=f"{speeds.median:.1f} MB/s ({speeds.low:.1f} - {speeds.high:.1f}) of text, "
        f"{len(texts) * speeds.median * 1e6 / size:,.0f} memories/s",
        floor=f"{size / found.wall.floor.median / 1e6:.0f} MB/s",
        ratio=f"{found.wall.ratio.median:.1f}x of the time",
        target=f"≥ {ROWS_BYTES / 1e6:g} MB/s",
        reached=speeds.median * 1e6 >= ROWS_BYTES,
    )


def _seconds(work: Callable[[], object]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


# -- opening and keeping open ---------------------------------------------------------------------


def _open(folder: Path) -> float:
    """From a fresh engine to an index that could answer."""
    gc.collect()
    begun = perf_counter()
    with _engine(folder) as engine:
        engine._begin(_SCOPE)
        indexed = engine._indexed(_SCOPE)
        indexed.catch_up()
        indexed.settle()
        return perf_counter() - begun


def _cold(what: str, times: list[float], most: float | None, *, peer: float | None = None) -> Line:
    return Line(
        what=what,
        figure=duration(Spread.of(times), "ms"),
        floor="-" if peer is None else f"{peer * 1e3:.1f} ms",
        ratio="-" if peer is None else f"{median(times) / peer:.2f}x",
        target="-" if most is None else f"≤ {most * 1e3:.0f} ms",
        reached=None if most is None else median(times) <= most,
    )


def _ram(folder: Path, engines: int) -> Line:
    """What several engines with the same scope open take more than none, divided by them."""
    with _engine(folder) as first:
        first.recall(_SCOPE, Recall(query="loads the table and all modules"))
    gc.collect()
    before, kept = _resident(), []
    for _ in range(engines):
        engine = bootstrap.build(settings.at_home(folder))
        engine.recall(_SCOPE, Recall(query="everything on"))
        kept.append(engine)
    each = (_resident() - before) / engines
    for engine in kept:
        engine.close()
    return Line(
        what="5,000: RAM of an open scope",
        figure=f"{each / 1e6:.1f} MB",
        target=f"≤ {RAM_BYTES / 1e6:.0f} MB",
        reached=each <= RAM_BYTES,
    )


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _many(section: Section, folder: Path, *, quick: bool) -> None:
    """Many scopes visited in turns, more than fit on the shelf."""
    count, each, megabytes = (60, 150, 8) if quick else (2_000, 150, 256)
    policy = Policy(shelf_bytes=megabytes * 1024 * 1024)
    scopes = [Scope.parse(f"scope-{number}") for number in range(count)]
    with _engine(folder, policy) as engine:
        talk = Conversation()
        for scope in scopes:
            memories = tuple(talk.memories(each))
            engine.load(
                scope,
                Load(bundle.to_json(bundle.Content(scope=scope, made_at="", memories=memories))),
            )
            engine.recall(scope, Recall(query="first"))
        before = _resident()
        times = []
        for _ in range(2):
            for scope in scopes:
                times.append(_seconds(lambda s=scope: engine.recall(s, Recall(query="garden"))))  # type: ignore[misc]
        grown = _resident() - before
        held = len(engine._shelf)
    p95 = quantiles(times, n=20, method="inclusive")[-1]
    section.lines.append(
        Line(
            what=f"{count:,} scopes of {each} in turns, shelf of {megabytes} MB",
            figure=f"{median(times) * 1e3:.1f} ms (p50), {p95 * 1e3:.1f} ms (p95); {held:,} open",
            floor=f"{grown / 1e6:+.0f} MB while visiting",
        )
    )
