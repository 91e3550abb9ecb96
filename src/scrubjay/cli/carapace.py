"""tool, and carapace serve, files, import, audit, taint: the doors for Carapace."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from scrubjay import bootstrap, files
from scrubjay.cli import opening, options, render
from scrubjay.cli.exits import Exit
from scrubjay.model.errors import InvalidRequest, ScrubjayError
from scrubjay.model.memory import Json
from scrubjay.model.origin import Origin
from scrubjay.surfaces.carapace import manifest, records, wire
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.memory import Config, ScrubjayMemory
from scrubjay.surfaces.carapace.pipeline import Rules
from scrubjay.surfaces.carapace.server import SOCKET, Directory, Server
from scrubjay.surfaces.carapace.wire import DEFAULT_GROUP, AgentSession, Wire, scope_of

_USAGE: Final = "Usage: scrubjay tool NAME ARGUMENTS, the arguments as a JSON object."
carapace = typer.Typer(help="Serve and set up the memory of Carapace.", no_args_is_help=True)

GroupName = Annotated[
    str, typer.Option("--group", "-g", metavar="GROUP", help="Whose memory: the name of a group.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The plugin's configuration, as JSON."),
]


# -- one call ---------------------------------------------------------------------------------


def tool(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as memory_search.")] = "",
    arguments: Annotated[
        str, typer.Argument(metavar="ARGUMENTS", help="A JSON object, or - for stdin.")
    ] = "",
    *,
    group: GroupName = DEFAULT_GROUP,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="NAME", help="Whose limits count; else a new one."),
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Call a memory tool as Carapace's ipc does: JSON on stdout, or on stderr with exit code 1.

    Example: scrubjay tool memory_store '{"type": "fact", "content": "The dog is called Luna"}'
    """
    try:
        given = _arguments(name, arguments)
    except InvalidRequest as error:
        raise _failed("CLI_ERROR", error.message) from error
    try:
        payload = _called(name, given, group, session, config)
    except ScrubjayError as error:
        raise _failed("IPC_ERROR", f"{error.message} {error.hint}") from error
    if payload["error"] is not None:
        sys.stderr.write(wire.encode(payload["error"]) + "\n")
        raise typer.Exit(Exit.FAILURE)
    render.line(wire.encode(payload["result"]))


def _arguments(name: str, text: str) -> dict[str, Json]:
    if not name or not text:
        raise InvalidRequest(_USAGE)
    try:
        given = wire.parse(options.text_of(text))
    except ValueError as error:
        raise InvalidRequest("The arguments are not valid JSON.") from error
    if not isinstance(given, dict):
        raise InvalidRequest("The arguments must be a JSON object, not a list, a text or null.")
    return given


def _called(
    name: str, given: dict[str, Json], group: str, session: str | None, config: Path | None
) -> Any:
    topic = name if name.startswith(manifest.TOPIC) else manifest.TOPIC + name
    with _hosted(config) as (host, _):
        clock = bootstrap.clock()
        if topic == manifest.TOPIC + manifest.BRIEF_HOOK:
            # A session begins with its brief. To purge at every call would cost more than the call.
            host.start([group])
        caller = AgentSession(id=session or f"sess-{clock.new_id()}", group=group)
        message = Wire(topic=topic, correlation=clock.new_id(), arguments=given)
        return host.pipeline.answer(message, caller)["payload"]


def _failed(code: str, message: str) -> typer.Exit:
    told: Json = {"code": code, "message": message, "retriable": False}
    sys.stderr.write(wire.encode(told) + "\n")
    return typer.Exit(Exit.FAILURE)


@contextmanager
def _hosted(
    config: Path | None, rules: Rules | None = None
) -> Iterator[tuple[Host, ScrubjayMemory]]:
    memory = ScrubjayMemory.open(_config(config), opening.settings())
    try:
        record = records.AuditRecorder(memory.engine)
        yield Host([memory], bootstrap.clock(), record=record, rules=rules), memory
    finally:
        memory.shutdown()


def _config(path: Path | None) -> Config:
    if path is None:
        return Config()
    try:
        given = wire.parse(files.read(path))
    except ValueError as error:
        raise InvalidRequest(f"{path} is not JSON.") from error
    if not isinstance(given, dict):
        raise InvalidRequest(f"{path} is not a JSON object.")
    return Config.read(given)


# -- the socket -------------------------------------------------------------------------------


@carapace.command()
def serve(
    *,
    socket: Annotated[
        str, typer.Option("--socket", metavar="ADDRESS", help="Where the ipc client connects to.")
    ] = SOCKET,
    group: GroupName = DEFAULT_GROUP,
    session: Annotated[
        list[str] | None,
        typer.Option(
            "--session",
            metavar="IDENTITY=GROUP",
            help="Serve this connection identity, and none but those named; may be repeated.",
        ),
    ] = None,
    calls_per_minute: Annotated[
        int | None, typer.Option(min=1, help="How fast one session may call.")
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Answer Carapace's ipc client over ZeroMQ until it is interrupted.

    Example: scrubjay carapace serve --socket ipc:///run/carapace.sock --group main
    """
    directory = Directory(group=group, groups=dict(map(_pair, session or ())))
    _log_to_stderr()
    with _hosted(config, Rules(calls_per_minute=calls_per_minute)) as (host, _):
        server = Server(host, socket, directory)
        try:
            host.start(sorted(directory.served()))
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: server.stop())
            render.line(f"Serving {', '.join(sorted(directory.served()))} on {socket}.")
            sys.stdout.flush()
            server.run()
        finally:
            server.close()


def _pair(text: str) -> tuple[str, str]:
    identity, equals, group = text.rpartition("=")
    if not equals or not identity:
        raise InvalidRequest("A session is written IDENTITY=GROUP.")
    return identity, group


class _Fields(logging.Formatter):
    """One line: the event, and its fields by name."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of an event."""
        usual = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
        fields = [f"{key}={value}" for key, value in vars(record).items() if key not in usual]
        return render.piece(" ".join([record.levelname.lower(), record.getMessage(), *fields]), 500)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Fields())
    logger = logging.getLogger("scrubjay")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


# -- setting up -------------------------------------------------------------------------------


@carapace.command("files")
def write_files(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the plugin.")],
) -> None:
    """Write manifest.json and the skill text, as this version of the tools has them.

    Example: scrubjay carapace files plugins/memory
    """
    for path in manifest.write(folder):
        render.line(str(path))


@carapace.command("import")
def load(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A group's database.")],
    *,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", metavar="GROUP", help="Into which; else the one it names."),
    ] = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Move a Carapace database in: every entry with its versions and where it comes from.

    Example: scrubjay carapace import data/memory/main.sqlite
    """
    from scrubjay.surfaces.imports import carapace as reader

    found = reader.read(file)
    chosen = group or _named(found.groups)
    scope = scope_of(chosen)
    told: dict[str, object] = {"group": chosen, "entries": len(found.memories)}
    told["skipped"] = list(found.skipped)
    if not dry_run:
        with opening.opened(str(scope), create=True) as jay:
            loaded = jay.load(found.document(scope, bootstrap.clock().now()))
        told |= {"added": loaded.loaded, "known": loaded.known, "forgotten": loaded.forgotten}
    render.emit(told, lambda: _tell(told), as_json=as_json)


def _named(groups: tuple[str, ...]) -> str:
    if len(groups) != 1:
        raise InvalidRequest(
            "The database does not say which one group it is of.", hint="Name it with --group."
        )
    return groups[0]


def _tell(told: dict[str, Any]) -> None:
    for sentence in told["skipped"]:
        render.say(f"Left out {sentence}")
    counts = {name: value for name, value in told.items() if name != "skipped"}
    render.facts((name, str(value)) for name, value in counts.items())


# -- looking after it ---------------------------------------------------------------------------


@carapace.command()
def audit(*, group: GroupName = DEFAULT_GROUP) -> None:
    """Print every call of a group, one JSON object to a line; sessions are pseudonyms.

    Example: scrubjay carapace audit --group main
    """
    with _hosted(None) as (_, memory):
        memory.engine.open(scope_of(group), create=False)
        for line in records.lines(memory.engine, group):
            render.line(json.dumps(line))


@carapace.command()
def taint(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's identity.")],
    *,
    group: GroupName = DEFAULT_GROUP,
    origin: Annotated[Origin, typer.Option("--origin", help="What it has read.")] = Origin.WEB,
) -> None:
    """Say that a session has read something nobody vouches for: its writes are held back.

    Example: scrubjay carapace taint agent-7 --group main
    """
    with _hosted(None) as (_, memory):
        lowest = memory.mark_tainted(session, group, origin)
    render.say(f"What this session writes counts as {lowest} from now on.")
