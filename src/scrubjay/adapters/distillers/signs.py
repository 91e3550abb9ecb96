"""Signs of what a text is: a courtesy, clockwork, the chatter of a tool, or something that matters.

Each looks at a few thousand characters at most, but for the chatter of a tool, which is parsed.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Final

_SHORT: Final = 400
"""A longer text is no courtesy and no sign of life."""
_JOB: Final = 4_000
"""And a longer one than this no job of a clockwork."""
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
_CLOCKWORK: Final = r"(?:heart[ _-]?beat|health[ _-]?check|keep[ _-]?alive|cron(?:[ _-]?job)?)"
_ROUTINE: Final = (
    # Nothing but its name and a time,
    rf"\W*{_CLOCKWORK}(?:[ _-](?:ok|check|poll|ping|run|tick|test|event))?[\W\d_]*"
    r"(?:utc|[ap]m|z)?\W*\Z"
    # its name as a label before a job,
    rf"|\s*\[{_CLOCKWORK}\b[^\]\n]{{0,80}}\]"
)
_ASKS_FOR_SIGN: Final = (
    # or a job that names the word to answer with if there is nothing to do.
    r"(?i:reply|say|respond|answer|return)(?i: with| only)?:? [`\"']?(?:HEARTBEAT_OK|NO_REPLY)\b"
)
_QUIET: Final = (
    rf"(?:{_CLOCKWORK}(?:_ok| ok)?\b|no (?:new|pending|further) "
    r"(?:messages|events|tasks|items|updates|work)\b"
    r"|nothing (?:new )?(?:to (?:report|do)|needs? attention|has changed|is due)\b"
    r"|no_?reply\b|status: ok\b|all (?:systems|checks) (?:ok|normal|passed|green)\b)"
    r"(?!.*\b(?:but|except|however|apart|though|only|yet)\b).*"
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
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_TAG: Final = re.compile(r"<([A-Za-z][\w:.-]{0,63})[\s>]")
_MARKS: Final = " \t\"'“”„«»*_-\u2013—•.,;:!…。\uff01\uff0c\uff1b)("


@cache
def _compiled(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """A pattern, compiled when it is first needed."""
    return re.compile(pattern, flags)


def plain(said: str) -> str:
    """A text without marks at its edges and with single spaces, in small letters."""
    return " ".join(said.split()).strip(_MARKS + "?👍🙏😊🙂").lower()


def is_trivial(said: str) -> bool:
    """Whether a text is only a courtesy or a sign of life."""
    if len(said) > _SHORT:
        return False
    words = plain(said)
    return not words or bool(_compiled(_TRIVIAL).fullmatch(words))


def is_routine(said: str) -> bool:
    """Whether a text belongs to the clockwork of an agent, rather than speaks of one."""
    return asks_for_sign(said) or bool(_compiled(_ROUTINE).match(said[:_SHORT]))


def asks_for_sign(said: str) -> bool:
    """Whether a text names the word to answer with if there is nothing to do; nobody talks so."""
    return len(said) <= _JOB and bool(_compiled(_ASKS_FOR_SIGN, 0).search(said))


def is_quiet(said: str) -> bool:
    """Whether the answer to a routine says no more than that there is nothing to say."""
    if len(said) > _SHORT:
        return False
    sentences = _SENTENCE_END.split(said.strip())
    return all(is_trivial(one) or _compiled(_QUIET).match(one.strip(_MARKS)) for one in sentences)


def is_machine(said: str) -> bool:
    """Whether a text is the chatter of a tool: one object, list or element and nothing else."""
    said = said.strip()
    if said[:1] + said[-1:] in ("{}", "[]"):
        return _is_json(said)
    return said[:1] + said[-1:] == "<>" and _is_element(said)


def _is_json(said: str) -> bool:
    try:
        json.loads(said)
    except (ValueError, RecursionError):
        return False
    return True


def _is_element(said: str) -> bool:
    """Whether the tag that begins a text is closed at its end, and not before."""
    tag = _TAG.match(said)
    if tag is None:
        return False
    depth = 0
    for found in re.finditer(rf"<(/?){re.escape(tag[1])}[\s>]", said):
        depth += -1 if found[1] else 1
        if depth <= 0:
            return found.end() == len(said)
    return False


def is_moving(said: str) -> bool:
    """Whether somebody shows how much it means to them."""
    return bool(_compiled(_MOVING).search(said))


def is_weighty(said: str) -> bool:
    """Whether something is decided, promised or due."""
    return bool(_compiled(_WEIGHTY).search(said))


def is_supposed(sentence: str) -> bool:
    """Whether a sentence only supposes something."""
    return bool(_compiled(_SUPPOSED).match(sentence))
