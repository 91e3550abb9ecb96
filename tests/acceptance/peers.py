"""Other processes that do as they are told: one verb at a time, stopping at the gates named.

A peer has an engine of its own on a home it shares. Asked with `stop_at`, it halts at that
failpoint until it is told to go on; so a race is a fixed order of steps, and nothing waits
for a clock.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from scrubjay import bootstrap
from scrubjay.engine import Kernel, Policy
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.requests import (
    BriefRequest,
    Browse,
    Destroy,
    Forget,
    Get,
    Recall,
    Retain,
    Supersede,
)
from scrubjay.model.scope import Scope
from scrubjay.ports import Failpoint
from tests.support.engines import home_settings

ALICE: Final = Scope("local", "alice")
PATIENCE: Final = 120.0
"""After how many seconds of silence a peer counts as stuck."""
_ROOT: Final = Path(__file__).parents[2]
_PROGRAM: Final = "import sys; from tests.acceptance.peers import live; live(int(sys.argv[1]))"


@dataclass(frozen=True)
class Reached:
    """A peer stands at a failpoint and waits to be told to go on."""

    point: Failpoint


@dataclass(frozen=True)
class Order:
    """What a peer is to do; on another home it begins with a new engine."""

    verb: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    stops: frozenset[Failpoint]
    home: Path | None
    policy: Policy | None


# -- what a peer can do: plain arguments, plain answers -----------------------------------------


def _open(engine: Kernel, **options: bool) -> None:
    engine.open(ALICE, **options)


def _retain(engine: Kernel, content: str, **fields: Any) -> str:
    return engine.retain(ALICE, Retain(content=content, **fields)).outcome.value


def _supersede(engine: Kernel, public_id: str, content: str) -> str:
    return engine.supersede(ALICE, Supersede(id=public_id, content=content)).id


def _get(engine: Kernel, public_id: str) -> str:
    return engine.get(ALICE, Get(public_id)).content


def _browse(engine: Kernel) -> list[str]:
    return [memory.content for memory in engine.browse(ALICE, Browse(limit=10_000))]


def _recall(engine: Kernel, query: str, **options: Any) -> list[str]:
    found = engine.recall(ALICE, Recall(query=query, **options))
    return [hit.memory.content for hit in found]


def _brief(engine: Kernel) -> list[str]:
    return [memory.content for memory in engine.brief(ALICE, BriefRequest())]


def _forget(engine: Kernel, public_id: str) -> int:
    return engine.forget(ALICE, Forget(ids=(public_id,))).erased


def _rotate(engine: Kernel) -> int:
    return engine.rotate(ALICE).epochs["memory"]


def _destroy(engine: Kernel) -> int:
    return engine.destroy(ALICE, Destroy(confirm=str(ALICE))).erased


VERBS: Final[dict[str, Callable[..., Any]]] = {
    "open": _open, "retain": _retain, "supersede": _supersede, "get": _get, "browse": _browse,
    "recall": _recall, "brief": _brief, "forget": _forget, "rotate": _rotate, "destroy": _destroy,
}  # fmt: skip


def live(channel: int) -> None:
    """The life of a peer: carry out orders until the other end is closed."""
    orders = Connection(channel)
    stops: set[Failpoint] = set()
    engine: Kernel | None = None

    def reach(point: Failpoint) -> None:
        if point in stops:
            stops.discard(point)
            orders.send(Reached(point))
            orders.recv()

    while (order := _next(orders)) is not None:
        if order.home is not None:
            if engine is not None:
                engine.close()
            place = home_settings(order.home)
            engine = bootstrap.build(place, reach=reach, policy=order.policy)
        assert engine is not None
        stops |= order.stops
        try:
            orders.send(VERBS[order.verb](engine, *order.args, **order.options))
        except ScrubjayError as error:
            orders.send(error)
        stops.clear()
    if engine is not None:
        engine.close()


def _next(orders: Connection) -> Order | None:
    try:
        order: Order = orders.recv()
    except EOFError:
        return None
    return order


class Peer(AbstractContextManager["Peer"]):
    """The handle on another process."""

    def __init__(self, within: Sequence[str] = ()) -> None:
        """Start it; `within` is a command that runs another in a place of its own."""
        self._within = within
        self._move_to: Path | None = None
        self._policy: Policy | None = None
        self._start()

    def _start(self) -> None:
        self._orders, theirs = Pipe()
        channel = theirs.fileno()
        command = [*self._within, sys.executable, "-c", _PROGRAM, str(channel)]
        self._process = subprocess.Popen(command, cwd=_ROOT, pass_fds=[channel])
        theirs.close()
        self._busy = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._busy:
            self.kill()
        self._orders.close()
        self._process.wait(PATIENCE)

    def begin(
        self, verb: str, *args: Any, stop_at: Failpoint | None = None, **options: Any
    ) -> None:
        """Order a verb, without waiting for its end."""
        stops = frozenset() if stop_at is None else frozenset({stop_at})
        self._orders.send(Order(verb, args, options, stops, self._move_to, self._policy))
        self._move_to, self._busy = None, True

    def until(self, point: Failpoint) -> None:
        """Wait until it stands at a failpoint."""
        found = self._hear()
        assert found == Reached(point), f"{found!r} instead of {point}"

    def go_on(self) -> None:
        """Let it leave the failpoint it stands at."""
        self._orders.send(None)

    def answer(self) -> Any:
        """The answer to what was begun; an error is raised here."""
        found = self._hear()
        if isinstance(found, ScrubjayError):
            raise found
        return found

    def ask(self, verb: str, *args: Any, **options: Any) -> Any:
        """Order a verb and wait for its end."""
        self.begin(verb, *args, **options)
        return self.answer()

    def on(self, home: Path, policy: Policy | None = None) -> Peer:
        """The same process, from now on with a new engine on this home."""
        if self._busy:  # a test that failed has left it in the middle of a verb
            self.kill()
            self._orders.close()
            self._start()
        self._move_to, self._policy = home, policy
        return self

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def outcome(self) -> Any:
        """Like `answer`, but an error is returned, and so is a stop at a failpoint."""
        return self._hear()

    def _hear(self) -> Any:
        assert self._orders.poll(PATIENCE), "a process is stuck"
        found = self._orders.recv()
        self._busy = isinstance(found, Reached)
        return found
