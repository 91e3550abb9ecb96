"""Jobs: what is derived in the background, by whom, and what a model answers to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct, field

from scrubjay.model.memory import Content, Result
from scrubjay.model.results import Stopped, TokensIn, TokensOut
from scrubjay.model.text import CheckedRequest, Positive, Seconds, doc

ATTEMPTS: Final = 3
"""Number of unreadable answers after which a job is given up."""
BATCH: Final = 20
"""Number of episodes in one consolidation, unless the request says another."""


class JobKind(StrEnum):
    """The kind of a job; each has one worker in the engine."""

    EXTRACTION = "extraction"
    """A turn → memories that rules do not find."""
    CONSOLIDATION = "consolidation"
    """The oldest episodes → facts."""
    DERIVATION = "derivation"
    """A text whose source was corrected or forgotten, again from its sources."""
    COMPACTION = "compaction"
    """Older episodes → summaries, and the episodes archived."""


if TYPE_CHECKING:
    Kinds = Sequence[JobKind | str]
else:
    Kinds = tuple[JobKind, ...]
DerivedBy = Annotated[
    str, doc("What derives: the model, or the rules where there is none; empty if neither")
]
PerKind = Mapping[str, int]


class Work(CheckedRequest, frozen=True, kw_only=True):
    """Do the jobs that are due."""

    limit: Annotated[Positive, doc("Limit: how many jobs are done at most.")] = 100
    seconds: Annotated[Seconds, doc("Time budget in seconds.")] = 20.0
    kinds: Annotated[
        Kinds, doc("Only jobs of these kinds, allowed or not; empty for the allowed.")
    ] = ()
    batch: Annotated[
        Annotated[int, Meta(ge=1, le=200)],
        doc("How many episodes one consolidation reads at most."),
    ] = BATCH


class AllowJobs(CheckedRequest, frozen=True):
    """Set the policy of the scope: which kinds of jobs run by themselves."""

    kinds: Annotated[Kinds, doc("The kinds that run by themselves; empty for none.")] = ()


class RunningJob(Result, frozen=True, kw_only=True):
    """A job that some process has taken, by its lease."""

    kind: Annotated[JobKind, doc("The kind of the job.")]
    until: Annotated[datetime, doc("End of its lease: from then on another process may take it.")]


class JobStatus(Result, frozen=True, kw_only=True):
    """State of the jobs of a scope: policy, queue and budget."""

    allowed: Annotated[tuple[JobKind, ...], doc("The kinds of jobs that run by themselves.")]
    derived_by: DerivedBy = ""
    paused: Annotated[bool, doc("Whether all jobs of this scope are paused.")] = False
    waiting: Annotated[PerKind, doc("By kind, how many turns, episodes or texts wait.")] = field(
        default_factory=dict
    )
    running: Annotated[
        tuple[RunningJob, ...], doc("Jobs that are being done, here or elsewhere.")
    ] = ()
    done: Annotated[PerKind, doc("By kind, how many jobs were done.")] = field(default_factory=dict)
    failed: Annotated[PerKind, doc("By kind, how many were given up, after several attempts.")] = (
        field(default_factory=dict)
    )
    tokens_today: Annotated[
        int, doc("Tokens all jobs of the scope have used today, input and output.")
    ] = 0
    daily_tokens: Annotated[int, doc("Token budget of the scope per day; 0 for no limit.")] = 0


class Worked(Result, frozen=True, kw_only=True):
    """Result of one round of jobs: how many were done, what they wrote and cost."""

    done: Annotated[PerKind, doc("By kind, how many jobs were done.")] = field(default_factory=dict)
    memories: Annotated[int, doc("How many memories were written.")] = 0
    failed: Annotated[int, doc("How many jobs got no usable answer.")] = 0
    tokens_in: TokensIn = 0
    tokens_out: TokensOut = 0
    left: Annotated[int, doc("How many turns, episodes or texts still wait.")] = 0
    derived_by: DerivedBy = ""
    stopped: Annotated[
        Stopped | None, doc("Why it ended early: paused, tokens spent, or model unavailable.")
    ] = None


# -- what a model answers ------------------------------------------------------------------------


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """The text that a model answered, and its token cost; None where the model did not say it."""

    text: str
    tokens_in: int | None = None
    tokens_out: int | None = None


class Insight(Struct, frozen=True, kw_only=True):
    """One fact that a model found in episodes."""

    category: Annotated[str, doc("Category: one lower-case word.")]
    content: Content
    of: Annotated[tuple[int, ...], doc("Numbers of its episodes, from 1; empty for all.")] = ()


class Consolidated(Struct, frozen=True, kw_only=True):
    """A model's answer about several episodes, and its token cost."""

    insights: Annotated[tuple[Insight, ...], doc("The facts the model found.")] = ()
    usable: Annotated[bool, doc("Whether the answer could be parsed.")] = True
    tokens_in: TokensIn = 0
    tokens_out: TokensOut = 0


class Restated(Struct, frozen=True, kw_only=True):
    """A model's text from several sources, and its token cost."""

    text: Annotated[str, doc("The text; empty if the answer could not be used.")] = ""
    tokens_in: TokensIn = 0
    tokens_out: TokensOut = 0
