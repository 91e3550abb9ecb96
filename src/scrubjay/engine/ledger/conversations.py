"""Conversations: message histories as a tree of entries, and the records that point into it.

An entry is one sealed row, a conversation another one, which is found by the keyed hash of its name
and lists nothing but its head and the branches it left. A branch shares entries. A conversation and
the session of the same name are forgotten together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from msgspec.structs import replace

from scrubjay.engine.ledger import sessions
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.views import changes, living
from scrubjay.guard.admission import admit
from scrubjay.model import cells
from scrubjay.model.conversations import (
    BRANCHES,
    READ_BYTES,
    Append,
    Appended,
    Branch,
    Conversation,
    Entry,
    ListConversations,
    NewEntry,
    ReadConversation,
    Rewind,
    Transcript,
    rest_of,
)
from scrubjay.model.documents import NO_REVISION
from scrubjay.model.errors import (
    Conflict,
    InvalidRequest,
    KeyMissing,
    LimitReached,
    NotFound,
    SealBroken,
    Stale,
)
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.pages import Page, cursor_at, place
from scrubjay.model.requests import Caller
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Collection, Row
from scrubjay.ports import Failpoint, Tx, View

HOME: Final = Collection.CONVERSATION
# No session and no idempotency key has such a name, so that neither can be taken for it.
_RECORDS: Final = "\0conversations"
_NAMED: Final = "\0conversation\0"
# No public id begins with a slash.
_DELETED: Final = "/deleted/"


# -- rows ------------------------------------------------------------------------------------


def is_record(row: Row) -> bool:
    """Whether a row is a conversation: entries have no name."""
    return row.key is not None


def find(opened: OpenScope, view: View, name: str) -> Row | None:
    """The row of the conversation of this name."""
    hashed = opened.key_hash(_NAMED + name)
    return None if hashed is None else view.row_by_key(HOME, hashed)


def record_of(opened: OpenScope, row: Row) -> Conversation:
    """The conversation in a row."""
    return cells.decode(Conversation, opened.open_body(HOME, row))


def entry_of(opened: OpenScope, row: Row) -> Entry:
    """The entry in a row."""
    return cells.decode(Entry, opened.open_body(HOME, row))


def opened_row(opened: OpenScope, row: Row) -> Conversation | Entry | None:
    """The conversation or entry of a row; None if damaged, since it must still be erasable."""
    try:
        return record_of(opened, row) if is_record(row) else entry_of(opened, row)
    except (SealBroken, KeyMissing, NotFound):
        return None


def records(opened: OpenScope, view: View) -> list[Row]:
    """The rows of all conversations, the last written first."""
    return list(reversed(view.rows_of_session(HOME, opened.session_hash(_RECORDS))))


def put_entry(opened: OpenScope, tx: Tx, entry: Entry) -> Row:
    """Write an entry and link it to the one it follows."""
    row_id = opened.row_id(entry.id)
    if entry.parent is not None:
        tx.link(opened.row_id(entry.parent), row_id)
    session = opened.session_hash(entry.conversation)
    return opened.put_body(tx, HOME, row_id, cells.encode(entry), session=session)


def put_record(opened: OpenScope, tx: Tx, record: Conversation) -> Row:
    """Write a conversation, under its name."""
    return opened.put_body(
        tx,
        HOME,
        opened.row_id(record.id),
        cells.encode(record),
        session=opened.session_hash(_RECORDS),
        key=opened.key_hash(_NAMED + record.name),
    )


def chain(
    opened: OpenScope, view: View, entry_id: str | None, *, damaged: bool = False
) -> Iterator[Entry]:
    """The entries from one back to the first, newest first; it ends where one is missing.

    With `damaged` it also ends, instead of failing, at one that does not open.
    """
    while entry_id is not None:
        row = living(view, HOME, opened.row_id(entry_id))
        if row is None or is_record(row):
            return
        entry = opened_row(opened, row) if damaged else entry_of(opened, row)
        if not isinstance(entry, Entry):
            return
        yield entry
        entry_id = entry.parent


def _length(opened: OpenScope, view: View, tip: str | None, known: dict[str, int]) -> int:
    """How many entries there are up to one.

    `known` holds those counted before: what histories share is opened once for all of them.
    """
    line, before = list[str](), 0
    for entry in chain(opened, view, tip, damaged=True):
        if entry.id in known:
            before = known[entry.id]
            break
        line.append(entry.id)
    known.update((one, before + place) for place, one in enumerate(reversed(line), 1))
    return before + len(line)


def _not_here(name: str | None) -> NotFound:
    return NotFound(
        "There is no such conversation in this scope."
        if name is not None
        else "There is no such entry in this scope.",
        hint="conversations() lists them.",
    )


def _check_revision(record: Conversation | None, expected: str | None) -> None:
    present = NO_REVISION if record is None else record.revision
    if expected is not None and expected != present:
        raise Stale(
            "The conversation was written to, or deleted, since it was read.",
            hint="Read it again, then repeat the change.",
        )


# -- writing ---------------------------------------------------------------------------------


def append(opened: OpenScope, request: Append, caller: Caller) -> Appended:
    """Add entries to a conversation, new or known; durable when this returns."""
    clock, name = opened.ports.clock, request.conversation
    now, found = clock.now(), Counter[str]()
    given: list[Entry] = []
    for one in request.entries:
        assert isinstance(one, NewEntry)
        entry = Entry(
            id=one.id or f"ent-{clock.new_id()}",
            body=one.body,
            at=one.at or now,
            conversation=name,
            origin=Origin(one.origin or request.origin),
            channel=request.channel,
            key_id=caller.key,
            actor=caller.actor,
        )
        entry, redacted = admit(entry, opened.ports.policy.placeholder)
        found.update(redacted)
        given.append(entry)
    ids = tuple(entry.id for entry in given)
    if len(set(ids)) < len(ids):
        raise InvalidRequest("Two of the entries have the same id.")
    row_ids = [opened.row_id(one) for one in ids]

    def store(tx: Tx) -> Appended:
        row = find(opened, tx, name)
        before = None if row is None else record_of(opened, row)
        known = [row_id for row_id in row_ids if tx.row(HOME, row_id) is not None]
        if tx.buried(row_ids):
            return Appended(conversation=before, ids=ids, outcome=Outcome.FORGOTTEN)
        if known and before is not None and before.head == ids[-1] and len(known) == len(ids):
            return Appended(conversation=before, ids=ids, outcome=Outcome.KNOWN)
        if known:
            raise Conflict("An entry with one of these ids is there already.")
        _check_revision(before, request.expected_revision)
        sessions.spend(opened, tx, caller.allowances)
        after = _begun(opened, name, now) if before is None else before
        parent = None if request.root else request.parent or after.head
        _check_reached(opened, tx, after, parent)
        after = _led_to(opened, tx, after, parent)
        for entry in given:
            put_entry(opened, tx, replace(entry, parent=after.head))
            after = replace(after, head=entry.id, entries=after.entries + 1)
        after = replace(
            after,
            revision=request.revision or clock.new_id(),
            updated_at=now,
            title=request.title or after.title,
            metadata=dict(request.metadata or after.metadata),
        )
        after, redacted = admit(after, opened.ports.policy.placeholder)
        found.update(redacted)
        put_record(opened, tx, after)
        for origin in {entry.origin for entry in given if not entry.origin.trusted}:
            sessions.taint(opened, tx, name, origin, actor=caller.actor)
        opened.trail.record(tx, "append", caller.actor, row_ids, number=len(ids))
        return Appended(conversation=after, ids=ids, redacted=dict(found))

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def _begun(opened: OpenScope, name: str, now: datetime) -> Conversation:
    """A new conversation, without any entry."""
    new_id = f"conv-{opened.ports.clock.new_id()}"
    return Conversation(id=new_id, name=name, revision="", created_at=now, updated_at=now)


def _led_to(
    opened: OpenScope, view: View, record: Conversation, entry_id: str | None
) -> Conversation:
    """The conversation with another head; the one it leaves is noted, unless it is before that."""
    if entry_id == record.head:
        return record
    line = [entry.id for entry in chain(opened, view, entry_id)]
    branches = [tip for tip in record.branches if tip != entry_id]
    if record.head is not None and record.head not in line:
        branches = [*(tip for tip in branches if tip != record.head), record.head]
    if len(branches) > BRANCHES:
        raise LimitReached(
            f"A conversation leaves at most {BRANCHES:,} branches.",
            hint="Go on in a branch of it, or in a new conversation.",
        )
    return replace(record, head=entry_id, entries=len(line), branches=tuple(branches))


def _check_reached(
    opened: OpenScope, view: View, record: Conversation, entry_id: str | None
) -> None:
    """Refuse an entry that is neither of the history nor of a branch that was left."""
    if entry_id is not None and entry_id != record.head:
        known = dict[str, int]()
        for tip in (record.head, *record.branches):
            _length(opened, view, tip, known)
            if entry_id in known:
                return
        raise NotFound("The conversation has no such entry, nor a branch that it left.")


def _kept(
    opened: OpenScope, view: View, record: Conversation, request: Rewind | Branch
) -> str | None:
    """The entry that the request names, of the history or of a branch that was left."""
    if request.entry is not None:
        _check_reached(opened, view, record, request.entry)
        return request.entry
    if request.at is None:
        return record.head
    if request.at > record.entries:
        raise InvalidRequest(f"at: the conversation has {record.entries:,} entries.")
    for number, entry in enumerate(chain(opened, view, record.head)):
        if record.entries - number == request.at:
            return entry.id
    return None


def rewind(opened: OpenScope, request: Rewind, caller: Caller) -> Conversation:
    """Continue from an earlier entry; the history that is left stays stored as a branch."""

    def store(tx: Tx) -> Conversation:
        record = named(opened, tx, request.conversation)
        _check_revision(record, request.expected_revision)
        sessions.spend(opened, tx, caller.allowances)
        clock = opened.ports.clock
        after = replace(
            _led_to(opened, tx, record, _kept(opened, tx, record, request)),
            revision=request.revision or clock.new_id(),
            updated_at=opened.moment(),
        )
        row = put_record(opened, tx, after)
        opened.trail.record(tx, "rewind", caller.actor, (row.id,))
        return after

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def branch(opened: OpenScope, request: Branch, caller: Caller) -> Conversation:
    """Begin a conversation with the history of another one; `into` must be a free name."""

    def store(tx: Tx) -> Conversation:
        source = named(opened, tx, request.conversation)
        _check_revision(source, request.expected_revision)
        if find(opened, tx, request.into) is not None:
            raise Conflict("There is a conversation of that name already.")
        sessions.spend(opened, tx, caller.allowances)
        head = _kept(opened, tx, source, request)
        line = list(chain(opened, tx, head))
        begun = replace(
            _begun(opened, request.into, opened.moment()),
            revision=request.revision or opened.ports.clock.new_id(),
            head=head,
            entries=len(line),
            title=request.title or source.title,
            metadata=dict(request.metadata or source.metadata),
            forked_from=source.name,
            forked_at=head,
        )
        begun, _ = admit(begun, opened.ports.policy.placeholder)
        row = put_record(opened, tx, begun)
        # What the session of the other one has read may stand in any entry that is shared.
        read = sessions.tainted(opened, tx, source.name)
        origins = {*(entry.origin for entry in line), *([read] if read is not None else ())}
        for origin in (one for one in origins if not one.trusted):
            sessions.taint(opened, tx, request.into, origin, actor=caller.actor)
        opened.trail.record(tx, "branch", caller.actor, (row.id,))
        return begun

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


# -- reading ---------------------------------------------------------------------------------


def named(opened: OpenScope, view: View, name: str) -> Conversation:
    """The conversation of this name; NotFound if there is none."""
    if (row := find(opened, view, name)) is None:
        raise _not_here(name)
    return record_of(opened, row)


def read(opened: OpenScope, request: ReadConversation, *, actor: Actor) -> Transcript:
    """The last entries of a history; the session that reads untrusted ones is tainted."""

    def look(view: View) -> Transcript:
        name = request.conversation
        record = None if name is None else named(opened, view, name)
        given = request.cursor or request.entry
        found: list[Entry] = []
        left, earlier = READ_BYTES, None
        for entry in chain(opened, view, given or (record.head if record else None)):
            left -= len(cells.encode(entry))
            if len(found) >= request.limit or (found and left < 0):
                earlier = entry.id
                break
            found.append(entry)
        if given is not None and not found and earlier is None:
            raise _not_here(None)
        return Transcript(conversation=record, entries=tuple(reversed(found)), next_cursor=earlier)

    transcript = opened.read(look)
    opened.note_read("conversation", actor)
    session = request.session or request.conversation
    origins = [entry.origin for entry in transcript.entries]
    sessions.note_resumed(opened, session, origins, actor=actor)
    return transcript


def listed(opened: OpenScope, request: ListConversations, *, actor: Actor) -> Page[Conversation]:
    """Conversations, the last written first; no entry is opened."""
    (before,) = place(request.cursor)

    def look(view: View) -> list[tuple[Row, Conversation]]:
        rows = (row for row in records(opened, view) if not before or row.seq < before)
        said = ((row, record_of(opened, row)) for row in rows)
        accepted = (one for one in said if request.accepts(one[1]))
        return list(islice(accepted, request.limit + 1))

    found = opened.read(look)
    opened.note_read("conversations", actor)
    return Page(
        data=tuple(record for _, record in found[: request.limit]),
        next_cursor=cursor_at(found[-2][0].seq) if len(found) > request.limit else None,
    )


# -- erasing ---------------------------------------------------------------------------------


def deletable(
    opened: OpenScope, view: View, name: str, expected: str | None = None
) -> dict[bytes, Row]:
    """The row of a conversation, and those of the entries that no other conversation reaches."""
    if (row := find(opened, view, name)) is None:
        raise _not_here(name)
    if expected is not None:
        _check_revision(record_of(opened, row), expected)
    return {row.id: row, **unshared(opened, view, row)}


def unshared(opened: OpenScope, view: View, row: Row) -> dict[bytes, Row]:
    """The entries of a conversation that no other one shares; none of one that is damaged."""
    if not isinstance(record := opened_row(opened, row), Conversation):
        return {}
    own = {row.id for row in view.rows_of_session(HOME, opened.session_hash(record.name))}
    for tip in (record.head, *record.branches):
        own.update(opened.row_id(entry.id) for entry in chain(opened, view, tip, damaged=True))
    others = [opened_row(opened, one) for one in records(opened, view) if one.id != row.id]
    shared: set[bytes] = set()
    for other in others:
        if not isinstance(other, Conversation):
            continue
        # Only a fork, or what it was forked from, can reach into another history.
        if {other.forked_from, record.forked_from} == {None}:
            continue
        for tip in (other.head, *other.branches):
            for entry in chain(opened, view, tip, damaged=True):
                row_id = opened.row_id(entry.id)
                if row_id in shared:
                    break
                shared.add(row_id)
    rows = (living(view, HOME, row_id) for row_id in own - shared)
    return {row.id: row for row in rows if row is not None}


def erase(
    opened: OpenScope, tx: Tx, rows: Mapping[bytes, Row], remains: Mapping[bytes, object]
) -> None:
    """Erase entries and conversations, but for what remains; close the gaps in other histories.

    What followed an erased entry follows what that one followed, or what remains of it. A
    conversation of which no entry is left is erased as well.
    """
    held = {row_id: opened_row(opened, row) for row_id, row in rows.items()}

    def instead(entry_id: str | None) -> str | None:
        while entry_id is not None and (row_id := opened.row_id(entry_id)) in rows:
            if isinstance(rest := remains.get(row_id), Entry):
                return rest.id
            one = held[row_id]
            entry_id = one.parent if isinstance(one, Entry) else None
        return entry_id

    followers = {
        row.id: row
        for row_id in rows
        for child in tx.derived(row_id)
        if child not in rows and (row := living(tx, HOME, child)) is not None
    }
    for row_id, row in rows.items():
        _erase_row(opened, tx, row, held[row_id], cut=row_id in remains)
    for rest in remains.values():
        if isinstance(rest, Entry):
            put_entry(opened, tx, replace(rest, parent=instead(rest.parent)))
        elif isinstance(rest, Conversation):
            put_record(opened, tx, rest)
    for row in followers.values():
        if isinstance(entry := opened_row(opened, row), Entry):
            put_entry(opened, tx, replace(entry, parent=instead(entry.parent)))
    if not all(map(is_record, rows.values())):
        _mend_records(opened, tx, instead)


def _erase_row(
    opened: OpenScope,
    tx: Tx,
    row: Row,
    one: Conversation | Entry | None,
    *,
    cut: bool = False,
) -> None:
    """Erase a row; a conversation that is not only cut is told by a tombstone of its own."""
    tx.erase(HOME, row.id, drop_day=opened.drop_day())
    tx.bury([row.id])
    if isinstance(one, Conversation) and not cut:
        tx.bury([opened.row_id(_DELETED + one.id)])


def _mend_records(opened: OpenScope, tx: Tx, instead: Callable[[str | None], str | None]) -> None:
    """Let conversations whose head or branches were erased end with what is left."""
    known = dict[str, int]()
    for row in records(opened, tx):
        if not isinstance(record := opened_row(opened, row), Conversation):
            continue
        head = instead(record.head)
        branches = dict.fromkeys(tip for tip in map(instead, record.branches) if tip)
        entries = _length(opened, tx, head, known)
        if (head, tuple(branches), entries) == (record.head, record.branches, record.entries):
            continue
        if not entries and not branches:
            _erase_row(opened, tx, row, record)
            continue
        mended = replace(
            record,
            head=head,
            entries=entries,
            branches=tuple(tip for tip in branches if tip != head),
            forked_at=instead(record.forked_at),
            revision=opened.ports.clock.new_id(),
        )
        put_record(opened, tx, mended)


# -- whole scopes out and in -----------------------------------------------------------------


def load(
    opened: OpenScope, tx: Tx, conversations: Iterable[Conversation], entries: Sequence[Entry]
) -> None:
    """Add conversations that are neither here nor forgotten, and the entries that they reach.

    A name that is in use here stays as it is. One that was cut here comes without its texts.
    """
    parents = {entry.id: entry.parent for entry in entries}
    buried = {one for one in parents if tx.buried([opened.row_id(one)])}

    def instead(entry_id: str | None) -> str | None:
        while entry_id in buried:
            entry_id = parents[entry_id]
        if entry_id is None or entry_id in parents:
            return entry_id
        row = living(tx, HOME, opened.row_id(entry_id))
        return None if row is None or is_record(row) else entry_id

    new = [one for one in map(partial(_as_left, opened, tx), conversations) if one is not None]
    wanted = set[str]()
    for one in new:
        for tip in (one.head, *one.branches):
            while tip in parents and tip not in wanted:
                wanted.add(tip)
                tip = parents[tip]  # noqa: PLW2901
    for entry in entries:
        known = entry.id in buried or tx.row(HOME, opened.row_id(entry.id)) is not None
        if entry.id in wanted and not known:
            put_entry(opened, tx, replace(entry, parent=instead(entry.parent)))
    lengths = dict[str, int]()
    for one in new:
        head = instead(one.head)
        left = _length(opened, tx, head, lengths)
        tips = dict.fromkeys(tip for tip in map(instead, one.branches) if tip and tip != head)
        if left or tips or not one.entries:
            put_record(opened, tx, replace(one, head=head, entries=left, branches=tuple(tips)))


def _as_left(opened: OpenScope, view: View, record: Conversation) -> Conversation | None:
    """A conversation of a file as it may be written here; None if it may not."""
    if find(opened, view, record.name) is not None:
        return None
    while view.buried([opened.row_id(record.id)]):
        if view.buried([opened.row_id(_DELETED + record.id)]):
            return None
        record = replace(record, id=rest_of(record.id), title=None, metadata={})
    return None if view.row(HOME, opened.row_id(record.id)) else record


def check(opened: OpenScope, view: View) -> list[str]:
    """Whether every entry's parent, head and branch is there, and every record is counted right."""
    rows = [row for row in changes(view, HOME) if not row.erased]
    held = [one for row in rows if (one := opened_row(opened, row)) is not None]
    parents = {one.id: one.parent for one in held if isinstance(one, Entry)}
    problems = []
    for one in held:
        points = [one.parent] if isinstance(one, Entry) else [one.head, *one.branches]
        if any(point is not None and point not in parents for point in points):
            problems.append(f"{one.id} points to an entry that is not there.")
        elif isinstance(one, Conversation):
            entries, at = 0, one.head
            while at in parents and entries <= len(parents):
                entries, at = entries + 1, parents[at]
            if entries != one.entries:
                problems.append(f"{one.id} has {entries} entries, but says {one.entries}.")
    return problems
