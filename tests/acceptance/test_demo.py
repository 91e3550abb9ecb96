"""The demo tells its story to the end, over real HTTP."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from scrubjay.model.errors import InvalidRequest
from scrubjay.service.server import Listening, bind

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
CHAPTERS = (
    *("1  Remember", "2  Recall", "3  The brief", "4  Poison"),
    *("5  What a thief sees", "6  Forget", "7  Verify", "8  Destroy"),
)


def told(folder: Path, *arguments: str) -> str:
    """The whole story, told where nobody could press Ctrl-C."""
    done = subprocess.run(
        [sys.executable, str(DEMO), *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_runs_to_its_end_and_shows_what_it_says(tmp_path: Path) -> None:
    story = told(tmp_path, "--port", "0")
    assert [chapter for chapter in CHAPTERS if chapter not in story] == []
    answers = re.findall(r"\?\n +\d\.\d\d  (.+)$", story, re.MULTILINE)
    assert answers == [
        "Alice's daughter Mia is allergic to peanuts",
        "I am learning to play the cello.",
        "Alice prefers white tea",
    ]
    assert "in the brief: False, waiting for a person: 1, taken out again by revoke: 1" in story
    assert re.search(r"files that say .*: 0$", story, re.MULTILINE)
    assert "found by asking for it: False, and by its id: There is no memory" in story
    assert "erased cells found anywhere: 0, keys that open them: 0" in story
    assert "key slots left: 0" in story
    assert list(tmp_path.iterdir()) == []


def test_the_demo_takes_a_free_port_where_the_usual_one_is_taken(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with suppress(InvalidRequest):  # somebody else has it, which is as good
            stack.enter_context(bind(Listening()))
        assert "8  Destroy" in told(tmp_path, "--once")
