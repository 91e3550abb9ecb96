"""A distiller of rules: no model, no network; the same turn always yields the same.

A turn yields itself as an episode, and what the user says in so many words: preferences,
instructions, facts and corrections. What the agent says is only part of the episode, since an
agent may repeat anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from scrubjay.adapters.distillers import phrases
from scrubjay.domain.memory import Kind
from scrubjay.domain.turns import EPISODE_PART, Piece, Turn

SALIENT: Final = "salient"
"""The tag of what stays worth telling when it is old."""
_SIDE_CHARS: Final = 6_000
"""How much of either side an episode holds."""
_PASTED_CHARS: Final = 4_000
"""A longer text is pasted: only its beginning and its end are the user's own words."""
_EDGE_CHARS: Final = 1_000
_STATEMENTS: Final = 8
_SENTENCE_CHARS: Final = range(4, 401)
_BRIEF_WORDS: Final = 12
"""An answer of no more words than this, to a courtesy, is a courtesy as well."""
_SALIENCE: Final = {Kind.PREFERENCE: 0.75, Kind.INSTRUCTION: 0.8, Kind.FACT: 0.7}
_CORRECTED: Final = 0.85
_MOVING: Final = 0.9
_WEIGHTY: Final = 0.75

_FENCE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED: Final = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_END: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。\uff01\uff1f\uff1b])|\n+")
_ABBREVIATED: Final = re.compile(
    r"(?:^|\W)(?:[A-Z]|Drs?|Mrs?|Ms|Prof|St|Jr|Sra?|Mme|Mlle|Hr|Fr|Nr|No|vs|etc|approx|ca|bzw"
    r"|e\.g|i\.e|z\.B|d\.h|Inc|Ltd|Co)\.$"
)
_EDGE_MARKS: Final = " \t\"'“”„«»*_-\u2013—•.,;:!…。\uff01\uff0c\uff1b)("
_WORD: Final = re.compile(r"\w+")
_HAN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MACHINE: Final = re.compile(r"\s*(?:[\[{].*[\]}]|<(\w+)[^>]*>.*</\1>)\s*", re.DOTALL)


class RulesDistiller:
    """What a turn yields, by rules."""

    @property
    def identity(self) -> str:
        """These rules; another number where they would answer otherwise."""
        return "rules-1"

    def distill(self, turn: Turn) -> Sequence[Piece]:
        """The episode, and what the user stated in it; nothing if the turn is trivial."""
        if _is_trivial(turn):
            return ()
        statements = list(_statements(turn))
        return (_episode(turn), *statements)

    def words(self, turn: Turn) -> frozenset[str]:
        """The words of both sides; of a script without spaces, its pairs of characters."""
        text = f"{turn.user[:_PASTED_CHARS]}\n{turn.assistant[:_PASTED_CHARS]}".lower()
        return frozenset(part for word in _WORD.findall(text) for part in _parts(word))


def _parts(word: str) -> Iterator[str]:
    if not _HAN.search(word) or len(word) < 3:
        yield word
        return
    yield from (word[at : at + 2] for at in range(len(word) - 1))


# -- trivial turns ----------------------------------------------------------------------------


def _is_trivial(turn: Turn) -> bool:
    """Whether neither side says more than that it is there."""
    user, answer = _plain(turn.user), _plain(turn.assistant)
    if phrases.is_routine(turn.user) or phrases.is_trivial(user) or _is_machine(turn.user):
        few = len(answer.split()) <= _BRIEF_WORDS and len(answer) <= 20 * _BRIEF_WORDS
        return few or phrases.is_routine(turn.assistant) or _is_machine(turn.assistant)
    return False


def _plain(said: str) -> str:
    """A text without marks at its edges and with single spaces, in small letters."""
    return " ".join(said.split()).strip(_EDGE_MARKS + "?👍🙏😊🙂").lower()


def _is_machine(said: str) -> bool:
    """Whether a text is the chatter of a tool: one object, list or element and nothing else."""
    return bool(_MACHINE.fullmatch(said))


# -- the episode ------------------------------------------------------------------------------


def _episode(turn: Turn) -> Piece:
    sides = [_cut(turn.user), _cut(turn.assistant)]
    moving = phrases.is_moving(turn.user)
    weighty = phrases.is_weighty(turn.user)
    return Piece(
        part=EPISODE_PART,
        kind=Kind.EPISODE,
        content="\n→ ".join(side for side in sides if side),
        said_by_user=not turn.assistant.strip(),
        importance=_MOVING if moving else _WEIGHTY if weighty else 0.5,
        tags=(SALIENT,) if moving or weighty else (),
    )


def _cut(said: str) -> str:
    said = said.strip()
    return said if len(said) <= _SIDE_CHARS else f"{said[:_SIDE_CHARS].rstrip()} …"


# -- what the user states ---------------------------------------------------------------------


def _statements(turn: Turn) -> Iterator[Piece]:
    """What the user says in so many words, each once, at most a handful."""
    found: dict[str, Piece] = {}
    for sentence in _sentences(_own_words(turn.user)):
        piece = _statement(sentence)
        if piece is not None and len(found) < _STATEMENTS:
            found.setdefault(piece.slot or piece.content, piece)
    for number, piece in enumerate(found.values()):
        yield replace(piece, part=f"statement-{number}")


def _own_words(said: str) -> str:
    """What the user wrote, without code, quotations and what was pasted between."""
    said = _QUOTED.sub("", _FENCE.sub("\n", said))
    if len(said) <= _PASTED_CHARS:
        return said
    return f"{said[:_EDGE_CHARS]}\n{said[-_EDGE_CHARS:]}"


def _sentences(said: str) -> Iterator[str]:
    begun = ""
    for part in _END.split(said):
        text = " ".join(f"{begun} {part}".split())
        begun = text if _ABBREVIATED.search(text) else ""
        if begun:
            continue  # "Dr." ends no sentence
        yield from _usable(text)
    yield from _usable(begun)


def _usable(text: str) -> Iterator[str]:
    if len(text) in _SENTENCE_CHARS and not text.endswith(("?", "\uff1f")):
        yield text


def _statement(sentence: str) -> Piece | None:
    core = sentence.replace("\u2019", "'").strip(_EDGE_MARKS)
    if phrases.is_supposed(core):
        return None
    for correction in phrases.corrections():
        if match := correction.fullmatch(core):
            return _correction(sentence, match["rest"].strip(_EDGE_MARKS))
    return _plain_statement(sentence, core)


def _plain_statement(sentence: str, core: str) -> Piece | None:
    for phrase, match in phrases.found_in(core):
        slot = match.groupdict().get("slot") or phrase.slot
        name = _slot(slot) if slot else f"said: {_plain(core)}"
        return Piece(
            part="",
            kind=phrase.kind,
            content=sentence,
            slot=f"{phrase.kind.value}: {name}" if slot else name,
            importance=_SALIENCE[phrase.kind],
            tags=(SALIENT,),
        )
    return None


def _correction(sentence: str, rest: str) -> Piece | None:
    """A correction of a fact is that fact, newly said; any other stands for itself."""
    stated = _plain_statement(sentence, rest)
    if stated is not None:
        return replace(stated, importance=_CORRECTED)
    if len(rest) < _SENTENCE_CHARS.start:
        return None
    return Piece(
        part="",
        kind=Kind.CORRECTION,
        content=sentence,
        slot=f"said: {_plain(sentence)}",
        importance=_CORRECTED,
        tags=(SALIENT,),
    )


def _slot(slot: str) -> str:
    return " ".join(slot.lower().split())
