"""Claude Code with our MCP server, offline, against a model that is scripted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import scrubjay
from scrubjay.model.origin import Actor, Origin
from tests.support.model_server import Call, ModelServer, serve_model

STORE, SEARCH = "mcp__memory__memory_store", "mcp__memory__memory_search"


def converse(program: Path, folder: Path, model: ModelServer, *calls: Call) -> list[dict[str, Any]]:
    """The requests that its model was sent while it made these calls."""
    left = list(calls)

    def act(asked: dict[str, Any]) -> Call | str:
        offered = {tool.get("name") for tool in asked.get("tools", ())}
        return left.pop(0) if left and left[0].name in offered else "Done."

    model.acts = act
    work = folder / "work"
    work.mkdir()
    command = str(Path(sys.executable).with_name("scrubjay"))
    server = {
        "command": command, "args": ["mcp"], "alwaysLoad": True,
        "env": {"SCRUBJAY_HOME": str(folder / "memory")},
    }  # fmt: skip
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"memory": server}}))
    env = {
        "HOME": str(folder), "PATH": os.environ["PATH"],
        "ANTHROPIC_BASE_URL": model.anthropic_url, "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    }  # fmt: skip
    done = subprocess.run(
        [
            program, "-p", "What do you know about Alice?", "--mcp-config", ".mcp.json",
            "--strict-mcp-config", "--allowedTools", f"{STORE},{SEARCH}",
        ],
        cwd=work, env=env, capture_output=True, text=True, check=False, timeout=240,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not left, "the model was not offered the tools"
    return model.requests


def test_its_model_is_offered_our_tools_and_is_given_their_results(client_home, tmp_path):
    (program,) = client_home.glob("node_modules/@anthropic-ai/claude-code-*/claude")
    calls = (
        Call(STORE, {"content": "Alice drinks green tea", "key": "tea"}),
        Call(SEARCH, {"query": "What does Alice drink?"}),
    )
    with serve_model() as model:
        requests = converse(program, tmp_path, model, *calls)
    offered = {tool.get("name") for tool in requests[-1]["tools"]}
    assert {STORE, SEARCH, "mcp__memory__memory_brief"} <= offered
    results = [
        part["content"]
        for message in requests[-1]["messages"]
        for part in message["content"]
        if isinstance(part, dict) and part["type"] == "tool_result"
    ]
    assert '"outcome":"stored"' in str(results[0])
    assert "Alice drinks green tea" in str(results[1])
    with scrubjay.open(home=tmp_path / "memory", create=False) as jay:
        (stored,) = jay.browse()
    assert (stored.content, stored.origin) == ("Alice drinks green tea", Origin.AGENT)
    assert stored.provenance.actor is Actor.AGENT
