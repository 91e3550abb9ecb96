"""The files of the plugin, written from code: manifest.json and the skill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from scrubjay.domain.errors import InvalidRequest
from scrubjay.surfaces.dialects.carapace import schemas, skill

MANIFEST: Final = "manifest.json"
SKILL: Final = "skills/memory.md"


def contents() -> dict[str, str]:
    """Every file by its name below the plugin's folder."""
    manifest = json.dumps(schemas.manifest(), indent=2, ensure_ascii=False) + "\n"
    return {MANIFEST: manifest, SKILL: skill.text()}


def write(folder: Path) -> list[Path]:
    """Write them; files of these names are replaced."""
    written = []
    for name, text in contents().items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be written: {error.strerror}.") from error
        written.append(path)
    return written
