"""Why a token is not accepted; apart from what checks them, which is loaded only where needed."""

from __future__ import annotations

from typing import Final

PAUSE_SECONDS: Final = 10.0
"""The least time between two times an issuer is asked, whatever for."""


class Refused(Exception):
    """The token is not good. The message is for the log; only `expired` may be told."""

    def __init__(self, why: str, *, expired: bool = False) -> None:
        super().__init__(why)
        self.expired = expired


class Unreachable(Exception):
    """The issuer did not answer, or not as an issuer does; the message says how."""
