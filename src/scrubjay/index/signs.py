"""What a text shows at a glance: a time, a number, a question, a standing wish.

The ranking reads these from columns, so that no text is unsealed to rank it.
"""

# ruff: noqa: RUF001 - letters of other scripts are meant.

from __future__ import annotations

import re
from dataclasses import dataclass

SIGNS_VERSION = 1
"""Stored with the columns: signs of another version must be read again."""

READ = 1000
"""Characters looked at; what a long text shows, it shows early."""
LONGEST_INSTRUCTION = 400

_MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_TIME = re.compile(
    rf"\b(?:{_MONTHS}|(?:in|last|this|next) may|may \d+|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|yesterday|today|tonight|tomorrow|ago|since|recently|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)"
    r"|\d{1,2}/\d{1,2}|(?:this|next) (?:week|weekend|month|year|morning|summer|fall|winter|spring)"
    r"|last (?:night|week|weekend|month|year|summer|winter|fall|spring)"
    r"|(?:day|week|month|year|hour|minute)s?"
    r"|gestern|heute|morgen|letzte[nrs]?|woche|monat|jahr|hier|aujourd'hui|demain|semaine|mois"
    r"|ayer|hoy|mañana|semana|mes|año|ieri|oggi|domani|вчера|сегодня|завтра|назад|недел\w+|месяц\w*)\b"
    r"|昨天|今天|明天|上周|下周|上个月|去年|明年|\d+[年月日号]|昨日|今日|明日|先週|来週|先月|去年",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|once|twice|half|hundred"
    r"|thousand)\b|[一二三四五六七八九十百千两]",
    re.IGNORECASE,
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
    r"|^(?:请?总是|请?始终|永远|以后|从现在起|每次|不要|别)|从现在起|^(?:今後|これから|必ず|いつも)",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\b(?:i(?:'d| would| really| much| generally| usually| also)* (?:prefer|rather|favou?r)"
    r"|my preference|i(?:'ve| have) chosen|i chose"
    r"|ich bevorzuge|mir ist lieber|je préfère|prefiero|preferisco|prefiro|предпочитаю)\b"
    r"|我(?:更|比较)?(?:喜欢|偏好|倾向)|の方が好き",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Signs:
    """What one text shows."""

    timed: bool
    asks: bool
    counts: bool
    instructs: bool
    prefers: bool


def read(text: str) -> Signs:
    """The signs of a text."""
    seen = text[:READ].replace("\u2019", "'")
    return Signs(
        timed=bool(_TIME.search(seen)),
        asks=text.rstrip()[-1:] in {"?", "？"},
        counts=bool(_COUNT.search(seen)),
        instructs=len(text) <= LONGEST_INSTRUCTION and bool(_INSTRUCTION.search(seen)),
        prefers=bool(_PREFERENCE.search(seen)),
    )
