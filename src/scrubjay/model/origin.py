"""Actor and origin: the role that acts, and the channel of a text, which decides trust."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal


class Actor(StrEnum):
    """Actor: the role that carries out a verb."""

    USER = "user"
    OPERATOR = "operator"
    AGENT = "agent"
    SYSTEM = "system"


class Origin(StrEnum):
    """Origin: the channel a text came in by, most trusted first."""

    USER = "user"
    OPERATOR = "operator"
    AGENT = "agent"
    IMPORT = "import"
    QUOTED = "quoted"
    """Quotation: text that was quoted or pasted into a turn, of unknown author."""
    OTHER_AGENT = "other_agent"
    TOOL = "tool"
    WEB = "web"

    @property
    def trusted(self) -> bool:
        """Whether it is trusted: user, operator, agent or import."""
        return self in _TRUSTED

    @property
    def trust(self) -> int:
        """Trust rank: higher is more trusted; only the order matters."""
        return _TRUST[self]


if TYPE_CHECKING:  # a type checker finds a word that is not known; at run time it is the enum
    OriginArg = (
        Origin
        | Literal["user", "operator", "agent", "import"]
        | Literal["quoted", "other_agent", "tool", "web"]
    )
else:
    OriginArg = Origin
_TRUST: Final = {origin: -place for place, origin in enumerate(Origin)}
_TRUSTED: Final = tuple(one for one in Origin if one.trust >= Origin.IMPORT.trust)
"""A tuple, because it is asked for every hit, and the hash of an enum takes longer."""


def lowest(origins: Iterable[Origin]) -> Origin:
    """The least trusted of several origins: what a derived memory inherits."""
    return min(origins, key=lambda origin: origin.trust)


UNTRUSTED_SHARE: Final = 0.3
"""Maximum share of an answer's characters that are untrusted, all origins together."""


def excess(said: Sequence[tuple[int, bool]]) -> int | None:
    """The place of the text to leave out of an answer: its last untrusted one.

    Each text is told by its characters and whether it is trusted. None if the untrusted ones
    together have no more than their share.
    """
    untrusted = [place for place, (_, trusted) in enumerate(said) if not trusted]
    if sum(said[place][0] for place in untrusted) <= UNTRUSTED_SHARE * sum(one[0] for one in said):
        return None
    return untrusted[-1]
