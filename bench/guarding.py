"""What the guard costs per 2 KB: cleaning, redacting, and one line for a prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bench.measure import Figure, alternate, timed
from bench.report import Line, Section, duration, spread
from scrubjay.guard.secrets import redact, rules
from scrubjay.model import echo
from scrubjay.model.clean import clean, one_line

_SIZE: Final = 2048
_PROSE: Final = (
    "Alice moved to Lyon in May and works from an office near the river. Her team meets on Tuesday "
    "at 9:30 to talk about the release, and she likes short answers when she travels by train. "
)
_ABOUT_KEYS: Final = (
    "The password policy is strict, the token budget is 4,096, and the key is under the mat; "
    "commit 0f3c9a1e fixed the login, see https://example.org/wiki?page=12 for more. "
)
_ACCENTED: Final = (
    "Zoë trinkt morgens grünen Tee, na\u200bïve Cafés mag sie 👩\u200d💻 nicht; "
    "dafür Straßenmusik an der Saône, und Zürich nur im März. "
)
_ESCAPED: Final = (
    '{"level":"info","msg":"request done\\n","path":"C:\\\\temp","id":"0f3c9a1e",'
    '"url":"https://example.org/?q=a%20b"}\n'
)
_LINES: Final = "0f3c9a1e7b2d4c5f8a9b0c1d2e3f4a5b\n1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d\n"
_HOSTILE: Final = ("password=", "4444 ", "eyJ", "http://a:", "api_key: ", "aws key ", "DE89 ")
_ECHOING: Final = ("[Runtime context for this invocation. ", "--- BEGIN MEMORY (from x) ---\n")
_SECRET: Final = "my password is hunter" + "22"


def run(*, quick: bool) -> Section:
    """Time each guard on texts of 2 KB, beside a bare pass over the same text."""
    prose, keys, accented = (_filled(text) for text in (_PROSE, _ABOUT_KEYS, _ACCENTED))
    leaking = f"{prose[: _SIZE - 40]} {_SECRET}."
    section = Section(f"The guard, per {_SIZE:,} characters")
    section.notes.append(
        "The floor is what any guard has to do with a text once: encode it, look at each character "
        f"(`str.translate` with an empty table), decode it. There are {len(rules())} rules for "
        "secrets; compiling them is not counted, as it happens once in a process."
    )
    cases: list[tuple[str, Callable[[str], object], str]] = [
        ("clean, ASCII", clean, prose),
        ("clean, with accents and invisible characters", clean, accented),
        ("redact, nothing in it", redact, prose),
        ("redact, prose about keys and passwords", redact, keys),
        ("redact, one secret", redact, leaking),
        ("redact, JSON with escapes and percent signs", redact, _filled(_ESCAPED)),
        ("redact, lines that could be wrapped tokens", redact, _filled(_LINES)),
        ("one_line, ASCII", one_line, prose),
        ("one_line, with accents and invisible characters", one_line, accented),
    ]
    for what, guard, text in cases:
        section.compare(what, _beside_floor(guard, text, quick=quick))
    for unit in _HOSTILE:
        section.lines.append(_growth("redact", redact, unit, 2 if quick else 5))
    for unit in _ECHOING:
        section.lines.append(_growth("cut echoes", echo.cut, unit, 2 if quick else 5))
    section.lines.append(_growth("take out repeats", _repeating, _PROSE, 2 if quick else 5))
    return section


def _repeating(text: str) -> str:
    return echo.without_repeats(text, [text])


def _growth(what: str, guard: Callable[[str], object], unit: str, rounds: int) -> Line:
    """How much longer sixteen times a hostile text takes: a square would be 256 times."""
    short, long = (unit * (size // len(unit)) for size in (_SIZE, 16 * _SIZE))
    guard(short)
    found = alternate(
        rounds, lambda: timed(lambda: guard(long)), lambda: timed(lambda: guard(short))
    )
    figure = found.cpu
    return Line(
        what=f"{what}, 32 KB of {unit.strip()[:20]!r}",
        figure=duration(figure.ours, "ms"),
        floor=f"{duration(figure.floor, 'ms')} for 2 KB",
        ratio=spread(figure.ratio),
        target="≤ 40x",
        reached=figure.ratio.median <= 40,
    )


def _filled(text: str) -> str:
    return (text * (_SIZE // len(text) + 1))[:_SIZE]


def _beside_floor(guard: Callable[[str], object], text: str, *, quick: bool) -> Figure:
    batch, rounds = 50, 10 if quick else 60
    guard(text)

    def each(call: Callable[[str], object]) -> None:
        for _ in range(batch):
            call(text)

    found = alternate(
        rounds, lambda: timed(lambda: each(guard), batch), lambda: timed(lambda: each(_bare), batch)
    )
    return found.cpu


def _bare(text: str) -> str:
    return text.encode().decode().translate({})
