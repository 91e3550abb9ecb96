"""Text on its way to a model: secrets redacted, one line where a line is meant, the brief rendered.

Every surface that answers an agent uses these, so that there is one redactor and one renderer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scrubjay.guard import PLACEHOLDER
from scrubjay.guard.secrets import redact
from scrubjay.model import block
from scrubjay.model.clean import clean, one_line
from scrubjay.model.memory import Json, Memory

__all__ = ["clean", "one_line", "render_brief", "sanitize"]


def sanitize(value: Json, placeholder: str = PLACEHOLDER) -> tuple[Any, list[str]]:
    """A deep copy without secrets, and the JSON paths they were at (`$.results[0].content`)."""
    places: list[str] = []

    def walk(value: Json, path: str) -> Json:
        if isinstance(value, str):
            redacted = redact(value, placeholder)
            if redacted.found:
                places.append(path)
            return redacted.text
        if isinstance(value, list):
            return [walk(one, f"{path}[{place}]") for place, one in enumerate(value)]
        if isinstance(value, dict):
            return {name: walk(one, f"{path}.{name}") for name, one in value.items()}
        return value

    return walk(value, "$"), places


def render_brief(memories: Sequence[Memory], now: datetime) -> str:
    """The brief as Markdown in the layout of a host whose agent is the only writer."""
    return block.brief(memories, now, seed=True)
