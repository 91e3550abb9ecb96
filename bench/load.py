"""`python -m bench.load --at FOLDER`: many scopes on PostgreSQL, loaded for real and measured.

It may be stopped and started again: the database says what is there already. `--scopes 2000` is the
load of the capacity plan; less of it is a smaller sample of the same thing, because a scope is
loaded, opened, searched and erased by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any, Final

import numpy as np

from bench import machine
from bench.subject import texts
from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel, Policy
from scrubjay.model.batches import RetainMany
from scrubjay.model.requests import Destroy, Forget, Recall, Retain
from scrubjay.model.scope import Scope
from scrubjay.ports import Floats
from tests.support.postgres import PostgresServer

TENANT: Final = "load"
DIMENSIONS: Final = 1536
_CHUNK: Final = 1000
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_QUERIES: Final = (
    "green tea in the morning", "short answers by train", "office near the river",
    "the team meets on Tuesday", "new release",
)  # fmt: skip
Figures = dict[str, Any]


class ChanceEmbedder:
    """Vectors of chance, as wide as a model's: what they cost is measured, not what they mean."""

    identity = f"chance-{DIMENSIONS}"
    dimensions = DIMENSIONS
    costly = True
    languages: frozenset[str] | None = None

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        del deadline
        found = np.empty((len(texts), DIMENSIONS), np.float32)
        for place, text in enumerate(texts):
            chance = np.random.default_rng(zlib.crc32(text.encode()))
            found[place] = chance.standard_normal(DIMENSIONS, np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found


class Site:
    """The database of a load, on the disk, and the nodes on it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.server = PostgresServer(
            durable=True, folder=folder / "postgres", autovacuum="on",
            shared_buffers="256MB", max_wal_size="1GB",
        )  # fmt: skip
        self.home = folder / "home"
        names = {name for (name,) in self.server.sql("SELECT datname FROM pg_database")}
        if "load" not in names:
            self.server.sql("CREATE DATABASE load")
        self.url = self.server.url("load")

    def node(self, *, wide: bool = False, host: Path | None = None) -> Kernel:
        """A node of its own; `host` is another socket that leads to the database."""
        url = self.url.replace(str(self.server.folder), str(host)) if host else self.url
        found = settings.Settings(data=self.home / "data", keys=self.home / "keys", store=url)
        policy = Policy(shelf_bytes=1024 * settings.MEGABYTE)
        return bootstrap.build(found, policy=policy, embedder=ChanceEmbedder() if wide else None)

    def cpu(self) -> float:
        """Seconds of CPU that the database has used."""
        leader = int((self.server.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        total = 0
        for process in (str(leader), *children):
            try:
                words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += sum(map(int, words[11:13] if process != str(leader) else words[11:15]))
        return total / _TICKS

    def bytes(self) -> Figures:
        """Bytes of the database, and of the blobs."""
        self.server.sql("CHECKPOINT")
        ((tables,),) = self.server.sql("SELECT pg_database_size('load')")
        blobs = sum(one.stat().st_size for one in self.home.rglob("blobs/**/*") if one.is_file())
        return {"database": int(tables), "blobs": blobs}


# -- loading ---------------------------------------------------------------------------------


def scope_of(number: int) -> Scope:
    """The scope of a number."""
    return Scope(TENANT, f"owner-{number}")


def load(site: Site, *, scopes: int, rows: int, wide: int) -> None:
    """Fill scopes up to their rows; what is there stays. The last `wide` ones have wide vectors."""
    log = site.folder / "loaded.jsonl"
    for is_wide, numbers in ((True, range(wide)), (False, range(wide, scopes))):
        node = site.node(wide=is_wide)
        for number in numbers:
            scope = scope_of(number)
            node.open(scope)
            there = node.count(scope)
            begun, cpu, far = perf_counter(), process_time(), site.cpu()
            source = islice(texts(180), there, rows)
            while chunk := list(islice(source, _CHUNK)):
                node.retain_many(scope, RetainMany(tuple(f"{number} {one}" for one in chunk)))
            if there < rows:
                node.recall(scope, Recall(query=_QUERIES[0]))  # its segments are written
                told = {
                    "scope": number, "rows": rows - there, "wide": is_wide,
                    "seconds": perf_counter() - begun, "node_cpu": process_time() - cpu,
                    "database_cpu": site.cpu() - far,
                }  # fmt: skip
                with log.open("a") as out:
                    out.write(json.dumps(told) + "\n")
                print(f"{number + 1} of {scopes}: {told['seconds']:.1f} s", flush=True)
        node.close()


def loaded(site: Site) -> Figures:
    """Load rates, of all that was ever loaded into this folder."""
    log = site.folder / "loaded.jsonl"
    told = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    found: Figures = {}
    for name, is_wide in (("static", False), ("wide", True)):
        some = [one for one in told if one["wide"] is is_wide]
        if some:
            count = sum(one["rows"] for one in some)
            found[name] = {"rows": count} | {
                part: sum(one[part] for one in some) / count * 1e6
                for part in ("seconds", "node_cpu", "database_cpu")
            }
    return found


# -- latency ---------------------------------------------------------------------------------


@contextmanager
def far_away(server: PostgresServer, folder: Path, seconds: float) -> Iterator[Path]:
    """A socket that leads to the database through a process that holds everything up a while."""
    folder.mkdir(exist_ok=True)
    (folder / ".s.PGSQL.5432").unlink(missing_ok=True)
    process = multiprocessing.get_context("spawn").Process(
        target=_relay, args=(str(server.folder), str(folder), seconds / 2), daemon=True
    )
    process.start()
    while not (folder / ".s.PGSQL.5432").exists():
        process.join(0.05)
    try:
        yield folder
    finally:
        process.terminate()
        process.join()


def _relay(there: str, here: str, seconds: float) -> None:
    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await asyncio.sleep(seconds)
            writer.write(data)
            await writer.drain()
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(f"{there}/.s.PGSQL.5432")
        await asyncio.gather(
            pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True
        )

    async def serve() -> None:
        path = f"{here}/.s.PGSQL.5432"
        async with await asyncio.start_unix_server(relay, path) as server:
            await server.serve_forever()

    asyncio.run(serve())


# -- measuring ---------------------------------------------------------------------------------


def timed(call: Callable[[], object]) -> float:
    """Seconds a call takes."""
    begun = perf_counter()
    call()
    return perf_counter() - begun


def spread(times: Sequence[float]) -> Figures:
    """The 50th and 99th percentiles, in milliseconds."""
    ninety = quantiles(times, n=100, method="inclusive")[98] if len(times) > 1 else times[0]
    return {"p50_ms": median(times) * 1000, "p99_ms": ninety * 1000, "of": len(times)}


def recalls(site: Site, numbers: Sequence[int], *, wide: bool, host: Path | None) -> Figures:
    """First recalls of a node that has none of the scopes open, and those that follow."""
    node = site.node(wide=wide, host=host)

    def recall(number: int, query: str) -> float:
        return timed(lambda: node.recall(scope_of(number), Recall(query=query)))

    recall(numbers[0], _QUERIES[0])  # libraries are loaded
    cold = [recall(number, _QUERIES[1]) for number in numbers[1:]]
    cpu, far = process_time(), site.cpu()
    warm = [recall(number, query) for query in _QUERIES for number in numbers[1:]]
    found = {
        "cold": spread(cold), "warm": spread(warm),
        "node_cpu_ms": (process_time() - cpu) / len(warm) * 1000,
        "database_cpu_ms": (site.cpu() - far) / len(warm) * 1000,
    }  # fmt: skip
    node.close()
    return found


def retains(site: Site, numbers: Sequence[int], each: int) -> Figures:
    """Lone durable retains of one thread."""
    node = site.node()
    source = texts(181)
    for number in numbers:
        node.open(scope_of(number), create=False)
    cpu, far = process_time(), site.cpu()

    def retain(number: int) -> float:
        return timed(lambda: node.retain(scope_of(number), Retain(content=next(source))))

    times = [retain(number) for number in numbers for _ in range(each)]
    found = spread(times) | {
        "node_cpu_ms": (process_time() - cpu) / len(times) * 1000,
        "database_cpu_ms": (site.cpu() - far) / len(times) * 1000,
    }
    node.close()
    return found


def erasures(site: Site, victim: int, others: Sequence[int]) -> Figures:
    """A forget, then a destroy of one scope while four threads recall and retain in others."""
    node, over = site.node(), threading.Event()
    for number in others:
        node.recall(scope_of(number), Recall(query=_QUERIES[0]))
    times = {"alone": list[float](), "beside": list[float]()}

    def work(name: str, thread: int) -> None:
        chance = random.Random(thread)
        while not over.is_set():
            scope, begun = scope_of(chance.choice(others)), perf_counter()
            if chance.random() < 0.2:
                node.retain(scope, Retain(content=f"note {chance.random()}"))
            else:
                node.recall(scope, Recall(query=_QUERIES[2]))
            times[name].append(perf_counter() - begun)

    def together(name: str, what: Callable[[], object]) -> None:
        over.clear()
        threads = [threading.Thread(target=work, args=(name, one)) for one in range(4)]
        for thread in threads:
            thread.start()
        what()
        over.set()
        for thread in threads:
            thread.join()

    scope, found = scope_of(victim), dict[str, Any]()
    node.open(scope)
    if not node.recall(scope, Recall(query=_QUERIES[0])):
        node.retain_many(scope, RetainMany(tuple(islice(texts(180), 5000))))
    hit = node.recall(scope, Recall(query=_QUERIES[0]))[0]
    together("alone", lambda: over.wait(5))

    def erase() -> None:
        found["forget_s"] = timed(lambda: node.forget(scope, Forget(ids=(hit.memory.id,))))
        found["destroy_s"] = timed(lambda: node.destroy(scope, Destroy(confirm=str(scope))))

    together("beside", erase)
    node.close()
    return found | {name: spread(some) for name, some in times.items()}


def measure(site: Site, *, scopes: int, rows: int, wide: int, sample: int) -> Figures:
    """Every figure of the capacity plan."""
    chance = random.Random(scopes)
    numbers = chance.sample(range(wide, scopes), min(sample, scopes - wide))
    wide_ones = list(range(min(wide, sample)))
    found: Figures = {
        "machine": f"{machine.processor()}; load average {machine.load()}",
        "scopes": scopes, "rows": rows, "wide": wide,
        "bytes": site.bytes(), "loading_us_per_row": loaded(site),
    }  # fmt: skip
    with far_away(site.server, site.folder / "far", 0.001) as host:
        for name, place in (("near", None), ("far", host)):
            with _connected(site, place) as run:
                found[f"{name}_select_1"] = spread([timed(run) for _ in range(200)])
            found[f"{name}_recall"] = recalls(site, numbers, wide=False, host=place)
            if len(wide_ones) > 1:
                found[f"{name}_recall_wide"] = recalls(site, wide_ones, wide=True, host=place)
    found["retain"] = retains(site, numbers[:10], 20)
    found["erasure"] = erasures(site, scopes, numbers[:20])
    return found


@contextmanager
def _connected(site: Site, host: Path | None) -> Iterator[Callable[[], object]]:
    import psycopg

    url = site.url.replace(str(site.server.folder), str(host)) if host else site.url
    with psycopg.connect(url, autocommit=True) as connection:
        yield lambda: connection.execute("SELECT 1").fetchall()


def main() -> None:
    """Load what is missing, then measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--at", type=Path, required=True, help="a folder on the disk to measure on")
    parser.add_argument("--scopes", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--wide", type=int, default=20, help="scopes with 1,536 dimensions")
    parser.add_argument("--sample", type=int, default=40, help="scopes that are recalled from")
    parser.add_argument("--only-load", action="store_true")
    chosen = parser.parse_args()
    site = Site(chosen.at.resolve())
    try:
        load(site, scopes=chosen.scopes, rows=chosen.rows, wide=chosen.wide)
        if not chosen.only_load:
            sized = {"scopes": chosen.scopes, "rows": chosen.rows, "wide": chosen.wide}
            figures = measure(site, **sized, sample=chosen.sample)
            text = json.dumps(figures, indent=2)
            (site.folder / "figures.json").write_text(text)
            print(text)
    finally:
        site.server.stop()


if __name__ == "__main__":
    main()
