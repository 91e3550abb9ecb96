"""The descriptor: what `claw up` reads to learn that this is a memory service."""

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
"""A little less than the 300 ms a proxy waits unless its manifest says otherwise."""
_VERSION: Final = 2
_ABOUT: Final = "Private memory: sealed at rest, recalled in milliseconds, forgotten for good."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneOffer:
    """What a plane offers; a pod may want only one side of it."""

    recall: bool = True
    retain: bool = True
    token: str | None = None
    """The bearer token to ask for; None asks for none."""
    variable: str = TOKEN_VARIABLE
    """The variable of the environment that holds the token, here and in the agents."""
    pods: frozenset[str] | None = None
    """The pods that are served; None serves whichever asks with the token."""
    recall_seconds: float = RECALL_SECONDS
    """How long a recall may take, all in all."""

    def __post_init__(self) -> None:
        if not (self.recall or self.retain):
            raise InvalidRequest("A memory service offers recall or retain, or both.")

    def __repr__(self) -> str:
        return f"PlaneOffer(recall={self.recall}, retain={self.retain})"

    @property
    def paths(self) -> dict[str, str]:
        """The paths of what is offered, by name; what is retained can be forgotten."""
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
