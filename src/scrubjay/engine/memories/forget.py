"""forget: erase chosen memories, everything derived from them, and their encryption keys."""

from __future__ import annotations

import hmac
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from scrubjay.engine.ledger import conversations, derivation, documents, sessions, turns
from scrubjay.engine.ledger.turns import Rest
from scrubjay.engine.memories import receipts
from scrubjay.engine.memories.read import not_here
from scrubjay.engine.memories.retain import check_expected
from scrubjay.engine.scope import due_work, root_key, rotate
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.engine.scope.views import changes, derived, earlier_versions, living
from scrubjay.engine.search import manifest
from scrubjay.model import cells
from scrubjay.model.conversations import Conversation, DeleteConversation, Entry, rest_of
from scrubjay.model.documents import Document
from scrubjay.model.echo import GAP, SHORTEST, SentenceMatcher, plain_words, sentences
from scrubjay.model.errors import Busy, Conflict, Full, InvalidRequest, NeedsConfirmation
from scrubjay.model.memory import Edition, Json, Kind, Memory, wording
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.requests import Caller, Forget
from scrubjay.model.results import CopiedSentence, ErasedCell, Erasure, Preview
from scrubjay.model.rows import Collection, Due, Head, Row
from scrubjay.model.turns import rest_id
from scrubjay.ports import Failpoint, Tx, View, patience

COPIES = 100
"""The most copies that go along without the confirmation of a preview."""
_FINISH_SECONDS = 5.0
"""How long each step after the erasure may wait for a lock: others can go on with it."""
_log = logging.getLogger(__name__)


class Targets(Struct):
    """Rows to erase, by their ids."""

    memories: dict[bytes, Row] = {}
    turns: dict[bytes, Row] = {}
    entries: dict[bytes, Row] = {}
    """Entries of conversations, and conversations."""
    documents: dict[bytes, Row] = {}
    rests: dict[bytes, Rest | Entry | Conversation | Document] = {}
    """The rests of texts that a sentence is cut out of."""
    anew: dict[bytes, tuple[Memory, ...]] = {}
    """What is left of memories that tell a document, by its row."""
    gone: list[bytes] = []
    """Ids without a row. Purge may have taken one, and left what was derived from it."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def by_collection(self) -> dict[Collection, dict[bytes, Row]]:
        """The rows of each collection."""
        return {
            Collection.MEMORY: self.memories,
            Collection.TURN: self.turns,
            Collection.CONVERSATION: self.entries,
            Collection.DOCUMENT: self.documents,
        }

    @property
    def long(self) -> bool:
        """Whether the body of one of them is in a blob."""
        return any(row.blob for rows in self.by_collection.values() for row in rows.values())

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids of all of them."""
        return (*self.memories, *self.turns, *self.entries, *self.documents)

    def joined(self, other: Targets) -> Targets:
        """All rows of both."""
        return Targets(
            self.memories | other.memories,
            self.turns | other.turns,
            self.entries | other.entries,
            self.documents | other.documents,
            gone=[*self.gone, *other.gone],
        )


class Copies(Targets):
    """Copies of what is to be forgotten: memories, and sentences of turns."""

    sentences: list[CopiedSentence] = []
    trusted_more: bool = False
    """Whether one of them is trusted more than what it is a copy of."""
    texts: frozenset[str] = frozenset()
    """The sentences searched for, in normal form."""
    head: Head = Head()
    """Head of the scope up to which the copies were searched for."""

    def __len__(self) -> int:
        return len(self.memories) + len(self.sentences)

    @property
    def asks(self) -> bool:
        """Whether they go only with the confirmation of a preview."""
        return self.trusted_more or len(self) > COPIES


class ErasureResult(Struct):
    """Result of one erasing transaction."""

    rows: Targets
    cells: list[ErasedCell] = []
    already: int = 0
    derived: int = 0
    copies: int = 0
    again: int = 0


def forget(
    opened: OpenScope,
    request: Forget,
    caller: Caller,
    *,
    expected: frozenset[Edition] | None = None,
    turns_only: bool = False,
) -> Erasure:
    """Erase the target of the request; on return it is gone and cannot come back.

    `expected` is an optimistic lock on a single id; `turns_only` takes ids as those of turns.
    """
    if expected is not None and len(request.ids) != 1:
        raise InvalidRequest("The optimistic lock `expected` needs exactly one id.")
    ids, before = _resolve(opened, request), Copies()
    if request.copies:  # the whole scope is read here, so that no other writer waits for that

        def search(view: View) -> Copies:
            named = present(view, _with_rests(opened, view, request, ids))
            return _doomed(opened, view, request, named)[1]

        before = opened.read(search)

    def erase(tx: Tx) -> ErasureResult:
        if expected is not None:
            # A row says which state it is, damaged or not.
            if (row := living(tx, Collection.MEMORY, ids[0])) is None:
                raise not_here(opened, request.ids[0])
            check_expected((row.born, row.version), expected)
        everything = _with_rests(opened, tx, request, ids)
        named, already = _known(opened, tx, request, everything, turns_only=turns_only)
        doomed, copies = closure(opened, tx, named), Copies()
        if request.copies:
            doomed, copies = _doomed(opened, tx, request, named, before)
            named = named.joined(copies)
        _check_confirmed(opened, request, doomed, copies)
        taken = take(opened, tx, doomed, named, verb="forget", actor=caller.actor)
        taken.already, taken.copies = already, len(copies)
        if doomed:
            sessions.spend(opened, tx, caller.allowances)
        elif already < len(ids):
            opened.leave_due(tx, Due.PUSH)
            opened.trail.record(tx, "forget", caller.actor, ids, number=0)
        return taken

    return carry_out(opened, erase, "forget")


def delete_conversation(opened: OpenScope, request: DeleteConversation, caller: Caller) -> Erasure:
    """Erase a conversation and the entries that no other one shares; nothing else of its session.

    Its name may be used again.
    """

    def erase(tx: Tx) -> ErasureResult:
        rows = conversations.deletable(opened, tx, request.conversation, request.expected_revision)
        doomed = Targets(entries=rows)
        taken = take(opened, tx, doomed, doomed, verb="delete_conversation", actor=caller.actor)
        sessions.spend(opened, tx, caller.allowances)
        return taken

    return carry_out(opened, erase, "delete_conversation")


def preview(opened: OpenScope, request: Forget, caller: Caller) -> Preview:
    """What a forget of this request would erase, and the token that confirms exactly that."""
    ids = _resolve(opened, request)

    def look(view: View) -> Preview:
        named = present(view, _with_rests(opened, view, request, ids))
        doomed, copies = _doomed(opened, view, request, named)
        rows = sorted(doomed.memories.values(), key=lambda row: row.born)
        known = named.memories | copies.memories
        return Preview(
            memories=tuple(opened.unseal(row) for row in rows if row.id in named.memories),
            others=tuple(opened.unseal(row) for row in rows if row.id not in known),
            token=_token(opened, doomed),
            turns=len(doomed.turns.keys() - doomed.rests.keys()),
            entries=len(doomed.entries.keys() - doomed.rests.keys()),
            documents=len(doomed.documents.keys() - doomed.rests.keys()),
            cut=tuple(one.path for one in doomed.rests.values() if isinstance(one, Document)),
            copies=tuple(map(opened.unseal, copies.memories.values())),
            sentences=tuple(copies.sentences),
            with_copies=request.copies,
            asks=copies.asks,
        )

    found = opened.read(look)
    opened.note_read("preview", caller.actor)
    return found


# -- from a target to rows ------------------------------------------------------------------------


def _resolve(opened: OpenScope, request: Forget) -> list[bytes]:
    """The row ids a target stands for."""
    if request.ids:
        return [opened.row_id(public_id) for public_id in request.ids]
    if request.session is not None:
        return opened.read(lambda view: list(of_session(opened, view, str(request.session)).ids))
    if request.query is not None:
        # Loads stemmers, which other targets do not need.
        from scrubjay.engine.search.analysis import holds

        test = holds(request.query)
        # The turns as well: nobody sees those otherwise.
        return opened.read(
            lambda view: [
                *(r.id for r, m in opened.memories(view) if test(wording(m.content, m.tags))),
                *(r.id for r, t in opened.turns(view) if test(wording(t.user, [t.assistant]))),
                *(r.id for r, one in held(opened, view) if test(_wording(one))),
            ]
        )

    def look(view: View) -> list[bytes]:
        ids = [row.id for row, memory in opened.memories(view) if request.matches(memory)]
        if not request.tags:
            ids += [row.id for row, turn in opened.turns(view) if request.matches(turn)]
        if (before := request.before) is not None:
            ids += [row.id for row, one in held(opened, view) if _written(one) < before]
        return ids

    return opened.read(look)


Held = Entry | Conversation | Document


def held(opened: OpenScope, view: View) -> Iterator[tuple[Row, Held]]:
    """Every entry, conversation and document that opens, with its row."""
    for row in changes(view, Collection.CONVERSATION):
        one = None if row.erased else conversations.opened_row(opened, row)
        if one is not None:
            yield row, one
    for row in changes(view, Collection.DOCUMENT):
        document = None if row.erased else documents.sound_document(opened, row)
        if document is not None:
            yield row, document


def _texts(one: Held) -> Json:
    """The parts of it that hold texts, by their names."""
    if isinstance(one, Conversation):
        return {"title": one.title, "metadata": dict(one.metadata)}
    return {"body": one.body} if isinstance(one, Entry) else {"value": one.value}


def _wording(one: Held) -> str:
    return cells.words(_texts(one))


def _written(one: Held) -> datetime:
    """When it was written last; a conversation goes with its last entry, never by its age."""
    if isinstance(one, Conversation):
        return datetime.max.replace(tzinfo=UTC)
    return one.at if isinstance(one, Entry) else one.updated_at


def of_session(opened: OpenScope, view: View, session: str) -> Targets:
    """Rows written by a session, and the conversation of its name."""
    found, hashed = Targets(), opened.session_hash(session)
    for collection, rows in found.by_collection.items():
        rows.update((row.id, row) for row in view.rows_of_session(collection, hashed))
    if (record := conversations.find(opened, view, session)) is not None:
        found.entries[record.id] = record
    return found


def missing(opened: OpenScope, view: View, ids: Iterable[str]) -> list[str]:
    """The ids of which there is no memory and no turn, and never was one."""
    rows = {id: opened.row_id(id) for id in ids}
    there, buried = present(view, rows.values()).ids, view.buried(rows.values())
    return [id for id, row_id in rows.items() if row_id not in there and row_id not in buried]


def present(view: View, ids: Iterable[bytes]) -> Targets:
    """The rows that exist and are not erased."""
    found = Targets()
    for row_id in ids:
        for collection, rows in found.by_collection.items():
            if row := living(view, collection, row_id):
                rows[row_id] = row
        if not any(row_id in rows for rows in found.by_collection.values()):
            found.gone.append(row_id)
    return found


def _with_rests(opened: OpenScope, view: View, request: Forget, ids: list[bytes]) -> list[bytes]:
    """The ids, and those of what remains of turns and others that were cut: it goes with them."""
    found, waiting = list(ids), list(request.ids)
    while waiting:
        known = waiting.pop()
        for rest in {rest_id(known), rest_of(known)}:
            row_id = opened.row_id(rest)
            if len(present(view, [row_id])):
                found.append(row_id)
            elif not view.buried([row_id]):
                continue
            waiting.append(rest)
    return found


def _doomed(
    opened: OpenScope, view: View, request: Forget, named: Targets, before: Copies | None = None
) -> tuple[Targets, Copies]:
    """The rows to erase, and the copies of what is named, which are among them if requested."""
    doomed = closure(opened, view, named)
    copies = find_copies(opened, view, named, doomed, before)
    if request.copies:
        both = named.joined(Targets(copies.memories))
        doomed = closure(opened, view, both, cut=copies)
    return doomed, copies


def find_copies(
    opened: OpenScope, view: View, named: Targets, doomed: Targets, before: Copies | None
) -> Copies:
    """What says the same as the named memories, and is not to be erased anyway.

    A copy is a memory, or a sentence of a turn, that is equal in plain words and not short. What
    the named ones said before a correction counts, and what was noted from a named turn. Of what
    was found `before` and has not changed since, nothing else is opened again.
    """
    whole, parts = _told(opened, view, named)
    matcher = SentenceMatcher(parts)
    found = Copies(texts=frozenset(parts), head=view.head())
    if not matcher:
        return found

    def rows(collection: Collection, known: Iterable[bytes]) -> Iterator[Row]:
        if before is None or before.texts != found.texts:
            return changes(view, collection)
        again = (living(view, collection, row_id) for row_id in known)
        newer = changes(view, collection, before.head.at(collection).seq)
        return chain((row for row in again if row is not None), newer)

    for row in rows(Collection.MEMORY, before.memories if before else ()):
        memory = None if row.erased or row.id in doomed.memories else opened.unseal_sound(row)
        if memory is not None and (plain := plain_words(memory.content)) in whole:
            found.memories[row.id] = row
            found.trusted_more |= memory.origin.trust > whole[plain]
    for row in rows(Collection.TURN, before.turns if before else ()):
        passed = row.erased or row.id in doomed.turns or row.id in found.turns
        turn = None if passed else opened.unseal_sound_turn(row)
        if turn is None:
            continue
        user, said = matcher.cut(turn.user)
        assistant, answered = matcher.cut(turn.assistant)
        if not said and not answered:
            continue
        agent = min(turn.origin.trust, Origin.AGENT.trust)
        trusts = [*((one, turn.origin.trust) for one in said), *((one, agent) for one in answered)]
        found.trusted_more |= any(trust > parts[one] for one, trust in trusts)
        found.sentences += [CopiedSentence(turn=turn.id, text=one) for one, _ in trusts]
        found.turns[row.id] = row
        found.rests[row.id] = turns.rest_of(
            opened, view, turn, user=user, assistant=assistant, named=named.memories
        )
    for row in rows(Collection.CONVERSATION, before.entries if before else ()):
        passed = row.erased or row.id in doomed.entries or row.id in found.entries
        one = None if passed else conversations.opened_row(opened, row)
        if one is not None and _cut_copies(found, row, one, matcher, parts):
            found.entries[row.id] = row
    # A document that pieces are cut out of may say something else of it, too.
    going = closure(opened, view, named.joined(Targets(found.memories)))
    for row in rows(Collection.DOCUMENT, before.documents if before else ()):
        passed = row.erased or row.id in going.documents.keys() - going.rests.keys()
        passed = passed or row.id in found.documents
        document = None if passed else documents.sound_document(opened, row)
        if document is not None and isinstance(left := going.rests.get(row.id), Document):
            document = replace(left, id=document.id)
        if document is not None and _cut_copies(found, row, document, matcher, parts):
            found.documents[row.id] = row
    return found


def _cut_copies(
    found: Copies, row: Row, one: Held, matcher: SentenceMatcher, parts: Mapping[str, int]
) -> bool:
    """Cut what is found out of every text of an entry, conversation or document."""
    said: list[str] = []

    def without(text: str) -> str:
        rest, sentences = matcher.cut(text)
        if isinstance(one, Conversation) and not sentences:
            rest, sentences = matcher.cut_off(text)
        said.extend(sentences)
        # No model takes a message without a text.
        return GAP if sentences and not rest and isinstance(one, Entry) else rest

    changed = cells.texts(_texts(one), lambda text: cells.within_json(text, without))
    if not said or not isinstance(changed, dict):
        return False
    origin = Origin.AGENT if isinstance(one, Conversation) else one.origin
    found.trusted_more |= any(origin.trust > parts[sentence] for sentence in said)
    found.sentences += [CopiedSentence(turn=one.id, text=sentence) for sentence in said]
    if isinstance(one, Conversation):
        changed["title"] = changed["title"] or None
    found.rests[row.id] = replace(one, id=rest_of(one.id), **changed)
    return True


def _told(opened: OpenScope, view: View, named: Targets) -> tuple[dict[str, int], dict[str, int]]:
    """Trust of each text to be forgotten, by its normal form: of the whole and of each sentence."""
    whole, parts = dict[str, int](), dict[str, int]()
    waiting = list(named.memories.values())
    rows = (row for turn in named.turns for row in derived(view, turn))
    noted = {row.id: row for row in rows if row.id not in named.memories}
    for row in chain(noted.values(), waiting):
        if (memory := opened.unseal_sound(row)) is None:
            continue
        if row.id not in noted and memory.supersedes:  # what it said before, too
            before = living(view, Collection.MEMORY, opened.row_id(memory.supersedes))
            waiting += [before] if before else []
        episode = memory.kind is Kind.EPISODE
        plain, trust = plain_words(memory.content), memory.origin.trust
        if len(plain) >= SHORTEST and not (episode and row.id in noted):
            whole[plain] = max(trust, whole.get(plain, trust))
        told = () if episode else (memory.content, *turns.rests_on(opened, view, memory))
        for one in (one for text in told for one in (plain_words(text), *sentences(text))):
            parts[one] = max(trust, parts.get(one, trust))
    return whole, parts | whole


def closure(
    opened: OpenScope,
    view: View,
    named: Targets,
    *,
    versions: bool = True,
    cut: Copies | None = None,
) -> Targets:
    """Transitive closure: the named rows, everything derived, and earlier versions.

    An earlier version is the same memory before a correction: hidden, so nobody could name it,
    and it contains what was to be forgotten. For the same reason a turn is erased with its
    episode, and with the turns that only repeated it. Without `versions`, only derived rows are
    added. Lineage leads through rows that purge erased.
    """
    found, passed = named.joined(Targets()), set(named.gone)

    def follow(ids: Iterable[bytes], *, earlier: bool) -> None:
        waiting = list(ids)
        while waiting:
            row_id = waiting.pop()
            others = list(view.derived(row_id))
            if earlier:
                others += view.derived(earlier_versions(row_id))
                # Of a damaged row, what it replaced can only be named itself.
                row = found.memories.get(row_id)
                if row and (memory := opened.unseal_sound(row)) and memory.supersedes:
                    others.append(opened.row_id(memory.supersedes))
            waiting += add(others)

    def add(ids: Iterable[bytes]) -> list[bytes]:
        """The ids that are new here; what purge erased is passed through."""
        new = [one for one in ids if one not in found.memories and one not in passed]
        found.memories.update(present(view, new).memories)
        passed.update(one for one in new if one not in found.memories)
        return new

    follow(named.gone, earlier=False)
    follow(list(found.memories), earlier=versions)
    if versions:
        memories = [opened.unseal_sound(row) for row in found.memories.values()]
        episodes = [memory for memory in memories if memory and memory.kind is Kind.EPISODE]
        spoken = present(view, (opened.row_id(one) for m in episodes for one in m.sources))
        if spoken.turns:
            found.turns |= turns.with_repeats(opened, view, spoken.turns)
        _cut_pieces(opened, spoken.documents.values(), episodes, found)
    for row in list(found.entries.values()):
        if conversations.is_record(row):
            found.entries |= conversations.unshared(opened, view, row)
    copies = cut or Copies()
    for collection, rows in found.by_collection.items():
        for row_id, row in copies.by_collection[collection].items():
            rested = row_id in found.rests  # pieces are cut out of it, of what is left the copies
            if collection is not Collection.MEMORY and (rested or row_id not in rows):
                rows[row_id], found.rests[row_id] = row, copies.rests[row_id]
    matcher = SentenceMatcher(copies.texts)
    for source in (*found.turns, *found.documents):
        left, stays = found.rests.get(source), frozenset[bytes]()
        if isinstance(left, Document):
            told = documents.told(opened, view, source, left, copies=matcher, going=found.memories)
            stays, found.anew[source] = told.stays, told.anew
        # What another turn said before stays: it is the latest again.
        follow(add(one for one in view.derived(source) if one not in stays), earlier=False)
    return found


def _cut_pieces(
    opened: OpenScope, rows: Iterable[Row], pieces: Iterable[Memory], found: Targets
) -> None:
    """Cut pieces out of their documents; one of which no text is left goes whole."""
    told = defaultdict[str, list[str]](list)
    for piece in pieces:
        for source in piece.sources:
            told[source].append(piece.content)
    for row in rows:
        document = documents.sound_document(opened, row)
        if document is None or row.id in found.documents:
            continue
        rest = documents.without(document, told[document.id])
        if rest != document:
            found.documents[row.id] = row
            if rest is not None:
                found.rests[row.id] = replace(rest, id=rest_of(document.id))


def _token(opened: OpenScope, doomed: Targets) -> str:
    """The token that confirms an erasure of exactly these rows, some of them only cut."""
    return opened.token((*doomed.ids, *(b"cut" + one for one in doomed.rests)))


def _check_confirmed(opened: OpenScope, request: Forget, doomed: Targets, copies: Copies) -> None:
    """Refuse unless the preview token matches what would be erased now."""
    if request.confirm is None:
        if request.query is not None:
            raise NeedsConfirmation(
                "Forget by query needs the token of a preview.",
                hint="Look at preview(…) and repeat the call with confirm=preview.token.",
            )
        if copies.asks:
            why = "some are trusted more" if copies.trusted_more else f"at most {COPIES} go unseen"
            raise NeedsConfirmation(
                f"Erasing {len(copies):,} copies needs the confirmation of a preview: {why}.",
                hint="Look at preview(…, copies=True) and repeat with confirm=preview.token.",
            )
        return
    token = _token(opened, doomed)
    if not hmac.compare_digest(request.confirm.encode(), token.encode()):
        raise Conflict(
            "What would be forgotten is not what the preview showed.",
            hint="Nothing was erased. Look at a new preview.",
        )


def _known(
    opened: OpenScope, tx: Tx, request: Forget, ids: list[bytes], *, turns_only: bool
) -> tuple[Targets, int]:
    """The rows to erase, and how many were erased before.

    Refuses an unknown id, unless `unseen` ones are allowed.
    """
    found, already = present(tx, ids), 0
    buried, there = tx.buried(ids), set(found.ids)
    if turns_only:
        found = Targets(turns=found.turns)
    for place, row_id in enumerate(ids):
        if row_id in there:
            continue
        if row_id in buried:
            already += 1
        # A row is left of a memory that was taken back, because its turn came to say nothing new.
        elif request.unseen or tx.row(Collection.MEMORY, row_id) is not None:
            tx.bury([row_id])
        else:
            raise not_here(opened, request.ids[place])
    return found, already


# -- erasing --------------------------------------------------------------------------------------


def take(
    opened: OpenScope, tx: Tx, doomed: Targets, named: Targets, *, verb: str, actor: Actor
) -> ErasureResult:
    """Erase rows, of which the `named` were requested, and mark the follow-up work as due."""
    taken = ErasureResult(rows=doomed, derived=len(doomed) - len(named))
    if not doomed:
        return taken
    memories = [opened.unseal_sound(row) for row in doomed.memories.values()]
    for row, memory in zip(doomed.memories.values(), memories, strict=True):
        taken.cells += opened.erased_cells(Collection.MEMORY, row)
        erase_row(opened, tx, row, memory)
    if doomed.memories:
        opened.raise_epoch(tx, Collection.MEMORY)
    opened.leave_due(tx, Due.ROTATE | Due.PUSH | (Due.SWEEP if doomed.long else Due.NOTHING))
    sound = [memory for memory in memories if memory is not None]
    values = ScopeValues(opened, tx)
    taken.again = derivation.erased(opened, tx, values, sound, named.memories)
    taken.cells += turns.erase(opened, tx, doomed.turns.values(), sound, values=values)
    rests = doomed.rests
    turns.put_rests(opened, tx, [one for one in rests.values() if isinstance(one, Rest)])
    for collection in (Collection.CONVERSATION, Collection.DOCUMENT):
        rows = doomed.by_collection[collection]
        for row in rows.values():
            taken.cells += opened.erased_cells(collection, row)
        if rows:
            opened.raise_epoch(tx, collection)
    conversations.erase(
        opened,
        tx,
        doomed.entries,
        {row_id: rests[row_id] for row_id in doomed.entries if row_id in rests},
    )
    left = [(id, one, derived(tx, id)) for id, one in rests.items() if isinstance(one, Document)]
    documents.erase(opened, tx, doomed.documents.values())
    for row_id, one, standing in left:
        documents.put_rest(opened, tx, one, standing, doomed.anew.get(row_id, ()))
    opened.trail.record(tx, verb, actor, doomed.ids, number=len(doomed))
    return taken


def erase_row(
    opened: OpenScope, tx: Tx, row: Row, memory: Memory | None, *, keyed: bool = True
) -> None:
    """Erase one row and tombstone its id and, if `keyed`, its key: it cannot be told again."""
    opened.erase_memory(tx, row, memory)
    tx.bury([row.id] if row.key is None or not keyed else [row.id, row.key])


def carry_out(opened: OpenScope, erase: Callable[[Tx], ErasureResult], verb: str) -> Erasure:
    """Run an erasing transaction, push tombstones, rotate the keys; returns the receipt."""
    ports, address = opened.ports, opened.address
    taken = opened.write(erase, frozen_too=True, erasing=True)
    ports.reach(Failpoint.FORGET_COMMITTED)
    taken.cells += manifest.erased_cells(opened, taken.rows.memories)
    try:
        with patience(_FINISH_SECONDS):
            due_work.push(opened)
            ports.reach(Failpoint.FORGET_PUSHED)
            if taken.rows.long:
                due_work.sweep(opened)
            if taken.rows and ports.store.size(address) < ports.policy.rotate_below:
                rotate.finish(opened)
            ports.store.settle(address)
    except (Busy, Full) as error:
        # What was named is erased and stays so. The rest is marked due in the head: the next
        # verbs go on with it, and the receipt says that the keys are still to go.
        _log.warning("forget.left_due", extra={"code": error.code})
    head = opened.copy_audit_head()
    receipt = Erasure(
        address=address,
        verb=verb,
        at=ports.clock.now(),
        erased=len(taken.rows),
        derived=taken.derived,
        already=taken.already,
        copies=taken.copies,
        again=taken.again,
        cells=tuple(taken.cells),
        rotated=not head.due & Due.ROTATE,
        backups=receipts.backup_notes(ports, address),
        generation=ports.keyring.generation,
        noise_from=root_key.noise_from(ports),
        audit_count=head.audit_count,
        audit_mac=head.audit_mac.hex(),
    )
    if taken.rows:
        receipts.keep(ports, receipt)
    return receipt
