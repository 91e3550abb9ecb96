"""serve: the service, until it is told to end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.domain.origin import Actor
from scrubjay.domain.scope import Scope
from scrubjay.surfaces.cli import issuer, options, render, serving
from scrubjay.surfaces.cli import key_file as key_files
from scrubjay.surfaces.cli.opening import scope_of, settings
from scrubjay.surfaces.keys import Keys

_CERTIFICATE = "The certificate chain, PEM; TLS 1.3 is then the least it speaks."
_KEY_FILE = "Keep a key for the scope in this file; it is made if it is not there."
KeyFile = Annotated[Path | None, typer.Option("--key-file", metavar="FILE", help=_KEY_FILE)]
Reads = Annotated[
    float, typer.Option("--reads", min=0, help="Reads a second for one key; 0: no limit.")
]
InsecureHttp = Annotated[
    bool, typer.Option("--insecure-http", help="Allow plain HTTP beyond loopback.")
]
NoAuth = Annotated[bool, typer.Option("--no-auth", help="Ask for no key; on loopback only.")]
Writes = Annotated[
    float, typer.Option("--writes", min=0, help="Writes a second for one key; 0: no limit.")
]


def serve(
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="The port; 0 takes a free one.")
    ] = 8377,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name it answers to; repeatable."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help=_CERTIFICATE)] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Its private key.")] = None,
    insecure_http: InsecureHttp = False,
    no_auth: NoAuth = False,
    key_file: KeyFile = None,
    reads: Reads = 200.0,
    writes: Writes = 100.0,
    oidc_issuer: issuer.Issuer = None,
    oidc_audience: issuer.Audience = None,
    oidc_scope: issuer.ScopeOf = None,
    oidc_grants: issuer.Grants = None,
    oidc_actor: issuer.Who = Actor.USER,
    oidc_resource: issuer.Resource = None,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Serve every verb over HTTP. Keys are made with `scrubjay keys create`.

    Example: scrubjay serve --port 8377
    """
    serving.check_installed()
    from scrubjay.surfaces.http import server
    from scrubjay.surfaces.http.app import app
    from scrubjay.surfaces.http.limits import Rates
    from scrubjay.surfaces.http.service import Options
    from scrubjay.surfaces.http.tracing import CONTENT_VARIABLE

    listening = server.Listening(
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure_http=insecure_http,
        no_auth=no_auth,
    )
    trust = issuer.trusted(
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
        hosts=frozenset([*(allow_host or ()), *([host] if host not in _EVERYWHERE else [])]),
        rates=Rates(reads=reads, writes=writes),
        trace_content=(reading.variable(CONTENT_VARIABLE) or "").lower() == "true",
    )
    engine = bootstrap.build(found)
    try:
        made = app(engine, bootstrap.clock(), asked, planes=_planes())
        answering = server.server(made, listening)
        serving.heed()
        with server.bind(listening) as bound:
            keys = Keys(engine, bootstrap.clock())
            if key_file is not None and not no_auth:
                key_files.keep(key_file, keys, whose)
            url = listening.url(bound.getsockname()[1])
            if as_json:
                render.line(json.dumps({"url": url, "no_auth": no_auth}))
            else:
                render.line(f"scrubjay serves {url}")
                bearer = _bearer(keys, whose, key_file, no_auth=no_auth)
                _tell(url, bearer, _FIRST if listening.loopback else ())
            serving.until_told(answering, bound)
    finally:
        engine.close()


_FIRST = (
    ("tell it", "/v1/memories", '{"content": "Alice prefers green tea"}'),
    ("ask it", "/v1/recall", '{"query": "What does Alice drink?"}'),
)
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  # compared with, not listened on


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


def _planes() -> list[Any]:
    """The memory plane of a pod, where its token is set: without one it would ask nobody."""
    from scrubjay.surfaces.dialects.clawdapus.descriptor import TOKEN_VARIABLE, Offer
    from scrubjay.surfaces.dialects.clawdapus.routes import ClawdapusPlane

    token = reading.variable(TOKEN_VARIABLE)
    return [ClawdapusPlane(Offer(token=token))] if token else []
