"""A store in PostgreSQL, with its segments in a folder or a bucket, beside the embedded default."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.measure import Comparison, Cost, alternate, timed, timed_together
from bench.report import Section
from bench.subject import scratch, texts
from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel
from scrubjay.model.batches import RetainMany
from scrubjay.model.requests import Recall, Retain
from scrubjay.model.scope import Scope
from tests.support.objects import VARIABLES, ObjectServer
from tests.support.postgres import PostgresServer

MOST_WARM: Final = 1.5
MOST_COLD: Final = 4.0
_ROWS: Final = 5000
_WRITERS: Final = 32
_QUERIES: Final = ("green tea in the morning", "short answers by train", "the new release")


class Sides:
    """The same home three times: in files, in a database, in a database and a bucket."""

    def __init__(self, folder: Path, server: PostgresServer, objects: ObjectServer) -> None:
        url = server.url("bench")
        server.sql("CREATE DATABASE bench")
        server.sql("CREATE DATABASE bucket")
        self.files = settings.at_home(folder / "files")
        self.database = settings.Settings(data=folder / "database", keys=folder / "keys", store=url)
        self.bucket = settings.Settings(
            data=folder / "bucket", keys=folder / "keys2",
            store=server.url("bucket"), blobs=objects.address(),
        )  # fmt: skip


@contextmanager
def sides() -> Iterator[Sides]:
    """The homes, on the disk of the checkout; the database syncs every commit, as SQLite does."""
    os.environ.update(VARIABLES)
    with scratch() as folder:
        folder.chmod(0o755)
        server, objects = PostgresServer(durable=True), ObjectServer()
        try:
            yield Sides(folder, server, objects)
        finally:
            server.end()
            objects.end()


def run(*, quick: bool) -> Section:
    """Durable retains of 1 and 32 writers, warm recalls, and first recalls of a new node."""
    section = Section(
        "PostgreSQL, beside the embedded SQLite",
        reason="a database is another process: each statement is a trip to it, and a commit "
        "waits for its log; SQLite is called in this process.",
    )
    section.notes.append(
        "The peer is the same engine on files. PostgreSQL is on this machine, over a Unix socket "
        "with `fsync=on`; the bucket is an S3 server for tests, on loopback. Sides take turns. "
        f"*Cold* is the first recall of a new engine in a scope of {_ROWS:,}, its libraries loaded."
    )
    rounds = 4 if quick else 16
    with sides() as homes:
        for name, writers, scopes in (
            ("1 writer, one scope", 1, 1),
            ("32 writers, one scope", _WRITERS, 1),
            ("32 writers, 32 scopes", _WRITERS, _WRITERS),
        ):
            found = _writing(homes, rounds, writers, scopes)
            section.compare(f"durable retain, {name}", found.wall)
            section.compare(f"... CPU of the node, {name}", found.cpu)
        _reading(section, homes, rounds)
    return section


def _writing(homes: Sides, rounds: int, writers: int, scopes: int) -> Comparison:
    engines = bootstrap.build(homes.database), bootstrap.build(homes.files)
    named = [Scope("bench", f"writers-{writers}-{number}") for number in range(scopes)]
    for engine in engines:
        for scope in named:
            engine.open(scope)
    source, each = texts(200), 20 if writers > 1 else 100

    def side(engine: Kernel) -> Callable[[], Cost]:
        def batch() -> Cost:
            content = list(itertools.islice(source, writers * each))
            return timed_together(
                writers, each,
                lambda thread, turn: engine.retain(
                    named[thread % scopes], Retain(content=content[thread * each + turn])
                ),
            )  # fmt: skip

        return batch

    ours, floor = map(side, engines)
    ours()
    floor()
    found = alternate(rounds, ours, floor)
    for engine in engines:
        engine.close()
    return found


def _reading(section: Section, homes: Sides, rounds: int) -> None:
    scope = Scope("bench", "reader")
    content = tuple(itertools.islice(texts(180), _ROWS))
    for home in (homes.files, homes.database, homes.bucket):
        engine = bootstrap.build(home)
        engine.retain_many(scope, RetainMany(content))
        engine.recall(scope, Recall(query=_QUERIES[0]))
        engine.close()

    def warm(home: settings.Settings) -> tuple[Kernel, Callable[[], Cost]]:
        engine = bootstrap.build(home)
        queries = itertools.cycle(_QUERIES)
        engine.recall(scope, Recall(query=_QUERIES[0]))

        def batch() -> Cost:
            return timed(
                lambda: [engine.recall(scope, Recall(query=next(queries))) for _ in range(20)], 20
            )

        return engine, batch

    (one, ours), (two, floor) = warm(homes.database), warm(homes.files)
    section.compare("warm recall", alternate(rounds, ours, floor).wall, unit="ms", most=MOST_WARM)
    one.close()
    two.close()

    def cold(home: settings.Settings) -> Callable[[], Cost]:
        def batch() -> Cost:
            engine = bootstrap.build(home)
            cost = timed(lambda: engine.recall(scope, Recall(query=_QUERIES[1])))
            engine.close()
            return cost

        return batch

    for name, home in (("a folder", homes.database), ("a bucket", homes.bucket)):
        found = alternate(2 * rounds, cold(home), cold(homes.files))
        section.compare(f"cold recall, segments in {name}", found.wall, unit="ms", most=MOST_COLD)
