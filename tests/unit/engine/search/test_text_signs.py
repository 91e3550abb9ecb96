"""What a text shows at a glance."""

from __future__ import annotations

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
