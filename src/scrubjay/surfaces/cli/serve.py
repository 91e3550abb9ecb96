"""serve: the service, until it is told to end."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.domain.errors import InvalidRequest
from scrubjay.surfaces.cli import options, render
from scrubjay.surfaces.cli.exits import Exit
from scrubjay.surfaces.cli.opening import scope_of, settings

_CERTIFICATE = "The certificate chain, PEM; TLS 1.3 is then the least it speaks."


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
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Allow plain HTTP beyond loopback.")
    ] = False,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Ask for no key; on loopback only.")
    ] = False,
    reads: Annotated[
        float, typer.Option("--reads", min=0, help="Reads a second for one key; 0: no limit.")
    ] = 200.0,
    writes: Annotated[
        float, typer.Option("--writes", min=0, help="Writes a second for one key; 0: no limit.")
    ] = 100.0,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Serve every verb over HTTP. Keys are made with `scrubjay keys create`.

    Example: scrubjay serve --port 8377
    """
    _check_installed()
    from scrubjay.surfaces.http import logs, server
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
    found = settings()
    asked = Options(
        no_auth=no_auth,
        scope=scope_of(scope, found),
        hosts=frozenset([*(allow_host or ()), *([host] if host not in _EVERYWHERE else [])]),
        rates=Rates(reads=reads, writes=writes),
        trace_content=(reading.variable(CONTENT_VARIABLE) or "").lower() == "true",
    )
    engine = bootstrap.build(found)
    try:
        made = app(engine, bootstrap.clock(), asked, planes=_planes())
        serving = server.server(made, listening)
        with server.bind(listening) as bound:
            url = listening.url(bound.getsockname()[1])
            _tell(url, no_auth=no_auth, as_json=as_json)
            logs.to_stderr()
            signal.signal(signal.SIGTERM, _end)  # the server passes it on when it is done
            serving.run(sockets=[bound])
    finally:
        engine.close()


_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  # compared with, not listened on


def _end(_number: int, _frame: object) -> None:
    """End in peace, by way of closing the engine."""
    raise SystemExit(Exit.OK)


def _tell(url: str, *, no_auth: bool, as_json: bool) -> None:
    if as_json:
        render.line(json.dumps({"url": url, "no_auth": no_auth}))
    else:
        render.line(f"scrubjay serves {url}")
        if no_auth:
            render.say("No key is asked for: every program on this machine may use it.")
    sys.stdout.flush()


def _planes() -> list[Any]:
    """The memory plane of a pod, where its token is set: without one it would ask nobody."""
    from scrubjay.surfaces.dialects.clawdapus.descriptor import TOKEN_VARIABLE, Offer
    from scrubjay.surfaces.dialects.clawdapus.routes import ClawdapusPlane

    token = reading.variable(TOKEN_VARIABLE)
    return [ClawdapusPlane(Offer(token=token))] if token else []


def _check_installed() -> None:
    from importlib.util import find_spec

    if not all(map(find_spec, ("starlette", "uvicorn", "pydantic"))):
        raise InvalidRequest(
            "The service is not installed.", hint="pip install 'scrubjay[server]' brings it."
        )
