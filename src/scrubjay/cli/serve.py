"""Commands that serve: the HTTP service, its API keys, and the memory plane of a pod."""

from __future__ import annotations

import ipaddress
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrubjay import bootstrap, codec, files
from scrubjay import settings as reading
from scrubjay.access import CreateKey, Grant, Key, Keys
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import confirm, installed, scope_of, settings
from scrubjay.cli.parser import JSON, PAGING, SCOPE, YES, Option, command, fields
from scrubjay.cli.render import Output
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.filters import Filter
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.pages import Paged, paged
from scrubjay.model.scope import Quota, Scope
from scrubjay.model.text import check
from scrubjay.surfaces.clawdapus.descriptor import RECALL_SECONDS, TOKEN_VARIABLE, PlaneOffer

if TYPE_CHECKING:
    from uvicorn import Server

    from scrubjay.conversation.replay import ReplayReport
    from scrubjay.service.issuer import Trust
    from scrubjay.service.server import Listening
    from scrubjay.service.service import MountedPaths

PODS_VARIABLE: Final = "SCRUBJAY_PLANE_PODS"
RECALL_MS: Final = round(RECALL_SECONDS * 1000)
_READS, _WRITES = 200.0, 100.0
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  # compared with, not listened on
_OTHERS: Final = 0o077
_HOST = Option("--host", "Address to listen on.", str, metavar="HOST", default="127.0.0.1")
_LISTEN = (
    Option(
        "--allow-host", "Host name that requests may be sent to.", str, metavar="NAME", many=True
    ),
    Option("--tls-cert", "TLS certificate chain, PEM; requires TLS 1.3.", Path),
    Option("--tls-key", "Private key of the certificate, PEM.", Path),
    Option("--insecure-http", "Allow plain HTTP beyond loopback."),
    Option(
        "--reads", "Rate limit: reads per second and key; 0 for none.", float, least=0,
        default=f"{_READS:g}",
    ),
    Option(
        "--writes", "Rate limit: writes per second and key; 0 for none.", float, least=0,
        default=f"{_WRITES:g}",
    ),
    Option(
        "--workers", "Number of processes that answer; 0 for one per core.", int, least=0, most=64,
        default="1",
    ),
    Option(
        "--pod", "Pod the plane serves; without one, every pod that has the token.", str,
        metavar="NAME", many=True, variable=PODS_VARIABLE,
    ),
    Option(
        "--recall-ms", "Time budget of the plane's recall, in milliseconds.", int, least=1,
        default=str(RECALL_MS),
    ),
)  # fmt: skip
_RECALL_ONLY = Option("--recall-only", "Offer recall only.")
_RETAIN_ONLY = Option("--retain-only", "Offer retain and forget only.")


# -- what both services share --------------------------------------------------------------------


def hosts_of(host: str, allowed: Iterable[str]) -> frozenset[str]:
    """The names it answers to: those that are allowed, and the address it listens on.

    An IPv6 address stands in brackets, as in the Host header.
    """
    found = set()
    for name in (*allowed, *(() if host in _EVERYWHERE else (host,))):
        try:
            address = ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            found.add(name)
        else:
            found.add(f"[{address.compressed}]" if address.version == 6 else address.compressed)
    return frozenset(found)


def _offer(
    *, recall_only: bool, retain_only: bool, pod: Sequence[str] = (), recall_ms: int = RECALL_MS
) -> PlaneOffer:
    """Descriptor of the memory plane, with the token from the environment."""
    return PlaneOffer(
        recall=not retain_only,
        retain=not recall_only,
        token=reading.variable(TOKEN_VARIABLE),
        pods=frozenset(pod) if pod else None,
        recall_seconds=recall_ms / 1000,
    )


def _check_installed() -> None:
    """Refuse to serve where the libraries that serve are not there."""
    if not all(map(find_spec, ("starlette", "uvicorn", "jwt", "httpx2"))):
        raise InvalidRequest(
            "The service is not installed.", hint="pip install 'scrubjay[server]' brings it."
        )


def _serve(
    announce: Callable[[Kernel, Listening, str], None],
    planes: Sequence[Any],
    *,
    port: int,
    host: str = "127.0.0.1",
    allow_host: Sequence[str] = (),
    reads: float = _READS,
    writes: float = _WRITES,
    workers: int = 1,
    options: Mapping[str, Any] | None = None,
    **transport: Any,
) -> None:
    """Serve until SIGTERM or Ctrl-C, which are no failure: they are how serving is meant to end."""
    from scrubjay.service import server
    from scrubjay.service.app import app
    from scrubjay.service.service import Options, Rates
    from scrubjay.service.workers import Crew

    bootstrap.forbid_core_dumps()
    bootstrap.bound_heap()
    workers = workers or os.cpu_count() or 1
    where = server.Listening(host=host, port=port, **transport)
    rates = Rates(reads=reads, writes=writes)
    asked = Options(hosts=hosts_of(host, allow_host), rates=rates, **options or {})
    found = settings()
    bootstrap.check_data(found)

    def prepare(engine: Kernel, chosen: Options) -> Server:
        made = app(engine, bootstrap.clock(), chosen, planes=planes)
        answering = server.server(made, where, workers=workers)

        def end(*_: object) -> None:
            # A flag, not an exception: one raised while the event loop starts can be swallowed.
            answering.should_exit = True

        for number in (signal.SIGTERM, signal.SIGINT):  # before the address is announced
            signal.signal(number, end)
        return answering

    with ExitStack() as opened:
        engine = opened.enter_context(installed(found, create=True))
        answering = prepare(engine, asked)
        with server.bind(where) as bound:
            crew = Crew(workers) if workers > 1 else None
            announce(engine, where, where.url(bound.getsockname()[1]))
            sys.stdout.flush()
            server.to_stderr()
            if crew is None:
                answering.run(sockets=[bound])
                return
            opened.close()  # of what is open nothing may be used by two processes

            def work(number: int) -> None:
                with installed(found) as own:
                    prepare(own, replace(asked, crew=crew, worker=number)).run(sockets=[bound])

            crew.run(work)


# -- the service ---------------------------------------------------------------------------------


def trusted(
    *,
    issuer: str | None = None,
    audience: str | None = None,
    scope: str | None = None,
    grants: str | None = None,
    actor: Actor = Actor.USER,
    resource: str | None = None,
) -> Trust | None:
    """The OIDC issuer the options name; None if they name none."""
    if issuer is None:
        if audience or scope or grants or resource:
            raise InvalidRequest("No OpenID Connect issuer is named.", hint="Add --oidc-issuer.")
        return None
    from scrubjay.service.issuer import OWNERS, Template, Trust

    if not audience or not scope:
        raise InvalidRequest(
            "An OpenID Connect issuer needs an audience and a scope template.",
            hint="Add --oidc-audience, and --oidc-scope as in 'acme/{sub}'.",
        )
    chosen: tuple[Grant, ...] = OWNERS
    if grants is not None:
        named = [one.strip() for one in grants.split(",") if one.strip()]
        listed = {check("grants", Grant, one) for one in named}
        chosen = tuple(grant for grant in Grant if grant in listed)
    return Trust(
        issuer=issuer,
        audience=audience,
        scope=Template(scope),
        grants=chosen,
        actor=actor,
        resource=resource,
    )


def keep(path: Path, keys: Keys, scope: Scope) -> None:
    """Ensure that the file holds a valid API key for the scope; one that is there stays."""
    if path.exists():
        if path.stat().st_mode & _OTHERS:
            raise InvalidRequest(
                f"Other users can read the key in {path}.",
                hint=f"Run `chmod 600 {path}`, or remove it to have a new one made.",
            )
        keys.refresh()
        found = keys.find(files.read(path).decode("latin-1").strip())
        if found is None or not found.covers(scope):
            raise InvalidRequest(
                f"The key in {path} is not valid for {scope}.",
                hint="Remove it to have a new one made, or name another file.",
            )
        return
    files.make_folder(path.parent)  # first: a key that is not written down is known to nobody
    issued = keys.create(
        name=f"file {path.name}", scopes=[str(scope)], grants=tuple(Grant), actor=Actor.USER
    )
    files.write(path, f"{issued.token}\n".encode())


@command(
    "serve",
    _HOST,
    Option(
        "--port", "Port to listen on; 0 takes a free one.", int, least=0, most=65_535,
        default="8377",
    ),
    *_LISTEN,
    Option("--no-auth", "Disable authentication; on loopback only."),
    Option("--key-file", "File with an API key for the scope; created if it is missing.", Path),
    Option("--plane-recall-only", "Memory plane of a pod: offer recall only."),
    Option("--plane-retain-only", "Memory plane of a pod: offer retain and forget only."),
    Option("--oidc-issuer", "OIDC issuer whose tokens are accepted.", str, metavar="URL"),
    Option("--oidc-audience", "Audience the tokens must be issued for.", str, metavar="NAME"),
    Option(
        "--oidc-scope", "Scope a token opens, as a template: 'acme/{sub}'.", str, metavar="SCOPE"
    ),
    Option(
        "--oidc-grants", "Grants of a token, separated by commas; a token may ask for fewer.", str,
        metavar="LIST", default="read,write,forget,export",
    ),
    Option("--oidc-actor", "Actor that a token acts as.", Actor, default="user"),
    Option(
        "--oidc-resource", "Public URL of the service, if it is behind a proxy.", str,
        metavar="URL",
    ),
    SCOPE,
    Option("--json", "Print the address as one line of JSON.", name="json"),
)  # fmt: skip
def serve(
    *,
    port: int = 8377,
    no_auth: bool = False,
    key_file: Path | None = None,
    plane_recall_only: bool = False,
    plane_retain_only: bool = False,
    pod: Sequence[str] = (),
    recall_ms: int = RECALL_MS,
    scope: str | None = None,
    json: bool = False,
    **given: Any,
) -> None:
    """Serve every verb over HTTP. API keys are made with `scrubjay keys create`.

    Where SCRUBJAY_PLANE_TOKEN is set, the memory plane of a pod is served as well; with the extra
    `mcp`, MCP at /mcp.

    Example: scrubjay serve --port 8377
    """
    _check_installed()
    from scrubjay.service.telemetry import CONTENT_VARIABLE
    from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane
    from scrubjay.surfaces.mcp.routes import McpPaths
    from scrubjay.surfaces.personal.routes import PersonalPaths

    whose = scope_of(scope, reading.read())
    oidc = {name: given.pop(name) for name in [*given] if name.startswith("oidc_")}
    options = {
        "no_auth": no_auth,
        "trust": trusted(**{name.removeprefix("oidc_"): value for name, value in oidc.items()}),
        "scope": whose,
        "trace_content": (reading.variable(CONTENT_VARIABLE) or "").lower() == "true",
    }
    offer = _offer(
        recall_only=plane_recall_only, retain_only=plane_retain_only, pod=pod, recall_ms=recall_ms
    )

    def announce(engine: Kernel, where: Listening, url: str) -> None:
        keys = Keys(engine, bootstrap.clock())
        if key_file is not None and not no_auth:
            keep(key_file, keys, whose)
        if json:
            render.line(codec.to_json({"url": url, "no_auth": no_auth}).decode())
            return
        render.line(f"scrubjay serves {url}")
        _show_start(url, keys, whose, key_file, no_auth=no_auth, loopback=where.loopback)

    # Without a token the plane would ask nobody for one.
    planes: list[MountedPaths] = [ClawdapusPlane(offer)] if offer.token else []
    couriers = bootstrap.make_couriers(reading.read(), bootstrap.clock())
    planes.append(PersonalPaths(couriers=couriers))
    if find_spec("mcp"):
        planes.append(McpPaths())
    _serve(announce, planes, port=port, no_auth=no_auth, options=options, **given)


def _show_start(
    url: str, keys: Keys, scope: Scope, file: Path | None, *, no_auth: bool, loopback: bool
) -> None:
    """Say which key is needed, where to look, and what to paste into a shell to begin with."""
    bearer = ' -H "Authorization: Bearer $KEY"'
    if no_auth:
        render.say("No key is asked for: every program on this machine may use it.")
        bearer = ""
    elif file is not None:
        render.say(f"The key for {scope} is in {file}.")
        bearer = f' -H "Authorization: Bearer $(cat {shlex.quote(str(file.absolute()))})"'
    elif not keys.all():
        render.say(f"There is no key yet: `scrubjay keys create NAME --scope {scope}`.")
    for name, path in (("every verb", "/openapi.json"), ("is it well?", "/healthz")):
        render.say(f"  {name:<12} {url}{path}")
    first = (
        ("tell it", "/v1/memories", '{"content": "Alice prefers green tea"}'),
        ("ask it", "/v1/recall", '{"query": "What does Alice drink?"}'),
    )
    for name, path, body in first if loopback else ():
        sent = f"-H 'Content-Type: application/json' -d '{body}'"
        render.say(f"  {name:<12} curl -s {url}{path}{bearer} {sent}")
    render.say("Ctrl-C ends it.")


# -- its keys ------------------------------------------------------------------------------------


@contextmanager
def _keys(*, create: bool = False) -> Iterator[Keys]:
    with installed(create=create) as engine:
        yield Keys(engine, bootstrap.clock())


@command(
    "keys create",
    Option("NAME", "Name of the key, for people to know it by.", str, required=True),
    Option(
        "--scope -s", "Scope the key covers: tenant/owner, tenant/*, or *.", str, name="scopes",
        metavar="SCOPE", many=True,
    ),
    Option(
        "--by-scope", "Grants in one scope of their own, such as team/x=read,export.", str,
        metavar="SCOPE=GRANTS", many=True,
    ),
    Option(
        "--grant -g", "Grant: what the key allows.", Grant, name="grants", many=True,
        default="read, write",
    ),
    Option(
        "--actor", "Actor the key acts as; only user and operator can approve memories.", Actor,
        default="agent",
    ),
    Option(
        "--origin", "Most trusted origin that writes with the key may claim.", Origin,
        default="that of the actor",
    ),
    fields(CreateKey, "expires_at --expires"),
    Option(
        "--most-memories", "Quota: memories that a scope holds at most for the key to write.", int,
        least=0, default="any",
    ),
    Option(
        "--most-megabytes", "Quota: megabytes of a scope on the disk.", int, least=0, default="any",
    ),
    Option("--most-scopes", "Quota: scopes of a tenant.", int, least=0, default="any"),
    JSON,
)  # fmt: skip
def create_key(
    name: str,
    *,
    grants: Sequence[Grant] = (Grant.READ, Grant.WRITE),
    actor: Actor = Actor.AGENT,
    origin: Origin | None = None,
    expires_at: datetime | None = None,
    most_memories: int = 0,
    most_megabytes: int = 0,
    most_scopes: int = 0,
    scopes: Sequence[str] = (),
    by_scope: Sequence[str] = (),
) -> Output:
    """Create an API key. It is shown now and never again.

    Example: scrubjay keys create "my agent" --scope me/alice --by-scope team/x=read
    """
    own = {one: some.split(",") for one, _, some in (text.partition("=") for text in by_scope)}
    with _keys(create=True) as keys:
        issued = keys.create(
            name=name, scopes=scopes, grants=grants, by_scope=own, actor=actor, origin=origin,
            expires_at=expires_at,
            quota=Quota(
                memories=most_memories, megabytes=most_megabytes, scopes=most_scopes,
            ),
        )  # fmt: skip
    notes = [f"Keep it safe: it is not shown again. It is listed as {issued.key.id}."]
    return Output(issued, lambda: render.line(issued.token), notes)


@command("keys list", PAGING, JSON)
def list_keys(**request: Any) -> Output:
    """List the valid API keys, by their visible part.

    Example: scrubjay keys list
    """
    with _keys() as keys:
        asked = Paged(**request)
        found = paged(keys.all(), asked.limit, asked.cursor, Key.order)
    columns = ("id", "name", "scopes", "grants", "actor", "expires", "used")
    rows = (
        (
            one.id,
            render.piece(one.name),
            " ".join((*one.scopes, *(f"{at}={','.join(to)}" for at, to in one.by_scope.items()))),
            " ".join(one.grants),
            one.actor.value,
            render.local(one.expires_at),
            str(one.used_on or ""),
        )
        for one in found
    )
    return Output(found, lambda: render.table(columns, rows))


@command(
    "keys revoke", Option("ID", "Id of the key: its visible part.", str, required=True), YES, JSON
)
def revoke_key(id: str, *, yes: bool = False) -> Output:
    """Revoke an API key for good. A running service refuses it within a second.

    Example: scrubjay keys revoke k3jx2a7q
    """
    with _keys() as keys:
        confirm(f"The key {id} will never be accepted again.", yes=yes)
        revoked = keys.revoke(id)
    said = f"Revoked {revoked.id} ({revoked.name})."
    return Output(revoked, lambda: render.say(said))


# -- the plane of a pod --------------------------------------------------------------------------


@command(
    "plane serve",
    _HOST,
    Option(
        "--port", "Port to listen on; 0 takes a free one.", int, least=0, most=65_535,
        default="8080", variable="PORT",
    ),
    *_LISTEN,
    _RECALL_ONLY,
    _RETAIN_ONLY,
)  # fmt: skip
def serve_plane(
    *,
    port: int = 8080,
    pod: Sequence[str] = (),
    recall_ms: int = RECALL_MS,
    recall_only: bool = False,
    retain_only: bool = False,
    **given: Any,
) -> None:
    """Serve the memory plane of a pod.

    Agents authenticate with the token in SCRUBJAY_PLANE_TOKEN; if it is not set, with none.

    Example: scrubjay plane serve --host 0.0.0.0 --insecure-http --allow-host memory
    """
    _check_installed()
    from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane

    offer = _offer(recall_only=recall_only, retain_only=retain_only, pod=pod, recall_ms=recall_ms)

    def announce(_engine: Kernel, _where: Listening, url: str) -> None:
        render.line(f"scrubjay serves {url}")
        if offer.token is None:
            render.say("No token is asked for: everybody who reaches it may use it.")

    _serve(announce, [ClawdapusPlane(offer)], port=port, **given)


@command(
    "plane describe",
    Option("--output -o", "File to write; stdout without it.", Path),
    _RECALL_ONLY,
    _RETAIN_ONLY,
    Option("--auth", "Whether agents authenticate with a token.", off="--no-auth", default="yes"),
)
def describe(
    *,
    output: Path | None = None,
    recall_only: bool = False,
    retain_only: bool = False,
    auth: bool = True,
) -> None:
    """Write the descriptor that belongs at the root of the image.

    Example: scrubjay plane describe -o .claw-describe.json
    """
    from scrubjay.surfaces.clawdapus import descriptor

    offer = _offer(recall_only=recall_only, retain_only=retain_only)
    content = descriptor.render(replace(offer, token="asked for" if auth else None))
    if output is None:
        sys.stdout.write(content.decode())
    else:
        files.write(output, content)


@command(
    "plane pull",
    Option("--agent", "Agent whose history is read.", str, metavar="ID", many=True),
    Option(
        "--pod", "Pod of the agents; needed where no turn of theirs is known yet.", str,
        metavar="NAME", many=True, variable=PODS_VARIABLE,
    ),
    fields(Filter, "since"),
    JSON,
)  # fmt: skip
def pull(
    *,
    agent: Sequence[str] = (),
    pod: Sequence[str] = (),
    since: datetime | None = None,
) -> Output:
    """Rebuild memory from the pod's own history; idempotent, so it can be repeated.

    CLAW_HISTORY_URL, CLAW_HISTORY_TOKEN and CLAW_HISTORY_AGENT_IDS say where it is, as
    `claw up` sets them. What goes wrong with one agent is told at the end.

    Example: scrubjay plane pull --pod desk
    """
    _check_installed()
    from dataclasses import asdict

    from scrubjay.conversation.replay import ReplayReport
    from scrubjay.surfaces.clawdapus import history

    url = reading.variable(history.URL_VARIABLE)
    named = (reading.variable(history.AGENTS_VARIABLE) or "").split(",")
    agents = agent or [one.strip() for one in named if one.strip()]
    if url is None or not agents:
        raise InvalidRequest(
            "Nothing says where the history is, or of which agents.",
            hint="Set CLAW_HISTORY_URL and CLAW_HISTORY_AGENT_IDS, as `claw up` does.",
        )
    fetch = history.HistorySource(url=url, token=reading.variable(history.TOKEN_VARIABLE)).fetch

    def progress(pulled: ReplayReport) -> None:
        if pulled.seen % 500 == 0:
            render.say(f"{pulled.agent}: {pulled.seen:,} entries, up to {pulled.last}")

    done = []
    with installed(create=True) as engine:
        for one in agents:
            try:
                scope = _scope(engine, one, pod)
            except InvalidRequest as error:
                done.append(ReplayReport(one, error=f"{error.message} {error.hint}"))
                continue
            done.append(
                history.pull(engine, one, fetch, scope=scope, after=since, progress=progress)
            )
    told = [asdict(one) | {"whole": one.whole} for one in done]
    code = Exit.OK if all(one.whole for one in done) else Exit.FAILURE
    return Output(told, lambda: _show_pulled(done), code=code)


def _scope(engine: Kernel, agent: str, pods: Sequence[str]) -> Scope:
    """Where the turns of an agent go: to its pod, as it is named, or else as it is known here."""
    from scrubjay.surfaces.clawdapus import names

    if len(pods) == 1:
        return names.scope_of(agent, pods[0])
    known = names.scopes_of(agent, engine.scopes())
    if pods:
        known = [names.scope_of(agent, pod) for pod in pods if names.scope_of(agent, pod) in known]
    if len(known) != 1:
        told = "in more than one pod" if known else "in no pod yet"
        raise InvalidRequest(
            f"The agent {agent} is known {told}.",
            hint=f"Say which it belongs to: --pod NAME, or {PODS_VARIABLE}.",
        )
    return known[0]


def _show_pulled(done: list[ReplayReport]) -> None:
    from scrubjay.conversation.replay import PAGE

    for one in done:
        render.line(
            f"{one.agent}: {one.stored:,} new, {one.known:,} known, {one.forgotten:,} forgotten, "
            f"{one.ignored:,} left out" + f", {one.overlong:,} too long" * bool(one.overlong)
        )
        for time in one.crowded:
            render.say(
                f"{one.agent}: the history gives no more than {PAGE:,} lines of one second, "
                f"{time:%Y-%m-%d %H:%M:%S}; `claw memory backfill` has them all."
            )
        if one.error:
            render.say(f"{one.agent}: broken off, {one.error}")


# -- the Model Context Protocol --------------------------------------------------------------------


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
