"""A running service for the benches, its requests, and the clients that press it.

wrk costs next to nothing beside the server; what keeps a pace, or counts each request, is asked by
Python.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from tempfile import NamedTemporaryFile
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from bench.conversation import Conversation
from scrubjay import bootstrap, settings
from scrubjay.access import Keys
from scrubjay.engine.transfer import bundle
from scrubjay.model.requests import Load
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.surfaces.clawdapus.descriptor import TOKEN_VARIABLE
from scrubjay.surfaces.clawdapus.names import scope_of

SIZE: Final = 5_000
CONNECTIONS: Final = 16
TURNS: Final = 200
SCOPE: Final = Scope.parse("acme/bench")
_WRITTEN: Final = Scope.parse("acme/written")
"""As large at first; retains go here, so that recalls are measured at one size."""
_AGENT: Final = {"agent_id": "bench", "pod": "bench"}
_POD: Final = scope_of("bench", "bench")
_TOKEN: Final = "a-token-for-the-bench"  # it opens nothing that lasts


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Service]:
    """A service on scopes of 5,000, with these options of `scrubjay serve`."""
    engine, talk = bootstrap.build(settings.at_home(folder)), Conversation()
    memories = tuple(talk.memories(SIZE))
    for scope in (SCOPE, _WRITTEN, _POD):
        content = bundle.Content(scope=scope, made_at="", memories=memories)
        engine.load(scope, Load(bundle.to_json(content)))
    for number in range(TURNS):
        engine.record(_POD, Record(id=f"turn-{number}", user=talk.question(), assistant="Noted."))
    keys = Keys(engine, bootstrap.clock())
    key, other = (keys.create(name="bench", scopes=[str(one)]).token for one in (SCOPE, _WRITTEN))
    engine.close()
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay", "serve", "--port", "0", "--reads", "0", "--writes", "0",
         "--json", *options],
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

    def plane_recalls(self, agent: str = "bench") -> Asking:
        """What the proxy of a pod asks before a turn."""

        def ask() -> bytes:
            messages = [{"role": "user", "content": self._talk.question()}]
            asked = {**_AGENT, "agent_id": agent, "messages": messages}
            return self._request("POST", "/recall", asked, _TOKEN)

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
        return self.take(lambda: self._ask(seconds, request))

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
        """Processor time of the service and its workers, in seconds."""
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        taken = 0
        for pid in (self._pid, *children):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            taken += int(fields[11]) + int(fields[12])
        return taken / os.sysconf("SC_CLK_TCK")

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

        async def press() -> None:
            async with self._connected() as line:
                while perf_counter() < end:
                    await line.ask(request(), taken)

        await asyncio.gather(*(press() for _ in range(CONNECTIONS)))
        return taken

    async def pace(self, seconds: float, rate: float, request: Asking, taken: Taken) -> None:
        """Ask at a rate, whatever the answers take: a time counts from when it was due."""
        begun, number = perf_counter(), 0

        async def keep() -> None:
            nonlocal number
            async with self._connected() as line:
                while (due := number / rate) < seconds:
                    number += 1
                    await asyncio.sleep(max(0.0, begun + due - perf_counter()))
                    await line.ask(request(), taken, since=begun + due)

        await asyncio.gather(*(keep() for _ in range(CONNECTIONS)))

    async def wake(self, agents: int, times: int, every: float, request: Asking) -> Taken:
        """All agents ask at the same moment, again and again; it ends with the last pause."""
        taken = Taken(times * every)
        begun = perf_counter()

        async def agent() -> None:
            async with self._connected() as line:
                for turn in range(times):
                    await line.ask(request(), taken)
                    await asyncio.sleep(max(0.0, begun + (turn + 1) * every - perf_counter()))

        await asyncio.gather(*(agent() for _ in range(agents)))
        return taken

    def take(self, work: Callable[[], Awaitable[Taken]]) -> Taken:
        """Run such asking, and note the processor time of the service meanwhile."""
        before = self._cpu()
        taken = asyncio.run(_awaited(work))
        taken.cpu, taken.answers = self._cpu() - before, len(taken.times)
        if len(taken.times) > 1:
            taken.p99 = quantiles(taken.times, n=100, method="inclusive")[-1]
        return taken

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Line]:
        host, port = self._where.hostname, self._where.port
        reader, writer = await asyncio.open_connection(host, port)
        try:
            yield _Line(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()


async def _awaited(work: Callable[[], Awaitable[Taken]]) -> Taken:
    return await work()


class _Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes, taken: Taken, *, since: float | None = None) -> None:
        """Send a request, and note when its answer was there, or that it was refused."""
        begun = perf_counter() if since is None else since
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await self._reader.readexactly(int(length or b"0"))
        if head[9:10] == b"2":
            taken.times.append(perf_counter() - begun)
        else:
            taken.errors += 1
