"""PreCompact: before an agent compacts its context, keep the transcript and record its turns.

What is sealed is the transcript, as a conversation of the agent's session. A plain copy as
markdown is made only if it is asked for; it is made of what is sealed, and a later hook, or
`tidy`, makes it anew or removes it when something of it was forgotten. A transcript that was put
back, so that an agent can resume its session, is such a copy, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from scrubjay import bootstrap, files, settings
from scrubjay.conversation import messages, transcript
from scrubjay.conversation.own_notes import OwnNotes
from scrubjay.engine import Kernel
from scrubjay.model.conversations import ReadConversation
from scrubjay.model.documents import Remove
from scrubjay.model.errors import InvalidRequest, NotFound
from scrubjay.model.memory import Json
from scrubjay.model.requests import USER
from scrubjay.model.scope import Scope

_COPIES: Final = "plain-copies"
"""Folder of the documents that name the plain copies."""
_LINES: Final = "jsonl"
"""Form of a copy that is a transcript; the others are markdown."""
_CHANNEL: Final = "claude-code"


def run(told: Mapping[str, Any] | None, *, scope: str | None, markdown: str | None) -> None:
    """Keep the transcript that a hook names, if it does, and tidy the plain copies."""
    found = settings.read()
    path = None if told is None else Path(str(told["transcript_path"])).expanduser()
    lines = [] if path is None else _read(path)
    engine = bootstrap.build(found)
    try:
        name = Scope.parse(scope or found.scope)
        engine.open(name, create=told is not None)
        if told is not None and path is not None:
            session = str(told["session_id"])
            title = _title(path, session)
            transcript.archive(engine, name, session, lines, title=title)
            turns = transcript.exchanges(session, lines)
            transcript.record(engine, name, session, turns, channel=_CHANNEL)
            if markdown is not None:
                copy(engine, name, session, Path(markdown).expanduser(), title=title)
        tidy(engine, name)
    finally:
        engine.close()


def _read(path: Path) -> list[transcript.Line]:
    """The lines of a transcript; the last one may be half written, and is skipped then."""
    raw = files.regular(path)
    if raw is None:
        raise InvalidRequest(f"There is no transcript {path}.")
    return list(transcript.lines(raw.splitlines()))


def _title(path: Path, session: str) -> str | None:
    """What the agent calls the session, in the index beside its transcripts."""
    index = messages.parsed(files.regular(path.with_name("sessions-index.json")) or b"")
    entries = index.get("entries") if isinstance(index, dict) else None
    for one in entries if isinstance(entries, list) else ():
        if isinstance(one, dict) and one.get("sessionId") == session:
            said = one.get("summary") or one.get("firstPrompt")
            return said[:200] if isinstance(said, str) and said.strip() else None
    return None


# -- plain copies --------------------------------------------------------------------------------


def copy(engine: Kernel, scope: Scope, session: str, folder: Path, *, title: str | None) -> Path:
    """Write a transcript as markdown into a folder, and note that it is there."""
    now = bootstrap.clock().now().astimezone()  # a file for people has their machine's time
    path = folder.absolute() / f"{now:%Y-%m-%d}-{transcript.slug(title, now)}.md"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    note: dict[str, Json] = {
        "path": str(path),
        "session": session,
        "title": title or "",
        "at": now.isoformat(),
    }
    name = f"{_COPIES}/{hashlib.sha256(str(path).encode()).hexdigest()[:32]}"
    notes = OwnNotes(engine, scope, bootstrap.clock())
    # Noted first: a copy that nothing knows of would outlive what is forgotten.
    notes.write(name, note | {"revision": ""})
    _write(engine, scope, notes, note, name)
    return path


def restore(engine: Kernel, scope: Scope, session: str, folder: Path) -> Path:
    """Put a transcript back where an agent looks for it, and note it; one that is there stays."""
    path = folder.absolute() / f"{session}.jsonl"
    if Path(session).name != session or session.startswith("."):
        raise InvalidRequest(f"{session} is no name of a file.", hint="Leave out --transcripts.")
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    at = bootstrap.clock().now().isoformat()
    note: dict[str, Json] = {"path": str(path), "session": session, "at": at, "form": _LINES}
    name = f"{_COPIES}/{hashlib.sha256(str(path).encode()).hexdigest()[:32]}"
    notes = OwnNotes(engine, scope, bootstrap.clock())
    notes.write(name, note | {"revision": ""})
    _write(engine, scope, notes, note, name)
    return path


def _write(
    engine: Kernel, scope: Scope, notes: OwnNotes, note: Mapping[str, Json], name: str
) -> None:
    """Write one plain copy from what is sealed, and note of which revision it is."""
    session, at = str(note["session"]), datetime.fromisoformat(str(note["at"]))
    record = engine.conversation(scope, ReadConversation(session, limit=0)).conversation
    said, path = transcript.stored(engine, scope, session), Path(str(note["path"]))
    if note.get("form") == _LINES:
        # The agent goes on writing to it: what it added since the last hook stays.
        there = list(transcript.lines((files.regular(path) or b"").splitlines()))
        if there[: len(said)] != said:
            files.write(path, transcript.spelled([*said, *there[len(said) :]]))
    else:
        text = transcript.markdown(said, title=str(note["title"]), now=at)
        files.write(path, text.encode())
    notes.write(name, {**note, "revision": record.revision if record else ""})


def tidy(engine: Kernel, scope: Scope) -> None:
    """Write plain copies anew whose transcript has changed, and remove those it is gone of."""
    notes = OwnNotes(engine, scope, bootstrap.clock())
    for name, note in list(notes.listed(_COPIES)):
        if not isinstance(note, dict):
            continue
        path, session = Path(str(note["path"])), str(note["session"])
        try:
            record = engine.conversation(scope, ReadConversation(session, limit=0)).conversation
        except NotFound:
            record = None
        if record is None:
            path.unlink(missing_ok=True)
            engine.remove(scope, Remove(name), USER)
        elif not path.exists():
            engine.remove(scope, Remove(name), USER)  # somebody deleted it
        elif record.revision != note["revision"]:
            _write(engine, scope, notes, note, name)
