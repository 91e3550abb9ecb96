"""Every rule in every context: what stands around a secret does not hide it."""

from __future__ import annotations

import html
import random
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from urllib.parse import unquote

import pytest

from scrubjay.guard.secrets import redact, rules
from scrubjay.model.clean import clean
from tests.unit.guard.contexts import CONTEXTS, Context
from tests.unit.guard.made_up import fill

FOUND_AT_LEAST = 0.95


@cache
def lines() -> tuple[tuple[str, str, str], ...]:
    """Of each example of each rule: the rule, the line, and the secret in it."""
    chance = random.Random(12)
    filled = [(rule.id, *fill(text, chance)) for rule in rules() for text in rule.examples]
    return tuple((rule, line, max(parts, key=len)) for rule, line, parts in filled)


def readable(text: str) -> str:
    """The text as a reader would restore it: decoded, folded, without breaks and spaces."""
    for _ in range(3):
        text = unquote(html.unescape(text))
        text = re.sub(r"\\+u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), text)
    text = unicodedata.normalize("NFKC", re.sub(r"\\+[nt]", "\n", text))
    return re.sub(r"[\s\\]+", "", text)


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_a_secret_is_found_in_every_context(
    context: Context, record_property: Callable[[str, object], None]
) -> None:
    missed = []
    for rule, line, secret in lines():
        redacted = redact(clean(context(line, secret)))
        half = max(len(secret) // 2, min(len(secret), 8))
        left = readable(redacted.text)
        if any(readable(part) in left for part in (secret[:half], secret[-half:])):
            missed.append(rule)
    record_property("found", f"{len(lines()) - len(missed)} of {len(lines())}")
    assert len(missed) <= (1 - FOUND_AT_LEAST) * len(lines()), missed


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\\n{}\\nnext line", "\\n[REDACTED]\\nnext line"),
        ("q%3D{}%26x", "q%3D[REDACTED]%26x"),
        ("a\\u003d{}\\u0026b", "a\\u003d[REDACTED]\\u0026b"),
        ('{{\\"k\\": \\"{}\\"}}', '{{\\"k\\": \\"[REDACTED]\\"}}'),
        ("<v>&quot;{}&quot;</v>", "<v>&quot;[REDACTED]&quot;</v>"),
        ("MY_{}, 2", "MY_[REDACTED], 2"),
        ("{}\n2026-05-01 10:00 next", "[REDACTED]\n2026-05-01 10:00 next"),
        ("{}\nuser2: alice", "[REDACTED]\nuser2: alice"),
        ("{}\nPORT2=8080", "[REDACTED]\nPORT2=8080"),
        ("{}\n2. Then run it.", "[REDACTED]\n2. Then run it."),
        ("{}\nThe end", "[REDACTED]\nThe end"),
        ("C:\\{}\\x", "C:\\[REDACTED]\\x"),
    ],
)
@pytest.mark.parametrize("token", ["npm_{alnum:36}", "glpat-{alnum:24}", "rk_live_{alnum:30}"])
def test_exactly_the_secret_is_cut_out_of_the_original(text: str, left: str, token: str) -> None:
    secret = fill(token, random.Random(3))[0]
    assert redact(text.replace("{{", "{").replace("}}", "}").replace("{}", secret)).text == (
        left.replace("{{", "{").replace("}}", "}")
    )


def test_what_was_decoded_inside_of_a_secret_goes_with_it() -> None:
    first, second = (fill("{alnum:18}", random.Random(seed))[0] for seed in (1, 2))
    for inside in ("\n", "\\\n", "\n  ", "[0m", "\x1b[31m", "\\u001b[1m", "\\x1b[0m"):
        assert redact(f"key ghp_{first}{inside}{second}, see").text == "key [REDACTED], see"
    assert redact("password=hunter%32%32&x").text == "password=[REDACTED]"
