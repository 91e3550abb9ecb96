"""Made-up secrets: filled into templates at run time, so that no file here looks like a leak."""

from __future__ import annotations

import random
import re
import string
from base64 import b64encode

ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "word": string.ascii_letters + string.digits + "_-",
    "base64": string.ascii_letters + string.digits + "+/",
    "base58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "base32": string.ascii_uppercase + "234567",
    "bech32": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "lower32": string.ascii_lowercase + "234567",
    "upper": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "upperhex": "0123456789ABCDEF",
    "digits": string.digits,
}
_WORDS = [
    *("abandon", "badge", "cactus", "daring", "eagle", "fabric", "galaxy", "habit", "icon"),
    *("jacket", "kangaroo", "ladder", "magnet", "narrow", "oasis", "paddle", "quantum", "rabbit"),
    *("saddle", "tackle", "umbrella", "vacuum", "wagon", "yellow", "zebra", "anchor", "blossom"),
    *("captain", "dolphin", "envelope"),
]
_SLOT = re.compile(r"\{(-|uuid|[a-z]+[0-9]*(?=:))(?::(\w+))?(?::(\d+))?\}")


def fill(template: str, chance: random.Random) -> tuple[str, list[str]]:
    """The template with its slots filled, and what was filled in."""
    filled: list[str] = []

    def one(slot: re.Match[str]) -> str:
        kind, size, length = slot.groups()
        if kind == "-":
            return ""
        filled.append(_made(kind, size, length, chance))
        return filled[-1]

    return _SLOT.sub(one, template), filled


def _made(kind: str, size: str, length: str, chance: random.Random) -> str:
    if kind == "uuid":
        return "-".join(drawn("hex", n, chance) for n in (8, 4, 4, 4, 12))
    if kind == "pair":
        return b64encode(f"alice:{drawn('alnum', int(size), chance)}".encode()).decode()
    if kind == "words":
        return " ".join(chance.sample(_WORDS, int(size)))
    if kind in {"cards", "ibans"}:
        return grouped(_made(kind[:-1], size, length, chance))
    if kind == "card":
        return card(size, int(length), chance)
    if kind == "iban":
        letters = size.rstrip(string.digits)
        return iban(letters[:2], letters[2:], int(size.removeprefix(letters)), chance)
    return drawn(kind, int(size), chance)


def drawn(kind: str, size: int, chance: random.Random) -> str:
    """Characters of an alphabet, at least one of them a digit where it has any."""
    alphabet = ALPHABETS[kind]
    text = "".join(chance.choices(alphabet, k=size))
    if size < 8 or not set(string.digits) & set(alphabet) or re.search(r"\d.*\d", text):
        return text
    return drawn(kind, size, chance)


def card(prefix: str, length: int, chance: random.Random) -> str:
    """A number of an issuer, with a check digit that holds."""
    number = prefix + drawn("digits", length - len(prefix) - 1, chance)
    total = 0
    for place, digit in enumerate(map(int, reversed(number))):
        total += digit if place % 2 else digit * 2 - 9 * (digit > 4)
    return number + str(-total % 10)


def iban(country: str, bank: str, size: int, chance: random.Random) -> str:
    """An account of so many digits, with check digits that hold."""
    account = bank + drawn("digits", size, chance)
    number = "".join(str(int(letter, 36)) for letter in f"{account}{country}00")
    return f"{country}{98 - int(number) % 97:02}{account}"


def grouped(text: str) -> str:
    """The text in groups of four, as people write long numbers."""
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))
