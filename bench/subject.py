"""What is measured: a scope in the embedded default set-up, on the disk of the checkout."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

import apsw

from bench.bare import Cell
from scrubjay import bootstrap, settings
from scrubjay.engine.transfer import bundle
from scrubjay.handle import Jay
from scrubjay.model.memory import Kind, Memory
from scrubjay.model.scope import Scope

SCRATCH = Path(__file__).parent / "scratch"
_SENTENCE = (
    "Alice prefers green tea in the morning and asks for short answers when she travels by train "
    "to the office near the river where her team meets every second Tuesday about the new release"
)
_LETTERS = "aabdeeefghiiklmnnooprrsstttuvwy"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the same disk as the checkout, removed afterwards."""
    SCRATCH.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=SCRATCH) as folder:
        yield Path(folder)


def texts(length: int) -> Iterator[str]:
    """Sentences of exactly `length` characters, no two alike."""
    # Two words in three are usual ones: what is worked out once for a word must not hide what a
    # text costs that has words nobody has met.
    chance = random.Random(length)
    rare = ["".join(chance.choices(_LETTERS, k=chance.randint(3, 10))) for _ in range(5000)]
    usual = _SENTENCE.split()
    vocabulary = [*rare, *usual * (2 * len(rare) // len(usual))]
    number = 0
    while True:
        number += 1
        words = [f"{number}:"]
        while sum(map(len, words)) + len(words) <= length:
            words.append(chance.choice(vocabulary))
        yield " ".join(words)[:length].ljust(length, ".")


class Subject:
    """One scope and the cells it wrote."""

    def __init__(self, folder: Path, *, vfs: str | None = None) -> None:
        found = settings.at_home(folder)
        engine = bootstrap.build(found, vfs=vfs)
        scope = Scope.parse("bench")
        engine.open(scope)
        self.home = folder
        self.engine, self.scope = engine, scope
        self.jay = Jay(engine, scope)
        (self.path,) = (found.data / "scopes").glob("*.sqlite")
        self._reader = apsw.Connection(os.fspath(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        self._seen = 0

    def __enter__(self) -> Subject:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reader.close()
        self.jay.close()

    def new_cells(self) -> list[Cell]:
        """The ids and cells written since this was last asked."""
        query = "SELECT seq, id, cell FROM memory WHERE seq > ? ORDER BY seq"
        rows: list[Any] = self._reader.execute(query, (self._seen,)).fetchall()
        self._seen = rows[-1][0] if rows else self._seen
        return [(row_id, cell) for _, row_id, cell in rows]

    def fill(self, count: int, length: int = 200) -> list[str]:
        """Load as many memories, in one transaction; their ids."""
        now = datetime.now(UTC)
        source = texts(length)
        chance = random.Random(count)
        memories = tuple(
            Memory(
                id=f"mem-{chance.getrandbits(128):032x}",
                kind=Kind.FACT,
                content=next(source),
                recorded_at=now,
                number=number,
            )
            for number in range(1, count + 1)
        )
        self.load(memories)
        return [memory.id for memory in memories]

    def load(self, memories: Sequence[Memory]) -> None:
        """Load memories in one transaction."""
        content = bundle.Content(scope=self.jay.scope, made_at="", memories=tuple(memories))
        self.jay.load(bundle.to_json(content))
