"""One-to-one mapping of names: pods and agents to scopes, entries to turns.

A plane reaches only tenants of its own, `pod.<name>`: whatever pod or agent a request names, it
cannot name another scope.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Final

from scrubjay.access import PODS
from scrubjay.model.scope import Scope

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,123}")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
_ESCAPE: Final = "x--"
"""Prefix of the encoded name of an agent."""
_LONGEST: Final = 70
_OURS: Final = "mem-"
"""Prefix of the ids of memories: no entry id may have it."""


def scope_of(agent: str, pod: str = "") -> Scope:
    """The scope of an agent in its pod."""
    return Scope(f"{PODS}.{_scope_name(pod)}" if pod else PODS, _scope_name(agent))


def scopes_of(agent: str, scopes: Iterable[Scope]) -> list[Scope]:
    """The scopes of agents of this name, in any pod."""
    name = _scope_name(agent)
    return [
        one
        for one in scopes
        if one.owner == name and (one.tenant == PODS or one.tenant.startswith(f"{PODS}."))
    ]


def _scope_name(name: str) -> str:
    return name if _is_plain(name, _NAME) else _escaped(name)


def turn_id(entry_id: str) -> str:
    """The id of the turn an entry of the history becomes."""
    is_plain = _is_plain(entry_id, _ID) and not entry_id.startswith(_OURS)
    return entry_id if is_plain else _escaped(entry_id)


def _is_plain(name: str, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.fullmatch(name)) and not name.startswith(_ESCAPE)


def _escaped(name: str) -> str:
    """A valid name that no other name has: spelled out if it is short, else its digest."""
    raw = name.encode("utf-8", "surrogatepass")
    if len(raw) <= _LONGEST:
        return f"{_ESCAPE}{base64.b32encode(raw).decode().rstrip('=').lower()}"
    return f"{_ESCAPE}0{hashlib.sha256(raw).hexdigest()}"
