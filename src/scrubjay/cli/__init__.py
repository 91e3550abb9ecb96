"""The command line: parse, one call on the library, render."""

from __future__ import annotations


def main() -> None:
    """Run the command line.

    The garbage collector is off until the modules are loaded: what they define lives to the end,
    and looking through it again and again takes a fifth of a short command.
    """
    import gc
    import sys

    gc.disable()
    from scrubjay.cli.app import run

    sys.exit(run())
