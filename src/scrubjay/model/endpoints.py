"""Endpoints on a network: which hosts are loopback, and which API a language model speaks."""

from __future__ import annotations

import ipaddress
from enum import StrEnum

from scrubjay.model.errors import StoreError


def is_loopback(host: str) -> bool:
    """Whether a name or an address is one of this machine alone."""
    try:
        return ipaddress.ip_address(addresses(host)[0]).is_loopback
    except ValueError:
        return False


def addresses(host: str) -> tuple[str, ...]:
    """What to connect to for a host: no resolver is asked where the machine of that name is."""
    return ("127.0.0.1", "::1") if host == "localhost" else (host,)


def check_region(what: str, label: str, region: str) -> None:
    """StoreError if what is labeled for one region is used from another."""
    if label != region:
        raise StoreError(
            f"The {what} is labeled for region {label or 'none'!r}, this process for"
            f" {region or 'none'!r}.",
            hint="Nothing was read. Correct `region` in the settings, or the address.",
        )


class ModelDialect(StrEnum):
    """API of a language model."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
