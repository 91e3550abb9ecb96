"""An agent in a folder: its role file, its model, and the commands on it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import yaml

from scrubjay import settings
from scrubjay.surfaces.initrunner import role_agent, roles
from scrubjay.surfaces.initrunner.role_agent import RoleAgent
from tests.support.chat_server import ChatServer
from tests.unit.cli.conftest import CommandLine, Done

LOCAL = {"provider": "local"}


class Scene:
    """One agent, `assistant`, whose memories are embedded on this machine unless a test says so."""

    def __init__(self, folder: Path, model: ChatServer, cli: CommandLine) -> None:
        self.folder = folder
        self.model = model
        self.cli = cli
        self.write()

    @property
    def file(self) -> Path:
        """The role file."""
        return self.folder / "role.yaml"

    def write(
        self,
        memory: Mapping[str, Any] | None = None,
        *,
        name: str = "assistant",
        path: Path | None = None,
        **spec: Any,
    ) -> Path:
        """Write the role file anew, with this section `memory` and other sections."""
        document = {
            "apiVersion": "initrunner/v1",
            "kind": "Agent",
            "metadata": {"name": name},
            "spec": {
                "role": "You help.",
                "model": {"provider": "openai", "name": "m", "base_url": self.model.url},
                "memory": {"embeddings": LOCAL, **(memory or {})},
                **spec,
            },
        }
        target = path or self.file
        target.write_text(yaml.safe_dump(document, sort_keys=False))
        return target

    def run(self, command: str, *arguments: object, stdin: str | bytes = "") -> Done:
        """Run a command on the role file: `memory list`, `chat`."""
        return self.cli(*command.split(), self.file, *arguments, stdin=stdin)

    def opened(self, **options: Any) -> AbstractContextManager[RoleAgent]:
        """The agent of the role file."""
        role, found = roles.load(self.file), settings.read()
        return role_agent.opened(role, found, settings.variable, **options)
