"""The image and the pod of the example, as far as no container engine is needed to tell."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scrubjay import settings
from scrubjay.surfaces.clawdapus.descriptor import TOKEN_VARIABLE
from tests import processes
from tests.dialects.clawdapus.pod import START, Manifest, entry, post, send, user
from tests.processes import default_signals

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "clawdapus"
PRIVATE = (".git", ".venv", ".scrubjay", "tests", "bench")
TOKEN = "a long random token"


def instructions(name: str) -> list[str]:
    """What stands behind an instruction of the Dockerfile, wherever it is given."""
    text = (EXAMPLE / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{name} +(.+)$", text, re.MULTILINE)


def copied() -> dict[str, str]:
    """What is copied into the image, and where to."""
    pairs: dict[str, str] = {}
    for line in instructions("COPY"):
        *sources, place = line.split()
        pairs |= dict.fromkeys(sources, place)
    return pairs


def variables() -> dict[str, str]:
    """The environment the image sets."""
    pairs = [pair.partition("=") for line in instructions("ENV") for pair in shlex.split(line)]
    return {name: value for name, _, value in pairs}


def let_in() -> list[str]:
    """What .dockerignore lets the engine see."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line]
    rules = [rule for rule in rules if not rule.startswith("#")]
    assert rules[0] == "*"
    return [rule[1:] for rule in rules if rule.startswith("!")]


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    """The pod of the example."""
    found: dict[str, Any] = yaml.safe_load((EXAMPLE / "claw-pod.yml").read_text())
    return found


# -- what goes in --------------------------------------------------------------------------------


def test_the_engine_sees_what_is_copied_and_nothing_private() -> None:
    assert set(let_in()) == set(copied())
    assert not set(let_in()) & {*PRIVATE, ".", "/"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git which files are ours")
def test_what_is_copied_is_in_the_repository() -> None:
    git = ["git", "-c", "safe.directory=*", "ls-files", "--error-unmatch", *copied()]
    assert subprocess.run(git, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_what_is_copied_is_enough_to_build_from(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name, place in copied().items():
        if not place.startswith("/source"):
            continue
        inside = tmp_path / place.lstrip("/")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, inside)
        else:
            inside.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, inside)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", str(source)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (source / "dist").glob("scrubjay-*.whl")
    assert wheel.stat().st_size > 1_000_000


# -- what it is ----------------------------------------------------------------------------------


def test_it_runs_as_nobody_special_and_only_they_may_enter_its_home() -> None:
    (who,) = instructions("USER")
    assert who not in ("root", "0")
    home = variables()["SCRUBJAY_HOME"]
    (made,) = [line for line in instructions("RUN") if "useradd" in line]
    assert f"chown -R {who} {home}" in made
    assert f"chmod -R 0700 {home}" in made


def test_data_and_keys_are_volumes_of_their_own(pod: dict[str, Any]) -> None:
    places = settings.read({"SCRUBJAY_HOME": variables()["SCRUBJAY_HOME"], "HOME": "/"})
    (volumes,) = instructions("VOLUME")
    assert json.loads(volumes) == [str(places.data), str(places.keys)]
    mounts = [mount.split(":") for mount in pod["services"]["mem-svc"]["volumes"]]
    assert [place for _, place in mounts] == json.loads(volumes)
    assert {name for name, _ in mounts} == set(pod["volumes"])


def test_the_pod_and_the_image_name_the_same_things(pod: dict[str, Any]) -> None:
    name = pod["x-claw"]["memory-defaults"]["service"]
    service = pod["services"][name]
    context = (EXAMPLE / service["build"]["context"]).resolve()
    assert context == ROOT
    assert (context / service["build"]["dockerfile"]).resolve() == EXAMPLE / "Dockerfile"
    port = variables()["PORT"]
    assert [port] == service["expose"] == instructions("EXPOSE")
    assert variables()["SERVICE_NAME"] == service["environment"]["SERVICE_NAME"] == name
    for one in pod["services"].values():
        assert one["environment"][TOKEN_VARIABLE].startswith(f"${{{TOKEN_VARIABLE}:?")
    described = json.loads((EXAMPLE / ".claw-describe.json").read_text())
    assert described["auth"]["env"] == TOKEN_VARIABLE
    assert copied()["examples/clawdapus/.claw-describe.json"] == "/.claw-describe.json"


# -- what it does --------------------------------------------------------------------------------


def test_its_command_serves_the_pod_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    (command,) = instructions("CMD")
    # The pod's network is the container's own; here there is the machine's, so loopback it is.
    words = [word.replace("0.0.0.0", "127.0.0.1") for word in json.loads(command)]
    words += ["--recall-ms", "30000"]  # a machine that does other work may need longer than a pod
    scripts = str(Path(sys.executable).parent)
    ours = {"SCRUBJAY_HOME": str(tmp_path), "PORT": "0", TOKEN_VARIABLE: TOKEN}
    env = {**variables(), **ours, "PATH": f"{scripts}{os.pathsep}/usr/bin:/bin"}
    with processes.running(
        default_signals(words),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        manifest = Manifest(process.stdout.readline().split()[-1], token=TOKEN)
        pod_calls_it = {"Host": f"{variables()['SERVICE_NAME']}:{variables()['PORT']}"}
        assert send(manifest.url, "GET", "/health", headers=pod_calls_it).status == 200
        assert _remembers(manifest)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def _remembers(manifest: Manifest) -> bool:
    """Whether a turn that is told is found, until it is forgotten."""
    line = entry([user("Which warehouse holds the blue paint?")], "Warehouse nine.", START)
    asked = {"agent_id": "a", "messages": [user("Where is the blue paint?")]}
    post(manifest, "retain", {"agent_id": "a", "entry": line}, seconds=10)
    before = post(manifest, "recall", asked, seconds=10).body
    post(manifest, "forget", {"agent_id": "a", "entry_ids": [line["id"]]}, seconds=10)
    after = post(manifest, "recall", asked, seconds=10).body
    return b"Warehouse nine" in before and b"Warehouse nine" not in after
