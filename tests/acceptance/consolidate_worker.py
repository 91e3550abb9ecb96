"""A process that writes episodes, or consolidates them until none is left; it may be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.model.jobs import JobKind, Work
from scrubjay.model.memory import Kind
from scrubjay.model.requests import Retain
from scrubjay.model.scope import Scope
from scrubjay.settings import ExtractionSettings, at_home

SCOPE = Scope("acme", "alice")
CONSOLIDATE = Work(kinds=(JobKind.CONSOLIDATION,), seconds=60.0)


def write(engine: Kernel, first: int, last: int) -> None:
    """Write episodes, each under its key: a repeat after a kill changes nothing."""
    for number in range(first, last):
        text = f"Episode about topic-{number}."
        engine.retain(SCOPE, Retain(content=text, kind=Kind.EPISODE, key=f"episode-{number}"))


def main(folder: str, url: str, what: str, first: int = 0, last: int = 0) -> None:
    """Do one of both; a consolidation is repeated by whoever starts this."""
    from scrubjay import bootstrap

    extraction = ExtractionSettings(url=url, model="m", seconds=1.0)
    engine = bootstrap.build(replace(at_home(Path(folder)), extraction=extraction))
    if what == "write":
        write(engine, first, last)
    else:
        engine.work(SCOPE, CONSOLIDATE)
    engine.close()


if __name__ == "__main__":
    home, model, wanted, *numbers = sys.argv[1:]
    main(home, model, wanted, *map(int, numbers))
