"""Purposes of processing that a person may switch off, and the request to do so."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from scrubjay.model.memory import Kind, Result
from scrubjay.model.origin import Actor
from scrubjay.model.text import CheckedRequest, Name, doc


class UsePurpose(StrEnum):
    """What is done with a person's words, beyond keeping them."""

    FACTS = "facts"
    """Memories are derived from turns."""
    PATTERNS = "patterns"
    """Patterns of work are derived from turns."""
    MODEL = "model"
    """Text is sent to a language model: extraction, consolidation, compaction."""
    EMBEDDING = "embedding"
    """Text is sent to an embedder elsewhere."""


def is_pattern(kind: Kind, tags: Sequence[str]) -> bool:
    """Whether a memory tells a pattern: by its kind, or as a fact that was consolidated."""
    return kind is Kind.PATTERN or f"category:{Kind.PATTERN}" in tags


class LawfulBasis(StrEnum):
    """Why a purpose is lawful (Art. 6 (1) GDPR)."""

    CONSENT = "consent"
    CONTRACT = "contract"
    LEGITIMATE_INTEREST = "legitimate_interest"


if TYPE_CHECKING:
    PurposeArg = UsePurpose | Literal["facts", "patterns", "model", "embedding"]
    BasisArg = LawfulBasis | Literal["consent", "contract", "legitimate_interest"]
else:
    PurposeArg, BasisArg = UsePurpose, LawfulBasis


class SetPurpose(CheckedRequest, frozen=True, kw_only=True):
    """Switch a purpose on or off; it holds from the next transaction on."""

    purpose: Annotated[PurposeArg, doc("The purpose: what is done with the words.")]
    on: Annotated[bool, doc("Whether it is allowed.")]
    basis: Annotated[BasisArg, doc("Why it is lawful.")] = LawfulBasis.CONSENT
    note: Annotated[
        Name | None, doc("What the person was told, such as a version of the text.")
    ] = None


class PurposeState(Result, frozen=True, kw_only=True):
    """Whether one purpose is on, since when, and why."""

    purpose: Annotated[UsePurpose, doc("The purpose.")]
    on: Annotated[bool, doc("Whether it is allowed.")]
    basis: Annotated[LawfulBasis, doc("Why it is lawful.")]
    at: Annotated[datetime | None, doc("The time it was decided; None for the default.")] = None
    by: Annotated[Actor | None, doc("The actor who decided.")] = None
    note: Annotated[str | None, doc("What the person was told.")] = None
