"""The MCP Inspector's command line, a client in TypeScript, over HTTP and over stdio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrubjay.engine import Kernel
from scrubjay.model.requests import Retain
from scrubjay.model.scope import Scope
from scrubjay.service.service import UNLIMITED, Options
from scrubjay.surfaces.mcp.routes import McpPaths
from scrubjay.surfaces.mcp.tools import TOOLS
from tests.serving import serving
from tests.support.engines import MemoryHome


class Inspector:
    """The program, on one server."""

    def __init__(self, folder: Path, *server: str) -> None:
        node = folder.parent / "node/bin/node"
        program = folder / "node_modules/.bin/mcp-inspector"
        self._command = [str(node), str(program), "--cli", *server]
        self._env = {**os.environ, "PATH": f"{node.parent}:{os.environ['PATH']}"}

    def ask(self, method: str, *options: str) -> dict[str, Any]:
        """The result of a method."""
        # Its own fifteen seconds are about a quiet machine.
        command = [*self._command, "--connect-timeout", "60000", "--method", method, *options]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, env=self._env
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def call(self, tool: str, **arguments: str) -> dict[str, Any]:
        """The result of a tool."""
        given = [
            word for name, one in arguments.items() for word in ("--tool-arg", f"{name}={one}")
        ]
        return self.ask("tools/call", "--tool-name", tool, *given)


def check(inspector: Inspector) -> None:
    """Lists and calls what the server has."""
    assert {tool["name"] for tool in inspector.ask("tools/list")["tools"]} == TOOLS.keys()
    stored = inspector.call("memory_store", content="Alice drinks green tea")
    assert stored["structuredContent"]["outcome"] == "stored"
    found = inspector.call("memory_search", query="What does Alice drink?", limit="3")
    assert "green tea" in found["content"][0]["text"]
    read = inspector.ask("resources/read", "--uri", "memory://brief")
    assert "green tea" in read["contents"][0]["text"]
    prompt = inspector.ask("prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=tea")
    assert "green tea" in prompt["messages"][0]["content"]["text"]


def test_the_inspector_lists_and_calls_over_http(engine: Kernel, home: MemoryHome, client_home):
    engine.retain(Scope("acme", "alice"), Retain("Alice lives in Rome"))
    with serving(engine, home.clock, Options(rates=UNLIMITED), planes=[McpPaths()]) as running:
        header = f"Authorization: Bearer {running.key('acme/alice')}"
        server = (f"{running.url}/mcp", "--transport", "http", "--header", header)
        check(Inspector(client_home, *server))


@pytest.mark.parametrize("scope", ["acme/alice"])
def test_the_inspector_lists_and_calls_over_stdio(client_home, tmp_path, monkeypatch, scope):
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path))
    command = Path(sys.executable).with_name("scrubjay")
    check(Inspector(client_home, "-e", f"SCRUBJAY_HOME={tmp_path}", str(command), "mcp"))
