"""Documents: text or JSON under names, one sealed row each.

A row is found by the keyed hash of its name, and has the id of its generation: removed and put
again it is another document. The text of an indexed one is also written as memories derived from
it, which are erased and replaced with it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate, compress
from operator import itemgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.ledger import consolidation, sessions, statement_chain
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.views import changes, derived, living
from scrubjay.engine.search import embedding
from scrubjay.guard.admission import admit
from scrubjay.model import cells
from scrubjay.model.conversations import rest_of
from scrubjay.model.documents import (
    NO_REVISION,
    Document,
    ListDocuments,
    Move,
    Put,
    ReadDocument,
    Remove,
    Removed,
    Stored,
    check_name,
)
from scrubjay.model.echo import SHORTEST, SentenceMatcher
from scrubjay.model.errors import Conflict, KeyMissing, NotFound, SealBroken, Stale
from scrubjay.model.memory import Kind, Memory, Provenance
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.pages import Page, paged
from scrubjay.model.requests import Caller
from scrubjay.model.rows import Collection, Due, Row
from scrubjay.model.turns import Piece, derived_id
from scrubjay.ports import Failpoint, Tx, View
from scrubjay.vault import join

HOME: Final = Collection.DOCUMENT
# No idempotency key has such a name, so that none can be taken for it.
_NAMED: Final = "\0document\0"
_PIECE_CHARS: Final = 1_500
"""Length of the pieces that recall finds of an indexed document."""
_PIECES: Final = 400
_PATH: Final = "document"
"""Metadata key under which a piece names its document."""


# -- rows ------------------------------------------------------------------------------------


def find(opened: OpenScope, view: View, name: Sequence[str]) -> Row | None:
    """The row of the document of this name."""
    hashed = _name_hash(opened, name)
    return None if hashed is None else view.row_by_key(HOME, hashed)


def _name_hash(opened: OpenScope, name: Sequence[str]) -> bytes | None:
    return opened.key_hash(_NAMED + join(*name).hex())


def document_of(opened: OpenScope, row: Row) -> Document:
    """The document in a row."""
    document = cells.decode(Document, opened.open_body(HOME, row))
    return replace(document, revision=f"{row.born}.{row.version}")


def sound_document(opened: OpenScope, row: Row) -> Document | None:
    """The document in a row; None if it is damaged, since it must still be erasable."""
    try:
        return document_of(opened, row)
    except (SealBroken, KeyMissing, NotFound):
        return None


def documents(opened: OpenScope, view: View) -> Iterator[tuple[Row, Document]]:
    """Every document, with its row."""
    rows = (row for row in changes(view, HOME) if not row.erased)
    return ((row, document_of(opened, row)) for row in rows)


def put_row(opened: OpenScope, tx: Tx, document: Document) -> Document:
    """Write a document under its name; returns it as it is stored."""
    session = None if document.session is None else opened.session_hash(document.session)
    row = opened.put_body(
        tx,
        HOME,
        opened.row_id(document.id),
        cells.encode(replace(document, revision="")),
        session=session,
        key=_name_hash(opened, document.name),
    )
    return replace(document, revision=f"{row.born}.{row.version}")


def _not_here() -> NotFound:
    return NotFound("There is no document of that name.", hint="documents() lists them.")


def _check_revision(document: Document | None, expected: str | None) -> None:
    present = NO_REVISION if document is None else document.revision
    if expected is not None and expected != present:
        raise Stale(
            "The document was written to, or removed, since it was read.",
            hint="Read it again, then repeat the change.",
        )


# -- what recall finds -----------------------------------------------------------------------


def _pieces(document: Document) -> list[Piece]:
    """The text of an indexed document in pieces of some paragraphs each."""
    text, begun = cells.words(document.value), ""
    found: list[str] = []
    for line in (text if document.indexed else "").splitlines():
        if begun and len(begun) + len(line) >= _PIECE_CHARS:
            found.append(begun)
            begun = ""
        begun = f"{begun}\n{line}".strip() if begun else line.strip()
        while len(begun) > 2 * _PIECE_CHARS:
            at = begun.rfind(" ", 0, _PIECE_CHARS) + 1 or _PIECE_CHARS
            found.append(begun[:at].strip())
            begun = begun[at:].strip()
    found.append(begun)
    told = [one for one in found if one.strip()][:_PIECES]
    return [
        Piece(part=f"piece-{number}", kind=Kind.EPISODE, content=one)
        for number, one in enumerate(told)
    ]


class Indexing(Struct, frozen=True):
    """The pieces of a document with their vectors, made before the transaction begins."""

    pieces: Sequence[Piece]
    vectors: dict[str, bytes | None]


def prepare(opened: OpenScope, document: Document) -> Indexing:
    """The pieces of a document that are indexed for recall."""
    pieces = _pieces(document)
    seconds = opened.ports.policy.embed_seconds
    return Indexing(pieces, embedding.vectors_of_pieces(opened, pieces, seconds=seconds))


def _withdraw(opened: OpenScope, tx: Tx, row: Row) -> None:
    """Erase a memory that was derived from a document; the same text gets another id later."""
    opened.leave_due(tx, Due.PUSH | (Due.NOTHING if row.blob is None else Due.SWEEP))
    opened.erase_memory(tx, row, opened.unseal_sound(row))
    tx.bury([row.id])


def reindex(opened: OpenScope, tx: Tx, document: Document, indexing: Indexing) -> None:
    """Replace the memories that were derived from a document by those of its present text."""
    row_id = opened.row_id(document.id)
    for row in derived(tx, row_id):
        if (memory := opened.unseal_sound(row)) is None or memory.sources != (document.id,):
            continue  # somebody made that of it and of more
        _withdraw(opened, tx, row)
    for piece in indexing.pieces:
        memory = Memory(
            id=derived_id(document.id, f"{document.revision}/{piece.part}"),
            kind=piece.kind,
            content=piece.content,
            recorded_at=document.updated_at,
            origin=document.origin,
            provenance=Provenance(
                actor=document.actor,
                session=document.session,
                channel=document.channel,
                key_id=document.key_id,
            ),
            sources=(document.id,),
            metadata={_PATH: document.path},
        )
        _tell(opened, tx, document, memory, indexing.vectors.get(piece.part))


def _tell(
    opened: OpenScope, tx: Tx, document: Document, memory: Memory, vector: bytes | None
) -> None:
    statement_chain.put(opened, tx, memory, vector)
    tx.link(opened.row_id(document.id), opened.row_id(memory.id))


def _rename(opened: OpenScope, tx: Tx, rows: Iterable[Row], document: Document) -> None:
    """Let the memories that tell a document name it as it is called now.

    Else they stay as they are: corrected, pinned, archived, or less than they were.
    """
    for row in rows:
        memory = opened.unseal_sound(row)
        sources = () if memory is None else (*memory.sources, *map(rest_of, memory.sources))
        if memory is None or document.id not in sources:
            continue
        metadata = dict(memory.metadata)
        if _PATH in metadata:
            metadata[_PATH] = document.path
        told = replace(memory, metadata=metadata, sources=(document.id,))
        if told != memory:
            opened.put(tx, replace(told, version=memory.version + 1))
            tx.link(opened.row_id(document.id), row.id)


def without(document: Document, told: Sequence[str]) -> Document | None:
    """What is left of a document without the text of pieces, wherever it stands; None if no text.

    The same document if none of them stands in it.
    """
    text = cells.words(document.value)
    kept, at = bytearray(b"\1") * len(text), 0
    for start, end in _places(text, told):
        kept[start:end] = bytes(end - start)

    def rest(one: str) -> str:
        nonlocal at
        begin, at = at, at + len(one) + 1  # one text stands behind the other in `words`
        return "".join(compress(one, kept[begin:at]))

    if all(kept):
        return document
    document = replace(document, value=cells.texts(document.value, rest))
    return document if cells.words(document.value).strip() else None


def _places(text: str, told: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where pieces stand in a text, whatever space is between their words.

    What is too short to be a copy of them is only what stands in lines of its own, else between
    spaces, else anywhere: a text without spaces is cut by its length.
    """
    words, places, end = text.split(), list[int](), 0
    for word in words:
        places.append(text.index(word, end))
        end = places[-1] + len(word)
    flat, starts = " ".join(words), [0, *accumulate(len(word) + 1 for word in words)]

    def place(at: int) -> int:
        word = bisect_right(starts, at) - 1
        return places[word] + at - starts[word]

    for wanted in (" ".join(content.split()) for content in told):
        found, at = list[tuple[int, int]](), flat.find(wanted) if wanted else -1
        while at >= 0:
            after = at + len(wanted)
            found.append((place(at), place(after - 1) + 1))
            at = flat.find(wanted, after)
        if len(wanted) < SHORTEST:
            spaced = [(a, b) for a, b in found if not (text[a - 1 : a] + text[b : b + 1]).strip()]
            found = [place for place in spaced if _fills_lines(text, *place)] or spaced or found
        yield from found


def _fills_lines(text: str, start: int, end: int) -> bool:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    after = text[end : text.find("\n", end) % (len(text) + 1)]  # -1 is the end
    return not (before + after).strip()


class Told(Struct, frozen=True):
    """What recall finds of a document that something was cut out of."""

    stays: frozenset[bytes] = frozenset()
    """Memories that tell what is left of it: its pieces, and corrections of them."""
    anew: tuple[Memory, ...] = ()
    """What is left of the others, to be written as memories of what remains."""


def told(
    opened: OpenScope,
    view: View,
    row_id: bytes,
    rest: Document,
    *,
    copies: SentenceMatcher,
    going: Container[bytes],
) -> Told:
    """What becomes of the memories of a document of which the `rest` remains.

    What else was made of it may tell what is not left.
    """
    flat = _flat(cells.words(rest.value))
    stays, anew = set[bytes](), list[tuple[int, Memory]]()

    def left(one: Memory) -> str:
        return cells.within_json(one.content, lambda text: copies.cut(text)[0])

    def stands(one: Memory) -> bool:
        return left(one) == one.content if one.supersedes else _flat(one.content) in flat

    def sound(public_id: str | None) -> Memory | None:
        found = public_id and living(view, Collection.MEMORY, opened.row_id(public_id))
        return opened.unseal_sound(found) if found else None

    for row in derived(view, row_id):
        head = opened.unseal_sound(row)
        if head is None or [*map(opened.row_id, head.sources)] != [row_id]:
            continue
        if (after := sound(head.superseded_by)) is not None and after.sources == head.sources:
            continue  # it stays or goes with its correction
        chain = [head]
        while (before := sound(chain[-1].supersedes)) is not None:
            chain.append(before)
        ids = [opened.row_id(one.id) for one in chain]
        if any(one in going for one in ids):
            continue
        if stands(head):
            stays.update(compress(ids, accumulate(map(stands, chain), min)))
        elif _PATH in head.metadata:
            content = left(head) if head.supersedes else _standing_in(flat, left(head))
            if content:
                one = replace(head, content=content)
                anew.append((row.born, consolidation.again(opened, view, one, going=going)))
    return Told(frozenset(stays), tuple(one for _, one in sorted(anew, key=itemgetter(0))))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _standing_in(flat: str, text: str) -> str:
    """A text, or of one that does not stand in another its longest beginning and end that do."""
    if (wanted := _flat(text)) in flat:
        return text.strip()
    begin = bisect_left(range(len(wanted)), True, key=lambda n: wanted[: n + 1] not in flat)
    rest = wanted[begin:]
    end = bisect_left(range(len(rest)), True, key=lambda n: rest[-n - 1 :] not in flat)
    ends = (wanted[:begin].strip(), rest[len(rest) - end :].strip())
    return "\n".join(one for one in ends if len(one) >= SHORTEST)


# -- writing ---------------------------------------------------------------------------------


def put(opened: OpenScope, request: Put, caller: Caller) -> Stored:
    """Write a document, new or in place of the one of that name; durable when this returns."""
    clock = opened.ports.clock
    now = clock.now()
    given = Document(
        id=f"doc-{clock.new_id()}",
        name=request.parts,
        value=request.value,
        created_at=now,
        updated_at=now,
        indexed=request.indexed,
        origin=Origin(request.origin),
        session=request.session,
        channel=request.channel,
        key_id=caller.key,
        actor=caller.actor,
    )
    given, redacted = admit(given, opened.ports.policy.placeholder)
    indexing = prepare(opened, given)

    def store(tx: Tx) -> Stored:
        row = find(opened, tx, given.name)
        before = None if row is None else document_of(opened, row)
        _check_revision(before, request.expected_revision)
        sessions.spend(opened, tx, caller.allowances)
        origin = sessions.trusted(opened, tx, given.session, given.origin)
        after = replace(given, origin=origin)
        if before is not None:
            after = replace(after, id=before.id, created_at=before.created_at)
        after = put_row(opened, tx, after)
        reindex(opened, tx, after, indexing)
        opened.trail.record(tx, "put", caller.actor, (opened.row_id(after.id),))
        return Stored(document=replace(after, value=None), redacted=redacted)

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def _chosen(opened: OpenScope, tx: Tx, request: Move | Remove) -> list[tuple[Row, Document]]:
    """The document of a name and, with `tree`, all in the folder of that name."""
    folder = request.parts
    if request.tree:
        found = [
            (row, one) for row, one in documents(opened, tx) if one.name[: len(folder)] == folder
        ]
    else:
        row = find(opened, tx, folder)
        found = [] if row is None else [(row, document_of(opened, row))]
        if row is not None:
            _check_revision(found[0][1], request.expected_revision)
    if not found:
        raise _not_here()
    return found


def move(opened: OpenScope, request: Move, caller: Caller) -> tuple[Document, ...]:
    """Give documents other names, all of them or none; they stay the same generation."""
    target, depth = tuple(request.to), len(request.parts)

    def store(tx: Tx) -> tuple[Document, ...]:
        found = _chosen(opened, tx, request)
        sessions.spend(opened, tx, caller.allowances)
        now, moving = opened.moment(), {row.id for row, _ in found}
        moved = []
        for _, one in found:
            name = (*target, *one.name[depth:])
            check_name(name)
            there = find(opened, tx, name)
            if there is not None and there.id not in moving:
                raise Conflict("There is a document of that name already.")
            moved.append(replace(one, name=name, updated_at=now))
        for row, _ in found:  # the names are freed first: a folder may move into itself
            tx.put(HOME, replace(row, key=None))
        after = tuple(put_row(opened, tx, one) for one in moved)
        for one in after:
            _rename(opened, tx, derived(tx, opened.row_id(one.id)), one)
        opened.trail.record(tx, "move", caller.actor, sorted(moving), number=len(moving))
        return tuple(replace(one, value=None) for one in after)

    receipt = opened.write(store)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


def remove(opened: OpenScope, request: Remove, caller: Caller) -> Removed:
    """Remove documents; as with purge no key is rotated, which forget does."""

    def store(tx: Tx) -> Removed:
        found = [row for row, _ in _chosen(opened, tx, request)]
        sessions.spend(opened, tx, caller.allowances)
        for row in found:
            for memory in derived(tx, row.id):
                _withdraw(opened, tx, memory)
        erase(opened, tx, found)
        opened.leave_due(tx, Due.PUSH)
        ids = [row.id for row in found]
        opened.trail.record(tx, "remove", caller.actor, ids, number=len(ids))
        return Removed(removed=len(found))

    receipt = opened.write(store, erasing=True)
    opened.ports.reach(Failpoint.RETAIN_COMMITTED)
    return receipt


# -- reading ---------------------------------------------------------------------------------


def read(opened: OpenScope, request: ReadDocument, *, actor: Actor) -> Document:
    """The document of a name; a session that reads an untrusted one is tainted."""

    def look(view: View) -> Document:
        if (row := find(opened, view, request.parts)) is None:
            raise _not_here()
        return document_of(opened, row)

    document = opened.read(look)
    opened.note_read("document", actor)
    sessions.note_resumed(opened, request.session, [document.origin], actor=actor)
    return document


def listed(opened: OpenScope, request: ListDocuments, *, actor: Actor) -> Page[Document]:
    """Documents in the order of their names; all of them are opened, because names are sealed."""

    def look(view: View) -> list[Document]:
        found = (one for _, one in documents(opened, view) if request.accepts(one))
        if not request.values:
            found = (replace(one, value=None) for one in found)
        return sorted(found, key=lambda one: one.name)

    found = opened.read(look)
    opened.note_read("documents", actor)
    return paged(found, request.limit, request.cursor, lambda one: one.name)


# -- erasing ---------------------------------------------------------------------------------


def erase(opened: OpenScope, tx: Tx, rows: Iterable[Row]) -> None:
    """Erase documents and tombstone their ids; their names may be used again."""
    for row in rows:
        if row.blob is not None:
            opened.leave_due(tx, Due.SWEEP)
        tx.erase(HOME, row.id, drop_day=opened.drop_day())
        tx.bury([row.id])


def put_rest(
    opened: OpenScope, tx: Tx, rest: Document, standing: Sequence[Row], anew: Iterable[Memory]
) -> None:
    """Write what remains of an erased document, and what recall finds of that."""
    rest = put_row(opened, tx, rest)
    _rename(opened, tx, standing, rest)
    for number, one in enumerate(anew):
        made = derived_id(rest.id, f"{rest.revision}/piece-{number}")
        _tell(opened, tx, rest, replace(one, id=made, sources=(rest.id,)), None)


# -- whole scopes in -------------------------------------------------------------------------


def load(opened: OpenScope, tx: Tx, loaded: Iterable[Document]) -> None:
    """Add what is neither here nor forgotten; a name that is in use here stays as it is.

    What recall finds of them came along as memories.
    """
    for one in loaded:
        if not _stays_out(opened, tx, one):
            put_row(opened, tx, one)


def left_out(opened: OpenScope, view: View, loaded: Iterable[Document]) -> frozenset[str]:
    """The ids of those that a load adds nothing of: nor may recall find their texts."""
    return frozenset(one.id for one in loaded if _stays_out(opened, view, one))


def _stays_out(opened: OpenScope, view: View, one: Document) -> bool:
    row_id = opened.row_id(one.id)
    there = view.row(HOME, row_id) is not None or find(opened, view, one.name) is not None
    return there or bool(view.buried([row_id]))


def named_rightly(opened: OpenScope, row: Row) -> Document | None:
    """The document in a row; None if the row is under another name's hash."""
    one = document_of(opened, row)
    return one if row.key == _name_hash(opened, one.name) else None
