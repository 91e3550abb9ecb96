"""The role file that `scrubjay init` writes."""

from __future__ import annotations

from typing import Final

_MODELS: Final = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.5-flash",
    "ollama": "llama3.2",
}
PROVIDERS: Final = tuple(_MODELS)
_MEMORY: Final = """\
apiVersion: initrunner/v1
kind: Agent
metadata:
  name: {name}
  description: Agent with long-term memory
  tags:
    - memory
spec:
  role: |
    You are a helpful assistant with long-term memory.
    Use the remember() tool to save what is worth knowing later.
    Use the recall() tool to search your memories before you answer.
    Use the list_memories() tool to look at the newest ones.
  model:
    provider: {provider}
    name: {model}
  memory:
    max_sessions: 10
    max_resume_messages: 20
    semantic:
      max_memories: 1000
    episodic:
      max_episodes: 500
    procedural:
      max_procedures: 100
    consolidation:
      enabled: true
      interval: after_session
"""
TEMPLATES: Final = {"memory": _MEMORY}


def role_file(name: str, *, template: str = "memory", provider: str = "openai") -> str:
    """A role file by a template."""
    return TEMPLATES[template].format(name=name, provider=provider, model=_MODELS[provider])
