"""ScrubjayMemory: the memory plugin, a translation of Carapace's four tools and its brief hook."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Final

from scrubjay import bootstrap
from scrubjay.engine import Engine
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.memory import Json
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Caller, MarkTainted, Purge
from scrubjay.settings import Settings
from scrubjay.surfaces.carapace import schemas, tools
from scrubjay.surfaces.carapace.config import Config, scope_of
from scrubjay.surfaces.carapace.errors import ToolError, translated
from scrubjay.surfaces.carapace.plugin import Reply
from scrubjay.surfaces.carapace.tools import Desk

_HOOK: Final = "brief hook"
"""The session a brief is made in before there is one; it writes nothing."""
_log = logging.getLogger(__name__)


class ScrubjayMemory:
    """The memory of all groups of one installation; a group is a scope."""

    name = "memory"

    def __init__(self, engine: Engine, config: Config | None = None) -> None:
        self.engine = engine
        self.config = config or Config()
        self._ready: set[str] = set()
        self._mutex = threading.Lock()

    @classmethod
    def open(cls, config: Config, settings: Settings | None = None) -> ScrubjayMemory:
        """The plugin on the folder its configuration names, or on scrubjay's own."""
        return cls(bootstrap.build(config.settings(settings)), config)

    def manifest(self) -> Mapping[str, Json]:
        """What it provides: four tools and the brief hook."""
        return schemas.manifest()

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
        """Carry out one call; an error is a reply, too."""
        try:
            result = tools.carry_out(self._desk(session, group), tool, arguments)
        except ToolError as error:
            return {"ok": False, "error": error.payload()}
        except ScrubjayError as error:
            return {"ok": False, "error": translated(error).payload()}
        return {"ok": True, "result": result}

    def get_brief(self, group: str) -> Mapping[str, Json]:
        """What the agent should know before its first word."""
        return tools.brief(self._desk(_HOOK, group))

    def mark_tainted(self, session: str, group: str, origin: Origin = Origin.WEB) -> Origin:
        """Say that a session has read something of this origin: its writes are trusted no more."""
        request = MarkTainted(session, origin)
        return self.engine.mark_tainted(scope_of(group), request, Caller(actor=Actor.OPERATOR))

    def shutdown(self) -> None:
        """Close every file."""
        self.engine.close()

    def _desk(self, session: str, group: str) -> Desk:
        return Desk(engine=self.engine, scope=scope_of(group), session=session, config=self.config)
