"""pull: memory rebuilt from the history of the pod itself, over its own interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from scrubjay.domain.errors import Forbidden, InvalidRequest, NotFound
from scrubjay.domain.requests import Forget
from scrubjay.domain.scope import Scope
from scrubjay.engine import Engine
from scrubjay.surfaces.cli.app import run
from scrubjay.surfaces.dialects.clawdapus.history import PAGE, Source, pull
from tests.dialects.clawdapus.desk import line
from tests.dialects.clawdapus.pod import Json

TOKEN = "memory-history"
SCOPE = Scope("desk", "analyst")


class Historian(ThreadingHTTPServer):
    """The proxy's reading side: lines after a time, at most so many, as JSON lines."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Reading)
        self.kept: dict[str, list[Json | str]] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/history"


class Reading(BaseHTTPRequestHandler):
    server: Historian

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(where.query).items()}
        self.server.asked.append(self.path)
        kept = self.server.kept.get(unquote(where.path.removeprefix("/history/")))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.send_error(401)
        elif kept is None:
            self.send_error(404)
        else:
            self._give(kept, asked)

    def _give(self, kept: list[Json | str], asked: dict[str, str]) -> None:
        after = datetime.fromisoformat(asked.get("after", "0001-01-01T00:00:00Z"))
        chosen = [
            one for one in kept if isinstance(one, str) or datetime.fromisoformat(one["ts"]) > after
        ][: min(int(asked.get("limit", 100)), 1_000)]
        body = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in chosen)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def historian() -> Iterator[Historian]:
    served = Historian()
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served
    served.shutdown()
    served.server_close()
    thread.join()


@pytest.fixture
def source(historian: Historian) -> Source:
    return Source(url=historian.url, token=TOKEN)


def test_the_whole_history_is_replayed_and_a_second_pull_changes_nothing(
    engine: Engine, historian: Historian, source: Source
) -> None:
    historian.kept["analyst"] = [
        line(n, f"What came with lot {n}?", f"{n} boxes.") for n in range(5)
    ]
    first = pull(engine, "analyst", source.fetch, pod="desk")
    assert (first.stored, first.known) == (5, 0)
    second = pull(engine, "analyst", source.fetch, pod="desk")
    assert (second.stored, second.known) == (0, 5)
    assert len(engine.turns(SCOPE, 10)) == 5


def test_no_line_falls_between_two_pages_though_turns_end_out_of_order(
    engine: Engine, historian: Historian, source: Source
) -> None:
    lines = [line(n, "ok", "ok") for n in range(PAGE + 200)]
    # A turn that took nine minutes: written after those that began later.
    lines.insert(PAGE + 2, lines.pop(PAGE - 7))
    historian.kept["analyst"] = list(lines)
    pulled = pull(engine, "analyst", source.fetch, pod="desk")
    assert pulled.stored == PAGE + 200
    assert len(historian.asked) > 1


def test_many_lines_of_one_second_do_not_stop_it(
    engine: Engine, historian: Historian, source: Source
) -> None:
    same = [{**line(0, "ok", "ok"), "id": f"same-{n}"} for n in range(PAGE)]
    historian.kept["analyst"] = [*same, line(1, "I prefer tea.")]
    assert pull(engine, "analyst", source.fetch, pod="desk").stored == PAGE + 1


def test_a_damaged_line_and_a_failed_turn_are_left_out_and_counted(
    engine: Engine, historian: Historian, source: Source
) -> None:
    failed = line(1, "I prefer tea.", status="error")
    historian.kept["analyst"] = ["{broken", "7", '{"ts": "x"}', failed, line(2, "I prefer milk.")]
    pulled = pull(engine, "analyst", source.fetch, pod="desk")
    assert (pulled.stored, pulled.ignored) == (1, 4)


def test_what_was_forgotten_is_not_pulled_back(
    engine: Engine, historian: Historian, source: Source
) -> None:
    told = line(1, "I prefer tea.")
    historian.kept["analyst"] = [told]
    engine.forget(SCOPE, Forget(ids=(told["id"],), unseen=True))
    pulled = pull(engine, "analyst", source.fetch, pod="desk")
    assert (pulled.stored, pulled.forgotten) == (0, 1)


def test_only_turns_after_a_time_are_asked_for(
    engine: Engine, historian: Historian, source: Source
) -> None:
    lines = [line(n, f"What came with lot {n}?", f"{n} boxes.") for n in range(5)]
    historian.kept["analyst"] = list(lines)
    after = datetime.fromisoformat(lines[2]["ts"])
    assert pull(engine, "analyst", source.fetch, after=after).stored == 2


@pytest.mark.parametrize(
    ("agent", "token", "error"), [("analyst", "wrong", Forbidden), ("nobody", TOKEN, NotFound)]
)
def test_a_refusal_is_named(
    engine: Engine, historian: Historian, agent: str, token: str, error: type[Exception]
) -> None:
    historian.kept["analyst"] = []
    with pytest.raises(error):
        pull(engine, agent, Source(url=historian.url, token=token).fetch)


def test_a_history_nobody_serves_is_named(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="reached"):
        pull(engine, "analyst", Source(url="http://127.0.0.1:9/history").fetch)
    with pytest.raises(InvalidRequest):
        Source(url="file:///etc/passwd")


def test_the_command_pulls_every_agent_the_pod_names(
    historian: Historian,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    historian.kept = {"a-0": [line(1, "I prefer tea.")], "a-1": [line(2, "I prefer milk.")]}
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path))
    assert run(["plane", "pull"]) != 0
    monkeypatch.setenv("CLAW_HISTORY_URL", historian.url)
    monkeypatch.setenv("CLAW_HISTORY_TOKEN", TOKEN)
    monkeypatch.setenv("CLAW_HISTORY_AGENT_IDS", "a-0, a-1")
    capsys.readouterr()
    assert run(["plane", "pull", "--pod", "desk", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["agent"], one["stored"]) for one in told] == [("a-0", 1), ("a-1", 1)]
    assert run(["plane", "pull", "--pod", "desk"]) == 0
    assert "a-0: 0 new, 1 known" in capsys.readouterr().out


def test_the_descriptor_of_the_example_is_the_one_the_command_writes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plane", "describe"]) == 0
    example = Path(__file__).parents[3] / "examples" / "clawdapus" / ".claw-describe.json"
    assert capsys.readouterr().out == example.read_text()
