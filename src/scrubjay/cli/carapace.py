"""Commands for Carapace: tool, and carapace serve, files, import, audit."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scrubjay import bootstrap, codec, files
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import opened, settings, text_of
from scrubjay.cli.parser import DRY_RUN, JSON, Option, command
from scrubjay.cli.render import Output
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.memory import Json
from scrubjay.surfaces.carapace import call_audit, manifest, wire
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.memory import Config, ScrubjayMemory
from scrubjay.surfaces.carapace.pipeline import Rules
from scrubjay.surfaces.carapace.server import SCHEME, SOCKET, Directory, LineServer, Server
from scrubjay.surfaces.carapace.wire import DEFAULT_GROUP, AgentSession, scope_of

_GROUP = Option(
    "--group -g", "Group whose memory is used.", str, metavar="GROUP", default=DEFAULT_GROUP
)
_CONFIG = Option("--config", "Configuration file of the plugin, JSON.", Path)


@contextmanager
def _hosted(
    config: Path | None, rules: Rules | None = None
) -> Iterator[tuple[Host, ScrubjayMemory]]:
    chosen = Config()
    if config is not None:
        try:
            given = wire.parse(files.read(config))
        except ValueError as error:
            raise InvalidRequest(f"{config} is not JSON.") from error
        if not isinstance(given, dict):
            raise InvalidRequest(f"{config} is not a JSON object.")
        chosen = Config.read(given)
    memory = ScrubjayMemory.open(chosen, settings())
    try:
        record = call_audit.AuditRecorder(memory.engine)
        yield Host([memory], bootstrap.clock(), record=record, rules=rules), memory
    finally:
        memory.shutdown()


# -- one call ------------------------------------------------------------------------------------


@command(
    "tool",
    Option("NAME", "Name of the tool, such as memory_search.", str),
    Option("ARGUMENTS", "Arguments as a JSON object; - reads them from stdin.", str),
    _GROUP,
    Option("--session", "Session whose limits apply; a new one by default.", str, metavar="NAME"),
    _CONFIG,
)
def tool(
    name: str = "",
    arguments: str = "",
    *,
    group: str = DEFAULT_GROUP,
    session: str | None = None,
    config: Path | None = None,
) -> int:
    """Call a memory tool as Carapace's ipc does: JSON on stdout, or on stderr with exit code 1.

    Example: scrubjay tool memory_store '{"type": "fact", "content": "The dog is called Luna"}'
    """
    code = "CLI_ERROR"
    try:
        given = _arguments(name, arguments)
        code = "IPC_ERROR"
        named = name.removeprefix(manifest.TOPIC)
        with _hosted(config) as (host, _):
            clock = bootstrap.clock()
            if named == manifest.BRIEF_HOOK:
                # A session begins with its brief. To purge at every call would cost more.
                host.start([group])
            caller = AgentSession(id=session or f"sess-{clock.new_id()}", group=group)
            reply: Any = host.pipeline.invoke(named, given, caller)
    except ScrubjayError as error:
        message_text = error.message if code == "CLI_ERROR" else f"{error.message} {error.hint}"
        reply = {"ok": False}
        reply["error"] = {"code": code, "message": message_text, "retriable": False}
    if not reply["ok"]:
        sys.stderr.write(wire.encode(reply["error"]) + "\n")
        return Exit.FAILURE
    render.line(wire.encode(reply["result"]))
    return Exit.OK


def _arguments(name: str, text: str) -> dict[str, Json]:
    if not name or not text:
        raise InvalidRequest("Usage: scrubjay tool NAME ARGUMENTS, the arguments as a JSON object.")
    try:
        given = wire.parse(text_of(text))
    except ValueError as error:
        raise InvalidRequest("The arguments are not valid JSON.") from error
    if not isinstance(given, dict):
        raise InvalidRequest("The arguments must be a JSON object, not a list, a text or null.")
    return given


# -- the socket ----------------------------------------------------------------------------------


@command(
    "carapace serve",
    Option(
        "--socket", "Socket of the ipc client; unix://PATH for that of handler.js.", str,
        metavar="ADDRESS", default=SOCKET,
    ),
    _GROUP,
    Option(
        "--session", "Identity of a connection and its group; only those named are served.", str,
        metavar="IDENTITY=GROUP", many=True,
    ),
    Option("--calls-per-minute", "Rate limit: calls per minute and session.", int, least=1),
    Option(
        "--idle-seconds", "With unix://: seconds without a connection to end after.", int, least=1,
    ),
    _CONFIG,
)  # fmt: skip
def serve(
    *,
    socket: str = SOCKET,
    group: str = DEFAULT_GROUP,
    session: Sequence[str] = (),
    calls_per_minute: int | None = None,
    idle_seconds: int | None = None,
    config: Path | None = None,
) -> None:
    """Serve Carapace until it is interrupted: its ipc client over ZeroMQ, or handler.js.

    Example: scrubjay carapace serve --socket ipc:///run/carapace.sock --group main
    """
    groups = {}
    for pair in session:
        identity, equals, named = pair.rpartition("=")
        if not equals or not identity:
            raise InvalidRequest("A session is written IDENTITY=GROUP.")
        groups[identity] = named
    directory = Directory(group=group, groups=groups)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EventFormatter())
    logger = logging.getLogger("scrubjay")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    with _hosted(config, Rules(calls_per_minute=calls_per_minute)) as (host, _):
        bootstrap.forbid_core_dumps()
        server: Server | LineServer
        if socket.startswith(SCHEME):  # the core names session and group
            server = LineServer(host, socket, bootstrap.clock(), idle_seconds=idle_seconds)
        else:
            server = Server(host, socket, bootstrap.clock(), directory)
        try:
            host.start(sorted(directory.served()))
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: server.stop())
            render.line(f"Serving {', '.join(sorted(directory.served()))} on {socket}.")
            sys.stdout.flush()
            server.run()
        finally:
            server.close()


class EventFormatter(logging.Formatter):
    """Log line: the event, and its fields by name."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of an event."""
        usual = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
        named = [f"{key}={value}" for key, value in vars(record).items() if key not in usual]
        return render.piece(" ".join([record.levelname.lower(), record.getMessage(), *named]), 500)


# -- setting up ----------------------------------------------------------------------------------


@command(
    "carapace files",
    Option("DIR", "Folder of the plugin.", Path, required=True),
    Option("--with-brief-hook", "Claim the hook memory_brief, for a core that knows hooks.", bool),
)
def write_files(dir: Path, *, with_brief_hook: bool = False) -> None:
    """Write the plugin as Carapace loads it: manifest.json, handler.js and the skill text.

    Example: scrubjay carapace files plugins/memory
    """
    for path in manifest.write(dir, brief_hook=with_brief_hook):
        render.line(str(path))


@command(
    "carapace import",
    Option("FILE", "Database of a group.", Path, required=True),
    Option("--group -g", "Group to import into.", str, metavar="GROUP", default="the one it names"),
    DRY_RUN,
    JSON,
)
def load(file: Path, *, group: str | None = None, dry_run: bool = False) -> Output:
    """Import a Carapace database: every entry with its versions and provenance.

    Example: scrubjay carapace import data/memory/main.sqlite
    """
    from scrubjay.surfaces.imports import carapace as reader

    found = reader.read(file)
    if group is None and len(found.groups) != 1:
        raise InvalidRequest(
            "The database does not say which one group it is of.", hint="Name it with --group."
        )
    chosen = group or found.groups[0]
    scope = scope_of(chosen)
    told: dict[str, Any] = {"group": chosen, "entries": len(found.memories)}
    if not dry_run:
        with opened(str(scope), create=True) as jay:
            loaded = jay.load(found.document(scope, bootstrap.clock().now()))
        told |= {"added": loaded.loaded, "known": loaded.known, "forgotten": loaded.forgotten}
    notes = [f"Left out {sentence}" for sentence in found.skipped]
    return Output(told | {"skipped": found.skipped}, lambda: render.facts(told), notes)


# -- looking after it ----------------------------------------------------------------------------


@command("carapace audit", _GROUP)
def audit(*, group: str = DEFAULT_GROUP) -> None:
    """Print the audit trail of a group, one JSON object per line; sessions are pseudonyms.

    Example: scrubjay carapace audit --group main
    """
    with _hosted(None) as (_, memory):
        memory.engine.open(scope_of(group), create=False)
        for line in call_audit.lines(memory.engine, group):
            render.line(codec.to_json(line).decode())
