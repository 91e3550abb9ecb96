"""The demo tells its story to the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    command = [sys.executable, str(DEMO)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "8  Destroy" in done.stdout
    assert list(tmp_path.iterdir()) == []
