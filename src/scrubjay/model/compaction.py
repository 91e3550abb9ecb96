"""Compaction: many small memories become fewer, larger ones, if recall does not suffer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from scrubjay.model.jobs import DerivedBy
from scrubjay.model.memory import Result
from scrubjay.model.text import CheckedRequest, Count, Days, Positive, Share, doc

RETURNED_BYTES: Final = 2_000
"""Size of the answers that are compared before and after."""
QUESTIONS: Final = 100
"""Number of questions below which nothing is proven."""
TOLERATED: Final = 2.0
"""The most points of recall that a compaction may cost."""
HELD: Final = 0.6
"""Share of a memory's content words from which a derived memory counts for it."""


class CompactionOutcome(StrEnum):
    """What became of a compaction."""

    APPLIED = "applied"
    PROVEN = "proven"
    """It would be applied; nothing was written, as asked."""
    NOTHING_DUE = "nothing_due"
    """No threshold is exceeded."""
    UNPROVEN = "unproven"
    """Too few questions can be made of the memories to prove anything."""
    LOSES_RECALL = "loses_recall"
    """Every attempt would cost more recall than is tolerated."""


class Compact(CheckedRequest, frozen=True, kw_only=True):
    """Compact a scope: summarize its older episodes, and archive them."""

    tokens: Annotated[
        Count, doc("Threshold: tokens of all memories in sight beyond which it compacts.")
    ] = 150_000
    share: Annotated[
        Share, doc("Share of these tokens, the oldest, whose episodes are compacted.")
    ] = 0.7
    session_messages: Annotated[
        Positive, doc("Threshold: episodes of one session beyond which it compacts.")
    ] = 200
    keep_messages: Annotated[
        Count, doc("How many of the last episodes of such a session stay as they are.")
    ] = 20
    idle_days: Annotated[
        Days, doc("Episodes neither written nor recalled for so many days are compacted.")
    ] = 90
    dry_run: Annotated[bool, doc("Only prove it and report; nothing is written.")] = False


class CompactionTrial(Result, frozen=True, kw_only=True):
    """One attempt: how much of the text was kept, and what recall would be."""

    kept: Annotated[Share, doc("Share of the compacted text the summaries may keep.")]
    tokens: Annotated[Count, doc("Tokens of all memories in sight afterwards.")]
    recall: Annotated[float, doc("Percent of the questions answered afterwards.")]


class Compacted(Result, frozen=True, kw_only=True):
    """Report of a compaction: what was gained in tokens and lost in recall."""

    outcome: Annotated[CompactionOutcome, doc("What became of it.")]
    episodes: Annotated[Count, doc("How many episodes were to be compacted.")] = 0
    idle: Annotated[Count, doc("How many of them only for not having been used for long.")] = 0
    duplicates: Annotated[Count, doc("How many memories say the same as a later one.")] = 0
    archived: Annotated[Count, doc("How many memories were archived.")] = 0
    derived: Annotated[Count, doc("How many memories were written for them.")] = 0
    tokens_before: Annotated[Count, doc("Tokens of all memories in sight before.")] = 0
    tokens_after: Annotated[Count, doc("Tokens of all memories in sight after.")] = 0
    questions: Annotated[Count, doc("How many questions were asked before and after.")] = 0
    recall_before: Annotated[
        float, doc("Percent of the questions answered before, in 2,000 characters.")
    ] = 0.0
    recall_after: Annotated[
        float, doc("Percent of the questions answered after, in 2,000 characters.")
    ] = 0.0
    trials: Annotated[tuple[CompactionTrial, ...], doc("Every attempt, the strongest first.")] = ()
    derived_by: DerivedBy = ""
