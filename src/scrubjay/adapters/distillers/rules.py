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

from scrubjay.adapters.distillers import phrases, signs
from scrubjay.domain.memory import Kind
from scrubjay.domain.turns import EPISODE_PART, Piece, Turn

SALIENT: Final = "salient"
"""The tag of what stays worth telling when it is old."""
_SIDE_CHARS: Final = 6_000
"""How much of either side an episode holds."""
_PASTED_CHARS: Final = 4_000
"""A longer text is pasted: only its beginning and its end are the user's own words."""
_EDGE_CHARS: Final = 1_000
_READ_CHARS: Final = 32_000
"""Of a longer text nothing but the edges is even looked at, but for where code begins and ends."""
_FENCES: Final = ("```", "~~~")
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
_ABBREVIATION_CHARS: Final = 12
_EDGE_MARKS: Final = " \t\"'“”„«»*_-\u2013—•.,;:!…。\uff01\uff0c\uff1b)("
_WORD: Final = re.compile(r"\w+")
_HAN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class RulesDistiller:
    """What a turn yields, by rules."""

    @property
    def identity(self) -> str:
        """These rules; another number where they would answer otherwise."""
        return "rules-2"

    def distill(self, turn: Turn) -> Sequence[Piece]:
        """The episode, and what the user stated in it; nothing if the turn is trivial."""
        if signs.is_trivial(turn.user):
            return () if _is_brief(turn.assistant) else (_episode(turn, ""),)
        is_machine = signs.is_machine(turn.user)
        is_own = not is_machine and not signs.asks_for_sign(turn.user)
        own = _own_words(turn.user) if is_own else ""
        statements, episode = list(_statements(own)), _episode(turn, own)
        says_nothing = not statements and not episode.tags
        return () if says_nothing and _is_idle(turn, is_machine) else (episode, *statements)

    def words(self, turn: Turn) -> frozenset[str]:
        """The words of both sides; of a script without spaces, its pairs of characters."""
        text = f"{_edges(turn.user)}\n{_edges(turn.assistant)}".lower()
        return frozenset(part for word in _WORD.findall(text) for part in _parts(word))


def _parts(word: str) -> Iterator[str]:
    if not _HAN.search(word) or len(word) < 3:
        yield word
        return
    yield from (word[at : at + 2] for at in range(len(word) - 1))


# -- trivial turns ----------------------------------------------------------------------------


def _is_brief(answer: str) -> bool:
    """Whether an answer to a courtesy is no more than one itself."""
    if len(answer) <= 20 * _BRIEF_WORDS and len(answer.split()) <= _BRIEF_WORDS:
        return True
    return signs.is_quiet(answer) or signs.is_machine(answer)


def _is_idle(turn: Turn, is_machine: bool) -> bool:
    """Whether a clockwork found nothing, or a tool only spoke to a tool."""
    if signs.is_routine(turn.user):
        return signs.is_quiet(turn.assistant) or signs.is_machine(turn.assistant)
    return is_machine and _is_brief(turn.assistant)


# -- the episode ------------------------------------------------------------------------------


def _episode(turn: Turn, own: str) -> Piece:
    sides = [_cut(turn.user), _cut(turn.assistant)]
    moving, weighty = signs.is_moving(own), signs.is_weighty(own)
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


def _statements(own: str) -> Iterator[Piece]:
    """What the user says in so many words, each once, at most a handful."""
    found: dict[str, Piece] = {}
    for sentence in _sentences(own):
        piece = _statement(sentence)
        if piece is not None and len(found) < _STATEMENTS:
            found.setdefault(piece.slot or piece.content, piece)
    for number, piece in enumerate(found.values()):
        yield replace(piece, part=f"statement-{number}")


def _own_words(said: str) -> str:
    """What the user wrote, without code, quotations and what was pasted between."""
    if len(said) > _READ_CHARS:
        # What is left out may have opened code that the end is still part of.
        skipped, end = said[:-_PASTED_CHARS], said[-_PASTED_CHARS:]
        opened = "".join(f"{mark}\n" for mark in _FENCES if skipped.count(mark) % 2)
        own = f"{_unquoted(said[:_PASTED_CHARS])}\n{_unquoted(opened + end)}"
    else:
        own = _unquoted(said)
    return own if len(own) <= _PASTED_CHARS else f"{own[:_EDGE_CHARS]}\n{own[-_EDGE_CHARS:]}"


def _unquoted(said: str) -> str:
    return _QUOTED.sub("", _FENCE.sub("\n", said))


def _edges(said: str) -> str:
    """As much of a text as is compared with another."""
    if len(said) <= _PASTED_CHARS:
        return said
    return f"{said[: _PASTED_CHARS - _EDGE_CHARS]}\n{said[-_EDGE_CHARS:]}"


def _sentences(said: str) -> Iterator[str]:
    begun = ""
    for part in _END.split(said):
        text = " ".join(f"{begun} {part}".split())
        goes_on = _ABBREVIATED.search(text[-_ABBREVIATION_CHARS:])
        begun = text if goes_on and len(text) < _SENTENCE_CHARS.stop else ""
        if begun:
            continue  # "Dr." ends no sentence
        yield from _usable(text)
    yield from _usable(begun)


def _usable(text: str) -> Iterator[str]:
    if len(text) in _SENTENCE_CHARS and not text.endswith(("?", "\uff1f")):
        yield text


def _statement(sentence: str) -> Piece | None:
    core = sentence.replace("\u2019", "'").strip(_EDGE_MARKS)
    if signs.is_supposed(core):
        return None
    for correction in phrases.corrections():
        if match := correction.pattern.fullmatch(core):
            rest = match["rest"].strip(_EDGE_MARKS)
            return _plain_correction(sentence, rest, correction)
    return _plain_statement(sentence, core)


def _plain_statement(sentence: str, core: str) -> Piece | None:
    for phrase, match in phrases.found_in(core):
        slot = match.groupdict().get("slot") or phrase.slot
        name = _slot(slot) if slot else f"said: {signs.plain(core)}"
        return Piece(
            part="",
            kind=phrase.kind,
            content=sentence,
            slot=f"{phrase.kind.value}: {name}" if slot else name,
            importance=_SALIENCE[phrase.kind],
            tags=(SALIENT,),
        )
    return None


def _plain_correction(sentence: str, rest: str, correction: phrases.Correction) -> Piece | None:
    """A correction of a fact is that fact, newly said; any other must tell something."""
    stated = _plain_statement(sentence, rest)
    if stated is not None:
        return replace(stated, importance=_CORRECTED)
    if not correction.tells.fullmatch(rest):
        return None
    return Piece(
        part="",
        kind=Kind.CORRECTION,
        content=sentence,
        slot=f"said: {signs.plain(sentence)}",
        importance=_CORRECTED,
        tags=(SALIENT,),
    )


def _slot(slot: str) -> str:
    return " ".join(slot.lower().split())
