"""Installed size and number of dependencies of the bare package, beside two peers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.peers.environments import Unavailable, ensure
from bench.peers.roster import ENVIRONMENTS
from bench.report import Line, Section
from bench.subject import scratch

ROOT = Path(__file__).parents[1]
AIM_MEGABYTES = 120
_LARGEST = 5


def run(*, quick: bool) -> Section:
    """Install each into an environment of its own, and add up the files of its packages."""
    section = Section("Installed size of the bare package, and its dependencies")
    wheels = sorted((ROOT / "build" / "wheel").glob("*.whl"))
    with scratch() as folder:
        sizes, count = _installed(folder / "ours", [str(wheels[-1] if wheels else ROOT)])
        ours = sum(sizes.values())
        largest = sorted(sizes.items(), key=lambda one: -one[1])[:_LARGEST]
        parts = ", ".join(f"{name} {size:.0f} MB" for name, size in largest)
        section.notes.append(f"Files of site-packages with bytecode, as pip leaves them. {parts}.")
        section.lines.append(
            Line(
                what="installed", figure=_told(ours, count), floor="-", ratio="-",
                target=f"≤ {AIM_MEGABYTES} MB", reached=ours <= AIM_MEGABYTES,
            )
        )  # fmt: skip
        peers = {"mem0": ENVIRONMENTS["mem0"][:1], "langgraph": ENVIRONMENTS["langgraph"][:2]}
        for name, requirements in {} if quick else peers.items():
            try:
                sizes, count = _installed(folder / name, requirements)
            except Unavailable as error:
                section.notes.append(f"{name}: {error}.")
                continue
            theirs = sum(sizes.values())
            section.lines.append(
                Line(
                    what=f"beside {' '.join(requirements)}", figure=_told(ours, None),
                    floor=_told(theirs, count), ratio=f"{ours / theirs:.2f}x", target="-",
                    reached=None,
                )
            )  # fmt: skip
    return section


def _told(megabytes: float, dependencies: int | None) -> str:
    beside = "" if dependencies is None else f", {dependencies} dependencies"
    return f"{megabytes:.0f} MB{beside}"


def _installed(
    folder: Path, requirements: tuple[str, ...] | list[str]
) -> tuple[dict[str, float], int]:
    """Megabytes of each package with its libraries, and how many others were installed."""
    python = ensure(folder, requirements)
    subprocess.run([python, "-m", "compileall", "-q", folder], check=False, capture_output=True)
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    found: dict[str, float] = {}
    for path in packages.rglob("*"):
        if path.is_file():
            part = path.relative_to(packages).parts[0].removesuffix(".libs")
            found[part] = found.get(part, 0.0) + path.stat().st_size / 1e6
    return found, len(list(packages.glob("*.dist-info"))) - len(requirements)
