"""Secrets out of a text before it is kept: memory is not a vault.

Rules are data (rules.toml). A `Set` of RE2 says in one pass which of them can match at all; only
those are run, and RE2 is linear whatever the text is. Found spans are replaced, and what is left is
looked at again where something was cut out, until nothing more is found; so a second run finds
nothing, and a placeholder is never taken for a secret.

Run it on cleaned text: a token with invisible characters in it is none any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scrubjay.domain.errors import InvalidRequest
from scrubjay.guard.checks import CHECKS, entropy

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
