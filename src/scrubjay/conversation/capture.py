"""Capture of a turn from the requests and answers of a model API, without echoes of memory.

The original request holds what the user said. The forwarded request also holds injected memories;
it is read only to recognize echoes of them.
"""

from __future__ import annotations

from typing import NamedTuple

from scrubjay.conversation import messages
from scrubjay.guard.secrets import redact
from scrubjay.model import echo
from scrubjay.model.clean import clean
from scrubjay.model.text import TURN_BYTES


class CapturedTurn(NamedTuple):
    """The two sides of a turn, ready to be recorded, and what memory had shown in it."""

    user: str
    assistant: str
    shown: str


def capture(request: object, answer: str, *, sent_on: object = None) -> CapturedTurn:
    """Capture a turn: the last user message of a request, and the answer, each within its limit.

    Where only the forwarded request is known, of its messages those that the proxy added are none.
    """
    users = list(messages.user_texts(request))
    if not users:
        users = [one for one in messages.user_texts(sent_on) if not echo.added(one)]
    said = next((one for one in reversed([echo.cut(one).strip() for one in users]) if one), "")
    shown = [one for text in messages.all_texts(sent_on) for one in echo.injected(text)]
    return CapturedTurn(_bounded(said), _bounded(answer), _bounded("\n".join(shown)))


def _bounded(text: str) -> str:
    return sound(text).encode()[:TURN_BYTES].decode("utf-8", "ignore")


def users_said(request: object) -> list[str]:
    """All user messages of a request, oldest first, without injected memories."""
    users = [echo.cut(sound(one)) for one in messages.user_texts(request)]
    return [one for one in users if one.strip()]


def sound(text: str) -> str:
    """The text with halves of surrogate pairs joined, or replaced: JSON may carry lone ones."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def purified(text: str) -> str:
    """The text as it would be stored: without invisible characters and secrets."""
    return redact(clean(text)).text
