"""Endpoints on a network: which hosts are loopback, and which API a language model speaks."""

from __future__ import annotations

import ipaddress
from enum import StrEnum


def is_loopback(host: str) -> bool:
    """Whether a name or an address is one of this machine alone."""
    try:
        return ipaddress.ip_address(addresses(host)[0]).is_loopback
    except ValueError:
        return False


def addresses(host: str) -> tuple[str, ...]:
    """What to connect to for a host: no resolver is asked where the machine of that name is."""
    return ("127.0.0.1", "::1") if host == "localhost" else (host,)


class ModelDialect(StrEnum):
    """API of a language model."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
