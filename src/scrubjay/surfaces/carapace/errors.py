"""The errors Carapace knows, and what of ours becomes which of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.memory import Json


class Code(StrEnum):
    """Every code of the protocol; the first six are the core's own."""

    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    UNAUTHORIZED = "UNAUTHORIZED"
    RATE_LIMITED = "RATE_LIMITED"
    CONFIRMATION_TIMEOUT = "CONFIRMATION_TIMEOUT"
    CONFIRMATION_DENIED = "CONFIRMATION_DENIED"
    PLUGIN_TIMEOUT = "PLUGIN_TIMEOUT"
    PLUGIN_UNAVAILABLE = "PLUGIN_UNAVAILABLE"
    PLUGIN_ERROR = "PLUGIN_ERROR"
    HANDLER_ERROR = "HANDLER_ERROR"


RESERVED: Final = frozenset(tuple(Code)[:6])
RETRIABLE: Final = frozenset(
    {Code.RATE_LIMITED, Code.CONFIRMATION_TIMEOUT, Code.PLUGIN_TIMEOUT, Code.PLUGIN_UNAVAILABLE}
)


class ToolError(Exception):
    """A call that was refused or failed, as its caller is told."""

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        retriable: bool | None = None,
        stage: int | None = None,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retriable = code in RETRIABLE if retriable is None else retriable
        self.stage = stage
        self.field = field
        self.retry_after = retry_after

    def payload(self) -> dict[str, Json]:
        """The error as it stands in a reply; what is not known is left out."""
        told: dict[str, Json] = {
            "code": self.code.value,
            "message": self.message,
            "retriable": self.retriable,
        }
        rest: dict[str, Json] = {
            "stage": self.stage,
            "field": self.field,
            "retry_after": self.retry_after,
        }
        return told | {name: value for name, value in rest.items() if value is not None}


_TRY_AGAIN: Final = (errors.Busy, errors.Full)
_BROKEN: Final = (
    errors.StoreError,
    errors.EmbedderError,
    errors.ExtractorError,
    errors.SealBroken,
    errors.KeyMissing,
    errors.Locked,
)


def translated(error: ScrubjayError) -> ToolError:
    """An error of the engine in Carapace's terms: the caller's fault, or the plugin's."""
    if isinstance(error, _TRY_AGAIN):
        code = Code.PLUGIN_UNAVAILABLE
    elif isinstance(error, _BROKEN):
        code = Code.PLUGIN_ERROR
    else:
        code = Code.HANDLER_ERROR
    return ToolError(code, f"{error.message} {error.hint}")
