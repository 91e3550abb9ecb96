"""MCP with the SDK's own client: the real command over stdio, the real service over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import scrubjay
from scrubjay.access import Grant
from scrubjay.engine import Kernel
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Retain
from scrubjay.model.scope import Scope
from scrubjay.service.issuer import Template, Trust
from scrubjay.service.service import UNLIMITED, Options, Rates
from scrubjay.surfaces.mcp.routes import McpPaths
from tests import processes
from tests.serving import Running, serving
from tests.support.engines import MemoryHome
from tests.support.issuer import AUDIENCE, serve_issuer

ALICE = Scope("acme", "alice")
MODES = ("auto", "legacy")
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
METADATA = "/.well-known/oauth-protected-resource/mcp"


@asynccontextmanager
async def over_http(running: Running, key: str, mode: str) -> AsyncIterator[Client]:
    """A client of `/mcp` with a key."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
        transport = streamable_http_client(f"{running.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(home: Path, mode: str, *options: str) -> AsyncIterator[Client]:
    """A client of the command."""
    env = {**os.environ, "SCRUBJAY_HOME": str(home)}
    command = ["-m", "scrubjay", "mcp", *options]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=env)
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield client


@pytest.fixture
def running(engine: Kernel, home: MemoryHome) -> Iterator[Running]:
    options = Options(rates=UNLIMITED)
    with serving(engine, home.clock, options, planes=[McpPaths()]) as found:
        yield found


def text(result: Any) -> str:
    return "\n".join(one.text for one in result.content)


async def lives(client: Client) -> None:
    """Store, search, brief, correct and forget, as every client does."""
    await client.list_tools()
    stored = await client.call_tool("memory_store", {"content": "Alice drinks green tea"})
    id = stored.structured_content["id"]
    found = await client.call_tool("memory_search", {"query": "What does Alice drink?"})
    assert [hit["memory"]["id"] for hit in found.structured_content["hits"]] == [id]
    assert "--- BEGIN MEMORY" in text(found)
    assert "green tea" in text(await client.call_tool("memory_brief", {}))
    read = await client.read_resource(f"memory://entries/{id}")
    assert "green tea" in read.model_dump_json()
    given = {"id": id, "content": "Alice drinks black tea"}
    newer = (await client.call_tool("memory_update", given)).structured_content["id"]
    shown = await client.call_tool("memory_forget", {"ids": [newer]})
    token = shown.structured_content["token"]
    done = await client.call_tool("memory_forget", {"ids": [newer], "confirm": token})
    assert done.structured_content["erased"] == 2
    left = await client.call_tool("memory_list", {})
    assert left.structured_content["data"] == []


# -- both transports, both revisions -----------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_sdks_client_lives_with_it_over_stdio(tmp_path, mode):
    async def act():
        async with over_stdio(tmp_path, mode, "--scope", "acme/alice") as client:
            assert client.protocol_version == REVISIONS[mode]
            await lives(client)

    asyncio.run(act())
    with scrubjay.open("acme/alice", home=tmp_path, create=False) as jay:
        assert not len(jay.browse())


@pytest.mark.parametrize("mode", MODES)
def test_the_sdks_client_lives_with_it_over_http(running, mode):
    async def act():
        async with over_http(running, running.key("acme/alice"), mode) as client:
            assert client.protocol_version == REVISIONS[mode]
            await lives(client)

    asyncio.run(act())


def test_the_command_read_only_offers_nothing_that_writes(tmp_path):
    async def act():
        async with over_stdio(tmp_path, "auto", "--read-only") as client:
            tools = (await client.list_tools()).tools
            assert all(one.annotations and one.annotations.read_only_hint for one in tools)
            await client.call_tool("memory_brief", {})

    asyncio.run(act())
    assert not any(tmp_path.iterdir())  # to read makes nothing


# -- whose words, and which key ----------------------------------------------------------------


def test_over_http_an_agent_stores_whatever_key_it_came_by(engine, running):
    key = running.key("acme/alice", actor=Actor.OPERATOR)

    async def act():
        async with over_http(running, key, "auto") as client:
            await client.call_tool("memory_store", {"content": "Alice drinks green tea"})

    asyncio.run(act())
    (stored,) = engine.browse(ALICE)
    assert (stored.origin, stored.provenance.actor) == (Origin.AGENT, Actor.AGENT)
    assert stored.provenance.key_id == running.keys.all()[0].id


def test_a_key_does_only_what_it_grants_and_nothing_once_it_is_revoked(home, running):
    key = running.key("acme/alice", grants=[Grant.READ])

    async def act():
        async with over_http(running, key, "legacy") as client:
            return await client.call_tool("memory_store", {"content": "Alice drinks tea"})

    refused = asyncio.run(act())
    assert refused.is_error
    assert text(refused).startswith("forbidden: This key lacks the grant write")
    running.keys.revoke(running.keys.all()[0].id)
    home.clock.advance(seconds=1)
    headers = {"Authorization": f"Bearer {key}"}
    assert httpx2.post(f"{running.url}/mcp", json={}, headers=headers).status_code == 401


def test_a_key_of_several_scopes_names_one_by_the_header(engine, running):
    key = running.key("acme/alice", "acme/bob")

    async def act():
        headers = {"Authorization": f"Bearer {key}", "X-Scrubjay-Scope": "acme/bob"}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"{running.url}/mcp", http_client=http)
            async with Client(transport) as client:
                await client.call_tool("memory_store", {"content": "Bob drinks coffee"})
        async with over_http(running, key, "auto") as client:
            assert "names no scope" in text(await client.call_tool("memory_brief", {}))

    asyncio.run(act())
    assert Scope("acme", "bob") in engine.scopes()
    assert ALICE not in engine.scopes()


def test_without_a_key_there_is_a_401_that_names_the_metadata_of_the_resource(running):
    answer = httpx2.post(f"{running.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert answer.status_code == 401
    told = answer.headers["WWW-Authenticate"]
    assert f'resource_metadata="{running.url}{METADATA}"' in told
    found = httpx2.get(f"{running.url}{METADATA}").json()
    assert found["resource"] == f"{running.url}/mcp"
    assert found["bearer_methods_supported"] == ["header"]


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}], ids=str
)
def test_a_foreign_host_or_origin_is_refused(running, headers):
    headers = {"Authorization": f"Bearer {running.key('acme/alice')}", **headers}
    answer = httpx2.post(f"{running.url}/mcp", json={}, headers=headers)
    assert answer.status_code == 403


def test_a_token_of_the_issuer_is_a_key_to_its_owners_memory(engine, home):
    with serve_issuer(home.clock) as issuer:
        trust = Trust(issuer=issuer.url, audience=AUDIENCE, scope=Template("acme/{sub}"))
        options = Options(rates=UNLIMITED, trust=trust)
        with serving(engine, home.clock, options, planes=[McpPaths()]) as running:
            found = httpx2.get(f"{running.url}{METADATA}").json()
            assert found["authorization_servers"] == [issuer.url]
            assert "memory:read" in found["scopes_supported"]

            async def act():
                async with over_http(running, issuer.token(sub="alice"), "auto") as client:
                    await client.call_tool("memory_store", {"content": "Alice drinks green tea"})

            asyncio.run(act())
    (stored,) = engine.browse(ALICE)
    assert stored.origin is Origin.AGENT


def test_a_question_before_erasing_may_be_answered_to_another_replica(engine, home):
    """The state that a client carries is sealed with a secret of the installation."""
    from mcp_types import ElicitResult

    engine.open(ALICE)
    options = Options(rates=UNLIMITED)
    with (
        serving(engine, home.clock, options, planes=[McpPaths()]) as one,
        serving(engine, home.clock, options, planes=[McpPaths()]) as other,
    ):
        key = one.key("acme/alice")

        async def agree(context: Any, params: Any) -> ElicitResult:
            replica.url = other.url
            return ElicitResult(action="accept", content={"confirm": True})

        class Replica(httpx2.AsyncBaseTransport):
            url = one.url

            async def handle_async_request(self, request: Any) -> Any:
                port = httpx2.URL(self.url).port
                request.url = request.url.copy_with(port=port)
                request.headers["Host"] = f"127.0.0.1:{port}"
                return await inner.handle_async_request(request)

        inner, replica = httpx2.AsyncHTTPTransport(), Replica()

        async def act():
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx2.AsyncClient(headers=headers, transport=replica) as http:
                transport = streamable_http_client(f"{one.url}/mcp", http_client=http)
                async with Client(transport, elicitation_callback=agree) as client:
                    await client.call_tool("memory_store", {"content": "Alice drinks green tea"})
                    done = await client.call_tool("memory_forget", {"query": "green tea"})
            await inner.aclose()
            return done

        done = asyncio.run(act())
        assert replica.url == other.url
    assert done.structured_content["erased"] == 1


def test_no_stream_stays_open_without_a_call_so_that_the_service_can_end_at_once(running):
    headers = {"Authorization": f"Bearer {running.key('acme/alice')}"}
    assert httpx2.get(f"{running.url}/mcp", headers=headers).status_code == 405
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISIONS["auto"],
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    headers |= {
        "MCP-Protocol-Version": REVISIONS["auto"],
        "Mcp-Method": "subscriptions/listen",
        "Accept": "application/json, text/event-stream",
    }
    answer = httpx2.post(f"{running.url}/mcp", json=message, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


# -- many servers on one home ------------------------------------------------------------------


def _write(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()


def test_of_many_servers_on_one_home_killed_at_random_nothing_is_lost_and_none_stays(
    tmp_path, seed, more
):
    """Every memory that was acknowledged is there; a server whose client is gone ends by itself."""
    chance = random.Random(seed)
    env = {**os.environ, "SCRUBJAY_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "scrubjay", "mcp"]
    pipe = subprocess.PIPE
    servers = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env)
        for _ in range(20 if more else 4)
    ]
    told = list[str]()
    try:
        for number, server in enumerate(servers):
            hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}
            hello["clientInfo"] = {"name": "test", "version": "0"}
            _write(server, {"id": 0, "method": "initialize", "params": hello})
            _write(server, {"method": "notifications/initialized"})
            for at in range(1, 9):
                given = {"content": f"Server {number} saw the number {at}"}
                params = {"name": "memory_store", "arguments": given}
                _write(server, {"id": at, "method": "tools/call", "params": params})
        for server in chance.sample(servers, len(servers)):
            assert server.stdout is not None
            seen = chance.randrange(0, 9)  # how many answers its client still sees
            while seen >= 0 and (line := server.stdout.readline()):
                answer = json.loads(line)
                if "result" in answer and answer["id"]:
                    told.append(answer["result"]["structuredContent"]["id"])
                seen -= 1
            if chance.random() < 0.5:
                server.kill()
            else:  # its client is gone
                assert server.stdin is not None
                server.stdin.close()
                server.stdout.close()
        ended = [server.wait(timeout=60) for server in servers]
    finally:
        for server in servers:
            if server.poll() is None:
                server.send_signal(signal.SIGKILL)
            server.wait()
            for one in (server.stdin, server.stdout):
                with suppress(OSError):
                    one.close()  # type: ignore[union-attr]
    assert len(ended) == len(servers)
    with scrubjay.open(home=tmp_path, create=False) as jay:
        kept = {memory.id for memory in jay.browse(limit=1000)}
        assert jay.verify().sound
    assert told
    assert set(told) <= kept


# -- lines that are no messages ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"x": "\\ud83d"}}', 7),
        (b'{"jsonrpc": "2.0", "id": "q", "method": "ping", "params": [1]}', "q"),
        (b'{"jsonrpc": "2.0", "id": "\\ud83d", "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping"', None),
        (b"\xff\xfe", None),
        (b"[1, 2]", None),
        (b"[" * 100_000, None),
    ],
    ids=["half an emoji", "wrong params", "half an id", "cut off", "no text", "a list", "deep"],
)
def test_a_line_that_is_no_message_is_answered_and_ends_nothing(tmp_path, line, id):
    env = {**os.environ, "SCRUBJAY_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "scrubjay", "mcp"]
    with processes.running(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        hello = {
            "protocolVersion": REVISIONS["legacy"],
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        _write(server, {"id": 1, "method": "initialize", "params": hello})
        assert json.loads(server.stdout.readline())["id"] == 1
        _write(server, {"method": "notifications/initialized"})
        server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/x", "params": 3}\n')
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 3, "result": "\\ud83d"}\n')
        server.stdin.write(line + b"\n")
        server.stdin.flush()
        _write(server, {"id": 2, "method": "ping"})
        answers = [json.loads(server.stdout.readline())]
        while answers[-1]["id"] != 2:
            answers.append(json.loads(server.stdout.readline()))
        assert [(one["id"], one["error"]["code"]) for one in answers[:-1]] == [(id, -32700)]
        server.stdin.close()
        assert server.wait() == 0


# -- sessions of the older revision ------------------------------------------------------------


def opening(running: Running, key: str, **capabilities: Any) -> httpx2.Response:
    """Begin a session by hand."""
    hello = {
        "protocolVersion": REVISIONS["legacy"],
        "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    return httpx2.post(f"{running.url}/mcp", json=message, headers=headed(key))


def headed(key: str, session: str | None = None) -> dict[str, str]:
    named = {} if session is None else {"Mcp-Session-Id": session}
    return {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        **named,
    }


def alive(running: Running, key: str, session: str) -> bool:
    message = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    found = httpx2.post(f"{running.url}/mcp", json=message, headers=headed(key, session))
    return found.status_code == 200


def test_a_key_that_opens_many_sessions_ends_its_own_and_nobody_elses(running, monkeypatch):
    monkeypatch.setattr("scrubjay.surfaces.mcp.transport.SESSIONS", 6)
    monkeypatch.setattr("scrubjay.surfaces.mcp.transport.SESSIONS_OF_A_KEY", 3)
    mine, theirs = running.key("acme/alice"), running.key("acme/bob")
    other = opening(running, theirs).headers["mcp-session-id"]
    first = opening(running, mine).headers["mcp-session-id"]
    opened = []
    for _ in range(10):
        opened.append(opening(running, mine).headers["mcp-session-id"])
        assert alive(running, mine, first)  # one that is used is not the idlest
    assert alive(running, theirs, other)
    assert [alive(running, mine, one) for one in opened] == [False] * 8 + [True] * 2
    assert opening(running, theirs).status_code == 200


def test_many_keys_together_lock_nobody_out(running, monkeypatch):
    """As many persons of an issuer could: each of them stays below what a key may have."""
    monkeypatch.setattr("scrubjay.surfaces.mcp.transport.SESSIONS", 6)
    monkeypatch.setattr("scrubjay.surfaces.mcp.transport.SESSIONS_OF_A_KEY", 3)
    crowd = [running.key(f"acme/many{number}") for number in range(3)]
    for key in crowd:
        assert [opening(running, key).status_code for _ in range(3)] == [200] * 3
    alice, bob = running.key("acme/alice"), running.key("acme/bob")
    hers = opening(running, alice).headers["mcp-session-id"]
    for key in (bob, *crowd, *crowd):
        assert opening(running, key).status_code == 200
        assert alive(running, alice, hers)  # who has most gives way


def test_opening_sessions_has_the_rate_of_writes(engine, home):
    options = Options(rates=Rates(reads=0, writes=1, heavy=0, burst_seconds=3))
    with serving(engine, home.clock, options, planes=[McpPaths()]) as running:
        key = running.key("acme/alice")
        statuses = [opening(running, key).status_code for _ in range(5)]
        assert statuses.count(429) >= 1
        assert statuses[:3] == [200] * 3
        assert opening(running, running.key("acme/bob")).status_code == 200


# -- messages that stay open -------------------------------------------------------------------


def forgetting(running: Running, key: str, session: str, padding: int = 0) -> httpx2.Response:
    """Ask to forget what is about tea, in a session whose client puts questions to a person."""
    call = {"name": "memory_forget", "arguments": {"query": "tea"}, "_meta": {"p": "x" * padding}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    headers = headed(key, session)
    return httpx2.post(f"{running.url}/mcp", json=message, headers=headers, timeout=60)


def test_a_question_that_nobody_answers_is_given_up_and_nothing_is_erased(
    engine, running, monkeypatch
):
    monkeypatch.setattr("scrubjay.surfaces.mcp.server.ANSWER_SECONDS", 0.2)
    told = engine.retain(ALICE, Retain("Alice drinks green tea")).id
    key = running.key("acme/alice")
    session = opening(running, key, elicitation={}).headers["mcp-session-id"]
    answered = forgetting(running, key, session).text
    assert "elicitation/create" in answered
    assert "The user did not agree. Nothing was erased." in answered
    assert [one.id for one in engine.browse(ALICE)] == [told]


def test_a_message_that_stays_open_takes_no_room_from_others_for_ever(engine, home, monkeypatch):
    """The room of all bodies is that of every tenant."""
    monkeypatch.setattr("scrubjay.service.service.TOGETHER_BYTES", 6_000)
    monkeypatch.setattr("scrubjay.surfaces.mcp.routes.ANSWER_SECONDS", 3.0)
    engine.retain(ALICE, Retain("Alice drinks green tea"))
    engine.retain(Scope("acme", "bob"), Retain("Bob drinks green tea"))
    with (
        serving(engine, home.clock, Options(rates=UNLIMITED), planes=[McpPaths()]) as running,
        ThreadPoolExecutor() as threads,
    ):
        keys = running.key("acme/alice"), running.key("acme/bob")
        alice, bob = (
            opening(running, key, elicitation={}).headers["mcp-session-id"] for key in keys
        )
        begun = Event()

        def asking(_: object) -> str:
            begun.set()
            return "Really?"

        monkeypatch.setattr("scrubjay.surfaces.mcp.server._told", asking)
        open_ = threads.submit(forgetting, running, keys[0], alice, 5_000)
        assert begun.wait(30)
        assert forgetting(running, keys[1], bob, 5_000).status_code == 503
        with pytest.raises(httpx2.RemoteProtocolError):  # its stream was cut off
            open_.result()
        begun.clear()
        again = threads.submit(forgetting, running, keys[1], bob, 5_000)
        assert begun.wait(30)
        with pytest.raises(httpx2.RemoteProtocolError):
            again.result()


def test_a_client_that_is_gone_ends_the_server_without_a_traceback(tmp_path):
    env = {**os.environ, "SCRUBJAY_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "scrubjay", "mcp"]
    pipe = subprocess.PIPE
    with processes.running(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        with suppress(BrokenPipeError):
            for number in range(3):
                _write(server, {"id": number, "method": "ping"})
            server.stdin.close()
        assert server.stderr.read() == b""
        assert server.wait() == 0


def test_calls_that_are_open_when_stdin_ends_are_answered(tmp_path):
    env = {**os.environ, "SCRUBJAY_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "scrubjay", "mcp"]
    pipe = subprocess.PIPE
    hello = {
        "protocolVersion": REVISIONS["legacy"],
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    with processes.running(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        _write(server, {"id": "hello", "method": "initialize", "params": hello})
        _write(server, {"method": "notifications/initialized"})
        for number in range(8):
            given = {"content": f"Alice saw the number {number}", "key": f"k{number}"}
            params = {"name": "memory_store", "arguments": given}
            _write(server, {"id": number, "method": "tools/call", "params": params})
        assert server.stdin is not None
        server.stdin.close()
        answers = {one["id"]: one for one in map(json.loads, server.stdout)}
        assert server.stderr.read() == b""
        assert server.wait() == 0
    assert answers.keys() == {"hello", *range(8)}
    told = {
        one["result"]["structuredContent"]["id"] for name, one in answers.items() if name != "hello"
    }
    with scrubjay.open(home=tmp_path, create=False) as jay:
        assert told == {memory.id for memory in jay.browse()}


def test_a_call_that_waits_for_a_client_that_closed_stdin_holds_up_nothing(tmp_path):
    with scrubjay.open(home=tmp_path) as jay:
        jay.retain("Alice drinks green tea")
    env = {**os.environ, "SCRUBJAY_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "scrubjay", "mcp"]
    pipe = subprocess.PIPE
    hello = {
        "protocolVersion": REVISIONS["legacy"],
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"},
    }
    with processes.running(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        _write(server, {"id": 0, "method": "initialize", "params": hello})
        _write(server, {"method": "notifications/initialized"})
        params = {"name": "memory_forget", "arguments": {"query": "green tea"}}
        _write(server, {"id": 1, "method": "tools/call", "params": params})
        assert json.loads(server.stdout.readline())["id"] == 0
        assert json.loads(server.stdout.readline())["method"] == "elicitation/create"
        server.stdin.close()
        assert not [one for one in map(json.loads, server.stdout) if "result" in one]
        assert server.stderr.read() == b""
        assert server.wait() == 0
    with scrubjay.open(home=tmp_path, create=False) as jay:
        assert jay.count() == 1
