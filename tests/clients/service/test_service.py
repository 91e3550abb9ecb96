"""examples/service: systemd accepts the units, and the container is built, started and serves."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[3]
FILES = ROOT / "examples" / "service"
PATIENCE = 120.0


def run(*command: str | Path, **more: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **more},
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3_000:]}{done.stderr[-3_000:]}"
    return done.stdout


@pytest.mark.parametrize(
    "unit",
    [
        *("scrubjay.service", "scrubjay-failed@.service"),
        *("scrubjay-backup.service", "scrubjay-backup.timer"),
        *("scrubjay-doctor.service", "scrubjay-doctor.timer"),
    ],
)
def test_systemd_accepts_the_unit(unit: str, tmp_path: Path) -> None:
    program = ROOT / ".venv" / "bin" / "scrubjay"  # verify looks whether it is there
    for one in FILES.glob("scrubjay*"):
        text = one.read_text().replace("/opt/scrubjay/bin/scrubjay", str(program))
        (tmp_path / one.name).write_text(text)
    run("systemd-analyze", "verify", "--man=no", tmp_path / unit)


class Buildah:
    """Commands of buildah, with images and containers in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = ["buildah", "--storage-driver", "vfs", "--root", str(folder / "storage"),
                    "--runroot", str(folder / "run")]  # fmt: skip

    def __call__(self, *words: str | Path) -> str:
        return run(*self.own, *words, BUILDAH_ISOLATION="chroot").strip()


@pytest.fixture(scope="module")
def image(client_home: Path) -> Iterator[tuple[Buildah, str]]:
    """The container of the example, on a Debian that was made here."""
    buildah = Buildah(client_home)
    if "localhost/debian-python" not in buildah("images", "--format", "{{.Name}}"):
        base = buildah("from", "scratch")
        buildah("add", "--quiet", base, client_home / "root", "/")
        buildah("commit", "--quiet", base, "localhost/debian-python")
        buildah("rm", base)
    buildah(
        "build", "--quiet", "--file", FILES / "Dockerfile", "--tag", "localhost/scrubjay",
        "--volume", f"{client_home / 'wheels'}:/wheels:ro", "--build-arg", "PIP_NO_INDEX=1",
        "--build-arg", "PIP_FIND_LINKS=/wheels", "--build-arg", "BASE=localhost/debian-python",
        ROOT,
    )  # fmt: skip
    name = buildah("from", "localhost/scrubjay")
    yield buildah, name
    buildah("rm", name)
    buildah("rmi", "localhost/scrubjay")


def answer(url: str, key: str | None = None, body: object = None) -> dict[str, object]:
    headers = {"Content-Type": "application/json", "Host": "memory.example.com"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    raw = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, raw, headers), timeout=10) as response:
        return dict(json.load(response))


def test_the_container_serves_as_its_own_user_and_keeps_what_it_is_told(
    image: tuple[Buildah, str],
) -> None:
    buildah, name = image
    told = json.loads(buildah("inspect", name))["OCIv1"]["config"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    inside = [*buildah.own, "run", "--env", f"PORT={port}", "--env",
              "ALLOW_HOST=memory.example.com", name, "--"]  # fmt: skip
    env = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    serving = subprocess.Popen([*inside, *told["Cmd"]], env=env, start_new_session=True)
    try:
        url, until = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
        while True:
            try:
                assert answer(f"{url}/readyz")
                break
            except (URLError, ConnectionError):
                assert time.monotonic() < until
                assert serving.poll() is None
                time.sleep(0.2)
        assert told["User"] == "scrubjay"
        assert buildah("run", name, "--", "id", "-un") == "scrubjay"
        key = buildah("run", name, "--", "scrubjay", "keys", "create", "x", "--scope", "acme/a")
        kept = {"content": "Alice prefers green tea"}
        assert answer(f"{url}/v1/memories", key, kept)["outcome"] == "stored"
        hits = answer(f"{url}/v1/recall", key, {"query": "What does Alice drink?"})["hits"]
        assert "green tea" in json.dumps(hits)
    finally:
        os.killpg(serving.pid, signal.SIGTERM)
        serving.wait(PATIENCE)
