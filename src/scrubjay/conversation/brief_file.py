"""A brief within a file such as CLAUDE.md: between two marks, and replaced the next time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from scrubjay import files
from scrubjay.model.errors import InvalidRequest, NotFound

BEGIN: Final = "<!-- scrubjay brief: begin -->"
END: Final = "<!-- scrubjay brief: end -->"
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


def block(markdown: str) -> str:
    """The brief between its marks."""
    return f"{BEGIN}\n{markdown}{END}\n"


def inject(path: Path, markdown: str) -> None:
    """Put the brief into a file, in place of the one before; all else in it stays as it is.

    The marks count only as whole lines. A line of a brief begins with a list's mark or a heading's,
    so that no memory can pass for one.
    """
    target = path.resolve()  # a link stays a link
    try:
        before = files.read(target).decode()
    except NotFound:
        before = ""
    except UnicodeDecodeError as error:
        raise InvalidRequest("The file is not UTF-8 text.", hint="Nothing was changed.") from error
    lines = _LINE.findall(before)
    begins = [at for at, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [at for at, line in enumerate(lines) if line.strip() == END]
    if not begins and not ends:
        gap = "" if not before or before.endswith("\n\n") else "\n\n"
        gap = "\n" if gap and before.endswith("\n") else gap
        text = f"{before}{gap}{block(markdown)}"
    elif len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise InvalidRequest(
            "The marks of the brief in this file do not make a pair.",
            hint="Leave one begin and one end, or take both out. Nothing was changed.",
        )
    else:
        text = "".join([*lines[: begins[0]], block(markdown), *lines[ends[0] + 1 :]])
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    files.write(target, text.encode(), mode=mode)
