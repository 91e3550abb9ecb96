"""Lets all entrants take turns, each in a process and a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from select import select

from bench.peers import canary, environments
from bench.peers.environments import Unavailable
from bench.peers.figures import Absence, Row, row
from bench.peers.material import Material
from bench.peers.roster import ENVIRONMENTS, Entrant
from bench.peers.trial import SHARES, Job, Result

SECONDS = 300
"""How long one entrant may take for one share of its work."""
ROOT = Path(__file__).parents[2]
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "MEM0_TELEMETRY": "False",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every entrant is given."""

    scratch: Path
    folder: Path
    turns: int | None
    material: Material
    vectors: Path


def hold(entrants: Sequence[Entrant], setting: Setting) -> list[Row | Absence]:
    """The figures of each entrant, or why there are none; they take turns until all are done."""
    outcomes: dict[str, Row | Absence] = {}
    players: list[Player] = []
    for entrant in entrants:
        print(f"{entrant.name} …", file=sys.stderr, flush=True)
        try:
            players.append(_enter(entrant, setting))
        except Unavailable as absence:
            outcomes[entrant.subject] = _absent(entrant, absence)
    for turn in count(1):
        if not players:
            break
        print(f"\rround {turn} of {2 * SHARES} …", end="", file=sys.stderr, flush=True)
        for player in list(players):
            try:
                if player.play():
                    continue
                outcomes[player.entrant.subject] = _leave(player, setting)
            except Unavailable as absence:
                outcomes[player.entrant.subject] = _absent(player.entrant, absence)
            players.remove(player)
    print(file=sys.stderr)
    return [outcomes[entrant.subject] for entrant in entrants]


def _absent(entrant: Entrant, absence: Unavailable) -> Absence:
    print(f"\n  {entrant.name} is skipped: {absence}", file=sys.stderr)
    return Absence(entrant=entrant, reason=str(absence))


def _enter(entrant: Entrant, setting: Setting) -> Player:
    """Start an entrant's process, and wait until it is ready to write."""
    python = _python(entrant, setting.scratch / "env")
    place = setting.scratch / "runs" / entrant.subject.replace(":", "-")
    shutil.rmtree(place, ignore_errors=True)
    kept = place / "kept"
    kept.mkdir(parents=True)
    job = Job(
        subject=entrant.subject,
        folder=str(kept),
        material=str(setting.folder),
        turns=setting.turns,
        vectors=str(setting.vectors),
        result=str(place / "result.json"),
    )
    player = Player(entrant, python, job, place)
    if not player.is_waiting():
        raise Unavailable("it ended before its first turn")
    return player


def _leave(player: Player, setting: Setting) -> Row:
    """The figures of an entrant whose process has ended."""
    result = player.result()
    ended = canary.copies(player.kept, result.canaries)
    shutil.rmtree(player.kept)
    return row(player.entrant, result, setting.material.questions, ended=ended)


class Player:
    """An entrant's process, which does a share of its work whenever it is told to."""

    def __init__(self, entrant: Entrant, python: Path, job: Job, place: Path) -> None:
        self.entrant = entrant
        self.kept = Path(job.folder)
        self._job = job
        self._output = place / "output.txt"
        path = place / "job.json"
        path.write_text(json.dumps(asdict(job)))
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [str(python), "-m", "bench.peers.trial", str(path)],
                cwd=ROOT,
                env=_environment(self.kept),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                bufsize=0,
            )

    def play(self) -> bool:
        """Let it do its next share; false when that was the last."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its end is seen below
            self._process.stdin.write(b".")
        return self.is_waiting()

    def is_waiting(self) -> bool:
        """Whether it comes to wait for its next turn, rather than to its end."""
        signs = self._process.stdout
        assert signs is not None
        ready, _, _ = select([signs], [], [], SECONDS)
        if not ready:
            self._process.kill()
            self._process.communicate()
            raise Unavailable(f"one share of its work took longer than {SECONDS // 60} minutes")
        if signs.read(1):
            return True
        self._process.communicate()
        if self._process.returncode != 0:
            said = environments.shorten(_last_line(self._output.read_text()))
            raise Unavailable(f"it fails: {said}")
        return False

    def result(self) -> Result:
        """What it has seen; only after its end."""
        return Result(**json.loads(Path(self._job.result).read_text()))


def _python(entrant: Entrant, folder: Path) -> Path:
    if entrant.environment is None:
        return Path(sys.executable)
    needed = ENVIRONMENTS[entrant.environment]
    return environments.ensure(folder / entrant.environment, needed)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "without a word"


def _environment(folder: Path) -> dict[str, str]:
    """Every file a peer makes is to be below its folder, where the canaries are looked for."""
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    home, temporary = str(folder / "home"), str(folder / "tmp")
    own = {"HOME": home, "TMPDIR": temporary, "PYTHONPATH": str(ROOT)}
    xdg = {f"XDG_{name}_HOME": home for name in ("CACHE", "CONFIG", "DATA", "STATE")}
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, **own, **xdg, **_QUIET, **dict.fromkeys(_ONE_THREAD, "1")}
