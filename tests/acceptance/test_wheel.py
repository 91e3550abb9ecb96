"""What people install is what was tested: the wheel, in an environment of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICKSTART = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(*command: str | Path, folder: Path, home: Path | None = None) -> str:
    """What a command prints; fails if it does."""
    env = {"PATH": "", "SCRUBJAY_HOME": str(home or folder), "LANG": "C.UTF-8"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the wheel, and the dependencies this one has, but not the sources."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, symlinks=True)
    fresh = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(fresh), "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    paths = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (site / "dependencies.pth").write_text("\n".join(sorted(paths)))
    return fresh


def test_the_wheel_holds_all_of_the_package(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "scrubjay").rglob("*")
        if path.suffix in (".py", ".sql") or path.name == "py.typed"
    }
    assert wanted <= held
    assert any(name.endswith("schema.sql") for name in held)
    assert not [name for name in held if name.startswith("tests/")]


def test_the_quickstart_runs_on_the_wheel(python: Path, tmp_path: Path) -> None:
    where = run(python, "-c", "import scrubjay; print(scrubjay.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(python.parents[1])
    (quickstart, *_) = QUICKSTART.findall((ROOT / "README.md").read_text())
    assert "Alice prefers white tea" in run(python, "-c", quickstart, folder=tmp_path)


def test_the_command_line_runs_on_the_wheel(python: Path, tmp_path: Path) -> None:
    assert run(python.with_name("scrubjay"), "--version", folder=tmp_path).startswith("scrubjay ")
