"""Endpoints on a network: which hosts are loopback, and which API a language model speaks."""

from __future__ import annotations

import ipaddress
from enum import StrEnum


def is_loopback(host: str) -> bool:
    """Whether a name or an address is one of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ModelDialect(StrEnum):
    """API of a language model."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
