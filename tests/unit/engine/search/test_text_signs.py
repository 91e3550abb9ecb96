"""What a text shows at a glance."""

from __future__ import annotations

import random
import re

import pytest

from scrubjay.engine.search import analysis


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("I went there two weeks ago", "timed"),
        ("我昨天去了", "timed"),
        ("How are you?", "asks"),
        ("We met in May", "timed"),
        ("It was the 3rd", "timed"),
        ("Wir treffen uns am Donnerstag", "timed"),
        ("Она приедет через две недели", "timed"),
        ("会議は月曜日です", "timed"),
        ("ALWAYS Use Short Sentences", "instructs"),
        ("请记住我不吃肉", "instructs"),
        ("Ich bevorzuge Tee", "prefers"),
        ("Always use metric units when I ask about sizes.", "instructs"),
        ("From now on, call me Sam", "instructs"),
        ("Well, I'd rather work in the mornings", "prefers"),
        ("I prefer tea", "prefers"),
        ("I can't stand crowded restaurants", "prefers"),
        ("I'm allergic to peanuts", "prefers"),
        ("Ich esse kein Fleisch", "prefers"),
        ("我不吃香菜", "prefers"),
    ],
)
def test_a_sign_is_read(text: str, sign: str) -> None:
    assert getattr(analysis.read_signs(text), sign)


def test_plain_talk_shows_nothing() -> None:
    for text in ("that sounds lovely", "you may do it now and then, please", "when will you stop"):
        shown = analysis.read_signs(text)
        assert not any(getattr(shown, name) for name in analysis.Signs.__struct_fields__)


def test_a_long_text_is_no_standing_instruction() -> None:
    assert not analysis.read_signs("Always " + "so on " * 100).instructs


def test_the_automaton_sees_in_plain_text_what_each_pattern_sees() -> None:
    chance = random.Random(3)
    patterns = {name: analysis.pattern("signs", name) for name in analysis._PATTERNS}
    parts = [
        *sorted(
            {word for one in patterns.values() for word in re.findall(r"[a-z']+", one.pattern)}
        ),
        *(
            "1999",
            "2021",
            "3rd",
            "21st",
            "4/5",
            "\v",
            "\x1c",
            "may 4",
            "in may",
            "last night",
            "next winter",
            "i",
            "you",
        ),
    ]
    seen = dict.fromkeys(patterns, 0)
    for _ in range(4000):
        pieces = chance.choices(parts, k=chance.randint(1, 6))
        text = chance.choice(("", " ", "- ", "\x1c")) + chance.choice((" ", "  ", " \v")).join(
            pieces
        )
        found = analysis._automaton().Match(text.encode()) or ()
        for place, (name, one) in enumerate(patterns.items()):
            assert (place in found) is (one.search(text) is not None), (name, text)
            seen[name] += place in found
    assert min(seen.values()) > 20
