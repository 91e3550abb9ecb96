"""`scrubjay mcp`: the tools of the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

from importlib.util import find_spec

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.cli.home import installed, scope_of
from scrubjay.cli.parser import SCOPE, Option, command
from scrubjay.model.errors import InvalidRequest


@command(
    "mcp",
    SCOPE,
    Option("--read-only", "Offer only the tools that read."),
)
def mcp(*, scope: str | None = None, read_only: bool = False) -> None:
    """Serve memory to an agent as MCP tools, over stdin and stdout.

    The agent's client starts it; docs/mcp.md says what to paste into which client.

    Example: scrubjay mcp --scope acme/alice
    """
    if not all(map(find_spec, ("mcp", "mcp_types"))):
        raise InvalidRequest(
            "The MCP server is not installed.", hint="pip install 'scrubjay[mcp]' brings it."
        )
    from scrubjay.surfaces.mcp.local import serve

    bootstrap.forbid_core_dumps()
    found = reading.read()
    with installed(found, create=True) as engine:
        serve(engine, bootstrap.clock(), scope_of(scope, found), read_only=read_only)
