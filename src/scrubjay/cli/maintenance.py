"""Commands that keep a scope in order: freeze, retention, reindex, verify, audit, doctor."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from scrubjay import __version__, bootstrap, files
from scrubjay import settings as reading
from scrubjay.cli import render
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import installed, opened, scope_of, scoped, settings
from scrubjay.cli.parser import JSON, PAGING, SCOPE, Option, command, fields
from scrubjay.cli.render import Output, say
from scrubjay.engine import Kernel
from scrubjay.engine.memories import receipts
from scrubjay.handle import Jay
from scrubjay.model.compaction import Compact, Compacted, CompactionOutcome
from scrubjay.model.errors import EmbedderError, Frozen, InvalidRequest, ScrubjayError, UserLocked
from scrubjay.model.pages import PAGE_LIMIT, Paged, paged
from scrubjay.model.requests import AuditRequest
from scrubjay.model.results import Report
from scrubjay.model.retention import Duplicates, Limit
from scrubjay.model.rows import Due
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock
from scrubjay.settings import Settings


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
    """Show the limits of a scope (number, age, idle time), or replace them by the options.

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
        from scrubjay.surfaces.evaluation.report import draw_compaction

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
    found = settings()
    with installed(found) as engine:
        receipt = receipts.from_json(files.read(erased).decode(errors="replace"))
        report = engine.verify_erased(scope_of(scope, found), receipt)
        return _reported(report, "erased cells")


def _reported(report: Report, things: str) -> Output:
    def show() -> None:
        for problem in report.problems:
            render.line(f"problem: {render.plain(problem)}")
        for place in report.found:
            render.line(f"note: {render.plain(place)} No key opens them.")
        if report.sound:
            told = things.removesuffix("s") if report.checked == 1 else things
            render.line(f"Sound: {report.checked:,} {told} checked.")
        for told in report.seen:
            render.line(f"note: {told}")

    return Output(report, show, code=Exit.OK if report.sound else Exit.FAILURE)


@scoped("audit", PAGING)
def audit(jay: Jay, **request: Any) -> Output:
    """Show who did what, the newest last; --cursor 0 begins with the oldest.

    It is the audit trail: memories are named by pseudonyms, never by content.

    Example: scrubjay audit -n 20
    """
    events = jay.audit(**request, newest="cursor" not in request)
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
        found = paged(engine.scopes(), asked.limit, asked.cursor, Scope.order)
        closed = engine.unreadable_scopes()

    def show() -> None:
        render.table(("scope",), ([str(one)] for one in found))

    for address in closed:
        say(f"The keys here do not open the scope at {address}: see `scrubjay doctor`.")
    return Output(found, show, code=Exit.FAILURE if closed else Exit.OK)


# -- doctor ----------------------------------------------------------------------------------------

_LARGELY = 0.5
"""Share of memories in other languages from which on another embedder is suggested."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_FREE = 500
"""Megabytes of free disk below which there is a problem."""
_APART = 30.0
"""Seconds that two clocks may be apart."""
_SECONDS = 5.0
"""How long a service may take to answer."""


class Finding(Struct, frozen=True):
    """Result of one check."""

    check: str
    sentence: str
    advice: str = ""
    """The remedy; empty if all is well."""
    repair: Callable[[], object] | None = None
    """Does it, where it can be done without deciding anything."""

    @property
    def well(self) -> bool:
        """Whether there is nothing to do."""
        return not self.advice


def examine(
    settings: Settings, now: datetime, service: str | None = None, backup_days: int | None = None
) -> Iterator[Finding]:
    """Check everything that goes wrong in practice."""
    versions = {"scrubjay": __version__, **bootstrap.versions()}
    yield Finding("versions", ", ".join(f"{name} {one}" for name, one in versions.items()))
    if service is not None:
        yield _service(service, now)
    yield from _folders(settings)
    clock = bootstrap.clock()
    try:
        embedder = bootstrap.make_embedder(settings, clock)
        embedder.embed(["scrub jay"], deadline=clock.monotonic() + 10)
        yield Finding("embedder", f"{embedder.identity} answers.")
    except EmbedderError as error:
        advice = f"{error.hint} Check {settings.embedder} in `scrubjay config show`."
        yield Finding("embedder", error.message, advice)
    try:
        bootstrap.check_data(settings)
    except ScrubjayError as error:
        yield Finding("data", error.message, error.hint)
        return
    if settings.unused:
        yield Finding("data", "Nothing was remembered here yet.")
        return
    free = shutil.disk_usage(settings.data).free // 1_000_000
    advice = "Make room: a full disk stops all writes but those that erase." * (free < _FREE)
    yield Finding("disk", f"{free:,} MB are free for the data.", advice)
    try:
        for sentence in bootstrap.strays(settings):
            advice = "Put the missing half back, from a backup; nothing reads it as it is."
            yield Finding("scopes", sentence, advice)
        with installed(settings) as engine:
            for address in engine.unreadable_scopes():
                told = f"The keys in {settings.keys} do not open the scope at {address}."
                advice = "It was written with other keys: put those back to read it."
                yield Finding("keys", told, advice)
            yield from _requests(engine, clock)
            yield from _notices(engine, settings, clock)
            for scope in engine.scopes():
                try:
                    yield from _scope(engine, scope, now)
                    yield from _times(engine, scope, now, backup_days)
                except ScrubjayError as error:
                    yield Finding(str(scope), error.message, error.hint)
            yield _readers(engine)  # last, because it works on what is due, as every verb does
    except ScrubjayError as error:
        yield Finding("data", error.message, error.hint)


def _findings(service: str | None, backup_days: int | None) -> Iterator[Finding]:
    """All findings; of settings that cannot be read, that is the one."""
    try:
        found = settings()
    except ScrubjayError as error:
        yield Finding("settings", error.message, error.hint)
        return
    for name in reading.unknown_variables(found):
        told = f"There is no setting {name}: it changes nothing."
        yield Finding(
            "settings", told, "Correct its name, or unset it; see `scrubjay config show`."
        )
    yield from examine(found, bootstrap.clock().now(), service, backup_days)


def _readers(engine: Kernel) -> Finding:
    """Who could read what is kept here."""
    scopes = engine.scopes()
    held = sum(engine.holdings(scope).user_held for scope in scopes)
    told = f"Whoever is root here could read {len(scopes) - held:,} of {len(scopes):,} scopes"
    return Finding("root", f"{told}; {held:,} need their user, too (`scrubjay personal hold`).")


def _requests(engine: Kernel, clock: Clock) -> Iterator[Finding]:
    """Requests of persons that are late, or nearly."""
    from scrubjay.surfaces.personal.register import Register

    for one in Register(engine, clock).alarms():
        told = f"A request for {one.right} is due at {one.due_at:%Y-%m-%d %H:%M} UTC."
        yield Finding(one.scope, told, f"Answer it, then `scrubjay personal answered {one.id}`.")


def _notices(engine: Kernel, settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Recipients that do not take what they are to be told."""
    from scrubjay.service.outbox import outbox_of

    outbox = outbox_of(engine, clock, bootstrap.make_couriers(settings, clock))
    for url, failures in outbox.failing():
        told = f"{url} did not take a notice {failures:,} times in a row."
        yield Finding("recipients", told, "It is tried again; `scrubjay privacy notify` does now.")


def _service(url: str, now: datetime) -> Finding:
    """Check that the service is reached, is ready, and has the time that it is here."""
    from email.utils import parsedate_to_datetime
    from urllib.error import HTTPError
    from urllib.request import urlopen

    if not url.startswith(("http://", "https://")):
        raise InvalidRequest("The address of the service needs a scheme.", hint=f"http://{url}")
    try:
        with urlopen(f"{url.rstrip('/')}/readyz", timeout=_SECONDS) as answer:  # noqa: S310
            date = answer.headers["Date"]
    except HTTPError as error:
        advice = "Its log says more; /readyz lists each check."
        return Finding("service", f"{url} answers with status {error.code}.", advice)
    except OSError as error:
        told = getattr(error, "reason", error)
        return Finding("service", f"{url} is not reached: {told}.", "Start it, or open its port.")
    apart = abs((parsedate_to_datetime(date) - now).total_seconds()) if date else 0.0
    if apart > _APART:
        advice = "Set the clocks by NTP: keys and tokens expire by them."
        return Finding("service", f"Its clock is {apart:,.0f} s from the one here.", advice)
    return Finding("service", f"{url} is ready.")


def _times(
    engine: Kernel, scope: Scope, now: datetime, backup_days: int | None
) -> Iterator[Finding]:
    """Check the clock by the newest event of the trail, and the age of the last backup."""
    events = engine.audit(scope, AuditRequest(PAGE_LIMIT, newest=True)).data
    if events and (events[-1].at - now).total_seconds() > _APART:
        told = f"The clock is before the last change of it, {render.local(events[-1].at)}."
        yield Finding(str(scope), told, "Set the clock by NTP: ages and expiry count by it.")
    # What a restore brought along tells of backups that were made elsewhere.
    last = next((one for one in reversed(events) if one.verb in {"backup", "restore"}), None)
    made = last.at if last is not None and last.verb == "backup" else None
    told = f"Its last backup: {render.local(made) or 'none is known'}."
    if backup_days is not None and (made is None or (now - made).days >= backup_days):
        yield Finding(str(scope), told, f"Back it up: scrubjay backup FILE --scope {scope}")
    elif made is not None:
        yield Finding(str(scope), told)


def _folders(settings: Settings) -> Iterator[Finding]:
    """Check who may open the folders, and that the keys are not inside the data."""
    for name, folder in (("keys", settings.keys), ("data", settings.data)):
        inside = [folder, *sorted(folder.rglob("*"))] if folder.exists() else []
        files = [path for path in inside if path == folder or not path.is_symlink()]
        for path in [one for one in files if one.stat().st_uid != folder.stat().st_uid][:1]:
            told = f"{path} is of the user {path.stat().st_uid}, not of the owner of its folder."
            advice = f"Give it back: chown -R {folder.stat().st_uid} {folder}"
            yield Finding(name, told, advice)
        wide = [path for path in files if path.stat().st_mode & _OTHERS]
        if wide:
            told = f"Others than you may open {wide[0]}, and {len(wide) - 1:,} more."
            advice = f"Take their rights: chmod -R go= {folder}"
            yield Finding(name, told, advice, partial(_narrow, wide))
        elif folder.exists():
            yield Finding(name, f"Only you may open {folder}.")
    if settings.keys.resolve().is_relative_to(settings.data.resolve()):
        advice = "Move the keys out of the data folder: who copies it copies them."
        yield Finding("keys", "The keys are inside the data folder.", advice)


def _narrow(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(path.stat().st_mode & ~_OTHERS)


def _scope(engine: Kernel, scope: Scope, now: datetime) -> Iterator[Finding]:
    """Check that a scope opens, has no overdue work, and that its audit trail is whole."""
    engine.open(scope, create=False)
    head, name = engine.head(scope), str(scope)
    today = (now - datetime(1970, 1, 1, tzinfo=UTC)).days
    days = 0 if head.due_since is None else today - head.due_since
    if head.due is not Due.NOTHING and days >= 1:
        told = f"Work of an earlier erasure has been due for {days} days."
        advice = f"Finish it: scrubjay rotate --scope {name}"
        yield Finding(name, told, advice, partial(engine.finish_due, scope))
    report = engine.verify_audit(scope)
    if report.sound:
        yield Finding(name, f"It opens; {report.checked:,} audit events are whole.")
    if (rows := engine.holdings(scope)).locked:
        told = f"Its user has locked it; {rows.waiting:,} writes wait in its inbox."
        yield Finding(name, told)
    with suppress(Frozen, UserLocked):  # then nothing is recalled by any embedder
        if (share := engine.unknown_share(scope)) > _LARGELY:
            told = f"{share:.0%} of it is in languages that the embedder does not know by meaning;"
            yield Finding(name, f"{told} the extra encoder knows fifteen: see docs/howto.md.")
    for problem in report.problems:
        advice = f"Run `scrubjay verify --scope {name}`; restore a backup if it was not you."
        yield Finding(name, problem, advice)


@command(
    "doctor",
    Option("--fix", "Repair what needs no decision, such as file permissions."),
    Option("--service", "Address of a service to check, too.", str, metavar="URL"),
    Option("--backup-days", "Report scopes without a backup of so many days.", int, least=1),
    JSON,
)
def doctor(
    *, fix: bool = False, service: str | None = None, backup_days: int | None = None
) -> Output:
    """Check the installation; each finding says what to do. Exit code 1 if there is a problem.

    Example: scrubjay doctor --service http://127.0.0.1:8377 --backup-days 2
    """
    told, left = [], 0
    for finding in _findings(service, backup_days):
        state, advice = ("ok" if finding.well else "problem"), finding.advice
        if fix and finding.repair is not None:
            finding.repair()
            state, advice = "fixed", ""
        left += state == "problem"
        told.append((finding.check, state, finding.sentence, advice))
    names = ("check", "state", "finding", "advice")
    rows = [dict(zip(names, row, strict=True)) for row in told]
    code = Exit.FAILURE if left else Exit.OK

    def show() -> None:
        if render.on_terminal():  # the advice below its finding, however narrow the screen is
            said = [(check, state, " → ".join(filter(None, rest))) for check, state, *rest in told]
            render.table(names[:3], said)
        else:
            render.table(names, told)

    return Output({"findings": rows}, show, code=code)
