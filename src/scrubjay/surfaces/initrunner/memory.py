"""Long-term memory of an agent: the five tools with their exact answers, caps, and episodes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from itertools import islice
from typing import Final

from msgspec import Struct

from scrubjay.conversation.capture import sound
from scrubjay.conversation.taint import SessionTaint, tainting
from scrubjay.handle import Jay
from scrubjay.model.errors import InvalidRequest, NotFound, ScrubjayError
from scrubjay.model.jobs import JobKind, Worked
from scrubjay.model.memory import CATEGORY, Json, Kind, Memory
from scrubjay.model.pages import PAGE_LIMIT, every
from scrubjay.model.requests import RECALL_LIMIT
from scrubjay.model.retention import KindLimit
from scrubjay.surfaces.initrunner.embeddings import EmbeddingRecord
from scrubjay.surfaces.initrunner.roles import MemoryConfig, MemoryType, check_config

GENERAL: Final = "general"
CONSOLIDATED: Final = "consolidated"
"""Metadata key by which the engine marks an episode that was consolidated."""
DERIVED_BY: Final = "derived_by"
PROCEDURES: Final = 20
_HEADING: Final = "## Learned Procedures and Policies"
_PAGE: Final = 200
_SECONDS: Final = 120.0
_EPISODE_CHARS: Final = 10_000
"""Of what a run says of itself; consolidation gives a model twenty of them at once."""
_MARK: Final = re.compile(r"^(?=---|\[Type:)", re.MULTILINE)
"""Where a line of a memory would pass for the beginning of another one."""

log = logging.getLogger(__name__)


class WrongType(InvalidRequest):
    """There is no such type of memory."""

    code = "wrong_memory_type"


class Cleared(Struct, frozen=True, kw_only=True):
    """What was erased."""

    memories: int = 0
    derived: int = 0
    """How many memories of other types went along, because they were derived from these."""


def type_named(name: str) -> MemoryType:
    """The type of this name; WrongType if there is none."""
    try:
        return MemoryType(name)
    except ValueError as error:
        raise WrongType(f"{name!r} is not a valid MemoryType") from error


def sanitized(category: str) -> str:
    """A category as it is stored: lower case, anything but letters and digits as one underscore."""
    return re.sub(r"[^a-z0-9]+", "_", category.lower()).strip("_")[:64] or GENERAL


def category_of(memory: Memory) -> str:
    """The category of a memory."""
    named = (tag.removeprefix(CATEGORY) for tag in memory.tags if tag.startswith(CATEGORY))
    return next(named, GENERAL)


def created_at(memory: Memory) -> str:
    """The time of a memory as InitRunner writes it: ISO 8601 in UTC."""
    return memory.said_at.astimezone(UTC).isoformat()


class LongTermMemory:
    """Facts, episodes and procedures of one scope; safe for use by several threads."""

    def __init__(
        self, jay: Jay, config: MemoryConfig | None = None, embedded: EmbeddingRecord | None = None
    ) -> None:
        self.jay = jay
        self.config = check_config(config)
        self._embedded = embedded
        self._capped = False
        self.taint = SessionTaint(jay.mark_tainted)

    # -- the tools -------------------------------------------------------------------------

    def remember(self, content: str, category: str = GENERAL, *, session: str | None = None) -> str:
        """Store a fact."""
        number, category = self.add(MemoryType.SEMANTIC, content, category, session=session)
        return f"Remembered (id={number}, category={category})"

    def learn_procedure(
        self, content: str, category: str = GENERAL, *, session: str | None = None
    ) -> str:
        """Store a procedure."""
        number, category = self.add(MemoryType.PROCEDURAL, content, category, session=session)
        return f"Learned procedure (id={number}, category={category})"

    def record_episode(
        self, content: str, category: str = GENERAL, *, session: str | None = None
    ) -> str:
        """Store an episode."""
        number, category = self.add(MemoryType.EPISODIC, content, category, session=session)
        return f"Recorded episode (id={number}, category={category})"

    def recall(
        self,
        query: str,
        top_k: int = 5,
        memory_types: Sequence[str] | None = None,
        *,
        session: str | None = None,
    ) -> str:
        """Search; the session that reads untrusted text is tainted by it."""
        types = [type_named(name) for name in memory_types or ()]
        kinds = frozenset(kind for type_ in types for kind in type_.kinds)
        self._check_embedded()
        try:
            hits = self.jay.recall(query, kinds=kinds, limit=_within(top_k, RECALL_LIMIT)).hits
        except NotFound:
            return "No memories stored yet."
        self.taint.note(session, tainting(hit.memory for hit in hits))
        blocks = (
            f"[Type: {MemoryType.of(hit.memory.kind)} | Category: {category_of(hit.memory)} | "
            f"Score: {hit.similarity or 0.0:.3f} | {created_at(hit.memory)}]\n"
            f"{_MARK.sub(' ', hit.memory.content)}"
            for hit in hits
        )
        return "\n\n---\n\n".join(blocks) or "No relevant memories found."

    def list_memories(
        self,
        category: str | None = None,
        limit: int = 20,
        memory_type: str | None = None,
        *,
        session: str | None = None,
    ) -> str:
        """The newest memories, a line each; a session that is shown untrusted text is tainted."""
        type_ = type_named(memory_type) if memory_type else None
        found = self.newest(limit=limit, category=category, type_=type_)
        if not found and not self.exists():
            return "No memories stored yet."
        self.taint.note(session, tainting(found))
        lines = (
            f"[{MemoryType.of(one.kind)}:{category_of(one)}] ({created_at(one)}) "
            f"{_line(one.content)}"
            for one in found
        )
        return "\n".join(lines) or "No memories found."

    # -- writing ---------------------------------------------------------------------------

    def add(
        self,
        type_: MemoryType,
        content: str,
        category: str = GENERAL,
        *,
        session: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> tuple[int | None, str]:
        """Store a memory and keep to the caps; returns its number and category."""
        self._check_embedded()
        self.taint.settle(session)
        category = sanitized(category)
        receipt = self.jay.retain(
            content,
            kind=type_.kind,
            tags=(f"{CATEGORY}{category}",),
            session=session,
            origin="agent",
            metadata=metadata or {},
        )
        self.settle()
        return receipt.number, category

    def settle(self) -> None:
        """Set the caps of the scope, and record what embedded it; once in the life of a handle."""
        if self._embedded is not None:
            self._embedded.note()
        if self._capped:
            return
        caps = {type_.kind: most for type_, most in self.config.caps.items()}
        present = self.jay.retention()
        others = [one for one in present.limits if one.kind not in caps]
        limits = [*others, *(KindLimit(kind=kind, number=most) for kind, most in caps.items())]
        if set(limits) != set(present.limits):
            self.jay.set_retention(
                limits=limits, turns=present.turns, duplicates=present.duplicates
            )
        self._capped = True

    def capture(
        self,
        content: str,
        category: str,
        metadata: Mapping[str, Json] | None = None,
        *,
        session: str,
    ) -> None:
        """Store what an unattended run did as an episode, cut; a failure is only logged."""
        if not self.config.enabled(MemoryType.EPISODIC):
            return
        try:
            content = sound(content)[:_EPISODE_CHARS]
            self.add(MemoryType.EPISODIC, content, category, session=session, metadata=metadata)
        except Exception as error:  # seam: a run must not fail over the note of what it did
            code = getattr(error, "code", type(error).__name__)
            log.warning("Failed to capture episodic memory", extra={"code": code})

    def clear(self, type_: MemoryType | None = None) -> Cleared:
        """Erase all memories, or those of one type, with everything that was derived from them."""
        with suppress(NotFound):
            done = self.jay.forget(kinds=frozenset(Kind) if type_ is None else type_.kinds)
            return Cleared(memories=done.erased - done.derived, derived=done.derived)
        return Cleared()

    # -- reading ---------------------------------------------------------------------------

    def newest(
        self, *, limit: int, category: str | None = None, type_: MemoryType | None = None
    ) -> list[Memory]:
        """The newest memories; none if nothing was ever stored."""
        kinds = frozenset[Kind]() if type_ is None else type_.kinds
        most = _within(limit, PAGE_LIMIT)
        with suppress(NotFound, InvalidRequest):  # no memory can have a category like that
            return [*self.jay.browse(kinds=kinds, category=category or None, limit=most)]
        return []

    def present(self) -> Iterator[Memory]:
        """Every memory, newest first; none if nothing was ever stored."""
        with suppress(NotFound):
            yield from every(self.jay.browse)

    def exists(self) -> bool:
        """Whether anything was ever stored in the scope."""
        try:
            self.jay.browse(limit=1)
        except NotFound:
            return False
        except ScrubjayError:
            return True  # it is there, and cannot be read now
        return True

    def procedures(self) -> str:
        """The section of the system prompt with the newest procedures; empty if it cannot be read.

        Those in quarantine, which untrusted text may have taught, are never in it.
        """
        if not self.config.enabled(MemoryType.PROCEDURAL):
            return ""
        try:
            known = every(self.jay.browse, kinds={Kind.PROCEDURE}, limit=_PAGE)
            sound = (one for one in known if not one.quarantined)
            found = list(islice(sound, PROCEDURES))
        except NotFound:
            return ""
        except ScrubjayError as error:
            log.warning("Failed to load procedures", extra={"code": error.code})
            return ""
        lines = [f"- [{category_of(one)}] {_line(one.content)}" for one in found]
        return "\n".join((_HEADING, "", *lines)) if lines else ""

    # -- consolidation ---------------------------------------------------------------------

    def consolidate(self) -> Worked:
        """Make facts of the oldest episodes that wait, as many as the configuration says."""
        self._check_embedded()
        done = self.jay.work(
            kinds=[JobKind.CONSOLIDATION],
            limit=1,
            batch=self.config.consolidation.max_episodes_per_run,
            seconds=_SECONDS,
        )
        self.settle()
        return done

    def _check_embedded(self) -> None:
        if self._embedded is not None:
            self._embedded.check()


def _within(limit: int, most: int) -> int:
    """The limit, or the nearest that is allowed: a model may ask for any number."""
    return max(1, min(limit, most))


def _line(text: str) -> str:
    """A text on one line: a procedure must not look like a heading of the prompt."""
    return " ".join(text.split())
