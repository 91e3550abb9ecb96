"""The rule for addresses, purposes and blob names: safe as a file name on every system."""

from __future__ import annotations

import re

from scrubjay.domain.errors import InvalidRequest

_NAME = re.compile(r"[a-z0-9-][a-z0-9.-]{0,63}")


def check_place(what: str, name: str) -> str:
    """The name, if it has 1 to 64 characters of a-z, 0-9, `-` and `.` and begins with no dot."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"The {what} is not a valid name.",
            hint="Use 1 to 64 characters of a-z, 0-9, - and ., not beginning with a dot.",
        )
    return name
