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
from scrubjay.surfaces.cli import issuer, listening, options, render, serving
from scrubjay.surfaces.cli import key_file as key_files
from scrubjay.surfaces.cli.opening import scope_of, settings
from scrubjay.surfaces.dialects.clawdapus.descriptor import Offer
from scrubjay.surfaces.keys import Keys

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
    host: listening.Host = "127.0.0.1",
    port: Port = 8377,
    allow_host: listening.AllowHost = None,
    tls_cert: listening.TlsCert = None,
    tls_key: listening.TlsKey = None,
    insecure_http: listening.InsecureHttp = False,
    no_auth: NoAuth = False,
    key_file: KeyFile = None,
    reads: listening.Reads = 200.0,
    writes: listening.Writes = 100.0,
    plane_recall_only: RecallOnly = False,
    plane_retain_only: RetainOnly = False,
    pod: listening.Pods = None,
    recall_ms: listening.RecallMs = listening.RECALL_MS,
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

    Where SCRUBJAY_PLANE_TOKEN is set, the memory plane of a pod is served as well.

    Example: scrubjay serve --port 8377
    """
    serving.check_installed()
    from scrubjay.surfaces.http import server
    from scrubjay.surfaces.http.app import app
    from scrubjay.surfaces.http.limits import Rates
    from scrubjay.surfaces.http.service import Options
    from scrubjay.surfaces.http.tracing import CONTENT_VARIABLE

    where = server.Listening(
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
        hosts=listening.hosts_of(host, allow_host),
        rates=Rates(reads=reads, writes=writes),
        trace_content=(reading.variable(CONTENT_VARIABLE) or "").lower() == "true",
    )
    offer = listening.offer_of(
        recall_only=plane_recall_only, retain_only=plane_retain_only, pods=pod, recall_ms=recall_ms
    )
    engine = bootstrap.build(found)
    try:
        made = app(engine, bootstrap.clock(), asked, planes=_planes(offer))
        answering = server.server(made, where)
        serving.heed()
        with server.bind(where) as bound:
            keys = Keys(engine, bootstrap.clock())
            if key_file is not None and not no_auth:
                key_files.keep(key_file, keys, whose)
            url = where.url(bound.getsockname()[1])
            if as_json:
                render.line(json.dumps({"url": url, "no_auth": no_auth}))
            else:
                render.line(f"scrubjay serves {url}")
                bearer = _bearer(keys, whose, key_file, no_auth=no_auth)
                _tell(url, bearer, _FIRST if where.loopback else ())
            serving.until_told(answering, bound)
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


def _planes(offer: Offer) -> list[Any]:
    """The memory plane of a pod, where its token is set: without one it would ask nobody."""
    from scrubjay.surfaces.dialects.clawdapus.routes import ClawdapusPlane

    return [ClawdapusPlane(offer)] if offer.token else []
