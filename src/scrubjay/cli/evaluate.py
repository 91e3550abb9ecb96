"""`scrubjay eval`: how well recall finds what is known to hold the answer."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrubjay.model.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from rich.progress import Progress

    from scrubjay.surfaces.evaluation.dataset import Dataset
    from scrubjay.surfaces.evaluation.trial import Remembering, Trial

_PIPED_WIDTH = 110


def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A data set, or a folder of them.")],
    sets: Annotated[
        list[str] | None, typer.Argument(metavar="SET", help="Which sets; all by default.")
    ] = None,
    *,
    top: Annotated[int, typer.Option(min=1, max=1_000, help="How many to recall.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    run_file: Annotated[
        Path | None, typer.Option(help="Write what was recalled for every question, as JSON lines.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw recall against its depth, as an SVG.")
    ] = None,
) -> None:
    """Measure recall on conversations whose evidence is known; no language model takes part.

    Every haystack is retained in a throw-away home, every question is asked of it, and the turns
    that come back are compared with the gold ones. docs/evaluation.md has the format.

    Example: scrubjay eval my-data --plot recall.svg
    """
    from scrubjay import files
    from scrubjay.surfaces.evaluation import dataset, report
    from scrubjay.surfaces.evaluation.plot import draw

    for path in filter(None, (run_file, plot)):
        _check_writable(path)
    chosen = [dataset.read_set(found) for found in dataset.find_sets(folder, sets or ())]
    with _polite_end():
        trials = _attempt(chosen, top)
    if run_file:
        files.write(run_file, report.run_lines(trials))
    if plot:
        curves = {trial.name: report.curve(trial, top=top) for trial in trials}
        files.write(plot, draw(curves).encode())
    _print(trials, top=top, as_json=as_json)


def _attempt(chosen: list[Dataset], top: int) -> list[Trial]:
    """Try the sets one after the other; a bar shows how far it is, where somebody can see it."""
    from scrubjay.surfaces.evaluation.trial import attempt

    trials = []
    with _bar() as bar:
        for one in chosen:
            task = bar.add_task(one.name, total=one.steps)
            watch = partial(bar.advance, task)
            trials.append(attempt(one, top=top, opening=_open, watch=watch))
    return trials


def _open(home: Path) -> AbstractContextManager[Remembering]:
    from scrubjay import handle

    return handle.open("evaluation", home=home)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), TaskProgressColumn(), Remaining())
    hidden = not sys.stderr.isatty()
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden)


def _print(trials: list[Trial], *, top: int, as_json: bool) -> None:
    from rich.console import Console

    from scrubjay.surfaces.evaluation import report

    reports = [report.report(trial, top=top) for trial in trials]
    if as_json:
        typer.echo(json.dumps(report.as_json(reports, top=top), indent=2, ensure_ascii=False))
        return
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    report.show(console, reports)


def _check_writable(path: Path) -> None:
    """Say now what would otherwise be found out after minutes of work."""
    if path.is_dir():
        raise InvalidRequest(f"{path} is a folder.", hint="Name a file to write.")
    if not path.absolute().parent.is_dir():
        raise NotFound(f"There is no folder to write {path} in.", hint="Make the folder first.")


@contextmanager
def _polite_end() -> Iterator[None]:
    """Let a request to end be as good as Ctrl-C, so that the homes are removed on the way out."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
