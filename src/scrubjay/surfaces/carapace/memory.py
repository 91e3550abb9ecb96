"""ScrubjayMemory: the memory plugin, a translation of Carapace's four tools and its brief hook."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from math import expm1
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.conversation.outgoing import one_line
from scrubjay.engine import Kernel
from scrubjay.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    ScrubjayError,
)
from scrubjay.model.memory import Json, Kind, Memory
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import (
    AGENT,
    BRIEF_LIMIT,
    Allowance,
    BriefRequest,
    Browse,
    Caller,
    Forget,
    Get,
    History,
    MarkTainted,
    Purge,
    Recall,
    Retain,
    Supersede,
)
from scrubjay.model.scope import Scope
from scrubjay.model.text import Days, Positive, check
from scrubjay.settings import EmbedderName, Settings
from scrubjay.surfaces.carapace import manifest
from scrubjay.surfaces.carapace.plugin import Reply
from scrubjay.surfaces.carapace.validation import faults, quoted
from scrubjay.surfaces.carapace.wire import Code, ToolError, scope_of, stamp

CHANNEL: Final = "carapace"
_FOUND_BYTES: Final = manifest.PAYLOAD_BYTES // 2
"""Maximum content of a search: a reply has a limit, and JSON may double a text."""
_TRIES: Final = 5
_COUNTED: Final = {
    "stores": (manifest.STORES, "memory_store calls"),
    "supersedes": (manifest.SUPERSEDES, "supersedes"),
    "deletes": (manifest.DELETES, "memory_delete calls"),
}
"""Quotas of a session: what is counted, its limit, and its name in a refusal."""
_HOOK: Final = "brief hook"
"""The session a brief is made in before there is one; it writes nothing."""
_log = logging.getLogger(__name__)

Arguments = Mapping[str, Any]


class Provider(StrEnum):
    """Embedding provider of the configuration."""

    NONE = "none"
    LOCAL = "local"
    OPENAI = "openai"


_EMBEDDERS: Final = {
    Provider.NONE: EmbedderName.NONE,
    Provider.LOCAL: EmbedderName.STATIC,
    Provider.OPENAI: EmbedderName.OPENAI,
}


class Config(Struct, frozen=True, kw_only=True):
    """The keys of the manifest's `config_schema`, with its defaults."""

    storage_path: str | None = None
    max_brief_entries: int = 50
    max_brief_chars: int = 10_000
    purge_superseded_days: int = 90
    embedding_provider: Provider = Provider.NONE

    def __post_init__(self) -> None:
        if not 1 <= self.max_brief_entries <= BRIEF_LIMIT:
            raise InvalidRequest(f"max_brief_entries is a number from 1 to {BRIEF_LIMIT:,}.")
        check("max_brief_chars", Positive, self.max_brief_chars)
        check("purge_superseded_days", Days, self.purge_superseded_days)

    @classmethod
    def read(cls, given: Mapping[str, Json]) -> Config:
        """The configuration a host hands over; a key that is not ours is refused."""
        strict = {**manifest.CONFIG, "additionalProperties": False}
        if wrong := list(faults(given, strict)):
            raise InvalidRequest(
                f"The configuration is wrong: {'; '.join(map(str, wrong))}.",
                hint="The keys are those of config_schema in manifest.json.",
            )
        whole = {name: int(one) if isinstance(one, float) else one for name, one in given.items()}
        return msgspec.convert(whole, cls)

    def settings(self, found: Settings | None = None) -> Settings:
        """The settings of the engine behind it; `found` are those read already."""
        if found is None or self.storage_path is not None:
            home = None if self.storage_path is None else Path(self.storage_path)
            passphrase = None if found is None else found.passphrase
            found = reading.read(home=home)
            found = replace(found, passphrase=found.passphrase or passphrase)
        chosen = _EMBEDDERS[self.embedding_provider]
        asked = found.openai
        if chosen is EmbedderName.OPENAI and not (asked.url and asked.model):
            raise InvalidRequest(
                "The embedding provider openai has no endpoint.",
                hint="Set openai.url and openai.model in config.toml.",
            )
        return replace(found, embedder=chosen)


class ScrubjayMemory:
    """The memory of all groups of one installation; a group is a scope."""

    name = "memory"

    def __init__(self, engine: Kernel, config: Config | None = None) -> None:
        self.engine = engine
        self.config = config or Config()
        self._ready: set[str] = set()
        self._mutex = threading.Lock()

    @classmethod
    def open(cls, config: Config, settings: Settings | None = None) -> ScrubjayMemory:
        """The plugin on the folder its configuration names, or on scrubjay's own."""
        return cls(bootstrap.build(config.settings(settings)), config)

    def manifest(self) -> Mapping[str, Json]:
        """Provided features: four tools and the brief hook."""
        return manifest.manifest()

    def initialize(self, group: str) -> None:
        """Open a group and purge what was superseded long ago, once in the life of the plugin."""
        scope = scope_of(group)
        with self._mutex:
            if group in self._ready:
                return
            days = self.config.purge_superseded_days
            purged = self.engine.purge(scope, Purge(superseded_days=days))
            self._ready.add(group)
        fields = {"group": group, "superseded": purged.superseded, "expired": purged.expired}
        _log.info("carapace.purged", extra=fields)

    def invoke(
        self, tool: str, arguments: Mapping[str, Json], *, session: str, group: str
    ) -> Reply:
        """Run one tool call; errors become replies."""
        try:
            result = self._desk(session, group).carry_out(tool, arguments)
        except ToolError as error:
            return {"ok": False, "error": error.payload()}
        except ScrubjayError as error:
            return {"ok": False, "error": ToolError.of(error).payload()}
        return {"ok": True, "result": result}

    def get_brief(self, group: str) -> Mapping[str, Json]:
        """The brief: memories to put before the first prompt."""
        return self._desk(_HOOK, group).brief({})

    def mark_tainted(self, session: str, group: str, origin: Origin = Origin.WEB) -> Origin:
        """Taint a session: it has read text of this origin, so its writes are trusted no more."""
        request = MarkTainted(session, origin)
        return self.engine.mark_tainted(scope_of(group), request, Caller(actor=Actor.OPERATOR))

    def shutdown(self) -> None:
        """Close every file."""
        self.engine.close()

    def _desk(self, session: str, group: str) -> Desk:
        scope = scope_of(group)
        self.engine.open(scope)  # a group's memory is there from its first call on, even a search
        return Desk(engine=self.engine, scope=scope, session=session, config=self.config)


class Desk(Struct, frozen=True, kw_only=True):
    """The four tools for one session of one group: from arguments to a verb, and back."""

    engine: Kernel
    scope: Scope
    session: str
    config: Config

    def carry_out(self, tool: str, given: Arguments) -> Json:
        """The result of a call; a ToolError, or an error of the engine, if there is none.

        What a host has checked already is checked again: this plugin does not depend on its host.
        """
        work = _TOOLS.get(tool)
        if work is None:
            raise ToolError(Code.HANDLER_ERROR, f"Unknown tool: {quoted(tool)}")
        kind = given.get("type")
        if isinstance(kind, str) and kind not in manifest.TYPES:
            raise ToolError(Code.HANDLER_ERROR, f"Invalid entry type: {quoted(kind)}")
        if wrong := list(faults(given, manifest.TOOLS[tool].arguments)):
            told = f"Argument validation failed: {'; '.join(map(str, wrong))}"
            raise ToolError(Code.HANDLER_ERROR, told)
        try:
            return work(self, given)
        except LimitReached as error:
            # Which allowance it was. Trying again is no use: only another session has more.
            counted = ["deletes"] if tool == "memory_delete" else ["stores", "supersedes"]
            spent = self.engine.spent(self.scope, self.session)
            reached = [name for name in counted if spent.get(name, 0) >= _COUNTED[name][0]]
            limit, called = _COUNTED[(reached or counted)[0]]
            message = f"Maximum {limit} {called} per session reached."
            raise ToolError(Code.RATE_LIMITED, message, retriable=False) from error

    def store(self, given: Arguments) -> Json:
        """Retain one entry, or supersede one by it; the entry as it was stored."""
        if given.get("supersedes") is None:
            request = Retain(channel=CHANNEL, **self._said(given))
            public_id = self.engine.retain(self.scope, request, self._caller("stores")).id
        else:
            public_id = self._supersede(given)
        memory = self.engine.get(self.scope, Get(public_id), AGENT)
        return {
            **_entry(memory),
            "supersedes": memory.supersedes,
            "superseded_by": memory.superseded_by,
            "session_id": self.session,
            "group": self.scope.owner,
            "created_at": stamp(memory.recorded_at),
        }

    def _said(self, given: Arguments) -> dict[str, Any]:
        """The fields of a write, whether it is of a new entry or of another version."""
        return {
            "content": given["content"],
            "kind": Kind(given["type"]),
            "tags": tuple(given.get("tags", ())),
            "session": self.session,
            "origin": Origin.AGENT,
        }

    def _supersede(self, given: Arguments) -> str:
        """Replace an entry; one that was replaced already stands for the newest of its versions.

        Of two that replace the same entry at once, one finds that it has become the older version.
        """
        named = quoted(given["supersedes"])
        for _ in range(_TRIES):
            try:
                chain = self.engine.history(self.scope, History(given["supersedes"]), AGENT)
            except (NotFound, InvalidRequest) as error:
                message = f"Superseded entry {named} not found"
                raise ToolError(Code.HANDLER_ERROR, message) from error
            request = Supersede(id=chain[-1].id, **self._said(given))
            caller = self._caller("stores", "supersedes")
            try:
                return self.engine.supersede(self.scope, request, caller).id
            except Forbidden as error:
                raise ToolError(
                    Code.HANDLER_ERROR,
                    f"Entry {quoted(request.id)} comes from somebody trusted more than this "
                    "session; only they can replace it. Store a new entry, or ask the user.",
                ) from error
            except Conflict:
                continue
        raise ToolError(
            Code.HANDLER_ERROR,
            f"Entry {named} was replaced by one that is gone. "
            "Store a new entry without supersedes.",
        )

    def search(self, given: Arguments) -> Json:
        """Recall by words, or browse the newest where none are asked for."""
        query = given.get("query", "").strip()
        limit = int(given.get("limit", manifest.SEARCH_DEFAULT))
        if limit < 1:
            message = f"The limit is a number from 1 to {manifest.SEARCH_LIMIT}."
            raise ToolError(Code.HANDLER_ERROR, message)
        wanted: dict[str, Any] = {
            "kinds": frozenset({Kind(given["type"])} if "type" in given else ()),
            "tags": frozenset(given.get("tags", ())),
            "superseded": given.get("include_superseded", False),
            "limit": limit,
        }
        if not query:
            page = self.engine.browse(self.scope, Browse(**wanted), AGENT)
            found = [(memory, 0.0) for memory in page]
        else:
            # Without vectors an entry that holds none of the words has nothing to do with them.
            by_words = self.config.embedding_provider is Provider.NONE
            request = Recall(query, worded=by_words, max_bytes=_FOUND_BYTES, **wanted)
            best = self.engine.full_score(by_words=by_words)
            # From 0 to 1, using this range, and never making two entries equal by cutting off:
            # an entry that holds all that was asked for, as well as any does, has about 0.86.
            found = [
                (hit.memory, round(-expm1(-2 * hit.score / best), 4))
                for hit in self.engine.recall(self.scope, request, AGENT)
            ]
        return {
            "results": [
                {
                    **_entry(memory),
                    "created_at": stamp(memory.recorded_at),
                    "relevance_score": score,
                }
                for memory, score in found
            ]
        }

    def brief(self, given: Arguments) -> dict[str, Json]:
        """The brief, within both limits."""
        request = BriefRequest(
            limit=self.config.max_brief_entries,
            max_chars=self.config.max_brief_chars,
        )
        found = self.engine.brief(self.scope, request, AGENT)
        assert found.made_at is not None
        entries: list[Json] = []
        for memory in found:
            entry = {**_entry(memory), "content": one_line(memory.content)}
            entry["age_days"] = memory.age_days(found.made_at)
            if given.get("include_provenance", False):
                entry |= {"session_id": memory.provenance.session, "group": self.scope.owner}
            entries.append(entry)
        return {
            "entries": entries,
            "generated_at": stamp(found.made_at),
            "entry_count": found.total,
            "brief_count": len(found),
        }

    def delete(self, given: Arguments) -> Json:
        """Forget one entry for good."""
        public_id = given["id"]
        missing = ToolError(Code.HANDLER_ERROR, f"Memory entry {quoted(public_id)} not found.")
        try:
            receipt = self.engine.forget(self.scope, Forget((public_id,)), self._caller("deletes"))
        except (NotFound, InvalidRequest) as error:
            raise missing from error
        if not receipt.erased:
            raise missing
        return {"deleted": True, "id": public_id}

    def _caller(self, *names: str) -> Caller:
        """The caller: the agent, with its allowances."""
        allowances = tuple(
            Allowance(session=self.session, name=name, limit=_COUNTED[name][0]) for name in names
        )
        return Caller(actor=Actor.AGENT, allowances=allowances)


_TOOLS: Final[Mapping[str, Callable[[Desk, Arguments], Json]]] = {
    "memory_store": Desk.store,
    "memory_search": Desk.search,
    "memory_brief": Desk.brief,
    "memory_delete": Desk.delete,
}


def _entry(memory: Memory) -> dict[str, Json]:
    return {
        "id": memory.id,
        "type": memory.kind.value,
        "content": memory.content,
        "behavioral": memory.kind.behavioral,
        "tags": list(memory.tags),
    }
