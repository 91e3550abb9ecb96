"""A time limit for somebody else's code, enforced from outside of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

Result = TypeVar("Result")


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """What `work` returns or raises; TimeoutError if it takes too long.

    Python cannot stop a thread: late work goes on until it ends, and its result is dropped.
    """
    answers: SimpleQueue[tuple[Result | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except BaseException as error:  # seam: whatever it was is raised again by who waits
            answers.put((None, error))

    threading.Thread(target=run, daemon=True, name="carapace plugin").start()
    try:
        result, error = answers.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"There was no answer within {seconds:g} seconds.") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # None only if that is what it returned
