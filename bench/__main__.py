"""`python -m bench [NAME…] [--quick] [--minutes N] [--output FILE]`: measure, as Markdown."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from time import perf_counter
from typing import Final

from bench import (
    batches,
    carapace,
    cold,
    compacting,
    databases,
    growth,
    guarding,
    installed,
    machine,
    personal,
    reading,
    recalling,
    retain,
    rotation,
    serving,
    syncs,
    writers,
)
from bench.report import Section, render
from bench.subject import scratch

BENCHMARKS: Final[dict[str, Callable[..., Section]]] = {
    "syncs": syncs.run,
    "cpu": retain.cpu,
    "bytes": retain.written,
    "writers": writers.run,
    "batches": batches.many,
    "caps": batches.caps,
    "compaction": compacting.run,
    "files": compacting.sync,
    "growth": growth.run,
    "rotation": rotation.run,
    "personal": personal.run,
    "cold": cold.run,
    "reading": reading.run,
    "guard": guarding.run,
    "recall": recalling.run,
    "recall-musts": recalling.musts,
    "carapace": carapace.run,
    "serving": serving.run,
    "pod": serving.pod,
    "long-pod": serving.long_pod,
    "mix": serving.mix,
    "agents": serving.agents,
    "databases": databases.run,
    "installed": installed.run,
}
LASTING: Final = ("long-pod", "mix", "agents")
"""Those that take as long as they are asked to."""
LONG: Final = frozenset({"databases", "installed", "recall-musts", *LASTING})
"""Run only when named: minutes each, and one installs packages."""
GROUPS: Final = {"table": ("recall-musts", "cpu", "batches", "cold", "serving", *LASTING)}
"""`table`: every figure that has to be reached, in 18 minutes with `--minutes 3`."""
RESULTS: Final = Path(__file__).parent / "results.md"


def main() -> int:
    """Run what is asked for; a full run is written to `bench/results.md`."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*GROUPS, *BENCHMARKS)))
    parser.add_argument("--quick", action="store_true", help="a minute, to see that it works")
    parser.add_argument(
        "--minutes", type=float, default=10.0, help=f"how long {', '.join(LASTING)} take, each"
    )
    parser.add_argument("--output", type=Path, help="where the report goes")
    chosen = parser.parse_args()
    asked = [one for name in chosen.names for one in GROUPS.get(name, (name,))]
    if unknown := [name for name in asked if name not in BENCHMARKS]:
        parser.error(f"no benchmark {unknown[0]}; there are {', '.join((*GROUPS, *BENCHMARKS))}")
    names = asked or [name for name in BENCHMARKS if name not in LONG]
    is_full = not chosen.names and not chosen.quick
    output = chosen.output or (RESULTS if is_full else None)
    report, failed = "", list[str]()
    for report in _reports(names, failed, quick=chosen.quick, seconds=60 * chosen.minutes):
        if output is not None:
            output.write_text(report)
    print(report)
    return int(bool(failed))


def _reports(names: list[str], failed: list[str], *, quick: bool, seconds: float) -> Iterator[str]:
    """The report after each benchmark; `failed` gets the names of those that did not end."""
    begun, load, was_busy = perf_counter(), machine.load(), machine.is_busy()
    with scratch() as folder:
        sync = machine.sync_seconds(folder)
    sections = list[Section]()
    for name in names:
        try:
            sections.append(_run(name, quick=quick, seconds=seconds))
        except Exception as error:  # seam: the others are measured, and the report has them
            traceback.print_exc()
            sections.append(
                Section(name, notes=[f"**Not measured:** {str(error) or type(error).__name__}"])
            )
            failed.append(name)
        yield render(_preamble(begun, load, sync, quick=quick, was_busy=was_busy), sections)


def _preamble(
    begun: float, load: str, sync: tuple[float, float], *, quick: bool, was_busy: bool
) -> list[str]:
    preamble = [
        f"Made by `python -m bench{' --quick' if quick else ''}` in "
        f"{perf_counter() - begun:.0f} s. A figure is a median, in parentheses its quartiles; its "
        "floor or peer ran in turns with it, and a ratio is the median of ratios of such turns.",
        f"- {machine.processor()}\n- {machine.versions()}\n"
        f"- load average {load} before, {machine.load()} after\n"
        f"- a sync after appending 4 KiB: {sync[0] * 1000:.2f} ms (p50), {sync[1] * 1000:.2f} ms "
        "(p90), before",
    ]
    if was_busy:
        preamble.append(
            "**The machine was busy with other things.** Take times and their ratios as rough; "
            "counts are as good as ever."
        )
    return preamble


def _run(name: str, *, quick: bool, seconds: float) -> Section:
    begun, load = perf_counter(), machine.load()
    if name == "serving" and which("wrk") is None:
        raise RuntimeError("wrk is not on the PATH: install it (`apt-get install wrk`)")
    lasting = {"seconds": seconds} if name in LASTING else {}
    section = BENCHMARKS[name](quick=quick, **lasting)
    section.notes.append(f"Load average {load} before, {machine.load()} after.")
    print(f"{name}: {perf_counter() - begun:.0f} s\n\n{section}", file=sys.stderr, flush=True)
    return section


if __name__ == "__main__":
    sys.exit(main())
