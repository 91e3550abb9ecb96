"""After every act of a person, no byte of any file says a word of hers (G6); on a real disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyrage
import pytest

from scrubjay import bootstrap
from scrubjay.access import Access, Keys, everything
from scrubjay.engine import Kernel, Policy
from scrubjay.model.requests import Purge
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.ports import Clock
from scrubjay.surfaces.personal import records as told
from scrubjay.surfaces.personal.categories import Category, ContentType
from scrubjay.surfaces.personal.memory import Personal
from scrubjay.vault import Cost
from tests.support.engines import SqliteHome

ALICE = Scope("acme", "alice")
WORDS = "three jays in one oak"
NEEDLES = ("zanzibar", "quilltop", "ockham")
"""A word of the content, of a tag and a session, and of a turn."""
READER = pyrage.x25519.Identity.generate()


class Desk:
    """A person's memory on a disk, and everything that lies there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        home = SqliteHome(folder / "home")
        quick = Policy(segment_rows=0, passphrase_cost=Cost(memory_kib=64, passes=1, lanes=1))
        self.engine: Kernel = home.engine(quick)
        self.clock: Clock = bootstrap.clock()
        access = Access(self.engine, Keys(self.engine, self.clock), everything())
        self.me = Personal(
            self.engine, access, ALICE, self.clock, ready=self.engine.open, link_secret=bytes(32)
        )

    def fill(self) -> str:
        """A memory, a turn and a document; the id of the memory."""
        request = told.StoreMemory(
            category=Category.PREFERENCE,
            content_type=ContentType.PREFERENCE,
            content=f"Alice drinks {NEEDLES[0]} tea",
            topic_tags=(NEEDLES[1],),
            session_id=NEEDLES[1],
        )
        made = self.me.store(request).memory_id
        said = f"My sister lives in {NEEDLES[2]}."
        self.engine.record(ALICE, Record(id="t1", user=said, assistant="Noted."))
        self.me.retrieve(told.RetrieveMemory(query=NEEDLES[0], min_similarity=0))
        return made

    def fill_inbox(self) -> None:
        """The same, said to a memory that is locked."""
        for needle in NEEDLES:
            request = told.StoreMemory(
                category=Category.LEARNED_CONTEXT,
                content_type=ContentType.FACT,
                content=f"More of {needle}",
                topic_tags=(needle,),
            )
            assert self.me.store(request).waiting

    def found(self) -> list[str]:
        """The needles that are in any file, and where."""
        files = [one for one in self.folder.rglob("*") if one.is_file()]
        return [
            f"{needle} in {one.name}"
            for one in files
            for raw in [one.read_bytes().lower()]
            for needle in NEEDLES
            for form in (
                needle.encode(),
                needle.encode("utf-16-le"),
                needle.encode().hex().encode(),
            )
            if form in raw
        ]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.engine.close()


def _forget(desk: Desk, made: str) -> None:
    desk.me.forget(told.ForgetMemories(target=told.ForgetTarget(memory_ids=(made, "t1"))))
    assert desk.me.retrieve(told.RetrieveMemory(query="tea", min_similarity=0)).memories == ()


def _destroy(desk: Desk, _: str) -> None:
    token = desk.me.destroy(told.DestroyMemory()).confirmation_token
    assert desk.me.destroy(told.DestroyMemory(confirmation_token=token)).destroyed


def _rotate(desk: Desk, _: str) -> None:
    desk.engine.rotate(ALICE)


def _export(desk: Desk, _: str) -> None:
    job = desk.me.export(told.ExportMemories(recipient=str(READER.to_public())))
    assert desk.me.exports.work() == 1
    assert desk.me.exported(told.ViewExport(export_id=job.export_id)).download_url


def _hold(desk: Desk, _: str) -> None:
    desk.me.do("hold", passphrase=WORDS)


def _inbox(desk: Desk, _: str) -> None:
    desk.me.do("hold", passphrase=WORDS)
    desk.me.do("lock")
    desk.fill_inbox()


def _drain(desk: Desk, made: str) -> None:
    _inbox(desk, made)
    desk.me.do("unlock", passphrase=WORDS)


def _rectify(desk: Desk, made: str) -> None:
    desk.me.rectify(told.RectifyMemory(memory_id=made, content="Alice drinks mint", reason="asked"))


def _restrict(desk: Desk, _: str) -> None:
    desk.me.restrict(told.RestrictMemory())


ACTS: dict[str, Callable[[Desk, str], None]] = {
    "store": lambda _, __: None,
    "forget": _forget,
    "destroy": _destroy,
    "rotation": _rotate,
    "export": _export,
    "hold": _hold,
    "inbox": _inbox,
    "drained inbox": _drain,
    "rectify": _rectify,
    "restrict": _restrict,
    "purge": lambda desk, _: (desk.engine.purge(ALICE, Purge()), None)[1],
}


@pytest.mark.parametrize("act", ACTS)
def test_g6_no_byte_on_the_disk_says_a_word_of_hers(desk: Desk, act: str) -> None:
    """Data, keys, logs of the database, blobs and parcels: while it is open and once closed."""
    made = desk.fill()
    ACTS[act](desk, made)
    assert desk.found() == []
    desk.engine.close()
    assert desk.found() == []


def test_g6_the_scan_finds_a_word_that_is_there(desk: Desk) -> None:
    """The scan itself can fail."""
    desk.fill()
    (desk.folder / "home" / "note.txt").write_text(f"about {NEEDLES[0].upper()}")
    assert desk.found() == [f"{NEEDLES[0]} in note.txt"]


def test_g6_an_export_that_was_asked_for_in_clear_is_the_only_file_that_says_it(
    desk: Desk,
) -> None:
    """The command writes it where the person says; after a forget it is hers to delete."""
    from scrubjay.surfaces.personal.library import PersonalMemory

    made = desk.fill()
    with PersonalMemory(str(ALICE), engine=desk.engine) as me:
        me.export(desk.folder / "alice.json")
    assert {one.rpartition(" ")[2] for one in desk.found()} == {"alice.json"}
    _forget(desk, made)
    with PersonalMemory(str(ALICE), engine=desk.engine) as me:
        me.export(desk.folder / "alice.json")
    assert desk.found() == []
