"""Doors beside the verbs: with an administrator's key, or on a memory that its owner locked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import force_setattr

from scrubjay.cli import app as commands
from scrubjay.cli.parser import COMMANDS, Option
from scrubjay.engine import Policy
from scrubjay.service.service import MountedPaths
from scrubjay.surfaces.clawdapus.descriptor import PlaneOffer
from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane
from scrubjay.surfaces.mcp.routes import McpPaths
from scrubjay.surfaces.personal.library import PersonalMemory
from scrubjay.vault import Cost
from tests.dialects.personal.conftest import Key, Person
from tests.serving import serving
from tests.support.engines import MemoryHome, SqliteHome
from tests.unit.cli.conftest import CommandLine

NEEDLE = "zanzibar"
SCOPE = "acme/alice"
WORDS = "three jays in one oak"
STAYS = {"serve", "mcp", "plane serve", "carapace serve", "chat", "follow"}
"""Commands that go on until they are ended: what they serve is asked over HTTP."""
for _theme in commands.THEMES:
    _theme.load()


# -- over HTTP: MCP, the plane, and what answers without a key -------------------------------------


@pytest.fixture
def alice() -> Iterator[Person]:
    """A person behind a service with MCP and a plane."""
    home = MemoryHome("every door")
    engine = home.engine()
    planes: list[MountedPaths] = [ClawdapusPlane(PlaneOffer(token="t" * 32)), McpPaths()]
    with serving(engine, home.clock, planes=planes) as running:
        person = Person(running, engine, home)
        memory = {"content": f"Alice drinks {NEEDLE} tea", "tags": [NEEDLE], "session": NEEDLE}
        assert person.agent.send("/v1/memories", memory).status_code == 201
        yield person
    engine.close()


def asked(key: Key, method: str, **params: Any) -> Any:
    """An answer of MCP, in the revision that has no sessions."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "walk", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}
    headers = key.headers | {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Mcp-Name": str(params.get("name") or params.get("uri") or ""),
    }
    return httpx2.post(f"{key.url}/mcp", json=message, headers=headers, timeout=60)


def filled(schema: Any) -> Any:
    """A value that a schema allows, so that a tool is really run."""
    if "const" in schema or schema.get("enum"):
        return schema.get("const", (schema.get("enum") or [""])[0])
    match schema.get("type"):
        case "object":
            named = schema.get("properties", {})
            return {name: filled(named[name]) for name in schema.get("required", ())}
        case "array":
            return [filled(schema["items"])]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
    return NEEDLE


def test_mcp_shows_an_administrator_nothing_of_what_is_remembered(alice: Person) -> None:
    tools = asked(alice.agent, "tools/list").json()["result"]["tools"]
    assert len(tools) >= 3
    shown = ""
    for key in (alice.agent, alice.admin):
        for tool in tools:
            arguments = filled(tool["inputSchema"])
            answer = asked(key, "tools/call", name=tool["name"], arguments=arguments)
            if key is alice.agent:
                shown += answer.text
            else:
                assert f"{NEEDLE} tea" not in answer.text, tool["name"]
        for method in ("resources/list", "resources/templates/list", "prompts/list"):
            assert NEEDLE not in asked(alice.admin, method).text
    assert f"{NEEDLE} tea" in shown, "the agent's key shows it: the walk can fail"


@pytest.mark.parametrize(
    "path",
    ["/recall", "/retain", "/forget", "/metrics", "/health", "/healthz", "/readyz", "/openapi.json",
     "/.claw-describe.json", "/.well-known/oauth-protected-resource/mcp", "/"],
)  # fmt: skip
def test_no_other_path_shows_an_administrator_anything(alice: Person, path: str) -> None:
    for body in (None, {"agent_id": alice.scope, "messages": [{"role": "user", "content": "tea"}]}):
        method = "GET" if body is None else "POST"
        assert NEEDLE not in alice.admin.send(path, body, method=method).text


# -- every command, where the owner has locked the memory ------------------------------------------


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a memory that its owner holds, and locked by ending the process."""
    folder = tmp_path_factory.mktemp("locked") / "home"
    engine = SqliteHome(folder).engine()
    cheap = Cost(memory_kib=64, passes=1, lanes=1)
    force_setattr(engine._ports.policy, "passphrase_cost", cheap)
    assert isinstance(engine._ports.policy, Policy)
    with PersonalMemory(SCOPE, engine=engine) as me:
        made = me.store(
            category="preference", content_type="preference", content=f"Alice drinks {NEEDLE} tea",
            topic_tags=[NEEDLE], session_id=NEEDLE,
        )  # fmt: skip
        me.hold(passphrase=WORDS)
    engine.close()
    (folder.parent / "id").write_text(made.memory_id)
    return folder


def _words(option: Option, folder: Path, id: str) -> list[str]:
    """Words for an option, or for an argument."""
    kinds = getattr(option.type, "__members__", None)
    value = next(iter(kinds)).lower() if kinds else id if "ID" in option.flags else "tea"
    if option.type is Path:
        path = folder / ("folder" if "DIR" in option.flags else f"{option.name or 'file'}.json")
        path.write_text("{}") if path.suffix else path.mkdir(exist_ok=True)
        value = str(path)
    return [value] if option.positional else [option.flags.split()[0], value]


def test_no_command_shows_anybody_what_is_locked(
    locked: Path, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each on a copy of the home, with what it needs; as root, that is with every file there is."""
    id = (locked.parent / "id").read_text()
    ran = set[int]()
    monkeypatch.chdir(tmp_path)
    for name, command in COMMANDS.items():
        if name in STAYS:
            continue
        shutil.rmtree(cli.home, ignore_errors=True)
        shutil.copytree(locked, cli.home)
        needed = [one for one in command.options if one.required or one.positional]
        words = [word for one in needed for word in _words(one, tmp_path, id)]
        known = {flag for one in command.options for flag in one.names}
        for flag, value in (("--scope", SCOPE), ("--yes", ""), ("--json", "")):
            words += [word for word in (flag, value) if word] if flag in known else []
        done = cli(*name.split(), *words, stdin="yes\n" * 3)
        assert "Traceback" not in done.err, (name, done.err)
        assert NEEDLE not in done.out + done.err, name
        ran.add(done.code)
    left = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert not [one for one in left if NEEDLE.encode() in one.read_bytes()]
    assert 0 in ran
    monkeypatch.setenv("SCRUBJAY_USER_PASSPHRASE", WORDS)
    shutil.copytree(locked, cli.home, dirs_exist_ok=True)
    assert NEEDLE in cli.good("recall", "tea", "--scope", SCOPE).out, "unlocked it is shown"
