"""A text without a kind is a preference or an instruction if it reads like one, else a fact."""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import random
import re

import pytest

from scrubjay.engine.search import kinds
from scrubjay.engine.search.kinds import kind_of

PREFERENCES = (
    "Alice prefers green tea",
    "I hate cilantro",
    "I'm allergic to peanuts",
    "Alice is allergic to peanuts",
    "My wife can't stand loud restaurants.",
    "I really don't enjoy horror films",
    "I don’t eat pork.",
    "I only drink decaf after lunch.",
    "I have a mild aversion to early meetings.",
    "Because of my back, I avoid long flights.",
    "My favorite color is teal.",
    "The user prefers an aisle seat",
    "I'd rather walk than drive.",
    "- I'm not a big fan of crowds",
    "Ich bin allergisch gegen Haselnüsse.",
    "Ich trinke lieber Tee.",
    "Meine Lieblingsfarbe ist Blau.",
    "Jonas hasst Koriander.",
    "Je préfère le thé vert.",
    "Je ne mange pas de porc.",
    "Claire déteste les champignons.",
    "Prefiero el té verde.",
    "No me gusta el cilantro.",
    "Lucía odia madrugar.",
    "我喜欢绿茶。",
    "我不吃香菜。",
    "我对花生过敏。",
    "李娜讨厌下雨。",
)
INSTRUCTIONS = (
    "Always answer in one sentence",
    "Never book flights before 9",
    "Please reply in German",
    "From now on, use metric units.",
    "Don't use emojis.",
    "Call me Sam",
    "You must never share my address.",
    "Whenever I ask for a recipe, include the calories.",
    "Keep your answers short.",
    "Antworte immer auf Deutsch.",
    "Bitte nenne mich Sam.",
    "Ab jetzt bitte ohne Emojis.",
    "Réponds toujours en français.",
    "Ne m'appelle jamais Monsieur.",
    "Responde siempre en español.",
    "No uses emojis.",
    "请用中文回答。",
    "以后不要用表情符号。",
)
FACTS = (
    "Alice lives in Lyon",
    "The router's manual is in the blue folder",
    "I work at the town hall.",
    "Tim enjoys epic fantasy novels.",
    "John congratulated Maria on her degree.",
    "I love this song",
    "I like the second one",
    "I'd like a list of hotels in Rome.",
    "I prefer tea or coffee?",
    "Always wanted to see Japan",
    "Never been to Norway",
    "Never mind the rain",
    "Call me back at 5",
    "Call the plumber on Monday",
    "The user interface is slow.",
    "She is vegan.",
    "Hate crimes fell last year.",
    "Likewise, the second floor is closed.",
    "User: alice, plan: pro",
    "Ich wohne in Leipzig.",
    "Die Miete wird am Fünften abgebucht.",
    "Nie wieder Krieg stand auf dem Plakat.",
    "Je travaille à la mairie.",
    "Le train part à huit heures.",
    "Vivo en Madrid.",
    "El tren sale a las ocho.",
    "我住在杭州。",
    "我的同事喜欢摄影。",
    "会议在三楼。",
    "",
    "x" * 100_000,
)


@pytest.mark.parametrize("text", PREFERENCES)
def test_a_wish_or_an_aversion_is_a_preference(text: str) -> None:
    assert kind_of(text) == "preference"


@pytest.mark.parametrize("text", INSTRUCTIONS)
def test_how_to_act_is_an_instruction(text: str) -> None:
    assert kind_of(text) == "instruction"


@pytest.mark.parametrize("text", FACTS, ids=[text[:40] or "nothing" for text in FACTS])
def test_everything_else_is_a_fact(text: str) -> None:
    assert kind_of(text) == "fact"


def test_the_automaton_that_looks_first_misses_nothing() -> None:
    """It may let a text through that is a fact; what it stops no pattern would match."""
    chance = random.Random(7)
    words = sorted(set(re.findall(r"[A-Za-z']+|\\x1c", kinds._expression())))
    begins = (
        "I ",
        "my ",
        "Alice ",
        "Please ",
        "You must ",
        "never ",
        "Don't ",
        "ich ",
        "je ",
        "yo ",
    )
    matched = 0
    for _ in range(4000):
        chosen = " ".join(chance.choices(words, k=chance.randint(1, 6)))
        text = (
            chance.choice(begins) + chosen + chance.choice(("", ".", " \v", "\x1c x", ", not now"))
        )
        if kinds._pattern().match(text):
            matched += 1
            assert kinds._prefilter().Match(text.encode()), text
    assert matched > 200
