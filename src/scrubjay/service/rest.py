"""REST mapping: method, path and HTTP properties of each verb.

A verb that is not named here is `POST /v1/<its name>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_origin

from scrubjay import codec
from scrubjay.access import Grant
from scrubjay.model.memory import IdempotencyKey
from scrubjay.model.pages import Page
from scrubjay.verbs import VERBS, Verb

MEGABYTE: Final = 1024 * 1024
MEMORIES: Final = "X-Scrubjay-Memories"
"""Header of an export: how many memories the file holds."""
_TAGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("conversations",), "conversations"),
    **dict.fromkeys(("documents",), "documents"),
    **dict.fromkeys(("recall", "memories", "memories:batch", "brief"), "memories"),
    **dict.fromkeys(("count", "follow"), "memories"),
    **dict.fromkeys(("turns", "timeline", "sessions", "extract", "extraction", "jobs"), "turns"),
    **dict.fromkeys(("forget", "revoke"), "erase"),
    **dict.fromkeys(("quarantine",), "trust"),
    **dict.fromkeys(("key", "keys"), "keys"),
}


@dataclass(frozen=True, slots=True)
class Resource:
    """Method, path and HTTP properties of a verb."""

    at: str = ""
    """Method and path, such as `get /memories/{id}`."""
    status: int = 200
    most_bytes: int = MEGABYTE
    span: str | None = None
    """The operation's name in the GenAI conventions for memory, where it has one."""
    example: Mapping[str, Any] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    """Fields that must be given over HTTP, where a repeat must not be another write."""


_TEA: Final = {"content": "Alice prefers green tea", "kind": "preference", "tags": ["drinks"]}
_TURN: Final = {
    "id": "turn-1", "user": "I prefer green tea.", "assistant": "Noted.", "session": "chat-7",
}  # fmt: skip
_CHAT: Final = {"session": "chat-7"}
_TALK: Final = {
    "conversation": "chat-7", "entries": [{"body": {"role": "user", "content": "Tea, please."}}],
}  # fmt: skip
_PAPER: Final = {"name": "notes/tea.md", "value": "Steep for three minutes."}
_ONE: Final = "/memories/{id}"
_RESOURCES: Final[Mapping[str, Resource]] = {
    "recall": Resource(
        span="search_memory", example={"query": "What does Alice drink?", "limit": 5}
    ),
    "retain": Resource("post /memories", 201, span="create_memory", example=_TEA),
    "retain_many": Resource(
        "post /memories:batch",
        most_bytes=16 * MEGABYTE,
        span="create_memory",
        example={"items": [_TEA, {"content": "Alice lives in Rome", "key": "home"}]},
    ),
    "browse": Resource("get /memories"),
    "get": Resource(f"get {_ONE}"),
    "amend": Resource(f"patch {_ONE}", span="update_memory", example={"pinned": True}),
    "forget_one": Resource(f"delete {_ONE}", span="delete_memory"),
    "count": Resource(example={"where": {"project": "apollo"}}),
    "history": Resource(f"get {_ONE}/history"),
    "lineage": Resource(f"get {_ONE}/lineage"),
    "follow": Resource("get /follow"),
    "statistics": Resource("get /statistics"),
    "inspect": Resource("get /inspect"),
    "supersede": Resource(
        f"post {_ONE}/supersede",
        201,
        span="update_memory",
        example={"content": "Alice prefers black tea"},
    ),
    "record": Resource(
        "post /turns", 201, 8 * MEGABYTE, "create_memory", _TURN, needs=frozenset({"id"})
    ),
    "turns": Resource("get /turns"),
    "timeline": Resource("get /timeline"),
    "sessions": Resource("get /sessions"),
    "brief": Resource("get /brief"),
    "append": Resource("post /conversations/append", 201, 8 * MEGABYTE, example=_TALK),
    "conversation": Resource("post /conversations/read", example={"conversation": "chat-7"}),
    "conversations": Resource("post /conversations/list", example={"limit": 20}),
    "branch": Resource(
        "post /conversations/branch", 201, example={"conversation": "chat-7", "into": "chat-8"}
    ),
    "rewind": Resource("post /conversations/rewind", example={"conversation": "chat-7", "at": 2}),
    "delete_conversation": Resource(
        "post /conversations/delete", example={"conversation": "chat-7"}
    ),
    "put": Resource("post /documents/put", 201, 8 * MEGABYTE, example=_PAPER),
    "document": Resource("post /documents/read", example={"name": "notes/tea.md"}),
    "documents": Resource("post /documents/list", example={"prefix": "notes"}),
    "move": Resource("post /documents/move", example={"name": "notes/tea.md", "to": "tea.md"}),
    "remove": Resource("post /documents/remove", example={"name": "notes/tea.md"}),
    "forget": Resource(span="delete_memory", example=_CHAT),
    "preview": Resource("post /forget/preview", example={"query": "green tea"}),
    "revoke": Resource(span="delete_memory", example=_CHAT),
    "mark_tainted": Resource("post /sessions/{session}/taint", example={"origin": "web"}),
    "quarantined": Resource("get /quarantine"),
    "approve": Resource(
        "post /quarantine/{id}/approve", example={"content": "Always answer in French"}
    ),
    "reject": Resource("post /quarantine/{id}/reject"),
    "export": Resource(example={"sealed": True, "passphrase": "three jays in one oak"}),
    "load": Resource(most_bytes=64 * MEGABYTE, example={"content": "e30="}),
    "backup": Resource(example={"days": 30}),
    "restore": Resource(most_bytes=64 * MEGABYTE, example={"content": "e30="}),
    "freeze": Resource(example={"level": "writes"}),
    "purge": Resource(example={"superseded_days": 30}),
    "retention": Resource("get /retention"),
    "set_retention": Resource(
        "post /retention",
        example={"limits": [{"kind": "fact", "number": 500}], "duplicates": "latest"},
    ),
    "extract": Resource(example={"limit": 10}),
    "extraction": Resource("get /extraction"),
    "pause_extraction": Resource("post /extraction", example={"paused": True}),
    "compact": Resource(example={"dry_run": True}),
    "work": Resource("post /jobs/work", example={"limit": 10, "kinds": ["consolidation"]}),
    "jobs": Resource("get /jobs"),
    "allow_jobs": Resource("post /jobs", example={"kinds": ["extraction", "consolidation"]}),
    "purposes": Resource("get /purposes"),
    "set_purpose": Resource("post /purposes", example={"purpose": "patterns", "on": False}),
    "hold": Resource("post /hold", example={"passphrase": "three jays in one oak"}),
    "unlock": Resource("post /unlock", example={"passphrase": "three jays in one oak"}),
    "lock": Resource("post /lock"),
    "verify_audit": Resource("post /verify/audit"),
    "verify_erased": Resource("post /verify/erased"),
    "receipts": Resource("get /receipts"),
    "audit": Resource("get /audit"),
    "scopes": Resource("get /scopes"),
    "open": Resource("post /scopes", span="create_memory_store", example={"anew": False}),
    "holdings": Resource("get /holdings"),
    "destroy_token": Resource("post /destroy/token"),
    "destroy": Resource(span="delete_memory_store", example={"confirm": "acme/alice"}),
    "own_key": Resource("get /key"),
    "list_keys": Resource("get /keys"),
    "create_key": Resource(
        "post /keys",
        201,
        example={"name": "my agent", "scopes": ["acme/alice"], "grants": ["read", "write"]},
    ),
    "revoke_key": Resource("delete /keys/{key_id}"),
}


class Operation:
    """One verb as the service offers it."""

    def __init__(self, verb: Verb[..., Any], resource: Resource) -> None:
        self.verb = verb
        self.name = verb.name
        self.grant: Grant | None = verb.grant
        self.writes, self.heavy, self.idempotent = verb.writes, verb.heavy, verb.idempotent
        method, _, path = (resource.at or f"post /{verb.name}").partition(" ")
        self.method, self.path = method.upper(), path
        self.status = resource.status
        self.most_bytes = resource.most_bytes
        self.span = resource.span
        self.example = resource.example
        self.gives = verb.gives
        self.linked = self.method == "GET" and get_origin(self.gives) is Page
        """Whether its answer is a page with a link to the next one."""
        self.in_query = self.method in {"GET", "DELETE"}
        """Whether its parameters are in the query string instead of a body."""
        self.tag = _TAGS.get(path.split("/")[1], "scope")
        """The group of operations it belongs to."""
        parts = path.split("/")
        self.path_names = tuple(part[1:-1] for part in parts if part.startswith("{"))
        """Fields in the path."""
        self.conditional = verb.conditional and bool(self.path_names)
        """Whether it needs If-Match: it changes one memory that was read before."""
        hints = codec.hints(verb.request)
        self.fields = {
            name: (hint, ... if name in resource.needs else default)
            for name, (hint, default) in codec.wanted(verb.request).items()
        }
        """All fields of its request, by type and default."""
        self.locks = self.conditional or "expected_revision" in hints or self.name == "retain"
        """Whether it has a precondition: an optimistic lock, or If-None-Match of a write."""
        self.keyed = hints.get("key") == IdempotencyKey
        """Whether its request has an idempotency key, under which a repeat changes nothing."""
        self.loose = {name: one for name, one in self.fields.items() if name not in self.path_names}
        """Fields that are not in the path."""

    @property
    def summary(self) -> str:
        """Summary: the first line of the verb's help."""
        return (self.verb.__doc__ or "").partition("\n")[0]


OPERATIONS: Final = tuple(
    Operation(verb, _RESOURCES.get(name, Resource())) for name, verb in VERBS.items()
)
BY_NAME: Final[Mapping[str, Operation]] = {one.name: one for one in OPERATIONS}
