"""What a regular expression cannot say about a secret: check digits, and whether it looks like one.

Each check is given what a rule matched and answers how many of its characters are the secret; 0
means that it is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from math import log2
from typing import Final

_CARD_ISSUERS: Final = (
    # First digits from and to, and the lengths a number of that issuer has.
    (34, 34, {15}),
    (37, 37, {15}),
    (4, 4, {16, 19}),
    (51, 55, {16}),
    (2221, 2720, {16}),
    (6011, 6011, {16, 19}),
    (644, 649, {16, 19}),
    (65, 65, {16, 19}),
    (3528, 3589, {16, 19}),
    (300, 305, {14, 16}),
    (36, 36, {14}),
    (38, 39, {14, 16}),
    (62, 62, {16, 17, 18, 19}),
)
_IBAN_LENGTHS: Final = {
    length: frozenset(countries.split())
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
}
_LENGTH_BY_COUNTRY: Final = {
    country: length for length, countries in _IBAN_LENGTHS.items() for country in countries
}
_RUN: Final = re.compile(r"[A-Za-z0-9]+")
_SYMBOLS: Final = frozenset("!@#$%^&*~")
_END: Final = ".,:;!?"


def card(text: str) -> int:
    """A payment card: digits of an issuer in its length, and the check digit holds."""
    digits = [int(letter) for letter in text if letter.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    holds = (sum(doubled) + sum(digits[-1::-2])) % 10 == 0
    return len(text) if holds and _is_issued(digits) else 0


def _is_issued(digits: list[int]) -> bool:
    number = "".join(map(str, digits))
    return any(
        low <= int(number[: len(str(low))]) <= high and len(number) in lengths
        for low, high, lengths in _CARD_ISSUERS
    )


def iban(text: str) -> int:
    """A bank account in the length of its country, and the check digits hold; the rest is cut."""
    places = [at for at, letter in enumerate(text) if letter.isalnum()]
    length = _LENGTH_BY_COUNTRY.get(text[:2], 0)
    if not length or len(places) < length:
        return 0
    end = places[length - 1] + 1
    if text[end : end + 1].isalnum():
        return 0
    compact = "".join(text[at] for at in places[:length])
    number = "".join(str(int(letter, 36)) for letter in compact[4:] + compact[:4])
    return end if int(number) % 97 == 1 else 0


def mixed(text: str) -> int:
    """Letters and digits together, as chance makes them and names seldom are."""
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return len(text) if has_both else 0


def three_kinds(text: str) -> int:
    """Small letters, capitals and digits together: not the hash it could be mistaken for."""
    kinds = (str.islower, str.isupper, str.isdigit)
    return len(text) if all(any(map(kind, text)) for kind in kinds) else 0


def opaque(text: str) -> int:
    """A token: a long stretch of letters and digits mixed, which words and paths have not."""
    runs = [run for run in _RUN.findall(text) if mixed(run)]
    whole = any(_is_random(run) for run in runs)
    return len(text) if whole or (len(text) >= 20 and len(runs) >= 3) else 0


def _is_random(run: str) -> bool:
    digits = sum(map(str.isdigit, run))
    return (len(run) >= 10 and digits > 1) or (len(run) >= 12 and bool(three_kinds(run)))


def chosen(text: str) -> int:
    """A password: digits alone, or letters with digits or symbols among them, and no sentence."""
    core = text.strip(_END)
    if len(core) < 4 or " " in core:
        return 0
    if core.isdigit():
        return len(text)
    letters = any(map(str.isalpha, core))
    digits = any(map(str.isdigit, core))
    symbols = not _SYMBOLS.isdisjoint(core[1:-1])
    return len(text) if letters and len(core) >= 6 and (digits or symbols) else 0


def strong(text: str) -> int:
    """A password of letters, digits and a symbol, which no name of a product is."""
    core = text.rstrip(".,:;?")
    kinds = (any(map(str.isalpha, core)), any(map(str.isdigit, core)), _SYMBOLS & set(core))
    return len(text) if len(core) >= 8 and all(kinds) else 0


def words(text: str) -> int:
    """Recovery words: hardly one of them twice, which a sentence of that length cannot avoid."""
    spoken = [word for word in re.split(r"[ ,]+", text.lower()) if word]
    return len(text) if len(set(spoken)) >= len(spoken) - 1 else 0


def entropy(text: str) -> float:
    """Bits per character, by how often each of its characters occurs."""
    size = len(text)
    return -sum(n / size * log2(n / size) for n in Counter(text).values()) if size else 0.0


CHECKS: Final[Mapping[str, Callable[[str], int]]] = {
    "card": card,
    "iban": iban,
    "mixed": mixed,
    "three_kinds": three_kinds,
    "opaque": opaque,
    "chosen": chosen,
    "strong": strong,
    "words": words,
}
"""By the name a rule calls them."""
