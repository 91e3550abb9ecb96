"""What a fresh interpreter pays before it remembers anything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter
from typing import Final

from bench.measure import Spread
from bench.report import Line, Section, duration
from bench.subject import Subject, scratch

MOST_SECONDS: Final = 0.025
COMMAND_SECONDS: Final = {"recall": 0.28, "list": 0.15, "--help": 0.15}
"""What whole commands may take of the processor."""
_HEAVY: Final = ("numpy", "cryptography", "apsw")
_PASS: Final = "pass"
_IMPORT: Final = "import scrubjay"
_GET: Final = (
    "import sys, scrubjay; jay = scrubjay.open('bench', home=sys.argv[1], create=False); "
    "jay.get(sys.argv[2]); jay.close()"
)
_COMMAND: Final = (
    "import os, sys; os.environ['SCRUBJAY_HOME'] = sys.argv[1]; sys.argv[1:] = "
    "[*sys.argv[2:], *(() if '--help' in sys.argv else ('--scope', 'bench'))]; "
    "from scrubjay.cli import main; main()"
)
_LOADED: Final = "import sys; old = set(sys.modules); import scrubjay; print(*set(sys.modules)-old)"


def run(*, quick: bool) -> Section:
    """Time a bare interpreter, an import, and an open with one get, in turns."""
    rounds = 8 if quick else 30
    with scratch() as folder:
        with Subject(folder) as subject:
            known = subject.fill(200)[0]
        idle, imported, opened = _alternate(
            rounds, ((_PASS,), (_IMPORT,), (_GET, str(folder), known))
        )
    modules, micros = _loaded()
    section = Section(
        "Cold start",
        reason="what is loaded is listed above, with Python's own account of its time.",
    )
    section.notes.append(
        f"Fresh interpreters, {rounds} of each kind in turns; the difference to `python -c pass` "
        f"is taken run by run. `import scrubjay` loads {len(modules)} modules that a bare "
        f"interpreter has not ({', '.join(modules)}), {micros / 1000:.1f} ms by `-X importtime`."
    )
    heavy = [name for name in _HEAVY if name in modules]
    section.lines += [
        _line("`import scrubjay`", imported, idle, most=MOST_SECONDS),
        Line(
            what=f"of {', '.join(_HEAVY)} it loads",
            figure=", ".join(heavy) or "none",
            target="none",
            reached=not heavy,
        ),
        _line("open a scope of 200, get one, close", opened, idle),
        *_commands(3 if quick else 12),
    ]
    return section


def _commands(rounds: int) -> list[Line]:
    """What whole commands take, on a scope of 5,000 that has been recalled from before."""
    commands = (("remember", "tea"), ("list",), ("brief",), ("recall", "green tea"), ("--help",))
    with scratch() as folder:
        with Subject(folder) as subject:
            subject.fill(5000)
            subject.jay.recall("writes the segments")
        programs = ((_PASS,), *((_COMMAND, str(folder), *words) for words in commands))
        idle, *taken = _alternate(rounds, programs, _processor_seconds)
    return [
        Line(
            what=f"`scrubjay {words[0]}` at 5,000, of processor",
            figure=duration(Spread.of(times), "ms"),
            floor=duration(Spread.of(idle), "ms"),
            ratio=f"{Spread.of(times).median / Spread.of(idle).median:.1f}x",
            target=f"≤ {most * 1e3:g} ms" if (most := COMMAND_SECONDS.get(words[0])) else "-",
            reached=Spread.of(times).median <= most if most else None,
        )
        for words, times in zip(commands, taken, strict=True)
    ]


def _alternate(
    rounds: int, programs: tuple[tuple[str, ...], ...], clock: Callable[[], float] = perf_counter
) -> list[list[float]]:
    taken: list[list[float]] = [[] for _ in programs]
    for turn in range(rounds + 1):
        for times, program in zip(taken, programs, strict=True):
            begun = clock()
            _python("-c", *program)
            if turn:  # the first of each only fills the caches
                times.append(clock() - begun)
    return taken


def _processor_seconds() -> float:
    """User and system time of the programs that have ended."""
    spent = getrusage(RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    here = Path(__file__).parent
    command = [sys.executable, *arguments]
    # Bytecode is cached, as where packages are installed, whatever this environment says.
    usual = {name: one for name, one in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(command, check=True, cwd=here, capture_output=True, text=True, env=usual)


def _loaded() -> tuple[list[str], float]:
    """The modules an import loads, and its time by Python's own account, in microseconds."""
    modules = sorted(_python("-c", _LOADED).stdout.split())
    lines = _python("-X", "importtime", "-c", _IMPORT).stderr.splitlines()
    (own,) = [line for line in lines if line.endswith("| scrubjay")]
    return modules, float(own.split("|")[1])


def _line(what: str, taken: list[float], idle: list[float], most: float | None = None) -> Line:
    above = Spread.of([one - other for one, other in zip(taken, idle, strict=True)])
    return Line(
        what=f"{what}, above `python -c pass`",
        figure=duration(above, "ms"),
        floor=duration(Spread.of(idle), "ms"),
        ratio=f"{Spread.of(taken).median / Spread.of(idle).median:.2f}x",
        target="-" if most is None else f"< {most * 1000:g} ms",
        reached=None if most is None else above.median < most,
    )
