"""The command eval: how well recall finds what is known to hold the answer."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from scrubjay import handle
from scrubjay.cli.parser import JSON, Option, command
from scrubjay.cli.render import Output
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest, NotFound

_PIPED_WIDTH = 110


@command(
    "eval",
    Option("DIR", "Data set, or a folder of them.", Path, required=True),
    Option("SET", "Names of the sets to use; all by default.", str, many=True),
    Option("--top", "Depth: how many memories each question recalls.", int, least=1, most=1_000,
           default="20"),
    JSON,
    Option("--run-file", "File for what each question recalled, as JSON lines.", Path),
    Option("--plot", "File for a plot of recall by depth, as SVG.", Path),
    Option("--calibration", "File for a plot of relevance against what answers, as SVG.", Path),
)  # fmt: skip
def evaluate(
    dir: Path,
    set: Sequence[str] = (),
    *,
    top: int = 20,
    run_file: Path | None = None,
    plot: Path | None = None,
    calibration: Path | None = None,
) -> Output:
    """Measure recall on conversations whose evidence is known; no language model takes part.

    Every haystack is retained in a throw-away home, every question is asked of it, and the turns
    that come back are compared with the gold ones. docs/evaluation.md has the format.

    Example: scrubjay eval my-data --plot recall.svg
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    from scrubjay import files
    from scrubjay.surfaces.evaluation import dataset, report
    from scrubjay.surfaces.evaluation.report import draw, draw_calibration
    from scrubjay.surfaces.evaluation.trial import attempt

    for path in filter(None, (run_file, plot, calibration)):
        # Say now what would otherwise be found out after minutes of work.
        if path.is_dir():
            raise InvalidRequest(f"{path} is a folder.", hint="Name a file to write.")
        if not path.absolute().parent.is_dir():
            raise NotFound(f"There is no folder to write {path} in.", hint="Make the folder first.")
    chosen = [dataset.read_set(found) for found in dataset.find_sets(dir, set)]
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    hidden = not sys.stderr.isatty()
    terminal = Console(stderr=True)
    bar = Progress(*columns, Remaining(), console=terminal, transient=True, disable=hidden)
    trials = []
    with _polite_end(), bar:
        for one in chosen:
            watch = partial(bar.advance, bar.add_task(one.name, total=one.steps))
            trials.append(attempt(one, top=top, opening=_open, watch=watch))
    if run_file:
        files.write(run_file, report.run_lines(trials))
    if plot:
        curves = {trial.name: report.curve(trial, top=top) for trial in trials}
        files.write(plot, draw(curves).encode())
    reports = [report.report(trial, top=top) for trial in trials]
    if calibration:
        found = {one.name: one.calibration for one in reports}
        files.write(calibration, draw_calibration(found).encode())
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    figures = report.as_json(reports, top=top)
    return Output(figures, lambda: report.show(console, reports))


def _open(home: Path) -> Jay:
    return handle.open("evaluation", home=home)


@contextmanager
def _polite_end() -> Iterator[None]:
    """Let SIGTERM be as good as Ctrl-C, so that the homes are removed on the way out."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
