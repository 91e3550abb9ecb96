"""Conversations and documents race each other, erasures, copies brought back, and deaths."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from scrubjay.adapters.embedders.static import NoEmbedder
from scrubjay.engine import Kernel, Policy
from scrubjay.model.conversations import Append, DeleteConversation, ReadConversation
from scrubjay.model.documents import Put, ReadDocument, Remove
from scrubjay.model.errors import NotFound, ScrubjayError, Stale
from scrubjay.model.requests import Load, Restore
from scrubjay.model.scope import Scope
from tests.acceptance.opening import words_left
from tests.properties import baton
from tests.properties.baton import Baton
from tests.support.engines import MemoryHome

ALICE = Scope("local", "alice")
SECRET = "the spare key is under the third pot"
ENTRIES = 3


class Desk:
    """A log that two engines write, a number they raise, and a draft that a third one erases."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.home = MemoryHome(seed)
        self.home.embedder = NoEmbedder()
        self.baton = Baton(self.random, risk=self.random.choice((0, 0.01, 0.05)))
        self.policy = Policy(rotate_below=self.random.choice((0, 2**40)))
        self.appended: dict[str, list[str]] = {"a": [], "b": []}
        self.raised = 0
        self.erased = False
        engine = self.home.engine(self.policy)
        engine.append(ALICE, Append("draft", [{"body": SECRET}, {"body": {"again": SECRET}}]))
        engine.put(ALICE, Put("draft", SECRET))
        engine.put(ALICE, Put("number", 0))
        self.export = engine.export(ALICE).content
        self.backup, receipt = engine.backup(ALICE)
        self.key = receipt.key

    def cast(self) -> None:
        """Two who write, one who erases, and some who may bring something back."""
        parts = [self.write_as("a"), self.write_as("b"), self.erase]
        others = [self.load, self.restore, self.rotate, self.purge, self.erase]
        for play in (*parts, *self.random.sample(others, self.random.randint(1, 3))):
            self.act(play)

    def act(self, play: Callable[[Kernel], None]) -> None:
        engine = baton.engine(self.home, self.baton, self.policy)
        if self.random.random() < 0.5:
            engine.open(ALICE)
        self.baton.add(play.__name__, lambda: play(engine))

    def write_as(self, name: str) -> Callable[[Kernel], None]:
        def write(engine: Kernel) -> None:
            for number in range(ENTRIES):
                one = f"{name}-{number}"
                engine.append(ALICE, Append("log", [{"id": one, "body": one}]))
                self.appended[name].append(one)
                self.raise_number(engine)

        return write

    def raise_number(self, engine: Kernel) -> None:
        """Compare-and-set, until nobody was faster."""
        while True:
            found = engine.document(ALICE, ReadDocument("number"))
            assert isinstance(found.value, int)
            with suppress(Stale):
                put = Put("number", found.value + 1, expected_revision=found.revision)
                engine.put(ALICE, put)
                self.raised += 1
                return

    def erase(self, engine: Kernel) -> None:
        with suppress(NotFound):
            engine.delete_conversation(ALICE, DeleteConversation("draft"))
        with suppress(NotFound):
            engine.remove(ALICE, Remove("draft"))
        self.erased = True

    def load(self, engine: Kernel) -> None:
        engine.load(ALICE, Load(self.export))

    def restore(self, engine: Kernel) -> None:
        engine.restore(ALICE, Restore(self.backup, key=self.key))

    def rotate(self, engine: Kernel) -> None:
        engine.rotate(ALICE)

    def purge(self, engine: Kernel) -> None:
        engine.purge(ALICE)

    # -- what must hold ----------------------------------------------------------------

    def look(self) -> None:
        """Nothing: a step may be in the middle of anything."""

    def recover(self) -> None:
        """The next process finishes what was left, erases again, and nothing brings it back."""
        engine = self.home.engine(self.policy)
        engine.finish_due(ALICE)
        self.erase(engine)
        for play in (self.load, self.restore, self.rotate):
            play(engine)
            self.expect(engine)
        assert words_left(engine, ALICE, SECRET.split()[-2:]) == set()
        assert engine.verify(ALICE).problems == ()

    def expect(self, engine: Kernel) -> None:
        with suppress(NotFound):
            engine.conversation(ALICE, ReadConversation("draft"))
            raise AssertionError("the conversation that was deleted is back")
        with suppress(NotFound):
            engine.document(ALICE, ReadDocument("draft"))
            raise AssertionError("the document that was removed is back")
        try:
            log = engine.conversation(ALICE, ReadConversation("log")).entries
        except NotFound:
            log = ()
        ids = [entry.id for entry in log]
        assert len(set(ids)) == len(ids), "an entry is there twice"
        for name, acknowledged in self.appended.items():
            told = [one for one in ids if one.startswith(name)]
            assert told[: len(acknowledged)] == acknowledged, "an acknowledged entry is not there"
            assert len(told) <= len(acknowledged) + 1
        number = engine.document(ALICE, ReadDocument("number")).value
        assert isinstance(number, int)
        assert self.raised <= number <= self.raised + 2, "a number that was put is lost"


def test_no_race_loses_an_entry_or_brings_back_what_was_erased(more: bool, seed: int) -> None:
    """Under any interleaving, whoever dies on the way."""
    deaths = 0
    for number in range(3_000 if more else 150):
        desk = Desk(f"{seed}/desk/{number}")
        try:
            desk.cast()
            desk.baton.run(desk.look)
            refused = [one.error for one in desk.baton.actors if one.error]
            assert not refused, refused
            desk.recover()
        except (AssertionError, ScrubjayError) as error:
            error.add_note(f"interleaving {seed}/desk/{number}")
            raise
        deaths += desk.baton.deaths
    assert deaths > 0
