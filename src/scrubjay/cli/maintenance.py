"""Commands that keep a scope in order: freeze, retention, reindex, verify, audit, scopes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from scrubjay import files
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import installed, opened, scoped
from scrubjay.cli.parser import JSON, PAGING, SCOPE, Option, command, fields
from scrubjay.cli.render import Output, say
from scrubjay.engine.memories import receipts
from scrubjay.handle import Jay
from scrubjay.model.compaction import Compact, Compacted, CompactionOutcome
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.pages import Paged, paged
from scrubjay.model.results import Report
from scrubjay.model.retention import Duplicates, Limit


class FreezeLevel(StrEnum):
    """Level of a freeze."""

    WRITES = "writes"
    ALL = "all"


@scoped(
    "freeze",
    Option(
        "--level", "What to stop: writes, or all for writes and recall.", FreezeLevel,
        default="writes",
    ),
)  # fmt: skip
def freeze(jay: Jay, *, level: FreezeLevel = FreezeLevel.WRITES) -> Output:
    """Freeze a scope: stop writes, or writes and recall. Forget, destroy and export go on.

    Example: scrubjay freeze --level all
    """
    before = jay.freeze(level.value)
    return Output(before, lambda: say(f"Frozen: {level} (was: {before})."))


@scoped("unfreeze")
def unfreeze(jay: Jay) -> Output:
    """Unfreeze a scope: everything works again.

    Example: scrubjay unfreeze
    """
    before = jay.unfreeze()
    return Output(before, lambda: say(f"Frozen: none (was: {before})."))


_NO_KIND = ("turns", "conversations")


@scoped(
    "retention",
    Option(
        "--keep", "Cap of a kind, turns or conversations: fact=500.", str, many=True,
        metavar="KIND=N",
    ),
    Option(
        "--days", "Age limit of a kind, turns or conversations: episode=90.", str, many=True,
        metavar="KIND=N",
    ),
    Option("--idle", "Idle limit of a kind in days: fact=365.", str, many=True, metavar="KIND=N"),
    Option("--duplicates", "What becomes of repeats: keep or latest.", Duplicates),
    Option("--none", "Lift every limit."),
)  # fmt: skip
def retention(
    jay: Jay,
    *,
    keep: Sequence[str] = (),
    days: Sequence[str] = (),
    idle: Sequence[str] = (),
    duplicates: Duplicates | None = None,
    none: bool = False,
) -> Output:
    """Show how long a scope keeps what, or set it anew with any of the options.

    Example: scrubjay retention --keep fact=500 --days episode=90
    """
    if not (keep or days or idle or duplicates or none):
        policy = jay.retention()
    else:
        found: dict[str, dict[str, int]] = {}
        for field, given in (("number", keep), ("days", days), ("idle_days", idle)):
            for one in given:
                kind, _, number = one.partition("=")
                if not number.isdecimal():
                    raise InvalidRequest(f"{one} is no limit.", hint="For example fact=500.")
                found.setdefault(kind.strip(), {})[field] = int(number)
        others = {name: Limit(**found.pop(name)) for name in _NO_KIND if name in found}
        limits: Any = [{"kind": kind, **limit} for kind, limit in found.items()]
        policy = jay.set_retention(
            limits=limits,
            turns=others.get("turns"),
            conversations=others.get("conversations"),
            duplicates=duplicates or Duplicates.KEEP,
        )
    lines: dict[str, Limit | None] = {one.kind.value: one for one in policy.limits}
    lines |= {"turns": policy.turns, "conversations": policy.conversations}
    told = {name: _limit(one) for name, one in lines.items() if one is not None}
    return Output(policy, lambda: render.facts(told | {"duplicates": str(policy.duplicates)}))


def _limit(one: Limit) -> str:
    said = (
        (one.number, "at most {:,}"),
        (one.days, "{:,} days"),
        (one.idle_days, "{:,} days unused"),
    )
    return ", ".join(text.format(value) for value, text in said if value is not None)


@scoped("reindex")
def reindex(jay: Jay) -> Output:
    """Rebuild the search index from the memories, with a vector for each.

    Turns that nothing could be derived from are tried again first.

    Example: scrubjay reindex
    """
    with render.progress("reindex") as bar:
        done = jay.reindex(progress=bar)
    number = render.plural(done.memories, "memory")
    sentence = f"Indexed {number}; {done.embedded:,} were given a vector."
    return Output(done, lambda: say(sentence))


@scoped(
    "compact",
    fields(Compact, "tokens", "share", "session_messages", "keep_messages", "idle_days", "dry_run"),
    Option("--plot", "File for a picture of the proof, as SVG.", Path),
)
def compact(jay: Jay, *, plot: Path | None = None, **asked: Any) -> Output:
    """Compact a scope: older episodes become summaries, if what they tell is still found.

    Questions made of the memories are asked before and after; a fall of more than two points is
    not applied. The originals are archived: out of search, but in export and history.

    Example: scrubjay compact --dry-run
    """
    with render.progress("compact") as bar:
        done = jay.compact(progress=bar, **asked)
    if plot is not None:
        from scrubjay.surfaces.evaluation.plot import draw_compaction

        files.write(plot, draw_compaction(done).encode())
    return Output(done, lambda: say(_compacted(done)))


def _compacted(done: Compacted) -> str:
    due = render.plural(done.episodes + done.duplicates, "memory")
    gained = f"{done.tokens_before:,} → {done.tokens_after:,} tokens"
    recall = f"recall {done.recall_before:.1f} → {done.recall_after:.1f} %"
    proof = f"{gained}, {recall} of {done.questions:,} questions, by {done.derived_by}"
    made = render.plural(done.derived, "memory")
    return {
        CompactionOutcome.APPLIED: f"Archived {done.archived:,}, wrote {made}: {proof}.",
        CompactionOutcome.PROVEN: f"Would compact {due}: {proof}.",
        CompactionOutcome.NOTHING_DUE: f"Nothing is due: {done.tokens_before:,} tokens.",
        CompactionOutcome.UNPROVEN: f"Not compacted: of {due} only {done.questions:,} questions "
        "can be made, and a hundred are needed to prove that nothing is lost.",
        CompactionOutcome.LOSES_RECALL: f"Not compacted: it would cost too much recall. {proof}.",
    }[done.outcome]


@command(
    "verify",
    Option(
        "--erased", "Receipt of an erasure to prove instead; also after destroy.", Path,
        metavar="RECEIPT",
    ),
    SCOPE,
    JSON,
)  # fmt: skip
def verify(*, erased: Path | None = None, scope: str | None = None) -> Output:
    """Check the integrity of a scope, or prove an erasure by its receipt. Exit code 1 if unsound.

    Example: scrubjay verify --erased receipt.json
    """
    if erased is None:
        with opened(scope) as jay:
            return _reported(jay.verify(), "rows and events")
    with installed() as engine:
        receipt = receipts.from_json(files.read(erased).decode(errors="replace"))
        return _reported(engine.verify_erased(receipt), "erased cells")


def _reported(report: Report, things: str) -> Output:
    def show() -> None:
        for problem in report.problems:
            render.line(f"problem: {render.plain(problem)}")
        for place in report.found:
            render.line(f"note: {render.plain(place)} No key opens them.")
        if report.sound:
            render.line(f"Sound: {report.checked:,} {things} checked.")
        for told in report.seen:
            render.line(f"note: {told}")

    return Output(report, show, code=Exit.OK if report.sound else Exit.FAILURE)


@scoped("audit", PAGING)
def audit(jay: Jay, **request: Any) -> Output:
    """Show the audit trail, oldest first; memories are named by pseudonyms.

    Example: scrubjay audit --limit 20
    """
    events = jay.audit(**request)
    rows = (
        (str(one.count), render.local(one.at), one.verb, one.actor, str(one.number))
        for one in events
    )
    columns = ("count", "when", "verb", "actor", "number")
    return Output(events, lambda: render.table(columns, rows))


@scoped("audit verify")
def verify_audit(jay: Jay) -> Output:
    """Check that no event of the audit trail is missing or altered. Exit code 1 if one is.

    Example: scrubjay audit verify
    """
    return _reported(jay.verify_audit(), "events")


@scoped("receipts", PAGING)
def kept_receipts(jay: Jay, **request: Any) -> Output:
    """List the erasure receipts that are kept for a scope, oldest first.

    Example: scrubjay receipts --json
    """
    found = jay.receipts(**request)
    rows = ((render.local(one.at), one.verb, f"{one.erased:,}") for one in found)
    return Output(found, lambda: render.table(("when", "verb", "erased"), rows))


@command("scopes", PAGING, JSON)
def scopes(**request: Any) -> Output:
    """List every scope that is not destroyed. Exit code 1 if the keys do not open all of them.

    Example: scrubjay scopes
    """
    with installed() as engine:
        asked = Paged(**request)
        found = paged(engine.scopes(), asked.limit, asked.cursor)
        closed = engine.unreadable_scopes()

    def show() -> None:
        render.table(("scope",), ([str(one)] for one in found))

    for address in closed:
        say(f"The keys here do not open the scope at {address}: see `scrubjay doctor`.")
    return Output(found, show, code=Exit.FAILURE if closed else Exit.OK)
