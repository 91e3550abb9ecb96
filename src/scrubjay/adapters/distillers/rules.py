"""Rule-based distiller: deterministic, no model, no network.

A turn gives an episode, and the explicit statements of the user: preferences, instructions, facts
and corrections. The agent's words are only part of the episode, since an agent may repeat anything.

A statement is worded in the third person, with absolute dates: it is read without its turn,
perhaps a year later, when nobody knows who "I" was and which day "tomorrow" meant. Both follow from
the turn alone, so a derivation stays a function of the set of turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Final

from msgspec import Struct, convert
from msgspec.structs import replace

from scrubjay.model.memory import ANSWERED, Kind
from scrubjay.model.turns import EPISODE_PART, Piece, Turn

_WEEK: Final = 7


class Rewrite(Struct, frozen=True, forbid_unknown_fields=True):
    """One replacement; {verb} is the group of that name in the third person, others as they are."""

    says: re.Pattern[str]
    by: str


class RelativeDate(Struct, frozen=True, forbid_unknown_fields=True):
    """Words that name a date by its distance from the turn.

    `unit` is day, week, weekend, month or year; weekday is the nearest one after or before,
    day_of_week one of the week that is `count` weeks away. The group `n` is a number that
    multiplies `count`.
    """

    says: re.Pattern[str]
    unit: str
    count: int = 0
    also: str = ""
    """Words that are said along, such as a part of the day."""


class Grammar(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one language tells of the user, and names dates."""

    third: list[Rewrite]
    verbs: dict[str, str] = {}
    endings: list[Rewrite] = []
    dates: list[RelativeDate]
    phrases: dict[str, str]
    """By unit, how a date is said: `on {}`."""
    leads: re.Pattern[str]
    """Words before a date that stand in place of the preposition: `by tomorrow`."""
    weekdays: list[str]
    """Monday first, each name or several with a bar between."""
    numbers: list[str]
    """From one on."""
    first_person: re.Pattern[str]
    stop: str = "."

    def tell(self, said: str, day: date) -> str:
        """A statement of the user as others tell it, at any later time."""
        told = self._dated(said, day)
        for rule in self.third:
            told = rule.says.sub(partial(self._retold, by=rule.by), told)
        if "User" not in told and self.first_person.search(told):
            told = f"User: {told}"
        return f"{told[:1].upper()}{told[1:]}{self.stop}"

    def _retold(self, found: re.Match[str], by: str) -> str:
        groups = found.groupdict("")
        for name in ("no", "ya"):
            groups |= {name: groups[name].lower()} if name in groups else {}
        if verb := groups.get("verb"):
            groups["verb"] = self.verbs.get(verb.lower()) or self._conjugated(verb)
        return by.format(**groups)

    def _conjugated(self, verb: str) -> str:
        for ending in self.endings:
            if ending.says.fullmatch(verb):
                return ending.says.sub(ending.by, verb)
        return verb

    # -- dates ---------------------------------------------------------------------------

    def _dated(self, said: str, day: date) -> str:
        for words in self.dates:
            for found in reversed(list(words.says.finditer(said))):
                before, after = said[: found.start()], said[found.end() :]
                name = self._name(words, found, day)
                if name is None:
                    continue
                is_led = after.startswith("'s") or self.leads.search(before)
                phrase = name if is_led else self.phrases[words.unit].format(name)
                said = f"{before}{phrase}{words.also}{after}"
        return said

    def _name(self, words: RelativeDate, found: re.Match[str], day: date) -> str | None:
        """The date in ISO 8601; None if the calendar has none."""
        groups, count = found.groupdict(), words.count
        if number := groups.get("n"):
            count *= int(number) if number.isdecimal() else self._index(self.numbers, number) + 1
        named = groups.get("weekday")
        weekday = self._index(self.weekdays, named) if named else 0
        monday = day - timedelta(days=day.weekday())
        try:
            match words.unit:
                case "day":
                    return str(day + timedelta(days=count))
                case "week":
                    return str(monday + timedelta(weeks=count))
                case "weekend":
                    return str(monday + timedelta(weeks=count, days=5))
                case "day_of_week":
                    return str(monday + timedelta(weeks=count, days=weekday))
                case "weekday":
                    ahead = (weekday - day.weekday()) * count % _WEEK or _WEEK
                    return str(day + timedelta(days=ahead * count))
                case "month":
                    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
                    return f"{day.replace(year=year, month=month + 1, day=1):%Y-%m}"
                case _:
                    return f"{day.replace(year=day.year + count, day=1):%Y}"
        except (ValueError, OverflowError):  # beyond the calendar: the words stay
            return None

    def _index(self, names: list[str], said: str) -> int:
        return next(at for at, name in enumerate(names) if re.fullmatch(name, said, re.IGNORECASE))


_SHORT: Final = 400
"""Maximum length of a courtesy or heartbeat."""
_JOB: Final = 4_000
"""Maximum length of a scheduled routine prompt."""
_FRAGMENT: Final = re.compile(r"\{([a-z_]+)\}")
_WRAP: Final = re.compile(r"(?:\A|\n) *")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_TAG: Final = re.compile(r"<([A-Za-z][\w:.-]{0,63})[\s>]")
_MARKS: Final = " \t\"'“”„«»*_-\u2013—•.,;:!…。\uff01\uff0c\uff1b)("


class Statement(Struct, frozen=True):
    """One pattern of a statement, and its subject if the pattern has no group for it."""

    says: re.Pattern[str]
    about: str | None = None
    category: str | None = None


class Language(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns of one language, as patterns.toml explains them."""

    facts: list[Statement]
    preferences: list[Statement]
    instructions: list[Statement]
    corrections: list[re.Pattern[str]]
    tells: re.Pattern[str]
    things: re.Pattern[str]
    points: re.Pattern[str]
    passes: re.Pattern[str]
    joint: re.Pattern[str]
    whole: re.Pattern[str]
    elided: re.Pattern[str]
    subject: re.Pattern[str]
    fronted: list[Rewrite]
    resumes: str
    bare: re.Pattern[str]
    grammar: Grammar

    def is_passing(self, match: re.Match[str]) -> bool:
        """Whether a statement holds only for the moment: about a thing at hand, or by pointing."""
        groups = match.groupdict()
        thing = groups.get("slot") or groups.get("thing") or ""
        value = groups.get("value") or groups.get("object") or ""
        about_now = self.things.fullmatch(thing) or self.passes.search(value)
        return bool(about_now or self.points.match(value))

    def clauses(self, sentence: str) -> Iterator[str]:
        """The clauses of a sentence that state something each, every one with its subject."""
        if self.whole.match(sentence):
            yield sentence
            return
        first, *others = self.joint.split(sentence)
        yield first
        shared = self.subject.match(first)
        for clause in others:
            yield f"{self.resumes}{clause}" if shared and self.elided.match(clause) else clause

    def straight(self, clause: str) -> str:
        """The clause with its subject first."""
        for order in self.fronted:
            if match := order.says.fullmatch(clause):
                groups = match.groupdict("")
                when = groups.pop("when", "")
                return order.by.format(**groups, when=when[:1].lower() + when[1:])
        return clause


class PatternTables(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of patterns.toml."""

    signs: dict[str, re.Pattern[str]]
    languages: dict[str, Language]


@cache
def _tables() -> PatternTables:
    """The language tables; loaded lazily, because most commands distill nothing."""
    import tomllib

    tables = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))
    fragments: dict[str, str] = tables.pop("fragments")
    for language in tables["languages"].values():
        fragments |= language.pop("fragments")

    def whole(pattern: str) -> str:
        joined = _WRAP.sub("", pattern)
        return _FRAGMENT.sub(lambda name: whole(fragments[name[1]]), joined)

    def compiled(_: type, pattern: str) -> re.Pattern[str]:
        return re.compile(whole(pattern), re.IGNORECASE)

    return convert(tables, PatternTables, dec_hook=compiled)


@cache
def _statements_known() -> tuple[tuple[Kind, Statement, Language], ...]:
    """All statement patterns, the most specific first."""
    return tuple(
        (kind, statement, language)
        for kind in (Kind.PREFERENCE, Kind.INSTRUCTION, Kind.FACT)
        for language in _tables().languages.values()
        for statement in getattr(language, f"{kind.value}s")
    )


def _sign(name: str) -> re.Pattern[str]:
    return _tables().signs[name]


def plain(said: str) -> str:
    """A text without marks at its edges and with single spaces, in small letters."""
    return " ".join(said.split()).strip(_MARKS + "?👍🙏😊🙂").lower()


def is_trivial(said: str) -> bool:
    """Whether a text is only a courtesy or a heartbeat."""
    if len(said) > _SHORT:
        return False
    words = plain(said)
    return not words or bool(_sign("trivial").fullmatch(words))


def is_routine(said: str) -> bool:
    """Whether a text is a scheduled routine prompt (heartbeat), rather than about one."""
    return asks_for_sign(said) or bool(_sign("routine").match(said[:_SHORT]))


def asks_for_sign(said: str) -> bool:
    """Whether a text names a token to answer with if there is nothing to do."""
    return len(said) <= _JOB and bool(_sign("asks_for_sign").search(said))


def is_quiet(said: str) -> bool:
    """Whether the answer to a routine prompt only says that there is nothing to do."""
    if len(said) > _SHORT:
        return False
    sentences = _SENTENCE_END.split(said.strip())
    return all(is_trivial(one) or _sign("quiet").match(one.strip(_MARKS)) for one in sentences)


def is_machine(said: str) -> bool:
    """Whether a text is tool output: one object, list or element and nothing else."""
    said = said.strip()
    if said[:1] + said[-1:] in ("{}", "[]"):
        try:
            json.loads(said)
        except (ValueError, RecursionError):
            return False
        return True
    tag = _TAG.match(said)
    if tag is None or said[-1:] != ">":
        return False
    # The tag that begins the text is closed at its end, and not before.
    depth = 0
    for found in re.finditer(rf"<(/?){re.escape(tag[1])}[\s>]", said):
        depth += -1 if found[1] else 1
        if depth <= 0:
            return found.end() == len(said)
    return False


SALIENT: Final = "salient"
"""Tag of episodes that stay relevant when they are old."""
_SIDE_CHARS: Final = 6_000
"""Characters of either side in an episode."""
_PASTED_CHARS: Final = 4_000
"""A longer text counts as pasted: only its beginning and end are the user's own words."""
_EDGE_CHARS: Final = 1_000
_READ_CHARS: Final = 32_000
"""Of a longer text only the edges are read, except for the marks of code blocks."""
_FENCES: Final = ("```", "~~~")
_STATEMENTS: Final = 8
_OPENINGS: Final = 3
"""How many openings are taken off a clause: a greeting, a name, 'by the way'."""
_LEAST_CHARS: Final = 4
"""Characters of the shortest sentence that states something; one less in Chinese."""
_MOST_CHARS: Final = 400
_BRIEF_WORDS: Final = 12
"""Maximum number of words of an answer that is a courtesy."""
_SALIENCE: Final = {Kind.PREFERENCE: 0.75, Kind.INSTRUCTION: 0.8, Kind.FACT: 0.7}
_CORRECTED: Final = 0.85
_MOVING_IMPORTANCE: Final = 0.9
_WEIGHTY_IMPORTANCE: Final = 0.75

_FENCE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_SPOKEN: Final = re.compile(
    r"\"[^\"\n]{12,400}\"|“[^”\n]{5,400}”|«[^»\n]{12,400}»|„[^“”\n]{12,400}[“”]|「[^」\n]{5,400}」"
)
"""Words in quotation marks, unless they are a name: somebody else's, or to be translated."""
_QUOTED: Final = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_END: Final = re.compile(
    r"(?<=[.!?;])(?<!\d\.)\s+|(?<=[。\uff01\uff1f\uff1b])|\n+"
    # An ordinal before a month ends no sentence: "am 3. Mai".
    r"|(?<=\d\.)\s+(?!Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)"
)
_ABBREVIATED: Final = re.compile(
    r"(?:^|\W)(?:[A-Z]|Drs?|Mrs?|Ms|Prof|St|Jr|Sra?|Mme|Mlle|Hr|Fr|Nr|No|vs|etc|approx|ca|bzw"
    r"|e\.g|i\.e|z\.B|d\.h|Inc|Ltd|Co)\.$"
)
_ABBREVIATION_CHARS: Final = 12
_WORD: Final = re.compile(r"\w+")
_HAN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class RulesDistiller:
    """Rule-based Distiller."""

    @property
    def identity(self) -> str:
        """Version of the rules; raised when their results change."""
        return "rules-4"

    def distill(self, turn: Turn) -> Sequence[Piece]:
        """The episode, and what the user stated in it; nothing if the turn is trivial."""
        if is_trivial(turn.user):
            return () if _is_brief(turn.assistant) else (_episode(turn, ""),)
        by_machine = is_machine(turn.user)
        is_own = not by_machine and not asks_for_sign(turn.user)
        own = _own_words(turn.user) if is_own else ""
        statements, episode = list(_statements(own, turn.at.date())), _episode(turn, own)
        says_nothing = not statements and not episode.tags
        return () if says_nothing and _is_idle(turn, by_machine) else (episode, *statements)

    def words(self, turn: Turn) -> frozenset[str]:
        """Words of both sides; for an unspaced script, pairs of characters."""
        text = f"{_edges(turn.user)}\n{_edges(turn.assistant)}".lower()
        words: set[str] = set()
        for word in _WORD.findall(text):
            if len(word) < 3 or not _HAN.search(word):
                words.add(word)
            else:
                words.update(word[at : at + 2] for at in range(len(word) - 1))
        return frozenset(words)


# -- trivial turns ----------------------------------------------------------------------------


def _is_brief(answer: str) -> bool:
    """Whether the answer to a courtesy is one itself."""
    if len(answer) <= 20 * _BRIEF_WORDS and len(answer.split()) <= _BRIEF_WORDS:
        return True
    return is_quiet(answer) or is_machine(answer)


def _is_idle(turn: Turn, by_machine: bool) -> bool:
    """Whether a routine found nothing, or both sides are tool output."""
    if is_routine(turn.user):
        return is_quiet(turn.assistant) or is_machine(turn.assistant)
    return by_machine and _is_brief(turn.assistant)


# -- the episode ------------------------------------------------------------------------------


def _episode(turn: Turn, own: str) -> Piece:
    sides = [_cut(turn.user), _cut(turn.assistant)]
    moving, weighty = _sign("moving").search(own), _sign("weighty").search(own)
    return Piece(
        part=EPISODE_PART,
        kind=Kind.EPISODE,
        content=ANSWERED.join(side for side in sides if side),
        said_by_user=not turn.assistant.strip(),
        importance=_MOVING_IMPORTANCE if moving else _WEIGHTY_IMPORTANCE if weighty else 0.5,
        tags=(SALIENT,) if moving or weighty else (),
    )


def _cut(said: str) -> str:
    said = said.strip()
    return said if len(said) <= _SIDE_CHARS else f"{said[:_SIDE_CHARS].rstrip()} …"


# -- what the user states ---------------------------------------------------------------------


def _statements(own: str, day: date) -> Iterator[Piece]:
    """Explicit statements of the user, without duplicates, at most a handful."""
    found: dict[str, Piece] = {}
    for sentence in _sentences(own):
        if _sign("renders").fullmatch(sentence.strip(_MARKS)):
            continue  # what is to be translated, or only supposed, is not about the user
        for clause in _clauses(sentence):
            piece = _statement(clause, day)
            if piece is None:
                continue
            piece = replace(piece, said=sentence)
            about = piece.slot or piece.content
            if about in found and _sign("denies").fullmatch(piece.content):
                continue  # "I moved to Rome, I no longer live in Bern"
            if about in found or len(found) < _STATEMENTS:
                found[about] = piece  # of two about one thing, the later one counts
    for number, piece in enumerate(found.values()):
        yield replace(piece, part=f"statement-{number}")


def _clauses(sentence: str) -> Sequence[str]:
    """What a sentence states one after the other, without openings such as a greeting."""
    core = _opened(sentence.replace("\u2019", "'"))
    asked = _sign("polite").fullmatch(core)
    clauses = [asked["rest"] or asked["also"] if asked else core]
    for language in _tables().languages.values():
        clauses = [part for clause in clauses for part in language.clauses(clause)]
    if core.endswith(("?", "\uff1f")) and not asked:
        del clauses[-1]  # a question states nothing
    begun, found = "", list[str]()
    for clause in clauses:
        core = _opened(f"{begun} {clause}")
        # "Actually" or "since March" alone belong to what follows them.
        begun = f"{core}," if _sign("leading").fullmatch(core) else ""
        for language in () if begun else _tables().languages.values():
            core = language.straight(core)
        found += [] if begun or not core else [core]
    return found


def _opened(clause: str) -> str:
    """A clause without what people say before they come to the point."""
    core = clause.strip(_MARKS)
    for _ in range(_OPENINGS):
        opening = _sign("opening").match(core)
        core = core[opening.end() :].strip(_MARKS) if opening else core
    return core


def _own_words(said: str) -> str:
    """The user's own words: without code, quotations and pasted text."""
    if len(said) > _READ_CHARS:
        # What is left out may have opened code that the end is still part of.
        skipped, end = said[:-_PASTED_CHARS], said[-_PASTED_CHARS:]
        opened = "".join(f"{mark}\n" for mark in _FENCES if skipped.count(mark) % 2)
        own = f"{_unquoted(said[:_PASTED_CHARS])}\n{_unquoted(opened + end)}"
    else:
        own = _unquoted(said)
    return own if len(own) <= _PASTED_CHARS else f"{own[:_EDGE_CHARS]}\n{own[-_EDGE_CHARS:]}"


def _unquoted(said: str) -> str:
    return _SPOKEN.sub(" ", _QUOTED.sub("", _FENCE.sub("\n", said)))


def _edges(said: str) -> str:
    """The part of a text that is compared with another."""
    if len(said) <= _PASTED_CHARS:
        return said
    return f"{said[: _PASTED_CHARS - _EDGE_CHARS]}\n{said[-_EDGE_CHARS:]}"


def _sentences(said: str) -> Iterator[str]:
    begun = ""
    for part in _END.split(said):
        text = " ".join(f"{begun} {part}".split())
        goes_on = _ABBREVIATED.search(text[-_ABBREVIATION_CHARS:])
        begun = text if goes_on and len(text) <= _MOST_CHARS else ""
        if begun:
            continue  # "Dr." ends no sentence
        yield from _usable(text)
    yield from _usable(begun)


def _usable(text: str) -> Iterator[str]:
    # What ends in a colon speaks of what follows.
    long_enough = _LEAST_CHARS - 1 if _HAN.search(text) else _LEAST_CHARS
    if long_enough <= len(text) <= _MOST_CHARS and not text.endswith((":", "\uff1a")):
        yield text


def _statement(clause: str, day: date) -> Piece | None:
    for language in _tables().languages.values():
        for pattern in language.corrections:
            if match := pattern.fullmatch(clause):
                return _correction(clause, match["rest"].strip(_MARKS), language, day)
    return _plain_statement(clause, day)


def _correction(clause: str, rest: str, language: Language, day: date) -> Piece | None:
    """A correction of a fact becomes the new fact; any other must have content."""
    if stated := _plain_statement(rest, day):
        return replace(stated, importance=_CORRECTED)
    if not language.tells.fullmatch(rest) or language.points.match(rest):
        return None
    return Piece(
        part="",
        kind=Kind.CORRECTION,
        content=language.grammar.tell(clause, day),
        slot=f"said: {plain(clause)}",
        importance=_CORRECTED,
        tags=(SALIENT,),
    )


def _plain_statement(core: str, day: date) -> Piece | None:
    for kind, statement, language in _statements_known():
        match = statement.says.fullmatch(core)
        if not match or language.is_passing(match):
            continue
        if kind is not Kind.INSTRUCTION and _sign("supposed").match(core):
            continue
        groups = match.groupdict()
        if one := groups.get("object"):
            bared = language.bare.sub("", language.bare.sub("", plain(one)))
            about = f"{statement.about}: {bared}"
        elif named := groups.get("slot") or statement.about:
            about = f"{kind.value}: {plain(named)}"
        else:
            about = f"said: {plain(core)}"
        category = () if statement.category is None else (f"category:{statement.category}",)
        return Piece(
            part="",
            kind=kind,
            content=language.grammar.tell(core, day),
            slot=about,
            importance=_SALIENCE[kind],
            tags=(SALIENT, *category),
        )
    return None
