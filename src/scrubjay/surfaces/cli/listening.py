"""What `serve` and `plane serve` share: where they listen, and the run itself."""

from __future__ import annotations

import ipaddress
import signal
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.domain.errors import InvalidRequest
from scrubjay.settings import Settings
from scrubjay.surfaces.cli.exits import Exit
from scrubjay.surfaces.dialects.clawdapus.descriptor import RECALL_SECONDS, TOKEN_VARIABLE, Offer

if TYPE_CHECKING:
    from scrubjay.surfaces.http.server import Listening
    from scrubjay.surfaces.http.service import Options

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


def check_installed() -> None:
    """Refuse where what a service needs is not installed."""
    if not all(map(find_spec, ("starlette", "uvicorn", "pydantic"))):
        raise InvalidRequest(
            "The service is not installed.", hint="pip install 'scrubjay[server]' brings it."
        )


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
) -> Offer:
    """What the plane offers, with the token of the environment."""
    return Offer(
        recall=not retain_only,
        retain=not recall_only,
        token=reading.variable(TOKEN_VARIABLE),
        pods=frozenset(pods) if pods else None,
        recall_seconds=recall_ms / 1000,
    )


def run(
    settings: Settings,
    listening: Listening,
    options: Options,
    *,
    planes: Sequence[Any],
    tell: Callable[[str], None],
) -> None:
    """Serve until it is told to end; `tell` says where, once the socket listens."""
    from scrubjay.surfaces.http import logs, server
    from scrubjay.surfaces.http.app import app

    engine = bootstrap.build(settings)
    try:
        made = app(engine, bootstrap.clock(), options, planes=planes)
        with server.bind(listening) as bound:
            tell(listening.url(bound.getsockname()[1]))
            logs.to_stderr()
            signal.signal(signal.SIGTERM, _end)  # the server passes it on when it is done
            server.server(made, listening).run(sockets=[bound])
    finally:
        engine.close()


def _end(_number: int, _frame: object) -> None:
    """End in peace, by way of closing the engine."""
    raise SystemExit(Exit.OK)
