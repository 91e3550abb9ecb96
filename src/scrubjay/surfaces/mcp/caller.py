"""Who calls over MCP: an agent, in the session that its client names, if it names one.

What a model stores is never the owner's own word, whatever key it came by. Nor is it trusted where
nobody watches over what the model has read: a host that names a session in our own words can mark
it as tainted; without one, what tells agents how to act waits in quarantine for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from scrubjay.access import Access, Grant, Key
from scrubjay.conversation.orders import ordering
from scrubjay.conversation.secrecy import harmless, holds_secret
from scrubjay.conversation.taint import shown, tainting
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Actor, Origin, lowest
from scrubjay.model.scope import Scope
from scrubjay.verbs import VERBS, perform

SESSION: Final = "scrubjay/session"
"""The key in `_meta` of a request by which a client names its session."""
ANSWER_SECONDS: Final = 300.0
"""How long a message may be open at most, for a person to answer a question that it brings."""
_TURN: Final = "x-codex-turn-metadata"
"""The key by which Codex does, as `session_id` of an object. It tells nobody what it has read."""


_QUARANTINED: Final = (
    "It tells agents how to act, and no host vouches for the session: a person has to approve it "
    "(`scrubjay quarantine`) before it is in any brief."
)


def session_of(meta: Mapping[str, Any] | None) -> str | None:
    """The client session that the metadata of a request names, which no model writes."""
    found = meta or {}
    turn = found.get(_TURN)
    named = found.get(SESSION) or (turn.get("session_id") if isinstance(turn, dict) else None)
    return harmless(named) if isinstance(named, str) and named else None


def as_agent(holder: Key) -> Key:
    """The key with the actor and the origin of an agent, or a less trusted origin if it has one."""
    return replace(holder, actor=Actor.AGENT, origin=lowest((holder.origin, Origin.AGENT)))


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one)


class AgentCaller:
    """The verbs on one scope, as an agent calls them in a client session."""

    def __init__(
        self,
        access: Access,
        scope: Scope,
        meta: Mapping[str, Any] | None,
        *,
        ready: Callable[..., object],
    ) -> None:
        self._access = access
        self._scope = scope
        self._ready = ready
        self.session = session_of(meta)
        self._vouched = self.session is not None and bool((meta or {}).get(SESSION))
        self.scope_missing = False
        """Whether a verb found no scope: nothing was ever stored in it."""
        self.note = ""
        """What its model is to be told beside the result."""

    def do(self, name: str, **fields: Any) -> Any:
        """Perform a verb; NotFound if it needs a scope that does not exist."""
        verb = VERBS[name]
        if isinstance(session := fields.get("session"), str):
            fields["session"] = harmless(session)
        if isinstance(key := fields.get("key"), str) and holds_secret(key):
            raise InvalidRequest(
                "The key holds a secret.", hint="Choose one that says nothing, such as a UUID."
            )
        self._access.check_covered(self._scope, verb.grant)
        # A session may be tainted before anything is stored: what it stores first must know.
        try:
            self._ready(self._scope, create=verb.creates or name == "mark_tainted")
        except NotFound:
            self.scope_missing = True
            raise
        result = perform(self._access, verb, self._scope, fields)
        # A session is tainted by the untrusted memories that its model is given, by whatever verb.
        origin = None if self.session is None else tainting(shown(result))
        if origin is not None and Grant.WRITE in self._access.holder.granted(self._scope):
            self.do("mark_tainted", session=self.session, origin=origin)
        return result

    def store(self, **fields: Any) -> Any:
        """Store a memory of an agent in its session; no order is trusted where nobody vouches."""
        terms = self._terms(fields, Kind(fields.get("kind") or Kind.FACT))
        return self.do("retain", **(fields | terms))

    def update(self, **fields: Any) -> Any:
        """Replace a memory by a new text, under the same terms.

        The new text is trusted no more than the old one: else a second call would do what only a
        person may, release a memory from quarantine.
        """
        old: Memory = self.do("get", id=fields["id"])
        terms = self._terms(fields, Kind(fields.get("kind") or old.kind))
        if not old.origin.trusted:
            origins = (old.origin, terms.get("origin", self._access.holder.origin))
            terms["origin"] = lowest(one for one in origins if one is not None)
        return self.do("supersede", **(fields | terms))

    def _terms(self, fields: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
        """Fields of a write that the caller does not choose."""
        terms: dict[str, Any] = {} if self.session is None else {"session": self.session}
        if self._vouched:
            return terms
        if not kind.behavioral:
            # A model is given a memory with all its fields.
            found = (ordering(text, self._access.kind_of) for text in _texts([*fields.values()]))
            read = next((one for one in found if one is not None), None)
            if read is None:
                return terms
            kind = read
        self.note = _QUARANTINED
        origin = lowest((self._access.holder.origin, Origin.OTHER_AGENT))
        return terms | {"origin": origin, "kind": kind}
