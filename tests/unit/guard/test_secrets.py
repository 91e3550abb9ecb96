"""A secret is never kept, whatever is around it, and what is none stays as it is."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from time import process_time

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.guard import PLACEHOLDER, secrets
from scrubjay.guard.secrets import OVERLAP, WINDOW, Rule, redact, rules
from scrubjay.model.clean import clean
from scrubjay.model.errors import InvalidRequest
from tests.unit.guard.harmless import harmless
from tests.unit.guard.leaks import Leak, shaped_leaks, vendor_leaks
from tests.unit.guard.made_up import drawn, fill
from tests.unit.test_import import modules_after

RULES = {rule.id: rule for rule in rules()}
CHANCE = random.Random(4)
TOKEN = fill("ghp_{alnum:36}", CHANCE)[0]
PROSE = "Alice likes tea, and Bob has moved to Lyon. "


def kept(text: str) -> str:
    return redact(text).text


# The rules


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_takes_its_examples_out_and_counts_each_once(rule: Rule) -> None:
    assert rule.examples
    chance = random.Random(1)
    for template in rule.examples:
        text, parts = fill(template, chance)
        redacted = redact(f"before {text}\nafter")
        assert redacted.found == {rule.id: 1}, template
        assert max(parts, key=len) not in redacted.text
        assert redacted.text.startswith("before ")
        assert redacted.text.endswith("\nafter")


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_leaves_alone_what_only_looks_like_its_secret(rule: Rule) -> None:
    assert rule.misses
    for template in rule.misses:
        text = fill(template, random.Random(2))[0]
        assert redact(text).found == {}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_match_fits_into_the_overlap_of_two_windows(rule: Rule) -> None:
    parsed = importlib.import_module("re._parser").parse(rule.regex)
    assert rule.whole or parsed.getwidth()[1] < OVERLAP // 2


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len(RULES) == len(rules())


# The labeled set


def test_the_labeled_set_is_as_large_as_promised() -> None:
    leaks = vendor_leaks() + shaped_leaks()
    assert len({leak.text for leak in leaks}) >= 300
    assert len({leak.kind for leak in leaks}) >= 25
    assert len(set(harmless())) >= 1_000


@pytest.mark.parametrize("leaks", [vendor_leaks, shaped_leaks])
def test_nine_of_ten_secrets_of_the_labeled_set_are_found(
    leaks: Callable[[], list[Leak]], record_property: Callable[[str, object], None]
) -> None:
    labeled = leaks()
    missed = [leak for leak in labeled if leak.secret in kept(leak.text)]
    record_property("recall", f"{1 - len(missed) / len(labeled):.4f} of {len(labeled)}")
    assert len(missed) <= 0.1 * len(labeled), Counter(leak.kind for leak in missed)


def test_at_most_one_in_a_thousand_harmless_messages_is_touched(
    record_property: Callable[[str, object], None],
) -> None:
    messages = set(harmless())
    touched = [text for text in messages if redact(text).found]
    record_property("touched", f"{len(touched)} of {len(messages)}")
    assert len(touched) <= len(messages) / 1_000, touched


# What redacting promises


def test_a_text_without_a_secret_is_returned_as_it_came() -> None:
    text = PROSE * 100
    assert redact(text).text is text


def test_only_the_secret_is_replaced() -> None:
    assert kept(f"The key {TOKEN}, as agreed.") == "The key [REDACTED], as agreed."
    assert kept("my wifi password is hunter22, thanks") == "my wifi password is [REDACTED], thanks"
    assert kept("ftp://bob:s3cr3t99@host.example/x") == "ftp://bob:[REDACTED]@host.example/x"


def test_secrets_are_counted_by_kind() -> None:
    other = fill("npm_{alnum:36}", CHANCE)[0]
    again = fill("ghp_{alnum:36}", CHANCE)[0]
    found = redact(f"{TOKEN} {other} {again}").found
    assert found == {"github-token": 2, "npm-token": 1}


def test_what_two_rules_find_is_counted_once_under_the_vendor() -> None:
    assert redact(f"api_key = '{TOKEN}'").found == {"github-token": 1}


def test_what_two_rules_find_in_part_is_taken_out_as_a_whole() -> None:
    redacted = redact(f"https://bob:{TOKEN}!tail99@host.example")
    assert redacted.text == "https://bob:[REDACTED]@host.example"
    assert redacted.found == {"github-token": 1}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("4444 4111 1111 1111 1111", "4444 [REDACTED]"),
        ("password is password is hunter22", "password is password is [REDACTED]"),
    ],
)
def test_what_only_looks_like_a_secret_hides_none_behind_it(text: str, left: str) -> None:
    assert kept(text) == left


def test_the_placeholder_is_the_callers() -> None:
    assert redact(f"key {TOKEN}", "<gone>").text == "key <gone>"


def test_an_empty_placeholder_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        redact("text", "")


@pytest.mark.parametrize(
    "placeholder", [PLACEHOLDER, "hunter2hunter2", "0123456789abcdef0123", "*"]
)
@pytest.mark.parametrize("words", ["password is ", "api_key=", "DB_PASSWORD=", "https://u:"])
def test_a_placeholder_is_never_a_secret(placeholder: str, words: str) -> None:
    text = f"{words}{placeholder}@host.example"
    assert redact(text, placeholder).text == text


def test_a_token_with_invisible_characters_in_it_is_found_once_it_is_clean() -> None:
    hidden = "\u200b".join(TOKEN[at : at + 5] for at in range(0, len(TOKEN), 5))
    assert kept(clean(f"key {hidden}")) == "key [REDACTED]"


def test_half_a_surrogate_pair_stops_nothing() -> None:
    assert kept(f"\ud83d {TOKEN}") == "\ud83d [REDACTED]"


pieces = st.sampled_from(
    [
        *(fill(template, CHANCE)[0] for rule in rules() for template in rule.examples),
        *(keyword for rule in rules() for keyword in rule.keywords),
        *(PLACEHOLDER, "password", "is", "=", ":", " ", "\n", "_", "-", ".", "4", "'", '"', "@"),
        *("4111111111111111", "4111 1111 ", "DE89", "x" * 40, "https://u:"),
        *(
            "\\n",
            "\\\\t",
            "%3D",
            "%253D",
            "%",
            "\\u003d",
            "\\x3d",
            "\\",
            "&quot;",
            "&#61;",
            "\uff1d",
        ),
        *("\x1b[31m", "[0m", "\\u001b[1m", "\n  ", "x9K", "\nx9K", "\n7", "\uff50\uff57\uff1a"),
    ]
)
hostile = st.lists(st.one_of(pieces, pieces, st.text(max_size=3)), max_size=9)
texts = st.one_of(
    hostile.map("".join), hostile.map(" ".join), st.text(st.characters(exclude_categories=()))
)


@given(texts, st.sampled_from([PLACEHOLDER, "***", "REDACTED", "<secret 1a2b3c4d5e>"]))
def test_redacting_twice_finds_nothing_more(text: str, placeholder: str) -> None:
    once = redact(text, placeholder)
    twice = redact(once.text, placeholder)
    assert twice.text == once.text
    assert twice.found == {}


# Long texts


def padded(secret: str, at: int, size: int) -> str:
    text = (PROSE * (size // len(PROSE) + 1))[:size]
    return f"{text[:at]} {secret} {text[at:]}"


@pytest.mark.parametrize("edge", [WINDOW, WINDOW - OVERLAP, 2 * WINDOW - OVERLAP])
def test_a_secret_on_the_edge_of_a_window_is_found_whole_and_once(edge: int) -> None:
    for at in range(edge - len(TOKEN) - 3, edge + 3):
        redacted = redact(padded(TOKEN, at, 3 * WINDOW))
        assert redacted.found == {"github-token": 1}
        assert redacted.text == padded(PLACEHOLDER, at, 3 * WINDOW)


@pytest.mark.parametrize("edge", [WINDOW, 2 * WINDOW - OVERLAP])
def test_what_the_edge_of_a_window_cuts_short_is_not_judged_by_half(edge: int) -> None:
    harmless_line = "POSTGRES_PASSWORD=postgres"
    for at in range(edge - len(harmless_line) - 3, edge + 3):
        assert redact(padded(harmless_line, at, 3 * WINDOW)).found == {}


@pytest.mark.parametrize("at", [0, WINDOW - 2_000, 2 * WINDOW])
def test_a_key_longer_than_a_window_is_taken_out_whole(at: int) -> None:
    body = "\n".join(drawn("base64", 64, CHANCE) for _ in range(2 * WINDOW // 64))
    text, _ = fill(
        f"-----BEGIN {{-}}PRIVATE KEY-----\n{body}\n-----END {{-}}PRIVATE KEY-----", CHANCE
    )
    redacted = redact(padded(text, at, 3 * WINDOW))
    assert redacted.text == padded(PLACEHOLDER, at, 3 * WINDOW)
    assert redacted.found == {"private-key": 1}


def test_a_long_text_full_of_secrets_is_done_in_one_go() -> None:
    tokens = [fill("npm_{alnum:36}", CHANCE)[0] for _ in range(2_000)]
    redacted = redact(", ".join(tokens))
    assert redacted.found == {"npm-token": 2_000}
    assert redact(redacted.text).found == {}


def test_each_cut_may_uncover_the_next_secret() -> None:
    chain = "".join(fill("gsk_{alnum:60}", CHANCE)[0] for _ in range(100))
    redacted = redact(chain)
    assert redacted.found == {"groq-key": 100}
    assert redacted.text == PLACEHOLDER * 100


# First use


def test_nothing_is_compiled_before_the_first_text() -> None:
    assert not modules_after("import scrubjay.guard.secrets") & {"re2", "tomllib"}


def test_a_hint_that_is_asked_late_is_asked_wherever_it_matches() -> None:
    """A text passes the hint without its limits if it matches the hint."""
    chance = random.Random(6)
    hints = {at: rule.hint for at, rule in enumerate(rules()) if "{" in rule.hint}
    written = [text for rule in rules() for text in (*rule.examples, *rule.misses)]
    matched = set[int]()
    for text in [fill(template, chance)[0].encode() for template in written]:
        exact = {at for at, hint in hints.items() if re2.search(hint, text)}
        assert exact == hints.keys() & set(secrets._prefilter().candidates(text))
        matched |= exact
    assert matched == hints.keys()


def _prose(chance: random.Random) -> Iterator[str]:
    letters = "abcdefghiklmnoprstuvwy"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(2000)]
    words += ["I", "The", "key", "password", "and", "to", "we", "Token", "secret", "of"] * 60
    while True:
        yield " ".join(chance.choices(words, k=25)) + "."


def _hashes(chance: random.Random) -> Iterator[str]:
    while True:
        yield "\n".join(drawn("hex", size, chance) for size in (32, 40, 64))


def _encoded(chance: random.Random) -> Iterator[str]:
    while True:
        yield "\n".join(drawn("base64", 76, chance) for _ in range(2))


def _identifiers(chance: random.Random) -> Iterator[str]:
    while True:
        yield " ".join(drawn(kind, 20, chance) for kind in ("alnum", "upper", "digits", "word"))


@pytest.mark.parametrize("kind", [_prose, _hashes, _encoded, _identifiers])
def test_texts_that_differ_cost_about_as_much_as_one_that_is_known(
    kind: Callable[[random.Random], Iterator[str]],
) -> None:
    """No automaton has so many states that it has to make them anew for every text."""
    texts = [text.encode() for text in islice(kind(random.Random(5)), 900)]
    candidates = secrets._prefilter().candidates

    def taken(asked: list[bytes]) -> float:
        begun = process_time()
        for text in asked:
            candidates(text)
        return process_time() - begun

    taken(texts)
    differing = min(taken(texts[at::3]) for at in range(3))
    known = min(taken(texts[:1] * 300) for _ in range(3))
    assert differing < 20 * known


# Tokens beside the name of a secret


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("{} is the login", "[REDACTED] is the login"),
        ("the login is\n\n  {} bob", "the login is\n\n  [REDACTED] bob"),
        ("the login\nof bob {}", "the login\nof bob {}"),
        ("login {}\nlogin {}", "login [REDACTED]\nlogin [REDACTED]"),
        ("the public login {}", "the public login {}"),
        ("one line\nkey {} of it", "one line\nkey [REDACTED] of it"),
    ],
)
def test_a_token_counts_in_the_line_of_a_name_or_alone_below_it(text: str, left: str) -> None:
    token = "q7Rt2Lw9Zx4Kd1"
    assert kept(text.replace("{}", token)) == left.replace("{}", token)
