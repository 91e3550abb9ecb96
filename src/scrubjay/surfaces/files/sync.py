"""Sync of a folder with a scope, both ways, compared with the state of the last sync.

The state is a sealed document of the scope: for every file, the digests of its lines and the
memories they are. What is in the file and not in the state was added by hand, and becomes a memory;
what is in the state and not in the file was removed by hand, and is forgotten; what the engine
added or lost since is added to the file, or taken out of it. A line that both changed is a
conflict: it is shown, and nothing is done.

Order of a sync: engine, file, state. A process that dies in between is followed by a sync that
finds its own lines and memories again: new ones are written under a key made of line and state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from scrubjay import bootstrap, files
from scrubjay.conversation import messages, transcript
from scrubjay.conversation.own_notes import OwnNotes
from scrubjay.engine import Kernel
from scrubjay.model.conversations import ListConversations
from scrubjay.model.errors import Forbidden, InvalidRequest, NotFound, ScrubjayError
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Origin
from scrubjay.model.requests import (
    AGENT,
    USER,
    BriefRequest,
    Browse,
    Caller,
    Export,
    Forget,
    Get,
    Retain,
    Supersede,
)
from scrubjay.model.scope import Scope
from scrubjay.surfaces.files import provenance
from scrubjay.surfaces.files.lines import digest, edits, items, rewritten, said

NOTES: Final = "CLAUDE.md"
LOCAL: Final = "CLAUDE.local.md"
"""Of NanoClaw, where CLAUDE.md is made by others; where it is there, notes are kept in it."""
PREFERENCES: Final = "preferences.json"
SESSIONS: Final = "sessions"
EXPORTS: Final = "exports"
EXPORT_TIME: Final = timedelta(days=1)
"""Age from which an export is removed."""
FILE_BYTES: Final = 49_000
"""Size up to which memories are added to the notes: the file stays under 50 KB."""
_MARK_BYTES: Final = 7
"""The most that a line has beside its text."""
MANY: Final = 5
"""Number of removals up to which nobody is asked."""
_NAME: Final = re.compile(r"[^./\x00-\x1f][^/\x00-\x1f]{0,59}")
"""Names of sessions that any file system takes as the name of a file."""
_PREFERENCE: Final = "preference"
"""Metadata key of a memory that is an entry of preferences.json."""


class SyncedLine(Struct, frozen=True):
    """A line of a file at the last sync: its digest, and the memory it is."""

    digest: str
    id: str
    name: str = ""
    """Its key, in preferences.json."""


class LineTrust(Struct, frozen=True):
    """Whose words the lines of a file are."""

    origin: Origin
    caller: Caller


class PlainExport(Struct, frozen=True):
    """An export in plain: when it was made, and how far the scope had been erased then."""

    at: datetime
    erased: int


class SyncState(Struct, frozen=True, kw_only=True):
    """What the last sync left."""

    notes: tuple[SyncedLine, ...] = ()
    preferences: tuple[SyncedLine, ...] = ()
    sessions: dict[str, int] = {}
    """By session, how many lines its transcript had."""
    exports: dict[str, PlainExport] = {}
    """Exports that were written, by the names of their files."""
    round: int = 0
    """Number of syncs that changed something."""


class Synced(Struct, kw_only=True):
    """What a sync did."""

    added: int = 0
    """Memories written for lines that were added by hand."""
    corrected: int = 0
    forgotten: int = 0
    written: int = 0
    """Lines written into files."""
    removed: int = 0
    """Lines taken out of files, because their memories are gone."""
    unasked: int = 0
    """Removals by hand that nobody has confirmed: nothing was done about them."""
    exported: str = ""
    """File of the export that was asked for."""
    conflicts: list[str] = []
    skipped: list[str] = []

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        done = (self.added, self.corrected, self.forgotten, self.written, self.removed)
        return any(done)


class Folder:
    """A folder of one scope, and how far its lines are trusted."""

    def __init__(
        self,
        engine: Kernel,
        scope: Scope,
        path: Path,
        *,
        owner_only: bool = False,
        session: str | None = None,
        confirmed: bool = False,
        export: bool = False,
    ) -> None:
        self._engine = engine
        self._scope = scope
        self._path = path
        self._owner_only = owner_only
        self._session = session
        self._confirmed = confirmed
        self._export = export
        self._name = f"files/{digest(str(path.absolute()))}"
        self.done = Synced()

    def sync(self) -> Synced:
        """Bring folder and scope in step."""
        notes = OwnNotes(self._engine, self._scope, bootstrap.clock())
        before = self._state(notes)
        if before.notes or before.preferences or before.sessions:
            self._check_there()
        files.make_folder(self._path)
        provenance.check_no_link(self._path)
        state = self._sessions(before)  # first: the notes tell what is derived from them
        state = self._preferences(state)
        state = self._exports(self._notes(state))
        if state != before:
            state = replace(state, round=state.round + 1)
            notes.write(self._name, to_builtins(state))
        for name in state.exports.keys() - before.exports.keys():
            # Noted first: a file that nothing knows of would outlive what is forgotten.
            content = self._engine.export(self._scope, Export(), USER).content
            files.write(self._path / EXPORTS / name, content)
            self.done.exported = str(self._path / EXPORTS / name)
        return self.done

    def _state(self, notes: OwnNotes) -> SyncState:
        try:
            return convert(notes.read(self._name) or {}, SyncState)
        except ValidationError:  # of another version: as if it were the first sync
            return SyncState()

    def _check_there(self) -> None:
        """Refuse a folder that vanished: a disk that is not mounted is nobody who removed lines."""
        try:
            there = any(self._path.iterdir())
        except OSError:
            there = False
        if not there:
            raise InvalidRequest(
                f"The folder {self._path} is gone or empty, and had files of the last sync.",
                hint="Nothing was forgotten. Is its disk mounted? Other folders can be synced.",
            )

    # -- whose words -------------------------------------------------------------------

    def _trust(self, path: Path) -> LineTrust:
        if not self._owner_only:
            return LineTrust(Origin.AGENT, AGENT)
        provenance.check_owner(path)
        return LineTrust(Origin.USER, USER)

    def _retain(self, text: str, state: SyncState, whose: LineTrust, **beside: Any) -> str:
        """Write a memory for a line; the same line of the same round is the same memory."""
        request = Retain(
            text, key=self._key(text, state), origin=whose.origin, session=self._session, **beside
        )
        made = self._engine.retain(self._scope, request, whose.caller)
        self.done.added += 1
        if made.redacted:
            self.done.skipped.append("A line has a secret: it is not in memory, but in the file.")
        return made.id

    def _key(self, text: str, state: SyncState) -> str:
        return f"{self._name}/{state.round}/{digest(text)}"

    def _current(self, ids: Iterable[str]) -> dict[str, Memory]:
        """The memories of these ids that hold, archived or not.

        A line of an archived one stays: another machine would take it for one that was removed.
        """
        found = dict[str, Memory]()
        for one in ids:
            try:
                memory = self._engine.get(self._scope, Get(one), USER)
            except NotFound:
                continue
            if memory.current:
                found[one] = memory
        return found

    def _may_forget(self, ids: Sequence[str], known: int, *, empty: bool) -> bool:
        """Whether lines that were removed by hand are forgotten now, or somebody is asked first."""
        if not ids:
            return True
        self._check_there()
        if self._confirmed or not (empty or len(ids) > MANY or (known and len(ids) == known > 1)):
            return True
        self.done.unasked += len(ids)
        return False

    def _forget(self, ids: Sequence[str]) -> None:
        if ids:
            self._engine.forget(self._scope, Forget(tuple(ids)), USER)
            self.done.forgotten += len(ids)

    # -- notes ---------------------------------------------------------------------------

    def _notes(self, state: SyncState) -> SyncState:
        local = self._path / LOCAL
        path = local if local.exists() else self._path / NOTES
        text = _text(path)
        found = items(text)
        by_digest = {item.digest: item for item in found}
        base = {entry.digest: entry.id for entry in state.notes}
        current = self._current(base.values())
        gone = [one for one in state.notes if one.digest not in by_digest]
        by_hand = [one for one in gone if one.id in current]
        changed = edits([one.digest for one in state.notes], [one.digest for one in found])
        rewrites = {
            one.digest: changed[one.digest]
            for one in by_hand
            if changed.get(one.digest, one.digest) not in base
        }
        removals = [one.id for one in by_hand if one.digest not in rewrites]
        clashes = {
            changed[one.digest]: (one, newer.id)
            for one in gone
            if one.id not in current and changed.get(one.digest, one.digest) not in base
            if (newer := self._newest(one.id)) is not None
        }
        if not self._may_forget(removals, len(state.notes), empty=not found):
            return state
        self._forget(removals)
        whose = self._trust(path)
        quoted = provenance.committed(path, text) if found else frozenset[str]()
        entries, patched = list[SyncedLine](), dict[int, str | None]()
        by_text = {digest(said(one.content)): one.id for one in self._shown()}
        renewed = {new: base[old] for old, new in rewrites.items()}
        for item in found:
            known = base.get(item.digest)
            if known in current:
                entries.append(SyncedLine(item.digest, known))
            elif known is not None:
                entries += self._outdated(item.number, known, patched)
            elif (same := by_text.get(item.digest)) is not None:
                entries.append(SyncedLine(item.digest, same))
            elif item.digest in clashes:
                entries.append(clashes[item.digest][0])
                self.done.conflicts.append(f"Changed here and in memory: {item.text[:60]}")
            else:
                theirs = LineTrust(Origin.QUOTED, AGENT) if item.digest in quoted else whose
                made = self._learn(item.text, state, theirs, renewed.get(item.digest))
                entries += [SyncedLine(item.digest, made)] if made else []
        there = {entry.id for entry in entries}
        apart = {*removals, *(newer for _, newer in clashes.values())}
        new = [one for one in self._shown() if one.id not in there | apart]
        room = FILE_BYTES - len(text.encode())
        added = list[str]()
        for memory in new:
            line = said(memory.content)
            if (room := room - len(line.encode()) - _MARK_BYTES) < 0:
                break
            added.append(line)
            entries.append(SyncedLine(digest(line), memory.id))
        self.done.written += len(added)
        if added or patched:
            self._write(path, text, rewritten(text, patched, added))
        return replace(state, notes=tuple(entries))

    def _shown(self) -> list[Memory]:
        """The memories that belong into the notes, the most important first."""
        request = BriefRequest(limit=1_000, max_chars=FILE_BYTES)
        entries = self._engine.brief(self._scope, request, USER).entries
        apart = (Kind.EPISODE,)
        return [one for one in entries if one.kind not in apart and _PREFERENCE not in one.metadata]

    def _learn(
        self, text: str, state: SyncState, whose: LineTrust, replaces: str | None
    ) -> str | None:
        """The memory of a line that is new, or of one that was rewritten; None if refused."""
        try:
            if replaces is None:
                return self._retain(text, state, whose)
            key = self._key(text, state)
            request = Supersede(replaces, text, key=key, origin=whose.origin, session=self._session)
            made = self._engine.supersede(self._scope, request, whose.caller).id
        except Forbidden:  # whoever wrote it is trusted less than what it says otherwise
            self.done.conflicts.append(f"Rewritten by an agent, so both are kept: {text[:60]}")
            return self._retain(text, state, whose)
        except ScrubjayError as error:
            self.done.skipped.append(f"{text[:60]}: {error.message}")
            return None
        self.done.corrected += 1
        return made

    def _outdated(self, number: int, id: str, patched: dict[int, str | None]) -> list[SyncedLine]:
        """Take a line out whose memory is gone, or put the newer version in its place."""
        newer = self._newest(id)
        patched[number] = None if newer is None else said(newer.content)
        self.done.removed += newer is None
        self.done.written += newer is not None
        return [] if newer is None else [SyncedLine(digest(newer.content), newer.id)]

    def _newest(self, id: str) -> Memory | None:
        """The newest version of a memory, if it holds."""
        try:
            memory = self._engine.get(self._scope, Get(id), USER)
            while memory.superseded_by is not None:
                memory = self._engine.get(self._scope, Get(memory.superseded_by), USER)
        except NotFound:
            return None
        return memory if memory.current else None

    def _write(self, path: Path, before: str, after: str) -> None:
        """Write a file, unless somebody changed it since it was read: the next sync sees to it."""
        if _text(path) != before:
            raise InvalidRequest(
                f"{path} was changed during the sync.", hint="Sync again; nothing is lost."
            )
        mode = path.lstat().st_mode & 0o777 if path.exists() else 0o600
        files.write(path, after.encode(), mode=mode)

    # -- preferences ---------------------------------------------------------------------

    def _preferences(self, state: SyncState) -> SyncState:
        path = self._path / PREFERENCES
        text = _text(path)
        value = messages.parsed(text) if text.strip() else {}
        if not isinstance(value, dict):
            raise InvalidRequest(
                f"{path} is no JSON object.", hint="Mend it, or remove it and sync with --yes."
            )
        told = {name: _told(name, one) for name, one in value.items()}
        current = self._current(entry.id for entry in state.preferences)
        base = {entry.name: entry for entry in state.preferences}
        by_hand = [one.id for name, one in base.items() if name not in told and one.id in current]
        if not self._may_forget(by_hand, len(base), empty=not told and bool(base)):
            return state
        self._forget(by_hand)
        whose = self._trust(path)
        entries, after = dict[str, SyncedLine](), dict(value)
        for name, line in told.items():
            known = base.get(name)
            if known is not None and known.digest == digest(line):
                newer = current.get(known.id) or self._newest(known.id)
                if newer is None:
                    del after[name]
                    self.done.removed += 1
                    continue
                if newer.id != known.id:
                    after[name] = newer.metadata.get("value", newer.content)
                    self.done.written += 1
                entries[name] = SyncedLine(digest(_told(name, after[name])), newer.id, name)
                continue
            if known is not None and known.id not in current and self._newest(known.id):
                self.done.conflicts.append(f"{PREFERENCES}: {name} was changed here and in memory")
                entries[name] = known
                continue
            if known is not None:
                self._forget([known.id])  # its value is metadata, which supersede would keep
            beside = {
                "kind": Kind.PREFERENCE,
                "metadata": {_PREFERENCE: name, "value": value[name]},
            }
            entries[name] = SyncedLine(
                digest(line), self._retain(line, state, whose, **beside), name
            )
        for memory in self._preferred():
            name = str(memory.metadata[_PREFERENCE])
            if name not in after and memory.id not in by_hand and name not in base:
                after[name] = memory.metadata.get("value", memory.content)
                entries[name] = SyncedLine(digest(_told(name, after[name])), memory.id, name)
                self.done.written += 1
        if after != value:
            self._write(path, text, json.dumps(after, ensure_ascii=False, indent=2) + "\n")
        return replace(state, preferences=tuple(entries.values()))

    def _preferred(self) -> list[Memory]:
        request = Browse(kinds=(Kind.PREFERENCE,), limit=1_000)
        found = self._engine.browse(self._scope, request, USER).data
        return [one for one in found if _PREFERENCE in one.metadata and _fit_for_a_file(one)]

    # -- transcripts ---------------------------------------------------------------------

    def _sessions(self, state: SyncState) -> SyncState:
        folder = self._path / SESSIONS
        folder.mkdir(exist_ok=True, mode=0o700)
        provenance.check_no_link(folder)
        there = {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
        names = frozenset(path.name for path in there.values())
        quoted = provenance.unclear_or_committed(folder, names)
        held = {one.name: one.entries for one in self._conversations()}
        by_hand = [name for name in state.sessions if name in held and name not in there]
        if self._may_forget(by_hand, len(state.sessions), empty=bool(by_hand) and not there):
            for name in by_hand:
                self._engine.forget(self._scope, Forget(session=name), USER)
                self.done.forgotten += 1
                held.pop(name)
        synced = dict[str, int]()
        for name, path in there.items():
            found = list(transcript.lines((files.regular(path, follow=False) or b"").splitlines()))
            if name in state.sessions and name not in held:
                path.unlink()  # it was forgotten in memory
                self.done.removed += 1
                continue
            origin = Origin.QUOTED if path.name in quoted else self._trust(path).origin
            self.done.added += transcript.archive(
                self._engine, self._scope, name, found, origin=origin
            )
            turns = transcript.exchanges(name, found)
            transcript.record(self._engine, self._scope, name, turns, origin=origin)
            synced[name] = len(found)
            if held.get(name, 0) > len(found):
                synced[name] = self._spell(path, name)
        for name in held.keys() - there.keys() - set(by_hand):
            if _NAME.fullmatch(name):
                synced[name] = self._spell(folder / f"{name}.jsonl", name)
        kept = {name: state.sessions[name] for name in by_hand if name in held}
        return replace(state, sessions=synced | kept)

    def _conversations(self) -> Iterable[Any]:
        cursor = None
        while True:
            page = self._engine.conversations(self._scope, ListConversations(cursor=cursor), USER)
            yield from page.data
            if (cursor := page.next_cursor) is None:
                return

    # -- exports -------------------------------------------------------------------------

    def _exports(self, state: SyncState) -> SyncState:
        """Remove exports that are a day old, or hold what was forgotten; note one to be written."""
        folder, now = self._path / EXPORTS, bootstrap.clock().now()
        erased = self._engine.head(self._scope).erasures
        kept = dict[str, PlainExport]()
        for name, one in state.exports.items():
            path = folder / name
            if one.erased == erased and now - one.at < EXPORT_TIME and path.exists():
                kept[name] = one
            else:
                path.unlink(missing_ok=True)
                self.done.removed += 1
        if self._export:
            folder.mkdir(exist_ok=True, mode=0o700)
            provenance.check_no_link(folder)
            kept[f"{now:%Y-%m-%dT%H%M%S}.json"] = PlainExport(now, erased)
        return replace(state, exports=kept)

    def _spell(self, path: Path, name: str) -> int:
        """Write a transcript out, as it is stored."""
        found = transcript.stored(self._engine, self._scope, name)
        files.write(path, transcript.spelled(found))
        self.done.written += len(found)
        return len(found)


def _text(path: Path) -> str:
    try:
        return (files.regular(path, follow=False) or b"").decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not UTF-8 text.", hint="Nothing was changed.") from error


def _fit_for_a_file(memory: Memory) -> bool:
    """Whether whoever reads the file may take it for the owner's: as for the brief."""
    return memory.trusted and memory.origin is not Origin.QUOTED


def _told(name: str, value: object) -> str:
    """An entry of preferences.json as a memory says it."""
    plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return said(f"{name.replace('_', ' ')}: {plain}")
