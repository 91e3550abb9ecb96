"""Language models, as far as the rest has to know of them."""

from __future__ import annotations

from enum import StrEnum


class ModelDialect(StrEnum):
    """How a language model is spoken to."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
