"""Exports as jobs: a sealed file behind a signed link, fetched once, within 24 hours.

A job is a sheet in the privacy book and, when it is done, a file beside the blobs of its scope. The
worker may be killed anywhere: a sheet that waits is done again from its beginning, under the same
name, and a file that was taken, or is past its time, is deleted before its sheet. So is one of a
memory from which something was erased since: it would still hold that.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine import Kernel
from scrubjay.files import Spool
from scrubjay.model.errors import (
    Busy,
    Conflict,
    Destroyed,
    Full,
    KeyUnavailable,
    LimitReached,
    NotFound,
    OutcomeUnknown,
    ScrubjayError,
    Stale,
    UserLocked,
)
from scrubjay.model.memory import Result
from scrubjay.model.origin import Actor
from scrubjay.model.pages import every
from scrubjay.model.requests import AuditRequest, Caller, Export
from scrubjay.model.scope import Scope
from scrubjay.model.text import doc
from scrubjay.ports import Clock, Progress, no_progress
from scrubjay.surfaces.personal import copies
from scrubjay.surfaces.personal.book import Book
from scrubjay.surfaces.personal.copies import CopyChoice, CopyForm, CopyOrder

KEPT: Final = timedelta(hours=24)
_FOLDER: Final = "exports"
_AT_ONCE: Final = 5
"""How many exports of one memory there are at once; each takes room on the disk for a day."""
_PASSING: Final = (Busy, Full, KeyUnavailable, OutcomeUnknown, Stale, UserLocked)
"""Failures that pass: the export is made by a later round, or is past its time by then."""
_log = logging.getLogger(__name__)


class ExportState(StrEnum):
    """State of an export."""

    WAITING = "waiting"
    READY = "ready"
    TAKEN = "taken"
    """Fetched: the file is gone."""
    FAILED = "failed"


class ExportStep(StrEnum):
    """Steps of a job, between which a process may be killed."""

    NOTED = "noted"
    SEALED = "sealed"
    KEPT = "kept"
    READY = "ready"
    TAKEN = "taken"
    DROPPED = "dropped"


Reach = Callable[[ExportStep], object]


class ExportSheet(Struct, frozen=True, kw_only=True):
    """An export in the privacy book. Its passphrase is there only until the file is sealed."""

    id: str
    scope: str
    actor: Actor
    form: CopyForm
    choice: CopyChoice
    asked_at: datetime
    recipient: str | None = None
    secret: tuple[int, ...] = ()
    """The passphrase by its bytes: a text like a secret would be removed."""
    state: ExportState = ExportState.WAITING
    ready_at: datetime | None = None
    records: int = 0
    size: int = 0
    erasures: int = 0
    """How far the memory had been erased when the export began."""
    why: str | None = None

    @property
    def until(self) -> datetime:
        """The time until which it can be fetched."""
        return (self.ready_at or self.asked_at) + KEPT


class ExportJob(Result, frozen=True, kw_only=True):
    """An export: its state, and the link to the file once it is ready."""

    export_id: Annotated[str, doc("The id of the export.")]
    state: Annotated[ExportState, doc("waiting, ready, taken or failed.")]
    download_url: Annotated[str | None, doc("The signed link; it works once, until it expires.")]
    record_count: Annotated[int, doc("How many memories the file has.")]
    total_size_bytes: Annotated[int, doc("Size of the sealed file.")]
    generated_at: Annotated[datetime | None, doc("The time it was ready, in UTC.")]
    expires_at: Annotated[datetime, doc("The time it is deleted, taken or not.")]
    why: Annotated[str | None, doc("Why it failed: an error code.")] = None


def written(
    engine: Kernel,
    wanted: CopyOrder,
    form: CopyForm,
    caller: Caller,
    deliver: Callable[[Iterator[bytes]], None],
    *,
    passphrase: str | None = None,
) -> int:
    """Write an export in its form; returns how many memories it has."""
    if form is CopyForm.BUNDLE:
        request = Export(sealed=True, passphrase=passphrase)
        return engine.export(wanted.scope, request, caller, deliver=deliver).memories
    trail = every(lambda cursor: engine.audit(wanted.scope, AuditRequest(cursor=cursor), caller))
    events = [[one.count, one.at.isoformat(), one.verb, one.actor, one.number] for one in trail]
    beside = {**wanted.beside, "audit": events} if wanted.whole else {}
    asked, counted = replace(wanted, beside=beside), list[int]()

    def pieces(content: Any) -> Iterator[bytes]:
        counted.append(len(content.memories))
        return copies.gathered(copies.FORMS[form](content, asked))

    engine.export(wanted.scope, Export(), caller, deliver=deliver, form=pieces)
    return counted[-1]


class Exports:
    """The export jobs of an installation."""

    def __init__(
        self, engine: Kernel, clock: Clock, secret: bytes, *, reach: Reach = lambda _: None
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._book = Book(engine)
        self._secret = secret
        self._reach = reach

    def begin(self, wanted: CopyOrder, form: CopyForm, actor: Actor, **reader: str | None) -> str:
        """Note an export that is to be made; returns its id."""
        kept = [one for _, one in self._book.sheets(ExportSheet, _FOLDER)]
        if sum(one.scope == str(wanted.scope) for one in kept) >= _AT_ONCE:
            raise LimitReached(
                f"There are {_AT_ONCE} exports of this memory already.",
                hint="Each is kept for 24 hours, fetched or not.",
            )
        secret = (reader.get("passphrase") or "").encode()
        sheet = ExportSheet(
            id=f"exp-{self._clock.new_id()}",
            scope=str(wanted.scope),
            actor=actor,
            form=form,
            choice=wanted.choice,
            asked_at=self._clock.now(),
            recipient=reader.get("recipient"),
            secret=tuple(secret),
        )
        self._book.write(sheet, _FOLDER, sheet.id)
        self._reach(ExportStep.NOTED)
        return sheet.id

    def job(self, scope: Scope, id: str) -> ExportJob:
        """The state of an export of this scope; NotFound if there is none."""
        sheet, _ = self._found(id)
        if sheet.scope != str(scope):
            raise NotFound("There is no such export.")
        return self.told(sheet)

    def told(self, sheet: ExportSheet) -> ExportJob:
        """An export as its owner sees it."""
        ready = sheet.state is ExportState.READY
        until = int(sheet.until.timestamp())
        link = f"/v1/personal/exports/{sheet.id}/file?until={until}"
        return ExportJob(
            export_id=sheet.id,
            state=sheet.state,
            download_url=f"{link}&signature={self._sign(sheet.id, until)}" if ready else None,
            record_count=sheet.records,
            total_size_bytes=sheet.size,
            generated_at=sheet.ready_at,
            expires_at=sheet.until,
            why=sheet.why,
        )

    def take(self, id: str, until: str, signature: str) -> Spool:
        """The file behind a signed link, once; NotFound ever after."""
        number = int(until) if until.isdecimal() and until.isascii() and len(until) < 12 else 0
        if not hmac.compare_digest(self._sign(id, number).encode(), signature.encode()):
            raise NotFound("There is no such file.", hint="The link is not one of this service.")
        sheet, revision = self._found(id)
        if sheet.state is not ExportState.READY or self._clock.now() >= sheet.until:
            raise NotFound("The file is gone.", hint="A link works once, within 24 hours.")
        scope = Scope.parse(sheet.scope)
        if self._outdated(sheet, scope):
            raise NotFound("The file is gone.", hint="Something was erased since; ask for another.")
        (spool := Spool(self._clock.random)).fill(self._engine.parcel(scope, id))
        try:  # of two at once, one finds it in another revision
            self._write(replace(sheet, state=ExportState.TAKEN), revision)
        except Conflict as error:
            raise NotFound("The file is gone.", hint="Somebody else has just taken it.") from error
        self._reach(ExportStep.TAKEN)
        self._engine.drop_parcel(scope, id)
        self._reach(ExportStep.DROPPED)
        return spool

    def work(self, *, progress: Progress = no_progress) -> int:
        """Make the exports that wait, and delete what was taken or is past its time."""
        done = 0
        for _, sheet in list(self._book.sheets(ExportSheet, _FOLDER)):
            try:
                done += self._advance(sheet, progress)
            except _PASSING as error:
                _log.warning("export.left_waiting", extra={"code": error.code})
            except Exception as error:  # seam: what cannot be made must not hold up all others
                code = error.code if isinstance(error, ScrubjayError) else "internal"
                _log.exception("export.failed", extra={"code": code})
                self._fail(sheet, code)
        return done

    def _fail(self, sheet: ExportSheet, code: str) -> None:
        found = self._book.find(ExportSheet, _FOLDER, sheet.id)
        if found is not None and found[0].state is ExportState.WAITING:
            failed = replace(found[0], state=ExportState.FAILED, secret=(), why=code)
            self._write(failed, found[1])

    def _advance(self, sheet: ExportSheet, progress: Progress) -> int:
        now, scope = self._clock.now(), Scope.parse(sheet.scope)
        if now >= sheet.until:
            self._engine.drop_parcel(scope, sheet.id)
            self._book.remove(_FOLDER, sheet.id)
            return 1
        if sheet.state is ExportState.READY and self._outdated(sheet, scope):
            _, revision = self._found(sheet.id)
            sheet = replace(sheet, state=ExportState.FAILED, why="outdated")
            self._write(sheet, revision)
        if sheet.state in {ExportState.TAKEN, ExportState.FAILED}:
            self._engine.drop_parcel(scope, sheet.id)  # unless whoever took it did
        if sheet.state is not ExportState.WAITING:
            return 0
        _, revision = self._found(sheet.id)
        self._write(self._made(sheet, scope, progress), revision)
        self._reach(ExportStep.READY)
        return 1

    def _made(self, sheet: ExportSheet, scope: Scope, progress: Progress) -> ExportSheet:
        phrase, erasures = bytes(sheet.secret).decode() or None, self._engine.head(scope).erasures
        wanted = CopyOrder(scope=scope, at=sheet.asked_at, choice=sheet.choice, progress=progress)
        form = sheet.form
        if form is CopyForm.BUNDLE and phrase is None:
            form = CopyForm.JSON
        with closing(Spool(self._clock.random)) as spool:

            def deliver(pieces: Iterator[bytes]) -> None:
                bundle = form is CopyForm.BUNDLE  # it is sealed already
                spool.fill(pieces if bundle else copies.sealed(pieces, sheet.recipient, phrase))

            number = written(
                self._engine, wanted, form, Caller(actor=sheet.actor), deliver, passphrase=phrase
            )
            self._reach(ExportStep.SEALED)
            self._engine.keep_parcel(scope, sheet.id, copies.gathered(spool, copies.PART))
        self._reach(ExportStep.KEPT)
        return replace(
            sheet,
            state=ExportState.READY,
            secret=(),
            ready_at=self._clock.now(),
            records=number,
            size=spool.size,
            erasures=erasures,
        )

    def _outdated(self, sheet: ExportSheet, scope: Scope) -> bool:
        try:
            return self._engine.head(scope).erasures != sheet.erasures
        except (NotFound, Destroyed):
            return True

    def _found(self, id: str) -> tuple[ExportSheet, str]:
        found = self._book.find(ExportSheet, _FOLDER, id)
        if found is None:
            raise NotFound("There is no such export.")
        return found

    def _write(self, sheet: ExportSheet, revision: str) -> None:
        self._book.write(sheet, _FOLDER, sheet.id, revision=revision)

    def _sign(self, id: str, until: int) -> str:
        said = f"export\n{id}\n{until}".encode()
        return hmac.digest(self._secret, said, hashlib.sha256).hex()
