"""The page: what was compared and how, the table, and why ours is not ahead where it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench import machine
from bench.peers.figures import Absence, Row
from bench.peers.material import Material
from bench.peers.roster import ENTRANTS
from bench.peers.trial import CANARIES, LIMIT

_HEAD = (
    "| | R@10 | all@10 | write ms | first → last tenth | growth | search p50 / p95 ms | RAM MB "
    "| copies left |\n|---|---|---|---|---|---|---|---|---|"
)
_MORE_HEAD = (
    "| | version | write mean / p95 ms | write CPU ms | CPU, first → last tenth "
    "| search mean / slowest ms | search CPU ms | delete ms | copies: written → deleted → ended "
    "|\n|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What a run was made of."""

    command: str
    dataset: str
    material: Material
    seconds: float
    load: str
    was_busy: bool
    secure_delete: bool
    """Whether the peers' SQLite overwrites what is deleted, as some distributions build it."""


def render(
    outcomes: Sequence[Row | Absence],
    occasion: Occasion,
    *,
    picture: str,
    others: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """The whole page; `others` has the R@10 of runs on other sets, by set and entrant."""
    rows = [outcome for outcome in outcomes if isinstance(outcome, Row)]
    absent = [outcome for outcome in outcomes if isinstance(outcome, Absence)]
    parts = [
        "# Peers, side by side",
        _preamble(occasion),
        f"![The same figures as a picture]({picture})",
        "\n".join([_HEAD, *map(_line, rows)]),
        _legend(),
        "## Are we ahead?",
        _standing(rows),
        *([other_sets(others)] if others else ()),
        METHOD,
        _method(occasion),
        "## More figures",
        "\n".join([_MORE_HEAD, *map(_more, rows)]),
        "## Who took part",
        "\n".join(f"- **{e.name}**: {e.note}." for e in ENTRANTS if e in {r.entrant for r in rows}),
    ]
    if absent:
        parts += ["## Who did not", "\n".join(f"- {a.entrant.name}: {a.reason}" for a in absent)]
    return "\n\n".join(parts) + "\n"


_WHY_BEHIND = (
    "Why: facts are asked for in other words, so the vectors decide. All of theirs come from "
    "MiniLM, a transformer; our default has a table of words, which needs no model and is some "
    "hundred times as fast. With the same vectors, or the extra `encoder`, ours is ahead where no "
    "line above says otherwise; where one does, our weight of shared words costs more than it "
    "gives, because these questions share hardly any."
)
OTHER_SETS = "## R@10 on other sets"
METHOD = "## How it was measured"


def other_sets(others: Mapping[str, Mapping[str, float]]) -> str:
    """The section of the other sets: R@10 by set and entrant, and where one of ours is behind."""
    lines = [f"| | {' | '.join(others)} |", f"|---|{'---|' * len(others)}"]
    for entrant in ENTRANTS:
        shown = f"**{entrant.name}**" if entrant.environment is None else entrant.name
        found = [one.get(entrant.name) for one in others.values()]
        cells = ["-" if figure is None else f"{figure:.1f}" for figure in found]
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    ours = [entrant.name for entrant in ENTRANTS if entrant.environment is None]
    behind = []
    for dataset, one in others.items():
        theirs = {name: figure for name, figure in one.items() if name not in ours}
        for own in filter(one.__contains__, ours):
            ahead = [
                f"{name} ({figure:.1f})" for name, figure in theirs.items() if figure > one[own]
            ]
            if ahead:
                behind.append(f"- {dataset}: {own} ({one[own]:.1f}) is behind {', '.join(ahead)}.")
    told = "Each of ours is ahead of each of theirs on each of these sets."
    if behind:
        told = "\n".join([*behind, "", _WHY_BEHIND])
    return "\n\n".join([OTHER_SETS, "\n".join(lines), told])


def _preamble(occasion: Occasion) -> str:
    given = occasion.material
    text = (
        f"Made by `{occasion.command}` in {occasion.seconds / 60:.0f} minutes on "
        f"{machine.processor()}. The same {len(given.turns):,} turns "
        f"({occasion.dataset}, conversations: {len(given.owners)}) are written one by one, and "
        f"the same {len(given.questions):,} questions asked, {LIMIT} results each. Load averages: "
        f"{occasion.load}."
    )
    if occasion.was_busy:
        text += (
            "\n\n**The machine was busy with other things.** Take times as rough; recall, memory "
            "and copies do not depend on it."
        )
    return text


def _line(row: Row) -> str:
    name = f"**{row.entrant.name}**" if row.entrant.environment is None else row.entrant.name
    cells = (
        name,
        f"{row.recall.mean:.1f} ({row.recall.low:.1f} - {row.recall.high:.1f})",
        f"{row.complete.mean:.1f}",
        ms(row.write.p50),
        f"{ms(row.write.first)} → {ms(row.write.last)}",
        f"{row.write.growth:.1f}x",
        f"{ms(row.search.p50)} / {ms(row.search.p95)}",
        f"{row.ram_mb:.0f}",
        "not on disk" if row.remains is None else f"{row.remains.ended:,}",
    )
    return f"| {' | '.join(cells)} |"


def _more(row: Row) -> str:
    remains = row.remains
    cells = (
        row.entrant.name,
        row.version,
        f"{ms(row.write.mean)} / {ms(row.write.p95)}",
        ms(row.write_cpu.mean),
        f"{ms(row.write_cpu.first)} → {ms(row.write_cpu.last)}",
        f"{ms(row.search.mean)} / {ms(row.search.slowest)}",
        ms(row.search_cpu),
        ms(row.delete_ms),
        "-" if remains is None else f"{remains.written} → {remains.deleted} → {remains.ended}",
    )
    return f"| {' | '.join(cells)} |"


def _legend() -> str:
    return (
        "R@10 is the mean share of the turns that hold the answer found among the first ten, with "
        "its 95 % interval; all@10 the share of questions of which all were found. Times are "
        "medians over all calls; a tenth is the first or last tenth of the writes. A growth below "
        "1 is warming up, or a machine that was busier at first; growth of CPU time stands further "
        "below. RAM is what the "
        f"process has at the end beyond the harness. Copies: {CANARIES} random words were written "
        "among the turns and deleted at the end by the call each offers for it; that many copies "
        "of them stood in its files, in UTF-8 or UTF-16, when its process had ended."
    )


def _standing(rows: Sequence[Row]) -> str:
    """A table of who is ahead of ours in what, and the reasons where somebody is."""
    ours = [row for row in rows if row.entrant.environment is None]
    peers = [row for row in rows if row.entrant.environment is not None]
    if not ours or not peers:
        return "There is nothing to compare in this run."
    lines = [
        f"| | {' | '.join(row.entrant.name for row in ours)} |",
        f"|---|{'---|' * len(ours)}",
    ]
    reasons = []
    for contest in _CONTESTS:
        verdicts = [_verdict(row, peers, contest) for row in ours]
        lines.append(f"| {contest.what} | {' | '.join(verdicts)} |")
        if contest.reason and any(verdict.startswith("behind") for verdict in verdicts):
            reasons.append(f"- {contest.what}: {contest.reason}")
    return "\n".join([*lines, *(["", "Why not, where not:", "", *reasons] if reasons else [])])


def _verdict(own: Row, peers: Sequence[Row], contest: _Contest) -> str:
    """What is to be said of one of our figures beside all of theirs."""
    mine = contest.figure(own)
    told = {peer.entrant.name: contest.figure(peer) for peer in peers}
    ahead = [
        f"{name} ({theirs:.3g})" for name, theirs in told.items() if contest.prefers(theirs, mine)
    ]
    level = [name for name, theirs in told.items() if theirs == mine]
    parts = [
        f"{word} {', '.join(names)}"
        for word, names in (("behind", ahead), ("level with", level))
        if names
    ]
    return "; ".join(parts) or "ahead of each"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contest:
    """One figure in which somebody is ahead, and why it need not be ours."""

    what: str
    figure: Callable[[Row], float]
    is_more_better: bool = False
    reason: str = ""

    def prefers(self, one: float, other: float) -> bool:
        """Whether the one is better than the other."""
        return one > other if self.is_more_better else one < other


_CONTESTS = (
    _Contest(what="R@10", figure=lambda row: row.recall.mean, is_more_better=True),
    _Contest(what="all@10", figure=lambda row: row.complete.mean, is_more_better=True),
    _Contest(
        what="write ms",
        figure=lambda row: row.write.p50,
        reason="a retain seals the memory, adds to the audit trail and returns when a sync has "
        "made it durable. A store in memory does none of that.",
    ),
    _Contest(
        what="write CPU ms",
        figure=lambda row: row.write_cpu.mean,
        reason="as above; none of the peers encrypts.",
    ),
    _Contest(
        what="search ms",
        figure=lambda row: row.search.p50,
        reason="who is faster compares one vector with others and is done. A recall weighs words, "
        "near words, vectors, speaker, neighbors, session and dates of every memory, and opens "
        "the sealed ones it returns; what that is for, R@10 shows.",
    ),
    _Contest(
        what="search CPU ms",
        figure=lambda row: row.search_cpu,
        reason="as above, and the first recall of a conversation builds its index.",
    ),
    _Contest(
        what="RAM MB",
        figure=lambda row: row.ram_mb,
        reason="scopes are searched in memory, beside the tables of near words and, by default, "
        "of token vectors; SqliteStore leaves its vectors in the file.",
    ),
    _Contest(
        what="delete ms",
        figure=lambda row: row.delete_ms,
        reason="a forget draws a new key, seals all that remains of the scope under it and "
        "destroys the old one, so that copies of the file made before can no longer be opened.",
    ),
)


def _method(occasion: Occasion) -> str:
    secure = (
        "The SQLite they ran on is built to overwrite what is deleted (SECURE_DELETE), as Debian "
        "does it; on another one more copies may be left."
        if occasion.secure_delete
        else "The SQLite they ran on does not overwrite what is deleted."
    )
    return "\n".join(
        f"- {line}"
        for line in (
            "Each runs in a process, a folder and, if not ours, a Python environment of its own, "
            "numerical libraries on one thread. They take turns: each writes a twentieth of the "
            "turns, then the next, and likewise the questions, so that what else the machine does "
            "falls on all.",
            "All search with the same vectors (all-MiniLM-L6-v2, 384 numbers), computed "
            "beforehand and looked up by text, so that no time contains embedding. Only our "
            "default has its own: its static table is part of it, and **its times contain "
            "embedding**.",
            "A peer is given speaker and text as one line, and the conversation as user, "
            "namespace, store or wing. We are given speaker, session, position and time in the "
            "fields `retain` has for them; a peer could keep them as metadata, but none ranks by "
            "them. What ours makes of them is part of what is compared, and one of our rows goes "
            "without: it is given the same line as the peers, and nothing else.",
            "Turns are written one at a time, as an agent does. Batch calls, several writers, "
            "servers and remote stores were not measured; nor were answers, which need a "
            "language model.",
            "What needs a model from a hub was not measured: mem0's keyword and entity scores "
            "(spaCy, fastembed), re-rankers, and what any of them does with a language model.",
            "Not all writes promise the same. Ours is on disk when it returns (one sync); "
            "SqliteStore's also; mcp-memory-service's (WAL, `synchronous=NORMAL`) may be lost "
            "with the power; what the others promise was not looked into. Ours are encrypted, the "
            "others' are not.",
            "Each question is asked once, nothing is warmed up: the first search of a conversation "
            "is among the figures, for ours the one that builds its index.",
            f"Copies were looked for in plain text only. {secure} mem0 keeps deleted texts in its "
            "history, and mcp-memory-service marks a row as deleted until a later purge, both by "
            "design.",
        )
    )


def ms(value: float) -> str:
    """Milliseconds with about three digits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:,.{digits}f}"
