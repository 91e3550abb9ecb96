"""Redaction of secrets from a text before it is stored.

Rules are data (rules.toml). They are matched on a normalized view of the text, in which escapes,
entities and full-width letters are decoded, and on a second one in which percent-encoding is
decoded too and lines wrapped in the middle of a token are joined; what is found is mapped back and
cut out of the original. A `Set` of RE2 says in one pass which rules can match at all; only those
are run, and RE2 is linear whatever the text is. What is left is looked at again where something was
cut out, until nothing more is found; so a second run finds nothing, and a placeholder is never
taken for a secret.

Run it on cleaned text: a token with invisible characters in it is none any more.
"""

from __future__ import annotations

import itertools
import re
import string
import unicodedata
from base64 import b64decode
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from html import unescape
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import Struct

from scrubjay.guard import PLACEHOLDER
from scrubjay.model.clean import clean
from scrubjay.model.errors import InvalidRequest

_CARD_ISSUERS: Final = (
    # First digits from and to, and the lengths a number of that issuer has.
    (34, 34, {15}),
    (37, 37, {15}),
    (4, 4, {16, 19}),
    (51, 55, {16}),
    (2221, 2720, {16}),
    (6011, 6011, {16, 19}),
    (644, 649, {16, 19}),
    (65, 65, {16, 19}),
    (3528, 3589, {16, 19}),
    (300, 305, {14, 16}),
    (36, 36, {14}),
    (38, 39, {14, 16}),
    (62, 62, {16, 17, 18, 19}),
)
_IBAN_LENGTHS: Final = {
    length: frozenset(countries.split())
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
}
_LENGTH_BY_COUNTRY: Final = {
    country: length for length, countries in _IBAN_LENGTHS.items() for country in countries
}
_RUN: Final = re.compile(r"[A-Za-z0-9]+")
_SYMBOLS: Final = frozenset("!@#$%^&*~")
_END: Final = ".,:;!?"


def card(text: str) -> int:
    """A payment card: digits of an issuer in its length, and the check digit holds."""
    digits = [int(letter) for letter in text if letter.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    holds = (sum(doubled) + sum(digits[-1::-2])) % 10 == 0
    number = "".join(map(str, digits))
    is_issued = any(
        low <= int(number[: len(str(low))]) <= high and len(number) in lengths
        for low, high, lengths in _CARD_ISSUERS
    )
    return len(text) if holds and is_issued else 0


def iban(text: str) -> int:
    """A bank account in the length of its country, and the check digits hold; the rest is cut."""
    places = [at for at, letter in enumerate(text) if letter.isalnum()]
    length = _LENGTH_BY_COUNTRY.get(text[:2], 0)
    if not length or len(places) < length:
        return 0
    end = places[length - 1] + 1
    if text[end : end + 1].isalnum():
        return 0
    compact = "".join(text[at] for at in places[:length])
    number = "".join(str(int(letter, 36)) for letter in compact[4:] + compact[:4])
    return end if int(number) % 97 == 1 else 0


def mixed(text: str) -> int:
    """Letters and digits together, as chance makes them and names seldom are."""
    return len(text) if any(map(str.isdigit, text)) and any(map(str.isalpha, text)) else 0


def three_kinds(text: str) -> int:
    """Small letters, capitals and digits together: not the hash it could be mistaken for."""
    kinds = (str.islower, str.isupper, str.isdigit)
    return len(text) if all(any(map(kind, text)) for kind in kinds) else 0


def opaque(text: str) -> int:
    """A token: a long stretch of letters and digits mixed, which words and paths have not."""
    runs = [run for run in _RUN.findall(text) if mixed(run)]
    is_random = any(
        (len(run) >= 10 and sum(map(str.isdigit, run)) > 1) or (len(run) >= 12 and three_kinds(run))
        for run in runs
    )
    return len(text) if is_random or (len(text) >= 20 and len(runs) >= 3) else 0


def chosen(text: str) -> int:
    """A password: digits alone, or letters with digits or symbols among them, and no sentence."""
    core = text.strip(_END)
    if len(core) < 4 or " " in core:
        return 0
    if core.isdigit():
        return len(text)
    letters = any(map(str.isalpha, core))
    digits = any(map(str.isdigit, core))
    symbols = not _SYMBOLS.isdisjoint(core[1:-1])
    return len(text) if letters and len(core) >= 6 and (digits or symbols) else 0


def codes(text: str) -> int:
    """Codes on lines of their own, up to the last that has a digit; three of them at least."""
    lines = [line for line in re.finditer(r"[^\n]+", text) if any(map(str.isdigit, line[0]))]
    return lines[-1].end() if len(lines) > 2 else 0


def encoded(text: str) -> int:
    """A name and a password in Base64, with a colon or a NUL between them."""
    try:
        plain = b64decode(text + "=" * (-len(text) % 4), b"-_" if set("-_") & set(text) else None)
        name, _, password = plain.lstrip(b"\0").replace(b"\0", b":").decode().partition(":")
    except ValueError:
        return 0
    return len(text) if name.isprintable() and len(password) > 2 and password.isprintable() else 0


def strong(text: str) -> int:
    """A password of letters, digits and a symbol, which no name of a product is."""
    core = text.rstrip(".,:;?")
    kinds = (any(map(str.isalpha, core)), any(map(str.isdigit, core)), _SYMBOLS & set(core))
    return len(text) if len(core) >= 8 and all(kinds) else 0


def words(text: str) -> int:
    """Recovery words: hardly one of them twice, which a sentence of that length cannot avoid.

    They end with the line that makes their number whole; what follows may be another sentence. A
    long list with one word in each line is something else.
    """
    if text.count("\n") > 2:
        return 0
    for end in (*(at.start() for at in re.finditer("\n", text)), len(text)):
        spoken = text[:end].lower().replace(",", " ").split()
        if end == len(text) or len(spoken) in {12, 15, 18, 21, 24}:
            return end if len(set(spoken)) >= len(spoken) - 1 else 0
    return 0


def entropy(text: str) -> float:
    """Bits per character, by how often each of its characters occurs."""
    repeated = sum(n * log2(n) for n in Counter(text).values() if n > 1)
    return log2(len(text)) - repeated / len(text) if text else 0.0


CHECKS: Final[Mapping[str, Callable[[str], int]]] = {
    "card": card,
    "iban": iban,
    "mixed": mixed,
    "three_kinds": three_kinds,
    "opaque": opaque,
    "chosen": chosen,
    "codes": codes,
    "encoded": encoded,
    "strong": strong,
    "words": words,
}
"""By the name a rule calls them."""


if TYPE_CHECKING:
    import re2

WINDOW: Final = 16 * 1024
OVERLAP: Final = 4 * 1024
"""By how much windows overlap: more than the longest match of a rule that is not `whole`."""
_ANY_TEXT: Final = "surrogatepass"
"""Text that was not cleaned may hold half a surrogate pair; redacting it must not fail."""

# How a character may be written otherwise. Every branch looks back at the first character, as that
# lets `re` skip to the next of them; and no repeat gives anything back, so that time is linear.
_NOTATIONS: Final = rb"""
    (?<=\\) \\*+ (?:
      (?P<color> (?:x1[bB]|033|e|u001[bB]) \[[0-9;?]{0,32}+[A-Za-z] )
    | u(?P<unicode>[0-9a-fA-F]{4}) | x(?P<byte>[0-9a-fA-F]{2}) | (?P<mark>["'/&<=>])
    # A backslash may also stand before a token whose first letter would pass for an escape.
    | (?P<break>n(?!pm_|tn_|vapi-|f[pcoub]_)|r(?!8_|k_|ubygems_)) | (?P<tab>t(?!gp_|vly-)) )
  | (?<=\x1b) (?P<sequence> \[[0-9;?]{0,32}+[A-Za-z] ) | (?<=\[) (?P<rest> [0-9;]{1,12}+m )
  | (?<=&) (?P<entity>quot|apos|amp|lt|gt|equals|colon|\#[0-9]{2,3}|\#x[0-9a-fA-F]{2});
  | (?P<wide> (?<=\xef)(?:\xbc[\x81-\xbf]|\xbd[\x80-\x9e]) | (?<=\xe3)\x80\x80
    | (?<=\xf0)\x9d[\x90-\x9f][\x80-\xbf] )
"""
# In a password `%` may mean itself, and a line may simply end; so these are decoded in a view of
# their own. A line is taken for a wrapped one where the next begins with the rest of a token.
_GUESSES: Final = rb"""
    (?<=%) (?:25)*+(?P<percent>0[9aAdD]|[2-7][0-9a-fA-F])
  | (?P<wrap> (?:(?<=[A-Za-z0-9+/=_~.-]\n)|(?<=[A-Za-z0-9+/=_~.-][\\\r])\n) [ \t]{0,16}+
      (?=[A-Za-z+/_~.-]*+[0-9] | [A-Za-z+/_~.-]*?[a-z][A-Z])
      (?![0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}\b | [0-9]{1,2}:[0-9]{2}\b)
      (?=[A-Za-z0-9+/_~.-]++={0,2}+(?:["'`)\],;<&@!\#%\x80-\xff] | [ \t]*+(?:\n|\Z))
       | (?=[^ \n]*[0-9])(?=[^ \n]*[a-z])(?=[^ \n]*[A-Z])[A-Za-z0-9+/_~.-]{8,}+={0,2}+[ ]) )
"""
_DECODED: Final = re.compile(rb"[\\&\x1b\[\xe3\xef\xf0](?:" + _NOTATIONS + rb")", re.VERBOSE)
_GUESSED: Final = re.compile(
    rb"[\\&\x1b\[\xe3\xef\xf0%\r\n](?:" + _NOTATIONS + b"|" + _GUESSES + rb")", re.VERBOSE
)
_LEFT_EDGE, _RIGHT_EDGE = r"(?:^|[^0-9A-Za-z])", r"(?:$|[^0-9A-Za-z])"
"""Neither letter nor digit: asked of RE2 where it can be, else by `_within`."""
_MEANINGS: Final = {
    "break": b"\n",
    "tab": b"\t",
    **dict.fromkeys(("color", "sequence", "rest", "wrap"), b""),
}
_MEANT: Final = dict[bytes, bytes]()
# What the prefilter says beside the rules, in the same pass: there may be notations, percent
# signs that encode, wrapped lines, and notations that stand in the middle of a keyword.
_NOTED: Final = (
    r"""\\[uxnrt"'/&<=>0e]|&[a-z#][a-zA-Z0-9]{1,5};|\x1b\[|\[[0-9;]{1,12}m"""
    r"|[\x{ff01}-\x{ff5e}\x{3000}\x{1d400}-\x{1d7ff}]"
)
_PERCENT: Final = (  # a space only where it stands before what may be a secret
    r"%(?:25)*(?:0[9aAdD]|2[1-9a-fA-F]|[3-7][0-9a-fA-F]|20[^\s%&=]{14}|20[^\s%&=]*[0-9!@#$^*~])"
)
_THREE_KINDS: Final = "|".join(  # a digit, a small letter and a capital, in any order
    "".join(rf"[A-Za-z0-9+/_~.-]*{kind}" for kind in order)
    for order in itertools.permutations(("[0-9]", "[a-z]", "[A-Z]"))
)
_WRAPPED: Final = (
    r"[A-Za-z0-9+/=_~.-][\\\r]?\n[ \t]{0,16}"
    r"(?:[A-Za-z+/_~.-]*(?:[0-9]|[a-z][A-Z])[A-Za-z0-9+/_~.-]*={0,2}"
    r"""(?:["'`)\],;<&@!#%]|[^\x00-\x7f]|[ \t]*(?:\n|$))"""
    rf"|(?:{_THREE_KINDS})[A-Za-z0-9+/_~.-]*={{0,2}} )"
)
_HIDING: Final = (
    r"\\u[0-9a-fA-F]{4}|\\x[2-7]|\\[nrt][0-9]{4}|\x1b\[|\[[0-9;]{1,12}m"
    r"|%(?:25)*(?:2[dDeEfF]|3[0-9aAdD]|[4-7][0-9a-fA-F])"
    r"|[\x{ff10}-\x{ff19}\x{ff21}-\x{ff3a}\x{ff3f}\x{ff41}-\x{ff5a}\x{1d400}-\x{1d7ff}]"
)
_HINTS: Final = (_NOTED, _PERCENT, _WRAPPED, _HIDING)
_LONG_REPEAT: Final = re.compile(r"\{(\d+),\d{2,}\}")
"""A repeat with a high limit: an automaton is smaller without the limit, and finds no less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of secret, as rules.toml describes it."""

    id: str
    description: str
    regex: str
    edges: Literal["left", "both", "none"] = "left"
    keywords: tuple[str, ...] = ()
    hint: str = ""
    """What the prefilter looks for where keywords alone would be in too many texts."""
    precise: bool = False
    """Whether the prefilter has the expression too, because its keywords are everyday words."""
    alone: bool = False
    """Whether the prefilter has an automaton for it alone: its states multiply with the others'."""
    entropy: float = 0.0
    check: str | None = None
    allowed: str = ""
    """What is no secret although it has the form of one."""
    whole: bool = False
    wraps: bool = True
    parts: Literal["", "cells", "tokens"] = ""
    examples: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()


class Redacted(Struct, frozen=True):
    """A text without its secrets, and how many of which kind it had."""

    text: str
    found: Mapping[str, int]
    """Rule ids and counts; empty when nothing was found."""


class _Span(NamedTuple):
    start: int
    end: int
    rule: int


class _View:
    """A text with its notations decoded, and where each part of it stands in the original."""

    def __init__(self, body: bytes, notations: re.Pattern[bytes] | None = None) -> None:
        self.text, self.body, self._notations = body, body, notations
        if notations:
            # Split and joined without a call for each notation, if all of them were seen before.
            parts = _splitter(notations).split(body)
            meant = [_MEANT.get(part) for part in parts[1::2]]
            if None in meant:
                self.text = notations.sub(_meaning, body)
            elif meant:
                parts[1::2] = meant
                self.text = b"".join(parts)

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Twice the end of what was decoded, one less if it left a rest, and the shift from it."""
        edges, shifts, shift = [], [0], 0
        for written in self._notations.finditer(self.body) if self._notations else ():
            meant, (start, end) = _meaning(written), written.span()
            edges.append(2 * (start - shift + len(meant)) - bool(meant))
            shift += end - start - len(meant)
            shifts.append(shift)
        return edges, shifts

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original; what was decoded to nothing counts only inside of it."""
        edges, shifts = self._places
        first, last = bisect_right(edges, 2 * start), bisect_right(edges, 2 * end - 1)
        return start + shifts[first], end + shifts[last]


def redact(text: str, placeholder: str = PLACEHOLDER) -> Redacted:
    """The text with every secret replaced; idempotent, and linear in the length of the text."""
    if not placeholder:
        raise InvalidRequest("The placeholder is empty.", hint=f"For example {PLACEHOLDER}.")
    body, mark = text.encode("utf-8", _ANY_TEXT), placeholder.encode("utf-8", _ANY_TEXT)
    is_one = len(body) <= WINDOW and mark not in body
    scanned = _prefilter().candidates(body) if is_one else None
    if scanned == []:
        return Redacted(text, {})  # most texts need no other scan
    counts: Counter[str] = Counter()
    pieces: list[bytes] = []
    for piece in body.split(mark):
        spans = _search(piece, scanned)
        counts.update(rules()[span.rule].id for span in spans)
        starts = [0, *(span.end for span in spans)]
        ends = [*(span.start for span in spans), len(piece)]
        pieces += (piece[start:end] for start, end in zip(starts, ends, strict=True))
    if not counts:
        return Redacted(text, {})
    return Redacted(mark.join(pieces).decode("utf-8", _ANY_TEXT), dict(counts))


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they name what is found."""
    import tomllib

    tables = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
    known = []
    for table in tables["rules"]:
        masks = [] if table.get("whole") else tables["allowlist"]["regexes"]
        known_as_none = (*masks, *table.pop("allowlist", {}).get("regexes", ()))
        allowed = "|".join(f"(?:{regex})" for regex in known_as_none)  # each with flags of its own
        lists = {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
        regex = table["regex"].replace(r"\<", r"(?:\b|_)")
        edges = table.get("edges", "left")
        if edges != "none" and "(" not in regex.replace("(?", "").replace(r"\(", ""):
            regex = f"{_LEFT_EDGE}({regex})" + (_RIGHT_EDGE if edges == "both" else "")
        known.append(Rule(**{**table, **lists, "regex": regex, "allowed": allowed}))
    return tuple(known)


def _search(body: bytes, scanned: list[int] | None = None) -> list[_Span]:
    """All secrets of a text, in order, without overlaps; `scanned` are its candidates, if known.

    What was cut out gives its neighbors a new edge, and there may be a secret that begins or ends
    at it; so the ends of each gap are searched again, as if the gap were all there is.
    """
    windows = None if scanned is None else [(0, len(body), scanned)]
    found = _disjoint(_matches(body, windows))
    gaps = _gaps(0, len(body), found)
    while gaps:
        start, end = gaps.pop()
        # From and to, and where in between a secret may begin; the rest is there to be looked at.
        ends = [(start, end, start, end)]
        if end - start > 2 * OVERLAP:
            head, tail = start + OVERLAP // 2, end - OVERLAP // 2
            ends = [(start, start + OVERLAP, start, head)] if start else []
            ends += [(end - OVERLAP, end, tail, end)] if end < len(body) else []
        fresh = _disjoint(
            _Span(at + span.start, at + span.end, span.rule)
            for at, to, low, high in ends
            for span in _matches(body[at:to])
            if low <= at + span.start < high and (at + span.end < to or to == end)
        )
        found += fresh
        gaps += _gaps(start, end, fresh)
    return sorted(found)


def _gaps(start: int, end: int, spans: list[_Span]) -> list[tuple[int, int]]:
    """The text between the spans; empty if there are none."""
    if not spans:
        return []
    edges = [start, *(edge for span in spans for edge in span[:2]), end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


_Windows = list[tuple[int, int, list[int]]]


def _matches(body: bytes, windows: _Windows | None = None) -> Iterator[_Span]:
    """What the rules find in each view, by its place in the original."""
    windows = windows or _candidates(body)
    seen = {candidate for _, _, candidates in windows for candidate in candidates}
    first = len(rules())
    noted, percent, wrapped, hiding = (first + hint in seen for hint in range(len(_HINTS)))
    if not (hiding or wrapped or min(seen, default=first) < first):
        return
    view = _View(body, _DECODED if noted else None)
    yield from _found(view, windows if view.text == body else _candidates(view.text))
    if percent or wrapped:
        guessed = _View(body, _GUESSED)
        if guessed.text != view.text:
            yield from _found(guessed, _candidates(guessed.text))


def _candidates(text: bytes) -> _Windows:
    """Windows over a text, and which rules each of them may have a match of."""
    size, rules_of = len(text), _prefilter().candidates
    starts = range(0, max(size - OVERLAP, 1), WINDOW - OVERLAP)
    ends = [min(start + WINDOW, size) for start in starts]
    return [(at, to, rules_of(text[at:to])) for at, to in zip(starts, ends, strict=True)]


def _found(view: _View, windows: _Windows) -> Iterator[_Span]:
    known, wholes = rules(), set[int]()
    for start, end, candidates in windows:
        certain = {_precise()[at] for at in candidates if at in _precise()}
        for rule in candidates:
            if rule >= len(known) or (known[rule].precise and rule not in certain):
                continue
            if known[rule].whole:
                wholes.add(rule)
            else:
                yield from _within(view, rule, start, end)
    for rule in sorted(wholes):
        yield from _within(view, rule, 0, len(view.text))


def _within(view: _View, rule: int, start: int, end: int) -> Iterator[_Span]:
    """What one rule finds in one window of a view.

    A match that the window's end may have cut short is left to the next window, which has it whole.
    A match that is the secret stands alone: neither letter nor digit touches the edges its rule
    names.
    """
    kind, text, at = rules()[rule], view.text, start
    pattern = _compiled(kind.regex)
    for low, high in _PARTS[kind.parts](pattern, text) if kind.parts else ():
        if _judged(kind, text[low:high]):
            yield _Span(*view.original(low, high), rule)
    while not kind.parts and at < end and (match := pattern.search(text, at, end)):
        group = match.lastindex or 0
        first, last = match.span(group)
        touches = not group and (
            (kind.edges != "none" and text[first - 1 : first].isalnum())
            or (kind.edges == "both" and text[last : last + 1].isalnum())
        )
        last = first if touches else first + _judged(kind, text[first:last])
        at = last if last > first else match.start() + 1
        is_cut = match.end() == end < len(text) and match.start() > end - OVERLAP
        if last > first and not is_cut:
            place = view.original(first, last)
            if kind.wraps or b"\n" not in view.body[slice(*place)]:
                yield _Span(*place, rule)


_FIELDS: Final[Mapping[bytes, re.Pattern[bytes]]] = {
    **{
        mark: re.compile(rb'((?:"[^"]*"|[^%b])*)(?:%b|$)' % (2 * (re.escape(mark),)))
        for mark in (b"|", b"\t", b",", b";")
    },
    b"  ": re.compile(rb"(\S+(?: \S+)*)"),
    b" ": re.compile(rb"(\S+)"),
}
"""How a line falls into fields, by what separates them; the first separator of the head counts."""
_NAME: Final = (
    r"(?:[\w .-]{0,40}[_ .-])?(?:password|passwd|pwd|passwort|passphrase|passcode|secret|token"
    r"|api[_ -]?key|access[_ -]?key|secret[_ -]?key|credential|pin|authentication_string)"
)
_SECRET_FIELD: Final = re.compile(rf"(?i)[\s\"']*{_NAME}[\s\"']*".encode())
_HEAD: Final = (
    rf"""(?im)^(?:[^\n]*(?:[|,;\t]|  ))?[ "']*{_NAME}[ "']*(?:(?:[|,;\t]|  )[^\n]*|\r?$)"""
    rf"|^(?:\w+ )*{_NAME}(?: \w+)*\r?$"
)
"""A line that may be the head of a table: a field of it is the name of a secret."""


_TOKEN: Final = re.compile(rb"""[^\x00-\x20"'`<>()\[\]{},;|\x7f-\xff]{8,}""")
_SIGN: Final = r"""[^\s"'`<>()\[\]{},;|"""
_LIKELY: Final = "|".join(
    rf"{_SIGN}]{{{before}}}[0-9]{_SIGN}]{{{7 - before}}}" for before in range(8)
)
"""Eight characters of a token, one of them a digit."""
_BELOW: Final = rf"\n{{1,2}}[ \t]{{0,16}}(?:{_LIKELY})"
_LONGEST_MARGIN: Final = 18
"""From the end of a line to where a token of `_BELOW` begins, at most."""
_PUBLIC: Final = re.compile(rb"(?i)public|certificate|fingerprint|checksum|integrity")
_NO_CHANCE: Final = re.compile(
    rb"(?i)(?:0x)?[0-9a-f.:_-]*|[~./$%\\@#&*!?-].*"
    rb"|.*(?:\.\w{1,5}$|@[a-z0-9-]+\.[a-z]|\*{3}|%20).*"
    rb"|\d{4}-\d\d.*|\w{3,5}-[0-9].*|[a-z]+(?:[-_./][a-z]+)*[-_.]?\d{0,4}"
)
_SIGNS: Final = bytes(sign for sign in range(256) if not chr(sign).isalnum() or sign > 126)
_KINDS: Final = bytes.maketrans(
    (string.digits + string.ascii_letters).encode(), b"0" * 10 + b"a" * 26 + b"A" * 26
)


def _by_chance(token: bytes) -> bool:
    """Whether letters, digits and symbols follow each other as chance has them, and no name."""
    if _NO_CHANCE.fullmatch(token):
        return False
    if b"/" not in token and strong(token.decode("latin-1")):
        return True
    kinds = token.translate(_KINDS, _SIGNS)
    changes = sum(map(int.__ne__, kinds, kinds[1:]))
    enough = len(kinds) >= 10 and kinds.count(b"0") > 1 and len(set(kinds)) == 3
    return enough and changes >= 0.35 * len(kinds)


def _tokens(name: re2._Regexp, text: bytes) -> Iterator[tuple[int, int]]:
    """The places of the tokens of chance in lines that name a secret.

    Or in the line below, if that begins with one and nothing stands behind the last name.
    """
    to_last = _compiled(rf"[^\n]*(?:{name.pattern})")
    last_name = _compiled(rf"[^\n]*({name.pattern})")  # slower, as it has a group
    likely, below, at = _compiled(_LIKELY), _compiled(_BELOW), 0
    near = likely.search(text)
    while near and (named := name.search(text, at)):
        start = text.rfind(b"\n", 0, named.start()) + 1
        end = _line_end(text, named.end())
        if near.start() < start:
            near = likely.search(text, start)
        elif near.start() > end + _LONGEST_MARGIN:  # most names have no token near them
            at = max(named.start() + 1, _line_end(text, named.start()))
        else:
            behind = (to_last.match(text, start) or named).end()
            end = _line_end(text, behind)
            follows, beside = None, likely.search(text, behind, end)
            if not beside:
                follows = below.match(text, end)
                beside = likely.search(text, named.end(), end)
            if not (follows or beside) and (last := last_name.match(text, start)):
                beside = likely.search(text, start, last.start(1))
            if follows or beside:
                end = _line_end(text, follows.end() if follows else end)
                for low, high in _by_themselves(text[start:end]):
                    yield start + low, start + high
                at = end + 1
            else:
                at = _line_end(text, named.start()) + 1


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


def _by_themselves(phrase: bytes) -> Iterator[tuple[int, int]]:
    for found in () if _PUBLIC.search(phrase) else _TOKEN.finditer(phrase):
        end = len(found[0].rstrip(b".,:;?"))
        start = max(found[0].rfind(b":", 0, end - 8), found[0].find(b"=", 0, end - 8)) + 1
        if b"://" not in found[0] and _by_chance(found[0][start:end]):
            yield found.start() + start, found.start() + end


def _cells(head: re2._Regexp, text: bytes) -> Iterator[tuple[int, int]]:
    """The places of the cells of the tables of a text."""
    for table in head.finditer(text):
        for low, high in _cells_of(table[0]):
            yield table.start() + low, table.start() + high


def _cells_of(table: bytes) -> Iterator[tuple[int, int]]:
    """The places of the cells of a table below the names of secrets in the nearest head above."""
    heads = [head.start() for head in _compiled(_HEAD).finditer(table)]
    for start, end in itertools.pairwise([*heads, len(table)]):
        head, *rows = re.finditer(rb"[^\n]+", table[start:end])
        split = next(
            (one for mark, one in _FIELDS.items() if mark in head[0].strip()), _FIELDS[b" "]
        )
        names = [field[1] for field in split.finditer(head[0].rstrip())]
        columns = [at for at, name in enumerate(names) if _SECRET_FIELD.fullmatch(name)]
        for row in rows if columns else ():
            fields = list(split.finditer(row[0].rstrip()))
            for column in columns if len(fields) == len(names) else ():
                cell = fields[column][1]
                bare = cell.strip(b" \t\"'")
                if chosen(bare.decode("latin-1")) or opaque(bare.decode("latin-1")):
                    low = start + row.start() + fields[column].start(1) + cell.index(bare)
                    yield low, low + len(bare)


_PARTS: Final = {"cells": _cells, "tokens": _tokens}


def _judged(rule: Rule, secret: bytes) -> int:
    """How many bytes of what a rule matched are a secret."""
    text = secret.decode("utf-8", "replace")
    kept = CHECKS[rule.check](text) if rule.check else len(text)
    if not kept or (rule.entropy and entropy(text) < rule.entropy):
        return 0
    if rule.allowed and _compiled(rule.allowed).search(secret):
        return 0
    return len(secret) if kept == len(text) else len(text[:kept].encode())


def _meaning(written: re.Match[bytes]) -> bytes:
    """The decoded value of an escape, from a bounded cache: a text repeats few of them."""
    if (meant := _MEANT.get(written[0])) is None:
        if len(_MEANT) >= 4_096:
            _MEANT.clear()
        meant = _MEANT[written[0]] = _decoded(written)
    return meant


def _decoded(written: re.Match[bytes]) -> bytes:
    """The character that a notation stands for; nothing for what is no character of the text."""
    kind = written.lastgroup or ""
    if kind in _MEANINGS:
        return _MEANINGS[kind]
    text = (written[0] if kind == "wide" else written[kind]).decode("utf-8", "replace")
    if kind == "wide":
        text = unicodedata.normalize("NFKC", text)
    elif kind == "entity":
        text = unescape(f"&{text};")
    elif kind != "mark":
        text = clean(chr(int(text, 16)))
    return text.encode()


def _disjoint(spans: Iterable[_Span]) -> list[_Span]:
    """Overlapping spans as one, under the name of the rule that stands first."""
    joined: list[_Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            last = joined[-1]
            end, rule = max(last.end, span.end), min(last.rule, span.rule)
            joined[-1] = _Span(last.start, end, rule)
        else:
            joined.append(span)
    return joined


@cache
def _compiled(regex: str) -> re2._Regexp:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(regex, options)


@cache
def _splitter(notations: re.Pattern[bytes]) -> re.Pattern[bytes]:
    """The same expression with one group around it, and none within."""
    bare = re.sub(rb"\(\?P<\w+>", b"(?:", notations.pattern)
    return re.compile(b"(" + bare + b"\n)", re.VERBOSE)


_REPEATS: Final = re.compile(r"[{*]")
_LIMITS: Final = re.compile(r"\{\d+(?:,\d*)?\}")
"""How often something repeats."""


class _Prefilter:
    """Which rules have a keyword in a text, or match it without one: some automata, in turn.

    Their states are made as texts need them. One automaton for all would have as many as the
    product of theirs, and forget them again and again: 390 µs for a text of 120 characters.
    A hint with many states is asked only where it matches without the limits of its repeats.
    """

    def __init__(self) -> None:
        import re2

        self._options = re2.Options()
        self._options.log_errors = False
        keywords, bare, hints = dict[int, str](), dict[int, str](), dict[int, str]()
        alone = list[dict[int, str]]()
        for place, rule in enumerate(rules()):
            if rule.hint and _REPEATS.search(rule.hint):  # many states: each has its own
                hints[place] = rule.hint
            elif rule.hint or rule.keywords:
                words = f"(?i){'|'.join(map(re2.escape, rule.keywords))}"
                keywords[place] = rule.hint or words
            elif rule.parts == "tokens":
                keywords[place] = rule.regex
            else:  # without its edges: an escape may stand where a letter must not
                regex = rule.regex.removeprefix(_LEFT_EDGE).removesuffix(_RIGHT_EDGE)
                (alone.append({place: regex}) if rule.alone else bare.update({place: regex}))
        # Behind the rules stand the hints at what has to be decoded first.
        for place, hint in enumerate(_HINTS, len(rules())):
            (alone.append({place: hint}) if hint is _WRAPPED else bare.update({place: hint}))
        self._sets = [
            (self._set(some.values()).Match, [*some]) for some in (keywords, bare, *alone)
        ]
        # All hints without the limits of their repeats find no less, and have few states together.
        self._loose = self._set(_LIMITS.sub("*", hint) for hint in hints.values())
        self._hints = [(place, self._set([hint]).Match) for place, hint in hints.items()]
        self._whole = {
            rules_place: (place, self._set([_exactly(rules()[rules_place])]))
            for place, rules_place in _precise().items()
        }

    def _set(self, expressions: Iterable[str]) -> re2.Set:
        import re2

        chosen = re2.Set.SearchSet(self._options)
        for one in expressions:
            chosen.Add(one)
        chosen.Compile()
        return chosen

    def candidates(self, text: bytes) -> list[int]:
        """The places of the rules and hints that a text may have something of."""
        found = list[int]()
        for match, places in self._sets:
            if (matched := match(text)) is not None:
                found += [places[at] for at in matched]
        for at in self._loose.Match(text) or ():
            place, match = self._hints[at]
            if match(text) is not None:
                found.append(place)
        for rule in [*found]:
            if rule in self._whole and self._whole[rule][1].Match(text) is not None:
                found.append(self._whole[rule][0])
        return sorted(found)


def _exactly(rule: Rule) -> str:
    """What the prefilter looks for beside the everyday words of a rule."""
    return _LIKELY if rule.parts == "tokens" else _LONG_REPEAT.sub(r"{\1,}", rule.regex)


@cache
def _prefilter() -> _Prefilter:
    return _Prefilter()


@cache
def _precise() -> dict[int, int]:
    """Rules by the place that their whole expression has in the prefilter."""
    places = (place for place, rule in enumerate(rules()) if rule.precise)
    return dict(enumerate(places, len(rules()) + len(_HINTS)))
