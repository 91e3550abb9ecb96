"""The service under load: recalls and durable retains a second, beside the cheapest answer it has.

Server and client share the cores, as on a developer's machine. The client is wrk, which costs next
to nothing beside the server; the mixes, which count each retain, are asked by Python.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import NamedTemporaryFile
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from bench.conversation import Conversation
from bench.report import Line, Section
from bench.subject import scratch
from scrubjay import bootstrap, settings
from scrubjay.access import Keys
from scrubjay.engine.transfer import bundle
from scrubjay.model.requests import Load, Recall
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.surfaces.clawdapus.descriptor import TOKEN_VARIABLE
from scrubjay.surfaces.clawdapus.names import scope_of

SIZE: Final = 5_000
CONNECTIONS: Final = 16
RECALLS: Final = 1_000.0
SHARE: Final = 0.15
MIX_SECONDS: Final = 600.0
TURNS: Final = 200
_STRETCHES: Final = 10
_SCOPE: Final = Scope.parse("acme/bench")
_WRITTEN: Final = Scope.parse("acme/written")
"""As large at first; retains go here, so that recalls are measured at one size."""
_AGENT: Final = {"agent_id": "bench", "pod": "bench"}
_POD: Final = scope_of("bench", "bench")
_TOKEN: Final = "a-token-for-the-bench"  # it opens nothing that lasts
_REASON: Final = (
    "a recall scores every memory of the scope in one Python process: half of its time is numpy "
    "and Python over all rows, a quarter is HTTP, the rest opens and renders ten hits. The client "
    "takes its part of the same cores."
)


def run(*, quick: bool) -> Section:
    """Each kind of request in turns with `/healthz`, so that other load falls on both."""
    section = Section("Service", reason=_REASON)
    section.notes.append(
        f"`scrubjay serve` on {SIZE:,} memories in one scope, with a key, logs on; "
        f"{CONNECTIONS} connections of wrk on the same cores. The plane's scope "
        f"has as many memories and {TURNS:,} turns. Retains go to other scopes."
    )
    rounds, seconds = (2, 1.0) if quick else (6, 3.0)
    with scratch() as folder, _service(folder) as service:
        service.ask(1.0, service.recalls())  # the first one makes the index
        service.ask(1.0, service.plane_recalls())
        names = ("healthz", "recall", "retain", "plane recall", "plane retain")
        taken: dict[str, list[Taken]] = {name: [] for name in names}
        for _ in range(rounds):
            taken["healthz"].append(service.press(seconds, service.healthz()))
            taken["recall"].append(service.press(seconds, service.recalls()))
            taken["retain"].append(service.press(seconds, service.retains()))
            taken["plane recall"].append(service.press(seconds, service.plane_recalls()))
            taken["plane retain"].append(service.press(seconds, service.plane_retains()))
    floors = [one.rate for one in taken["healthz"]]
    section.lines.append(_line("healthz", taken["healthz"], None))
    section.lines.append(_line("recall", taken["recall"], floors, wanted=True))
    section.lines.append(_line("durable retain", taken["retain"], floors))
    section.lines.append(_line("plane recall", taken["plane recall"], floors))
    section.lines.append(_line("plane durable retain", taken["plane retain"], floors))
    return section


def mix(*, quick: bool) -> Section:
    """Ten minutes of four recalls to one retain: errors, memory and descriptors.

    The scope grows by every retain, and so does its index, which is kept in memory: what the
    service takes beyond that is what must stay flat.
    """
    seconds = 30.0 if quick else MIX_SECONDS
    section = Section("Service, mixed load")
    with scratch() as folder:
        with _service(folder) as service:
            service.ask(seconds / _STRETCHES, service.mixed())
            seen, taken = [service.footprint()], list[Taken]()
            for _ in range(_STRETCHES):
                taken.append(service.ask(seconds / _STRETCHES, service.mixed()))
                seen.append(service.footprint())
        index = _index_bytes(folder)
    section.notes.append(
        f"{seconds:g} s of 80 % recalls and 20 % retains in one scope that grew to {index[0]:,} "
        f"memories, after {seconds / _STRETCHES:g} s of the same. Resident memory after each "
        f"{seconds / _STRETCHES:g} s: {', '.join(f'{one[0] / 1e6:.0f}' for one in seen)} MB."
    )
    section.lines += _mixed_lines(taken, seen, index)
    return section


def _mixed_lines(
    taken: list[Taken], seen: list[tuple[int, int, int]], index: tuple[int, int]
) -> list[Line]:
    errors = sum(one.errors for one in taken)
    (before, _, held), (after, open_files, now) = seen[0], seen[-1]
    grown = index[1] * (1 - held / now)
    beyond = (after - before - grown) / before
    descriptors = [one[1] for one in seen]
    return [
        _line("80/20 mix", taken, None),
        Line(what="errors", figure=f"{errors:,}", target="0", reached=errors == 0),
        Line(
            what="growth of resident memory, beside the index",
            figure=f"{(after - before) / 1e6:.0f} MB",
            floor=f"{grown / 1e6:.0f} MB of index",
            ratio=f"{beyond:+.0%} of {before / 1e6:.0f} MB",
            target="≤ 10 % beyond the index",
            reached=beyond <= 0.1,
        ),
        Line(
            what="descriptors",
            figure=f"{open_files} ({min(descriptors)} to {max(descriptors)})",
            floor=f"{descriptors[0]} before",
            target="flat",
            reached=open_files <= descriptors[0] + CONNECTIONS,
        ),
    ]


def _index_bytes(folder: Path) -> tuple[int, int]:
    """How many memories the scope holds, and how many bytes its index takes in memory."""
    engine = bootstrap.build(settings.at_home(folder))
    try:
        engine.recall(_SCOPE, Recall(query="anything"))
        indexed = engine._indexed(_SCOPE)
        return len(indexed.ready), indexed.size
    finally:
        engine.close()


def _line(
    what: str, taken: list[Taken], floors: list[float] | None, *, wanted: bool = False
) -> Line:
    rate = median(one.rate for one in taken)
    p99 = median(one.p99 for one in taken)
    cpu = median(one.cpu / max(1, one.answers) for one in taken)
    share = (
        None
        if floors is None
        else median(one.rate / floor for one, floor in zip(taken, floors, strict=True))
    )
    return Line(
        what=what,
        figure=f"{rate:,.0f}/s, p99 {p99 * 1e3:.0f} ms, {cpu * 1e3:.2f} ms of processor each",
        floor="-" if floors is None else f"{median(floors):,.0f}/s",
        ratio="-" if share is None else f"{share:.0%}",
        target=f"≥ {RECALLS:,.0f}/s or ≥ {SHARE:.0%}" if wanted else "-",
        reached=(rate >= RECALLS or (share or 0) >= SHARE) if wanted else None,
    )


# -- the service ---------------------------------------------------------------------------------


@contextmanager
def _service(folder: Path) -> Iterator[Service]:
    engine, talk = bootstrap.build(settings.at_home(folder)), Conversation()
    memories = tuple(talk.memories(SIZE))
    for scope in (_SCOPE, _WRITTEN, _POD):
        content = bundle.Content(scope=scope, made_at="", memories=memories)
        engine.load(scope, Load(bundle.to_json(content)))
    for number in range(TURNS):
        engine.record(_POD, Record(id=f"turn-{number}", user=talk.question(), assistant="Noted."))
    keys = Keys(engine, bootstrap.clock())
    key, other = (keys.create(name="bench", scopes=[str(one)]).token for one in (_SCOPE, _WRITTEN))
    engine.close()
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay", "serve", "--port", "0", "--reads", "0", "--writes", "0",
         "--recall-ms", "30000", "--json"],
        env={**os.environ, "SCRUBJAY_HOME": str(folder), TOKEN_VARIABLE: _TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["url"]
        yield Service(process.pid, url, key, other, talk)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


@dataclass
class Taken:
    """What some seconds of asking took."""

    seconds: float
    cpu: float = 0.0
    """Processor time of the server, in seconds."""
    times: list[float] = field(default_factory=list)
    answers: int = 0
    p99: float = 0.0
    errors: int = 0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


Asking = Callable[[], bytes]
_TELL: Final = b"""
done = function(summary, latency)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format('{"seconds": %f, "answers": %d, "p99": %f, "errors": %d}\\n',
    summary.duration / 1e6, summary.requests, latency:percentile(99) / 1e6, errors))
end
"""


def _lua(request: bytes) -> bytes:
    """A request as a string of Lua."""
    return b'"' + b"".join(b"\\%03d" % byte for byte in request) + b'"'


class Service:
    """The running service, and requests for it."""

    def __init__(self, pid: int, url: str, key: str, other: str, talk: Conversation) -> None:
        self._pid = pid
        self._where = urlsplit(url)
        self._key = key
        self._other = other
        self._talk = talk
        self._chance = random.Random(1)
        self._retained = 0

    def healthz(self) -> Asking:
        """The cheapest request there is."""
        request = self._request("GET", "/healthz", None)
        return lambda: request

    def recalls(self) -> Asking:
        """Questions, no two alike."""
        return lambda: self._request("POST", "/v1/recall", {"query": self._talk.question()})

    def retains(self) -> Asking:
        """Memories for the other scope, no two alike."""
        return lambda: self._retain(self._other)

    def _retain(self, key: str) -> bytes:
        return self._request("POST", "/v1/memories", {"content": self._talk.question()}, key)

    def plane_recalls(self) -> Asking:
        """What the proxy of a pod asks before a turn."""

        def ask() -> bytes:
            messages = [{"role": "user", "content": self._talk.question()}]
            return self._request("POST", "/recall", {**_AGENT, "messages": messages}, _TOKEN)

        return ask

    def plane_retains(self) -> Asking:
        """What it reports after one; no two turns alike."""

        def ask() -> bytes:
            said = self._talk.question()
            entry = {
                "id": f"hist1_{self._chance.getrandbits(128):032x}",
                "request_original": {"messages": [{"role": "user", "content": said}]},
                "response": {"format": "json", "json": {"content": "I will look into it."}},
            }
            other = {**_AGENT, "agent_id": "other"}
            return self._request("POST", "/retain", {**other, "entry": entry}, _TOKEN)

        return ask

    def mixed(self) -> Asking:
        """Four recalls to one retain, in the same scope."""
        recall = self.recalls()

        def ask() -> bytes:
            if self._chance.random() >= 0.2:
                return recall()
            self._retained += 1
            return self._retain(self._key)

        return ask

    def ask(self, seconds: float, request: Asking) -> Taken:
        """Ask over all connections until the time is up."""
        before = self._cpu()
        taken = asyncio.run(self._ask(seconds, request))
        taken.cpu, taken.answers = self._cpu() - before, len(taken.times)
        taken.p99 = quantiles(taken.times, n=100)[-1]
        return taken

    def press(self, seconds: float, request: Asking) -> Taken:
        """Ask by wrk, over all connections, until the time is up."""
        requests = [request() for _ in range(max(500, int(3_000 * seconds)))]
        with NamedTemporaryFile("wb", suffix=".lua") as script:
            script.write(b"local r = {" + b",".join(map(_lua, requests)) + b"}\nlocal i = 0\n")
            script.write(b"request = function() i = i % #r + 1; return r[i] end\n" + _TELL)
            script.flush()
            command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "-s", script.name]
            before = self._cpu()
            told = subprocess.run(
                [*command, f"http://{self._where.netloc}"],
                capture_output=True,
                text=True,
                check=True,
            )
        found = json.loads(told.stdout.splitlines()[-1])
        return Taken(
            found["seconds"],
            cpu=self._cpu() - before,
            answers=found["answers"],
            p99=found["p99"],
            errors=found["errors"],
        )

    def _cpu(self) -> float:
        fields = (Path("/proc") / str(self._pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def footprint(self) -> tuple[int, int, int]:
        """Resident bytes and open descriptors of the service, and how many memories it has."""
        process = Path("/proc") / str(self._pid)
        pages = int((process / "statm").read_text().split()[1])
        return pages * 4096, len(list((process / "fd").iterdir())), SIZE + self._retained

    def _request(
        self, method: str, path: str, body: Mapping[str, object] | None, token: str | None = None
    ) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._where.netloc}\r\n"
            f"Authorization: Bearer {token or self._key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content

    async def _ask(self, seconds: float, request: Asking) -> Taken:
        taken = Taken(seconds)
        end = perf_counter() + seconds
        await asyncio.gather(*(self._connection(end, request, taken) for _ in range(CONNECTIONS)))
        return taken

    async def _connection(self, end: float, request: Asking, taken: Taken) -> None:
        reader, writer = await asyncio.open_connection(self._where.hostname, self._where.port)
        while (begun := perf_counter()) < end:
            writer.write(request())
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or b"0"))
            if head[9:10] == b"2":
                taken.times.append(perf_counter() - begun)
            else:
                taken.errors += 1
        writer.close()
        await writer.wait_closed()
