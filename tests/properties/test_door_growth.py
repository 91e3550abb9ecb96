"""Every door is linear: what is eight times as long takes about eight times as long.

The guard has a test of its own; here the same is asked of whole verbs, imports and requests.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import monotonic, process_time
from typing import Any

import httpx2
import pytest

from scrubjay.conversation import capture
from scrubjay.engine import Kernel
from scrubjay.engine.transfer import bundle
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.records import export_record
from scrubjay.model.requests import Load, Recall, Retain
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.surfaces.clawdapus import entries, history
from scrubjay.surfaces.imports import carapace, sqlite
from scrubjay.testing.clock import FakeClock
from tests.dialects.carapace.old_database import row, write
from tests.serving import serving
from tests.support.engines import MemoryHome

TIMES = 8
MOST = 3 * TIMES
"""A square would be 64 times; below this it is noise."""
LEAST_SECONDS = 0.002
"""Of a shorter time the clock tells little."""
ALICE = Scope("acme", "alice")
Door = Callable[[str], object]

HOSTILE = (
    *("1", "1 ", "12.", "1,", "9-", "a", "a'", "a.", "A1", "_", " ", "\n", "\t", "\r"),
    *(
        "may ",
        "in-",
        "in ",
        "im ",
        "de ",
        "3 days ",
        "vor 3 tagen ",
        "last ",
        "on monday ",
        "2026-",
    ),
    *("三天前", "1月", "年", "昨日", "ом", "ア", "ー", "的", "\u0301", "\u200d", "ß", "İ"),
    *(
        "I prefer ",
        "my name is ",
        "no, ",
        "actually ",
        "Dr. ",
        "! ",
        "? ",
        "。",
        "> ",
        "|",
        "```\n",
    ),
    *("<a ", "<a>", "</a>", "[", "{", '"', "\\", "[kind=", "\n--- BEGIN MEMORY (x) ---\n"),
    *("--- END MEMORY ---\n", "[Runtime context for this invocation.", "data: {}\n", "data: "),
    *("Bearer ", "sk-", "password=", "http://a:", "\x1b[", "%25", "\\u003d", "eyJ"),
)


def spent(door: Door, text: str) -> float:
    """CPU seconds of the fastest of two calls, of all threads together."""
    times = []
    for _ in range(2):
        start = process_time()
        with suppress(InvalidRequest):
            door(text)
        times.append(process_time() - start)
    return min(times)


def grows(door: Door, short: str, long: str) -> bool:
    """Whether the longer takes more than its length allows; asked again before it is believed."""
    for _ in range(3):
        base = max(spent(door, short), LEAST_SECONDS)
        if spent(door, long) <= MOST * base:
            return False
    return True


def growing(door: Door, size: int) -> list[str]:
    """The hostile units that are repeated at more than the cost of their length."""
    spent(door, "warm")  # what is compiled at the first call is not counted
    return [
        unit
        for unit in HOSTILE
        if grows(door, unit * (size // len(unit)), unit * (TIMES * size // len(unit)))
    ]


@pytest.fixture(scope="module")
def engine() -> Iterator[Kernel]:
    engine = MemoryHome().engine()
    engine.open(ALICE)
    engine.retain(ALICE, Retain("green tea", speaker="Alice"))
    yield engine
    engine.close()


def test_queries(engine: Kernel) -> None:
    assert growing(lambda text: engine.recall(ALICE, Recall(f"x{text}")), 500) == []


def test_contents(engine: Kernel) -> None:
    assert growing(lambda text: engine.retain(ALICE, Retain(f"x{text}")), 2_000) == []


def test_tags_and_metadata(engine: Kernel) -> None:
    def tagged(text: str) -> None:
        tags = [f"{place}{text[place : place + 100]}" for place in range(0, len(text), 100)]
        engine.retain(ALICE, Retain("tea", tags=tags, metadata={"of": text, "each": [text[:99]]}))

    assert growing(tagged, 600) == []


def test_turns(engine: Kernel) -> None:
    def told(text: str) -> None:
        engine.record(ALICE, Record(user=f"x{text}", assistant=f"y{text}", session="s"))

    assert growing(told, 2_000) == []


def test_entries_of_a_proxy() -> None:
    def reported(text: str) -> None:
        request = {"messages": [{"role": "user", "content": text}], "system": text}
        entry = {"id": "e", "request_original": request, "request_effective": request}
        entries.told({"agent_id": "a", "entry": {**entry, "response": {"text": text}}})
        capture.capture(request, text, sent_on=request)

    assert growing(reported, 4_000) == []


# -- imports ---------------------------------------------------------------------------------


def exported(count: int) -> bytes:
    """An export with one chain of so many versions."""
    at = datetime(2026, 5, 1, tzinfo=UTC)
    memories = [
        Memory(
            id=f"mem-{number}",
            kind=Kind.FACT,
            content=f"tea {number}",
            recorded_at=at + timedelta(seconds=number),
            origin=Origin.USER,
            provenance=Provenance(actor=Actor.USER),
            supersedes=f"mem-{number - 1}" if number else None,
            superseded_by=f"mem-{number + 1}" if number + 1 < count else None,
            retired_at=at + timedelta(seconds=number + 1) if number + 1 < count else None,
            number=number + 1,
        )
        for number in range(count)
    ]
    document = {
        "format": "scrubjay-export", "version": bundle.VERSION, "scope": str(ALICE),
        "made_at": "", "count": count, "memories": [export_record(one) for one in memories],
    }  # fmt: skip
    return json.dumps(document).encode()


def linear(door: Callable[[Any], object], short: Any, long: Any) -> bool:
    """Whether what is eight times as much takes no more than its share."""
    return not grows(door, short, long)


def test_an_export_with_one_long_chain() -> None:
    def loaded(raw: bytes) -> None:
        engine = MemoryHome().engine()
        engine.load(ALICE, Load(raw))
        engine.close()

    assert linear(loaded, exported(200), exported(200 * TIMES))
    few, many = (sqlite.write(exported(count)) for count in (400, 400 * TIMES))
    assert linear(sqlite.read, few, many)


def test_a_database_with_one_long_chain(tmp_path: Path) -> None:
    def chain(count: int) -> Path:
        rows = [row(f"m{n}x", superseded_by=f"m{n + 1}x") for n in range(count)]
        return write(tmp_path / f"{count}.sqlite", rows)

    assert linear(carapace.read, chain(200), chain(200 * TIMES))


def test_a_history_that_comes_byte_by_byte() -> None:
    def read(size: int) -> None:
        list(history.lines((b"x" for _ in range(size)), framed=True))

    assert linear(read, 20_000, 20_000 * TIMES)


# -- requests --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def http() -> Iterator[httpx2.Client]:
    home = MemoryHome()
    engine = home.engine()
    engine.open(ALICE)
    assert isinstance(home.clock, FakeClock)
    with serving(engine, home.clock) as running:
        headers = {"Authorization": f"Bearer {running.key(str(ALICE))}"}
        with httpx2.Client(base_url=running.url, headers=headers, timeout=60) as http:
            yield http
    engine.close()


def test_bodies(http: httpx2.Client) -> None:
    """Text in a body, and bodies that are no JSON, of up to the limit of a request."""

    def quoted(text: str) -> None:
        http.post("/v1/recall", json={"query": text, "tags": [text[:100]], "session": text})

    def raw(text: str) -> None:
        headers = {"Content-Type": "application/json"}
        http.post("/v1/memories", content=f'{{"content": {text}'.encode(), headers=headers)

    assert growing(quoted, 20_000) == []
    assert growing(raw, 20_000) == []


def test_headers_cursors_and_names(http: httpx2.Client) -> None:
    """What stands in the head of a request, up to its 16 KiB."""

    def sent(text: str) -> None:
        plain = "".join(one if one.isprintable() and one.isascii() else "x" for one in text)
        for name in ("X-Scrubjay-Scope", "If-None-Match", "X-Request-Id", "Idempotency-Key"):
            http.get("/v1/memories/mem-1", headers={name: f"a{plain}a"})
        http.delete("/v1/memories/mem-1", headers={"If-Match": f'"1.1", {plain}a'})
        http.get("/v1/memories", params={"cursor": plain[:8_000]})

    assert growing(sent, 1_000) == []


def test_one_keys_heavy_requests_do_not_hold_up_the_others(http: httpx2.Client) -> None:
    """While one key sends the worst there is, health and another one's recall are answered."""
    worst: tuple[tuple[str, dict[str, object]], ...] = (
        ("/v1/recall", {"query": "1" * 4_000}),
        ("/v1/recall", {"query": "1,2 " * 200_000}),
        ("/v1/turns", {"id": "t", "user": "password=" * 20_000, "assistant": "1." * 200_000}),
        ("/v1/memories", {"content": "password=" * 7_000, "metadata": {"of": ["a"] * 4_000}}),
        ("/v1/load", {"content": "W10s" * 200_000}),
        ("/v1/forget/preview", {"query": "tea " * 10_000}),
    )
    done = threading.Event()

    def attack() -> None:
        with httpx2.Client(base_url=http.base_url, headers=http.headers, timeout=120) as own:
            while not done.is_set():
                for path, body in worst:
                    assert own.post(path, json=body).status_code < 500

    http.post("/v1/memories", json={"content": "green tea"})
    with ThreadPoolExecutor(3) as pool:
        attacks = [pool.submit(attack) for _ in range(3)]
        waited = []
        for _ in range(40):
            begun = monotonic()
            assert http.get("/healthz").status_code == 200
            assert http.post("/v1/recall", json={"query": "tea"}).status_code == 200
            waited.append(monotonic() - begun)
        done.set()
        for one in attacks:
            one.result()
    assert median(waited) < 0.5
    assert max(waited) < 3.0
