"""Foreign names to ours, one to one: pods and agents to scopes, entries to turns."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

from scrubjay.domain.scope import LOCAL_TENANT, Scope

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_ESCAPE: Final = "x--"
"""What the name of an agent begins with that could not be taken as it is."""
_LONGEST: Final = 70
_RESERVED: Final = frozenset({LOCAL_TENANT, "system"})
"""Tenants that mean something here: an agent without a pod, and the installation itself."""


def scope_of(agent: str, pod: str = "") -> Scope:
    """Whose memory it is: an agent's, within its pod."""
    if pod in _RESERVED:
        return Scope(_escaped(pod), _scope_name(agent))
    return Scope(_scope_name(pod) if pod else LOCAL_TENANT, _scope_name(agent))


def _scope_name(name: str) -> str:
    return name if _is_plain(name, _NAME) else _escaped(name)


def turn_id(entry_id: str) -> str:
    """The id of the turn an entry of the history becomes."""
    return entry_id if _is_plain(entry_id, _ID) else _escaped(entry_id)


def _is_plain(name: str, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.fullmatch(name)) and not name.startswith(_ESCAPE)


def _escaped(name: str) -> str:
    """A valid name that no other name has: spelled out if it is short, else its digest."""
    raw = name.encode("utf-8", "surrogatepass")
    if len(raw) <= _LONGEST:
        return f"{_ESCAPE}{base64.b32encode(raw).decode().rstrip('=').lower()}"
    return f"{_ESCAPE}0{hashlib.sha256(raw).hexdigest()}"
