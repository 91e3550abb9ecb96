"""Notes that our programs keep in a scope, each with a proof (HMAC) that only this home can make.

They are documents, and whoever may write to the scope may write documents. A note tells a program
which files to write and which memories to forget, so one without its proof counts as none.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Final

from scrubjay.access import Keys
from scrubjay.engine import Kernel
from scrubjay.model.documents import ListDocuments, Put, ReadDocument
from scrubjay.model.errors import NotFound
from scrubjay.model.memory import Json
from scrubjay.model.pages import PAGE_LIMIT
from scrubjay.model.requests import USER
from scrubjay.model.scope import Scope
from scrubjay.ports import Clock

_DIGITS: Final = 32


class OwnNotes:
    """The notes in one scope, by name."""

    def __init__(self, engine: Kernel, scope: Scope, clock: Clock) -> None:
        self._engine = engine
        self._scope = scope
        self._secret = Keys(engine, clock).signing_secret()

    def read(self, name: str) -> Json:
        """The note of this name; None if there is none, or not one of ours."""
        try:
            found = self._engine.document(self._scope, ReadDocument(name))
        except NotFound:
            return None
        return self._proven(found.path, found.value)

    def listed(self, folder: str) -> Iterator[tuple[str, Json]]:
        """Our notes in a folder, with their names."""
        request = ListDocuments(folder, limit=PAGE_LIMIT)
        for one in self._engine.documents(self._scope, request).data:
            if (note := self._proven(one.path, one.value)) is not None:
                yield one.path, note

    def write(self, name: str, note: Json) -> None:
        """Write a note; a secret in it is removed first, so that the proof is of what is kept."""
        request = Put(name, {"note": note, "proof": self._proof(name, note)})
        if self._engine.put(self._scope, request, USER).redacted:
            value = self._engine.document(self._scope, ReadDocument(name)).value
            kept = value["note"] if isinstance(value, dict) else None
            again = Put(name, {"note": kept, "proof": self._proof(name, kept)})
            self._engine.put(self._scope, again, USER)

    def _proven(self, name: str, value: Json) -> Json:
        if not isinstance(value, dict) or value.keys() != {"note", "proof"}:
            return None
        right = self._proof(name, value["note"]).encode()
        given = str(value["proof"]).encode("utf-8", "replace")
        return value["note"] if hmac.compare_digest(given, right) else None

    def _proof(self, name: str, note: Json) -> str:
        said = json.dumps([str(self._scope), name, note], sort_keys=True)
        return hmac.digest(self._secret, said.encode(), hashlib.sha256).hex()[:_DIGITS]
