"""MemoryPlugin: the interface of a memory backend.

Everything that crosses it is plain JSON in the shapes Carapace documents, so that a backend
needs nothing of this package. `scrubjay.testing.plugin_contract` is the suite to run on one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from scrubjay.model.memory import Json, Kind

Reply = Mapping[str, Json]
"""`{"ok": true, "result": …}`, or `{"ok": false, "error": {"code", "message", "retriable"}}`."""


class MemoryPlugin(Protocol):
    """A memory backend of Carapace; may be called from several threads."""

    @property
    def name(self) -> str:
        """Name of the plugin in a collision of tool names."""

    def manifest(self) -> Mapping[str, Json]:
        """Its manifest: `provides.tools` are what it answers, `provides.hooks` what it claims."""

    def initialize(self, group: str) -> None:
        """Prepare a group before its first call; idempotent."""

    def invoke(
        self, tool: str, arguments: Mapping[str, Json], *, session: str, group: str
    ) -> Reply:
        """Carry out one tool call with arguments that fit the tool's schema.

        Session and group are the host's word. Nothing of another group may be read or changed. A
        failure is a reply with `ok` false; what is raised counts as a defect.
        """

    def get_brief(self, group: str) -> Mapping[str, Json]:
        """The brief: memories to put before the first prompt.

        `{"entries": […], "generated_at", "entry_count", "brief_count"}`, each entry with `id`,
        `type`, `content` in one line, `behavioral`, `tags` and `age_days`. Only a plugin that
        claims the hook `memory_brief` is asked.
        """

    def shutdown(self) -> None:
        """Release every resource; idempotent."""


class BriefEntry(Struct, frozen=True, kw_only=True):
    """One entry of a brief; the host decides by the type where it stands."""

    id: str
    type: Kind
    content: str
    behavioral: bool
    tags: list[str]
    age_days: Annotated[int, Meta(ge=0, le=36_500)]


class PluginBrief(Struct, frozen=True, kw_only=True):
    """Schema of a brief as the host checks it: any other answer counts as a failure."""

    entries: Annotated[list[BriefEntry], Meta(max_length=1_000)]
    generated_at: str
    entry_count: Annotated[int, Meta(ge=0)]
    brief_count: Annotated[int, Meta(ge=0)]
