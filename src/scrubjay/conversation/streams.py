"""What an assistant said, from the body of a response: JSON or a stream of events.

Two providers' shapes are known. What is neither is no text; nothing here raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

_DATA: Final = "data:"
_SAMPLE: Final = 4_096
"""How much of a text says whether it is a stream of events."""
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})


def text_of(content: object) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part for part in map(_part, content) if part)


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in _TEXT_PARTS:
        return ""  # an image, a call of a tool, its result
    text = part.get("text")
    return text if isinstance(text, str) else ""


def answer(response: object) -> str:
    """What the assistant said in the response of a history entry."""
    if not isinstance(response, dict):
        return ""
    if response.get("format") == "sse" or "json" not in response:
        text = response.get("text")
        return _streamed(text) if isinstance(text, str) else ""
    body = response["json"]
    return _whole(_parsed(body) if isinstance(body, str) else body)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _whole(body: object) -> str:
    if not isinstance(body, dict):
        return ""
    if "content" in body:
        return text_of(body["content"])
    choices = body.get("choices")
    messages = (one.get("message") for one in _objects(choices))
    return next((text_of(one.get("content")) for one in messages if isinstance(one, dict)), "")


def _streamed(stream: str) -> str:
    """The pieces of text in a stream of events, joined; of several choices the first."""
    if not any(line.startswith(_DATA) for line in _lines(stream[:_SAMPLE])):
        return _whole(_parsed(stream))
    return "".join(piece for event in _events(stream) for piece in _pieces(event))


def _events(stream: str) -> Iterator[dict[str, Any]]:
    """The objects in a stream: the lines of data up to an empty line are one event."""
    lines: list[str] = []
    for line in (*_lines(stream), ""):
        if line.startswith(_DATA):
            lines.append(line.removeprefix(_DATA))
        elif not line and lines:
            yield from _objects(_event(lines))
            lines.clear()


def _event(lines: list[str]) -> list[object]:
    """What an event holds; where nothing parts the events, each line is one."""
    whole = _parsed("\n".join(lines))
    return [whole] if whole is not None or len(lines) == 1 else [_parsed(one) for one in lines]


def _lines(stream: str) -> list[str]:
    """The lines by the rule for streams of events; other breaks may stand within a text."""
    return stream.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _pieces(event: dict[str, Any]) -> Iterator[str]:
    for choice in _objects(event.get("choices")):
        delta = choice.get("delta")
        if choice.get("index", 0) == 0 and isinstance(delta, dict):
            yield text_of(delta.get("content"))
    delta = event.get("delta")
    if event.get("type") == "content_block_delta" and isinstance(delta, dict):
        text = delta.get("text")
        yield text if isinstance(text, str) else ""


def _objects(items: object) -> Iterable[dict[str, Any]]:
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
