"""Short forms for what nearly every test of the dialect does."""

from __future__ import annotations

from typing import Any

from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.engine import Kernel
from scrubjay.model.scope import Scope
from scrubjay.surfaces.carapace.call_audit import AuditRecorder
from scrubjay.surfaces.carapace.host import Host
from scrubjay.surfaces.carapace.memory import Config, ScrubjayMemory
from scrubjay.surfaces.carapace.pipeline import Rules
from scrubjay.surfaces.carapace.wire import AgentSession, encode
from tests.support.engines import MemoryHome

MAIN = Scope("local", "main")


def home_without_vectors() -> MemoryHome:
    """An installation in memory with the embedder Carapace asks for by default."""
    home = MemoryHome()
    home.embedder = NoEmbedder()
    return home


class Stage:
    """A host with the plugin on an installation, and an agent that calls it."""

    def __init__(
        self,
        home: MemoryHome,
        *,
        session: str = "s1",
        group: str = "main",
        config: Config | None = None,
        rules: Rules | None = None,
    ) -> None:
        self.home = home
        self.engine: Kernel = home.engine()
        self.memory = ScrubjayMemory(self.engine, config)
        self.host = Host([self.memory], home.clock, record=AuditRecorder(self.engine), rules=rules)
        self.session = AgentSession(id=session, group=group)

    def send(self, topic: str, arguments: Any, **envelope: Any) -> Any:
        """The envelope of the reply to a message; `envelope` are fields an agent adds."""
        message = {"topic": topic, "correlation": "c-1", "arguments": arguments, **envelope}
        return self.host.answer(encode(message).encode(), self.session)

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a call that goes well."""
        payload = self.send(f"tool.invoke.{tool}", arguments)["payload"]
        assert payload["error"] is None, payload
        return payload["result"]

    def fail(self, tool: str, **arguments: Any) -> Any:
        """The error of a call that does not."""
        payload = self.send(f"tool.invoke.{tool}", arguments)["payload"]
        assert payload["result"] is None, payload
        return payload["error"]

    def store(self, content: str, **fields: Any) -> str:
        """Store an entry; its id."""
        return str(
            self.call("memory_store", **{"type": "fact", "content": content, **fields})["id"]
        )

    def search(self, **arguments: Any) -> list[Any]:
        """The results of a search."""
        return list(self.call("memory_search", **arguments)["results"])

    def found(self, **arguments: Any) -> list[str]:
        """What the results of a search say."""
        return [one["content"] for one in self.search(**arguments)]

    def as_session(self, name: str, group: str | None = None) -> Stage:
        """The same host, called by another session."""
        other = object.__new__(Stage)
        vars(other).update(vars(self))
        other.session = AgentSession(id=name, group=group or self.session.group)
        return other

    def restarted(self, **changed: Any) -> Stage:
        """Another process on the same installation."""
        self.memory.shutdown()
        fresh = {"session": self.session.id, "group": self.session.group, **changed}
        return Stage(self.home, **fresh)
