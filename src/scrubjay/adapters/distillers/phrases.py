"""How people say what is worth remembering, by language: patterns over one sentence.

A pattern that names what it is about has a group `slot`. They are written for sentences whose
spaces are single, whose apostrophes are straight and which have no mark at the end; letter case
does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from scrubjay.domain.memory import Kind

_THING: Final = r"[\w'-]+(?: [\w'-]+){0,3}?"
"""One to four words, as few as will do."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """One way to say something, what kind of memory it makes, and what it is about."""

    kind: Kind
    pattern: re.Pattern[str]
    slot: str | None = None
    """What it is about where the pattern has no group for it."""


_FACTS: Final = (
    # English
    (rf"my (?P<slot>{_THING})(?:'s)? (?:is|are|was born|will be) (?!not\b|the one\b).+", None),
    (r"my name(?:'s| is) .+", "name"),
    (rf"our (?P<slot>{_THING}) (?:is|are) (?!not\b).+", None),
    (r"i (?:live|moved|am moving|'m moving|relocated) (?:in|to|near) .+", "home"),
    (r"i (?:work|worked) (?:at|for|as|in|with) .+", "work"),
    (r"i(?:'m| am) (?:a|an|allergic|from|married|vegan|vegetarian|diabetic|\d+) ?.*", None),
    (r"i was born .+", "birth"),
    (r"i have (?:a|an|two|three|four|no) (?!question|problem|idea|doubt|feeling|look)\w+.*", None),
    (r"(?:please )?(?:remember|note|keep in mind|don't forget)(?: that|:) .+", None),
    # German
    (
        rf"meine?[mnrs]? (?P<slot>{_THING}) (?:ist|sind|heißt|heissen|heißen|war) (?!nicht\b).+",
        None,
    ),
    (r"ich hei(?:ß|ss)e .+", "name"),
    (r"ich (?:wohne|lebe) (?:in|bei|auf) .+", "home"),
    (r"ich arbeite (?:bei|als|in|für) .+", "work"),
    (r"ich bin (?:ein|eine|allergisch|aus|verheiratet|vegan|vegetarier(?:in)?|\d+)\b.*", None),
    (r"(?:bitte )?(?:merk dir|denk daran|vergiss nicht),? .+", None),
    # French
    (rf"(?:mon|ma|mes) (?P<slot>{_THING}) (?:est|sont|s'appelle) (?!pas\b).+", None),
    (r"je m'appelle .+", "name"),
    (r"j'habite .+", "home"),
    (r"je travaille (?:chez|comme|dans|à|pour|en) .+", "work"),
    (r"je suis (?:un|une|allergique|marié|mariée|végétarien|végétarienne|né|née)\b.*", None),
    (r"(?:souviens-toi|rappelle-toi|n'oublie pas),? (?:que )?.+", None),
    # Spanish
    (rf"mis? (?P<slot>{_THING}) (?:es|son|se llaman?|está) (?!no\b).+", None),
    (r"me llamo .+", "name"),
    (r"(?:yo )?vivo en .+", "home"),
    (r"(?:yo )?trabajo (?:en|como|para|de) .+", "work"),
    (r"(?:yo )?soy (?:un|una|alérgic[oa]|de|veg(?:ano|ana|etarian[oa]))\b.*", None),
    (r"(?:recuerda|no olvides) que .+", None),
    # Chinese
    (r"我的(?P<slot>[^是叫在\uff0c,\s]{1,12})(?:是|叫|在).+", None),
    (r"我(?:叫|的名字是).+", "name"),
    (r"我(?:现在)?(?:住在|搬到).+", "home"),
    (r"我在.+(?:工作|上班).*", "work"),
    (r"我(?:对.+过敏|是(?!说|想|不是).+)", None),
    (r"请?记住.+", None),
)
_PREFERENCES: Final = (
    (rf"my favou?rite (?P<slot>{_THING}) (?:is|are) .+", None),
    (
        r"i(?:'d| would)? (?:really |much |generally |usually |always |still |also |strongly )?"
        r"(?:prefer|rather|love|adore|enjoy|hate|dislike|loathe|like(?! to (?:ask|know|see)\b)) .+",
        None,
    ),
    (
        r"i (?:don't|do not|never|can't|cannot) "
        r"(?:really )?(?:like|want|enjoy|eat|drink|use|stand) .+",
        None,
    ),
    (r"i(?:'m| am) (?:not )?(?:a big fan of|fond of|into) .+", None),
    (r"(?:mein lieblings|meine lieblings)(?P<slot>\w+) (?:ist|sind) .+", None),
    (
        r"ich (?:bevorzuge|mag|liebe|hasse|trinke lieber|esse lieber|hätte lieber|will lieber) .+",
        None,
    ),
    (r"mir (?:ist|wäre|sind) .+ lieber\b.*", None),
    (r"je (?:préfère|déteste|adore|n'aime pas|préférerais) .+", None),
    (r"j'(?:aime|adore) .+", None),
    (r"(?:yo )?(?:prefiero|odio|detesto|me encantan?|no me gustan?|me gustan?) .+", None),
    (r"mi (?P<slot>\w+) (?:favorit[oa]|preferid[oa]) (?:es|son) .+", None),
    (r"我(?:更|比较|最|很|特别)?(?:喜欢|偏好|偏爱|讨厌|不喜欢|不吃|不喝|想要).+", None),
)
_INSTRUCTIONS: Final = (
    (r"(?:please )?(?:from now on|going forward|in (?:the )?future),? .+", None),
    (r"(?:please )?call me .+", "how to call the user"),
    (r"(?:please )?(?:always|never|don't ever) (?!mind\b)\w+.*", None),
    (r"(?:please )?(?:don't|do not|stop) "
     r"(?!worry|know|think|care|you\b|forget\b)\w+ .+", None),
    (r"(?:please )?make sure (?:to|that|you) .+", None),
    (r"you (?:should|must) (?:always|never) .+", None),
    (r"(?:bitte )?(?:ab jetzt|ab sofort|von nun an|in zukunft|künftig),? .+", None),
    (r"(?:bitte )?nenn(?:e|en sie)? mich .+", "how to call the user"),
    (r"(?:bitte )?(?:immer|niemals|nie|kein|keine|keinen) .+", None),
    (r".+ bitte (?:nicht|nie|nie mehr|immer) .+", None),
    (r"(?:s'il te plaît,? )?(?:à partir de maintenant|dorénavant|désormais),? .+", None),
    (r"(?:appelle|appelez)-moi .+", "how to call the user"),
    (r"(?:toujours|jamais) .+", None),
    (r"n(?:e |')\w+ (?:pas|plus|jamais)\b.*", None),
    (r"(?:por favor,? )?(?:a partir de ahora|de ahora en adelante|desde ahora),? .+", None),
    (r"(?:por favor,? )?(?:llámame|llámeme|dime) .+", "how to call the user"),
    (r"(?:siempre|nunca) .+", None),
    (r"(?:por favor,? )?no (?:me |lo |la )?(?:uses|hagas|escribas|vuelvas|pongas|envíes|digas"
     r"|llames|respondas|mandes|repitas)\b.*", None),
    (r"(?:请)?(?:从现在(?:开始|起)|以后|今后).+", None),
    (r"(?:请|以后)?(?:叫我|称呼我).+", "how to call the user"),
    (r"(?:请)?(?:不要|别(?!人|的)|总是|永远不要|务必).+", None),
)  # fmt: skip
_CORRECTIONS: Final = (
    r"(?:no,? )?actually,? (?P<rest>.+)",
    r"(?:no|nope|sorry|wait)[,:] (?:actually,? )?(?:i meant,? )?(?P<rest>.+)",
    r"(?:correction|to correct myself)[:,] ?(?P<rest>.+)",
    r"i meant (?:to say )?(?P<rest>.+)",
    r"(?:that's|that is|it's|you're) (?:wrong|not (?:right|correct|true))"
    r"[,:;]? ?(?P<rest>.*)",
    r"(?:eigentlich|korrektur:|ich meinte|nein,|das stimmt nicht,?)[ ,](?P<rest>.*)",
    r"(?:en fait|correction ?:|je voulais dire|non,|c'est faux,?)[ ,](?P<rest>.*)",
    r"(?:en realidad|corrección:|quise decir|no, |eso no es correcto,?)[ ,]?(?P<rest>.+)",
    r"(?:其实|不对[\uff0c,]?|更正[\uff1a:]?|我是说|应该是)(?P<rest>.+)",
)
_TRIVIAL: Final = (
    r"ok(?:ay|ie)?|k|kk|yes|yep|yeah|yup|no|nope|sure|fine|right|got it|i see|understood|noted"
    r"|thanks?(?: you)?(?: (?:so|very) much| a lot)?|thx|ty|cheers|great|cool|nice|perfect|good"
    r"|awesome|excellent|hi|hello|hey|good (?:morning|evening|night|afternoon)|bye|goodbye"
    r"|continue|go on|go ahead|proceed|next|done|ping|pong|test|testing|hm+|lol|haha+|please"
    r"|you(?:'re| are) welcome|no problem|anything else|glad (?:i could|to) help"
    r"|danke(?: schön| dir| sehr)?|vielen dank|ja|nein|gut|super|alles klar|genau|weiter|bitte"
    r"|hallo|tschüss|guten (?:morgen|tag|abend)|merci(?: beaucoup)?|oui|non|d'accord|bonjour"
    r"|salut|très bien|parfait|gracias|muchas gracias|sí|vale|de acuerdo|hola|adiós|perfecto"
    r"|谢谢你?|好的?|嗯+|是的?|不是|对|行|可以|你好|再见|继续|收到|明白了?"
)
_ROUTINE: Final = (
    r"\bheart[ _-]?beat(?:_ok)?\b|\bhealth[ _-]?check\b|\bkeep[ -]?alive\b|^\[?cron\b"
    r"|\bno (?:new|pending|further) (?:messages|events|tasks|items|updates|work)\b"
    r"|\bnothing (?:new )?(?:to (?:report|do)|needs? attention|has changed)\b"
    r"|\bno_?reply\b|\bstatus: ok\b|\ball (?:systems|checks) (?:ok|normal|passed|green)\b"
)
_MOVING: Final = (
    r"\b(?:i (?:just )?(?:love|hate|miss)|heartbroken|devastated|furious|terrified|scared|afraid"
    r"|thrilled|overjoyed|ecstatic|so (?:happy|sad|proud|excited|angry|upset|worried|grateful)"
    r"|really (?:upset|hurt|scared|angry|worried|happy|proud)|cr(?:y|ied|ying)|grie(?:f|ving)"
    r"|passed away|died|funeral|divorce|diagnos(?:ed|is)|cancer|panic|ashamed|lonely|anxious"
    r"|means (?:so much|the world|a lot) to me|never forgive|breaks my heart"
    r"|traurig|wütend|verzweifelt|überglücklich|gestorben|habe angst|hasse|triste|furieux"
    r"|furieuse|j'ai peur|mort|décédé|heureuse?|tengo miedo|murió|falleció|enojad[oa]"
    r"|feliz|llor(?:o|é|ando))\b|难过|伤心|害怕|去世|生气|开心极了|崩溃|[!\uff01]{2,}|[😀😂😍😭😡😢😱💔❤]"
)
_WEIGHTY: Final = (
    r"\b(?:we(?:'ve| have)? (?:decided|agreed)|let's go with|i(?:'ve| have)? "
    r"decided|i promise|deadline|due (?:on|by)|by (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|appointment|emergency|important|wir haben beschlossen|abgabetermin|wichtig|nous avons décidé"
    r"|décidé|échéance|hemos decidido|plazo|importante)\b|决定|截止|重要|约好"
)
_SUPPOSED: Final = (
    r"(?:if|suppose|imagine|what if|let's say|wenn|falls|si|imagine que|如果|假如)\b.*"
)


@cache
def phrases() -> tuple[Phrase, ...]:
    """All ways to say something that are known, the most telling first."""
    return tuple(
        Phrase(kind, compiled(pattern), slot)
        for kind, group in (
            (Kind.PREFERENCE, _PREFERENCES),
            (Kind.INSTRUCTION, _INSTRUCTIONS),
            (Kind.FACT, _FACTS),
        )
        for pattern, slot in group
    )


@cache
def corrections() -> tuple[re.Pattern[str], ...]:
    """How a correction begins; what it corrects to is the group `rest`."""
    return tuple(compiled(pattern) for pattern in _CORRECTIONS)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, compiled when it is first needed."""
    return re.compile(pattern, re.IGNORECASE)


def is_trivial(said: str) -> bool:
    """Whether a text, stripped of marks, is only a courtesy or a sign of life."""
    return not said or bool(compiled(_TRIVIAL).fullmatch(said))


def is_routine(said: str) -> bool:
    """Whether a text belongs to the clockwork of an agent."""
    return bool(compiled(_ROUTINE).search(said))


def is_moving(said: str) -> bool:
    """Whether somebody shows how much it means to them."""
    return bool(compiled(_MOVING).search(said))


def is_weighty(said: str) -> bool:
    """Whether something is decided, promised or due."""
    return bool(compiled(_WEIGHTY).search(said))


def is_supposed(sentence: str) -> bool:
    """Whether a sentence only supposes something."""
    return bool(compiled(_SUPPOSED).match(sentence))


def found_in(sentence: str) -> Iterator[tuple[Phrase, re.Match[str]]]:
    """The ways in which a sentence says something worth keeping."""
    for phrase in phrases():
        if match := phrase.pattern.fullmatch(sentence):
            yield phrase, match
