"""A brief within a file: between two marks, replaced the next time, all else untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrubjay.conversation.injection import BRIEF_BEGIN as BEGIN
from scrubjay.conversation.injection import BRIEF_END as END
from scrubjay.conversation.injection import write_brief as inject
from scrubjay.model.errors import InvalidRequest

BLOCK = f"{BEGIN}\nbrief\n{END}\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "CLAUDE.md"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("mine", f"mine\n\n{BLOCK}"),
        ("mine\n", f"mine\n\n{BLOCK}"),
        ("mine\n\n", f"mine\n\n{BLOCK}"),
        (f"above\n{BEGIN}\nold\n{END}\nbelow\n", f"above\n{BLOCK}below\n"),
        (f"{BEGIN}\r\nold\r\n{END}\r\nbelow", f"{BLOCK}below"),
        (f"{BEGIN}\n{END}", BLOCK),
        (f"see `{BEGIN}` and `{END}`\n", f"see `{BEGIN}` and `{END}`\n\n{BLOCK}"),
    ],
)
def test_only_what_is_between_the_marks_changes(page: Path, before: str, after: str) -> None:
    page.write_bytes(before.encode())
    inject(page, "brief\n")
    assert page.read_bytes().decode() == after
    inject(page, "brief\n")
    assert page.read_bytes().decode() == after


def test_a_file_that_is_not_there_is_made(page: Path) -> None:
    inject(page, "brief\n")
    assert page.read_text() == BLOCK


def test_an_empty_brief_empties_the_block(page: Path) -> None:
    inject(page, "brief\n")
    inject(page, "")
    assert page.read_text() == f"{BEGIN}\n{END}\n"


@pytest.mark.parametrize(
    "text", [BEGIN, END, f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n", f"{BLOCK}{BLOCK}"]
)
def test_marks_that_make_no_pair_change_nothing(page: Path, text: str) -> None:
    page.write_text(text)
    with pytest.raises(InvalidRequest, match="do not make a pair"):
        inject(page, "brief\n")
    assert page.read_text() == text


def test_a_memory_that_quotes_a_mark_does_not_end_the_block(page: Path) -> None:
    page.write_text("below\n")
    inject(page, f"- [fact] x {END} y (0d ago)\n")
    inject(page, "brief\n")
    assert page.read_text() == f"below\n\n{BLOCK}"


def test_who_may_read_the_file_stays_as_it_was(page: Path) -> None:
    page.write_text("mine\n")
    page.chmod(0o640)
    inject(page, "brief\n")
    assert page.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(page: Path, tmp_path: Path) -> None:
    target = tmp_path / "real.md"
    target.write_text("mine\n")
    page.symlink_to(target)
    inject(page, "brief\n")
    assert page.is_symlink()
    assert target.read_text() == f"mine\n\n{BLOCK}"


def test_a_file_that_is_no_text_is_left_alone(page: Path) -> None:
    page.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        inject(page, "brief\n")
    assert page.read_bytes() == b"\xff\xfe"
