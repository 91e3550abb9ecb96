"""An error is one sentence and a hint on stderr, with its exit code, and nothing is written."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from scrubjay.cli.app import run
from scrubjay.cli.exits import complain, exit_code, hint
from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError
from tests.unit.cli.conftest import CommandLine, Done

CODES = {
    errors.ScrubjayError: 1,
    errors.InvalidRequest: 2,
    errors.WrongKey: 2,
    errors.NeedsConfirmation: 2,
    errors.NotFound: 3,
    errors.Forbidden: 4,
    errors.LimitReached: 4,
    errors.Conflict: 5,
    errors.Stale: 5,
    errors.Destroyed: 5,
    errors.Changed: 5,
    errors.Frozen: 6,
    errors.Restricted: 6,
    errors.Busy: 7,
    errors.Full: 7,
    errors.EmbedderError: 7,
    errors.ExtractorError: 7,
    errors.Timeout: 7,
    errors.KeyMissing: 7,
    errors.KeyUnavailable: 7,
    errors.OutcomeUnknown: 7,
    errors.Locked: 7,
    errors.UserLocked: 7,
    errors.StoreError: 1,
    errors.Damaged: 1,
    errors.SchemaTooNew: 1,
    errors.SealBroken: 1,
}
SENTENCE = re.compile(r"error: [^\n]+[.?]\nhint: [^\n]+\n")


def is_told(done: Done, code: int) -> bool:
    """Whether a command failed as promised: this code, a sentence and a hint, no data."""
    return done.code == code and done.out == "" and bool(SENTENCE.fullmatch(done.err))


def test_every_error_of_the_tree_has_its_exit_code() -> None:
    kinds = {one for one in vars(errors).values() if isinstance(one, type)}
    assert kinds == set(CODES)
    assert {kind: int(exit_code(kind("It failed."))) for kind in kinds} == CODES


@pytest.mark.parametrize("kind", CODES)
def test_every_error_is_one_sentence_and_a_hint(
    kind: type[ScrubjayError], capsys: pytest.CaptureFixture[str]
) -> None:
    error = kind("It failed [bold]badly[/].")
    complain(error.code, error.message, hint(error), as_json=False)
    told = capsys.readouterr()
    assert told.out == ""
    assert SENTENCE.fullmatch(told.err)
    assert "[bold]badly[/]" in told.err


@pytest.mark.parametrize("kind", CODES)
def test_every_error_is_an_object_for_a_program(
    kind: type[ScrubjayError], capsys: pytest.CaptureFixture[str]
) -> None:
    error = kind("It failed.", hint="Mend it.")
    complain(error.code, error.message, hint(error), as_json=True)
    told = json.loads(capsys.readouterr().err)
    wanted = {"code": kind.code, "message": "It failed.", "hint": "Mend it."}
    assert told == {"ok": False, "error": wanted}


def test_no_hint_speaks_to_a_programmer() -> None:
    for kind in CODES:
        assert not re.search(r"=True|\(|anew=", hint(kind("It failed.")))


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["remember"],
        ["remember", "x", "--kind", "rumor"],
        ["remember", "x", "--origin", "heaven"],
        ["remember", "x", "--importance", "7"],
        ["remember", "x", "--expires", "soon"],
        ["remember", "x", "--expires", "2001-01-01"],
        ["remember", "x", "--scope", "a/b/c"],
        ["remember", "   "],
        ["recall", "x", "--limit", "0"],
        ["recall", "x", "--since", "yesterday"],
        ["forget"],
        ["forget", "mem-x", "--tag", "t"],
        ["freeze", "--level", "none"],
    ],
)
def test_a_command_written_wrongly_is_a_usage_error(cli: CommandLine, arguments: list[str]) -> None:
    cli.remember("tea")
    before = cli.files()
    assert is_told(cli(*arguments), 2)
    assert cli.files() == before


def test_a_usage_error_is_an_object_for_a_program(cli: CommandLine) -> None:
    done = cli("remember", "--json")
    assert done.code == 2
    assert json.loads(done.err)["error"]["code"] == "usage"


def test_reading_where_nothing_was_written_makes_nothing(cli: CommandLine) -> None:
    for command in ("list", "brief", "scopes", "verify", "stats", "destroy"):
        assert is_told(cli(command), 3)
    assert is_told(cli("get", "mem-x"), 3)
    assert not cli.home.exists()


def test_what_is_not_there_is_not_found(cli: CommandLine) -> None:
    cli.remember("tea")
    assert is_told(cli("get", "mem-x"), 3)
    assert is_told(cli("correct", "mem-x", "coffee"), 3)
    assert is_told(cli("forget", "mem-x"), 3)
    assert is_told(cli("list", "--scope", "bob"), 3)
    assert is_told(cli("import", cli.home / "nothing"), 3)


def test_a_correction_of_what_was_corrected_is_a_conflict(cli: CommandLine) -> None:
    old = cli.remember("tea")
    cli.good("correct", old, "coffee")
    assert is_told(cli("correct", old, "water"), 5)


def test_a_destroyed_scope_is_a_conflict_and_begun_again_only_anew(cli: CommandLine) -> None:
    cli.remember("tea")
    cli.good("destroy", "--yes")
    assert is_told(cli("remember", "coffee"), 5)
    assert is_told(cli("list"), 5)
    cli.remember("coffee", "--anew")
    assert len(cli.good("list", "--json").json["data"]) == 1


def test_a_frozen_scope_says_so(cli: CommandLine) -> None:
    id = cli.remember("tea")
    cli.good("freeze")
    assert is_told(cli("remember", "coffee"), 6)
    cli.good("recall", "tea")
    cli.good("freeze", "--level", "all")
    assert is_told(cli("recall", "tea"), 6)
    assert is_told(cli("brief"), 6)
    cli.good("forget", id)
    cli.good("unfreeze")
    cli.remember("coffee")


def test_keys_that_are_gone_are_unavailable(cli: CommandLine) -> None:
    cli.remember("tea")
    for slot in (cli.home / "keys" / "slots").rglob("lookup"):
        slot.unlink()
    assert is_told(cli("list"), 7)


def test_a_damaged_file_is_a_failure(cli: CommandLine) -> None:
    cli.remember("tea")
    (file,) = (cli.home / "data" / "scopes").glob("*.sqlite")
    for path in file.parent.glob(f"{file.name}*"):
        path.write_bytes(b"SQLite format 3\x00" + bytes(8176))
    assert is_told(cli("list"), 1)


class Interrupted(io.RawIOBase):
    """A stream somebody presses Ctrl-C on."""

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: object) -> int:
        raise KeyboardInterrupt


def test_ctrl_c_ends_with_its_own_code_and_writes_nothing(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BufferedReader(Interrupted()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert run(["remember", "-"]) == 130
    assert not cli.home.exists()
