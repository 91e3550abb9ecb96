"""recall: what is found, in which order, within which limits, and what is never shown."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import EmbedderError, Frozen, InvalidRequest, NotFound
from scrubjay.model.memory import Kind
from scrubjay.model.origin import Origin
from scrubjay.model.requests import AGENT, Amend, FreezeRequest, Get, Recall, Restore
from scrubjay.model.results import INJECTED
from scrubjay.model.rows import Freeze
from scrubjay.model.scope import Scope
from scrubjay.ports import Floats
from scrubjay.testing.clock import FakeClock
from scrubjay.testing.embedder_contract import FakeEmbedder
from tests.support.engines import MemoryHome
from tests.unit.engine.asking import EAGER, UNKEPT, ask, fill, said
from tests.unit.engine.scene import (
    ALICE,
    BOB,
    LONG,
    contents,
    flip_cell,
    forget,
    retain,
    rows,
    supersede,
)

LANGUAGES = Path(__file__).parents[2] / "languages"
FACTS = LANGUAGES / "english_facts.toml"
CHITCHAT = LANGUAGES / "chitchat.txt"
MONDAY = datetime(2025, 6, 2, tzinfo=UTC)
TUESDAY = MONDAY + timedelta(days=1)
CAROL = Scope("local", "carol")
QUESTION = "What does she drink with breakfast?"


# -- what is found -----------------------------------------------------------------------------


def test_the_memory_that_answers_comes_first(engine: Kernel) -> None:
    fill(engine, 20)
    retain(engine, "At breakfast she drinks green tea.")
    assert said(engine, QUESTION)[0] == "At breakfast she drinks green tea."


@pytest.mark.parametrize("query", [QUESTION, "What was last winter, in May 2024 or yesterday?"])
def test_an_empty_scope_answers_with_nothing(engine: Kernel, query: str) -> None:
    engine.open(ALICE)
    answer = ask(engine, query, asked_at=MONDAY)
    assert (len(answer), answer.degraded) == (0, ())


def test_no_more_than_the_limit_come_back(engine: Kernel) -> None:
    fill(engine, 12)
    assert len(ask(engine, "note", limit=5)) == 5
    assert len(ask(engine, "note", limit=1)) == 1


def test_scores_are_shares_that_never_rise_and_their_parts_sum_to_them(engine: Kernel) -> None:
    fill(engine, 30)
    retain(engine, "Please always answer on amber in short sentences.", kind=Kind.INSTRUCTION)
    hits = ask(engine, "amber and birch, please", limit=20).hits
    scores = [hit.score for hit in hits]
    assert len(scores) == 20
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    for hit in hits:
        assert sum(hit.why.values()) == pytest.approx(hit.score, abs=1e-9)


def test_a_hit_carries_the_memory_as_it_is_now(home: MemoryHome, engine: Kernel) -> None:
    tea = retain(engine, "green tea")
    assert not ask(engine, "tea")[0].memory.pinned
    home.engine().amend(ALICE, Amend(tea, pinned=True))
    (hit,) = ask(engine, "tea")
    assert hit.memory == engine.get(ALICE, Get(tea))
    assert hit.memory.pinned
    assert hit.scope == ALICE


def test_what_another_engine_wrote_is_found_at_once(home: MemoryHome, engine: Kernel) -> None:
    fill(engine, 5)
    ask(engine, "note")
    retain(home.engine(), "The heron sleeps in the reeds.")
    assert said(engine, "heron in the reeds")[0] == "The heron sleeps in the reeds."


def test_long_memories_are_found_by_their_last_word(engine: Kernel) -> None:
    fill(engine, 3)
    retain(engine, LONG[: 30 * 1024] + " quagga")
    assert said(engine, "quagga")[0].endswith("quagga")


ODD_QUERIES = (
    "?!...", "don't", "C++", "*", '"', '"unclosed', "a" * 100_000, "tea " * 25_000, "🙂", "👩‍👩‍👧",
    "the", "the of and", "NEAR(tea)", "tea AND", "-tea", "col:tea", "\\", "%", "(",
    "tea\x00tea", "\u202etea", "2026-13-45", "in 99999 years", "last week of year 1", "茶",
    "\n\t ?", "What was 99999 years ago?", "in the year 0001",
)  # fmt: skip


@pytest.mark.parametrize("query", ODD_QUERIES, ids=range(len(ODD_QUERIES)))
def test_no_query_is_an_error(engine: Kernel, query: str) -> None:
    retain(engine, "green tea 🙂")
    retain(engine, "We write it in C++ and don't look back.")
    assert len(ask(engine, query)) <= 2


@pytest.mark.parametrize(
    "moment",
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
    ids=["first", "last"],
)
def test_a_memory_of_the_first_or_last_moment_there_is_can_be_recalled(
    engine: Kernel, moment: datetime
) -> None:
    retain(engine, "green tea", said_at=moment)
    retain(engine, "black tea")
    assert set(said(engine, "Which tea did we have last week?")) == {"green tea", "black tea"}
    assert len(ask(engine, "tea yesterday", asked_at=moment)) == 2


# -- filters -----------------------------------------------------------------------------------


def test_only_the_kinds_asked_for_are_found(engine: Kernel) -> None:
    retain(engine, "tea as a fact")
    retain(engine, "tea as a wish", kind=Kind.PREFERENCE)
    retain(engine, "tea as a rule", kind=Kind.INSTRUCTION)
    kinds = frozenset({Kind.PREFERENCE, Kind.INSTRUCTION})
    assert set(said(engine, "tea", kinds=kinds)) == {"tea as a wish", "tea as a rule"}


def test_only_memories_with_all_the_tags_are_found(engine: Kernel) -> None:
    retain(engine, "tea one", tags=("hot",))
    retain(engine, "tea two", tags=("hot", "green"))
    assert said(engine, "tea", tags=frozenset({"hot", "green"})) == ["tea two"]
    assert said(engine, "tea", tags=frozenset({"cold"})) == []


def test_only_the_session_asked_for_is_found(engine: Kernel) -> None:
    retain(engine, "tea one", session="s1")
    retain(engine, "tea two", session="s2")
    retain(engine, "tea three")
    assert said(engine, "tea", session="s2") == ["tea two"]
    assert said(engine, "tea", session="s3") == []


def test_since_takes_its_moment_in_and_before_does_not(engine: Kernel) -> None:
    retain(engine, "tea on monday", said_at=MONDAY)
    retain(engine, "tea on tuesday", said_at=TUESDAY)
    assert said(engine, "tea", since=TUESDAY) == ["tea on tuesday"]
    assert said(engine, "tea", before=TUESDAY) == ["tea on monday"]
    assert said(engine, "tea", since=MONDAY, before=MONDAY) == []


def test_superseded_memories_are_out_of_sight_unless_asked_for(engine: Kernel) -> None:
    supersede(engine, retain(engine, "tea, green"), "tea, black")
    assert said(engine, "tea") == ["tea, black"]
    assert set(said(engine, "tea", superseded=True)) == {"tea, green", "tea, black"}


def test_as_of_finds_what_was_current_then(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, "tea, green")
    then = home.clock.now()
    supersede(engine, old, "tea, black")
    retain(engine, "tea, later")
    assert said(engine, "tea", as_of=then) == ["tea, green"]


def test_expired_memories_are_not_found(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "tea", expires_at=home.clock.now() + timedelta(hours=1))
    assert said(engine, "tea") == ["tea"]
    home.clock.advance(days=1)
    assert said(engine, "tea") == []


@pytest.mark.parametrize("policy", [Policy(), EAGER], ids=["rows", "segments"])
def test_filters_find_what_browse_shows(home: MemoryHome, policy: Policy) -> None:
    """The filter is one: whether it runs over columns or over memories."""
    engine = home.engine(policy)
    for number, kind in enumerate(Kind):
        fields: dict[str, Any] = {"tags": ("even",)} if number % 2 == 0 else {"session": "odd"}
        fields |= {"said_at": MONDAY + timedelta(days=number)}
        retain(engine, f"tea {number}", kind=kind, **fields)
    supersede(engine, retain(engine, "tea old"), "tea new")
    ask(engine, "tea")
    home.clock.advance(days=2)
    filters: list[dict[str, Any]] = [
        {}, {"tags": frozenset({"even"})}, {"session": "odd"}, {"since": TUESDAY},
        {"before": TUESDAY}, {"superseded": True}, {"kinds": frozenset({Kind.FACT, Kind.EPISODE})},
        {"as_of": MONDAY}, {"as_of": home.clock.now()},
    ]  # fmt: skip
    for chosen in filters:
        expected = set(contents(engine, **chosen))
        assert set(said(engine, "tea", limit=100, **chosen)) == expected, chosen


# -- what is never shown -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(), EAGER], ids=["rows", "segments"])
def test_what_was_forgotten_is_not_shown_also_by_an_engine_that_slept(
    home: MemoryHome, policy: Policy
) -> None:
    sleeper, other = home.engine(policy), home.engine(policy)
    secret = retain(other, "the spare key is under the third pot")
    retain(other, "green tea")
    assert said(sleeper, "spare key")[0].startswith("the spare key")
    forget(other, secret)
    assert said(sleeper, "spare key") == ["green tea"]
    assert said(other, "spare key") == ["green tea"]


def test_what_was_forgotten_counts_for_nothing_any_more(home: MemoryHome) -> None:
    """Neither its words nor its place in the conversation change what is found without it."""
    slept, other = home.engine(EAGER), home.engine()
    for turn in range(6):
        retain(other, f"turn {turn} on tea and coffee", session="s", position=2 * turn)
    gone = retain(other, "tea tea tea in the garden", session="s", position=5)
    ask(slept, "tea in the garden")
    forget(other, gone)
    open_one, fresh = ask(slept, "tea in the garden"), ask(home.engine(), "tea in the garden")
    assert [hit.memory.id for hit in open_one] == [hit.memory.id for hit in fresh]
    assert [hit.score for hit in open_one] == pytest.approx([hit.score for hit in fresh], abs=1e-5)


def test_what_is_erased_after_ranking_is_left_out(home: MemoryHome, engine: Kernel) -> None:
    """A row is read again before it is shown, so that an index that is behind shows nothing old."""
    secret = retain(engine, "the spare key")
    retain(engine, "green tea")
    ask(engine, "key")
    indexed = engine._indexed(ALICE)
    forget(home.engine(), secret)
    assert indexed.index is not None
    indexed.index.seq = engine.head(ALICE).memory.seq  # it believes it is up to date
    assert said(engine, "the spare key") == ["green tea"]


def test_what_changed_after_ranking_is_filtered_again(home: MemoryHome, engine: Kernel) -> None:
    old = retain(engine, "tea, green")
    retain(engine, "milk")
    ask(engine, "tea")
    indexed = engine._indexed(ALICE)
    supersede(home.engine(), old, "tea, black")
    assert indexed.index is not None
    indexed.index.seq = engine.head(ALICE).memory.seq  # it believes it is up to date
    assert said(engine, "tea") == ["milk"]


def test_frozen_all_refuses_and_frozen_writes_does_not(engine: Kernel) -> None:
    retain(engine, "green tea")
    engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    assert said(engine, "tea") == ["green tea"]
    engine.freeze(ALICE, FreezeRequest(Freeze.ALL))
    with pytest.raises(Frozen):
        ask(engine, "tea")


def test_a_freeze_by_another_engine_holds_at_once(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "green tea")
    ask(engine, "tea")
    home.engine().freeze(ALICE, FreezeRequest(Freeze.ALL))
    with pytest.raises(Frozen):
        ask(engine, "tea")


@pytest.mark.parametrize("policy", [UNKEPT, replace(EAGER, kept_bytes=0)], ids=["rows", "segments"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_damaged_memory_is_left_out_and_named(
    home: MemoryHome, policy: Policy, when: str
) -> None:
    """Whether it was damaged before the index was made or only after."""
    engine = home.engine(policy)
    retain(engine, "green tea")
    retain(engine, "black tea")
    if when == "after":
        assert len(ask(engine, "tea")) == 2
    flip_cell(home, 1)
    for _ in range(2):
        answer = ask(engine, "tea")
        assert [hit.memory.content for hit in answer] == ["black tea"]
        assert answer.degraded == ("1 memories could not be opened; run verify.",)


def test_a_damaged_memory_that_was_forgotten_is_no_longer_named(home: MemoryHome) -> None:
    engine = home.engine()
    damaged = retain(engine, "green tea")
    retain(engine, "black tea")
    flip_cell(home, 1)
    assert ask(engine, "tea").degraded
    forget(engine, damaged)
    assert ask(engine, "tea").degraded == ()


# -- several scopes ----------------------------------------------------------------------------


def test_several_scopes_are_ranked_together_and_hits_say_where_they_were(engine: Kernel) -> None:
    fill(engine, 5)
    fill(engine, 5, scope=BOB)
    retain(engine, "alice drinks green tea")
    retain(engine, "bob drinks green tea too", scope=BOB)
    hits = ask(engine, "who drinks green tea", scopes=(BOB, ALICE)).hits
    assert {(hit.memory.content, hit.scope) for hit in hits[:2]} == {
        ("alice drinks green tea", ALICE),
        ("bob drinks green tea too", BOB),
    }
    for hit in hits:
        assert engine.get(hit.scope, Get(hit.memory.id)) == hit.memory


def test_a_filter_holds_in_every_scope(engine: Kernel) -> None:
    for scope in (ALICE, BOB):
        retain(engine, f"tea of {scope.owner}", scope=scope, tags=("hot",))
        retain(engine, f"cold tea of {scope.owner}", scope=scope)
    found = said(engine, "tea", scopes=(BOB,), tags=frozenset({"hot"}))
    assert set(found) == {"tea of alice", "tea of bob"}


def test_sessions_of_one_name_in_two_scopes_are_two_sessions(engine: Kernel) -> None:
    """What was said in another scope is no neighbor, though both call their session the same."""
    retain(engine, "Did the garnet heron fly?", session="s", position=1, scope=BOB, speaker="Bob")
    retain(engine, "Yes.", session="s", position=2, speaker="Ann")
    fill(engine, 8)
    alone = {hit.memory.content: hit.why for hit in ask(engine, "garnet heron", limit=100)}
    both = ask(engine, "garnet heron", limit=100, scopes=(BOB,))
    (yes,) = [hit for hit in both if hit.memory.content == "Yes."]
    for part in ("answers", "following", "nearby"):
        assert yes.why.get(part, 0) == alone["Yes."].get(part, 0)


def test_a_frozen_scope_among_several_refuses(engine: Kernel) -> None:
    retain(engine, "tea")
    retain(engine, "tea", scope=BOB)
    engine.freeze(BOB, FreezeRequest(Freeze.ALL))
    with pytest.raises(Frozen):
        ask(engine, "tea", scopes=(BOB,))


# -- budgets -----------------------------------------------------------------------------------


def test_bytes_are_kept_to_and_a_short_one_takes_the_place_of_a_long_one(engine: Kernel) -> None:
    retain(engine, "tea " * 50 + "ä")
    retain(engine, "tea, short")
    hits = ask(engine, "tea", max_bytes=40).hits
    assert [hit.memory.content for hit in hits] == ["tea, short"]
    assert said(engine, "tea", max_bytes=3) == []


def test_tokens_are_kept_to(engine: Kernel) -> None:
    for number in range(10):
        retain(engine, f"tea {number}".ljust(40, "."))
    assert len(ask(engine, "tea", max_tokens=30)) == 3
    assert len(ask(engine, "tea", max_tokens=29)) == 2


def test_one_untrusted_source_fills_at_most_its_share(engine: Kernel) -> None:
    for number in range(10):
        retain(engine, f"tea from the web {number} ".ljust(100, "w"), origin=Origin.WEB)
        retain(engine, f"tea from her {number} ".ljust(50, "u"))
    hits = ask(engine, "tea web", limit=10).hits
    total = sum(len(hit.memory.content) for hit in hits)
    web = sum(len(hit.memory.content) for hit in hits if hit.memory.origin is Origin.WEB)
    assert 0 < web <= 0.3 * total


# -- small scopes -------------------------------------------------------------------------------


def test_a_statement_comes_before_the_question_asked_before_and_a_standing_wish(
    home: MemoryHome,
) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    turns = (
        "I live in Paris, near the canal.",
        "Always answer in one sentence.",
        "What is the weather like today?",
        "Where do I live?",
    )
    for position, turn in enumerate(turns):
        retain(engine, turn, session="s", speaker="user", position=position, kind=Kind.EPISODE)
    found = said(engine, "Where do I live?")
    assert found[0] == turns[0]
    assert found[-1] == turns[-1]


def test_of_two_questions_in_one_both_are_answered_first(engine: Kernel) -> None:
    for number in range(12):
        retain(engine, f"Anna works on chapter {number} of her book about gardens")
    dentist = "The dentist is called Dr. Wu"
    retain(engine, dentist)
    works = "Anna works at the botanic garden"
    retain(engine, works)
    query = "At which garden does Anna work? And what is the name of the dentist?"
    assert dentist in said(engine, query)[:2]


def test_a_wish_told_as_a_fact_comes_first_where_advice_is_asked(home: MemoryHome) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    for fact in ("Ben runs a restaurant in Rome", "Rome was rainy", "Mia visited Rome in May"):
        retain(engine, fact, kind=Kind.FACT)
    wish = "I can't eat gluten, so most restaurants are a problem"
    retain(engine, wish, kind=Kind.FACT)
    assert said(engine, "Can you recommend a restaurant for tonight?")[0] == wish
    assert said(engine, "Who runs a restaurant in Rome?")[0] == "Ben runs a restaurant in Rome"


NINE = (
    "Always answer in one sentence.",
    "I live in Lyon, close to the river.",
    "Where do I live?",
    "What should I cook tonight?",
    "My sister Ana is a nurse.",
    "I moved to Nantes last month.",
    "Do I live near a lake?",
    "How is the weather?",
    "Please never use emojis.",
)


@pytest.mark.parametrize("session", ["s", None])
def test_of_nine_turns_the_present_address_comes_first_and_then_the_old_one(
    engine: Kernel, session: str | None
) -> None:
    for number, turn in enumerate(NINE):
        spoken: dict[str, Any] = (
            {"session": session, "position": number, "speaker": "user"} if session else {}
        )
        retain(engine, turn, said_at=MONDAY + timedelta(days=number), **spoken)
    found = said(engine, "Where do I live?", asked_at=MONDAY + timedelta(days=30))
    assert found[:2] == [NINE[5], NINE[1]]


def test_a_turn_that_only_asks_never_comes_before_one_that_states(engine: Kernel) -> None:
    for number, turn in enumerate(NINE):
        retain(engine, turn, session="s", position=number, speaker="user", kind=Kind.EPISODE)
    for question in ("Where do I live?", "What is my sister's job?", "Is the weather nice?"):
        asks = [turn.endswith("?") for turn in said(engine, question)]
        assert asks == sorted(asks), question


@pytest.mark.parametrize("later", [timedelta(0), timedelta(days=40)])
def test_of_two_statements_about_one_thing_the_later_one_comes_first(
    engine: Kernel, later: timedelta
) -> None:
    facts = ("My phone number is 555-1234.", "I bought a bike.", "My phone number is 555-9876.")
    for number, fact in enumerate(facts):
        retain(engine, fact, said_at=MONDAY + number * later)
    assert said(engine, "What is my phone number?")[:2] == [facts[2], facts[0]]


ENDINGS = {
    "Where do I work?": ("I work at Acme", "I left Acme and joined Initech"),
    "Where does Bob work?": ("Bob works at Acme", "Bob no longer works for Acme, he is a gardener"),
    "Which car do I drive?": ("I drive a blue Volvo", "I sold the Volvo in spring"),
    "Wo wohne ich?": ("Ich wohne in Köln", "Ich bin von Köln nach Bonn umgezogen"),
}


@pytest.mark.parametrize("question", ENDINGS)
@pytest.mark.parametrize("kind", [Kind.FACT, Kind.EPISODE])
def test_what_ends_a_state_comes_before_what_told_of_it(
    home: MemoryHome, question: str, kind: Kind
) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    before, after = ENDINGS[question]
    facts = (before, "I have a cat named Tom", "My sister lives in Ghent", after, "I like tea")
    for number, fact in enumerate(facts):
        retain(engine, fact, said_at=MONDAY + timedelta(days=number), kind=kind)
    assert said(engine, question, limit=2) == [after, before]
    scores = [hit.score for hit in ask(engine, question).hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("question", "now", "coming"),
    [
        ("Where do I live?", "I live in Cologne", "We are moving to Bonn in January"),
        ("Where does Bob work?", "Bob works at Acme", "Bob will work at Initech from May on"),
    ],
)
def test_what_is_still_to_come_is_not_how_it_is_now(
    home: MemoryHome, question: str, now: str, coming: str
) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    for number, fact in enumerate((now, "I have a cat named Tom", coming, "I like tea")):
        retain(engine, fact, said_at=MONDAY + timedelta(days=number))
    found = ask(engine, question, limit=2).hits
    assert [hit.memory.content for hit in found] == [now, coming]
    assert found[1].score == pytest.approx(sum(found[1].why.values()))


def test_an_ending_of_another_thing_or_person_does_not_come_first(home: MemoryHome) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    facts = ("I work at Acme", "I left the gym in May", "My friend Bob left Acme", "Ann left Acme")
    for number, fact in enumerate(facts):
        retain(engine, fact, said_at=MONDAY + timedelta(days=number))
    assert said(engine, "Where do I work?")[0] in {facts[0], facts[2]}
    assert said(engine, "Where did I work when I met Bob?")[-1] != facts[0]


def test_a_short_question_stands_right_behind_the_short_reply_it_completes(
    home: MemoryHome,
) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    retain(engine, "Ann's dentist is Doctor Wu")
    turns = ("I am learning to play the cello.", "Since when?", "Since May.", "Really?", "Yes!")
    for number, turn in enumerate(turns):
        speaker = ("Ann", "Ben")[number % 2]
        retain(engine, turn, session="s", position=number, speaker=speaker, kind=Kind.EPISODE)
    found = said(engine, "When did Ann begin to play the cello?")
    assert found[:3] == [turns[0], turns[2], turns[1]]


def test_a_question_for_a_kind_finds_its_members_where_no_vector_helps(engine: Kernel) -> None:
    facts = ("The window is open", "Ann has a cat", "Ann has a cello lesson on Monday")
    for fact in facts:
        retain(engine, fact)
    assert said(engine, "Which instruments does Ann play?", limit=1) == [facts[2]]
    assert said(engine, "Any instruments?", limit=1) == [facts[2]]


def test_what_stands_beside_the_answer_does_not_count_where_it_has_nothing_to_do_with_it(
    engine: Kernel,
) -> None:
    turns = ("The boiler is serviced by Hansen.", "Bananas!", "Ask about the heating in winter.")
    for number, turn in enumerate(turns):
        retain(engine, turn, session="s", position=number, speaker="user", kind=Kind.EPISODE)
    retain(engine, "Hansen also repairs heating pumps.", session="t", kind=Kind.EPISODE)
    assert said(engine, "Who looks after the boiler?")[-1] == "Bananas!"


def test_scopes_searched_together_are_weighed_together(engine: Kernel) -> None:
    for number in range(30):
        retain(engine, f"The green tea of cup {number} was bitter.")
    retain(engine, "Bob drinks green tea with honey at breakfast.")
    retain(engine, "The tea house is closed.", scope=BOB)
    found = said(engine, "Who drinks tea with honey at breakfast?", scopes=(BOB,))
    assert found[0] == "Bob drinks green tea with honey at breakfast."


# -- nothing ------------------------------------------------------------------------------------


def test_small_talk_is_answered_with_nothing_where_relevance_is_asked_for(home: MemoryHome) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    facts = tomllib.loads(FACTS.read_text("utf-8"))["facts"]
    for fact in facts.values():
        retain(engine, fact)
    chitchat = CHITCHAT.read_text("utf-8").splitlines()
    assert len(set(chitchat)) >= 100
    heard = [text for text in chitchat if len(ask(engine, text, min_relevance=INJECTED))]
    assert len(heard) <= 0.05 * len(chitchat), heard
    for hit in ask(engine, "anything at all about the dog?"):
        assert 0 <= hit.relevance <= 1


def test_a_question_without_any_topic_is_less_relevant_unless_it_names_a_time(
    home: MemoryHome,
) -> None:
    home.embedder = StaticEmbedder(home.clock)
    engine = home.engine()
    retain(engine, "I get milk and bread there.", kind=Kind.EPISODE, speaker="Ann", session="s")
    retain(engine, "I exit the office at five.", kind=Kind.EPISODE, speaker="Ann", session="s")

    def relevance(question: str) -> float:
        return max(hit.relevance for hit in ask(engine, question).hits)

    assert relevance("I don't get it") < INJECTED
    assert relevance("What did I do today?") > relevance("What did I do?")
    assert relevance("how do I exit vim") < relevance("when do I exit")


def test_small_talk_is_answered_with_nothing_by_three_scopes_at_once(engine: Kernel) -> None:
    for place, fact in enumerate(tomllib.loads(FACTS.read_text("utf-8"))["facts"].values()):
        retain(engine, fact, scope=(ALICE, BOB, CAROL)[place % 3])
    chitchat = CHITCHAT.read_text("utf-8").splitlines()
    scopes = (BOB, CAROL)
    heard = [t for t in chitchat if len(ask(engine, t, min_relevance=INJECTED, scopes=scopes))]
    assert len(heard) <= 0.05 * len(chitchat), heard


def test_a_question_that_names_somebody_here_is_more_likely_answered(engine: Kernel) -> None:
    for position, turn in enumerate(("I moved to the coast.", "My boat needs new sails.")):
        retain(engine, turn, speaker="Maria", session="s", position=position, kind=Kind.EPISODE)
    named, foreign = (
        ask(engine, f"How does {name} spend the evenings?").hits[0].relevance
        for name in ("Maria", "Gregor")
    )
    assert named > foreign


def test_what_nobody_vouches_for_is_never_injected_however_it_matches(engine: Kernel) -> None:
    fill(engine, 20)
    stuffed = f"{QUESTION} what does she drink with breakfast breakfast drink"
    retain(engine, stuffed, origin=Origin.WEB)
    assert stuffed in said(engine, QUESTION, limit=20)
    assert stuffed not in said(engine, QUESTION, limit=20, min_relevance=INJECTED)
    with pytest.raises(InvalidRequest):
        ask(engine, QUESTION, min_relevance=2)


# -- when ---------------------------------------------------------------------------------------


def test_yesterday_is_counted_from_now_and_outweighs_a_common_word(home: MemoryHome) -> None:
    engine = home.engine()
    now = home.clock.now()
    for days, content in (
        (200, "Work was long, I did the taxes."),
        (1, "Met Ann for lunch by the river."),
        (40, "I did a lot of work in the garden."),
    ):
        retain(engine, content, said_at=now - timedelta(days=days))
    for question in ("What did I do yesterday?", "What did I do at work yesterday?"):
        assert said(engine, question)[0] == "Met Ann for lunch by the river."


def test_a_day_is_that_of_the_callers_time_zone(home: MemoryHome) -> None:
    engine = home.engine()
    asked = datetime(2025, 6, 3, 2, tzinfo=UTC)  # in New York it is still Monday
    retain(engine, "Painted the fence.", said_at=asked - timedelta(hours=20))
    retain(engine, "Painted the door.", said_at=asked - timedelta(hours=40))
    retain(engine, "Painted the shed.", said_at=asked - timedelta(hours=90))
    query = "What did I paint yesterday?"
    assert said(engine, query, asked_at=asked)[0] == "Painted the fence."
    here = said(engine, query, asked_at=asked, timezone="America/New_York")
    assert here[0] == "Painted the door."
    with pytest.raises(InvalidRequest):
        ask(engine, query, timezone="Mars/Olympus")


# -- deadlines and embedders -------------------------------------------------------------------


def test_a_late_embedder_costs_only_its_part(home: MemoryHome) -> None:
    home.embedder = late = FakeEmbedder(home.clock, costly=True)
    engine = home.engine()
    retain(engine, "green tea")
    late.seconds = 5
    answer = ask(engine, "tea", seconds=2)
    assert [hit.memory.content for hit in answer] == ["green tea"]
    assert answer.degraded == ("By words alone: The embedder did not answer in time.",)
    assert ask(engine, "tea", seconds=20).degraded == ()


class _Waiting(FakeEmbedder):
    """Embeds one question only once it is told to."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.asked, self.told = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], *, deadline: float | None = None) -> Floats:
        if "slowly" in texts:
            self.asked.set()
            assert self.told.wait(30)
        return super().embed(texts, deadline=deadline)


def test_a_question_is_answered_while_another_one_is_still_at_it(home: MemoryHome) -> None:
    home.embedder = waiting = _Waiting(home.clock)
    engine = home.engine()
    retain(engine, "green tea")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, engine, "slowly")
        assert waiting.asked.wait(30)
        retain(engine, "black tea")
        assert len(said(engine, "tea")) == 2
        waiting.told.set()
        assert len(slow.result(30)) == 1, "it answers from what was there when it was asked"


@pytest.mark.parametrize("costly", [True, False])
def test_an_embedder_that_fails_costs_only_its_part(home: MemoryHome, costly: bool) -> None:
    home.embedder = broken = FakeEmbedder(home.clock, costly=costly)
    broken.failure = EmbedderError("It is out of order.")
    engine = home.engine()
    retain(engine, "green tea")
    answer = ask(engine, "tea")
    assert [hit.memory.content for hit in answer] == ["green tea"]
    assert "By words alone: It is out of order." in answer.degraded


def test_memories_a_failing_embedder_left_without_a_vector_get_theirs_in_the_next_process(
    home: MemoryHome,
) -> None:
    """What could not be embedded is written to no segment, where it would stay without."""
    home.embedder = embedder = FakeEmbedder(home.clock, costly=False)
    embedder.failure = EmbedderError("It is out of order.")
    engine = home.engine(EAGER)
    retain(engine, "green tea")
    assert len(ask(engine, "tea")) == 1
    embedder.failure = None
    assert len(ask(engine, "tea").degraded) == 1
    fresh = home.engine(EAGER)
    assert ask(fresh, "tea").degraded == ()
    assert embedder.texts.count("green tea") == 1


def test_a_deadline_while_catching_up_names_what_is_left(home: MemoryHome, engine: Kernel) -> None:
    fill(engine, 1_100)
    answer = ask(engine, "note1 note1090", seconds=0.001)
    assert answer.degraded[0] == "76 changes were not looked at in the time allowed."
    assert ask(engine, "note").degraded == ()


def test_short_deadlines_get_through_a_long_scope_in_the_end(home: MemoryHome) -> None:
    """Also one with erasures, and one that was cleaned up since: no recall starts all over."""
    engine = home.engine()
    ids = fill(engine, 2_100)
    forget(engine, ids[0], ids[1_500])
    home.clock.advance(days=31)
    engine.purge(ALICE)
    fill(engine, 50, first=2_100)
    forget(engine, ids[2])
    impatient = home.engine(Policy(segment_rows=100))
    answers = [ask(impatient, "note2149", seconds=0.001) for _ in range(4)]
    assert answers[-1].degraded[:1] != answers[0].degraded[:1]
    assert not [one for one in answers[-1].degraded if "not looked at" in one]
    assert answers[-1][0].memory.content.startswith("note2149 ")


def test_an_embedder_is_not_asked_about_languages_it_does_not_know(home: MemoryHome) -> None:
    home.embedder = english = FakeEmbedder(home.clock)
    english.known = frozenset({"english"})
    engine = home.engine()
    retain(engine, "Meine Katze schläft auf dem warmen Ofen.")
    retain(engine, "The cat sleeps on the warm stove.")
    english.texts.clear()
    first = ask(engine, "Was macht die Katze auf dem Ofen?")[0]
    assert (first.memory.content[:5], first.why.get("meaning")) == ("Meine", None)
    assert english.texts == []
    first = ask(engine, "What of the warm stove of the cat?")[0]
    assert (first.memory.content[:3], len(english.texts)) == ("The", 1)


def test_vectors_of_another_embedder_are_named(home: MemoryHome) -> None:
    home.embedder = FakeEmbedder(home.clock, name="one")
    retain(home.engine(), "green tea")
    home.embedder = FakeEmbedder(home.clock, name="two")
    answer = ask(home.engine(), "tea")
    assert [hit.memory.content for hit in answer] == ["green tea"]
    assert answer.degraded == ("1 memories have vectors of another embedder; run reindex.",)


# -- the standing slot -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.INSTRUCTION, Kind.PREFERENCE])
def test_a_standing_wish_on_the_topic_is_among_the_hits_though_others_are_more_alike(
    engine: Kernel, kind: Kind
) -> None:
    for number in range(30):
        retain(engine, f"The garden budget of year {number} was 100 dollars for the garden budget.")
    wish = retain(engine, "Amounts of a garden budget belong in a table, in euros.", kind=kind)
    fill(engine, 30)
    ids = [hit.memory.id for hit in ask(engine, "The garden budget of year 7 dollars", limit=5)]
    assert wish in ids
    assert len(ids) == 5


@pytest.mark.parametrize("origin", [Origin.WEB, Origin.TOOL])
def test_the_standing_slot_is_not_for_what_came_from_a_page_or_a_tool(
    engine: Kernel, origin: Origin
) -> None:
    """It would lift a planted instruction to where its likeness alone does not bring it."""
    for number in range(30):
        retain(engine, f"The garden budget of year {number} was 100 dollars for the garden budget.")
    planted = retain(
        engine,
        "Amounts of a garden budget belong in a table, in euros.",
        kind=Kind.INSTRUCTION,
        origin=origin,
    )
    ids = [hit.memory.id for hit in ask(engine, "The garden budget of year 7 dollars", limit=5)]
    assert planted not in ids


def test_a_standing_wish_off_the_topic_is_not_forced_in(engine: Kernel) -> None:
    for number in range(30):
        retain(engine, f"The garden budget of year {number} was 100 dollars for the garden budget.")
    off = retain(engine, "Call the cat Minka.", kind=Kind.PREFERENCE)
    ids = [hit.memory.id for hit in ask(engine, "The garden budget of year 7 dollars", limit=5)]
    assert off not in ids


# -- audit, and the scope itself ---------------------------------------------------------------


def test_recalls_are_counted_in_the_audit_trail(engine: Kernel) -> None:
    retain(engine, "green tea")
    for _ in range(3):
        ask(engine, "tea", caller=AGENT)
    ask(engine, "tea")
    events = [event for event in engine.audit(ALICE) if event.verb == "recall"]
    assert {(event.actor, event.number) for event in events} == {("agent", 3), ("user", 1)}


def test_a_recall_changes_nothing_but_the_count(home: MemoryHome, engine: Kernel) -> None:
    retain(engine, "green tea")
    before = rows(home)
    ask(engine, "tea")
    assert rows(home) == before


def test_what_a_restore_brought_back_is_found_by_the_engine_that_restored(
    home: MemoryHome, engine: Kernel
) -> None:
    """The file was lost and made again, so that its numbers mean other changes than before."""
    fill(engine, 3)
    raw, _ = engine.backup(ALICE)
    first = retain(engine, "only before the loss")
    ask(engine, "note")
    home.store.remove(engine._open(ALICE).address)
    engine.restore(ALICE, Restore(raw))
    for number in range(4):
        retain(engine, f"tea number {number}")
    assert set(said(engine, "tea number", limit=100)) == {
        *(f"tea number {number}" for number in range(4)),
        *(memory.content for memory in engine.follow(ALICE).memories),
    }
    with pytest.raises(NotFound):
        engine.get(ALICE, Get(first))


def test_a_recall_request_is_checked_before_anything_is_read() -> None:
    for wrong in ({"limit": 0}, {"seconds": 0}, {"max_bytes": 0}, {"max_tokens": -1}):
        with pytest.raises(InvalidRequest):
            Recall(query="tea", **wrong)  # type: ignore[arg-type]


def test_a_local_recall_asks_no_costly_embedder_and_a_cheap_one_as_ever(home: MemoryHome) -> None:
    for costly in (True, False):
        home.embedder = embedder = FakeEmbedder(home.clock, costly=costly, name=str(costly))
        engine = home.engine()
        retain(engine, "green tea")
        embedder.texts.clear()
        assert "green tea" in said(engine, "Which tea?", local=True)
        assert ("Which tea?" in embedder.texts) is not costly


def test_what_has_a_tag_is_found_in_the_same_search_whatever_it_is_about(engine: Kernel) -> None:
    for number in range(10):
        retain(engine, f"tea of harvest {number}")
    retain(engine, "She fears heights", tags=("salient",))
    assert "She fears heights" not in said(engine, "tea harvest", limit=3)
    found = said(engine, "tea harvest", limit=3, also=frozenset({"salient"}))
    assert (len(found), "She fears heights" in found) == (4, True)
    assert (
        said(engine, "fears heights", limit=3, also=frozenset({"salient"})).count(
            "She fears heights"
        )
        == 1
    )
