"""Bundles: a scope as one portable file, sealed or as readable JSON.

Both carry the same records and read back without loss. A sealed bundle is a line of JSON that
names it, then a stream of cells under a key of its own; inside are JSON lines. The key is random,
or Argon2id derives it from a passphrase: then the line has the salt and the cost as well.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from scrubjay import vault
from scrubjay.engine.scope.counters_and_retention import Recalls
from scrubjay.model import cells, turns
from scrubjay.model.conversations import Conversation, Entry
from scrubjay.model.documents import Document
from scrubjay.model.errors import InvalidRequest, SealBroken, WrongKey
from scrubjay.model.memory import Json, Memory
from scrubjay.model.records import EXPORT, EXPORT_VERSION, export_record, from_record
from scrubjay.model.retention import Retention
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Turn
from scrubjay.vault import KEY_BYTES, SALT_BYTES, Cost, Purpose, Random, Sealer, stretch

BUNDLE: Final = "scrubjay-bundle"
VERSION: Final = EXPORT_VERSION
LATER: Final = 2
"""The version of a file with conversations or documents, which older code would leave out."""
KDF: Final = "argon2id"
_HEADER_LIMIT: Final = 1024


class SaltedCost(Cost, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Argon2id parameters in the header of a bundle that opens with a passphrase."""

    salt: str

    @property
    def affordable(self) -> bool:
        """Whether it takes at most four times our own memory and passes; a stranger chose them."""
        ours = vault.STRONG
        return self.memory_kib <= 4 * ours.memory_kib and self.passes <= 4 * ours.passes

    def key_from(self, passphrase: str) -> bytes:
        """Derive the key of the bundle from its passphrase."""
        return stretch(passphrase, bytes.fromhex(self.salt), self)


class Content(Struct, frozen=True, kw_only=True):
    """Content of a bundle. Only a backup has the fields after the documents."""

    scope: Scope
    made_at: str
    memories: Sequence[Memory]
    turns: Sequence[Turn] = ()
    conversations: Sequence[Conversation] = ()
    entries: Sequence[Entry] = ()
    documents: Sequence[Document] = ()
    lookup: bytes | None = None
    tombstones: tuple[bytes, ...] = ()
    audit: tuple[tuple[bytes, bytes], ...] = ()
    extraction: Mapping[str, Json] | None = None
    retention: Retention | None = None
    counters: Mapping[str, Recalls] = {}
    """How often memories were recalled, and when last, by their ids."""
    user: bytes | None = None
    """What wraps the user's half of the keys, of a user-held scope."""

    @property
    def version(self) -> int:
        """The version of the file that carries it."""
        return LATER if self.conversations or self.entries or self.documents else VERSION

    @property
    def later(self) -> dict[str, Iterable[Json]]:
        """The records that only a file of the later version has, by their names."""
        held = {
            "conversations": self.conversations,
            "entries": self.entries,
            "documents": self.documents,
        }
        return {name: map(cells.to_record, ones) for name, ones in held.items() if ones}


# -- readable JSON ------------------------------------------------------------------------


def to_json(content: Content) -> bytes:
    """The memories as one readable document."""
    return b"".join(json_pieces(content))


def json_pieces(content: Content) -> Iterator[bytes]:
    """The document in pieces, in whose making no more than one record is held."""
    head: dict[str, Json] = {
        "format": EXPORT,
        "version": content.version,
        "scope": str(content.scope),
        "made_at": content.made_at,
        "count": len(content.memories),
    }
    records: dict[str, Iterable[Json]] = {
        "memories": map(export_record, content.memories),
        "turns": map(turns.to_record, content.turns),
        **content.later,
    }
    return _gathered(_indented(head, records))


def _indented(head: Mapping[str, Json], records: Mapping[str, Iterable[Json]]) -> Iterator[str]:
    """The output of `json.dumps(…, indent=1)` for an object with lists, record by record."""
    write = partial(json.dumps, ensure_ascii=False, indent=1)
    yield write(head).removesuffix("\n}")
    for name, ones in records.items():
        yield f",\n {write(name)}: ["
        empty = True
        for one in ones:
            yield ("" if empty else ",") + "\n  " + write(one).replace("\n", "\n  ")
            empty = False
        yield "]" if empty else "\n ]"
    yield "\n}\n"


def _gathered(texts: Iterable[str]) -> Iterator[bytes]:
    """Short texts as pieces that are worth a write."""
    held, size = list[str](), 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= vault.CHUNK_BYTES:
            yield "".join(held).encode()
            held, size = [], 0
    yield "".join(held).encode()


def from_json(raw: bytes) -> Content:
    """The content of a document; InvalidRequest names the place that is damaged."""
    try:
        document = json.loads(raw)
    except json.JSONDecodeError as error:
        raise _damaged(f"line {error.lineno}, column {error.colno}", error.msg) from error
    except UnicodeDecodeError as error:
        raise _damaged(f"byte {error.start:,}", "it is not Unicode text") from error
    except (ValueError, RecursionError) as error:
        raise _damaged("the beginning", "it is not JSON text of ours") from error
    if not isinstance(document, dict) or document.get("format") != EXPORT:
        raise _damaged("format", f"it is not a {EXPORT}")
    _check_version(document)
    records = document.get("memories")
    if not isinstance(records, list) or document.get("count") != len(records):
        raise _damaged("memories", "their number is not the count given")
    memories = _read_memories("memories[{}]", records)
    said = document.get("turns", [])
    if not isinstance(said, list):
        raise _damaged("turns", "they are no list")
    return Content(
        scope=_scope(document),
        made_at=str(document.get("made_at")),
        memories=memories,
        turns=tuple(_read_all("turns[{}]", said, turns.from_record).values()),
        **_read_later({name: document.get(name, []) for name in _LATER}, "{}[{{}}]", 0),
    )


Held = TypeVar("Held", Memory, Turn, Conversation, Entry, Document)
_LATER: Final[Mapping[str, Any]] = {
    "conversations": Conversation,
    "entries": Entry,
    "documents": Document,
}


def _read_later(records: Mapping[str, Any], place: str, start: int) -> dict[str, Any]:
    """Conversations, entries and documents; an entry may not follow itself, however far back."""
    found = dict[str, Any]()
    for name, kind in _LATER.items():
        if not isinstance(records[name], list):
            raise _damaged(name, "they are no list")
        read = partial(cells.from_record, kind)
        found[name] = tuple(_read_all(place.format(name), records[name], read, start).values())
    parents, sound = {one.id: one.parent for one in found["entries"]}, set[str]()
    for number, entry in enumerate(found["entries"], start):
        line, at = set[str](), entry.id
        while at in parents and at not in sound:
            if at in line:
                raise _damaged(place.format("entries").format(number), "it follows itself")
            line.add(at)
            at = parents[at]
        sound |= line
    return found


def _read_all(
    place: str, records: Iterable[Json], read: Callable[[Json], Held], start: int = 0
) -> dict[str, Held]:
    """What the records describe, by its id; `place` and a number from `start` on name each."""
    found: dict[str, Held] = {}
    for at, record in enumerate(records, start):
        try:
            one = read(record)
        except InvalidRequest as error:
            raise _damaged(place.format(at), error.message) from error
        if one.id in found:
            raise _damaged(place.format(at), "its id stands there twice")
        found[one.id] = one
    return found


def _read_memories(place: str, records: Iterable[Json], start: int = 0) -> tuple[Memory, ...]:
    found = _read_all(place, records, from_record, start)
    for public_id, problem in _broken_links(found):
        raise _damaged(place.format(list(found).index(public_id) + start), problem)
    return tuple(sorted(found.values(), key=lambda memory: memory.number))


def _broken_links(memories: dict[str, Memory]) -> Iterator[tuple[str, str]]:
    """Faults of version chains: both sides of a link must agree, and no chain may be a circle."""
    for one in memories.values():
        after = memories.get(one.superseded_by or "")
        if after is not None and after.supersedes != one.id:
            yield one.id, "its successor does not name it"
        before = memories.get(one.supersedes or "")
        if before is not None and before.superseded_by != one.id:
            yield one.id, "the memory it supersedes does not name it"
    in_line: set[str] = set()
    for start in memories.values():
        link = None if start.supersedes in memories else start
        while link is not None:
            in_line.add(link.id)
            link = memories.get(link.superseded_by or "")
    for public_id in memories.keys() - in_line:
        yield public_id, "its versions form a circle"


def _check_version(document: dict[str, Any]) -> None:
    if document.get("version") not in (VERSION, LATER):
        raise InvalidRequest(
            "The file was made by another version of scrubjay.", hint="Upgrade scrubjay."
        )


def _scope(document: dict[str, Any]) -> Scope:
    try:
        return Scope.parse(document.get("scope", ""))
    except InvalidRequest as error:
        raise _damaged("scope", error.message) from error


def _damaged(place: str, what: str) -> InvalidRequest:
    return InvalidRequest(
        f"The file is damaged at {place}: {what.rstrip('.')}.",
        hint="Nothing was loaded. Use an undamaged copy.",
    )


# -- sealed ---------------------------------------------------------------------------------


def seal(content: Content, *, name: str, key: bytes, random: Random) -> bytes:
    """The content as a sealed bundle that opens only with `key`."""
    return b"".join(sealed_pieces(content, name=name, key=key, random=random))


def sealed_pieces(
    content: Content, *, name: str, key: bytes, random: Random, salted: SaltedCost | None = None
) -> Iterator[bytes]:
    """The sealed bundle in pieces; `salted` is how its key was derived."""
    derived = {} if salted is None else {KDF: msgspec.to_builtins(salted)}
    version = content.version
    header = json.dumps({"format": BUNDLE, "version": version, "name": name, **derived})
    sealer = Sealer(key, Purpose.BUNDLE, None, "bundle")
    yield header.encode() + b"\n"
    lines = (json.dumps(line, ensure_ascii=False) for line in _lines(content))
    body = _gathered(f"\n{line}" if number else line for number, line in enumerate(lines))
    yield from sealer.seal_pieces(body, row_id=name.encode(), version=version, random=random)


def _lines(content: Content) -> Iterator[Json]:
    yield {
        "type": "scope",
        "scope": str(content.scope),
        "made_at": content.made_at,
        "lookup": content.lookup.hex() if content.lookup else None,
    }
    for memory in content.memories:
        yield {"type": "memory", "memory": export_record(memory)}
    for turn in content.turns:
        yield {"type": "turn", "turn": turns.to_record(turn)}
    for kind, ones in content.later.items():
        for one in ones:
            yield {"type": kind, "record": one}
    for tombstone in content.tombstones:
        yield {"type": "tombstone", "id": tombstone.hex()}
    for cell, mac in content.audit:
        yield {"type": "audit", "cell": base64.b64encode(cell).decode(), "mac": mac.hex()}
    if content.extraction is not None:
        yield {"type": "extraction", "extraction": dict(content.extraction)}
    if content.retention is not None:
        yield {"type": "retention", "retention": msgspec.to_builtins(content.retention)}
    if content.user is not None:
        yield {"type": "user", "user": base64.b64encode(content.user).decode()}
    for id, recalls in content.counters.items():
        yield {"type": "counter", "id": id, "counter": msgspec.to_builtins(recalls)}
    yield {"type": "end", "memories": len(content.memories)}


def _header_of(raw: bytes) -> dict[str, Any]:
    """The header of a sealed bundle; empty if the file is no sealed bundle."""
    line = raw[:_HEADER_LIMIT].partition(b"\n")[0]
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(header, dict) or header.get("format") != BUNDLE:
        return {}
    _check_version(header)
    return header


def name_of(raw: bytes) -> str | None:
    """The name of a sealed bundle; None if the file is no sealed bundle."""
    name = _header_of(raw).get("name")
    return name if isinstance(name, str) else None


def has_passphrase(raw: bytes) -> bool:
    """Whether the file is a sealed bundle that opens with a passphrase."""
    return KDF in _header_of(raw)


def sealed_name(raw: bytes) -> str:
    """The name of a sealed bundle; InvalidRequest if the file is none."""
    name = name_of(raw)
    if name is None:
        raise _damaged("the beginning", f"it is not a {BUNDLE}")
    return name


def read(raw: bytes, key: str | None, passphrase: str | None) -> Content:
    """The content of a file, readable or sealed."""
    if name_of(raw) is None:
        return from_json(raw)
    return unseal(raw, secret_of(raw, key, passphrase))


def secret_of(raw: bytes, key: str | None = None, passphrase: str | None = None) -> bytes:
    """The key of a sealed bundle, from its printed form or its passphrase; WrongKey if neither.

    A client makes up a printed key and sends it as the passphrase, so either opens such a bundle.
    """
    if key is None and passphrase is None:
        raise WrongKey("The bundle is sealed and no key was given.")
    given = _header_of(raw).get(KDF)
    if given is None:
        if key is None:
            raise InvalidRequest("This bundle opens with its key, not with a passphrase.")
        return read_key(key)
    try:
        salted = msgspec.convert(given, SaltedCost)
        if len(bytes.fromhex(salted.salt)) != SALT_BYTES or not salted.affordable:
            raise ValueError(KDF)
    except ValueError as error:
        raise _damaged("the beginning", f"its {KDF} parameters are beyond the limits") from error
    if passphrase is None:
        passphrase = print_key(read_key(key or ""))
    return salted.key_from(passphrase)


def unseal(raw: bytes, key: bytes) -> Content:
    """The content of a sealed bundle; InvalidRequest names the place that is damaged."""
    name = sealed_name(raw)
    stream, version = raw.partition(b"\n")[2], _header_of(raw)["version"]
    sealer = Sealer(key, Purpose.BUNDLE, None, "bundle")
    chunks: list[bytes] = []
    try:
        for chunk in sealer.unseal_stream(stream, row_id=name.encode(), version=version):
            chunks.append(chunk)
    except SealBroken as error:
        if not chunks:
            raise WrongKey(
                "The bundle does not open: the key is another one, or its beginning is damaged."
            ) from error
        at = len(raw) - len(stream) + len(chunks) * (vault.CHUNK_BYTES + vault.OVERHEAD)
        raise _damaged(f"byte {at:,}", "a chunk was altered or is missing") from error
    try:
        return _parse([json.loads(line) for line in b"".join(chunks).split(b"\n")])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged("its content", "it is not what a bundle holds") from error


def _parse(lines: list[dict[str, Any]]) -> Content:
    first = lines[0]
    by_type: dict[str, list[dict[str, Any]]] = {}
    for line in lines[1:]:
        by_type.setdefault(line["type"], []).append(line)
    memories = (line["memory"] for line in by_type.get("memory", ()))
    said = (line["turn"] for line in by_type.get("turn", ()))
    set_once = by_type.get("retention", ())
    return Content(
        scope=_scope(first),
        made_at=first["made_at"],
        memories=_read_memories("memory {}", memories, start=1),
        turns=tuple(_read_all("turn {}", said, turns.from_record, start=1).values()),
        **_read_later(
            {name: [line["record"] for line in by_type.get(name, ())] for name in _LATER},
            "{} {{}}",
            1,
        ),
        lookup=bytes.fromhex(first["lookup"]) if first["lookup"] else None,
        tombstones=tuple(bytes.fromhex(line["id"]) for line in by_type.get("tombstone", [])),
        audit=tuple(
            (base64.b64decode(line["cell"]), bytes.fromhex(line["mac"]))
            for line in by_type.get("audit", [])
        ),
        extraction=next((dict(line["extraction"]) for line in by_type.get("extraction", ())), None),
        counters={
            line["id"]: msgspec.convert(line["counter"], Recalls)
            for line in by_type.get("counter", ())
        },
        retention=next((msgspec.convert(line["retention"], Retention) for line in set_once), None),
        user=next((base64.b64decode(line["user"]) for line in by_type.get("user", ())), None),
    )


# -- keys as text -----------------------------------------------------------------------------


def print_key(key: bytes) -> str:
    """A bundle key in its printed form."""
    text = base64.b32encode(key).decode().rstrip("=")
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))


def read_key(text: str) -> bytes:
    """Decode a printed bundle key; InvalidRequest if it is none."""
    letters = str(text).replace("-", "").replace(" ", "").upper()
    try:
        key = base64.b32decode(letters + "=" * (-len(letters) % 8))
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest("That is not a bundle key.") from error
    if len(key) != KEY_BYTES:
        raise InvalidRequest(
            "That bundle key is incomplete.", hint="It has 13 groups of letters and digits."
        )
    return key
