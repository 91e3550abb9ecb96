"""What a text shows at a glance: a time, a question, a standing wish.

The ranking reads these from columns, so that no text is unsealed to rank it. Most texts show
little, so the words are looked up first and a pattern is tried only where one of them hints at it.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
from dataclasses import dataclass

SIGNS_VERSION = 2
"""Stored with the columns: signs of another version must be read again."""

READ = 1000
"""Characters looked at; what a long text shows, it shows early."""
LONGEST_INSTRUCTION = 400

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")

_TIME_WORDS = """
    jan january feb february mar march apr april jun june jul july aug august sep sept september
    oct october nov november dec december
    monday tuesday wednesday thursday friday saturday sunday
    yesterday today tonight tomorrow ago since recently
    day days week weeks month months year years hour hours minute minutes
    januar februar märz april mai juni juli august september oktober november dezember
    montag dienstag mittwoch donnerstag freitag samstag sonntag uhr
    gestern vorgestern heute morgen letzte letzten letzter letztes woche wochen monat monate jahr
    jahre jahren
    hier aujourd demain semaine mois ayer hoy mañana semana mes año ieri oggi domani
    вчера сегодня завтра позавчера назад год года году лет
    январь января январе февраль февраля феврале март марта марте апрель апреля апреле май мая мае
    июнь июня июне июль июля июле август августа августе сентябрь сентября сентябре октябрь октября
    октябре ноябрь ноября ноябре декабрь декабря декабре
    понедельник вторник среду четверг пятницу субботу воскресенье
"""
_TIME_HINTS = "may weekend morning night summer fall winter spring"
_TIME_PHRASE = re.compile(
    r"\b(?:(?:in|last|this|next) may|may \d+|(?:this|next) (?:weekend|morning|summer|fall|winter"
    r"|spring)|last (?:night|weekend|summer|winter|fall|spring))\b"
)
_TIME_NUMBER = re.compile(
    r"\b(?:(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)|\d{1,2}/\d{1,2})\b|\d+[年月日号时時]"
)
_TIME_ELSEWHERE = re.compile(
    r"\b(?:недел|месяц)\w*|昨天|前天|今天|明天|上周|下周|上个月|去年|今年|明年|星期|周[一二三四五六日末]"
    r"|昨日|今日|明日|昨夜|先週|来週|今週|先月|来月|来年|曜日"
)

_INSTRUCTION_HINTS = (
    "always never now forward future remember please sure ever whenever when stop avoid every"
    " immer niemals ab toujours jamais siempre nunca sempre mai ahora"
)
_INSTRUCTION = re.compile(
    r"^\W*(?:always|never|from now on|going forward|in (?:the )?future|remember (?:to|that)"
    r"|please (?:always|never|remember|don't|do not|keep)|make sure (?:to|you|that you)"
    r"|(?:don't|do not) ever|whenever|when i ask|stop |avoid )"
    r"|\b(?:from now on|going forward|when(?:ever)? i (?:ask|want|say|mention)|every time i"
    r"|i (?:want|need|expect|would like|'d like) you to (?:always|never)"
    r"|you should (?:always|never)"
    r"|always (?:include|use|format|provide|mention|give|ask|show|answer|write|keep|explain|respond"
    r"|reply|call|highlight|start|end|address|remind))\b"
    r"|^\W*(?:immer|niemals|ab jetzt|ab sofort|toujours|jamais|désormais|siempre|nunca|sempre|mai"
    r"|всегда|никогда|впредь)\b|\b(?:ab jetzt|ab sofort|désormais|de ahora en adelante|отныне)\b"
    r"|^(?:请?总是|请?始终|请?记住|永远|以后|从现在起|每次|不要|别)|从现在起"
    r"|^(?:今後|これから|必ず|いつも|常に)"
)
_PREFERENCE_HINTS = (
    "prefer rather favor favour preference chosen chose bevorzuge lieber prefiero preferisco"
    " prefiro"
)
_PREFERENCE = re.compile(
    r"\b(?:i(?:'d| would| really| much| generally| usually| also)* (?:prefer|rather|favou?r)"
    r"|my preference|i(?:'ve| have) chosen|i chose"
    r"|ich bevorzuge|mir ist lieber|je préfère|prefiero|preferisco|prefiro|предпочитаю)\b"
    r"|我(?:更|比较)?(?:喜欢|偏好|倾向)|の方が好き"
)

_TIMES = frozenset(_TIME_WORDS.split())
_TIMELY = frozenset(_TIME_HINTS.split())
_INSTRUCTING = frozenset(_INSTRUCTION_HINTS.split())
_PREFERRING = frozenset(_PREFERENCE_HINTS.split())


@dataclass(frozen=True, slots=True)
class Signs:
    """What one text shows."""

    timed: bool
    asks: bool
    instructs: bool
    prefers: bool


def read(text: str) -> Signs:
    """The signs of a text."""
    seen = text[:READ].lower().replace("\u2019", "'")
    found = set(_WORD.findall(seen))
    plain = seen.isascii()
    return Signs(
        timed=_timed(seen, found, plain),
        asks=text.rstrip()[-1:] in {"?", "？"},
        instructs=len(text) <= LONGEST_INSTRUCTION
        and not (plain and found.isdisjoint(_INSTRUCTING))
        and bool(_INSTRUCTION.search(seen)),
        prefers=not (plain and found.isdisjoint(_PREFERRING)) and bool(_PREFERENCE.search(seen)),
    )


def _timed(seen: str, found: set[str], plain: bool) -> bool:
    return (
        not found.isdisjoint(_TIMES)
        or (not found.isdisjoint(_TIMELY) and bool(_TIME_PHRASE.search(seen)))
        or bool(_DIGIT.search(seen) and _TIME_NUMBER.search(seen))
        or (not plain and bool(_TIME_ELSEWHERE.search(seen)))
    )
