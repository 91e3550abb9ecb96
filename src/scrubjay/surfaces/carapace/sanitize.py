"""The way back: secrets out of everything an agent is told, and where they were."""

from __future__ import annotations

from scrubjay.guard.secrets import PLACEHOLDER, redact
from scrubjay.model.memory import Json


def sanitize(value: Json, placeholder: str = PLACEHOLDER) -> tuple[Json, list[str]]:
    """The same without secrets, and the places they were in (`$.results[0].content`).

    What is given is left as it is.
    """
    places: list[str] = []
    return _walk(value, "$", placeholder, places), places


def _walk(value: Json, path: str, placeholder: str, places: list[str]) -> Json:
    if isinstance(value, str):
        redacted = redact(value, placeholder)
        if redacted.found:
            places.append(path)
        return redacted.text
    if isinstance(value, list):
        return [
            _walk(one, f"{path}[{place}]", placeholder, places) for place, one in enumerate(value)
        ]
    if isinstance(value, dict):
        return {
            name: _walk(one, f"{path}.{name}", placeholder, places) for name, one in value.items()
        }
    return value
