"""A scope as Markdown to read: one section per kind. It is not read in again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scrubjay.engine.transfer.bundle import Content
from scrubjay.guard.clean import clean
from scrubjay.model.memory import Kind, Memory


def write(content: Content) -> bytes:
    """The memories that are not superseded, newest first within their kind."""
    live = [memory for memory in content.memories if memory.live]
    parts = [f"# Memories of {content.scope}\n\nMade {content.made_at}; {len(live):,} memories.\n"]
    for kind in Kind:
        if of_kind := [memory for memory in reversed(live) if memory.kind is kind]:
            parts.append(f"## {kind.capitalize()}\n\n{''.join(_items(of_kind))}")
    return "\n".join(parts).encode()


def _items(memories: Iterable[Memory]) -> Iterator[str]:
    for memory in memories:
        # Later lines are indented, so that they stay within the item, whatever they are.
        text = clean(memory.content).replace("\n", "\n  ")
        tags = "".join(f" `#{clean(tag)}`" for tag in memory.tags)
        pin = "📌 " if memory.pinned else ""
        date = memory.said_at.date().isoformat()
        yield f"- {pin}{text}{tags}\n  <!-- {memory.id} · {date} · {memory.origin} -->\n"
