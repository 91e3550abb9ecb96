"""Child processes of tests, which end by signals whatever the tests themselves ignore."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_DEFAULT_SIGNALS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def default_signals(command: Sequence[str]) -> list[str]:
    """The command with SIGINT and SIGTERM at their default disposition, in the same process.

    A child inherits an ignored signal, and a job in the background (nohup, `sh -c '... &'`) ignores
    SIGINT. This is no `preexec_fn`, because a fork beside threads is a warning from Python 3.12 on.
    """
    return [sys.executable, "-IS", "-c", _DEFAULT_SIGNALS, *command]
