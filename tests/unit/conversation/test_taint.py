"""What taints a session, and that no taint is lost."""

from __future__ import annotations

import threading

import pytest

from scrubjay.conversation.taint import SessionTaint
from scrubjay.model.errors import Busy, ScrubjayError
from scrubjay.model.origin import Origin, lowest


class Store:
    """Taints of sessions, as a store keeps them that can be down."""

    def __init__(self) -> None:
        self.read: dict[str, Origin] = {}
        self.down = False

    def mark(self, session: str, origin: Origin) -> Origin:
        if self.down:
            raise Busy("Another process holds the lock.")
        self.read[session] = lowest((origin, self.read.get(session, origin)))
        return self.read[session]


def test_a_taint_is_written_at_once() -> None:
    store = Store()
    taint = SessionTaint(store.mark)
    taint.note("s", Origin.WEB)
    assert store.read == {"s": Origin.WEB}
    assert taint.of("s") is Origin.WEB
    assert taint.of("t") is None


@pytest.mark.parametrize("origin", [Origin.USER, Origin.AGENT, Origin.IMPORT, None])
def test_trusted_text_taints_nothing(origin: Origin | None) -> None:
    store = Store()
    SessionTaint(store.mark).note("s", origin)
    assert store.read == {}


def test_what_cannot_be_written_is_written_before_the_next_write_or_stops_it() -> None:
    store = Store()
    taint, store.down = SessionTaint(store.mark), True
    taint.note("s", Origin.TOOL)
    taint.note("s", Origin.WEB)
    taint.note("s", Origin.TOOL)
    with pytest.raises(ScrubjayError):
        taint.settle("s")
    taint.settle("t")
    store.down = False
    taint.settle("s")
    assert store.read == {"s": Origin.WEB}
    store.down = True
    taint.settle("s")


def test_writes_side_by_side_settle_a_taint_once() -> None:
    """The tools of one answer are called in threads: a second one settles while the first does."""
    store = Store()
    calls: list[Origin] = []

    def mark(session: str, origin: Origin) -> Origin:
        calls.append(origin)
        if len(calls) == 2:
            beside = threading.Thread(target=taint.settle, args=(session,))
            beside.start()
            beside.join()
        return store.mark(session, origin)

    taint, store.down = SessionTaint(mark), True
    taint.note("s", Origin.WEB)
    store.down = False
    taint.settle("s")
    assert store.read == {"s": Origin.WEB}
    assert taint.of("s") is Origin.WEB


def test_what_is_read_while_a_taint_is_written_is_written_too() -> None:
    store = Store()
    told = iter((Origin.WEB,))

    def mark(session: str, origin: Origin) -> Origin:
        for read in told:
            store.down = True  # so that the one beside cannot write it itself
            taint.note(session, read)
            store.down = False
        return store.mark(session, origin)

    taint = SessionTaint(mark)
    taint.note("s", Origin.OTHER_AGENT)
    taint.settle("s")
    assert store.read == {"s": Origin.WEB}


def test_what_cannot_be_read_is_not_taken_for_clean() -> None:
    store = Store()
    store.down = True
    assert SessionTaint(store.mark).of("s") is Origin.WEB


def test_without_a_store_a_taint_lives_as_long_as_its_object() -> None:
    taint = SessionTaint()
    taint.note("s", Origin.TOOL)
    taint.settle("s")
    assert taint.of("s") is Origin.TOOL
    assert taint.of(None) is None
