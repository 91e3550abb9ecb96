"""The JavaScript client against a real service, in Node; its types, by the TypeScript compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scrubjay.access import Grant
from tests.serving import serving
from tests.support.engines import MemoryHome

HERE = Path(__file__).parent
PACKAGE = HERE.parents[2] / "clients" / "js"


def test_the_client_speaks_with_a_service(client_home: Path) -> None:
    home = MemoryHome()
    with serving(home.engine(), home.clock) as service:
        environment = {
            "PATH": os.environ["PATH"],
            "SCRUBJAY_CLIENT": str(PACKAGE / "index.js"),
            "SCRUBJAY_URL": service.url,
            "SCRUBJAY_KEY": service.key("acme/alice", "acme/bob"),
            "SCRUBJAY_READER": service.key("acme/alice", grants=[Grant.READ]),
        }
        ran = subprocess.run(
            [client_home.parent / "node" / "bin" / "node", "--test", HERE / "client.test.mjs"],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def project(client_home: Path, tmp_path: Path) -> Path:
    """A project as users have it: the packed package installed, and the compiler."""
    modules = tmp_path / "node_modules"
    modules.mkdir()
    shutil.copytree(PACKAGE, modules / "scrubjay")
    for name in ("typed.ts", "tsconfig.json"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    return tmp_path


def test_its_types_accept_what_works_and_refuse_typos(client_home: Path, project: Path) -> None:
    compiler = client_home / "node_modules" / "typescript" / "bin" / "tsc"
    ran = subprocess.run(
        [client_home.parent / "node" / "bin" / "node", compiler, "-p", project],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
