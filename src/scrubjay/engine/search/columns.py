"""What an index keeps of every memory besides its words: one array for each property."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scrubjay.engine.search import arrays
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.origin import Origin

SIGNS_VERSION = 2
"""Stored with the columns: signs of another version must be read again."""

READ = 1000
"""Characters looked at; what a long text shows, it shows early."""
LONGEST_INSTRUCTION = 400

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")

_TIME_WORDS = """
    jan january feb february mar march apr april jun june jul july aug august sep sept september
    oct october nov november dec december
    monday tuesday wednesday thursday friday saturday sunday
    yesterday today tonight tomorrow ago since recently
    day days week weeks month months year years hour hours minute minutes
    januar februar märz april mai juni juli august september oktober november dezember
    montag dienstag mittwoch donnerstag freitag samstag sonntag uhr
    gestern vorgestern heute morgen letzte letzten letzter letztes woche wochen monat monate jahr
    jahre jahren
    hier aujourd demain semaine mois ayer hoy mañana semana mes año ieri oggi domani
    вчера сегодня завтра позавчера назад год года году лет
    январь января январе февраль февраля феврале март марта марте апрель апреля апреле май мая мае
    июнь июня июне июль июля июле август августа августе сентябрь сентября сентябре октябрь октября
    октябре ноябрь ноября ноябре декабрь декабря декабре
    понедельник вторник среду четверг пятницу субботу воскресенье
"""
_TIME_HINTS = "may weekend morning night summer fall winter spring"
_TIME_PHRASE = re.compile(
    r"\b(?:(?:in|last|this|next) may|may \d+|(?:this|next) (?:weekend|morning|summer|fall|winter"
    r"|spring)|last (?:night|weekend|summer|winter|fall|spring))\b"
)
_TIME_NUMBER = re.compile(
    r"\b(?:(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)|\d{1,2}/\d{1,2})\b|\d+[年月日号时時]"
)
_TIME_ELSEWHERE = re.compile(
    r"\b(?:недел|месяц)\w*|昨天|前天|今天|明天|上周|下周|上个月|去年|今年|明年|星期|周[一二三四五六日末]"
    r"|昨日|今日|明日|昨夜|先週|来週|今週|先月|来月|来年|曜日"
)

_INSTRUCTION_HINTS = (
    "always never now forward future remember please sure ever whenever when stop avoid every"
    " immer niemals ab toujours jamais siempre nunca sempre mai ahora"
)
_INSTRUCTION = re.compile(
    r"^\W*(?:always|never|from now on|going forward|in (?:the )?future|remember (?:to|that)"
    r"|please (?:always|never|remember|don't|do not|keep)|make sure (?:to|you|that you)"
    r"|(?:don't|do not) ever|whenever|when i ask|stop |avoid )"
    r"|\b(?:from now on|going forward|when(?:ever)? i (?:ask|want|say|mention)|every time i"
    r"|i (?:want|need|expect|would like|'d like) you to (?:always|never)"
    r"|you should (?:always|never)"
    r"|always (?:include|use|format|provide|mention|give|ask|show|answer|write|keep|explain|respond"
    r"|reply|call|highlight|start|end|address|remind))\b"
    r"|^\W*(?:immer|niemals|ab jetzt|ab sofort|toujours|jamais|désormais|siempre|nunca|sempre|mai"
    r"|всегда|никогда|впредь)\b|\b(?:ab jetzt|ab sofort|désormais|de ahora en adelante|отныне)\b"
    r"|^(?:请?总是|请?始终|请?记住|永远|以后|从现在起|每次|不要|别)|从现在起"
    r"|^(?:今後|これから|必ず|いつも|常に)"
)
_PREFERENCE_HINTS = (
    "prefer rather favor favour preference chosen chose bevorzuge lieber prefiero preferisco"
    " prefiro"
)
_PREFERENCE = re.compile(
    r"\b(?:i(?:'d| would| really| much| generally| usually| also)* (?:prefer|rather|favou?r)"
    r"|my preference|i(?:'ve| have) chosen|i chose"
    r"|ich bevorzuge|mir ist lieber|je préfère|prefiero|preferisco|prefiro|предпочитаю)\b"
    r"|我(?:更|比较)?(?:喜欢|偏好|倾向)|の方が好き"
)

_TIMES = frozenset(_TIME_WORDS.split())
_TIMELY = frozenset(_TIME_HINTS.split())
_INSTRUCTING = frozenset(_INSTRUCTION_HINTS.split())
_PREFERRING = frozenset(_PREFERENCE_HINTS.split())


@dataclass(frozen=True, slots=True)
class Signs:
    """What one text shows."""

    timed: bool
    asks: bool
    instructs: bool
    prefers: bool


def read(text: str) -> Signs:
    """The signs of a text."""
    seen = text[:READ].lower().replace("\u2019", "'")
    found = set(_WORD.findall(seen))
    plain = seen.isascii()
    return Signs(
        timed=_timed(seen, found, plain),
        asks=text.rstrip()[-1:] in {"?", "？"},
        instructs=len(text) <= LONGEST_INSTRUCTION
        and not (plain and found.isdisjoint(_INSTRUCTING))
        and bool(_INSTRUCTION.search(seen)),
        prefers=not (plain and found.isdisjoint(_PREFERRING)) and bool(_PREFERENCE.search(seen)),
    )


def _timed(seen: str, found: set[str], plain: bool) -> bool:
    return (
        not found.isdisjoint(_TIMES)
        or (not found.isdisjoint(_TIMELY) and bool(_TIME_PHRASE.search(seen)))
        or bool(_DIGIT.search(seen) and _TIME_NUMBER.search(seen))
        or (not plain and bool(_TIME_ELSEWHERE.search(seen)))
    )


NOTHING: Final = -1
"""The code of a name that a memory does not have, and the position of one without."""
KINDS: Final = tuple(Kind)
ORIGINS: Final = tuple(Origin)
_ID_BYTES: Final = 16
_INSTRUCTING_KINDS: Final = frozenset({Kind.INSTRUCTION, Kind.CORRECTION, Kind.PROCEDURE})
SIGNS: Final = tuple(field.name for field in fields(Signs))
_CODED: Final = ("session", "speaker", "language")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One memory as an index takes it in."""

    row_id: bytes
    seq: int
    memory: Memory
    vector: NDArray[np.float32] | None = None
    """The vector kept with the memory, where its embedder is too costly to ask again."""

    @property
    def new(self) -> bool:
        """Whether it was never written before: then no index holds an earlier state of it."""
        return self.seq == self.memory.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The properties of some memories; the i-th item of every array belongs to the i-th one.

    Times are seconds since 1970, infinite where there is none. `session`, `speaker`, `language`
    and `tags` are codes into `names`; the tags of row i are those between `tag_starts[i]` and
    `tag_starts[i + 1]`.
    """

    row_id: NDArray[np.uint8]
    born: NDArray[np.int64]
    session: NDArray[np.int32]
    speaker: NDArray[np.int32]
    language: NDArray[np.int32]
    position: NDArray[np.int32]
    said: NDArray[np.float64]
    recorded: NDArray[np.float64]
    retired: NDArray[np.float64]
    expires: NDArray[np.float64]
    kind: NDArray[np.uint8]
    origin: NDArray[np.uint8]
    importance: NDArray[np.float32]
    pinned: NDArray[np.bool_]
    approved: NDArray[np.bool_]
    length: NDArray[np.int32]
    signs: NDArray[np.uint8]
    """What the text shows: a bit for each of SIGNS."""
    tags: NDArray[np.int32]
    tag_starts: NDArray[np.int32]
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.born)

    def code(self, name: str) -> int:
        """The code of a name; NOTHING if no memory has it."""
        return self.names.index(name) if name in self.names else NOTHING

    def coded(self, codes: NDArray[np.int32]) -> dict[int, str]:
        """The names of the codes in one of the columns."""
        counts = np.bincount(codes[codes != NOTHING], minlength=1)
        return {int(code): self.names[code] for code in np.flatnonzero(counts)}

    def shows(self, sign: str) -> NDArray[np.bool_]:
        """Which memories show one of SIGNS."""
        return np.asarray((self.signs >> SIGNS.index(sign)) & 1, np.bool_)

    def places(self, row_id: bytes) -> NDArray[np.intp]:
        """The rows of one id."""
        first, second = np.frombuffer(row_id, np.uint64)
        halves = self.row_id.view(np.uint64)
        return np.flatnonzero((halves[:, 0] == first) & (halves[:, 1] == second))

    def tagged(self, tags: Iterable[str]) -> NDArray[np.bool_]:
        """Which memories have all of these tags."""
        mask = np.ones(len(self), np.bool_)
        owners = np.repeat(np.arange(len(self)), np.diff(self.tag_starts))
        for tag in tags:
            has = np.zeros(len(self), np.bool_)
            has[owners[self.tags == self.code(tag)]] = True
            mask &= has
        return mask


_ARRAYS: Final = tuple(field.name for field in fields(Columns) if field.name != "names")


def build(entries: Sequence[Entry], languages: Sequence[str]) -> Columns:
    """The columns of these memories, in their order, each with the language it is written in."""
    codes: dict[str, int] = {}
    memories = [entry.memory for entry in entries]
    ids = b"".join(entry.row_id for entry in entries)
    tags = [[_code(codes, tag) for tag in memory.tags] for memory in memories]
    session = [_code(codes, memory.provenance.session) for memory in memories]
    speaker = [_code(codes, memory.speaker) for memory in memories]
    return Columns(
        row_id=np.frombuffer(ids, np.uint8).reshape(-1, _ID_BYTES),
        born=np.array([memory.number for memory in memories], np.int64),
        session=np.array(session, np.int32),
        speaker=np.array(speaker, np.int32),
        language=np.array([_code(codes, language) for language in languages], np.int32),
        position=np.array([_position(memory) for memory in memories], np.int32),
        said=np.array([memory.said_at.timestamp() for memory in memories], np.float64),
        recorded=np.array([memory.recorded_at.timestamp() for memory in memories], np.float64),
        retired=np.array([_seconds(memory.retired_at) for memory in memories], np.float64),
        expires=np.array([_seconds(memory.expires_at) for memory in memories], np.float64),
        kind=np.array([KINDS.index(memory.kind) for memory in memories], np.uint8),
        origin=np.array([ORIGINS.index(memory.origin) for memory in memories], np.uint8),
        importance=np.array([memory.importance for memory in memories], np.float32),
        pinned=np.array([memory.pinned for memory in memories], np.bool_),
        approved=np.array([memory.approved is not None for memory in memories], np.bool_),
        length=np.array([len(memory.content) for memory in memories], np.int32),
        signs=np.array([_signs(memory) for memory in memories], np.uint8),
        tags=np.array([code for some in tags for code in some], np.int32),
        tag_starts=_starts([len(some) for some in tags]),
        names=tuple(codes),
    )


def _signs(memory: Memory) -> int:
    """What the text shows; its kind can say the same."""
    shown = read(memory.content)
    bits = {name: getattr(shown, name) for name in SIGNS}
    bits["instructs"] |= memory.kind in _INSTRUCTING_KINDS
    bits["prefers"] |= memory.kind is Kind.PREFERENCE
    return sum(1 << place for place, name in enumerate(SIGNS) if bits[name])


def _code(codes: dict[str, int], name: str | None) -> int:
    return NOTHING if name is None else codes.setdefault(name, len(codes))


def _position(memory: Memory) -> int:
    return NOTHING if memory.position is None else min(memory.position, 2**31 - 1)


def _seconds(time: datetime | None) -> float:
    return inf if time is None else time.timestamp()


def _starts(sizes: Sequence[int] | NDArray[np.int32]) -> NDArray[np.int32]:
    starts = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return starts


def join(parts: Sequence[Columns], keep: Sequence[NDArray[np.bool_]] | None = None) -> Columns:
    """The columns of several parts in order; rows outside `keep` are left out."""
    kept = [_picked(*pair) for pair in zip(parts, keep, strict=True)] if keep else parts
    if len(kept) == 1:
        return kept[0]
    codes = {name: code for code, name in enumerate(kept[0].names)}
    # The first part keeps its codes; those of the others are looked up.
    maps = [np.array([_code(codes, n) for n in p.names] + [NOTHING], np.int32) for p in kept[1:]]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in kept])
        for name in _ARRAYS
        if name not in {*_CODED, "tags", "tag_starts"}
    }
    for name in (*_CODED, "tags"):
        pieces = [m[getattr(p, name)] for m, p in zip(maps, kept[1:], strict=True)]
        joined[name] = np.concatenate([getattr(kept[0], name), *pieces])
    sizes = np.concatenate([np.diff(part.tag_starts) for part in kept])
    return Columns(**joined, tag_starts=_starts(sizes), names=tuple(codes))


def _picked(part: Columns, mask: NDArray[np.bool_]) -> Columns:
    return part if mask.all() else pick(part, mask)


def pick(part: Columns, mask: NDArray[np.bool_]) -> Columns:
    """The rows of one part that are in the mask; names nobody has any more are gone, too."""
    owners = np.repeat(np.arange(len(part)), np.diff(part.tag_starts))
    tags = part.tags[mask[owners]]
    sizes = np.diff(part.tag_starts)[mask]
    chosen = {
        name: getattr(part, name)[mask] for name in _ARRAYS if name not in {"tags", "tag_starts"}
    }
    used = np.unique(np.concatenate([*(chosen[name] for name in _CODED), tags]))
    used = used[used != NOTHING]
    fresh = np.full(len(part.names) + 1, NOTHING, np.int32)
    fresh[used] = np.arange(len(used), dtype=np.int32)
    for name in _CODED:
        chosen[name] = fresh[chosen[name]]
    names = tuple(part.names[code] for code in used)
    starts = _starts(sizes)
    return Columns(**chosen, tags=fresh[tags], tag_starts=starts, names=names)


def pack(columns: Columns) -> bytes:
    """The columns as bytes."""
    held = {name: getattr(columns, name) for name in _ARRAYS}
    return arrays.pack(held, note={"names": list(columns.names)})


def unpack(raw: bytes) -> Columns:
    """The columns that `pack` wrote; ValueError for anything else."""
    held, note = arrays.unpack(raw)
    return Columns(**held, names=tuple(note["names"]))
