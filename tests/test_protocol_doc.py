"""The page on the protocol names every failpoint; every race on it has a gate and a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrubjay.ports import Failpoint

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "protocol.md").read_text("utf-8")
RACES = dict(re.findall(r"^### Race: (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
FAILPOINTS = {point.value: f"Failpoint.{point.name}" for point in Failpoint}


def test_every_failpoint_has_its_row_and_every_row_its_failpoint() -> None:
    table = PAGE.partition("## The failpoints")[2]
    rows = re.findall(r"^\| `([a-z.-]+)` \| .+ \| .+ \|$", table, re.MULTILINE)
    assert sorted(rows) == sorted(FAILPOINTS)


def test_there_are_races() -> None:
    assert len(RACES) == PAGE.count("\n### ") > 8


@pytest.mark.parametrize("race", RACES)
def test_a_race_names_a_test_that_exists(race: str) -> None:
    file, name = _test(race)
    assert f"\ndef {name}(" in (ROOT / file).read_text("utf-8")


@pytest.mark.parametrize("race", RACES)
def test_the_gates_of_a_race_stand_in_its_test(race: str) -> None:
    file, name = _test(race)
    code = (ROOT / file).read_text("utf-8")
    start = code.index(f"\ndef {name}(")
    decorated = code.rindex("\n\n\n", 0, start)
    end = code.find("\n\n\n", start)
    test = code[decorated : end if end > 0 else None]
    gates = re.findall(r"`([a-z.-]+)`", re.search(r"^Gate: (.+)$", RACES[race], re.M)[1])  # type: ignore[index]
    missing = [gate for gate in gates if FAILPOINTS.get(gate, f'"{gate}"') not in test]
    assert missing == []


def _test(race: str) -> tuple[str, str]:
    found = re.search(r"^Test: `(.+?)::(\w+)`$", RACES[race], re.MULTILINE)
    assert found, f"the race {race!r} names no test"
    return found[1], found[2]
