"""The command line: parse, one call on the library, render."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    import sys

    from scrubjay.cli.app import run

    sys.exit(run())
