"""Embeddings of a role: which model makes them, and who made those that are there.

The model is `embeddings.model`, else the default of `embeddings.provider`, else that of the agent's
provider. Its identity and dimensions are recorded with the first memory, and compared from then on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.handle import Jay
from scrubjay.model.errors import Changed, EmbedderError, InvalidRequest, NotFound
from scrubjay.model.memory import Json
from scrubjay.ports import Embedder
from scrubjay.settings import EmbedderName, OpenAISettings, Settings
from scrubjay.surfaces.initrunner.roles import EmbeddingConfig

LOCAL: Final = "local"
_DEFAULTS: Final = {
    "openai": "openai:text-embedding-3-small",
    "anthropic": "openai:text-embedding-3-small",
    "google": "google:text-embedding-004",
    "ollama": "ollama:nomic-embed-text",
}
_KEYS: Final = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
}
_ENDPOINTS: Final = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "ollama": "http://localhost:11434/v1",
}
_RECORD: Final = ("initrunner", "embeddings")
"""The document that names the model of a scope."""


class EmbeddingKeyMissing(InvalidRequest):
    """The API key of the embedding model is not set."""

    code = "embedding_key_missing"


class EmbeddingModelChanged(Changed):
    """The memories of a scope were embedded by another model."""

    code = "embedding_model_changed"


class DimensionMismatch(Changed):
    """The model gives vectors of another size than the memories of a scope have."""

    code = "dimension_mismatch"


class EmbeddingModel(Struct, frozen=True, kw_only=True):
    """The model that a role's memories are embedded with."""

    provider: str
    name: str = ""
    base_url: str = ""
    """A custom endpoint, or that of Ollama; empty for the provider's own."""
    key_variable: str = ""
    hint: str = ""
    """What else to say where the key is missing."""

    @property
    def identity(self) -> str:
        """Identity of the model: provider, name, and a hash of a custom endpoint."""
        if self.provider == LOCAL:
            return LOCAL
        place = hashlib.sha256(self.base_url.encode()).hexdigest()[:8]
        return f"{self.provider}:{self.name}" + (f":{place}" if self.base_url else "")

    def settings(self, given: Settings, variable: Callable[[str], str | None]) -> Settings:
        """The settings of an engine that embeds with it; EmbeddingKeyMissing without its key."""
        if self.provider == LOCAL:
            return replace(given, embedder=EmbedderName.STATIC)
        key = variable(self.key_variable) if self.key_variable else None
        if self.key_variable and key is None:
            raise EmbeddingKeyMissing(
                f"Embedding API key not found: set the {self.key_variable} environment variable. "
                f"Note: embedding keys may differ from LLM keys{self.hint}.",
                hint="Or set memory.embeddings.api_key_env in the role file to another variable, "
                f"or memory.embeddings.provider to {LOCAL}, which needs no key and no network.",
            )
        own = variable("OPENAI_BASE_URL") if self.provider == "openai" else None
        url = self.base_url or own or _ENDPOINTS[self.provider]
        endpoint = OpenAISettings(url=url, model=self.name, api_key=key)
        return replace(given, embedder=EmbedderName.OPENAI, openai=endpoint)


def resolve(config: EmbeddingConfig, agent_provider: str) -> EmbeddingModel:
    """The embedding model of a role; InvalidRequest for a provider that cannot embed here."""
    provider = config.provider or agent_provider or "openai"
    if provider == LOCAL:
        return EmbeddingModel(provider=LOCAL)
    default = _DEFAULTS.get(provider, _DEFAULTS["openai"])
    if provider == "ollama" or config.base_url:
        return EmbeddingModel(
            provider=provider,
            name=(config.model or default).removeprefix("openai:").removeprefix(f"{provider}:"),
            base_url=config.base_url,
            key_variable=config.api_key_env,
        )
    named = config.model or default
    owner, colon, name = named.partition(":")
    if not colon:
        owner, name = provider, named
    if owner not in _ENDPOINTS or (config.provider and config.provider not in _DEFAULTS):
        owner = config.provider or owner
        raise InvalidRequest(
            f"The provider {owner} has no embeddings that scrubjay knows.",
            hint="Set memory.embeddings.provider to openai, google, ollama or local, or "
            "memory.embeddings.base_url to an endpoint that speaks OpenAI's protocol.",
        )
    hint = " (Anthropic has no embeddings API; OpenAI is used by default)"
    if provider not in _DEFAULTS:
        hint = f" (of {provider} scrubjay knows no embeddings; OpenAI's are used by default)"
    return EmbeddingModel(
        provider="openai" if owner == "anthropic" else owner,
        name=name,
        key_variable=config.api_key_env or _KEYS.get(owner, ""),
        hint=hint if provider not in ("openai", "google") else "",
    )


class EmbeddingRecord:
    """Identity and dimensions of the model that embedded a scope, as they were first recorded."""

    def __init__(self, jay: Jay, model: EmbeddingModel, embedder: Embedder) -> None:
        self._jay = jay
        self._model = model
        self._embedder = embedder
        self._checked = False

    def check(self) -> None:
        """EmbeddingModelChanged or DimensionMismatch if the scope was embedded otherwise."""
        if self._checked or (recorded := self._read()) is None:
            return
        identity, dimensions = recorded
        if identity != self._model.identity:
            raise EmbeddingModelChanged(
                f"The memories of {self._jay.scope} were embedded by {identity}, and the role "
                f"names {self._model.identity}.",
                hint="Name the model of before, or embed them anew: "
                "`scrubjay memory reembed ROLE`.",
            )
        if (given := self._dimensions()) and dimensions != given:
            raise DimensionMismatch(
                f"The memories of {self._jay.scope} have {dimensions}d embeddings, and "
                f"{identity} gives {given}d ones.",
                hint="Use the endpoint of before, or embed them anew: "
                "`scrubjay memory reembed ROLE`.",
            )
        self._checked = True

    def note(self) -> None:
        """Record the present model, unless one is recorded."""
        if not self._checked and self._read() is None:
            self._write()

    def renew(self) -> int:
        """Embed every memory with the present model and record it; returns how many there are."""
        found = self._jay.reindex()
        self._write()
        return found.memories

    def _write(self) -> None:
        if dimensions := self._dimensions():
            told: Json = {"embedding_model": self._model.identity, "dimensions": dimensions}
            self._jay.put(_RECORD, told)
            self._checked = True

    def _read(self) -> tuple[str, int] | None:
        try:
            value: Any = self._jay.document(_RECORD).value
        except NotFound:
            return None
        return value["embedding_model"], value["dimensions"]

    def _dimensions(self) -> int:
        """How many numbers a vector has, asked once if it is not known; 0 if nobody answers."""
        with suppress(EmbedderError):
            if not self._embedder.dimensions:
                self._embedder.embed(["dimensions"])
        return self._embedder.dimensions
