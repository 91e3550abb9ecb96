"""Log lines as JSON on stderr: events and numbers, never what a memory says."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    *("message", "asctime", "taskName"),
    "color_message",  # the server's: the same event once more, with escape sequences
}


class JsonLines(logging.Formatter):
    """One object a line: event, level, time, and the fields the event came with."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[0]:
            # The text of an exception may quote what it failed on; its place does not.
            line["error"] = record.exc_info[0].__name__
            line["at"] = _place(record)
        return json.dumps(line, default=str, ensure_ascii=False)


def _place(record: logging.LogRecord) -> str:
    trace = record.exc_info[2] if record.exc_info else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"


def to_stderr(level: int = logging.INFO) -> None:
    """Send the log lines of scrubjay and of the server to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("scrubjay", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
