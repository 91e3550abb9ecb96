"""Find the weights of the ranking on development conversations, and say what they are worth.

    python tools/tune_weights.py FOLDER [--each-way] [--without FEATURE ...] [--ablate]

FOLDER holds one folder per set with `haystacks.jsonl` and `questions.jsonl`. The weights maximize
the log-probability of the turns that hold the answer under a softmax over the rows of a haystack
(the best of a rough order, and the answers), each set weighing the same, with an L2 penalty; Newton
steps, so there is no seed and no learning rate. `--each-way` tunes on all sets but one and tests on
that one. Weights set by hand (HELD) are not touched.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from msgspec.structs import asdict

from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.engine.search import analysis, question, ranking
from scrubjay.engine.search.postings import Postings, Terms
from scrubjay.engine.search.ranking import WEIGHTS, Weights
from scrubjay.ports import SystemClock

HELD = {
    "later": -2.0,
    "age": -0.5,
    "importance": 0.3,
    "distrust": -0.5,
    "pinned": 0.1,
    "holds": 0.0,
}
ROUGH = {"words": 1.0, "meaning": 0.4, "speaker": 0.5, "session": 0.3}
"""An order that leaves the other features to the fit."""
PENALTY = 1e-3
STEPS = 15
ROWS = 200
"""How many rows of a haystack the fit looks at for each question."""
RESAMPLES = 1000
SEED = 7


@dataclass(frozen=True)
class Case:
    """One question: its features for every row, and the rows that hold the answer."""

    category: str
    features: np.ndarray
    gold: np.ndarray


NAMES = list(Weights.__struct_fields__)


def main() -> None:
    """Tune, test, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each-way", action="store_true")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--keep", action="store_true", help="only measure the weights as they are")
    parser.add_argument("--without", nargs="*", default=[])
    given = parser.parse_args()
    embed = embedder()
    sets = {path.name: read_set(path, embed) for path in sorted(given.folder.iterdir())}
    free = [name for name in NAMES if name not in HELD and name not in given.without]
    if given.keep:
        report("as they are", {name: measure(cases, WEIGHTS) for name, cases in sets.items()}, sets)
        return
    tuned = fit(list(sets.values()), free)
    print("\n".join(f"    {name}: float = {value}" for name, value in asdict(tuned).items()))
    measured = {name: measure(cases, tuned) for name, cases in sets.items()}
    report("tuned on all", measured, sets)
    if given.each_way:
        report("each way", each_way(sets, free), {})
    if given.ablate:
        for name in free:
            less = fit(list(sets.values()), [other for other in free if other != name])
            lost = {each: measure(cases, less) for each, cases in sets.items()}
            report(f"without {name}", lost, {}, measured)


def each_way(sets: dict[str, list[Case]], free: list[str]) -> dict[str, np.ndarray]:
    """Each set measured with weights that never saw it."""
    return {
        name: measure(
            sets[name], fit([cases for other, cases in sets.items() if other != name], free)
        )
        for name in sets
    }


def embedder():
    """The built-in embedder: a function from texts to vectors."""
    return StaticEmbedder(SystemClock()).embed


def read_set(path: Path, embed) -> list[Case]:
    """Every question of a set with the features of every turn of its haystack."""
    haystacks = {}
    for line in (path / "haystacks.jsonl").read_text("utf-8").splitlines():
        haystack = json.loads(line)
        haystacks[haystack["id"]] = Haystack(haystack["turns"], embed)
    cases = []
    for line in (path / "questions.jsonl").read_text("utf-8").splitlines():
        asked = json.loads(line)
        cases.append(haystacks[asked["haystack"]].ask(asked, embed))
    print(f"{path.name}: {len(cases)} questions", flush=True)
    return cases


class Haystack:
    """One conversation, indexed."""

    def __init__(self, turns, embed) -> None:
        texts = [turn["text"] for turn in turns]
        self.rows = {turn["id"]: row for row, turn in enumerate(turns)}
        said = [f"{turn['speaker']}: {turn['text']}" for turn in turns]
        self.terms = Terms.of([Postings.of([analysis.terms(text) for text in said])])
        vectors = np.asarray(embed(texts), np.float32)
        self.mean = vectors.mean(0)
        self.vectors = unit(vectors - self.mean)
        self.speakers = list(dict.fromkeys(turn["speaker"] for turn in turns))
        self.times = [moment(turn["time"]) for turn in turns]
        self.columns = self.arrange(turns, texts)

    def arrange(self, turns, texts) -> ranking.RankColumns:
        """The columns of the turns."""
        sessions = list(dict.fromkeys(turn["session"] for turn in turns))
        codes = {session: code for code, session in enumerate(sessions)}
        shown = [analysis.read_signs(text) for text in texts]
        speaker = np.array([self.speakers.index(turn["speaker"]) for turn in turns], np.int32)
        return ranking.arrange(
            session=np.array([codes[turn["session"]] for turn in turns], np.int32),
            position=np.array([turn["position"] for turn in turns], np.int32),
            speaker=speaker,
            time=np.array([time.timestamp() for time in self.times]),
            length=np.array([len(text) for text in texts], np.float32),
            signs={
                name: np.array([getattr(each, name) for each in shown])
                for name in analysis.Signs.__struct_fields__
            },
        )

    def ask(self, asked, embed) -> Case:
        """One question against the haystack."""
        parsed = question.parse(
            asked["question"],
            dict(enumerate(self.speakers)),
            asked_at=moment(asked["asked_at"]) if asked["asked_at"] else None,
            latest=moment(asked["asked_at"]) if asked["asked_at"] else max(self.times),
        )
        matched = self.terms.match(analysis.wanted(asked["question"]))
        vector = unit(np.asarray(embed([asked["question"]]), np.float32)[0] - self.mean)
        found = ranking.compute(
            parsed,
            self.columns,
            ranking.Evidence(
                words=matched.scores, coverage=matched.coverage, meaning=self.vectors @ vector
            ),
        )
        zero = np.zeros(len(self.columns), np.float32)
        stacked = np.stack([found.get(name, zero) for name in NAMES], axis=1)
        gold = np.array([self.rows[turn] for turn in asked["gold"]])
        return Case(asked["category"], stacked, gold)


def fit(sets: list[list[Case]], free: list[str]) -> Weights:
    """The weights, rounded to two digits."""
    chosen = [NAMES.index(name) for name in free]
    held = np.array([HELD.get(name, 0.0) for name in NAMES], np.float32)
    samples = [[sample(case, chosen, held) for case in cases] for cases in sets]
    found = np.zeros(len(free))
    for _ in range(STEPS):
        gradient, curvature = 2 * PENALTY * found, 2 * PENALTY * np.eye(len(free))
        for cases in samples:
            for rows, fixed, gold in cases:
                slope, bend = slopes(rows, fixed, gold, found)
                gradient += slope / len(cases) / len(samples)
                curvature += bend / len(cases) / len(samples)
        step = np.linalg.solve(curvature, gradient)
        found -= step / max(1.0, float(np.abs(step).max()))
    nothing = dict.fromkeys(NAMES, 0.0)
    values = {name: round(float(value), 2) for name, value in zip(free, found, strict=True)}
    return Weights(**(nothing | HELD | values))


def sample(case: Case, chosen: list[int], held: np.ndarray):
    """The rows of a case that the fit looks at: the best of a rough order, and the answers."""
    rough = case.features @ np.array([ROUGH.get(name, 0.0) for name in NAMES], np.float32)
    rows = np.union1d(np.argsort(-rough)[:ROWS], case.gold)
    kept = case.features[rows]
    return kept[:, chosen].astype(float), kept @ held, np.isin(rows, case.gold)


def slopes(rows, fixed, gold, weights):
    """Gradient and curvature of one question's loss."""
    scores = rows @ weights + fixed
    chance = np.exp(scores - scores.max())
    chance /= chance.sum()
    mean = chance @ rows
    centered = rows - mean
    return mean - rows[gold].mean(0), (centered * chance[:, None]).T @ centered


def measure(cases: list[Case], weights: Weights) -> np.ndarray:
    """R@5, R@10, R@20, any@10, all@10, nDCG@10 and MRR of each question."""
    values = np.array([getattr(weights, name) for name in NAMES], np.float32)
    return np.array([judge(case.features @ values, case.gold) for case in cases])


def judge(scores, gold) -> list[float]:
    """The measures of one ranking."""
    places = np.empty(len(scores), int)
    places[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    found = np.sort(places[gold])
    ideal = (1 / np.log2(np.arange(min(len(gold), 10)) + 2)).sum()
    gained = (1 / np.log2(found[found < 10] + 2)).sum() / ideal
    ten = found < 10
    shares = [(found < 5).mean(), ten.mean(), (found < 20).mean(), ten.any(), ten.all()]
    return [*map(float, shares), float(gained), 1 / (found[0] + 1)]


def report(title: str, measured, sets, before=None) -> None:
    """Print R@5, R@10, nDCG@10, all@10 per set; categories where the sets are given."""
    mean = np.mean([rows[:, 1].mean() for rows in measured.values()])
    print(f"{title}: mean R@10 {100 * mean:.2f}")
    for name, rows in measured.items():
        print(f"  {name:10} {line(rows)}" + (change(rows, before[name]) if before else ""))
        for category in sorted({case.category for case in sets.get(name, [])}):
            chosen = [case.category == category for case in sets[name]]
            print(f"      {category:28} {sum(chosen):4} {line(rows[chosen])}")


def change(rows, before) -> str:
    """The change in R@10 with its 95 % interval from a paired bootstrap."""
    delta = 100 * (rows[:, 1] - before[:, 1])
    drawn = np.random.default_rng(SEED).integers(0, len(delta), (RESAMPLES, len(delta)))
    low, high = np.percentile(delta[drawn].mean(1), [2.5, 97.5])
    return f"   {delta.mean():+.2f} [{low:+.2f}, {high:+.2f}]"


def line(rows) -> str:
    """The four measures that the tables show."""
    return " ".join(f"{100 * rows[:, column].mean():5.1f}" for column in (0, 1, 5, 4))


def moment(text: str) -> datetime:
    """A time of the files, which are in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def unit(vectors):
    """The same directions, length one."""
    return vectors / (np.linalg.norm(vectors, axis=-1, keepdims=True) + 1e-9)


if __name__ == "__main__":
    main()
