"""Parser of model APIs: OpenAI chat, OpenAI Responses and Anthropic, as JSON or streams of events.

It extracts the texts of users and assistants. Unknown shapes are ignored; nothing here raises,
whatever the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

_DATA: Final = "data:"
_SAMPLE: Final = 4_096
"""Characters read to detect a stream of events."""
_TEXT_PARTS: Final = ("text", "input_text", "output_text")


def parsed(raw: str | bytes) -> object:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def text_of(content: object) -> str:
    """The text of a message's content, which is a text or a list of parts.

    An image, a call of a tool and its result have none.
    """
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        is_text = isinstance(part, dict) and part.get("type", "text") in _TEXT_PARTS
        texts.append(part.get("text") if is_text else part)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def user_texts(request: object) -> Iterator[str]:
    """User messages of a request, oldest first, without results of tools."""
    return (text_of(one.get("content")) for one in _turns(request) if one.get("role") == "user")


def all_texts(request: object) -> Iterator[str]:
    """Every text of a request, its instructions first."""
    if isinstance(request, dict):
        yield text_of(request.get("system")) or text_of(request.get("instructions"))
        yield from (text_of(one.get("content")) for one in _turns(request))


def _turns(request: object) -> list[dict[str, Any]]:
    """The messages of a request; of the Responses API they may be one text."""
    if not isinstance(request, dict):
        return []
    said = request.get("messages", request.get("input"))
    return [{"role": "user", "content": said}] if isinstance(said, str) else _objects(said)


def answer_text(response: object) -> str:
    """Text of the answer in a response body: a JSON value, its text, or a stream of events.

    Of several choices, the first.
    """
    if isinstance(response, str):
        if any(line.startswith(_DATA) for line in _lines(response[:_SAMPLE])):
            return "".join(_streamed(response))
        response = parsed(response)
    if not isinstance(response, dict):
        return ""
    if "content" in response:
        return text_of(response["content"])
    for choice in _objects(response.get("choices")):
        if isinstance(message := choice.get("message"), dict):
            return text_of(message.get("content"))
    output = [text_of(one.get("content")) for one in _objects(response.get("output"))]
    return "\n".join(text for text in output if text)


def _streamed(stream: str) -> Iterator[str]:
    """The pieces of text in a stream: the lines of data up to an empty line are one event."""
    lines: list[str] = []
    for line in (*_lines(stream), ""):
        if line.startswith(_DATA):
            lines.append(line.removeprefix(_DATA))
        elif not line and lines:
            whole = parsed("\n".join(lines))
            # Where nothing parts the events, each line is one.
            events = [whole] if whole is not None else [parsed(one) for one in lines]
            for event in _objects(events):
                yield from _pieces(event)
            lines.clear()


def _lines(stream: str) -> list[str]:
    """The lines by the rule for streams of events; other breaks may stand within a text."""
    return stream.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _pieces(event: dict[str, Any]) -> Iterator[str]:
    """The text an event adds to the answer, by the shape of its API."""
    for choice in _objects(event.get("choices")):
        delta = choice.get("delta")
        if choice.get("index", 0) == 0 and isinstance(delta, dict):
            yield text_of(delta.get("content"))
    match event:
        case {"type": "content_block_delta", "delta": {"text": str(text)}}:
            yield text
        case {"type": "response.output_text.delta", "delta": str(text)}:
            yield text


def _objects(items: object) -> list[dict[str, Any]]:
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
