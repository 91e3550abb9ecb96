"""serve: the service, until it is told to end."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from scrubjay import settings as reading
from scrubjay.surfaces.cli import listening, options, render
from scrubjay.surfaces.cli.opening import scope_of, settings
from scrubjay.surfaces.dialects.clawdapus.descriptor import TOKEN_VARIABLE, Offer


def serve(
    *,
    host: listening.Host = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="The port; 0 takes a free one.")
    ] = 8377,
    allow_host: listening.AllowHost = None,
    tls_cert: listening.TlsCert = None,
    tls_key: listening.TlsKey = None,
    insecure_http: listening.InsecureHttp = False,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask for no key; on loopback only.")
    ] = False,
    reads: listening.Reads = 200.0,
    writes: listening.Writes = 100.0,
    plane_recall_only: Annotated[
        bool, typer.Option("--plane-recall-only", help="The plane of a pod offers recall alone.")
    ] = False,
    plane_retain_only: Annotated[
        bool, typer.Option("--plane-retain-only", help="It offers retain and forget alone.")
    ] = False,
    pod: listening.Pods = None,
    recall_ms: listening.RecallMs = listening.RECALL_MS,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Serve every verb over HTTP. Keys are made with `scrubjay keys create`.

    Where SCRUBJAY_PLANE_TOKEN is set, the memory plane of a pod is served as well.

    Example: scrubjay serve --port 8377
    """
    listening.check_installed()
    from scrubjay.surfaces.http import server
    from scrubjay.surfaces.http.limits import Rates
    from scrubjay.surfaces.http.service import Options

    where = server.Listening(
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure_http=insecure_http,
        no_auth=no_auth,
    )
    found = settings()
    asked = Options(
        no_auth=no_auth,
        scope=scope_of(scope, found),
        hosts=listening.hosts_of(host, allow_host),
        rates=Rates(reads=reads, writes=writes),
    )
    offer = listening.offer_of(
        recall_only=plane_recall_only, retain_only=plane_retain_only, pods=pod, recall_ms=recall_ms
    )
    listening.run(
        found,
        where,
        asked,
        planes=_planes(offer),
        tell=lambda url: _tell(url, no_auth=no_auth, as_json=as_json),
    )


def _tell(url: str, *, no_auth: bool, as_json: bool) -> None:
    if as_json:
        render.line(json.dumps({"url": url, "no_auth": no_auth}))
    else:
        render.line(f"scrubjay serves {url}")
        if no_auth:
            render.say("No key is asked for: every program on this machine may use it.")
    sys.stdout.flush()


def _planes(offer: Offer) -> list[Any]:
    """The memory plane of a pod, where its token is set: without one it would ask nobody."""
    from scrubjay.surfaces.dialects.clawdapus.routes import ClawdapusPlane

    return [ClawdapusPlane(offer)] if reading.variable(TOKEN_VARIABLE) else []
