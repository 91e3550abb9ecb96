"""The guard is linear: a text of eight times the size takes about eight times as long."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

from scrubjay.guard.admission import admit
from scrubjay.guard.secrets import redact, rules
from scrubjay.model.clean import clean, one_line
from scrubjay.model.requests import Retain

SHORT, TIMES = 8 * 1024, 8
MOST = 3 * TIMES
"""A square would be 64 times; below this it is noise."""

HOSTILE = (
    *(
        "\x1b[",
        "\x1b]",
        "\x1b]0;a",
        "\x9b1;",
        "\x1bP",
        "\x9d",
        "\x1b[1;",
        "\x1b(",
        "\u200d",
        "\u0301",
    ),
    *("\\", "\\\\n", "\\u003d", "\\x3", "%", "%25", "%3D", "&", "&quot;", "&#", "[1;", "[0m"),
    *(
        "\n",
        "a\n",
        "a\n9",
        "a1B\n",
        "a\\\n",
        "aB\n  ",
        "9\n9\n",
        "A1b2C3d4 \n",
        "\r\n",
        "\uff50",
        "\uff1a",
    ),
    *(
        "password=",
        "password is ",
        "api_key: ",
        "secret ",
        "token\t",
        "<password>",
        "name: x_token value: ",
    ),
    *(
        "eyJ",
        "eyJaaaaaaaaaaaaa.",
        "http://a:",
        "://a:b@",
        "aws key ",
        "DE89 ",
        "4444 ",
        "4111 1111 ",
    ),
    *(
        "sk-",
        "sk-live-a1",
        "gsk_",
        "ghp_",
        "xox",
        "-----BEGIN PRIVATE KEY-----",
        "bearer ",
        "cookie: sid=",
    ),
    *(
        "identified by '",
        "server=a;",
        "jdbc:a?",
        "seed phrase is word ",
        "cookie: ",
        '" -> "',
        "x" * 64,
    ),
    *("A1" * 16, "0123456789abcdef", "M" * 24 + ".", "a.", "-us1", "<", "[", "data:", "system:"),
)


def spent(call: Callable[[str], object], text: str) -> float:
    """CPU seconds of the fastest of three calls."""
    times = []
    for _ in range(3):
        start = process_time()
        call(text)
        times.append(process_time() - start)
    return min(times)


def admitted(text: str) -> object:
    """The door of every write."""
    return admit(Retain(content=f"x{text}"))


@pytest.mark.parametrize("call", [clean, one_line, redact])
def test_no_text_takes_longer_than_its_length_allows(call: Callable[[str], object]) -> None:
    call("password")  # what is compiled at the first call is not counted
    for unit in HOSTILE:
        short, long = (unit * (size // len(unit)) for size in (SHORT, SHORT * TIMES))
        # Of so short a time the clock tells little; four milliseconds per 64 KB are no attack.
        base = max(spent(call, short), 0.0005)
        assert spent(call, long) <= MOST * base, repr(unit)


def test_no_keyword_of_a_rule_takes_longer_than_its_length_allows() -> None:
    redact("password")
    for unit in {keyword for rule in rules() for keyword in rule.keywords}:
        short, long = (f"{unit}a1 " * (size // (len(unit) + 3)) for size in (SHORT, SHORT * TIMES))
        base = max(spent(redact, short), 0.0005)
        assert spent(redact, long) <= MOST * base, repr(unit)


def test_the_door_of_a_write_is_linear_too() -> None:
    admitted("password")
    for unit in ("\x1b[", "\\u003d", "a1B\n", "password=", "sk-live-a1"):
        base = max(spent(admitted, unit * (1024 // len(unit))), 0.0005)
        assert spent(admitted, unit * (1024 * TIMES // len(unit))) <= MOST * base, repr(unit)
