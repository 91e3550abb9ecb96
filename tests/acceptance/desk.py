"""A log and a paper in a scope of their own: what was acknowledged is there, drafts are not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from scrubjay.engine import Kernel
from scrubjay.model.conversations import Append, DeleteConversation, ReadConversation
from scrubjay.model.documents import Put, ReadDocument, Remove
from scrubjay.model.errors import NotFound
from scrubjay.model.scope import Scope

DESK = Scope.parse("acme/desk")
_LONG = 70_000


class Desk:
    """Writes a number into a conversation, then into a document, then beside the home."""

    def __init__(self, engine: Kernel, folder: Path) -> None:
        self._engine = engine
        self._file = folder / "desk"

    def step(self, number: int) -> None:
        """One number; every fifth entry is long, every other draft is removed or deleted."""
        note = f"draft {number} ".ljust(_LONG if number % 5 == 0 else 1, "x")
        self._engine.append(DESK, Append("log", [{"id": f"entry-{number}", "body": number}]))
        self._engine.put(DESK, Put("paper", {"number": number}))
        self._engine.put(DESK, Put(f"draft/{number}", note))
        self._engine.append(DESK, Append(f"draft-{number}", [{"body": note}]))
        self._engine.remove(DESK, Remove(f"draft/{number}"))
        self._engine.delete_conversation(DESK, DeleteConversation(f"draft-{number}"))
        with self._file.open("a") as file:
            file.write(f"{number}\n")

    def problems(self) -> Iterator[str]:
        """What is wrong with what is there, one sentence each."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        if not (acknowledged := [int(line) for line in lines if line]):
            return
        read = self._engine.conversation(DESK, ReadConversation("log", limit=1_000))
        bodies = [one.body for one in read.entries]
        kept = [number for number in acknowledged if number in bodies]
        if read.next_cursor is None and kept != acknowledged:
            yield f"of {len(acknowledged)} acknowledged entries {len(kept)} are there"
        if len(set(map(str, bodies))) != len(bodies):
            yield "an entry is there twice"
        paper = self._engine.document(DESK, ReadDocument("paper")).value
        if not isinstance(paper, dict) or paper["number"] not in bodies:
            yield f"the document says {paper}, which no entry said before"
        elif bodies.index(paper["number"]) < bodies.index(acknowledged[-1]):
            yield "the document is older than what was acknowledged"
        for number in acknowledged:
            with suppress(NotFound):
                self._engine.document(DESK, ReadDocument(f"draft/{number}"))
                yield f"the document draft/{number} is back"
            with suppress(NotFound):
                self._engine.conversation(DESK, ReadConversation(f"draft-{number}"))
                yield f"the conversation draft-{number} is back"
        yield from self._engine.verify(DESK).problems
