"""Secrets out of a text before it is kept: memory is not a vault.

Rules are data (rules.toml). A `Set` of RE2 says in one pass which of them can match at all; only
those are run, and RE2 is linear whatever the text is. Found spans are replaced, and what is left is
looked at again where something was cut out, until nothing more is found; so a second run finds
nothing, and a placeholder is never taken for a secret.

Run it on cleaned text: a token with invisible characters in it is none any more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    return len(text) if holds and _is_issued(digits) else 0


def _is_issued(digits: list[int]) -> bool:
    number = "".join(map(str, digits))
    return any(
        low <= int(number[: len(str(low))]) <= high and len(number) in lengths
        for low, high, lengths in _CARD_ISSUERS
    )


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
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return len(text) if has_both else 0


def three_kinds(text: str) -> int:
    """Small letters, capitals and digits together: not the hash it could be mistaken for."""
    kinds = (str.islower, str.isupper, str.isdigit)
    return len(text) if all(any(map(kind, text)) for kind in kinds) else 0


def opaque(text: str) -> int:
    """A token: a long stretch of letters and digits mixed, which words and paths have not."""
    runs = [run for run in _RUN.findall(text) if mixed(run)]
    whole = any(_is_random(run) for run in runs)
    return len(text) if whole or (len(text) >= 20 and len(runs) >= 3) else 0


def _is_random(run: str) -> bool:
    digits = sum(map(str.isdigit, run))
    return (len(run) >= 10 and digits > 1) or (len(run) >= 12 and bool(three_kinds(run)))


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


def strong(text: str) -> int:
    """A password of letters, digits and a symbol, which no name of a product is."""
    core = text.rstrip(".,:;?")
    kinds = (any(map(str.isalpha, core)), any(map(str.isdigit, core)), _SYMBOLS & set(core))
    return len(text) if len(core) >= 8 and all(kinds) else 0


def words(text: str) -> int:
    """Recovery words: hardly one of them twice, which a sentence of that length cannot avoid."""
    spoken = [word for word in re.split(r"[ ,]+", text.lower()) if word]
    return len(text) if len(set(spoken)) >= len(spoken) - 1 else 0


def entropy(text: str) -> float:
    """Bits per character, by how often each of its characters occurs."""
    size = len(text)
    return -sum(n / size * log2(n / size) for n in Counter(text).values()) if size else 0.0


CHECKS: Final[Mapping[str, Callable[[str], int]]] = {
    "card": card,
    "iban": iban,
    "mixed": mixed,
    "three_kinds": three_kinds,
    "opaque": opaque,
    "chosen": chosen,
    "strong": strong,
    "words": words,
}
"""By the name a rule calls them."""


if TYPE_CHECKING:
    import re2

PLACEHOLDER: Final = "[REDACTED]"
WINDOW: Final = 16 * 1024
OVERLAP: Final = 4 * 1024
"""By how much windows overlap: more than the longest match of a rule that is not `whole`."""
_ANY_TEXT: Final = "surrogatepass"
"""Text that was not cleaned may hold half a surrogate pair; redacting it must not fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of secret, as rules.toml describes it."""

    id: str
    description: str
    regex: str
    keywords: tuple[str, ...] = ()
    entropy: float = 0.0
    check: str | None = None
    allowed: tuple[str, ...] = ()
    whole: bool = False
    examples: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many of which kind it had."""

    text: str
    found: Mapping[str, int]
    """Rule ids and counts; empty when nothing was found."""


class _Span(NamedTuple):
    start: int
    end: int
    rule: int


def redact(text: str, placeholder: str = PLACEHOLDER) -> Redacted:
    """The text with every secret replaced; idempotent, and linear in the length of the text."""
    if not placeholder:
        raise InvalidRequest("The placeholder is empty.", hint=f"For example {PLACEHOLDER}.")
    body, mark = text.encode("utf-8", _ANY_TEXT), placeholder.encode("utf-8", _ANY_TEXT)
    counts: Counter[str] = Counter()
    pieces = [_replaced(piece, mark, counts) for piece in body.split(mark)]
    if not counts:
        return Redacted(text, {})
    return Redacted(mark.join(pieces).decode("utf-8", _ANY_TEXT), dict(counts))


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they name what is found."""
    import tomllib

    text = Path(__file__).with_name("rules.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    masks = tuple(tables["allowlist"]["regexes"])
    return tuple(_rule(table, masks) for table in tables["rules"])


def _rule(table: dict[str, Any], masks: tuple[str, ...]) -> Rule:
    allowed = table.pop("allowlist", {}).get("regexes", ())
    lists = {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
    masks = () if table.get("whole") else masks
    return Rule(**{**table, **lists, "allowed": (*masks, *allowed)})


def _replaced(body: bytes, mark: bytes, counts: Counter[str]) -> bytes:
    spans = _search(body)
    if not spans:
        return body
    counts.update(rules()[span.rule].id for span in spans)
    starts = [0, *(span.end for span in spans)]
    ends = [*(span.start for span in spans), len(body)]
    return mark.join(body[start:end] for start, end in zip(starts, ends, strict=True))


def _search(body: bytes) -> list[_Span]:
    """All secrets of a text, in order, without overlaps.

    What was cut out gives its neighbors a new edge, and there may be a secret that begins or ends
    at it; so the ends of each gap are searched again, as if the gap were all there is.
    """
    found = _disjoint(_matches(body, _windows(len(body))))
    gaps = _gaps(0, len(body), found)
    while gaps:
        start, end = gaps.pop()
        fresh = _disjoint(_matches(body[start:end], _edges(end - start)))
        fresh = [_Span(start + span.start, start + span.end, span.rule) for span in fresh]
        found += fresh
        gaps += _gaps(start, end, fresh)
    return sorted(found)


def _gaps(start: int, end: int, spans: list[_Span]) -> list[tuple[int, int]]:
    """What is left between the spans; nothing where there are none."""
    if not spans:
        return []
    edges = [start, *(edge for span in spans for edge in span[:2]), end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def _windows(size: int) -> list[tuple[int, int]]:
    step = WINDOW - OVERLAP
    return [(at, min(at + WINDOW, size)) for at in range(0, max(size - OVERLAP, 1), step)]


def _edges(size: int) -> list[tuple[int, int]]:
    if size <= 2 * OVERLAP:
        return [(0, size)]
    return [(0, OVERLAP), (size - OVERLAP, size)]


def _matches(body: bytes, windows: Iterable[tuple[int, int]]) -> Iterator[_Span]:
    wholes: set[int] = set()
    known = rules()
    for start, end in windows:
        for rule in _prefilter().Match(body[start:end]) or ():
            if known[rule].whole:
                wholes.add(rule)
            else:
                yield from _within(body, rule, start, end)
    for rule in sorted(wholes):
        yield from _within(body, rule, 0, len(body))


def _within(body: bytes, rule: int, start: int, end: int) -> Iterator[_Span]:
    """What one rule finds in one window.

    A match that the window's end may have cut short is left to the next window, which has it whole.
    """
    kind, at = rules()[rule], start
    pattern = _compiled(kind.regex)
    while at < end and (match := pattern.search(body, at, end)):
        group = next((n for n in range(1, pattern.groups + 1) if match.start(n) >= 0), 0)
        first, last = match.span(group)
        last = first + _judged(kind, body[first:last])
        at = last if last > first else match.start() + 1
        is_cut = match.end() == end < len(body) and match.start() > end - OVERLAP
        if last > first and not is_cut:
            yield _Span(first, last, rule)


def _judged(rule: Rule, secret: bytes) -> int:
    """How many bytes of what a rule matched are a secret."""
    text = secret.decode("utf-8", "replace")
    kept = CHECKS[rule.check](text) if rule.check else len(text)
    if not kept or (rule.entropy and entropy(text) < rule.entropy):
        return 0
    allowed = "|".join(f"(?:{regex})" for regex in rule.allowed)  # each with flags of its own
    if allowed and _compiled(allowed).search(secret):
        return 0
    return len(secret) if kept == len(text) else len(text[:kept].encode())


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

    return re2.compile(regex, _options())


@cache
def _prefilter() -> re2.Set:
    """One automaton over all rules: which have a keyword in a text, or match it without one."""
    import re2

    chosen = re2.Set.SearchSet(_options())
    for rule in rules():
        words = "|".join(map(re2.escape, rule.keywords))
        chosen.Add(f"(?i){words}" if words else rule.regex)
    chosen.Compile()
    return chosen


def _options() -> re2.Options:
    import re2

    options = re2.Options()
    options.log_errors = False
    return options
