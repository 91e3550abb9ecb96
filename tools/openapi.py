"""`python tools/openapi.py [--check]`: write docs/openapi.json, or say that it is out of date."""

from __future__ import annotations

import sys
from pathlib import Path

from scrubjay.service.openapi import render

PAGE = Path(__file__).parents[1] / "docs" / "openapi.json"


def main() -> int:
    """Write the document, or with --check compare it."""
    made = render()
    if "--check" not in sys.argv[1:]:
        PAGE.write_bytes(made)
        return 0
    if PAGE.exists() and PAGE.read_bytes() == made:
        return 0
    print("docs/openapi.json is not what the table of operations says: run tools/openapi.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
