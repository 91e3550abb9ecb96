"""Bodies: read whole, within a limit, and only as JSON."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request

from scrubjay.surfaces.bridge import Abandoned
from scrubjay.surfaces.http.problems import Problem

SECONDS: Final = 60.0
"""How long a body may take to arrive."""


async def read(request: Request, most: int, *, seconds: float = SECONDS) -> bytes:
    """The body, or a Problem as soon as it is clear that it is too large or not JSON."""
    body = await receive(request, most, seconds=seconds)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise Problem(415, "unsupported_media_type", "Send the body as application/json.")
    return body


def declared(request: Request) -> int | None:
    """How long the body is said to be; None if nothing sound is said."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() and len(length) < 20 else None


async def receive(request: Request, most: int, *, seconds: float = SECONDS) -> bytes:
    """The body whatever it is, or a Problem if it is too large or does not arrive in time."""
    if (declared(request) or 0) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _whole(request, most)
    except ClientDisconnect as error:
        raise Abandoned from error
    except TimeoutError as error:
        raise Problem(
            408, "too_slow", "The body did not arrive in time.", headers={"Connection": "close"}
        ) from error


async def _whole(request: Request, most: int) -> bytes:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise _too_large(most)
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
