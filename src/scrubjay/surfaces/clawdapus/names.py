"""Foreign names to ours, one to one: pods and agents to scopes, entries to turns.

All that a plane reaches is in tenants of its own, `pod.<name>`: whatever a request says its pod or
agent is, it cannot name a scope that somebody keeps for anything else.
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
"""What the name of an agent begins with that could not be taken as it is."""
_LONGEST: Final = 70
_OURS: Final = "mem-"
"""What the ids of memories begin with: no entry is to be taken for one."""


def scope_of(agent: str, pod: str = "") -> Scope:
    """Whose memory it is: an agent's, within its pod."""
    return Scope(f"{PODS}.{_scope_name(pod)}" if pod else PODS, _scope_name(agent))


def scopes_of(agent: str, scopes: Iterable[Scope]) -> list[Scope]:
    """Those of the scopes that belong to an agent of this name, in whichever pod."""
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
