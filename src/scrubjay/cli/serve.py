"""serve: the service, until it is told to end."""

from __future__ import annotations

import ipaddress
import json
import shlex
import signal
import socket
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from scrubjay import bootstrap, files
from scrubjay import settings as reading
from scrubjay.access import Grant, Keys
from scrubjay.cli import options, render
from scrubjay.cli.exits import Exit
from scrubjay.cli.opening import scope_of, settings
from scrubjay.model import text
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope
from scrubjay.surfaces.clawdapus.descriptor import RECALL_SECONDS, TOKEN_VARIABLE, PlaneOffer

if TYPE_CHECKING:
    from scrubjay.service.issuer import Trust

Issuer = Annotated[
    str | None,
    typer.Option("--oidc-issuer", metavar="URL", help="Accept the tokens of this OIDC issuer."),
]
Audience = Annotated[
    str | None,
    typer.Option("--oidc-audience", metavar="NAME", help="What they must be issued for."),
]
ScopeOf = Annotated[
    str | None,
    typer.Option(
        "--oidc-scope", metavar="SCOPE", help="Whose memory they open, as in 'acme/{sub}'."
    ),
]
Grants = Annotated[
    str | None,
    typer.Option(
        "--oidc-grants",
        metavar="LIST",
        help="What for, with commas; a token may ask for less.",
        show_default="read,write,forget,export",
    ),
]
Who = Annotated[Actor, typer.Option("--oidc-actor", help="Who acts with them.")]
Resource = Annotated[
    str | None,
    typer.Option("--oidc-resource", metavar="URL", help="Where clients find it behind a proxy."),
]


def trusted(
    *,
    issuer: str | None,
    audience: str | None,
    scope: str | None,
    grants: str | None,
    actor: Actor,
    resource: str | None,
) -> Trust | None:
    """The issuer the options name; None if they name none."""
    if issuer is None:
        if audience or scope or grants or resource:
            raise InvalidRequest("Nobody's tokens are accepted.", hint="Add --oidc-issuer.")
        return None
    from scrubjay.service.issuer import OWNERS, Template, Trust

    if not audience or not scope:
        raise InvalidRequest(
            "An issuer needs an audience, and the scope of who has its tokens.",
            hint="Add --oidc-audience, and --oidc-scope as in 'acme/{sub}'.",
        )
    return Trust(
        issuer=issuer,
        audience=audience,
        scope=Template(scope),
        grants=_listed(grants) if grants is not None else OWNERS,
        actor=actor,
        resource=resource,
    )


def _listed(grants: str) -> tuple[Grant, ...]:
    named = [one.strip() for one in grants.split(",") if one.strip()]
    chosen = {text.check_choice("A grant", one, Grant) for one in named}
    return tuple(grant for grant in Grant if grant in chosen)


_OTHERS: Final = 0o077


def keep(path: Path, keys: Keys, scope: Scope) -> None:
    """See to it that the file holds a good key for the scope; one that is there stays."""
    if path.exists():
        _check(path, keys, scope)
        return
    _make_folder(path.parent)
    issued = keys.create(
        name=f"file {path.name}", scopes=[str(scope)], grants=tuple(Grant), actor=Actor.USER
    )
    files.write(path, f"{issued.token}\n".encode())


def _make_folder(folder: Path) -> None:
    """See to it that there is a place for the file before there is a key nobody would know."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(
            f"There is no folder {folder} for the key: {error.strerror}."
        ) from error


def _check(path: Path, keys: Keys, scope: Scope) -> None:
    if path.stat().st_mode & _OTHERS:
        raise InvalidRequest(
            f"Others may read the key in {path}.",
            hint=f"Run `chmod 600 {path}`, or remove it to have a new one made.",
        )
    keys.refresh()
    found = keys.find(files.read(path).decode("latin-1").strip())
    if found is None or not found.covers(scope):
        raise InvalidRequest(
            f"What {path} holds is no good key for {scope}.",
            hint="Remove it to have a new one made, or name another file.",
        )


PODS_VARIABLE: Final = "SCRUBJAY_PLANE_PODS"
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104  # compared with, not listened on
_CERTIFICATE: Final = "The certificate chain, PEM; TLS 1.3 is then the least it speaks."

Host = Annotated[str, typer.Option("--host", help="The address to listen on.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A name it answers to; repeatable."),
]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", help=_CERTIFICATE)]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="Its private key.")]
InsecureHttp = Annotated[
    bool, typer.Option("--insecure-http", help="Allow plain HTTP beyond loopback.")
]
Reads = Annotated[
    float, typer.Option("--reads", min=0, help="Reads a second for one key; 0: no limit.")
]
Writes = Annotated[
    float, typer.Option("--writes", min=0, help="Writes a second for one key; 0: no limit.")
]
Pods = Annotated[
    list[str] | None,
    typer.Option(
        "--pod",
        metavar="NAME",
        envvar=PODS_VARIABLE,
        help="A pod the plane serves; repeatable. Without one, every pod that has the token.",
    ),
]
RecallMs = Annotated[
    int,
    typer.Option("--recall-ms", min=1, help="How long the plane's recall may take, in ms."),
]
RECALL_MS: Final = round(RECALL_SECONDS * 1000)


def hosts_of(host: str, allowed: Iterable[str] | None) -> frozenset[str]:
    """The names it answers to: those that are allowed, and the address it listens on."""
    own = () if host in _EVERYWHERE else (host,)
    return frozenset(map(_in_header, (*(allowed or ()), *own)))


def _in_header(host: str) -> str:
    """A host as it stands in the header: an address of IPv6 is in brackets there."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host
    return f"[{address.compressed}]" if address.version == 6 else address.compressed


def offer_of(
    *, recall_only: bool, retain_only: bool, pods: Sequence[str] | None = None, recall_ms: int
) -> PlaneOffer:
    """What the plane offers, with the token of the environment."""
    return PlaneOffer(
        recall=not retain_only,
        retain=not recall_only,
        token=reading.variable(TOKEN_VARIABLE),
        pods=frozenset(pods) if pods else None,
        recall_seconds=recall_ms / 1000,
    )


if TYPE_CHECKING:
    from uvicorn import Server


def check_installed() -> None:
    """Refuse to serve where the libraries that serve are not there."""
    if not all(map(find_spec, ("starlette", "uvicorn", "jwt", "httpx2"))):
        raise InvalidRequest(
            "The service is not installed.", hint="pip install 'scrubjay[server]' brings it."
        )


def heed() -> None:
    """From now on SIGTERM and Ctrl-C are no failure: they are how serving is meant to end.

    To be called before anybody is told where it serves, and so may end it.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)  # the server passes it on when it is done


def until_told(server: Server, bound: socket.socket) -> None:
    """Serve until it is told to end."""
    from scrubjay.service import server as logs

    sys.stdout.flush()
    logs.to_stderr()
    server.run(sockets=[bound])


def _end(_number: int, _frame: object) -> None:
    """End in peace, by way of closing the engine."""
    raise SystemExit(Exit.OK)


_KEY_FILE = "Keep a key for the scope in this file; it is made if it is not there."
Port = Annotated[
    int, typer.Option("--port", min=0, max=65_535, help="The port; 0 takes a free one.")
]
NoAuth = Annotated[bool, typer.Option("--no-auth", help="Ask for no key; on loopback only.")]
KeyFile = Annotated[Path | None, typer.Option("--key-file", metavar="FILE", help=_KEY_FILE)]
RecallOnly = Annotated[
    bool, typer.Option("--plane-recall-only", help="The plane of a pod offers recall alone.")
]
RetainOnly = Annotated[
    bool, typer.Option("--plane-retain-only", help="It offers retain and forget alone.")
]


def serve(
    *,
    host: Host = "127.0.0.1",
    port: Port = 8377,
    allow_host: AllowHost = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    insecure_http: InsecureHttp = False,
    no_auth: NoAuth = False,
    key_file: KeyFile = None,
    reads: Reads = 200.0,
    writes: Writes = 100.0,
    plane_recall_only: RecallOnly = False,
    plane_retain_only: RetainOnly = False,
    pod: Pods = None,
    recall_ms: RecallMs = RECALL_MS,
    oidc_issuer: Issuer = None,
    oidc_audience: Audience = None,
    oidc_scope: ScopeOf = None,
    oidc_grants: Grants = None,
    oidc_actor: Who = Actor.USER,
    oidc_resource: Resource = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Serve every verb over HTTP. Keys are made with `scrubjay keys create`.

    Where SCRUBJAY_PLANE_TOKEN is set, the memory plane of a pod is served as well.

    Example: scrubjay serve --port 8377
    """
    check_installed()
    from scrubjay.service import server
    from scrubjay.service.app import app
    from scrubjay.service.limits import Rates
    from scrubjay.service.service import Options
    from scrubjay.service.tracing import CONTENT_VARIABLE

    where = server.Listening(
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure_http=insecure_http,
        no_auth=no_auth,
    )
    trust = trusted(
        issuer=oidc_issuer,
        audience=oidc_audience,
        scope=oidc_scope,
        grants=oidc_grants,
        actor=oidc_actor,
        resource=oidc_resource,
    )
    found = settings()
    whose = scope_of(scope, found)
    asked = Options(
        no_auth=no_auth,
        trust=trust,
        scope=whose,
        hosts=hosts_of(host, allow_host),
        rates=Rates(reads=reads, writes=writes),
        trace_content=(reading.variable(CONTENT_VARIABLE) or "").lower() == "true",
    )
    offer = offer_of(
        recall_only=plane_recall_only, retain_only=plane_retain_only, pods=pod, recall_ms=recall_ms
    )
    engine = bootstrap.build(found)
    try:
        made = app(engine, bootstrap.clock(), asked, planes=_planes(offer))
        answering = server.server(made, where)
        heed()
        with server.bind(where) as bound:
            keys = Keys(engine, bootstrap.clock())
            if key_file is not None and not no_auth:
                keep(key_file, keys, whose)
            url = where.url(bound.getsockname()[1])
            if as_json:
                render.line(json.dumps({"url": url, "no_auth": no_auth}))
            else:
                render.line(f"scrubjay serves {url}")
                bearer = _bearer(keys, whose, key_file, no_auth=no_auth)
                _tell(url, bearer, _FIRST if where.loopback else ())
            until_told(answering, bound)
    finally:
        engine.close()


_FIRST = (
    ("tell it", "/v1/memories", '{"content": "Alice prefers green tea"}'),
    ("ask it", "/v1/recall", '{"query": "What does Alice drink?"}'),
)


def _bearer(keys: Keys, scope: Scope, file: Path | None, *, no_auth: bool) -> str:
    """Say what there is to know about keys; what curl has to be told to send one."""
    if no_auth:
        render.say("No key is asked for: every program on this machine may use it.")
        return ""
    if file is None:
        if not keys.all():
            render.say(f"There is no key yet: `scrubjay keys create NAME --scope {scope}`.")
        return ' -H "Authorization: Bearer $KEY"'
    render.say(f"The key for {scope} is in {file}.")
    return f' -H "Authorization: Bearer $(cat {shlex.quote(str(file.absolute()))})"'


def _tell(url: str, bearer: str, first: Iterable[tuple[str, str, str]]) -> None:
    """Say where to look, and what to paste into a shell to begin with."""
    for name, path in (("every verb", "/openapi.json"), ("is it well?", "/healthz")):
        render.say(f"  {name:<12} {url}{path}")
    for name, path, body in first:
        sent = f"-H 'Content-Type: application/json' -d '{body}'"
        render.say(f"  {name:<12} curl -s {url}{path}{bearer} {sent}")
    render.say("Ctrl-C ends it.")


def _planes(offer: PlaneOffer) -> list[Any]:
    """The memory plane of a pod, where its token is set: without one it would ask nobody."""
    from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane

    return [ClawdapusPlane(offer)] if offer.token else []
