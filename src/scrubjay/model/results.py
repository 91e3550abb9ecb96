"""Results of the verbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final

from msgspec import field
from msgspec.structs import force_setattr

from scrubjay.model.memory import Kind, Memory, MemoryId, Result
from scrubjay.model.origin import Origin
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.model.text import doc


class Outcome(StrEnum):
    """Outcome of a write."""

    STORED = "stored"
    KNOWN = "known"
    """It exists already; nothing changed."""
    FORGOTTEN = "forgotten"
    """It was forgotten and stays forgotten; nothing changed."""
    WAITING = "waiting"
    """It waits, sealed, in the inbox of a scope that its user has locked."""


WriteOutcome = Annotated[Outcome, doc("Whether it was stored, known already, or forgotten before.")]
RedactedSecrets = Annotated[
    Mapping[str, int], doc("Secrets removed from the text before it was stored, counted by kind.")
]
TokensIn = Annotated[int, doc("Input tokens the model was sent.")]
TokensOut = Annotated[int, doc("Output tokens the model returned.")]
ExtractedMemories = Annotated[int, doc("How many memories were written.")]
ExtractedRepeats = Annotated[
    int, doc("Duplicates: pieces found that the turn had yielded already.")
]
ScopeAddress = Annotated[str, doc("Address of the scope in the store: a pseudonym, not its name.")]
EventTime = Annotated[datetime, doc("The time it was done, in UTC.")]
VerbName = Annotated[str, doc("The verb that was carried out, such as forget.")]
BackupName = Annotated[str, doc("The name of the backup.")]
BackupExpiry = Annotated[date, doc("Day of expiry: purge deletes the backup's key after it.")]


class Retained(Result, frozen=True, kw_only=True):
    """The receipt of a write, given once it is durable."""

    id: MemoryId
    number: Annotated[
        int | None,
        doc(
            "Sequence number: its place in the order of creation within the scope; "
            "None if it was forgotten before."
        ),
    ] = None
    outcome: WriteOutcome = Outcome.STORED
    redacted: RedactedSecrets = field(default_factory=dict)
    degraded: Annotated[
        tuple[str, ...],
        doc("Why it was written without a vector, a sentence; empty if it was not."),
    ] = ()
    hidden: Annotated[
        int,
        doc(
            "How many memories derived from a replaced value are "
            "out of sight until they are derived again."
        ),
    ] = 0
    inferred: Annotated[
        Kind | None,
        doc(
            "The kind that was inferred from the text, because the writer gave none; "
            "None if one was given, or it is a plain fact."
        ),
    ] = None


class Session(Result, frozen=True, kw_only=True):
    """A session (conversation): when it was, and how many memories and turns it has."""

    name: Annotated[str, doc("The name of the session (conversation).")]
    first: Annotated[datetime, doc("Time of its first memory or turn.")]
    last: Annotated[datetime, doc("Time of its last memory or turn.")]
    memories: Annotated[
        int, doc("How many memories are current; superseded and expired ones do not count.")
    ] = 0
    turns: Annotated[int, doc("How many turns are in the ledger.")] = 0
    tainted: Annotated[
        Origin | None,
        doc("Taint: the least trusted origin the session has read; None if none was reported."),
    ] = None


INJECTED: Final = 0.02
"""Relevance threshold of text that is injected into a prompt unasked."""


class Hit(Result, frozen=True, kw_only=True):
    """One search hit: a memory with its score."""

    memory: Annotated[Memory, doc("The memory that was found.")]
    score: Annotated[
        float, doc("Score from 0 to 1: compares within one answer, never rises from hit to hit.")
    ]
    why: Annotated[Mapping[str, float], doc("Parts of the score by name; they sum to it.")]
    scope: Annotated[Scope, doc("The scope it was found in.")]
    relevance: Annotated[
        float,
        doc(
            "Calibrated probability from 0 to 1 that the memory answers; compares across questions."
        ),
    ] = 0.0
    similarity: Annotated[
        float | None,
        doc(
            "Cosine of the vectors of the question and the memory, from -1 to 1; "
            "None where one of them has none."
        ),
    ] = None

    @property
    def likely(self) -> bool:
        """Whether it may be shown unasked: relevant, or trusted and of the time asked about."""
        dated = self.memory.trusted and self.why.get("dated", 0) > 0
        return dated or self.relevance >= INJECTED


class Recalled(Result, frozen=True, kw_only=True):
    """Result of recall: hits, best first."""

    hits: Annotated[tuple[Hit, ...], doc("The hits, best first.")]
    degraded: Annotated[
        tuple[str, ...],
        doc("Parts of the search that could not be used, a sentence each; empty if all could."),
    ] = ()
    searched: Annotated[int, doc("How many memories were searched: those the filter accepts.")] = 0
    milliseconds: Annotated[float, doc("How long the search took.")] = 0.0

    def markdown(self, max_tokens: int | None = None) -> str:
        """The hits as a block for a prompt, one line each with kind, origin and date.

        Lines beyond the tokens are left out, and untrusted ones beyond their share.
        """
        from scrubjay.model import block

        return block.recalled((hit.memory for hit in self.hits), max_tokens)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


class Brief(Result, frozen=True, kw_only=True):
    """The brief: memories to put before a session's first prompt, most important first."""

    entries: Annotated[
        tuple[Memory, ...], doc("The memories of the brief: pinned, behavioral, then facts.")
    ]
    scopes: Annotated[
        tuple[Scope, ...],
        doc("The scope of each entry, if further scopes were asked for; else empty."),
    ] = ()
    omitted: Annotated[int, doc("How many more memories the limits left out.")] = 0
    total: Annotated[
        int,
        doc("How many memories the scope holds, including superseded ones and those in no brief."),
    ] = 0
    made_at: Annotated[
        datetime | None, doc("The time the brief was made, which ages count from.")
    ] = None
    markdown: Annotated[
        str, doc("The entries as Markdown to put before a prompt, one line each; empty if none.")
    ] = ""

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class Reindexed(Result, frozen=True, kw_only=True):
    """Result of reindex: how many memories were indexed and embedded."""

    memories: Annotated[int, doc("How many memories are in the new index.")]
    embedded: Annotated[int, doc("How many of them were given a vector they did not have.")]


class Stopped(StrEnum):
    """Why an extraction ended early, while turns may still wait."""

    PAUSED = "paused"
    SPENT = "spent"
    """The scope has used up its tokens of this day."""
    UNAVAILABLE = "unavailable"
    """The model is unavailable."""


class Extraction(Result, frozen=True, kw_only=True):
    """Result of one extraction: what a language model found in turns, and its token cost."""

    turns: Annotated[int, doc("How many turns the model was asked about, and answered.")] = 0
    memories: ExtractedMemories = 0
    repeats: ExtractedRepeats = 0
    failed: Annotated[int, doc("How many turns the model gave no usable answer to.")] = 0
    tokens_in: TokensIn = 0
    tokens_out: TokensOut = 0
    left: Annotated[int, doc("Backlog: how many turns still wait, at most.")] = 0
    stopped: Annotated[
        Stopped | None,
        doc("Why it ended early: paused, tokens spent, or model unavailable; None if it did not."),
    ] = None


class ExtractionStatus(Result, frozen=True, kw_only=True):
    """Progress of extraction in a scope, and its token cost so far."""

    configured: Annotated[bool, doc("Whether a model is configured at all.")]
    paused: Annotated[bool, doc("Whether extraction is paused for this scope.")] = False
    waiting: Annotated[int, doc("Backlog: how many turns wait for the model.")] = 0
    done: Annotated[int, doc("How many turns the model has answered.")] = 0
    failed: Annotated[int, doc("How many turns were given up, after several attempts.")] = 0
    memories: ExtractedMemories = 0
    repeats: ExtractedRepeats = 0
    tokens_in: TokensIn = 0
    tokens_out: TokensOut = 0
    tokens_today: Annotated[int, doc("Tokens the scope has used today, input and output.")] = 0
    daily_tokens: Annotated[int, doc("Token budget of the scope per day; 0 for no limit.")] = 0


class ErasedCell(Result, frozen=True, kw_only=True):
    """An erased cell by its nonce: random bytes that name it and nothing else."""

    collection: Annotated[str, doc("The collection the cell was in, such as memory or turn.")]
    epoch: Annotated[int, doc("Epoch: the number of the key that sealed the cell.")]
    nonce: Annotated[
        str, doc("Nonce of the cell in hexadecimal: random bytes, found in its ciphertext.")
    ]


class MovedScope(Result, frozen=True):
    """One scope that was moved to another store, sealed as it is."""

    address: Annotated[str, doc("Opaque address of the scope.")]
    rows: Annotated[int, doc("Number of rows, erased ones included.")]
    audit: Annotated[int, doc("Number of audit events.")]
    digest: Annotated[str, doc("SHA-256 of everything sealed in it, equal in both stores.")]


class Migrated(Result, frozen=True):
    """Receipt of a migration: every scope that was moved, verified."""

    to: Annotated[str, doc("The store they are in now.")]
    scopes: Annotated[tuple[MovedScope, ...], doc("What was moved, scope by scope.")]


class BackupNote(Result, frozen=True, kw_only=True):
    """A backup that may hold erased rows until its key is deleted."""

    name: BackupName
    expires: BackupExpiry


class Erasure(Result, frozen=True, kw_only=True):
    """Receipt of an erasure: it proves the erasure and holds no content."""

    address: ScopeAddress
    verb: VerbName
    at: EventTime
    erased: Annotated[int, doc("How many rows were erased, derived ones included.")]
    derived: Annotated[
        int,
        doc("How many of the erased were not named: earlier versions, or derived from the named."),
    ] = 0
    already: Annotated[int, doc("How many of the named were erased before.")] = 0
    copies: Annotated[int, doc("How many copies were erased, or cut out of other texts.")] = 0
    again: Annotated[
        int,
        doc(
            "How many of the erased texts a model may derive again from their "
            "remaining sources; without one they stay erased."
        ),
    ] = 0
    cells: Annotated[tuple[ErasedCell, ...], doc("The erased cells, by their nonces.")] = ()
    rotated: Annotated[
        bool,
        doc("Whether the keys of the erased cells are deleted already; if not, a due job does it."),
    ] = False
    backups: Annotated[
        tuple[BackupNote, ...], doc("Backups that may hold the erased rows until they expire.")
    ] = ()
    generation: Annotated[
        int,
        doc(
            "Generation of the root key that wrapped the keys of the erased cells; "
            "once it is destroyed, no older copy of them can be decrypted."
        ),
    ] = 0
    noise_from: Annotated[
        date | None,
        doc(
            "Day from which no older copy can be decrypted: a service, or else the first "
            "write from then on, destroys that root key; null without a schedule."
        ),
    ] = None
    memories: Annotated[int, doc("Of a destroy: how many of the erased rows were memories.")] = 0
    blobs: Annotated[int, doc("Of a destroy: how many blobs were deleted.")] = 0
    audit_count: Annotated[int, doc("Length of the audit chain after the erasure.")] = 0
    audit_mac: Annotated[str, doc("MAC of the audit chain at that length, in hexadecimal.")] = ""


class Holdings(Result, frozen=True, kw_only=True):
    """How much a scope holds, and its state: nothing of its content."""

    memories: Annotated[int, doc("Rows of memories, superseded ones too.")]
    turns: Annotated[int, doc("Rows of turns.")]
    conversations: Annotated[int, doc("Rows of conversations and their entries.")]
    documents: Annotated[int, doc("Rows of documents.")]
    frozen: Annotated[Freeze, doc("The freeze level: none, writes or all.")]
    audit_events: Annotated[int, doc("Length of the audit chain.")]
    user_held: Annotated[bool, doc("Whether its user holds one half of its keys.")] = False
    locked: Annotated[bool, doc("Whether its user has to unlock it before it is read.")] = False
    waiting: Annotated[int, doc("How many writes wait in its inbox until it is unlocked.")] = 0


class DestroyToken(Result, frozen=True, kw_only=True):
    """What a destroy would erase, and the token that confirms it."""

    token: Annotated[str, doc("The confirmation token, bound to the scope and its audit head.")]
    expires_at: Annotated[datetime, doc("The time it expires, in UTC.")]
    rows: Annotated[int, doc("How many rows the destroy would erase.")]


class CopiedSentence(Result, frozen=True, kw_only=True):
    """A sentence of a turn, entry or document that says what is to be forgotten."""

    turn: Annotated[str, doc("The id of the turn, entry, conversation or document.")]
    text: Annotated[str, doc("The sentence in plain words, as it is compared.")]


class Preview(Result, frozen=True, kw_only=True):
    """Preview (dry run) of a forget: the memories it would erase, and the token to confirm it."""

    memories: Annotated[tuple[Memory, ...], doc("The memories that are named, oldest first.")]
    others: Annotated[
        tuple[Memory, ...],
        doc("The memories erased with them: earlier versions, and derived ones."),
    ]
    token: Annotated[str, doc("The confirmation token: forget with it erases exactly these.")]
    copies: Annotated[
        tuple[Memory, ...], doc("Other memories that say the same; erased only with `copies`.")
    ] = ()
    sentences: Annotated[
        tuple[CopiedSentence, ...],
        doc("The same sentence in turns, conversations and documents; cut out only with `copies`."),
    ] = ()
    turns: Annotated[int, doc("How many turns go along.")] = 0
    entries: Annotated[
        int, doc("How many entries of conversations, and conversations, go along.")
    ] = 0
    documents: Annotated[int, doc("How many documents go along.")] = 0
    cut: Annotated[
        tuple[str, ...],
        doc(
            "Paths of the documents that a text is cut out of: a piece of theirs, or a copy; "
            "what else they say stays."
        ),
    ] = ()
    near: Annotated[
        tuple[Memory, ...],
        doc("The nearest other memories: they may say it in other words, and stay."),
    ] = ()
    with_copies: Annotated[bool, doc("Whether copies are among what would be erased.")] = False
    asks: Annotated[
        bool,
        doc("Whether `copies` go only with the token: more than 100, or one is trusted more."),
    ] = False

    def __len__(self) -> int:
        return len(self.memories) + len(self.others)

    def __bool__(self) -> bool:
        return bool(len(self) or self.turns or self.entries or self.documents)

    def in_words(self) -> str:
        """What would be erased, in numbers, for the question to a person."""
        named = len(self.memories)
        beside = [("earlier or derived", len(self.others)), ("turns", self.turns)]
        beside += [("messages", self.entries)]
        beside += [("documents", self.documents), ("documents it is cut out of", len(self.cut))]
        if self.with_copies:
            beside += [("others that say it", len(self.copies))]
            beside += [("sentences that say it", len(self.sentences))]
        told = "; ".join(f"{name}: {number:,}" for name, number in beside if number)
        return f"{named:,} {'memory' if named == 1 else 'memories'}{f' ({told})' if told else ''}"


class Purged(Result, frozen=True, kw_only=True):
    """Result of purge: how many rows were removed, by reason."""

    expired: Annotated[int, doc("How many expired memories were erased.")] = 0
    superseded: Annotated[int, doc("How many long superseded memories were erased.")] = 0
    retired: Annotated[
        int, doc("How many memories past the number or age of their kind were erased.")
    ] = 0
    idle: Annotated[int, doc("How many memories were erased that were not recalled for long.")] = 0
    turns: Annotated[int, doc("How many turns past their limits were erased.")] = 0
    conversations: Annotated[int, doc("How many conversations past their limits were deleted.")] = 0
    dropped: Annotated[
        int, doc("How many tombstoned rows lost their remaining metadata; tombstones stay.")
    ] = 0
    backups: Annotated[int, doc("How many expired backups had their key deleted.")] = 0


class RootRotated(Result, frozen=True, kw_only=True):
    """Result of a rotation of the root key: every slot is wrapped by another generation of it."""

    generation: Annotated[int, doc("The generation of the root key that wraps now.")]
    rewrapped: Annotated[int, doc("How many slots were wrapped anew.")]
    unopened: Annotated[
        int, doc("How many slots did not open and never will: damaged, or half deleted.")
    ]
    noise_from: Annotated[
        date, doc("Day on which the old root key is destroyed: then no older copy opens.")
    ]
    recovery: Annotated[str | None, doc("The new recovery key of a passphrase; shown once.")] = None


class Rotated(Result, frozen=True, kw_only=True):
    """Result of rotate: every collection has a new key, and the old keys are deleted."""

    resealed: Annotated[int, doc("How many cells were sealed again under the new keys.")]
    epochs: Annotated[dict[str, int], doc("The new epoch (key number) of each collection.")]


class Loaded(Result, frozen=True, kw_only=True):
    """Result of a load or restore: how many memories were written, and how many were left out."""

    loaded: Annotated[int, doc("How many memories were written.")] = 0
    known: Annotated[int, doc("How many memories were there already.")] = 0
    forgotten: Annotated[
        int, doc("How many memories were left out because they were forgotten here.")
    ] = 0


class Exported(Result, frozen=True, kw_only=True):
    """An export: a scope as the bytes of a file."""

    content: Annotated[bytes, doc("The bytes of the file; empty if it was written elsewhere.")]
    memories: Annotated[int, doc("How many memories it holds.")]
    key: Annotated[str | None, doc("The key that opens a sealed export; None if it is plain.")] = (
        None
    )


class BackedUp(Result, frozen=True, kw_only=True):
    """The receipt of a backup. The key opens it anywhere and is shown only here."""

    name: BackupName
    memories: Annotated[int, doc("How many memories the backup holds.")]
    key: Annotated[str, doc("The key that opens the backup anywhere; shown only here.")]
    expires: BackupExpiry


class AuditEvent(Result, frozen=True, kw_only=True):
    """One event of the audit trail: actor, verb, time, and pseudonyms of the rows concerned."""

    count: Annotated[int, doc("Sequence number of the event in the audit chain, from 1.")]
    at: EventTime
    verb: VerbName
    actor: Annotated[str, doc("The actor: who carried out the verb.")]
    subjects: Annotated[
        tuple[str, ...],
        doc("Pseudonyms of the rows concerned, in hexadecimal; only the first ones of many."),
    ] = ()
    number: Annotated[
        int, doc("How many rows were concerned, or how many calls the event stands for.")
    ] = 0


class Report(Result, frozen=True, kw_only=True):
    """Result of verify; sound when there are no problems."""

    checked: Annotated[int, doc("How many rows and events were checked.")]
    problems: Annotated[
        tuple[str, ...], doc("Problems found, a sentence each; empty if all is sound.")
    ] = ()
    found: Annotated[
        tuple[str, ...],
        doc("Places where the bytes of an erased cell still are; no key opens them."),
    ] = ()
    seen: Annotated[
        tuple[str, ...],
        doc("Of an erasure: what was looked at, and what cannot be seen from here."),
    ] = ()

    sound: Annotated[bool, doc("Whether all is as promised: no problems.")] = True

    def __post_init__(self) -> None:
        force_setattr(self, "sound", not self.problems)


class FileInspection(Result, frozen=True, kw_only=True):
    """Contents of one file as seen without a key."""

    title: Annotated[str, doc("The type of the file, in words.")]
    facts: Annotated[
        tuple[tuple[str, str], ...],
        doc("Facts about the file as pairs of name and value, such as its size."),
    ] = ()
    columns: Annotated[tuple[str, ...], doc("Column names of the table.")] = ()
    rows: Annotated[
        tuple[tuple[str, ...], ...], doc("Rows of the table: a value for each column.")
    ] = ()
    omitted: Annotated[int, doc("How many rows there are beyond the ones shown.")] = 0
    words: Annotated[
        tuple[str, ...], doc("Readable text in its bytes beyond the names of tables and columns.")
    ] = ()
