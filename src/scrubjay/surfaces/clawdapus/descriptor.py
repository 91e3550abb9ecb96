"""The descriptor: the JSON file by which `claw up` recognizes a memory service."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from scrubjay.model.errors import InvalidRequest

RECALL: Final = "/recall"
RETAIN: Final = "/retain"
FORGET: Final = "/forget"
HEALTH: Final = "/health"
DESCRIPTOR: Final = "/.claw-describe.json"
TOKEN_VARIABLE: Final = "SCRUBJAY_PLANE_TOKEN"  # noqa: S105  # its name, not its value
RECALL_SECONDS: Final = 0.28
"""Deadline of a recall, below the 300 ms that a proxy waits by default."""
_VERSION: Final = 2
_ABOUT: Final = "Private memory: sealed at rest, recalled in milliseconds, forgotten for good."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneOffer:
    """Configuration of a plane: the operations it offers, token, pods, deadline."""

    recall: bool = True
    retain: bool = True
    token: str | None = None
    """Required bearer token; None for no authentication."""
    variable: str = TOKEN_VARIABLE
    """Environment variable of the token, here and in the agents."""
    pods: frozenset[str] | None = None
    """The pods that are served; None for every pod with the token."""
    recall_seconds: float = RECALL_SECONDS
    """Deadline of a recall."""

    def __post_init__(self) -> None:
        if not (self.recall or self.retain):
            raise InvalidRequest("A memory service offers recall or retain, or both.")

    def __repr__(self) -> str:
        return f"PlaneOffer(recall={self.recall}, retain={self.retain})"

    @property
    def paths(self) -> dict[str, str]:
        """Paths of the offered operations, by name; retain includes forget."""
        found = {"recall": RECALL} if self.recall else {}
        return found | ({"retain": RETAIN, "forget": FORGET} if self.retain else {})


def describe(offer: PlaneOffer) -> dict[str, Any]:
    """The descriptor of what is offered."""
    auth = {"type": "bearer", "env": offer.variable} if offer.token else {"type": "none"}
    return {
        "version": _VERSION,
        "description": _ABOUT,
        "memory": {name: {"path": path} for name, path in offer.paths.items()},
        "endpoints": [{"method": "GET", "path": HEALTH, "description": "Whether it is up."}],
        "auth": auth,
    }


def render(offer: PlaneOffer) -> bytes:
    """The descriptor as the file it is."""
    return (json.dumps(describe(offer), indent=2) + "\n").encode()
