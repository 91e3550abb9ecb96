"""The distiller of rules: what people say in so many words, and what says nothing."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from scrubjay.adapters.distillers.rules import SALIENT, RulesDistiller
from scrubjay.model.memory import Kind
from scrubjay.model.turns import Piece, Turn, alike
from scrubjay.testing.distiller_contract import turn

RULES = RulesDistiller()


def statements(user: str, assistant: str = "I see.") -> list[Piece]:
    return list(RULES.distill(turn(user, assistant)))[1:]


def kinds(user: str) -> list[str]:
    return [piece.kind.value for piece in statements(user)]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("I prefer tea over coffee.", "preference"),
        ("I'd rather walk than drive.", "preference"),
        ("I don\u2019t like mushrooms.", "preference"),
        ("My favorite color is green.", "preference"),
        ("My dentist is Dr. Wu.", "fact"),
        ("my wife's birthday is May 3rd", "fact"),
        ("My name is Bob.", "fact"),
        ("I live in Oslo.", "fact"),
        ("I work for a small bank.", "fact"),
        ("I'm allergic to peanuts.", "fact"),
        ("Remember that the gate code changes on Monday.", "fact"),
        ("Call me Sam.", "instruction"),
        ("Don't use emojis.", "instruction"),
        ("Never send mail at night.", "instruction"),
        ("From now on, answer in German.", "instruction"),
        ("Ich bevorzuge Tee.", "preference"),
        ("Meine Schwester heißt Anna.", "fact"),
        ("Ich wohne in Bern.", "fact"),
        ("Ab jetzt antworte bitte kurz.", "instruction"),
        ("Nenn mich Max.", "instruction"),
        ("Je préfère le thé.", "preference"),
        ("Ma sœur s'appelle Anne.", "fact"),
        ("J'habite à Lyon.", "fact"),
        ("Désormais, réponds en français.", "instruction"),
        ("Ne parle pas trop vite.", "instruction"),
        ("Prefiero el té.", "preference"),
        ("Mi hermana se llama Ana.", "fact"),
        ("Vivo en Madrid.", "fact"),
        ("A partir de ahora responde en español.", "instruction"),
        ("No uses emojis.", "instruction"),
        ("我喜欢喝茶。", "preference"),
        ("我的牙医是吴医生。", "fact"),
        ("我住在上海。", "fact"),
        ("以后请用中文回答。", "instruction"),
        ("叫我小李。", "instruction"),
        ("That is wrong, the train leaves at nine.", "correction"),
        ("Eigentlich, der Zug fährt um neun.", "correction"),
    ],
)
def test_a_statement_is_recognized_in_many_languages(said: str, kind: str) -> None:
    assert kinds(said) == [kind]


@pytest.mark.parametrize(
    "said",
    [
        "What is my dentist's name?",
        "If I prefer tea, what should I order?",
        "The dentist of the village is Dr. Wu.",
        "```\nmy name is root\n```\nWhat does this do?",
        "> I prefer tea.\nWho wrote this?",
        "Could you check the weather for me, please?",
        "Don't worry about it.",
        "How do I always get the newest version?",
    ],
)
def test_what_is_asked_supposed_quoted_or_about_others_is_no_statement(said: str) -> None:
    assert statements(said) == []


def test_only_the_users_words_are_searched_for_statements() -> None:
    assert statements("Tell me about yourself, please.", "I prefer tea. My name is Claw.") == []


def test_of_a_pasted_text_only_the_edges_are_the_users_own() -> None:
    pasted = "Summarize this.\n" + "Filler text of some report. " * 200
    middle = "My name is Mallory. " + "More of the report. " * 200
    assert [piece.content for piece in statements(f"{pasted}{middle}I prefer short ones.")] == [
        "User prefers short ones."
    ]


def test_a_correction_of_a_fact_is_about_the_same_thing_as_the_fact() -> None:
    (fact,), (corrected,) = (
        statements("My dentist is Dr. Smith."),
        statements("Actually, my dentist is Dr. Wu."),
    )
    assert (corrected.kind, corrected.slot) == (Kind.FACT, fact.slot)
    assert corrected.importance > fact.importance


def test_a_statement_made_twice_in_a_turn_counts_once() -> None:
    assert len(statements("I prefer tea. Really: I prefer tea. I prefer tea!")) == 1


def test_a_turn_yields_at_most_a_handful_of_statements() -> None:
    assert len(statements(" ".join(f"I like thing number {n}." for n in range(50)))) == 8


def test_an_episode_holds_both_sides_and_is_cut_when_they_are_long() -> None:
    (episode, *_) = RULES.distill(turn("Where is Rome?", "In Italy."))
    assert episode.content == "Where is Rome?\n→ In Italy."
    (episode, *_) = RULES.distill(turn("long " * 5_000, "answer " * 5_000))
    assert len(episode.content) < 13_000


@pytest.mark.parametrize(
    "said",
    [
        "I am so upset about this.",
        "My dog died yesterday.",
        "Das macht mich traurig.",
        "J'ai peur de l'avion.",
        "Tengo miedo de volar.",
        "我很难过。",
        "We decided to go with the blue one.",
    ],
)
def test_what_moves_somebody_or_is_decided_stays_salient(said: str) -> None:
    episode = RULES.distill(turn(said))[0]
    assert episode.importance > 0.5
    assert SALIENT in episode.tags


@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("ok", "Great!"),
        ("Thanks a lot!", "You're welcome."),
        ("danke", "Gern!"),
        ("merci", ""),
        ("谢谢", "不客气"),
        ("👍", "👍"),
        ("Heartbeat 12:05: read HEARTBEAT.md, say HEARTBEAT_OK if nothing is due.", "HEARTBEAT_OK"),
        ("[cron] every five minutes", "Nothing to report."),
        ('{"tool": "ls", "result": []}', '{"next": "none"}'),
        ("", ""),
    ],
)  # fmt: skip
def test_courtesies_heartbeats_and_the_chatter_of_tools_are_trivial(
    user: str, assistant: str
) -> None:
    assert RULES.distill(turn(user, assistant)) == ()


def test_a_heartbeat_that_found_something_is_not_trivial() -> None:
    alarm = "The cold store in hall three is at nine degrees and rising; I called the technician."
    assert RULES.distill(turn("heartbeat", alarm))


@pytest.mark.parametrize(
    "said",
    [
        "My heartbeat monitor is a Polar H10.",
        "We decided that the health check must answer 204.",
        "Heartbeat monitors cost a lot, which one is good?",
        "The cron job of last night was late.",
        "I am so upset about the heartbeat!",
        "[urgent] please call mom [thanks]",
        "{curly} remarks about {nothing}",
        "<b>Hello</b> please call mom <b>thanks</b>",
    ],
)
def test_who_speaks_of_clockwork_or_in_brackets_is_not_taken_for_a_machine(said: str) -> None:
    assert RULES.distill(turn(said, "Noted."))


@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("Heartbeat", "HEARTBEAT_OK"),
        ("[heartbeat 12:05] check the mail", "No new messages. All systems normal."),
        ("Read HEARTBEAT.md if it exists. Do not repeat old tasks. If nothing needs attention, "
         "reply HEARTBEAT_OK.", "HEARTBEAT_OK"),
        ("health check 2026-03-01 12:05 UTC", "Status: OK"),
        ('<result id="1"><result>none</result></result>', "Done."),
        ('[{"text": "I prefer tea."}]', "Done."),
    ],
)  # fmt: skip
def test_clockwork_and_tools_themselves_are_trivial(user: str, assistant: str) -> None:
    assert RULES.distill(turn(user, assistant)) == ()


def test_a_short_alarm_of_a_heartbeat_is_not_trivial() -> None:
    assert RULES.distill(turn("heartbeat", "The backup failed."))
    assert RULES.distill(turn("heartbeat", "Nothing to report, but the backup failed."))


def test_a_long_text_is_read_at_its_edges_only() -> None:
    filler = "Nothing of note in this line of the report.\n" * 3_000
    moved = "I am so upset about this.\n"
    assert RULES.distill(turn(f"{filler}{moved}{filler}"))[0].tags == ()
    assert RULES.distill(turn(f"{filler}{moved}"))[0].tags == (SALIENT,)
    assert statements(f"My name is Bob.\n{filler}{filler}I prefer tea.") != []


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_the_end_of_long_code_is_code(fence: str) -> None:
    code = "x = 1\n" * 10_000 + "my name is root\n"
    found = statements(f"What is wrong?\n{fence}\n{code}{fence}\nI prefer short answers.")
    assert [piece.content for piece in found] == ["User prefers short answers."]


def test_megabytes_of_anything_are_distilled_in_no_long_time() -> None:
    """In the square of the length, or word by word, each of these would run for long."""
    for unit in ("{", "<a ", "<a></a>", "[[", "```", "A. ", " ", "I am so upset! ", "> x\n"):
        said = unit * (4_000_000 // len(unit))
        RULES.distill(turn(said, said))
        RULES.distill(turn(f"<a>{said}</a>", said))
        RULES.words(turn(said, said))


def test_turns_that_differ_in_little_are_alike_and_others_are_not() -> None:
    report = turn("Please read me the morning report.", "It rains all day long in the valley.")
    again = turn("Please read me the morning report!", "It rains all day long in the valley.")
    other = turn("Please read me the evening report.", "The sun shines again over the hills.")
    assert alike(RULES.words(report), RULES.words(again))
    assert not alike(RULES.words(report), RULES.words(other))


def test_a_script_without_spaces_is_compared_by_pairs_of_characters() -> None:
    one = RULES.words(turn("今天的天气报告请读给我听", "好"))
    other = RULES.words(turn("昨天的股票行情请发给我看", "好"))
    assert len(one) > 8
    assert not alike(one, other)


def test_long_and_hostile_texts_take_no_long_time() -> None:
    """Patterns that could run away would run for hours on these."""
    for said in ("my " * 100_000, "I " * 100_000, "a" * 200_000, "我的" * 50_000, "no, " * 50_000):
        RULES.distill(turn(said[:400_000], said[:400_000]))
        RULES.distill(turn(said[:399]))


# -- what holds beyond the moment -----------------------------------------------------------------


SAYINGS = tomllib.loads(Path(__file__).with_name("sayings.toml").read_text("utf-8"))


def test_what_holds_is_told_from_what_is_asked_for_now(record_property) -> None:
    """Over sayings of five languages, few of either kind are taken for the other."""
    kept = [(kinds(said), kind) for group in SAYINGS.values() for said, kind in group["standing"]]
    passing = [said for group in SAYINGS.values() for said in group["passing"]]
    wrong = [said for said in passing if kinds(said)]
    found = sum(bool(one) for one, _ in kept)
    precision, recall = found / (found + len(wrong)), found / len(kept)
    record_property("precision", round(precision, 3))
    record_property("recall", round(recall, 3))
    assert len(kept) >= 60 <= len(passing)
    assert precision >= 0.97, wrong
    assert recall >= 0.97
    assert sum(one == [kind] for one, kind in kept) >= 0.97 * len(kept)


@pytest.mark.parametrize(
    "said",
    [
        "Stop the server please now.",
        "I'd like a list of cities.",
        "My code is below:",
        "Don't stop there, go on.",
        "No, try the other one.",
        "Dime la hora en Lima.",
    ],
)
def test_a_request_for_now_is_no_statement(said: str) -> None:
    assert statements(said) == []


# -- what users say, message by message -----------------------------------------------------------


class Told(Struct, frozen=True, kw_only=True):
    """One expected memory: any of the kinds, with all of these words in it."""

    kind: str
    must: list[str]
    kinds_ok: list[str] = []

    def is_met(self, piece: Piece) -> bool:
        said = piece.content.lower()
        is_kind = piece.kind.value in (self.kind, *self.kinds_ok)
        return is_kind and all(word.lower() in said for word in self.must)


class Message(Struct, frozen=True, kw_only=True):
    """A labeled message: what is to be remembered of it, and which earlier statement it retires."""

    language: str
    text: str
    time: datetime
    expect: list[Told]
    retires: str | None = None

    def pieces(self, text: str) -> list[Piece]:
        spoken = Turn(id="turn-1", at=self.time, user=text, assistant="I see.")
        return list(RULES.distill(spoken))[1:]


def labeled(half: str) -> list[Message]:
    lines = Path(__file__).with_name(f"told_{half}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Message) for line in lines]


def measured(messages: list[Message]) -> tuple[float, float, float]:
    """Precision and recall over all messages, and the share of retirements that were found."""
    right = wrong = expected = retired = 0
    retiring = [one for one in messages if one.retires]
    for message in messages:
        pieces = message.pieces(message.text)
        for told in message.expect:
            met = next((piece for piece in pieces if told.is_met(piece)), None)
            if met is not None:
                pieces.remove(met)
                right += 1
        wrong += len(pieces)
        expected += len(message.expect)
    for message in retiring:
        before = {piece.slot for piece in message.pieces(message.retires or "")}
        retired += bool(before & {piece.slot for piece in message.pieces(message.text)})
    return right / (right + wrong), right / expected, retired / max(len(retiring), 1)


def test_what_users_say_is_learned_in_five_languages(record_property) -> None:
    """The half that the rules were written with: no measure, but nothing may be lost again."""
    messages = labeled("development")
    precision, recall, retired = measured(messages)
    record_property("precision", round(precision, 3))
    record_property("recall", round(recall, 3))
    assert len(messages) >= 160
    assert len({message.language for message in messages}) == 5
    assert precision >= 0.97
    assert recall >= 0.97
    assert retired >= 0.95


def test_several_statements_in_a_message_each_stand_on_their_own() -> None:
    found = statements("Hi, I'm Alice and I live in Lyon, but work in Geneva. Call me Al!")
    assert [piece.content for piece in found] == [
        "User is Alice.",
        "User lives in Lyon.",
        "User works in Geneva.",
        "Call User Al.",
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I don't eat my vegetables.", "User doesn't eat User's vegetables."),
        ("We decided to use Postgres.", "User and others decided to use Postgres."),
        ("I study law.", "User studies law."),
        ("Ich esse kein Fleisch.", "User isst kein Fleisch."),
        ("Ich interessiere mich für Schach.", "User interessiert sich für Schach."),
        ("Meine Schwester heißt Anna.", "Users Schwester heißt Anna."),
        ("Je suis prof.", "User est prof."),
        ("Ma sœur s'appelle Anne.", "La sœur de User s'appelle Anne."),
        ("Nous avons choisi Rust.", "User et d'autres ont choisi Rust."),
        ("Me llamo Ana.", "User se llama Ana."),
        ("No me gusta el ruido.", "A User no le gusta el ruido."),
        ("Mi hermana vive en Lima.", "Hermana de User vive en Lima."),
        ("我的狗叫豆豆。", "User 的狗叫豆豆。"),
    ],
)
def test_the_first_person_becomes_the_user(said: str, told: str) -> None:
    assert statements(said)[0].content == told


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("My exam is tomorrow.", "on 2026-03-02"),
        ("I have an exam by tomorrow.", "by 2026-03-02"),
        ("I moved to Rome last month.", "in 2026-02"),
        ("I moved to Rome three weeks ago.", "on 2026-02-08"),
        ("I'm moving to Rome next year.", "in 2027"),
        ("My interview is next Tuesday.", "on 2026-03-03"),
        ("My interview was last Sunday.", "on 2026-02-22"),
        ("My flight is this weekend.", "on the weekend of 2026-02-28"),
        ("Ich bin vor zwei Tagen nach Köln gezogen.", "am 2026-02-27"),
        ("Übermorgen habe ich eine Prüfung.", "am 2026-03-03"),
        ("Mein Termin ist am Morgen.", "am Morgen"),
        ("J'ai un examen mardi prochain.", "le 2026-03-03"),
        ("J'ai déménagé il y a un an.", "en 2025"),
        ("Mañana tengo un examen.", "el 2026-03-02"),
        ("Tengo clase por la mañana.", "por la mañana"),
        ("Me mudé a Lima la semana pasada.", "en la semana del 2026-02-16"),
        ("我下周五有考试。", "2026-03-06"),
        ("我三天前搬到了西安。", "2026-02-26"),
    ],
)
def test_a_relative_date_becomes_absolute(said: str, date: str) -> None:
    """Counted from Sunday, the first of March 2026, which the turn itself does not say."""
    assert date in statements(said)[0].content


def test_a_date_beyond_the_calendar_stays_as_it_was_said() -> None:
    last = Turn(id="turn-1", at=datetime.max.replace(tzinfo=UTC), user="My exam is next year.")
    assert RULES.distill(last)[1].content == "User's exam is next year."


HALVES = sorted(one.stem[5:] for one in Path(__file__).parent.glob("told_unseen*.jsonl"))


@pytest.mark.parametrize("half", HALVES)
def test_messages_of_another_hand_are_learned(half: str, record_property) -> None:
    """By a reader who had not seen the rules; design.md has the figures of the first sight."""
    messages = labeled(half)
    precision, recall, retired = measured(messages)
    record_property("precision", round(precision, 3))
    record_property("recall", round(recall, 3))
    assert len(messages) + len(labeled("development")) >= 300
    assert precision >= 0.9
    assert recall >= 0.8
    assert retired >= 0.7


@pytest.mark.parametrize(
    "said",
    [
        "I just got a new job at Siemens, starting in April.",
        "I've lived in Madrid for ten years.",
        "I get migraines from bright light.",
        "I run about 30 km a week.",
        "Our team consists of five people.",
        "The API key rotates every 90 days.",
        "I'd rather you keep answers short.",
        "Love Thai food, can't do spicy though.",
        "Nothing beats a good espresso.",
        "Unsere Firma hat 40 Mitarbeiter.",
        "Freitags arbeite ich von zu Hause.",
        "Der Start wurde auf September verschoben.",
        "Mir wäre lieber, du fasst dich kurz.",
        "Notre entreprise a 40 employés.",
        "J'ai étudié la physique à Lyon.",
        "Je préférerais que tu sois plus concis.",
        "Los viernes trabajo desde casa.",
        "Estudié física en Madrid.",
        "Preferiría que fueras más conciso.",
        "我爸妈下周末来看我。",
        "我一月份失业了。",
        "我在农村长大。",
        "我把车卖了。",
    ],
)
def test_what_holds_of_jobs_habits_groups_and_wishes_is_learned(said: str) -> None:
    assert statements(said)


@pytest.mark.parametrize(
    "said",
    [
        "Give me five names for a cat.",
        "I'd rather you fix this first.",
        "I get an error when I run it.",
        "Love it!",
        "I've been waiting for this.",
        "You can stop here.",
        "Kannst du das übersetzen?",
        "Je préférerais que tu corriges ça.",
        "Quiero que arregles esto ahora.",
        "我把代码改了。",
    ],
)
def test_what_is_about_this_moment_is_not_learned(said: str) -> None:
    assert not statements(said)


@pytest.mark.parametrize(
    ("half", "floors"),
    [
        ("second", (0.97, 0.93, 0.85)),
        ("third", (0.90, 0.95, 0.8)),
        ("fourth", (0.97, 0.96, 0.8)),
        ("fifth", (0.96, 0.83, 1.0)),
        ("sixth", (0.97, 0.87, 0.8)),
    ],
)
def test_messages_of_further_hands_stay_learned(
    half: str, floors: tuple[float, float, float], record_property
) -> None:
    """Fifth and sixth as at first sight, no rule is made from them; the others once read."""
    precision, recall, retired = measured(labeled(half))
    record_property("precision", round(precision, 3))
    record_property("recall", round(recall, 3))
    assert precision >= floors[0]
    assert recall >= floors[1]
    assert retired >= floors[2]
