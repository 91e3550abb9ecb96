"""Run by InitRunner's own interpreter: its store writes a database to the path that is given."""

import sys
from pathlib import Path

from initrunner.stores.base import MemoryType  # type: ignore[import-not-found]
from initrunner.stores.sqlite_vec import SqliteVecMemoryStore  # type: ignore[import-not-found]
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

store = SqliteVecMemoryStore(Path(sys.argv[1]))
store.add_memory("Alice prefers dark mode.", "preferences", [0.1, 0.2, 0.3])
episode = store.add_memory(
    "Deployed 2.1 to staging.",
    "autonomous_run",
    [0.3, 0.2, 0.1],
    memory_type=MemoryType.EPISODIC,
    metadata={"trigger_type": "cron"},
)
store.add_memory(
    "Always run tests first.", "deployment", [0.0, 0.2, 0.1], memory_type=MemoryType.PROCEDURAL
)
store.mark_consolidated([episode], "2026-02-20T10:00:00+00:00")
store.add_memory("The backup failed.", "general", [0.3, 0.0, 0.1], memory_type=MemoryType.EPISODIC)
history = []
for said, answered in (("My name is Alice.", "Hello Alice."), ("Who am I?", "You are Alice.")):
    history += [
        ModelRequest(parts=[SystemPromptPart("You help."), UserPromptPart(said)]),
        ModelResponse(parts=[TextPart(answered)]),
    ]
    store.save_session("0123456789ab", "assistant", history)
store.close()
