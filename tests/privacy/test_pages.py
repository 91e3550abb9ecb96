"""The pages of personal memory answer what they were asked, and doctor says what root can read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CommandLine

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_the_seven_open_questions_have_an_answer_each() -> None:
    answers = page("personal.md").partition("## The seven open questions")[2]
    assert re.findall(r"^(\d)\. \*\*", answers, re.MULTILINE) == list("1234567")


@pytest.mark.parametrize(
    "thing", ["`key_version`", "re-encryption on next access", "AAD", "SSE-KMS", "soft delete"]
)
def test_what_we_do_otherwise_than_the_specification_stands_in_a_table(thing: str) -> None:
    table = page("personal.md").partition("## What we do otherwise")[2].partition("\n## ")[0]
    assert [line for line in table.splitlines() if line.startswith("|") and thing in line]


@pytest.mark.parametrize("word", ["controller", "processor", "sub-processors", "eu-central-1"])
def test_the_page_for_an_agreement_names_roles_and_regions(word: str) -> None:
    assert word in page("dpa.md")


def test_the_briefing_for_works_councils_is_one_page() -> None:
    text = page("works-council.md")
    assert 200 < len(text.split()) < 500
    for word in ("root", "consent", "administrator", "destroy"):
        assert word in text


def test_doctor_and_the_threat_model_say_what_root_can_read(cli: CommandLine) -> None:
    cli.good("personal", "store", "Prefers tea", "-c", "preference", "--type", "preference")
    before = cli.good("doctor", "--json").out
    cli.good("personal", "hold", "--yes", stdin="three jays in one oak\n")
    after = cli.good("doctor", "--json").out
    assert "0 need their user" in before
    assert "1 need their user" in after
    assert re.search(r"root on the (?:host|machine)|whoever is root", page("threat-model.md"))
