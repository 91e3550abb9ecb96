"""What compaction takes, keeps and costs in recall; and what a sync of files costs."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from bench.conversation import Conversation
from bench.measure import Cost, alternate, timed
from bench.report import Line, Section
from bench.subject import Subject, scratch, texts
from scrubjay.model.compaction import TOLERATED, Compacted
from scrubjay.model.memory import Memory
from scrubjay.surfaces.files.sync import NOTES, Folder

MOST_SECONDS: Final = 300.0
_MESSAGES: Final = 450
_SENTENCES: Final = 10
"""Sentences in a message of the made-up user: with 450 of them about 180,000 tokens."""
_FILE: Final = 50_000
_LINE: Final = 98


def run(*, quick: bool) -> Section:
    """Compact a made-up user of 450 messages, and 50,000 records."""
    count = 2_000 if quick else 50_000
    section = Section("Compaction")
    section.notes.append(
        f"Without a model. The made-up user told {_MESSAGES} messages of {_SENTENCES} sentences; "
        f"the records are {count:,} turns in sessions of 25. Recall is that of the proof: "
        "questions made of the memories, answered in 2,000 characters. *Steps* are what its "
        "progress bar is told."
    )
    with scratch() as folder, Subject(folder / "user") as user:
        user.load(messages())
        _report(section, f"{_MESSAGES} messages", _compact(user))
    with scratch() as folder, Subject(folder / "records") as many:
        many.load(Conversation().memories(count))
        _report(section, f"{count:,} records", _compact(many), most=MOST_SECONDS)
    return section


def messages() -> list[Memory]:
    """Messages of a made-up user, of several sentences each."""
    told = iter(Conversation().memories(_MESSAGES * _SENTENCES))
    found = [list(islice(told, _SENTENCES)) for _ in range(_MESSAGES)]
    return [
        replace(
            some[0], content=" ".join(one.content for one in some), number=number, speaker="user"
        )
        for number, some in enumerate(found, start=1)
    ]


def _compact(subject: Subject) -> tuple[Compacted, Cost, int]:
    found, steps = [], list[int]()
    asked = {"tokens": 1, "session_messages": 10**6, "idle_days": 36_500}
    subject.jay.recall("anything")  # numpy, the embedder and the index are loaded
    cost = timed(
        lambda: found.append(
            subject.jay.compact(progress=lambda done, _: steps.append(done), **asked)
        )
    )
    return found[0], cost, len(steps)


def _report(
    section: Section, what: str, found: tuple[Compacted, Cost, int], most: float | None = None
) -> None:
    done, cost, steps = found
    fall = done.recall_before - done.recall_after
    section.lines += [
        Line(
            what=f"{what}: tokens left",
            figure=f"{done.tokens_after:,}",
            floor=f"{done.tokens_before:,} before",
            ratio=f"{done.tokens_after / done.tokens_before:.2f}x",
        ),
        Line(
            what=f"{what}: recall, {done.outcome}",
            figure=f"{done.recall_after:.1f} %",
            floor=f"{done.recall_before:.1f} % before",
            ratio=f"{-fall:+.1f} points",
            target=f"≥ -{TOLERATED:g} points",
            reached=fall <= TOLERATED,
        ),
        Line(
            what=f"{what}: clock, {steps:,} steps",
            figure=f"{cost.wall:.1f} s",
            floor=f"{cost.cpu:.1f} s CPU",
            target="-" if most is None else f"≤ {most:g} s",
            reached=None if most is None else cost.wall <= most,
        ),
    ]


def sync(*, quick: bool) -> Section:
    """Sync a notes file of 50 KB, beside reading it."""
    rounds = 3 if quick else 15
    section = Section("Memory as files")
    section.notes.append(
        f"A CLAUDE.md of {_FILE:,} characters in lines of {_LINE}, each a memory. The floor reads "
        "the file and splits it into lines. *One line added* is the whole sync that learns it."
    )
    with scratch() as folder, Subject(folder / "home") as subject:
        path = folder / "files"
        path.mkdir()
        notes = path / NOTES
        said = texts(_LINE - 3)
        lines = [f"- {one}" for one in islice(said, _FILE // _LINE)]
        _write(notes, lines)

        def ours() -> Cost:
            return timed(lambda: Folder(subject.engine, subject.scope, path).sync())

        def added() -> Cost:
            lines.append(f"- {next(said)}")
            del lines[1]
            _write(notes, lines)
            return ours()

        def floor() -> Cost:
            return timed(lambda: [notes.read_text().splitlines() for _ in range(100)], 100)

        first = ours()
        section.compare("nothing changed", alternate(rounds, ours, floor).wall, unit="ms")
        section.compare(
            "one line added, one removed", alternate(rounds, added, floor).wall, unit="ms"
        )
    section.lines.append(
        Line(
            what=f"the first sync: {len(lines):,} lines become memories",
            figure=f"{first.wall:.2f} s",
            floor=f"{first.cpu:.2f} s CPU",
        )
    )
    return section


def _write(notes: Path, lines: list[str]) -> None:
    notes.write_text("".join(f"{line}\n" for line in lines))
