"""Sessions: one sealed row each, with the taint and the used allowances.

An agent that has read a web page may repeat instructions of the page. So once a host marks a
session as tainted, everything that the *agent* infers in it gets the origin of what it read. The
user's own words stay the user's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.views import living
from scrubjay.model import echo
from scrubjay.model.errors import LimitReached
from scrubjay.model.memory import Json
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.requests import Allowance
from scrubjay.model.rows import Collection
from scrubjay.ports import Tx, View

_IDLE_SECONDS: Final = 24 * 3600
_SHOWN: Final = 500
"""Of how many sentences that were shown a session keeps the hashes."""


def mark_tainted(
    opened: OpenScope, session: str, origin: Origin = Origin.WEB, *, actor: Actor
) -> Origin:
    """Taint a session: it has read text of this origin; returns the least trusted one so far.

    Also in a frozen scope: what the session writes later must not be trusted more.
    """
    return opened.write(lambda tx: taint(opened, tx, session, origin, actor=actor), frozen_too=True)


def taint(opened: OpenScope, tx: Tx, session: str, origin: Origin, *, actor: Actor) -> Origin:
    """Taint a session in a transaction; returns the least trusted origin it has read.

    Trusted text taints nothing.
    """
    state = _state(opened, tx, session)
    seen = lowest([origin, Origin(str(state.get("tainted", origin.value)))])
    if not seen.trusted and state.get("tainted") != seen.value:
        _write(opened, tx, session, {**state, "tainted": seen.value})
        opened.trail.record(tx, f"taint.{seen.value}", actor)
    return seen


def note_resumed(
    opened: OpenScope, session: str | None, origins: Iterable[Origin], *, actor: Actor
) -> None:
    """Taint a session that was given stored text to go on with, if some of it is untrusted.

    Also in a frozen scope: what the session writes later must not be trusted more.
    """
    untrusted = [origin for origin in origins if not origin.trusted]
    if session is None or not untrusted:
        return
    least = lowest(untrusted)
    seen = opened.read(lambda view: tainted(opened, view, session))
    if seen is None or seen.trust > least.trust:
        opened.write(lambda tx: taint(opened, tx, session, least, actor=actor), frozen_too=True)


def trusted(opened: OpenScope, view: View, session: str | None, origin: Origin) -> Origin:
    """Origin of a write in a session: if no person wrote it, at most that of what was read."""
    if session is None or origin in (Origin.USER, Origin.OPERATOR):
        return origin
    read = tainted(opened, view, session)
    return origin if read is None else lowest([origin, read])


def tainted(opened: OpenScope, view: View, session: str) -> Origin | None:
    """Least trusted origin that a session has read; None if it is not tainted."""
    found = _state(opened, view, session).get("tainted")
    return None if found is None else Origin(str(found))


def shown_before(
    opened: OpenScope, view: View, session: str | None
) -> Callable[[str], bool] | None:
    """Whether a sentence in plain words was shown to the model before; None if none was."""
    state = {} if session is None else _state(opened, view, session)
    hashes = frozenset(cast(list[str], state.get("shown", [])))
    return (lambda plain: _text_hash(opened, plain) in hashes) if hashes else None


def note_shown(opened: OpenScope, tx: Tx, session: str | None, shown: Iterable[str]) -> None:
    """Keep keyed hashes of what memory put before the model in a session, and no text of it."""
    hashes = [_text_hash(opened, plain) for plain in echo.shown_sentences(shown)]
    if session is not None and hashes:
        state = _state(opened, tx, session)
        known = dict.fromkeys((*cast(list[str], state.get("shown", [])), *hashes))
        latest = list(known)[-_SHOWN:]
        _write(opened, tx, session, {**state, "shown": cast(Json, latest)})


def _text_hash(opened: OpenScope, plain: str) -> str:
    # No session has such a name, so that it cannot be taken for one.
    return opened.session_hash(f"\0shown\0{plain}")[:8].hex()


def spend(opened: OpenScope, tx: Tx, allowances: Iterable[Allowance]) -> None:
    """Count a success against the allowances, in its own transaction; LimitReached if used up.

    The counts of a session that was idle for a day are reset.
    """
    states: dict[str, dict[str, Json]] = {}
    for allowance in allowances:
        now, name = int(opened.ports.clock.now().timestamp()), allowance.session
        state = states[name] if name in states else _state(opened, tx, name)
        idle = now - int(str(state.get("spent_at", now))) >= _IDLE_SECONDS
        spent = dict(cast(dict[str, Json], state.get("spent", {}))) if not idle else {}
        used = int(str(spent.get(allowance.name, 0)))
        if used >= allowance.limit:
            raise LimitReached(
                f"This session has used up its {allowance.limit} {allowance.name}.",
                hint="Begin a new session, or wait a day.",
            )
        spent[allowance.name] = used + 1
        states[name] = {**state, "spent": spent, "spent_at": now}
    for session, state in states.items():
        _write(opened, tx, session, state)


def spent(opened: OpenScope, session: str) -> Mapping[str, int]:
    """Usage of a session: the number of calls of each counted operation."""
    state = opened.read(lambda view: _state(opened, view, session))
    found = cast(dict[str, Json], state.get("spent", {}))
    return {name: int(str(count)) for name, count in found.items()}


def _state(opened: OpenScope, view: View, session: str) -> dict[str, Json]:
    row = living(view, Collection.SESSION, opened.session_hash(session))
    return json.loads(opened.open_body(Collection.SESSION, row)) if row else {}


def _write(opened: OpenScope, tx: Tx, session: str, state: Mapping[str, Json]) -> None:
    body = json.dumps(state).encode()
    opened.put_body(tx, Collection.SESSION, opened.session_hash(session), body)
