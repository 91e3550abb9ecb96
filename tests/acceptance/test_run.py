"""`make run`, as somebody types it who has just cloned the project."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scrubjay.service.server import Listening, bind
from tests.acceptance.screen import CTRL_C, Screen, showing

ROOT = Path(__file__).parents[2]
CURL = re.compile(r"curl -s .*$", re.MULTILINE)
URL = re.compile(r"scrubjay serves (\S+)$", re.MULTILINE)

pytestmark = [
    pytest.mark.skipif(
        Path(sys.prefix) != ROOT / ".venv", reason="make would set up another environment"
    ),
    pytest.mark.skipif(not all(map(shutil.which, ("make", "curl"))), reason="needs make and curl"),
]


def environment(folder: Path) -> dict[str, str]:
    """Nothing of ours: not even what a `make test` above would pass on to other makes."""
    return {"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def make_run(folder: Path, *arguments: str) -> list[str]:
    return ["make", "run", f"RUN_HOME={folder / 'a home'}", *arguments]


def paste(line: str, folder: Path) -> Any:
    """What a line answers that is pasted into a shell somewhere."""
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=environment(folder), capture_output=True, check=True
    )
    return json.loads(done.stdout)


def found(line: str, folder: Path) -> str:
    """The best answer of a recall that is pasted."""
    best: str = paste(line, folder)["hits"][0]["memory"]["content"]
    return best


def pressed(screen: Screen) -> str:
    """What is shown after Ctrl-C, until the end."""
    before = len(screen.text)
    screen.press(CTRL_C)
    # Make ends by the signal itself, as the shell above expects; what it ran has ended in peace.
    assert screen.end() == -signal.SIGINT
    return screen.text[before:]


def test_make_run_serves_and_what_it_prints_works_as_pasted(tmp_path: Path) -> None:
    arguments = make_run(tmp_path, "ARGS=--port 0")
    with showing(*arguments, folder=ROOT, env=environment(tmp_path)) as screen:
        shown = screen.until("Ctrl-C ends it.")
        (url,) = URL.findall(shown)
        assert url.startswith("http://127.0.0.1:")
        assert f"{url}/openapi.json" in shown
        assert httpx2.get(f"{url}/healthz").status_code == 200
        assert httpx2.get(f"{url}/v1/memories").status_code == 401
        tell, ask = CURL.findall(shown)
        assert paste(tell, tmp_path)["outcome"] == "stored"
        assert found(ask, tmp_path) == "Alice prefers green tea"
        after = pressed(screen)
        assert "Error" not in after
        assert "Traceback" not in after
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url}/healthz")
    with showing(*arguments, folder=ROOT, env=environment(tmp_path)) as screen:
        _, ask = CURL.findall(screen.until("Ctrl-C ends it."))
        assert found(ask, tmp_path) == "Alice prefers green tea"  # the key and the memory stayed
        pressed(screen)
    assert [path.name for path in tmp_path.iterdir()] == ["a home"]


def test_a_port_that_is_taken_is_one_sentence_and_a_hint(tmp_path: Path) -> None:
    with bind(Listening(port=0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            make_run(tmp_path, f"ARGS=--port {port}"),
            cwd=ROOT,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    said = done.stderr.splitlines()
    assert said[0] == f"error: It cannot listen on 127.0.0.1 port {port}: Address already in use."
    assert said[1].startswith("hint: ")
    assert "--port" in said[1]
    assert not (tmp_path / "a home" / "key").exists()


def test_the_demo_goes_on_serving_until_ctrl_c_and_leaves_nothing(tmp_path: Path) -> None:
    env = {**environment(tmp_path), "TMPDIR": str(tmp_path)}
    with showing("make", "run", "DEMO=1", "ARGS=--port 0", folder=ROOT, env=env) as screen:
        (ask,) = CURL.findall(screen.until("Ctrl-C ends it"))
        assert found(ask, tmp_path) == "Alice's rent is due on the 3rd"
        after = pressed(screen)
        assert "8  Destroy" in after
        assert "Traceback" not in after
    assert list(tmp_path.iterdir()) == []


def test_what_make_run_keeps_is_none_of_gits_business() -> None:
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "check-ignore", ".scrubjay/key"], cwd=ROOT, check=False
    )
    assert done.returncode == 0
