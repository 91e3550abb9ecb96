"""Hooks of coding agents: `scrubjay-hook NAME`, with the hook's JSON on standard input.

A hook must never stand in the way of the agent. So this module loads the standard library alone,
all else is loaded within the time there is, whatever goes wrong costs a line on standard error,
and the exit status is 0. Standard output stays empty: agents take it for instructions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from typing import Any

_INPUT_BYTES = 1024 * 1024


def main(arguments: list[str] | None = None) -> int:
    """Run one hook; always 0, so that no agent is held up by its memory."""
    try:
        asked = _parser().parse_args(arguments)
    except SystemExit:  # what is wrong was said; an agent takes any other status for "stop"
        return 0
    failure: list[str] = ["it did not end within its time; the next hook goes on."]

    def work() -> None:
        try:
            told = _told() if asked.hook == "precompact" else None
            from scrubjay.surfaces.hooks import precompact

            precompact.run(told, scope=asked.scope, markdown=getattr(asked, "markdown", None))
            failure.clear()
        except BaseException as error:  # seam: no agent is held up by its memory
            hint = getattr(error, "hint", None) or ""
            failure[:] = [f"{error} {hint}".strip() or type(error).__name__]

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(asked.seconds)
    for line in failure:
        sys.stderr.write(f"scrubjay-hook: {' '.join(line.split())}\n")
    if worker.is_alive():
        os._exit(0)  # what was written is durable, and a thread that waits cannot be ended
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scrubjay-hook", description=__doc__)
    hooks = parser.add_subparsers(dest="hook", required=True, metavar="HOOK")
    precompact = hooks.add_parser(
        "precompact",
        help="before an agent compacts its context: keep the transcript, record its turns",
    )
    precompact.add_argument(
        "--markdown", metavar="DIR", help="folder for a plain copy of the transcript as markdown"
    )
    tidy = hooks.add_parser(
        "tidy", help="after something was forgotten: take it out of the plain copies, too"
    )
    for one in (precompact, tidy):
        one.add_argument("--scope", help="scope; by default that of the configuration")
        one.add_argument("--seconds", type=float, default=10.0, help="time budget (default: 10)")
    return parser


def _told() -> dict[str, Any]:
    """What the agent says on standard input; ValueError if it is no hook's JSON."""
    raw = sys.stdin.buffer.read(_INPUT_BYTES)
    found = json.loads(raw)
    if not isinstance(found, dict) or not all(
        isinstance(found.get(name), str) and found[name]
        for name in ("session_id", "transcript_path")
    ):
        raise ValueError("the input is not a PreCompact hook's: session_id and transcript_path")
    return found
