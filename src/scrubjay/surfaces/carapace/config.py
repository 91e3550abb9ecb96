"""The plugin's configuration, and from a group's name to its scope."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from scrubjay import settings as reading
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Json
from scrubjay.model.requests import BRIEF_LIMIT
from scrubjay.model.scope import LOCAL_TENANT, Scope
from scrubjay.model.text import check_count, check_days
from scrubjay.settings import EmbedderName, Settings
from scrubjay.surfaces.carapace import schemas
from scrubjay.surfaces.carapace.validation import faults

DEFAULT_GROUP: Final = "main"
_GROUP: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}")


def scope_of(group: str) -> Scope:
    """The scope of a group; refuses whatever could be a path, an option or another's scope."""
    if not isinstance(group, str) or not _GROUP.fullmatch(group):
        raise InvalidRequest(
            "That is not the name of a group.",
            hint="Use 1 to 128 letters, digits, - and _, a letter or digit first.",
        )
    return Scope(LOCAL_TENANT, group)


class Provider(StrEnum):
    """What gives entries a meaning to be found by, beside their words."""

    NONE = "none"
    LOCAL = "local"
    OPENAI = "openai"


_EMBEDDERS: Final = {
    Provider.NONE: EmbedderName.NONE,
    Provider.LOCAL: EmbedderName.STATIC,
    Provider.OPENAI: EmbedderName.OPENAI,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The keys of the manifest's `config_schema`, with its defaults."""

    storage_path: str | None = None
    max_brief_entries: int = 50
    max_brief_chars: int = 10_000
    purge_superseded_days: int = 90
    embedding_provider: Provider = Provider.NONE

    def __post_init__(self) -> None:
        if not 1 <= self.max_brief_entries <= BRIEF_LIMIT:
            raise InvalidRequest(f"max_brief_entries is a number from 1 to {BRIEF_LIMIT:,}.")
        check_count("max_brief_chars", self.max_brief_chars, least=1)
        check_days("purge_superseded_days", self.purge_superseded_days)

    @classmethod
    def read(cls, given: Mapping[str, Json]) -> Config:
        """The configuration a host hands over; a key that is not ours is refused."""
        strict = {**schemas.CONFIG, "additionalProperties": False}
        if wrong := list(faults(given, strict)):
            raise InvalidRequest(
                f"The configuration is wrong: {'; '.join(map(str, wrong))}.",
                hint="The keys are those of config_schema in manifest.json.",
            )
        values: dict[str, Any] = {
            name: int(value) if isinstance(value, float) else value for name, value in given.items()
        }
        if "embedding_provider" in values:
            values["embedding_provider"] = Provider(values["embedding_provider"])
        return cls(**values)

    def settings(self, found: Settings | None = None) -> Settings:
        """The settings of the engine behind it; `found` are those read already."""
        if found is None or self.storage_path is not None:
            home = None if self.storage_path is None else Path(self.storage_path)
            passphrase = None if found is None else found.passphrase
            found = reading.read(home=home)
            found = replace(found, passphrase=found.passphrase or passphrase)
        chosen = _EMBEDDERS[self.embedding_provider]
        asked = found.openai
        if chosen is EmbedderName.OPENAI and not (asked.url and asked.model and asked.dimensions):
            raise InvalidRequest(
                "The embedding provider openai has no endpoint.",
                hint="Set openai.url, openai.model and openai.dimensions in config.toml.",
            )
        return replace(found, embedder=chosen)
