"""Keys that are missing, foreign or incomplete are said to be, by every verb, and never made up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec import Struct
from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.engine import Kernel
from scrubjay.model import requests
from scrubjay.model.batches import RetainMany
from scrubjay.model.conversations import (
    Append,
    Branch,
    DeleteConversation,
    ReadConversation,
    Rewind,
)
from scrubjay.model.documents import Move, Put, ReadDocument, Remove
from scrubjay.model.errors import KeyMissing, NotFound
from scrubjay.model.purposes import SetPurpose
from scrubjay.model.requests import NOTHING, USER, Browse, Destroy, NoFields, Retain
from scrubjay.model.results import Outcome
from scrubjay.model.scope import Scope
from scrubjay.model.user_keys import Hold, Unlock
from scrubjay.verbs import VERBS

ALICE, BOB = Scope("local", "alice"), Scope("local", "bob")
GIVEN: dict[type[Struct], Struct] = {
    requests.Recall: requests.Recall("tea"),
    requests.Get: requests.Get("mem-x"),
    requests.History: requests.History("mem-x"),
    requests.CountersRequest: requests.CountersRequest(("mem-x",)),
    requests.Forget: requests.Forget(ids=("mem-x",)),
    requests.Supersede: requests.Supersede("mem-x", content="coffee"),
    requests.Amend: requests.Amend("mem-x", pinned=True),
    requests.Approve: requests.Approve("mem-x", "tea"),
    requests.Reject: requests.Reject("mem-x"),
    requests.Revoke: requests.Revoke(session="s"),
    requests.MarkTainted: requests.MarkTainted("s", "web"),
    requests.Destroy: Destroy(confirm=str(ALICE)),
    requests.Load: requests.Load(b"{}"),
    Retain: Retain("milk"),
    RetainMany: RetainMany([{"content": "milk"}]),
    requests.LineageRequest: requests.LineageRequest("a"),
    Append: Append("a", [{"body": "milk"}]),
    Branch: Branch("a", into="b"),
    ReadConversation: ReadConversation("a"),
    Rewind: Rewind("a", at=0),
    DeleteConversation: DeleteConversation("a"),
    Put: Put("a", "milk"),
    ReadDocument: ReadDocument("a"),
    Move: Move("a", to="b"),
    Remove: Remove("a"),
    SetPurpose: SetPurpose(purpose="patterns", on=False),
    Hold: Hold(passphrase="three jays in one oak"),
    Unlock: Unlock(passphrase="three jays in one oak"),
    NoFields: NOTHING,
}
"""A request for each verb that cannot do without one."""
OURS = sorted(
    name for name, verb in VERBS.items() if hasattr(Kernel, name) and verb.scoped and name != "open"
)
OURS = [name for name in OURS if name not in ("record", "restore", "verify_erased")]
READS = [name for name in OURS if not VERBS[name].writes]
BY_ID = ("get", "history", "lineage", "counters")


def ask(engine: Kernel, name: str, scope: Scope = ALICE) -> object:
    kind = VERBS[name].request
    return getattr(engine, name)(scope, GIVEN[kind] if kind in GIVEN else kind(), USER)


def test_the_verbs_that_are_tried_are_those_there_are() -> None:
    assert len(OURS) >= 28
    assert {"browse", "recall", "brief", "verify", "export", "receipts"} <= set(READS)


@contextmanager
def opened(home: Path) -> Iterator[Kernel]:
    engine = bootstrap.build(settings.at_home(home))
    try:
        yield engine
    finally:
        engine.close()


def fill(home: Path, word: str) -> None:
    with opened(home) as engine:
        for scope in (ALICE, BOB):
            engine.retain(scope, Retain(f"{word} of {scope.owner}", key=word))


def contents(home: Path, scope: Scope = ALICE) -> list[str]:
    with opened(home) as engine:
        return [memory.content for memory in engine.browse(scope, Browse())]


def tree(home: Path) -> dict[str, bytes | None]:
    """Every name below a home, with the bytes of the keys."""
    found = {str(path.relative_to(home)): path for path in home.rglob("*")}
    return {
        name: path.read_bytes() if name.startswith("keys/") and path.is_file() else None
        for name, path in found.items()
    }


def address(home: Path, scope: Scope) -> str:
    with opened(home) as engine:
        return engine._open(scope).address


def _away(home: Path, _: Path) -> None:
    shutil.rmtree(home / "keys")


def _emptied(home: Path, _: Path) -> None:
    shutil.rmtree(home / "keys")
    (home / "keys").mkdir(mode=0o700)


def _foreign(home: Path, other: Path) -> None:
    shutil.rmtree(home / "keys")
    shutil.copytree(other / "keys", home / "keys")


def _foreign_key_file(home: Path, other: Path) -> None:
    shutil.copy(other / "keys" / "key", home / "keys" / "key")


def _no_key_file(home: Path, _: Path) -> None:
    (home / "keys" / "key").unlink()


def _no_slots(home: Path, _: Path) -> None:
    shutil.rmtree(home / "keys" / "slots")


def _no_installation_slot(home: Path, _: Path) -> None:
    shutil.rmtree(home / "keys" / "slots" / "installation")


def _no_lookup_slot(home: Path, _: Path) -> None:
    (home / "keys" / "slots" / address(home, ALICE) / "lookup").unlink()


def _slots_of_another_scope(home: Path, _: Path) -> None:
    slots = home / "keys" / "slots"
    theirs, mine = slots / address(home, BOB), slots / address(home, ALICE)
    shutil.rmtree(mine)
    shutil.copytree(theirs, mine)


MISHAPS = [
    _away, _emptied, _foreign, _foreign_key_file, _no_key_file, _no_slots, _no_installation_slot,
    _no_lookup_slot, _slots_of_another_scope,
]  # fmt: skip


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "two"):
        fill(tmp_path / name, "tea")
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.parametrize("mishap", MISHAPS)
def test_without_its_keys_every_verb_says_so_and_changes_nothing(
    homes: tuple[Path, Path], mishap: Callable[[Path, Path], None]
) -> None:
    home, other = homes
    shutil.copytree(home / "keys", home.parent / "kept")
    mishap(home, other)
    before = tree(home)
    # Of one scope whose keys are lost, receipts can be read and it can be destroyed.
    one_scope = mishap in (_no_lookup_slot, _slots_of_another_scope)
    for name in [name for name in OURS if not (one_scope and VERBS[name].beyond)]:
        with opened(home) as engine, pytest.raises(KeyMissing) as raised:
            ask(engine, name)
        assert str(home / "keys") in raised.value.message, name
        assert raised.value.hint
        assert tree(home) == before, name
    shutil.rmtree(home / "keys", ignore_errors=True)
    shutil.copytree(home.parent / "kept", home / "keys")
    assert contents(home) == ["tea of alice"]
    assert contents(home, BOB) == ["tea of bob"]


def test_two_homes_whose_keys_were_swapped_are_refused_and_whole_when_swapped_back(
    homes: tuple[Path, Path],
) -> None:
    one, two = homes

    def swap() -> None:
        (one / "keys").rename(one / "aside")
        (two / "keys").rename(one / "keys")
        (one / "aside").rename(two / "keys")

    swap()
    for home in homes:
        before = tree(home)
        for name in OURS:
            with opened(home) as engine, pytest.raises(KeyMissing):
                ask(engine, name)
        assert tree(home) == before
    swap()
    for home in homes:
        assert contents(home) == ["tea of alice"]


def test_keys_that_vanish_under_an_open_handle_are_not_made_up_by_an_erasure(
    homes: tuple[Path, Path],
) -> None:
    home, _ = homes
    with opened(home) as engine:
        (memory,) = engine.browse(ALICE, Browse())
        (home / "keys").rename(home / "elsewhere")
        for work in (
            lambda: engine.forget(ALICE, requests.Forget(ids=(memory.id,))),
            lambda: engine.rotate(ALICE),
            lambda: engine.destroy(ALICE, Destroy(confirm=str(ALICE))),
            lambda: engine.retain(Scope("local", "carol"), Retain("new")),
        ):
            with pytest.raises(KeyMissing):
                work()
        assert not (home / "keys" / "key").exists()
        shutil.rmtree(home / "keys", ignore_errors=True)
        (home / "elsewhere").rename(home / "keys")
        assert [one.content for one in engine.browse(ALICE, Browse())] == ["tea of alice"]
        engine.forget(ALICE, requests.Forget(ids=(memory.id,)))
    assert contents(home) == []


def test_an_erasure_is_not_proven_by_keys_that_are_elsewhere(homes: tuple[Path, Path]) -> None:
    home, _ = homes
    with opened(home) as engine:
        (memory,) = engine.browse(ALICE, Browse())
        receipt = engine.forget(ALICE, requests.Forget(ids=(memory.id,)))
        assert engine.verify_erased(ALICE, receipt).sound
    shutil.rmtree(home / "keys")
    with opened(home) as engine, pytest.raises(KeyMissing):
        engine.verify_erased(ALICE, receipt)


def test_data_that_was_away_opens_with_the_keys_that_stayed(homes: tuple[Path, Path]) -> None:
    home, _ = homes
    (home / "data").rename(home / "away")
    before = tree(home)
    for name in [name for name in READS if name != "receipts"]:
        with opened(home) as engine, pytest.raises(NotFound):
            ask(engine, name)
    assert tree(home) == before
    with opened(home) as engine:
        assert engine.retain(ALICE, Retain("meanwhile")).outcome is Outcome.STORED
    assert contents(home) == ["meanwhile"]
    shutil.rmtree(home / "data")
    (home / "away").rename(home / "data")
    assert contents(home) == ["tea of alice"]


@pytest.mark.parametrize("there", [(), ("data",), ("data", "keys")])
@pytest.mark.parametrize("name", READS)
def test_no_reading_verb_makes_anything_where_nothing_is(
    tmp_path: Path, there: tuple[str, ...], name: str
) -> None:
    home = tmp_path / "home"
    for folder in there:
        (home / folder).mkdir(parents=True)
    before = tree(tmp_path)
    with opened(home) as engine:
        with pytest.raises(NotFound):
            ask(engine, name)
        assert engine.scopes() == ()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", READS)
def test_no_reading_verb_makes_a_scope_or_a_file_in_a_home(
    homes: tuple[Path, Path], name: str
) -> None:
    home, _ = homes
    before = tree(home)
    with opened(home) as engine, nullcontext() if name == "receipts" else pytest.raises(NotFound):
        ask(engine, name, Scope("local", "carol"))
    if name not in (*BY_ID, "conversation", "document", "backup"):
        with opened(home) as engine:
            ask(engine, name)
    assert tree(home) == before


def test_what_other_keys_wrote_is_reported_and_the_rest_is_listed(
    homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A home of a version that made up keys has scopes of two installations in one catalog."""
    from scrubjay.cli.app import run

    home, _ = homes
    with opened(home) as engine:
        entry = engine._ports.store.catalog.entries()[0]
        stranger = replace(entry, address="z" * 26, name=entry.name[::-1])
        engine._ports.store.catalog.enroll(stranger)
        assert engine.scopes() == (ALICE, BOB)
        assert engine.unreadable_scopes() == ("z" * 26,)
    monkeypatch.setenv("SCRUBJAY_HOME", str(home))
    assert run(["scopes"]) == 1
    out, err = capsys.readouterr()
    assert "local/alice" in out
    assert "local/bob" in out
    assert "z" * 26 in err
    assert run(["doctor"]) == 1
    assert "z" * 26 in capsys.readouterr().out
    assert contents(home) == ["tea of alice"]


def test_doctor_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scrubjay.cli.app import run

    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "home"))
    assert run(["doctor"]) == 0
    assert tree(tmp_path) == {}
    fill(tmp_path / "home", "tea")
    before = tree(tmp_path)
    assert run(["doctor"]) == 0
    assert tree(tmp_path) == before
    (tmp_path / "home" / "keys").rename(tmp_path / "keys")
    before = tree(tmp_path)
    assert run(["doctor"]) == 1
    assert str(tmp_path / "home" / "keys") in capsys.readouterr().out.replace("\n", "")
    assert tree(tmp_path) == before


def test_a_keys_folder_that_may_not_be_read_is_a_missing_key() -> None:
    nobody = 65_534
    with TemporaryDirectory(prefix="scrubjay-keys-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        fill(folder / "home", "tea")
        for path in [folder / "home", *(folder / "home" / "data").rglob("*"), folder / "home/data"]:
            if os.geteuid() == 0:
                os.chown(path, nobody, nobody)
        if os.geteuid():
            (folder / "home" / "keys").chmod(0)
        command = [sys.executable, "-m", "scrubjay", "list", "--scope", "alice"]
        place = {"SCRUBJAY_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
        user = None if os.geteuid() else nobody
        try:
            probe = subprocess.run(
                [sys.executable, "-c", "import scrubjay"], user=user, cwd="/", check=False
            )
        except PermissionError:
            probe = None
        if probe is None or probe.returncode:
            pytest.skip("another user may not run this Python")
        done = subprocess.run(
            command, env=place, user=user, cwd="/", capture_output=True, text=True, check=False
        )
        (folder / "home" / "keys").chmod(0o700)
        assert done.returncode == 7, done.stderr
        assert "may not be read" in done.stderr
        assert str(folder / "home" / "keys") in done.stderr
