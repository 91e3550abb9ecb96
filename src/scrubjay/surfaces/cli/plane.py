"""plane: the memory plane of a Clawdapus pod."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.domain.errors import InvalidRequest
from scrubjay.surfaces.cli import opening, options, render, serving
from scrubjay.surfaces.dialects.clawdapus import history
from scrubjay.surfaces.dialects.clawdapus.descriptor import TOKEN_VARIABLE, Offer

plane = typer.Typer(help="The memory plane of a Clawdapus pod.", no_args_is_help=True)
_EVERY = 500
"""After how many entries something is said of the progress."""
ReadOnly = Annotated[bool, typer.Option("--recall-only", help="Offer recall, and nothing else.")]
WriteOnly = Annotated[bool, typer.Option("--retain-only", help="Offer retain and forget alone.")]


@plane.command()
def serve(
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", envvar="PORT", min=0, max=65_535, help="The port.")
    ] = 8080,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="The service's name in the pod."),
    ] = None,
    recall_only: ReadOnly = False,
    retain_only: WriteOnly = False,
) -> None:
    """Serve the plane; the token is in SCRUBJAY_PLANE_TOKEN, and without one none is asked for.

    Example: scrubjay plane serve --host 0.0.0.0 --allow-host memory
    """
    serving.check_installed()
    from scrubjay.surfaces.dialects.clawdapus.routes import ClawdapusPlane
    from scrubjay.surfaces.http import server
    from scrubjay.surfaces.http.app import app
    from scrubjay.surfaces.http.service import Options

    offer = _offer(recall_only=recall_only, retain_only=retain_only)
    listening = server.Listening(host=host, port=port, insecure_http=True)
    asked = Options(hosts=frozenset(allow_host or ()))
    engine = bootstrap.build(opening.settings())
    try:
        made = app(engine, bootstrap.clock(), asked, planes=[ClawdapusPlane(offer)])
        answering = server.server(made, listening)
        serving.heed()
        with server.bind(listening) as bound:
            render.line(f"scrubjay serves {listening.url(bound.getsockname()[1])}")
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
    from scrubjay.surfaces import files
    from scrubjay.surfaces.dialects.clawdapus import descriptor

    offer = _offer(recall_only=recall_only, retain_only=retain_only)
    content = descriptor.render(replace(offer, token="asked for" if auth else None))
    if output is None:
        render.block(content.decode())
    else:
        files.write(output, content)


def _offer(*, recall_only: bool, retain_only: bool) -> Offer:
    return Offer(
        recall=not retain_only,
        retain=not recall_only,
        token=reading.variable(TOKEN_VARIABLE),
    )


@plane.command()
def pull(
    *,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="ID", help="Only this agent; may be repeated."),
    ] = None,
    pod: Annotated[str, typer.Option("--pod", help="The pod the agents belong to.")] = "",
    since: options.Since = None,
    as_json: options.AsJson = False,
) -> None:
    """Rebuild memory from the pod's own history; it can be repeated, and changes nothing twice.

    CLAW_HISTORY_URL, CLAW_HISTORY_TOKEN and CLAW_HISTORY_AGENT_IDS say where it is, as
    `claw up` sets them.

    Example: scrubjay plane pull --pod desk
    """
    url = reading.variable(history.URL_VARIABLE)
    named = (reading.variable(history.AGENTS_VARIABLE) or "").split(",")
    agents = agent or [one.strip() for one in named if one.strip()]
    if url is None or not agents:
        raise InvalidRequest(
            "Nothing says where the history is, or of which agents.",
            hint="Set CLAW_HISTORY_URL and CLAW_HISTORY_AGENT_IDS, as `claw up` does.",
        )
    source = history.Source(url=url, token=reading.variable(history.TOKEN_VARIABLE))
    engine = bootstrap.build(opening.settings())
    try:
        done = [
            history.pull(engine, one, source.fetch, pod=pod, after=since, progress=_progress)
            for one in agents
        ]
    finally:
        engine.close()
    _tell(done, as_json=as_json)


def _progress(pulled: history.Pulled) -> None:
    if pulled.seen % _EVERY == 0:
        render.say(f"{pulled.agent}: {pulled.seen:,} entries, up to {pulled.last}")


def _tell(done: list[history.Pulled], *, as_json: bool) -> None:
    if as_json:
        told = [asdict(one) | {"last": one.last and one.last.isoformat()} for one in done]
        render.line(json.dumps(told))
        return
    for one in done:
        render.line(
            f"{one.agent}: {one.stored:,} new, {one.known:,} known, {one.forgotten:,} forgotten, "
            f"{one.ignored:,} left out"
        )
