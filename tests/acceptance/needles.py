"""Hunting for planted words in files: as they are, as UTF-16, and as hex, base32 or base64.

Runs of letters or digits as long as a word hardly occur by chance in sealed bytes. So all bytes
are looked through once per way of writing, for such runs, and only these are read.
"""

from __future__ import annotations

import base64
import binascii
import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LENGTH = 16
_LETTERS = string.ascii_letters.encode()


@dataclass(frozen=True, slots=True)
class Way:
    """One way to write a word: which characters, in which order, and how to read them."""

    name: str
    run: bytes
    """What the shortest run looks like once every allowed character is an `a`."""
    allowed: bytes
    read: Callable[[bytes], Iterator[bytes]]

    def runs(self, raw: bytes) -> Iterator[bytes]:
        """Every run of allowed characters that is long enough."""
        kept = set(self.allowed)
        # Zeros stay as they are: UTF-16 has one beside every letter.
        table = bytes(97 if one in kept else (one if one == 0 else 32) for one in range(256))
        seen = raw.translate(table)
        rest = re.compile(b"(?:" + self.run[: 2 if 0 in self.run else 1] + b")+")
        at = seen.find(self.run)
        while at >= 0:
            match = rest.match(seen, at)
            assert match is not None
            yield raw[at : match.end()]
            at = seen.find(self.run, match.end())


def _text(run: bytes) -> Iterator[bytes]:
    yield run.replace(b"\x00", b"").lower()


def _hex(run: bytes) -> Iterator[bytes]:
    yield from (bytes.fromhex(run[at : len(run) - (len(run) - at) % 2].decode()) for at in (0, 1))


def _base32(run: bytes) -> Iterator[bytes]:
    yield from (_decoded(run.upper()[at:], 8, base64.b32decode) for at in range(8))


def _base64(run: bytes) -> Iterator[bytes]:
    plain = run.replace(b"-", b"+").replace(b"_", b"/")
    yield from (_decoded(plain[at:], 4, base64.b64decode) for at in range(4))


def _decoded(run: bytes, group: int, decode: Callable[[bytes], bytes]) -> bytes:
    """The whole groups of a run, and what can be had of the last one."""
    whole = len(run) // group * group
    try:
        return decode(run[:whole]) + decode((run[whole:] + b"A" * group)[:group])
    except binascii.Error:
        return b""


WAYS = (
    Way("text", b"a" * LENGTH, _LETTERS, _text),
    Way("UTF-16-LE", b"a\x00" * LENGTH, _LETTERS, _text),
    Way("UTF-16-BE", b"\x00a" * LENGTH, _LETTERS, _text),
    Way("hex", b"a" * (2 * LENGTH), string.hexdigits.encode(), _hex),
    Way("base32", b"a" * (8 * LENGTH // 5), _LETTERS + b"234567", _base32),
    Way("base64", b"a" * (4 * LENGTH // 3), _LETTERS + string.digits.encode() + b"+/-_", _base64),
)
_ID = Way("id", b"a" * 36, string.hexdigits.encode() + b"-", _text)
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def make(seed: int, number: int) -> list[str]:
    """So many words, each of sixteen letters and unlike any other."""
    chance = random.Random(seed)
    return ["".join(chance.choices(string.ascii_lowercase, k=LENGTH)) for _ in range(number)]


def hits(raw: bytes, needles: list[str]) -> Iterator[str]:
    """Which needles are in these bytes, and how; and any id a memory was given."""
    wanted = [needle.encode() for needle in needles]
    for way in WAYS:
        for run in way.runs(raw):
            for text in way.read(run):
                yield from (f"{word.decode()} as {way.name}" for word in wanted if word in text)
    for run in _ID.runs(raw):
        yield from (f"an id: {found.decode()}" for found in _UUID.findall(run.lower()))
