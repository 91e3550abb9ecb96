"""How the home of older code is opened and read, for its maker and for its test.

Everything is read through attributes, so that it does not matter what the results are made of.
"""

from __future__ import annotations

import json
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scrubjay import Jay, Scope, bootstrap, settings
from scrubjay.ports import Reach, pass_by
from scrubjay.testing.clock import FakeClock

VECTORS = Path(__file__).parent / "vectors"
HOME = VECTORS / "home.tar.gz"
EXPECTED = VECTORS / "home_expected.json"
ALICE = Scope("local", "alice")
TEAM = Scope("acme", "team")
SCOPES = (ALICE, TEAM)
READ_AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
"""When it is read: later than everything in it."""
ASKED_AT = datetime(2026, 6, 30, 12, tzinfo=UTC)
QUERIES = (
    "What tea does Alice drink?",
    "Where does Alice live now?",
    "How do we deploy the service?",
    "Which database holds the invoices?",
    "birthday",
    "When is the meeting with the accountant?",
    "peanuts allergy",
    "Who looks after the garden?",
    "What did we say about the telescope?",
    "answer in short sentences",
    "train to Vienna last winter",
    "Straßenbahn nach Grünau",
)


def unpack(folder: Path) -> Path:
    """The home, in a folder of its own."""
    with tarfile.open(HOME) as archive:
        # Not by argument: the first releases of Python 3.11 do not know it.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder


def open_home(
    folder: Path, scope: Scope, clock: FakeClock | None = None, reach: Reach = pass_by
) -> Jay:
    """One scope of the home; the reader's clock stands still, so that ages do."""
    clock = clock or FakeClock("reader", start=READ_AT, step=timedelta())
    env = {"HOME": str(folder), "SCRUBJAY_BALLAST_MEGABYTES": "0"}
    return Jay(bootstrap.build(settings.read(env, home=folder), clock=clock, reach=reach), scope)


# -- what is read --------------------------------------------------------------------------


def exported(jay: Jay) -> Any:
    """The export, parsed."""
    return json.loads(jay.export().content)


def recalled(jay: Jay, query: str) -> list[list[Any]]:
    """The ids that answer a question, best first, each with its score."""
    found = jay.recall(query, asked_at=ASKED_AT)
    assert not found.degraded
    return [[hit.memory.id, round(hit.score, 6)] for hit in found.hits]


def browsed(jay: Jay, *, superseded: bool = False) -> list[str]:
    """The ids of all memories, newest first."""
    return [memory.id for memory in jay.browse(superseded=superseded, limit=1000).data]


def history(jay: Jay, public_id: str) -> list[list[Any]]:
    """The versions of a memory, oldest first."""
    return [
        [one.id, one.content, one.supersedes, one.superseded_by, one.provenance.reason]
        for one in jay.history(public_id)
    ]


def turns(jay: Jay) -> list[dict[str, Any]]:
    """The turns, newest first."""
    return [
        {
            "id": turn.id,
            "at": turn.at.isoformat(),
            "user": turn.user,
            "assistant": turn.assistant,
            "session": turn.session,
            "model": turn.model,
            "channel": turn.channel,
            "origin": turn.origin.value,
            "actor": turn.actor.value,
            "metadata": dict(turn.metadata),
        }
        for turn in jay.turns(limit=1000)
    ]


def sessions(jay: Jay) -> list[list[Any]]:
    """The sessions, the latest first."""
    return [
        [
            one.name,
            one.first.isoformat(),
            one.last.isoformat(),
            one.memories,
            one.turns,
            one.tainted.value if one.tainted else None,
        ]
        for one in jay.sessions(limit=1000)
    ]


def receipts(jay: Jay) -> list[dict[str, Any]]:
    """The receipts, oldest first, each as the document a person keeps."""
    return [
        {
            "format": "scrubjay-receipt",
            "version": 1,
            "address": one.address,
            "verb": one.verb,
            "at": one.at.isoformat(),
            "erased": one.erased,
            "derived": one.derived,
            "already": one.already,
            "cells": [
                {"collection": cell.collection, "epoch": cell.epoch, "nonce": cell.nonce}
                for cell in one.cells
            ],
            "rotated": one.rotated,
            "backups": [
                {"name": note.name, "expires": note.expires.isoformat()} for note in one.backups
            ],
            "audit_count": one.audit_count,
            "audit_mac": one.audit_mac,
        }
        for one in jay.receipts()
    ]


def audit(jay: Jay) -> list[list[Any]]:
    """The audit trail, oldest first."""
    return [
        [one.count, one.at.isoformat(), one.verb, one.actor, list(one.subjects), one.number]
        for one in jay.audit(limit=1000)
    ]
