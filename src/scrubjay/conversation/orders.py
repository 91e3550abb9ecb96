"""Orders in a text that nobody vouches for, read to withhold trust from it and never to give it.

No list of words knows every order. This one knows what agents are usually told by pages: to do
something always or never, to obey, to disregard what they were told, to hide something from the
user; in other letters, too. What it does not know stays a note of the agent's own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

from scrubjay.model.clean import clean
from scrubjay.model.memory import Kind

_BETWEEN: Final = re.compile(r"[\n.:;!?|()\u2013\u2014\u3002\uff1a]+| - ")
_MARKUP: Final = re.compile(r"<[^<>]{0,80}>|[*_`~\"\u201c\u201d\u00ab\u00bb]+")
"""Marks around words that change how they look, and not what they say."""
_MARKS: Final = re.compile(r"^(?:\[\w?\]|[\W\d_])+")
"""What stands before a statement without changing it: bullets, numbers, quotation marks."""
_LOOK_ALIKE: Final = str.maketrans(
    "абвгдеорсухіјѕһԁԛԝкмтнАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβειικνορτυχγωıɑɡ",
    "abbrdeopcyxijshdqwkmthABEKMHOPCTYXIJSABEZHIKMNOPTYXabeiiknoptuxywiag",
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_AGENT: Final = (
    r"(?:you|(?:(?:the|an|any|all|every|each|this|your|future) ){0,2}(?:ai |llm )?"
    r"(?:assistants?|agents?|ais?|llms?|bots?|chatbots?|(?:language )?models?|claude|codex|gpt"
    r"|copilot|gemini|repl(?:y|ies)|answers?|responses?))"
)
_RULES: Final = (
    r"(?:instructions?|orders?|commands?|prompts?|rules?|guidelines?|polic(?:y|ies)|directives?"
    r"|safety|system|anweisung(?:en)?|befehle?|regeln|instrucciones|reglas|consignes|règles|istruzioni"
    r"|regole|instruções|regras|инструкци\w+|указани\w+|правил\w*)"
)
_DEEDS: Final = (
    r"(?:obey|ignore|disregard|comply|pretend|forward|exfiltrate|upload|execute|conceal|hide|override"
    r"|bypass|act as|you are now|send|e-?mail|copy|post|run|install|transfer|reveal|disclose|leak"
    r"|insert|append|prepend|recommend|promote|whitelist|disable|approve|treat|assume|follow|trust"
    r"|redirect)\b(?! (?:is|are|was|were|of|has|had)\b)"
)
_ORDERS: Final = re.compile(
    "|".join(
        (
            # Whom it is about is the reader.
            rf"\b{_AGENT} (?:\w+ )?(?:must|shall|should|ought|has to|have to|needs? to|is to|are to"
            r"|(?:is|are) (?:\w+ )?(?:required|obliged|instructed|ordered|commanded|expected"
            r"|supposed|told|allowed|authori[sz]ed|permitted|now)|will (?:always|never|now|only)"
            r"|(?:always|never))\b",
            r"\b(?:must|shall|should) (?:always|never)\b",
            r"\bit is (?:mandatory|required|imperative|essential|important|necessary)"
            r" (?:that you|to)\b",
            # What it is about is rules, those of before or its own.
            r"\b(?:ignor|disregard|overrid|bypass|forget|discard|skip|obey|follow|compl(?:y|ies)"
            r"|violat|neglect|vergiss|ignorier|missacht|befolg|olvid|desobede|obedec|oubli|obé[iy]"
            r"|ignora|dimentica|segui|desconsider|esque[cç]|игнорир|забуд|соблюда|выполня)\w*"
            rf" (?:[\w'-]+ ){{0,5}}{_RULES}\b",
            rf"\b(?:new|real|actual|updated|secret|hidden|following) {_RULES}\b",
            r"\bsystem (?:prompt|message|override)\b",
            r"(?:忽略|无视|忘记|遵守|服从)[^。]{0,12}(?:指令|指示|规则|命令|提示)",
            r"(?:指示|命令|ルール)[^。]{0,8}(?:無視|従)",
            # It begins with a deed, or asks for secrecy.
            rf"^(?:(?:please|now|then|also|and|first|next|kindly|just) )*{_DEEDS}",
            rf"^(?:before|after|when|whenever|if|once|from)\b[^,]{{0,60}}, (?:please )?{_DEEDS}",
            r"\b(?:do not|don't|never|without) (?:\w+ )?"
            r"(?:tell|inform|alert|warn|notify|ask)(?:ing)?\b",
        )
    ),
    re.IGNORECASE,
)


def ordering(text: str, kind_of: Callable[[str], Kind]) -> Kind | None:
    """The behavioral kind of the first statement that reads like an order; None if none does."""
    for statement in _statements(text):
        for spelled in _spellings(statement):
            if (kind := kind_of(spelled)).behavioral:
                return kind
            if _ORDERS.search(spelled):
                return Kind.INSTRUCTION
        if any(map(_is_mixed, _WORD.findall(statement))):
            return Kind.INSTRUCTION
    return None


def _statements(text: str) -> Iterator[str]:
    """The statements of a text as it will be stored, so that no mark before an order hides it."""
    plain = unicodedata.normalize("NFKC", clean(text)).replace("\u2019", "'")
    for one in _BETWEEN.split(_MARKUP.sub("", plain)):
        if statement := _MARKS.sub("", " ".join(one.split())):
            yield statement


def _spellings(statement: str) -> Iterator[str]:
    """The statement as it stands, and with the letters that its letters look like."""
    yield statement
    if not statement.isascii():
        bare = "".join(
            one
            for one in unicodedata.normalize("NFD", statement.translate(_LOOK_ALIKE))
            if unicodedata.category(one) != "Mn"
        )
        if bare != statement:
            yield bare


def _is_mixed(word: str) -> bool:
    """Whether a word has letters of several alphabets, as no word of a language has."""
    scripts = {unicodedata.name(one, "").partition(" ")[0] for one in word}
    return "LATIN" in scripts and bool(scripts & _ALPHABETS)


_ALPHABETS: Final = {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN"}
"""Alphabets with letters that look like Latin ones."""
