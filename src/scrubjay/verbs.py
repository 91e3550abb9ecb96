"""The table of verbs: HTTP routes, the OpenAPI document and the client are loops over it.

What a verb takes and gives is read from its own signature; the table adds only what a signature
cannot say: where it is found, which grant it needs, and how it may be repeated.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from msgspec import Meta
from msgspec.structs import fields

from scrubjay import access as keyring
from scrubjay import codec, guarded
from scrubjay.access import Grant, Key, Keys
from scrubjay.engine import Engine
from scrubjay.engine.search.shelf import Short
from scrubjay.model.origin import Actor
from scrubjay.model.scope import Scope

MEGABYTE: Final = 1024 * 1024
INJECTED: Final = frozenset({"scope", "actor", "holder", "keys"})
LOCAL: Final = frozenset({"progress", "deliver"})
"""What only a caller in the same process can give."""
UNSPOKEN: Final = frozenset({"actor", "allowances", "also", "expected", "local", "turns_only"})
"""What the key decides, or the surface, and no field of a request says."""
BELOW: Final = "before_number"
"""The parameter of a page for who knows the number of the last memory it has."""
HELP: Final[Mapping[str, str]] = {
    "id": "The id of the memory.",
    "as_of": "The time to look from: the memory as it was then.",
    "after": "How many to skip from the beginning of the list.",
    "limit": "The most to answer with.",
    "session": "The session (conversation).",
    "before": "Only turns before this time.",
    "before_id": "The id of the last turn of the answer before this one.",
    "origin": "The channel the text came in by; it decides trust.",
    "content": "The exact text, or the file in base64.",
    "sealed": "Whether to encrypt the file under a new key.",
    "key": "The key of a sealed file.",
    "days": "How many days the key of the backup is kept.",
    "anew": "Whether to begin again a scope that was destroyed.",
    "level": "How much to stop: none, writes, or all.",
    "superseded_days": "For how many days superseded memories stay.",
    "seconds": "How long it may take.",
    "again": "Whether to read turns again that were read before.",
    "paused": "Whether to stop sending turns to the model.",
    "receipt": "The receipt of the erasure to prove.",
    "confirm": "The full name of the scope.",
    "name": "A name for people to know the key by.",
    "scopes": "The scopes the key covers: tenant/owner, or tenant/*.",
    "grants": "What the key allows.",
    "as_actor": "The actor that the key acts as.",
    "expires_at": "When the key expires.",
    "key_id": "The id of the key.",
    "cursor": "The cursor of the page before this one.",
    "before_number": "Only memories created before the one with this number.",
}
"""The help of parameters that are no field of a request, by name; requests say their own."""
_TAGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("recall", "memories", "brief"), "memories"),
    **dict.fromkeys(("turns", "timeline", "sessions", "extract", "extraction"), "turns"),
    **dict.fromkeys(("forget", "revoke"), "erase"),
    **dict.fromkeys(("quarantine",), "trust"),
    **dict.fromkeys(("key", "keys"), "keys"),
}
WIRE_NAMES: Final = {"public_id": "id", "raw": "content"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing a verb is told."""

    name: str
    """As on the wire."""
    hint: Any
    default: Any = ...
    """`...` where it is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who asks, about what; what a verb is given beside its parameters."""

    engine: Engine
    keys: Keys
    holder: Key
    scope: Scope

    @property
    def actor(self) -> Actor:
        """Who acts: the key says so, never the request."""
        return self.holder.actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One verb as a service offers it."""

    name: str
    """The verb; the engine's own name where it has one."""
    verb: Callable[..., Any]
    method: str
    path: str
    grant: Grant | None
    """What the key must have been made for; None where any key will do."""
    summary: str
    writes: bool = False
    """Whether it changes anything: then it is never abandoned."""
    idempotent: bool = False
    """Whether doing it twice does no more than once."""
    heavy: bool = False
    """Whether it goes over a whole scope."""
    creates: bool = False
    """Whether it makes the scope if it is not there."""
    conditional: bool = False
    """Whether it needs If-Match: it changes one memory that was read before."""
    paged: bool = False
    """Whether its answer is a page, and the next one is asked for by a signed cursor."""
    beyond: bool = False
    """Whether it works on a scope that was destroyed."""
    status: int = 200
    most_bytes: int = MEGABYTE
    span: str | None = None
    """The operation's name in the GenAI conventions for memory, where it has one."""
    example: Mapping[str, Any] = field(default_factory=dict, hash=False)
    scoped: bool = True
    at_once: Callable[[Engine, Scope, Mapping[str, Any]], Short | None] | None = None
    """What to ask instead of the engine where a request is so short a matter now that no thread
    is worth its while; None where it is not."""
    request: Any = field(init=False)
    """The class of the verb's request, if it takes one."""
    parameters: tuple[Parameter, ...] = field(init=False)
    gives: Any = field(init=False)
    injected: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        known = codec.hints(self.verb)
        signature = inspect.signature(self.verb).parameters
        named = list(signature.values())[1:]
        request = known.get("request")
        parameters = [
            one for parameter in named for one in _expanded(parameter, known[parameter.name])
        ]
        for name, value in (
            ("request", request if codec.is_struct(request) else None),
            ("parameters", tuple(parameters)),
            ("gives", known["return"]),
            ("injected", INJECTED & set(signature)),
        ):
            object.__setattr__(self, name, value)

    @property
    def path_names(self) -> tuple[str, ...]:
        """The parameters that stand in the path."""
        parts = self.path.split("/")
        return tuple(part[1:-1] for part in parts if part.startswith("{"))

    @property
    def in_query(self) -> bool:
        """Whether its other parameters stand in the query rather than in a body."""
        return self.method in {"GET", "DELETE"}

    @property
    def loose(self) -> dict[str, tuple[Any, Any]]:
        """Its parameters that do not stand in the path, by type and default."""
        found = {
            one.name: (one.hint, one.default)
            for one in self.parameters
            if one.name not in self.path_names
        }
        if self.paged:
            found["cursor"] = (described("cursor", str | None), None)
            found[BELOW] = (described(BELOW, int | None), None)
        return found

    @property
    def tag(self) -> str:
        """The group of operations it belongs to."""
        return _TAGS.get(self.path.split("/")[1], "scope")

    @property
    def keyed(self) -> bool:
        """Whether its request has an idempotency key, under which a repeat changes nothing."""
        return self.request is not None and any(one.name == "key" for one in fields(self.request))

    def perform(self, call: Call, values: Mapping[str, Any]) -> Any:
        """Do it: the verb with these values, and what it is given beside them."""
        given = {name: values[wire_name] for name, wire_name in self._names(values)}
        given.update({name: getattr(call, name) for name in self.injected})
        if self.request is not None:
            given["request"] = self._ask(call, values)
        return self.verb(call.engine, **given)

    def _names(self, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        if self.request is not None:
            return []
        known = list(inspect.signature(self.verb).parameters)
        pairs = [(name, WIRE_NAMES.get(name, name)) for name in known]
        return [pair for pair in pairs if pair[1] in values]

    def _ask(self, call: Call, values: Mapping[str, Any]) -> Any:
        known = {one.name for one in fields(self.request)}
        given = dict(values)
        if "origin" in known:
            given["origin"] = keyring.lowered(call.holder, given.get("origin"))
        if "actor" in known:
            given["actor"] = call.actor
        return self.request(**given)


def _expanded(parameter: inspect.Parameter, hint: Any) -> list[Parameter]:
    """A parameter of the verb as those of the wire; a request as each of its fields."""
    if parameter.name in INJECTED | LOCAL | UNSPOKEN:
        return []
    if parameter.name == "request":
        known = codec.hints(hint)
        return [
            Parameter(one.name, known[one.name], codec.default_of(one))
            for one in fields(hint)
            if one.name not in UNSPOKEN
        ]
    name = WIRE_NAMES.get(parameter.name, parameter.name)
    hint = described(name, hint)
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return [Parameter(name, hint, default)]


def described(name: str, hint: Any) -> Any:
    """The type of a parameter, with its help."""
    return Annotated[hint, Meta(description=HELP[name])]


_TEA: Final = {"content": "Alice prefers green tea", "kind": "preference", "tags": ["drinks"]}
_TURN: Final = {
    "id": "turn-1", "user": "I prefer green tea.", "assistant": "Noted.", "session": "chat-7",
}  # fmt: skip
_ONE: Final = "/memories/{id}"


def _read(name: str, verb: Callable[..., Any], at: str, summary: str, **more: Any) -> Operation:
    method, _, path = at.partition(" ")
    settled: dict[str, Any] = {"grant": Grant.READ, "idempotent": True, **more}
    return Operation(
        name=name, verb=verb, method=method.upper(), path=path, summary=summary, **settled
    )


def _write(name: str, verb: Callable[..., Any], at: str, summary: str, **more: Any) -> Operation:
    method, _, path = at.partition(" ")
    settled: dict[str, Any] = {"grant": Grant.WRITE, "writes": True, **more}
    return Operation(
        name=name, verb=verb, method=method.upper(), path=path, summary=summary, **settled
    )


OPERATIONS: Final = (
    _read(
        "recall", guarded.recall, "post /recall", "The memories that answer a question.",
        span="search_memory", example={"query": "What does Alice drink?", "limit": 5},
        at_once=guarded.recall_at_once,
    ),
    _write(
        "retain", Engine.retain, "post /memories", "Write a memory.", creates=True, status=201,
        span="create_memory", example=_TEA,
    ),
    _read("browse", Engine.browse, "get /memories", "Memories, newest first.", paged=True),
    _read("get", Engine.get, f"get {_ONE}", "One memory by id."),
    _write(
        "amend", Engine.amend, f"patch {_ONE}", "Pin, unpin, or set when it expires.",
        conditional=True, idempotent=True, span="update_memory", example={"pinned": True},
    ),
    _write(
        "forget_one", guarded.forget_one, f"delete {_ONE}", "Erase one memory for good.",
        grant=Grant.FORGET, conditional=True, idempotent=True, span="delete_memory",
    ),
    _read("history", guarded.history, f"get {_ONE}/history", "The chain of its versions."),
    _write(
        "supersede", Engine.supersede, f"post {_ONE}/supersede", "Replace a memory.",
        status=201, span="update_memory", example={"content": "Alice prefers black tea"},
    ),
    _write(
        "record", Engine.record, "post /turns", "Write a turn, and what follows from it.",
        creates=True, idempotent=True, status=201, most_bytes=8 * MEGABYTE,
        span="create_memory", example=_TURN,
    ),
    _read("turns", Engine.turns, "get /turns", "Turns as they happened, newest first."),
    _read("timeline", Engine.timeline, "get /timeline", "When there were turns, what about."),
    _read("sessions", Engine.sessions, "get /sessions", "The sessions, newest first."),
    _read("brief", Engine.brief, "get /brief", "What to know before the first word."),
    _write(
        "forget", Engine.forget, "post /forget", "Erase memories for good.",
        grant=Grant.FORGET, idempotent=True, span="delete_memory", example={"session": "chat-7"},
    ),
    _read(
        "preview", Engine.preview, "post /forget/preview", "What a forget would erase.",
        grant=Grant.FORGET, example={"query": "green tea"},
    ),
    _write(
        "revoke", Engine.revoke, "post /revoke", "Undo what a session or channel wrote.",
        grant=Grant.FORGET, idempotent=True, span="delete_memory", example={"session": "chat-7"},
    ),
    _write(
        "mark_tainted", Engine.mark_tainted, "post /sessions/{session}/taint",
        "Say that a session has read something nobody vouches for.", idempotent=True,
        example={"origin": "web"},
    ),
    _read("quarantined", guarded.quarantined, "get /quarantine", "What waits for a human."),
    _write(
        "approve", Engine.approve, "post /quarantine/{id}/approve", "Let a memory out.",
        idempotent=True, example={"content": "Always answer in French"},
    ),
    _write(
        "reject", Engine.reject, "post /quarantine/{id}/reject", "Erase what waits.",
        grant=Grant.FORGET,
    ),
    _read(
        "export", Engine.export, "post /export", "Every memory as a file.",
        grant=Grant.EXPORT, heavy=True, example={"sealed": False},
    ),
    _write(
        "load", guarded.load, "post /load", "Add what an export holds.", grant=Grant.ADMIN,
        heavy=True, creates=True, idempotent=True, most_bytes=64 * MEGABYTE,
        example={"content": "e30="},
    ),
    _write(
        "backup", Engine.backup, "post /backup", "A sealed copy under its own key.",
        grant=Grant.EXPORT, heavy=True, example={"days": 30},
    ),
    _write(
        "restore", guarded.restore, "post /restore", "Merge a backup.", grant=Grant.ADMIN,
        heavy=True, beyond=True, idempotent=True, most_bytes=64 * MEGABYTE,
        example={"content": "e30="},
    ),
    _write(
        "freeze", Engine.freeze, "post /freeze", "Stop writes, or recall as well.",
        grant=Grant.ADMIN, idempotent=True, example={"level": "writes"},
    ),
    _write(
        "purge", Engine.purge, "post /purge", "Clean up what is over.", grant=Grant.ADMIN,
        heavy=True, idempotent=True, example={"superseded_days": 30},
    ),
    _write(
        "rotate", Engine.rotate, "post /rotate", "Seal everything under new keys.",
        grant=Grant.ADMIN, heavy=True,
    ),
    _write(
        "reindex", Engine.reindex, "post /reindex", "Make the index again.", grant=Grant.ADMIN,
        heavy=True, idempotent=True,
    ),
    _write(
        "extract", guarded.extract, "post /extract", "Have the model read turns that wait.",
        grant=Grant.ADMIN, heavy=True, example={"limit": 10},
    ),
    _read(
        "extraction", Engine.extraction, "get /extraction", "How far the model has come.",
        grant=Grant.ADMIN,
    ),
    _write(
        "pause_extraction", Engine.pause_extraction, "post /extraction",
        "Send no turns to the model, or go on.", grant=Grant.ADMIN, idempotent=True,
        example={"paused": True},
    ),
    _read(
        "verify", Engine.verify, "post /verify", "Check everything.", grant=Grant.ADMIN,
        heavy=True,
    ),
    _read(
        "verify_audit", Engine.verify_audit, "post /verify/audit", "Check the audit trail.",
        grant=Grant.ADMIN, heavy=True,
    ),
    _read(
        "verify_erased", guarded.verify_erased, "post /verify/erased", "Prove an erasure.",
        grant=Grant.ADMIN, heavy=True, beyond=True,
    ),
    _read(
        "receipts", guarded.kept_receipts, "get /receipts", "The receipts of what was erased.",
        beyond=True,
    ),
    _read("audit", guarded.audit, "get /audit", "Who did what when.", grant=Grant.ADMIN),
    _read("scopes", guarded.scopes, "get /scopes", "The scopes the key covers.", scoped=False),
    _write(
        "open", guarded.open_scope, "post /scopes", "Make the scope unless it is there.",
        beyond=True, idempotent=True, span="create_memory_store", example={"anew": False},
    ),
    _write(
        "destroy", guarded.destroy, "post /destroy", "Erase the whole scope, its keys first.",
        grant=Grant.ADMIN, heavy=True, beyond=True, idempotent=True, span="delete_memory_store",
        example={"confirm": "acme/alice"},
    ),
    _read("own_key", guarded.own_key, "get /key", "What the key allows.", grant=None, scoped=False),
    _read(
        "list_keys", guarded.list_keys, "get /keys", "The keys within this one.",
        grant=Grant.ADMIN, scoped=False,
    ),
    _write(
        "create_key", guarded.create_key, "post /keys", "Make a key; its token is shown once.",
        grant=Grant.ADMIN, scoped=False, status=201,
        example={"name": "my agent", "scopes": ["acme/alice"], "grants": ["read", "write"]},
    ),
    _write(
        "revoke_key", guarded.revoke_key, "delete /keys/{key_id}", "Take a key back.",
        grant=Grant.ADMIN, scoped=False, idempotent=True,
    ),
)  # fmt: skip
BY_NAME: Final[Mapping[str, Operation]] = {one.name: one for one in OPERATIONS}
