"""What a question is after: whose words, from when, and what kind of answer."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from scrubjay.engine.search.dates import Window, windows
from scrubjay.engine.search.rank_columns import NONE

_USERS = (
    "user human customer client me nutzer benutzer utilisateur usuario utente пользователь 用户"
    " ユーザー"
)
_ASSISTANTS = (
    "assistant ai agent bot model chatbot assistent asistente assistente ассистент помощник 助手"
    " アシスタント"
)
USER_NAMES = frozenset(_USERS.split())
ASSISTANT_NAMES = frozenset(_ASSISTANTS.split())
SHORTEST_NICKNAME = 3

_WORD = re.compile(r"[^\W_]+")
_HAN = re.compile("[\u3400-\u9fff]{3,4}")
_CASE_ENDING = re.compile("(?<=[а-я]{2})(?:[аоуыиеьюя]|ом|ем|ой|ей|ою|ею)$")
_TOLD = (
    r"(?:recommend|suggest|advis|propos|tell|told|said|say|mention|gave|give|provid|list|explain"
    r"|describ|show|help|creat|wrote|write|shar|made|make|generat|compar|outlin|use|offer|respond"
    r"|answer|refer|includ|highlight|point|walk|discuss|cover|come up)\w*"
)
_SECOND_PERSON = re.compile(
    rf"\b(?:did|have|had|were|was)\s+you\b|\byou\s+(?:just\s+|also\s+|had\s+|have\s+|previously\s+"
    rf"|earlier\s+|once\s+|'d\s+|'ve\s+)?(?:recommended|suggested|advised|proposed|told|said"
    rf"|mentioned|gave|provided|listed|explained|described|showed|helped|created|wrote|shared|made"
    rf"|generated|compared|outlined|used|offered|answered|referred|included|highlighted)\b"
    rf"|\byour\s+(?:previous|earlier|last|first|second)?\s*{_TOLD}"
    rf"|\b(?:hast|hattest)\s+du\b|\bas-tu\b|\btu\s+m'as\b|\bhai\s+(?:detto|consigliato)\b"
    rf"|\bты\s+(?:\w+\s+)?(?:сказал|совет|рекоменд|предл)\w*|你.{{0,4}}(?:推荐|建议|说|提|给|告诉|列)"
    rf"|あなた.{{0,6}}(?:勧め|提案|言)",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which)\s+(?:date|day|month|year|time|week|season)\b|\bhow\s+long\b"
    r"|\bhow\s+many\s+(?:days?|weeks?|months?|years?|hours?)\b|\bhow\s+old\b|\bhow\s+soon\b"
    r"|\bwann\b|\bwie\s+lange\b|\bquand\b|\bcuándo\b|\bquando\b|\bwanneer\b|\bnär\b|\bкогда\b"
    r"|\bво?\s+сколько\b|什么时候|何时|几[号点月]|哪[天年]|多久|いつ|何[日月年時曜]",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:can|could|would|will|please|help|show|give|suggest|recommend|explain|walk|how\s+(?:can|do"
    r"|should|would|could|might)\s+(?:i|we|you)|what\s+(?:should|can|would|could|are\s+some|is\s+the"
    r"\s+best)|which\s+\w+\s+(?:should|would)|where\s+(?:should|can|do\s+you)|do\s+you\s+have|any"
    r"|i'm|i\s+am|i\s+want|i\s+need|i'd|i've\s+been|if\s+i)\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\b(?:suggest|recommend|advice|advise|tips?|ideas?|options?|should\s+i|can\s+i|could\s+i|do\s+i"
    r"|how\s+to|help\s+me|do\s+you\s+think|walk\s+me|show\s+me"
    r"|kannst\s+du|könntest\s+du|soll(?:te)?\s+ich|hilf\s+mir|tipps?|посоветуй|порекомендуй|помоги"
    r"|подскажи)\b|帮我|应该怎么|有什么(?:建议|推荐)|能.{0,4}(?:推荐|建议)|おすすめ|べきですか|手伝って",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A question as the ranking sees it."""

    asked: frozenset[int] = frozenset()
    """Codes of the speakers whose words it is after: those it names, or by role, NONE included."""
    assistants: frozenset[int] = frozenset()
    """Codes of the speakers that are assistants, whose words are nobody's standing wishes."""
    windows: tuple[Window, ...] = ()
    asked_at: datetime | None = None
    when: bool = False
    advice: bool = False
    """Whether it asks for help to be given now, where standing wishes count."""


def parse(
    question: str,
    speakers: Mapping[int, str],
    *,
    asked_at: datetime | None = None,
    latest: datetime | None = None,
) -> ParsedQuery:
    """Read a question against a scope: its speakers by code, the time of its latest memory."""
    return ParsedQuery(
        asked=_named(question, speakers) or _by_role(question, speakers),
        assistants=_in_role(speakers, ASSISTANT_NAMES),
        windows=tuple(windows(question, asked_at, latest)),
        asked_at=asked_at,
        when=bool(_WHEN.search(question)),
        advice=asks_advice(question),
    )


def asks_advice(question: str) -> bool:
    """Whether the question wants something made or advised now, not something remembered."""
    return bool(_REQUEST.search(question.strip()) or _ADVICE.search(question))


def _named(question: str, speakers: Mapping[int, str]) -> frozenset[int]:
    """Speakers by any word of their name, in any case of it, or by a nickname that begins it.

    Where a word is written like a name ("Will" in "what will Will do"), only such words count,
    and a nickname must be: "the" is not Theo.
    """
    callings = _callings(tuple(speakers.items()))
    words = [(match.start(), match[0]) for match in _WORD.finditer(question)]
    proper = [form for at, word in words if at and word[0].isupper() for form in _forms(word)]
    found = _called(proper, callings.nicknames) | _called(proper, callings.names)
    found = found or _called([form for _, word in words for form in _forms(word)], callings.names)
    return found | {code for name, code in callings.caseless if name in question}


def _forms(word: str) -> tuple[str, ...]:
    """A name as it may stand in a sentence: Peters for Peter, Анны for Анна."""
    folded = word.casefold()
    bare = _CASE_ENDING.sub("", folded)
    return (
        folded,
        *([bare] if bare != folded else []),
        *([folded[:-1]] if folded[-1] == "s" else []),
    )


def _called(words: Iterable[str], callings: Mapping[str, frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*(callings.get(word, ()) for word in words))


@dataclass(frozen=True, slots=True)
class _Callings:
    """How the speakers of a scope may be called."""

    names: dict[str, frozenset[int]]
    nicknames: dict[str, frozenset[int]]
    caseless: tuple[tuple[str, int], ...]
    """Names in scripts without capitals, which may have no spaces around them either."""


@lru_cache(64)
def _callings(speakers: tuple[tuple[int, str], ...]) -> _Callings:
    names: dict[str, frozenset[int]] = {}
    nicknames: dict[str, frozenset[int]] = {}
    caseless = []
    for code, name in speakers:
        parts = {part.casefold() for part in _WORD.findall(name)}
        if parts & (USER_NAMES | ASSISTANT_NAMES):
            continue
        if name.upper() == name.lower() and len(name) > 1:
            caseless += [(calling, code) for calling in (name, *_given_names(name))]
        for part in parts | {_CASE_ENDING.sub("", part) for part in parts}:
            names[part] = names.get(part, frozenset()) | {code}
            # At least three letters and about half of the name.
            for end in range(max(SHORTEST_NICKNAME, len(part) // 2), len(part)):
                nicknames[part[:end]] = nicknames.get(part[:end], frozenset()) | {code}
    return _Callings(names, nicknames, tuple(caseless))


def _given_names(name: str) -> tuple[str, ...]:
    """What a full name in Han characters is shortened to: 小明 for 王小明, 田中 for 田中太郎."""
    if not _HAN.fullmatch(name):
        return ()
    return (name[1:],) if len(name) == 3 else (name[:2], name[2:])


def _by_role(question: str, speakers: Mapping[int, str]) -> frozenset[int]:
    """What-did-you questions are after the assistant's words, all others after the user's.

    What nobody in particular said, such as a bare fact, is kept for the user like their words.
    """
    if _SECOND_PERSON.search(question):
        return _in_role(speakers, ASSISTANT_NAMES)
    users = _in_role(speakers, USER_NAMES)
    return users | {NONE} if users else users


def _in_role(speakers: Mapping[int, str], names: frozenset[str]) -> frozenset[int]:
    return frozenset(code for code, name in speakers.items() if name.casefold() in names)
