"""SQL in files of its own, as texts under headings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

_HEADING: Final = re.compile(r"^-- ([a-z_]+(?: \d+)?) --\n", re.MULTILINE)


def sections(beside: str, name: str) -> Mapping[str, str]:
    """The named texts of an SQL file that lies beside a module."""
    # By its path: importlib.resources takes longer to import than the rest together.
    _, *parts = _HEADING.split(Path(beside).with_name(name).read_text("utf-8"))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return MappingProxyType({heading: text.strip() for heading, text in pairs})
