"""The host side: loads plugins, routes tools to them, and makes the brief.

Several memory plugins may be loaded; at most one may claim the brief hook, and no two the same
tool. Otherwise nothing starts, and the error names both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec

from scrubjay.conversation.outgoing import render_brief, sanitize
from scrubjay.model.errors import Conflict, InvalidRequest, ScrubjayError
from scrubjay.model.memory import Json, Memory
from scrubjay.ports import Clock
from scrubjay.surfaces.carapace.call_audit import CallOutcome, CallRecord, Recorder, no_record
from scrubjay.surfaces.carapace.manifest import BRIEF_HOOK, Tool
from scrubjay.surfaces.carapace.pipeline import OfferedTool, Pipeline, Rules, within
from scrubjay.surfaces.carapace.plugin import MemoryPlugin, PluginBrief, Reply
from scrubjay.surfaces.carapace.validation import check_schema
from scrubjay.surfaces.carapace.wire import AgentSession, ToolError, Wire, scope_of

BRIEF_SECONDS: Final = 5.0
_HOOK_SESSION: Final = "brief hook"
_log = logging.getLogger(__name__)


class Host:
    """Host of plugins: routes calls and briefs to them."""

    def __init__(
        self,
        plugins: Sequence[MemoryPlugin],
        clock: Clock,
        *,
        record: Recorder = no_record,
        rules: Rules | None = None,
        brief_seconds: float = BRIEF_SECONDS,
    ) -> None:
        self.plugins = tuple(plugins)
        self.pipeline = Pipeline(_offered_tools(plugins), clock, record, rules)
        claiming = [plugin for plugin in plugins if BRIEF_HOOK in _provides(plugin, "hooks")]
        if len(claiming) > 1:
            names = " and ".join(plugin.name for plugin in claiming)
            raise Conflict(
                f"{names} claim the hook {BRIEF_HOOK}; at most one plugin may.",
                hint="Load only one of them, or have the others not declare the hook.",
            )
        claimant = claiming[0] if claiming else None
        self.brief = BriefHook(claimant, clock, record=record, seconds=brief_seconds)

    def start(self, groups: Iterable[str]) -> None:
        """Make groups ready in every plugin."""
        for group in groups:
            scope_of(group)
            for plugin in self.plugins:
                plugin.initialize(group)

    def invoke(self, tool: str, arguments: Mapping[str, Json], session: AgentSession) -> Reply:
        """The reply to a call that Carapace's core has checked: its plugin is not the host."""
        try:
            self.start([session.group])
        except ScrubjayError as error:
            return {"ok": False, "error": ToolError.of(error).payload()}
        return self.pipeline.invoke(tool, arguments, session)

    def answer(self, raw: bytes, session: AgentSession) -> dict[str, Json]:
        """Answer a frame; there is always a reply."""
        try:
            message = Wire.read(raw)
        except ToolError as error:
            return self.pipeline.refuse(raw, session, error)
        return self.pipeline.answer(message, session)

    def shutdown(self) -> None:
        """Shut down every plugin."""
        for plugin in self.plugins:
            plugin.shutdown()


def _provides(plugin: MemoryPlugin, what: str) -> list[Any]:
    provides = plugin.manifest().get("provides")
    found = provides.get(what, []) if isinstance(provides, dict) else []
    return found if isinstance(found, list) else []


def _offered_tools(plugins: Sequence[MemoryPlugin]) -> Mapping[str, OfferedTool]:
    offered: dict[str, OfferedTool] = {}
    for plugin in plugins:
        for declared in _provides(plugin, "tools"):
            try:
                tool = msgspec.convert(declared, Tool)
            except msgspec.ValidationError as error:
                message = f"The manifest of {plugin.name} declares a tool wrongly."
                raise InvalidRequest(message) from error
            check_schema(tool.arguments, tool.name)
            if (other := offered.get(tool.name)) is not None:
                raise Conflict(
                    f'"{tool.name}" is a tool of {other.plugin.name} and of {plugin.name}.',
                    hint="Load only one of the two plugins.",
                )
            offered[tool.name] = OfferedTool(tool=tool, plugin=plugin)
    return offered


class BriefHook:
    """The brief of a group, with a timeout."""

    def __init__(
        self,
        plugin: MemoryPlugin | None,
        clock: Clock,
        *,
        record: Recorder = no_record,
        seconds: float = BRIEF_SECONDS,
    ) -> None:
        self._plugin = plugin
        self._clock = clock
        self._record = record
        self._seconds = seconds

    def __call__(self, group: str) -> str:
        """The Markdown to put before an agent's prompt; empty, with a warning, if there is none.

        The limit is enforced here: a plugin that hangs costs its brief, and nothing else.
        """
        scope_of(group)
        if self._plugin is None:
            return ""
        markdown, outcome = "", CallOutcome.ERROR
        fields = {"plugin": self._plugin.name, "group": group}
        try:
            markdown, redacted = within(self._seconds, partial(self._made, self._plugin, group))
            outcome = CallOutcome.SANITIZED if redacted else CallOutcome.ROUTED
        except TimeoutError:
            _log.warning("brief.late", extra=fields)
        except Exception as error:  # seam: an agent without memory is better than no agent
            _log.warning("brief.failed", extra={**fields, "error": type(error)})
        try:
            self._record(
                CallRecord(group=group, session=_HOOK_SESSION, tool="brief_hook", outcome=outcome)
            )
        except Exception as error:  # seam: a recorder that fails must not cost the brief
            _log.warning("carapace.not_recorded", extra={"error": type(error)})
        return markdown

    def _made(self, plugin: MemoryPlugin, group: str) -> tuple[str, bool]:
        """The brief as Markdown by the engine's own renderer, and whether it had a secret.

        Where an entry stands follows from its type: a plugin that calls an instruction a mere fact
        cannot get it past the warning.
        """
        clean, places = sanitize(dict(plugin.get_brief(group)))
        now = self._clock.now()
        memories = [
            Memory(
                id=entry.id,
                kind=entry.type,
                content=entry.content,
                recorded_at=now - timedelta(days=entry.age_days),
            )
            for entry in msgspec.convert(clean, PluginBrief).entries
        ]
        return render_brief(memories, now), bool(places)
