"""Copies of a memory: the file of an export in its forms, sealed to its reader, and its import.

The JSON has the structure of the seed, and beside it every other collection; a field `more` of each
record has what is not told by the seed's fields, so that an import gives an equal state.
"""

from __future__ import annotations

import base64
import io
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial
from importlib import import_module
from itertools import chain
from tempfile import TemporaryFile
from typing import Any, Final

from msgspec import Struct

from scrubjay.model import cells, turns
from scrubjay.model.errors import InvalidRequest, ScrubjayError, WrongKey
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.records import EXPORT, EXPORT_VERSION, export_record
from scrubjay.model.scope import Scope
from scrubjay.ports import Progress, no_progress
from scrubjay.surfaces.personal.categories import (
    Category,
    ContentType,
    content_hash,
    kind_of,
    place_of,
)

VERSION: Final = "1.0"
AGE: Final = (b"age-encryption.org/", b"-----BEGIN AGE")
_LATER: Final = 2
_LATER_PARTS: Final = ("conversations", "entries", "documents")
"""Collections that an export has from that version of the engine's format on."""
MOST_WORK: Final = 21
"""Largest work factor (scrypt, log2 N) of a file that is opened: 2 GB, for seconds.

Sealing takes what lasts a second on its machine: 20 on the fast one that was tried.
"""
_HEAD_BYTES: Final = 64 * 1024
_PIECE: Final = 64 * 1024
PART: Final = 1024 * 1024
"""Bytes of a sealed file that are held at a time."""
_SAID: Final = ("content", "tags", "importance", "recorded_at")
"""Fields of a record that the seed's fields say."""


class CopyForm(StrEnum):
    """The forms of an export."""

    JSON = "json"
    MARKDOWN = "markdown"
    BUNDLE = "bundle"


class CopyChoice(Struct, frozen=True, kw_only=True):
    """What a person chooses of what is remembered."""

    categories: tuple[Category, ...] = ()
    include_metadata: bool = True
    inferred: bool = True

    def has(self, memory: Memory) -> bool:
        """Whether a memory is chosen; what was said word for word is no inference."""
        if self.categories and place_of(memory)[0] not in self.categories:
            return False
        return self.inferred or not memory.sources or memory.kind is Kind.EPISODE


class CopyOrder(Struct, frozen=True, kw_only=True):
    """What an export holds."""

    scope: Scope
    at: datetime
    choice: CopyChoice = CopyChoice()
    beside: Mapping[str, Any] = {}
    """What is told beside the memories: the audit trail, recipients, embedder."""
    progress: Progress = no_progress

    @property
    def whole(self) -> bool:
        """Whether it holds every collection, and not some categories."""
        return not self.choice.categories


# -- out -------------------------------------------------------------------------------------------


def json_pieces(content: Any, wanted: CopyOrder) -> Iterator[bytes]:
    """The memories by category, then the other collections; one record at a time is held."""
    chosen, number = _sorted(content.memories, wanted), 0
    total, before = sum(map(len, chosen.values())), b""
    head = {
        "export_version": VERSION,
        "user_id": wanted.scope.owner,
        "org_id": wanted.scope.tenant,
        "exported_at": wanted.at.isoformat(),
        "record_count": total,
        "complete": wanted.choice == CopyChoice(),
    }
    yield json.dumps(head, ensure_ascii=False)[:-1].encode() + b', "categories": {'
    for category, places in chosen.items():
        yield before + b'"%s": {"count": %d, "records": [' % (category.encode(), len(places))
        before, comma = b", ", b"\n"
        for at in places:
            yield comma + _dumped(_record(content.memories[at], wanted))
            comma, number = b",\n", number + 1
            wanted.progress(number, total)
        yield b"]}"
    yield b"}"
    later: dict[str, Iterable[Any]] = {}
    if wanted.whole:
        later = {"turns": map(turns.to_record, content.turns)}
        for name in _LATER_PARTS:
            later[name] = map(cells.to_record, getattr(content, name))
    for name, ones in later.items():
        yield b', "%s": [' % name.encode()
        comma = b"\n"
        for one in ones:
            yield comma + _dumped(one)
            comma = b",\n"
        yield b"]"
    for name, told in wanted.beside.items():
        yield b', "%s": ' % name.encode() + _dumped(told)
    yield b"}\n"


def _sorted(memories: Sequence[Memory], wanted: CopyOrder) -> dict[Category, array[int]]:
    """The places of the memories of each category, so that no memory is held for it."""
    found = {one: array("q") for one in wanted.choice.categories or Category}
    for at, memory in enumerate(memories):
        if wanted.choice.has(memory):
            found[place_of(memory)[0]].append(at)
    return found


def _record(memory: Memory, wanted: CopyOrder) -> dict[str, Any]:
    category, form = place_of(memory)
    where = memory.provenance
    told: dict[str, Any] = {
        "memory_id": memory.id,
        "category": category,
        "content_type": form,
        "content": memory.content,
        "session_id": where.session,
        "channel": where.channel,
        "topic_tags": list(memory.tags),
        "created_at": memory.recorded_at.isoformat(),
    }
    if not wanted.choice.include_metadata:
        return told
    more = {name: one for name, one in export_record(memory).items() if name not in _SAID}
    told |= {"content_hash": content_hash(memory.content), "importance_score": memory.importance}
    return told | {"source_msg_id": where.message_id, "more": more}


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def markdown_pieces(content: Any, wanted: CopyOrder) -> Iterator[bytes]:
    """The same for people to read: a heading for each category, a line for each memory."""
    yield f"# Memory of {wanted.scope}\n\nExported at {wanted.at.isoformat()}.\n".encode()
    for category, places in _sorted(content.memories, wanted).items():
        yield f"\n## {category.replace('_', ' ').capitalize()} ({len(places):,})\n\n".encode()
        for at in places:
            memory = content.memories[at]
            outdated = "" if memory.current else " (outdated)"
            day = f"{memory.said_at:%Y-%m-%d}"
            tags = f" [{', '.join(memory.tags)}]" if memory.tags else ""
            text = " ".join(memory.content.split())
            yield f"- {text}{tags} — {day}, {memory.origin}{outdated}, `{memory.id}`\n".encode()
    if not wanted.whole:
        return
    yield f"\n## Turns ({len(content.turns):,})\n".encode()
    for turn in content.turns:
        yield f"\n**User** ({turn.at:%Y-%m-%d %H:%M}): {turn.user}\n\n".encode()
        yield f"**Assistant**: {turn.assistant}\n".encode()
    for name in _LATER_PARTS:
        ones = getattr(content, name)
        yield f"\n## {name.capitalize()} ({len(ones):,})\n".encode()
        for one in ones:
            yield b"\n```json\n" + _dumped(cells.to_record(one)) + b"\n```\n"
    for name, told in wanted.beside.items():
        yield f"\n## {name.capitalize()}\n\n```json\n".encode() + _dumped(told) + b"\n```\n"


FORMS: Final[Mapping[CopyForm, Callable[[Any, CopyOrder], Iterator[bytes]]]] = {
    CopyForm.JSON: json_pieces,
    CopyForm.MARKDOWN: markdown_pieces,
}


def gathered(pieces: Iterable[bytes], least: int = _PIECE) -> Iterator[bytes]:
    """Short pieces as ones that are worth a write."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= least:
            yield bytes(held)
            held.clear()
    yield bytes(held)


# -- sealed to its reader ---------------------------------------------------------------------


def _age() -> Any:
    try:
        return import_module("pyrage")
    except ImportError as error:
        raise InvalidRequest(
            "Sealing a file to its reader is not installed.",
            hint="pip install 'scrubjay[personal]' brings it.",
        ) from error


def check_reader(recipient: str | None, passphrase: str | None) -> None:
    """InvalidRequest unless exactly one reader is named, and it is one."""
    _age()
    if (recipient is None) == (passphrase is None):
        raise InvalidRequest(
            "The file is sealed to one reader.",
            hint="Give a passphrase, or an age recipient such as age1….",
        )
    if recipient is not None:
        _recipient(recipient)


def _recipient(text: str) -> Any:
    age = _age()
    try:
        return age.x25519.Recipient.from_str(text)
    except age.RecipientError as error:
        raise InvalidRequest(
            "That is not an age recipient.", hint="It begins with age1; `age-keygen` makes one."
        ) from error


def sealed(
    pieces: Iterable[bytes], recipient: str | None, passphrase: str | None
) -> Iterator[bytes]:
    """A file in the format of age, which its reader alone opens, in pieces.

    One for a recipient is never held whole; pyrage seals to a passphrase only what it is given
    whole, beside the 1 GB or so by which a passphrase is made expensive to guess.
    """
    age, source = _age(), _Readable(pieces)
    if passphrase is not None:
        yield bytes(age.passphrase.encrypt(b"".join(pieces), passphrase))
        return
    with TemporaryFile() as to:
        try:
            age.encrypt_io(source, to, [_recipient(recipient or "")])
        except age.EncryptError as error:
            raise source.failure or error from error
        to.seek(0)
        yield from iter(partial(to.read, PART), b"")


class _Readable(io.RawIOBase):
    """Pieces as a file that is read once."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = b""
        self.failure: ScrubjayError | None = None
        """What went wrong while the pieces were made: age only says that something did."""

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, into: Any) -> int:
        """Read on; 0 at the end."""
        while not self._left:
            try:
                piece = next(self._pieces, None)
            except ScrubjayError as error:
                self.failure = error
                raise
            if piece is None:
                return 0
            self._left = piece
        taken = min(len(into), len(self._left))
        into[:taken], self._left = self._left[:taken], self._left[taken:]
        return taken


def opened(raw: bytes, passphrase: str | None, identity: str | None) -> bytes:
    """The content of a file that is sealed by age; any other as it is."""
    if not raw.startswith(AGE):
        return raw
    age = _age()
    _check_work(raw)
    try:
        if passphrase is not None:
            return bytes(age.passphrase.decrypt(raw, passphrase))
        if identity is not None:
            return bytes(age.decrypt(raw, [age.x25519.Identity.from_str(identity)]))
    except (age.DecryptError, age.IdentityError) as error:
        raise WrongKey("That does not open the file.") from error
    raise WrongKey("The file is sealed.", hint="Give its passphrase, or the age identity.")


def _check_work(raw: bytes) -> None:
    """InvalidRequest if opening the file takes more memory than a passphrase is worth.

    Its head says how much: a file of 200 bytes may ask for 16 GB.
    """
    head = raw[:_HEAD_BYTES]
    if head.startswith(AGE[1]):
        text = b"".join(head.partition(b"\n")[2].partition(b"-----")[0].split())
        try:
            head = base64.b64decode(text[: len(text) // 4 * 4])
        except ValueError:
            return  # it does not open at all
    for one in re.findall(rb"^-> scrypt(.*)$", head, re.MULTILINE):
        asked = re.fullmatch(rb" \S+ ([1-9]\d?)", one)
        if asked is None or int(asked[1]) > MOST_WORK:
            raise InvalidRequest(
                "The sealed file asks for too much work to be opened.",
                hint=f"Up to {MOST_WORK} is taken; open it with age first. Nothing was imported.",
            )


# -- in --------------------------------------------------------------------------------------------


def as_ours(raw: bytes, scope: Scope) -> bytes:
    """The file as an export of the engine; what is one already stays as it is."""
    if raw.lstrip()[:1] != b"{" or b'"scrubjay-bundle"' in raw[:1024].partition(b"\n")[0]:
        return raw
    try:
        told = json.loads(raw)
        if "export_version" not in told:
            return raw
        if told["export_version"] != VERSION:
            raise InvalidRequest("The file is of another version.", hint="Nothing was imported.")
        listed = (one["records"] for one in told["categories"].values())
        memories = [_read(one) for one in chain.from_iterable(listed)]
        later = {name: told[name] for name in _LATER_PARTS if told.get(name)}
        ours = {
            "format": EXPORT,
            "version": _LATER if later else EXPORT_VERSION,
            "scope": str(scope),
            "made_at": told.get("exported_at"),
            "count": len(memories),
            "memories": memories,
            "turns": told.get("turns", []),
        }
        return json.dumps(ours | later).encode()
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise InvalidRequest(
            "The file is no JSON, or lacks what an export has.", hint="Nothing was imported."
        ) from error


def _read(told: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a memory; without `more` it is what the seed's fields say."""
    record = {
        "id": told["memory_id"],
        "content": told["content"],
        "recorded_at": told["created_at"],
        "tags": told.get("topic_tags") or [],
    }
    if (importance := told.get("importance_score")) is not None:
        record["importance"] = importance
    if not record["tags"]:
        del record["tags"]
    if (more := told.get("more")) is not None:
        return {**more, **record}
    where = {"session": told.get("session_id"), "channel": told.get("channel")}
    record["provenance"] = {name: one for name, one in where.items() if one}
    kind = kind_of(Category(told["category"]), ContentType(told["content_type"]))
    return {**record, "kind": kind, "origin": "import", "number": 0, "version": 1}
