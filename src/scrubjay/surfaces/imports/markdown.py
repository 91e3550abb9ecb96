"""A scope as Markdown to read: one section per kind. It is not read in again."""

from __future__ import annotations

import json

from scrubjay.conversation.outgoing import clean
from scrubjay.model.memory import Kind
from scrubjay.model.records import from_record


def write(export: bytes) -> bytes:
    """The memories of a JSON export that are not superseded, newest first within their kind."""
    document = json.loads(export)
    memories = sorted(map(from_record, document["memories"]), key=lambda memory: -memory.number)
    live = [memory for memory in memories if memory.shown]
    title = f"# Memories of {document['scope']}"
    parts = [f"{title}\n\nMade {document['made_at']}; {len(live):,} memories.\n"]
    for kind in Kind:
        items = []
        for memory in live:
            if memory.kind is kind:
                # Later lines are indented, so that they stay within the item, whatever they are.
                text = clean(memory.content).replace("\n", "\n  ")
                tags = "".join(f" `#{clean(tag)}`" for tag in memory.tags)
                pin = "📌 " if memory.pinned else ""
                about = f"{memory.id} · {memory.said_at.date().isoformat()} · {memory.origin}"
                items.append(f"- {pin}{text}{tags}\n  <!-- {about} -->\n")
        if items:
            parts.append(f"## {kind.capitalize()}\n\n{''.join(items)}")
    return "\n".join(parts).encode()
