"""Bodies: read whole, within a limit each and all together, and only as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import ClientDisconnect, Request

from scrubjay.bridge import Abandoned
from scrubjay.service.problems import Problem

SECONDS: Final = 60.0
"""How long a body may take to arrive."""
TOGETHER_BYTES: Final = 256 * 1024 * 1024
"""How much the bodies of all requests under way may have together."""

See = Callable[[bytes], object]


class Room:
    """How many bytes of bodies may be here at once; used by the event loop alone."""

    def __init__(self, most: int = TOGETHER_BYTES) -> None:
        self.left = most

    @contextmanager
    def share(self) -> Iterator[See]:
        """How one request says what it takes; given back when it is answered."""
        taken = 0

        def take(piece: bytes) -> None:
            nonlocal taken
            if len(piece) > self.left:
                raise Problem(
                    503,
                    "no_room",
                    "Too many large bodies are here at once.",
                    headers={"Retry-After": "1", "Connection": "close"},
                )
            self.left -= len(piece)
            taken += len(piece)

        try:
            yield take
        finally:
            self.left += taken


async def read(request: Request, most: int, *see: See, seconds: float = SECONDS) -> bytes:
    """The body, or a Problem as soon as it is clear that it is too large or not JSON.

    Each of `see` is shown every piece as it arrives.
    """
    body = await receive(request, most, *see, seconds=seconds)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise Problem(415, "unsupported_media_type", "Send the body as application/json.")
    return body


def declared(request: Request) -> int:
    """How long the body is said to be; 0 if nothing sound is said."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() and len(length) < 20 else 0


async def receive(request: Request, most: int, *see: See, seconds: float = SECONDS) -> bytes:
    """The body whatever it is, or a Problem if it is too large or does not arrive in time."""
    if declared(request) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _whole(request, most, see)
    except ClientDisconnect as error:
        raise Abandoned from error
    except TimeoutError as error:
        raise Problem(
            408, "too_slow", "The body did not arrive in time.", headers={"Connection": "close"}
        ) from error


async def _whole(request: Request, most: int, see: tuple[See, ...]) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise _too_large(most)
        for show in see:
            show(piece)
        pieces.append(piece)
    return b"".join(pieces)


async def disconnected(request: Request) -> None:
    """Return once the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        "too_large",
        f"The body may have at most {most:,} bytes.",
        headers={"Connection": "close"},
    )
