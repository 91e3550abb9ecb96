"""The conformance suite on the product, and on the same server with the suite's fixtures."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from scrubjay.engine import Kernel
from scrubjay.model.scope import Scope
from scrubjay.service.service import UNLIMITED, Options
from scrubjay.surfaces.mcp.routes import McpPaths
from tests.clients.conformance import fixtures
from tests.serving import serving
from tests.support.engines import MemoryHome

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
REVISIONS = ("2025-11-25", "2026-07-28")
FREE = {
    "2025-11-25": (
        "server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error",
        "server-sse-multiple-streams", "resources-list", "prompts-list",
        "dns-rebinding-protection", "server-session-lifecycle",
    ),
    "2026-07-28": (
        "tools-list", "tools-call-simple-text", "tools-call-error", "server-sse-multiple-streams",
        "resources-list", "sep-2164-resource-not-found", "prompts-list",
        "dns-rebinding-protection", "caching", "http-header-validation",
        "input-required-result-missing-input-response",
        "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params", "input-required-result-validate-input",
    ),
}  # fmt: skip
"""The scenarios that need no fixture."""
NOT_SCORED = {
    "2025-11-25": {
        "json-schema-2020-12": "a fixture tool of fixed schema; pending in the suite itself",
        "server-sse-polling": "streams that are closed early on purpose; the service keeps them",
    },
    "2026-07-28": {
        "json-schema-2020-12": "a fixture tool of fixed schema; pending in the suite itself",
        "http-custom-header-server-validation": "no tool has arguments in headers; pending",
        **{
            f"tasks-{name}": "tasks are an extension that is not offered"
            for name in (
                "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal",
                "mrtr-input", "request-headers", "dispatch-and-envelope", "required-task-error",
                "mrtr-composition",
            )
        },
    },
}  # fmt: skip
"""Scenarios that the suite runs and does not score, and that fail; each with its reason."""
_LINE = re.compile(r"^([✓✗]) ([a-z0-9-]+): (\d+) passed, (\d+) failed", re.MULTILINE)


class Suite:
    """The suite, and the server it is run on."""

    def __init__(self, url: str, home: Path, out: Path) -> None:
        self._command: list[str | Path] = [
            home.parent / "node/bin/node",
            home / "node_modules/.bin/conformance",
            "server", "--url", url, "-o", out,
        ]  # fmt: skip

    def run(self, *options: str) -> dict[str, tuple[bool, str]]:
        """Whether each scenario passed, and its line."""
        done = subprocess.run(
            [*self._command, *options], capture_output=True, text=True, check=False, timeout=300
        )
        summary = done.stdout.partition("=== SUMMARY ===")[2] or done.stdout
        found = {one[2]: (one[1] == "✓", one[0]) for one in _LINE.finditer(summary)}
        assert found, done.stdout + done.stderr
        return found


@pytest.fixture
def product(engine: Kernel, home: MemoryHome, client_home: Path, tmp_path: Path) -> Iterator[Suite]:
    """The product, without anything of the suite's."""
    with _serving(engine, home, McpPaths()) as url:
        yield Suite(url, client_home, tmp_path)


def _serving(engine: Kernel, home: MemoryHome, paths: McpPaths):
    from contextlib import contextmanager

    @contextmanager
    def run() -> Iterator[str]:
        options = Options(rates=UNLIMITED, no_auth=True, scope=Scope("acme", "alice"))
        with serving(engine, home.clock, options, planes=[paths]) as running:
            httpx2.post(f"{running.url}/mcp", json={}, timeout=30)  # loads the SDK
            yield f"{running.url}/mcp"

    return run()


@pytest.fixture
def dressed(engine: Kernel, home: MemoryHome, client_home: Path, tmp_path: Path) -> Iterator[Suite]:
    """The same server with the fixtures of the suite."""
    paths = McpPaths()
    with _serving(engine, home, paths) as url:
        assert paths.transport is not None
        fixtures.register(paths.transport.server)
        yield Suite(url, client_home, tmp_path)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_product_passes_every_scenario_that_needs_no_fixture(product, revision):
    found = product.run("--requirements", revision)
    assert set(FREE[revision]) <= found.keys()
    assert not [found[name][1] for name in FREE[revision] if not found[name][0]]


@pytest.mark.parametrize("revision", REVISIONS)
def test_with_the_fixtures_every_scored_scenario_of_the_revision_passes(
    dressed, revision, record_property
):
    found = dressed.run("--requirements", revision)
    failed = {name: line for name, (passed, line) in found.items() if not passed}
    record_property("scenarios", len(found))
    record_property("failed, not scored", len(failed))
    assert not {name: line for name, line in failed.items() if name not in NOT_SCORED[revision]}
    # A reason that is no longer needed is taken off the list.
    assert failed.keys() == NOT_SCORED[revision].keys()
