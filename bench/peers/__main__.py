"""`python -m bench.peers`: ours and other memory systems, the same turns and questions.

`python -m bench.peers ../shared/eval/facts_user` measures another set; the page of LoCoMo gets its
R@10 as well.

Installs the others on first use (a few minutes), embeds all texts once (about 40 texts a second),
then takes some ten minutes for the development half of LoCoMo on two cores. `--turns 300` is a
trial of a minute.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from bench import machine
from bench.peers import contest, environments, material, plot, report, vectors
from bench.peers.contest import ROOT, Setting
from bench.peers.environments import Unavailable
from bench.peers.figures import Absence, Row
from bench.peers.material import Material
from bench.peers.roster import ENTRANTS
from scrubjay.engine.search.question import questions
from scrubjay.engine.search.recall import QUERY_CHARS

PAGE = Path(__file__).parents[1] / "peers.md"
SCRATCH = Path(__file__).parents[1] / "scratch" / "peers"
LOCOMO = ROOT.parent / "shared" / "eval" / "locomo"
_SECURE = """
import sqlite3
options = sqlite3.connect(":memory:").execute("PRAGMA compile_options").fetchall()
raise SystemExit(("SECURE_DELETE",) not in options)
"""


def main() -> int:
    """Run who is asked for; a full run is written to `bench/peers.md`, with its picture."""
    chosen = _arguments()
    begun, load, was_busy = perf_counter(), machine.load(), machine.is_busy()
    try:
        setting = _prepare(chosen)
    except Unavailable as absence:
        sys.exit(f"The weights for the vectors cannot be had: {absence}")
    entrants = [one for one in ENTRANTS if not chosen.only or one.subject in chosen.only]
    outcomes = _in_order(contest.hold(entrants, setting))
    occasion = report.Occasion(
        command=_command(chosen),
        dataset=chosen.folder.name,
        material=setting.material,
        seconds=perf_counter() - begun,
        load=f"{load} before, {machine.load()} after",
        was_busy=was_busy or machine.is_busy(),
        secure_delete=_is_secure(),
    )
    is_whole = chosen.turns is None
    others = _figures(outcomes, chosen.folder.name) if is_whole else {}
    is_page = is_whole and not chosen.only and chosen.folder == LOCOMO
    _write(outcomes, occasion, chosen.output or (PAGE if is_page else SCRATCH / "peers.md"), others)
    if is_whole and chosen.folder != LOCOMO:
        head, _, rest = PAGE.read_text().partition(report.METHOD)
        head = head.partition(report.OTHER_SETS)[0]
        PAGE.write_text(f"{head}{report.other_sets(others)}\n\n{report.METHOD}{rest}")
    return 0


def _figures(outcomes: list[Row | Absence], dataset: str) -> dict[str, dict[str, float]]:
    """Keep the R@10 of this run beside that of others; all kept ones but LoCoMo's, by set."""
    folder = SCRATCH / "figures"
    folder.mkdir(exist_ok=True)
    place = folder / f"{dataset}.json"
    found = json.loads(place.read_text()) if place.exists() else {}
    found |= {one.entrant.name: one.recall.mean for one in outcomes if isinstance(one, Row)}
    place.write_text(json.dumps(found))
    kept = sorted(path for path in folder.glob("*.json") if path.stem != LOCOMO.name)
    return {path.stem: json.loads(path.read_text()) for path in kept}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=LOCOMO, help="haystacks.jsonl and questions.jsonl"
    )
    parser.add_argument("--turns", type=int, help="only so many turns, for a quick trial")
    names = [entrant.subject for entrant in ENTRANTS]
    parser.add_argument("--only", nargs="+", choices=names, help="only these, for a trial")
    parser.add_argument("--output", type=Path, help="the page; the picture goes beside it")
    chosen = parser.parse_args()
    if not (chosen.folder / "haystacks.jsonl").exists():
        parser.error(f"there is no haystacks.jsonl in {chosen.folder}")
    return chosen


def _prepare(chosen: argparse.Namespace) -> Setting:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    whole = material.read(chosen.folder)
    weights = environments.fetch(SCRATCH / "weights", vectors.WEIGHTS) / vectors.WEIGHTS_FOLDER
    return Setting(
        scratch=SCRATCH,
        folder=chosen.folder.resolve(),
        turns=chosen.turns,
        material=material.read(chosen.folder, turns=chosen.turns),
        vectors=vectors.prepare(SCRATCH / "vectors", _texts(whole), weights),
    )


def _texts(whole: Material) -> list[str]:
    """Every text anybody embeds: the material's, and what ours makes of a question."""
    asked = (one for each in whole.questions for one in questions(each.text[:QUERY_CHARS]))
    made = (text for one in asked for text in (one.text, one.subject))
    return list(dict.fromkeys([*whole.texts, *made]))


def _in_order(outcomes: list[Row | Absence]) -> list[Row | Absence]:
    """Ours first, then by recall."""
    ours = [one for one in outcomes if one.entrant.environment is None]
    peers = [one for one in outcomes if one.entrant.environment is not None]
    return ours + sorted(peers, key=lambda one: -one.recall.mean if isinstance(one, Row) else 0)


def _command(chosen: argparse.Namespace) -> str:
    if chosen.turns is None and not chosen.only:
        return "make bench-peers"
    return f"make bench-peers ARGS='--turns {chosen.turns}'" if chosen.turns else "bench.peers"


def _is_secure() -> bool:
    done = subprocess.run([environments.interpreter(), "-c", _SECURE], check=False)
    return done.returncode == 0


def _write(
    outcomes: list[Row | Absence],
    occasion: report.Occasion,
    page: Path,
    others: dict[str, dict[str, float]],
) -> None:
    rows = [outcome for outcome in outcomes if isinstance(outcome, Row)]
    picture = page.with_suffix(".svg")
    if rows:
        given = f"{len(occasion.material.turns):,} turns, {len(occasion.material.questions):,}"
        title = f"Side by side: {given} questions ({occasion.dataset})"
        picture.write_text(plot.draw(rows, title=title))
    page.write_text(report.render(outcomes, occasion, picture=picture.name, others=others))
    print(page.read_text())


if __name__ == "__main__":
    sys.exit(main())
