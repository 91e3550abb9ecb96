"""Pending blobs: the names of blobs that are written before the transaction that refers to them.

A name is noted, the blob is put, and the transaction that refers to it strikes the note. A sweep
spares what is noted, and takes notes of earlier days back: a writer that comes so late finds its
note gone, and stores the blob again under another name. So no clock decides what is lost, and a
process that died leaves nothing for long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from scrubjay.ports import Tx, View

NAME = "pending"
PARCEL = "parcel."
"""Beginning of the names of blobs that no row refers to: sealed files, to be fetched once."""
DAYS = 1
"""Days for which a note holds: the one it was written on, and this many more."""


def noted(view: View) -> dict[str, int]:
    """The names of pending blobs, each with the day it was noted on.

    They are in clear, as the names of the blobs themselves are: random, and no key opens them.
    """
    cell = view.value(NAME)
    found: dict[str, int] = {} if cell is None else json.loads(cell)
    return found


def note(tx: Tx, names: Iterable[str], today: int) -> None:
    """Note blobs that are about to be put."""
    _write(tx, noted(tx) | dict.fromkeys(names, today))


def claim(tx: Tx, names: Iterable[str]) -> list[str]:
    """Strike the notes of blobs that a row or the manifest now refers to.

    Returns those that had none any more: a sweep may have deleted them.
    """
    left = noted(tx)
    lost = [name for name in names if left.pop(name, None) is None]
    _write(tx, left)
    return lost


def spare(tx: Tx, today: int) -> frozenset[str]:
    """The blobs a sweep leaves alone; older notes are taken back."""
    found = noted(tx)
    left = {name: day for name, day in found.items() if today - DAYS <= day <= today}
    if left != found:
        _write(tx, left)
    return frozenset(left)


def _write(tx: Tx, left: dict[str, int]) -> None:
    tx.set_value(NAME, json.dumps(left).encode() if left else None)
