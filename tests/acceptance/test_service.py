"""The service: whatever its document allows, nobody sees a foreign byte and nothing breaks."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
import schemathesis.openapi
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import checks
from schemathesis.specs.openapi import checks as conformance

import scrubjay
from scrubjay import Forbidden, Jay, StoreError, bootstrap, connect
from scrubjay.access import Grant
from scrubjay.engine import Kernel
from scrubjay.model.requests import Browse, FreezeRequest
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.service.issuer import Template, Trust
from scrubjay.service.service import UNLIMITED, Options
from tests import processes
from tests.processes import default_signals
from tests.serving import Running, serving
from tests.support.engines import SqliteHome
from tests.support.issuer import AUDIENCE, Issuer, serve_issuer

ALICE, BOB = Scope("acme", "alice"), Scope("globex", "bob")
NEEDLE = "zanzibar"
"""A word that only Alice ever wrote."""
CHECKS = (
    checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
)


@pytest.fixture
def engine(ram: Path) -> Iterator[Kernel]:
    engine = SqliteHome(ram / "home").engine()
    engine.open(ALICE)
    engine.open(BOB)
    yield engine
    engine.close()


@pytest.fixture
def issuer(engine: Kernel) -> Iterator[Issuer]:
    with serve_issuer(engine._ports.clock) as running:
        yield running


@pytest.fixture
def service(engine: Kernel, issuer: Issuer) -> Iterator[Running]:
    scope = Template(f"{BOB.tenant}/{{sub}}")
    trust = Trust(issuer=issuer.url, audience=AUDIENCE, scope=scope, grants=tuple(Grant))
    with serving(engine, engine._ports.clock, Options(rates=UNLIMITED, trust=trust)) as running:
        yield running


# -- two tenants -----------------------------------------------------------------------------


class Spoils:
    """What Bob found out about Alice: ids, sessions, a cursor, a receipt and a token."""

    def __init__(self, alice: Jay, service: Running, key: str) -> None:
        for number in range(4):
            alice.retain(
                f"{NEEDLE} {number}",
                tags=[f"{NEEDLE}-tag"],
                session=f"{NEEDLE}-s",
                key="k" if number == 0 else None,
            )
        alice.record(f"I prefer {NEEDLE}.", f"{NEEDLE} it is.", session=f"{NEEDLE}-s")
        waiting = alice.retain(f"Obey {NEEDLE}", kind="instruction", origin="web").id
        forgotten = alice.retain(f"gone {NEEDLE}").id
        self.receipt = alice.forget([forgotten])
        self.token = alice.preview(session=f"{NEEDLE}-s").token
        self.ids = [memory.id for memory in alice.browse()] + [waiting, forgotten]
        self.key_id = key.split("_")[1]
        headers = {"Authorization": f"Bearer {key}"}
        page = httpx2.get(f"{service.url}/v1/memories?limit=1", headers=headers)
        self.cursor = page.json()["next_cursor"]
        self.secrets = (NEEDLE, *self.ids, self.key_id, self.token, self.receipt.address)
        """What no answer to Bob may hold, but for what he sent with that very request."""

    def bodies(self, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Bodies that an operation takes, with what is Alice's wherever it fits."""
        from scrubjay import codec

        loot = {
            "ids": self.ids[:1], "id": self.ids[0], "session": f"{NEEDLE}-s", "key": "k",
            "tags": [f"{NEEDLE}-tag"], "query": "Obey or gone", "confirm": str(ALICE),
            "content": "Obey the page", "scopes": [str(ALICE)], "sources": self.ids[:1],
            "receipt": codec.plain(self.receipt), "name": "stolen", "level": "none",
        }  # fmt: skip
        known = {name: loot[name] for name in schema.get("properties", {}) if name in loot}
        needed = {name: known.get(name) for name in schema.get("required", ())}
        yield dict(needed)
        for name, value in known.items():
            yield {**needed, name: value}
        if "confirm" in known:
            yield {**needed, "session": f"{NEEDLE}-s", "confirm": self.token}
            yield {**needed, "ids": self.ids, "confirm": self.token}


@pytest.mark.parametrize("bearer", ["key", "token"])
def test_with_foreign_ids_everywhere_no_foreign_byte_comes_back(
    engine: Kernel,
    service: Running,
    issuer: Issuer,
    bearer: str,
    record_property: Callable[..., None],
) -> None:
    """Every endpoint of the document, with Alice's ids and names in place of Bob's own."""
    alice_key, bob_key = service.key(str(ALICE)), service.key(str(BOB), "globex/team")
    if bearer == "token":
        bob_key = issuer.token(sub=BOB.owner)
    with connect(service.url, alice_key) as alice:
        spoils = Spoils(alice, service, alice_key)
    before = engine.browse(ALICE, Browse(limit=100, superseded=True)).data
    answers = list(_attack(service, bob_key, spoils))
    leaks = [text for _, text in answers if any(one in text for one in spoils.secrets)]
    assert leaks == []
    assert engine.browse(ALICE, Browse(limit=100, superseded=True)).data == before
    assert spoils.key_id in {key.id for key in service.keys.all()}
    statuses = Counter(status for status, _ in answers)
    assert statuses[403] > 100
    assert statuses[200] > 20
    assert max(statuses) < 500
    record_property("requests", len(answers))
    record_property("foreign bytes", len("".join(leaks)))


def _attack(service: Running, key: str, spoils: Spoils) -> Iterator[tuple[int, str]]:
    document = httpx2.get(f"{service.url}/openapi.json").json()
    schemas, own = document["components"]["schemas"], set[str]()
    with httpx2.Client(base_url=service.url, timeout=60) as http:
        for path, methods in document["paths"].items():
            for method, described in methods.items():
                for request in _requests(method, path, described, schemas, spoils):
                    for scope in (None, str(ALICE), "system/keys"):
                        headers = {"Authorization": f"Bearer {key}", "If-Match": "*"}
                        if scope:
                            headers["X-Scrubjay-Scope"] = scope
                        answer = http.request(headers=headers, **request)
                        sent = _sent(request)
                        # What he has written where he may is his own, and may come back there.
                        own |= sent if scope is None and answer.status_code < 300 else set()
                        known = sent | own if scope is None else sent
                        yield answer.status_code, _without(known, answer.text)


def _without(sent: set[str], text: str) -> str:
    """What came back, but for what was sent: that may come back to who sent it."""
    for one in sorted(sent, key=len, reverse=True):
        text = text.replace(one, "")
    return text


def _sent(request: Any) -> set[str]:
    """Every word of a request: in its path, its query and, however deep, in its body."""
    if isinstance(request, str):
        return {request, *filter(None, request.split("/"))}
    parts = request.values() if isinstance(request, dict) else request
    if not isinstance(request, dict | list):
        return set()
    return set[str]().union(*map(_sent, parts))


def _requests(
    method: str, path: str, described: dict[str, Any], schemas: dict[str, Any], spoils: Spoils
) -> Iterator[dict[str, Any]]:
    names = {
        "id": spoils.ids[:1] + spoils.ids[-2:],
        "session": [f"{NEEDLE}-s"],
        "key_id": [spoils.key_id],
    }
    wanted = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    for values in itertools.product(*(names[name] for name in wanted)):
        url = path.format(**dict(zip(wanted, values, strict=True)))
        if "requestBody" in described:
            ref = described["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            for body in spoils.bodies(schemas[ref.rpartition("/")[2]]):
                yield {"method": method, "url": url, "json": body}
            continue
        yield {"method": method, "url": url}
        yield {"method": method, "url": url, "params": {"cursor": spoils.cursor}}
        yield {"method": method, "url": url, "params": {"session": f"{NEEDLE}-s"}}


# -- whatever the document allows ----------------------------------------------------------------


def test_nothing_the_document_allows_is_a_server_error(
    engine: Kernel, service: Running, more: bool, record_property: Callable[..., None]
) -> None:
    """Schemathesis on the whole document; every answer is one the document describes."""
    key = service.key(str(ALICE))
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    _widen_pairs(schema.raw_schema)
    statuses: Counter[int] = Counter()
    for found in schema.get_all_operations():
        engine.open(ALICE, anew=True)
        engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
        with connect(service.url, key) as alice:
            known = [alice.retain("Obey the page", kind="instruction", origin="web").id]
            known += [alice.retain(f"memory {number}").id for number in range(3)]
        statuses.update(
            _ask(cast(Any, found).ok(), key, known, 250 if more else 20, derandomize=not more)
        )
    record_property("requests", sum(statuses.values()))
    record_property("statuses", json.dumps(dict(sorted(statuses.items()))))
    assert max(statuses) < 500
    assert statuses[200] > 200


def _widen_pairs(schema: Any) -> None:
    """Make fixed pairs lists of two.

    Schemathesis spells pairs for an older draft of JSON Schema, in answers too, and then refuses
    its own spelling.
    """
    if isinstance(schema, dict) and "prefixItems" in schema:
        del schema["prefixItems"], schema["items"]
    for inner in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(inner, dict | list):
            _widen_pairs(inner)


def _ask(
    operation: Any, key: str, known: list[str], examples: int, *, derandomize: bool
) -> Counter[int]:
    seen: Counter[int] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=derandomize,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), own=st.booleans(), aimed=st.integers(0, len(known)))
    def ask(case: Any, own: bool, aimed: int) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        if own:
            headers["X-Scrubjay-Scope"] = str(ALICE)
        if aimed and "id" in (case.path_parameters or {}):
            case.path_parameters["id"] = known[aimed - 1]
        answer = case.call(headers=headers)
        seen[answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    ask()
    return seen


# -- killed, and told to end ---------------------------------------------------------------------


SERVE = (sys.executable, "-m", "scrubjay", "serve", "--port", "0")


class Process:
    """`scrubjay serve` as a process of its own, on a home that outlives it."""

    def __init__(self, home: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            default_signals([*SERVE, "--json", *options]),
            env={**os.environ, "SCRUBJAY_HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.url: str = json.loads(self._process.stdout.readline())["url"]
        self.pid = self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it was not ended yet."""
        return self._process.returncode is None

    def end(self, number: signal.Signals) -> int:
        """Send a signal; the exit code."""
        self._process.send_signal(number)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait()


class Load:
    """Clients that retain as fast as they can, and write down what was acknowledged."""

    def __init__(self, url: str, threads: int) -> None:
        self.acknowledged: dict[str, str] = {}
        self._url = url
        self._counted = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, thread: int) -> None:
        with connect(self._url, scope=str(ALICE)) as jay:
            for number in itertools.count():
                text = f"memory {number} of thread {thread} at {self._url}"
                try:
                    receipt = jay.retain(text)
                except StoreError:
                    return  # the service is gone; what was not acknowledged may be lost
                with self._counted:
                    self.acknowledged[receipt.id] = text
                    self._counted.notify()

    def wait_for(self, count: int) -> None:
        """Return once so many were acknowledged."""
        with self._counted:
            assert self._counted.wait_for(lambda: len(self.acknowledged) >= count, timeout=60)

    def join(self) -> None:
        """Wait for every client to have noticed."""
        for thread in self._threads:
            thread.join()


def test_who_signed_in_with_an_issuer_has_a_memory_of_their_own(ram: Path) -> None:
    with serve_issuer(bootstrap.clock()) as issuer:
        options = ("--oidc-issuer", issuer.url, "--oidc-audience", AUDIENCE, "--oidc-scope")
        process = Process(ram / "home", *options, "acme/{sub}", "--oidc-grants", "read,write")
        try:
            with connect(process.url, issuer.token(sub="auth0|1")) as jay:
                jay.retain("tea")
                assert str(jay.scope) == "acme/x-auth0_7C1"
                with pytest.raises(Forbidden):
                    jay.forget(session="s")
            with connect(process.url, issuer.token(sub="auth0|2"), create=True) as other:
                assert list(other.recall("tea")) == []
            with pytest.raises(Forbidden):
                connect(process.url, issuer.token(aud="another"))
        finally:
            assert process.end(signal.SIGTERM) == 0


def test_killed_under_load_no_acknowledged_retain_is_lost(
    ram: Path, more: bool, seed: int, record_property: Callable[..., None]
) -> None:
    chance, acknowledged, lost = random.Random(seed), dict[str, str](), set[str]()
    for _ in range(20 if more else 3):
        process = Process(ram / "home", "--no-auth", "--writes", "0")
        load = Load(process.url, threads=4)
        load.wait_for(chance.randint(20, 200))
        assert process.end(signal.SIGKILL) == -signal.SIGKILL
        load.join()
        acknowledged |= load.acknowledged
        with scrubjay.open(str(ALICE), home=ram / "home") as jay:
            found = {memory.id: memory.content for memory in jay.browse(limit=10_000)}
            lost |= {one for one, text in acknowledged.items() if found.get(one) != text}
            assert jay.verify().sound
    record_property("acknowledged", len(acknowledged))
    record_property("lost", len(lost))
    assert not lost


def test_told_to_end_it_finishes_what_it_has_begun(ram: Path) -> None:
    process = Process(ram / "home", "--no-auth", "--writes", "0")
    load = Load(process.url, threads=4)
    load.wait_for(20)
    assert process.end(signal.SIGTERM) == 0
    load.join()
    with scrubjay.open(str(ALICE), home=ram / "home") as jay:
        assert {memory.id for memory in jay.browse(limit=10_000)} >= set(load.acknowledged)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ending_it_is_no_failure(ram: Path, number: signal.Signals) -> None:
    assert Process(ram / "home").end(number) == 0


# -- several workers -----------------------------------------------------------------------------


def workers_of(process: Process) -> set[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return set(map(int, children.read_text().split()))


def wait_until(holds: Callable[[], bool]) -> None:
    """Return once it holds; what is waited for is the doing of other processes."""
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        os.sched_yield()


@pytest.fixture
def crowd(ram: Path) -> Iterator[Process]:
    """A service of three workers, all of which answer."""
    process = Process(ram / "home", "--no-auth", "--reads", "0.01", "--workers", "3")
    wait_until(lambda: len(workers_of(process)) == 3)
    yield process
    if process.runs:
        process.end(signal.SIGTERM)


def each_anew(process: Process, count: int, path: str, **more: Any) -> list[httpx2.Response]:
    """As many requests, each on a connection of its own: any worker may take it."""
    with_scope = {"X-Scrubjay-Scope": str(ALICE), **more.pop("headers", {})}
    method = "POST" if "json" in more else "GET"
    return [
        httpx2.request(method, process.url + path, headers=with_scope, timeout=30, **more)
        for _ in range(count)
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="the workers are found by /proc")
def test_rate_limits_and_repeats_hold_across_workers(crowd: Process) -> None:
    once, fact = {"Idempotency-Key": "one"}, {"content": "Alice drinks tea"}
    stored = each_anew(crowd, 24, "/v1/memories", headers=once, json=fact)
    assert sorted({one.status_code for one in stored}) == [200, 201]
    assert len({one.json()["id"] for one in stored}) == 1
    asked = each_anew(crowd, 24, "/v1/recall", json={"query": "tea"})
    assert sorted(one.status_code for one in asked) == [200] + 23 * [429]


@pytest.mark.skipif(sys.platform != "linux", reason="the workers are found by /proc")
def test_a_worker_that_dies_is_started_again_and_all_end_with_their_parent(crowd: Process) -> None:
    first, *others = workers_of(crowd)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(workers_of(crowd) - {first}) == 3)
    assert {one.status_code for one in each_anew(crowd, 12, "/healthz")} == {200}
    left = workers_of(crowd)
    assert left > set(others)
    crowd.end(signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))


def test_workers_end_when_they_are_told_to(crowd: Process) -> None:
    assert crowd.end(signal.SIGTERM) == 0


def first_words(home: Path, *options: str) -> str:
    """What `scrubjay serve` says before it serves."""
    with processes.running(
        default_signals([*SERVE, *options]),
        env={**os.environ, "SCRUBJAY_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = list(iter(process.stderr.readline, "Ctrl-C ends it.\n"))
        process.terminate()
        process.stderr.read()  # what it logs at its end must find a reader
    assert process.returncode == 0
    return "".join(said)


def test_where_there_is_no_key_it_says_how_to_make_one(ram: Path) -> None:
    said = first_words(ram / "home", "--scope", "acme/alice")
    assert "There is no key yet: `scrubjay keys create NAME --scope acme/alice`." in said
    kept = first_words(ram / "home", "--key-file", str(ram / "key"))
    assert f"Bearer $(cat {ram / 'key'})" in kept
    assert "There is no key yet" not in first_words(ram / "home")
    assert "Bearer" not in first_words(ram / "home", "--no-auth")


def test_a_key_of_the_command_line_opens_its_scope_until_it_is_revoked(ram: Path) -> None:
    def scrubjay_keys(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "scrubjay", "keys", *words, "--json"],
            env={**os.environ, "SCRUBJAY_HOME": str(ram / "home")},
            capture_output=True,
            check=True,
        )
        return json.loads(done.stdout)

    issued = scrubjay_keys("create", "an agent", "--scope", "acme/alice", "--grant", "write")
    process = Process(ram / "home")
    with connect(process.url, issued["token"]) as jay:
        assert str(jay.scope) == "acme/alice"
        jay.retain("Alice prefers green tea")
        with pytest.raises(Forbidden):
            jay.browse()
        assert [key["name"] for key in scrubjay_keys("list")["data"]] == ["an agent"]
        scrubjay_keys("revoke", issued["key"]["id"], "--yes")
        assert _refused_within(30, lambda: jay.retain("still here"))
    assert process.end(signal.SIGTERM) == 0


def _refused_within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work is forbidden before the time is up; it is asked for until then."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            work()
        except Forbidden:
            return True
    return False
