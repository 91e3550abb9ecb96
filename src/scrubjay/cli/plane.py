"""plane: the memory plane of a Clawdapus pod."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.cli import opening, options, render
from scrubjay.cli import serve as listening
from scrubjay.cli import serve as serving
from scrubjay.cli.exits import Exit
from scrubjay.conversation.replay import PAGE, Pulled
from scrubjay.engine import Engine
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.scope import Scope
from scrubjay.surfaces.clawdapus import history, names
from scrubjay.surfaces.clawdapus.history import HistorySource

plane = typer.Typer(help="The memory plane of a Clawdapus pod.", no_args_is_help=True)
_EVERY = 500
"""After how many entries something is said of the progress."""
ReadOnly = Annotated[bool, typer.Option("--recall-only", help="Offer recall, and nothing else.")]
WriteOnly = Annotated[bool, typer.Option("--retain-only", help="Offer retain and forget alone.")]


@plane.command()
def serve(
    *,
    host: listening.Host = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", envvar="PORT", min=0, max=65_535, help="The port.")
    ] = 8080,
    allow_host: listening.AllowHost = None,
    tls_cert: listening.TlsCert = None,
    tls_key: listening.TlsKey = None,
    insecure_http: listening.InsecureHttp = False,
    reads: listening.Reads = 200.0,
    writes: listening.Writes = 100.0,
    pod: listening.Pods = None,
    recall_ms: listening.RecallMs = listening.RECALL_MS,
    recall_only: ReadOnly = False,
    retain_only: WriteOnly = False,
) -> None:
    """Serve the plane; the token is in SCRUBJAY_PLANE_TOKEN, and without one none is asked for.

    Example: scrubjay plane serve --host 0.0.0.0 --insecure-http --allow-host memory
    """
    serving.check_installed()
    from scrubjay.service import server
    from scrubjay.service.app import app
    from scrubjay.service.limits import Rates
    from scrubjay.service.service import Options
    from scrubjay.surfaces.clawdapus.routes import ClawdapusPlane

    offer = listening.offer_of(
        recall_only=recall_only, retain_only=retain_only, pods=pod, recall_ms=recall_ms
    )
    where = server.Listening(
        host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, insecure_http=insecure_http
    )
    asked = Options(
        hosts=listening.hosts_of(host, allow_host), rates=Rates(reads=reads, writes=writes)
    )
    engine = bootstrap.build(opening.settings())
    try:
        made = app(engine, bootstrap.clock(), asked, planes=[ClawdapusPlane(offer)])
        answering = server.server(made, where)
        serving.heed()
        with server.bind(where) as bound:
            render.line(f"scrubjay serves {where.url(bound.getsockname()[1])}")
            if offer.token is None:
                render.say("No token is asked for: everybody who reaches it may use it.")
            serving.until_told(answering, bound)
    finally:
        engine.close()


@plane.command()
def describe(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; else stdout.")
    ] = None,
    recall_only: ReadOnly = False,
    retain_only: WriteOnly = False,
    auth: Annotated[
        bool, typer.Option("--auth/--no-auth", help="Whether agents bring a token.")
    ] = True,
) -> None:
    """Write the descriptor that belongs at the root of the image.

    Example: scrubjay plane describe -o .claw-describe.json
    """
    from scrubjay import files
    from scrubjay.surfaces.clawdapus import descriptor

    offer = listening.offer_of(
        recall_only=recall_only, retain_only=retain_only, recall_ms=listening.RECALL_MS
    )
    content = descriptor.render(replace(offer, token="asked for" if auth else None))
    if output is None:
        render.block(content.decode())
    else:
        files.write(output, content)


@plane.command()
def pull(
    *,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="ID", help="Only this agent; may be repeated."),
    ] = None,
    pod: Annotated[
        list[str] | None,
        typer.Option(
            "--pod",
            metavar="NAME",
            envvar=listening.PODS_VARIABLE,
            help="The pod the agents belong to; needed where no turn of theirs is known yet.",
        ),
    ] = None,
    since: options.Since = None,
    as_json: options.AsJson = False,
) -> None:
    """Rebuild memory from the pod's own history; it can be repeated, and changes nothing twice.

    CLAW_HISTORY_URL, CLAW_HISTORY_TOKEN and CLAW_HISTORY_AGENT_IDS say where it is, as
    `claw up` sets them. What goes wrong with one agent is told at the end.

    Example: scrubjay plane pull --pod desk
    """
    serving.check_installed()
    url = reading.variable(history.URL_VARIABLE)
    named = (reading.variable(history.AGENTS_VARIABLE) or "").split(",")
    agents = agent or [one.strip() for one in named if one.strip()]
    if url is None or not agents:
        raise InvalidRequest(
            "Nothing says where the history is, or of which agents.",
            hint="Set CLAW_HISTORY_URL and CLAW_HISTORY_AGENT_IDS, as `claw up` does.",
        )
    source = HistorySource(url=url, token=reading.variable(history.TOKEN_VARIABLE))
    engine = bootstrap.build(opening.settings())
    try:
        done = [_pull(engine, one, source, pods=pod or (), since=since) for one in agents]
    finally:
        engine.close()
    _tell(done, as_json=as_json)
    if not all(one.whole for one in done):
        raise typer.Exit(Exit.FAILURE)


def _pull(
    engine: Engine,
    agent: str,
    source: HistorySource,
    *,
    pods: Sequence[str],
    since: datetime | None,
) -> Pulled:
    try:
        scope = _scope(engine, agent, pods)
    except InvalidRequest as error:
        return Pulled(agent, error=f"{error.message} {error.hint}")
    return history.pull(engine, agent, source.fetch, scope=scope, after=since, progress=_progress)


def _scope(engine: Engine, agent: str, pods: Sequence[str]) -> Scope:
    """Where the turns of an agent go: to its pod, as it is named, or else as it is known here."""
    if len(pods) == 1:
        return names.scope_of(agent, pods[0])
    known = names.scopes_of(agent, engine.scopes())
    if pods:
        known = [names.scope_of(agent, pod) for pod in pods if names.scope_of(agent, pod) in known]
    if len(known) != 1:
        told = "in more than one pod" if known else "in no pod yet"
        raise InvalidRequest(
            f"The agent {agent} is known {told}.",
            hint=f"Say which it belongs to: --pod NAME, or {listening.PODS_VARIABLE}.",
        )
    return known[0]


def _progress(pulled: Pulled) -> None:
    if pulled.seen % _EVERY == 0:
        render.say(f"{pulled.agent}: {pulled.seen:,} entries, up to {pulled.last}")


def _tell(done: list[Pulled], *, as_json: bool) -> None:
    if as_json:
        told = [
            asdict(one)
            | {
                "last": one.last and one.last.isoformat(),
                "crowded": [time.isoformat() for time in one.crowded],
                "whole": one.whole,
            }
            for one in done
        ]
        render.line(json.dumps(told))
        return
    for one in done:
        render.line(
            f"{one.agent}: {one.stored:,} new, {one.known:,} known, {one.forgotten:,} forgotten, "
            f"{one.ignored:,} left out" + (f", {one.overlong:,} too long" * bool(one.overlong))
        )
        for time in one.crowded:
            render.say(
                f"{one.agent}: the history gives no more than {PAGE:,} lines of one "
                f"second, {time:%Y-%m-%d %H:%M:%S}; `claw memory backfill` has them all."
            )
        if one.error:
            render.say(f"{one.agent}: broken off, {one.error}")
