"""The options of `serve` and `plane serve`: where they listen, and what the plane offers."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from scrubjay import settings as reading
from scrubjay.surfaces.dialects.clawdapus.descriptor import RECALL_SECONDS, TOKEN_VARIABLE, Offer

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
) -> Offer:
    """What the plane offers, with the token of the environment."""
    return Offer(
        recall=not retain_only,
        retain=not recall_only,
        token=reading.variable(TOKEN_VARIABLE),
        pods=frozenset(pods) if pods else None,
        recall_seconds=recall_ms / 1000,
    )
