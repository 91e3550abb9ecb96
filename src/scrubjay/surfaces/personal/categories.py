"""Categories and content types of personal memory, told by the kinds of the engine.

The category of a memory is told by its kind alone, so that a filter by category is one by kinds.
The content type is that of the kind, unless the memory says another in its metadata.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final

from scrubjay.model.memory import Kind, Memory

TYPE: Final = "content_type"
"""Name in the metadata of a memory whose content type is not that of its kind."""


class Category(StrEnum):
    """What a person's memory is about."""

    CONVERSATION = "conversation"
    WORK_PATTERN = "work_pattern"
    PREFERENCE = "preference"
    LEARNED_CONTEXT = "learned_context"


class ContentType(StrEnum):
    """The form of a memory's content."""

    TRANSCRIPT = "transcript"
    SUMMARY = "summary"
    FACT = "fact"
    PREFERENCE = "preference"
    PATTERN = "pattern"


_PLACES: Final = {
    Kind.EPISODE: (Category.CONVERSATION, ContentType.TRANSCRIPT),
    Kind.SUMMARY: (Category.CONVERSATION, ContentType.SUMMARY),
    Kind.PATTERN: (Category.WORK_PATTERN, ContentType.PATTERN),
    Kind.PREFERENCE: (Category.PREFERENCE, ContentType.PREFERENCE),
    Kind.INSTRUCTION: (Category.PREFERENCE, ContentType.PREFERENCE),
    Kind.CORRECTION: (Category.PREFERENCE, ContentType.PREFERENCE),
    Kind.PROCEDURE: (Category.PREFERENCE, ContentType.PREFERENCE),
    Kind.FACT: (Category.LEARNED_CONTEXT, ContentType.FACT),
    Kind.CONTEXT: (Category.LEARNED_CONTEXT, ContentType.SUMMARY),
}


def kind_of(category: Category, form: ContentType) -> Kind:
    """The kind a memory of this category and content type is stored as."""
    kinds = [kind for kind, place in _PLACES.items() if place[0] is category]
    return next((kind for kind in kinds if _PLACES[kind][1] is form), kinds[0])


def kinds_of(categories: tuple[Category, ...]) -> tuple[Kind, ...]:
    """The kinds that these categories are told by."""
    return tuple(kind for kind, place in _PLACES.items() if place[0] in categories)


def place_of(memory: Memory) -> tuple[Category, ContentType]:
    """The category and the content type of a memory."""
    category, form = _PLACES[memory.kind]
    told = memory.metadata.get(TYPE)
    return category, ContentType(told) if told in set(ContentType) else form


def form_of(kind: Kind) -> ContentType:
    """The content type of a kind, where a memory does not say another."""
    return _PLACES[kind][1]


def content_hash(content: str) -> str:
    """Hash of a text, computed for the answer: only a keyed one is stored."""
    return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"
