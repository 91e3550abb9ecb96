"""What the harness asks of a memory system, ours or another's."""

from __future__ import annotations

from typing import Protocol

from bench.peers.material import Question, Turn


class Subject(Protocol):
    """A memory system in a folder of its own, used through its own public calls.

    It is made from that folder, below which everything it keeps has to be, and the vectors.
    """

    def version(self) -> str:
        """What was measured, by name and version."""

    def write(self, turn: Turn) -> object:
        """Store one turn as the system would by default; returns what `delete` needs."""

    def search(self, question: Question, limit: int) -> list[str]:
        """The ids of the turns found within the question's conversation, best first."""

    def delete(self, turn: Turn, handle: object) -> None:
        """Delete one turn by the call the system offers its users."""

    def close(self) -> None:
        """Let go of every file, as a program that ends well does."""
