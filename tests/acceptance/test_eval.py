"""`scrubjay eval` as people run it: a process, files of their own, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import processes
from tests.processes import default_signals

GARDEN = (
    "Ann: We planted three apple trees behind the shed.",
    "Ben: My bicycle has a flat tire again.",
    "Ann: The neighbors complained about our rooster.",
    "Ben: I signed up for a pottery course in Bristol.",
    "Ann: Grandmother's piano needs tuning before Easter.",
    "Ben: The dentist moved my appointment to Thursday.",
)
GARDEN_QUESTIONS = (
    ("Which trees did Ann plant?", "planting", ["t0"]),
    ("Who complained about the rooster?", "animals", ["t2"]),
    ("Which course did Ben sign up for?", "plans", ["t3"]),
    ("What needs tuning before Easter?", "plans", ["t4"]),
    ("What is said of the bicycle and of the dentist?", "plans", ["t1", "t5"]),
)
KITCHEN = ("Cem: The oven thermostat sticks at low heat.", "Dora: We are out of saffron.")
KITCHEN_QUESTIONS = (("What is wrong with the oven?", "repairs", ["t0"]),)


def write_set(
    folder: Path, turns: tuple[str, ...], questions: tuple[tuple[str, str, list[str]], ...]
) -> None:
    folder.mkdir(parents=True)
    haystack = {"id": "h", "turns": [_turn(*pair) for pair in enumerate(turns)]}
    (folder / "haystacks.jsonl").write_text(json.dumps(haystack) + "\n")
    asked = (
        {"id": f"q{number}", "haystack": "h", "question": text, "category": category, "gold": gold}
        for number, (text, category, gold) in enumerate(questions)
    )
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in asked))


def _turn(number: int, line: str) -> Mapping[str, object]:
    speaker, _, text = line.partition(": ")
    time = f"2024-03-{number % 28 + 1:02}T09:00:00"
    return {"id": f"t{number}", "session": f"s{number // 2}", "position": number % 2,
            "speaker": speaker, "time": time, "text": text}  # fmt: skip


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """A folder with two sets."""
    write_set(tmp_path / "sets" / "garden", GARDEN, GARDEN_QUESTIONS)
    write_set(tmp_path / "sets" / "kitchen", KITCHEN, KITCHEN_QUESTIONS)
    return tmp_path / "sets"


@pytest.fixture
def scratch(ram: Path) -> Path:
    """Where the command puts what is temporary."""
    (ram / "scratch").mkdir()
    return ram / "scratch"


def environment(scratch: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(scratch), "SCRUBJAY_HOME": str(scratch / "mine")}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "scrubjay", "eval", *map(str, arguments)]


def scrubjay_eval(scratch: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        env=environment(scratch),
    )


def test_what_is_plainly_asked_is_found_and_the_figures_are_plain_numbers(
    sets: Path, scratch: Path
) -> None:
    done = scrubjay_eval(scratch, sets, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["sets"]
    assert list(found) == ["garden", "kitchen"]
    assert found["garden"]["overall"]["R@10"] == 100
    assert found["garden"]["overall"]["MRR"] > 80
    assert set(found["garden"]["categories"]) == {"planting", "animals", "plans"}
    assert found["garden"]["timing"]["turns"] == 6


def test_off_a_terminal_there_is_no_bar_and_afterwards_no_trace(sets: Path, scratch: Path) -> None:
    done = scrubjay_eval(scratch, sets)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "mean of sets" in done.stdout
    assert list(scratch.iterdir()) == []


def test_on_a_terminal_a_bar_names_the_set(sets: Path, scratch: Path) -> None:
    ours, theirs = os.openpty()
    shown = b""
    with processes.running(
        command(sets, "kitchen"),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**environment(scratch), "TERM": "xterm"},
    ):
        os.close(theirs)
        with suppress(OSError):  # how the end of a terminal reads on Linux
            while part := os.read(ours, 4096):
                shown += part
    os.close(ours)
    assert b"kitchen" in shown


def test_the_run_file_has_what_was_recalled_for_every_question(sets: Path, scratch: Path) -> None:
    file = sets / "run.jsonl"
    done = scrubjay_eval(scratch, sets / "garden", "--top", "3", "--run-file", file)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["question"] for line in lines] == ["q0", "q1", "q2", "q3", "q4"]
    assert all(1 <= len(line["ranked"]) <= 3 for line in lines)
    assert lines[0]["ranked"][0] == "t0"
    assert lines[0]["scores"] == sorted(lines[0]["scores"], reverse=True)


def test_the_picture_shows_the_sets_that_were_named(sets: Path, scratch: Path) -> None:
    file = sets / "recall.svg"
    done = scrubjay_eval(scratch, sets, "kitchen", "--plot", file)
    assert done.returncode == 0, done.stderr
    texts = [element.text for element in ElementTree.fromstring(file.read_text()).iter()]
    assert "kitchen 100.0" in texts
    assert not any(text and text.startswith("garden") for text in texts)


def test_malformed_data_is_refused_by_file_and_line_before_anything_is_tried(
    sets: Path, scratch: Path
) -> None:
    with (sets / "kitchen" / "questions.jsonl").open("a") as file:
        file.write('{"id": "q9", "haystack": "h", "question": "Who?", "gold": ["t99"]}\n')
    done = scrubjay_eval(scratch, sets, "--json", "--run-file", sets / "run.jsonl")
    assert done.returncode == 2
    assert done.stdout == ""
    told = done.stderr.replace("\n", "")
    assert "questions.jsonl:2: the gold turn 't99' is not in haystack 'h'." in told
    assert list(scratch.iterdir()) == []
    assert not (sets / "run.jsonl").exists()


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_tried(
    sets: Path, scratch: Path
) -> None:
    done = scrubjay_eval(scratch, sets, "--plot", sets / "nowhere" / "recall.svg")
    assert done.returncode == 3
    assert "There is no folder to write" in done.stderr


@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind_when_it_is_stopped(
    tmp_path: Path, scratch: Path, request_to_end: signal.Signals
) -> None:
    many = tuple(f"Ann: Remark {number} about the weather." for number in range(20_000))
    write_set(tmp_path / "long", many, (("Which remark?", "plans", ["t7"]),))
    with processes.running(
        default_signals(command(tmp_path / "long")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(scratch),
    ) as running:
        while running.poll() is None and not list(scratch.glob("*/data/scopes/*")):
            with suppress(subprocess.TimeoutExpired):
                running.wait(0.01)
        running.send_signal(request_to_end)
        shown, _ = running.communicate(timeout=30)
    assert running.returncode not in {0, -request_to_end}
    assert shown == b""
    assert list(scratch.iterdir()) == []
