"""One-line text files with a checksum, so that damage is not mistaken for a wrong key."""

from __future__ import annotations

import hashlib
from typing import Final

from scrubjay.domain.errors import SchemaTooNew, SealBroken

VERSION: Final = "1"
_CHECK_DIGITS: Final = 8


def write_line(kind: str, *words: str) -> bytes:
    """The file that says these words."""
    text = " ".join((f"scrubjay-{kind}", VERSION, *words))
    return f"{text} {_check(text)}\n".encode("ascii")


def read_line(raw: bytes, kind: str, count: int) -> list[str]:
    """The words a file of this kind says; SealBroken if it is damaged."""
    text, _, check = raw.decode("ascii", "replace").removesuffix("\n").rpartition(" ")
    if not text.startswith(f"scrubjay-{kind} ") or _check(text) != check:
        raise damaged(kind)
    version, *words = text.split(" ")[1:]
    if version != VERSION:
        raise SchemaTooNew(f"The {kind} file was written by a newer scrubjay.")
    if len(words) != count:
        raise damaged(kind)
    return words


def unhex(word: str, kind: str, size: int) -> bytes:
    """The bytes of a hexadecimal word; SealBroken if there are not as many."""
    try:
        raw = bytes.fromhex(word)
    except ValueError as error:
        raise damaged(kind) from error
    if len(raw) != size:
        raise damaged(kind)
    return raw


def damaged(kind: str) -> SealBroken:
    """The error for a file that is not what was written."""
    return SealBroken(
        f"The {kind} file in the keys folder is damaged.",
        hint=f"Put an undamaged copy of the {kind} file back; nothing was changed.",
    )


def _check(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_CHECK_DIGITS]
