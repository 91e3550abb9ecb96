"""pull: memory rebuilt from the history of the pod itself, over its own interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from scrubjay import bootstrap, settings
from scrubjay.cli.app import run
from scrubjay.conversation.replay import PAGE, ReplayReport
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.requests import Forget, TurnsRequest
from scrubjay.model.turns import Record
from scrubjay.surfaces.clawdapus.history import LINE_BYTES, HistorySource, pull
from scrubjay.surfaces.clawdapus.names import scope_of
from tests.dialects.clawdapus.desk import SCOPE, line
from tests.dialects.clawdapus.historian import TOKEN, Historian, serving
from tests.dialects.clawdapus.pod import START, Json, entry, user


@pytest.fixture
def historian() -> Iterator[Historian]:
    with serving() as served:
        yield served


@pytest.fixture
def source(historian: Historian) -> HistorySource:
    return HistorySource(url=historian.url, token=TOKEN)


def pulled_from(
    engine: Kernel, source: HistorySource, *, after: datetime | None = None
) -> ReplayReport:
    return pull(engine, "analyst", source.fetch, scope=SCOPE, after=after)


def second(number: int, name: str | None = None) -> Json:
    """A trivial line so many seconds after the start."""
    told = entry([user("ok")], "ok", START + timedelta(seconds=number))
    return {**told, "id": name or f"line-{number}"}


# -- what is replayed -----------------------------------------------------------------------------


def test_the_whole_history_is_replayed_and_a_second_pull_changes_nothing(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    historian.kept["analyst"] = [
        line(n, f"What came with lot {n}?", f"{n} boxes.") for n in range(5)
    ]
    first, second = pulled_from(engine, source), pulled_from(engine, source)
    assert (first.stored, first.known, first.whole) == (5, 0, True)
    assert (second.stored, second.known) == (0, 5)
    assert len(engine.turns(SCOPE, TurnsRequest(10))) == 5


def test_a_damaged_line_and_a_failed_turn_are_left_out_and_counted(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    failed = line(1, "I prefer tea.", status="error")
    historian.kept["analyst"] = ["{broken", "7", '{"ts": "x"}', failed, line(2, "I prefer milk.")]
    pulled = pulled_from(engine, source)
    assert (pulled.stored, pulled.ignored) == (1, 4)


def test_what_was_forgotten_is_not_pulled_back(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    told = line(1, "I prefer tea.")
    historian.kept["analyst"] = [told]
    engine.forget(SCOPE, Forget(ids=(told["id"],), unseen=True))
    pulled = pulled_from(engine, source)
    assert (pulled.stored, pulled.forgotten) == (0, 1)


def test_only_turns_after_a_time_are_asked_for(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    lines = [line(n, f"What came with lot {n}?", f"{n} boxes.") for n in range(5)]
    historian.kept["analyst"] = list(lines)
    assert pulled_from(engine, source, after=datetime.fromisoformat(lines[2]["ts"])).stored == 2


def test_a_line_that_is_too_long_is_skipped_and_said_to_be(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    whole = line(2, "I prefer milk.")
    historian.kept["analyst"] = [b"x" * (LINE_BYTES + 1), whole, b"y" * (2 * LINE_BYTES)]
    pulled = pulled_from(engine, source)
    assert (pulled.stored, pulled.overlong, pulled.whole) == (1, 2, True)


# -- pages ----------------------------------------------------------------------------------------


def test_no_line_falls_between_two_pages_though_turns_end_out_of_order(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    lines = [line(n, "ok", "ok") for n in range(PAGE + 200)]
    # A turn that took nine minutes: written after those that began later.
    lines.insert(PAGE + 2, lines.pop(PAGE - 7))
    historian.kept["analyst"] = list(lines)
    pulled = pulled_from(engine, source)
    assert pulled.stored == PAGE + 200
    assert len(historian.asked) > 1


def test_a_busy_pod_loses_no_turn_that_took_its_time(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    """Ten lines a second: a page is less than two minutes, and turns take up to half of one."""
    chance = Random(1)
    begun = [second(n // 10, f"line-{n}") for n in range(3 * PAGE)]
    took = {one["id"]: n + 10 * chance.choice((0, 1, 2, 30)) for n, one in enumerate(begun)}
    historian.kept["analyst"] = [*sorted(begun, key=lambda one: took[one["id"]])]
    pulled = pulled_from(engine, source)
    assert (pulled.stored, pulled.known, pulled.whole) == (3 * PAGE, 0, True)


def test_many_lines_of_one_second_do_not_stop_it(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    same = [second(0, f"same-{n}") for n in range(PAGE - 200)]
    historian.kept["analyst"] = [*same, *(second(1, f"next-{n}") for n in range(500))]
    pulled = pulled_from(engine, source)
    assert (pulled.stored, pulled.whole) == (PAGE + 300, True)


def test_a_second_with_more_lines_than_the_history_gives_is_named(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    same = [second(5, f"same-{n}") for n in range(PAGE + 50)]
    historian.kept["analyst"] = [second(0), *same, second(9)]
    pulled = pulled_from(engine, source)
    assert pulled.stored == PAGE + 2
    assert pulled.crowded == [START + timedelta(seconds=5)]
    assert not pulled.whole


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_an_answer_that_is_cut_off_is_no_last_page(
    engine: Kernel, historian: Historian, source: HistorySource, framing: str
) -> None:
    historian.kept["analyst"] = [line(n, f"What came with lot {n}?") for n in range(400)]
    historian.framing, historian.cut = framing, 250_000
    pulled = pulled_from(engine, source)
    assert pulled.error is not None
    assert "cut off" in pulled.error
    assert 0 < pulled.stored < 400
    historian.cut = None
    again = pulled_from(engine, source)
    assert (again.whole, again.stored + again.known) == (True, 400)


def test_a_redirect_is_refused_and_the_token_goes_nowhere_else(
    engine: Kernel, historian: Historian, source: HistorySource
) -> None:
    with serving() as other:
        other.kept["analyst"] = [line(1, "I prefer tea.")]
        historian.elsewhere = other.url.removesuffix("/history")
        pulled = pulled_from(engine, source)
        assert other.tokens == []
    assert pulled.error is not None
    assert "redirect" in pulled.error


@pytest.mark.parametrize(
    ("agent", "token", "error"), [("analyst", "wrong", "forbidden"), ("nobody", TOKEN, "not_found")]
)
def test_a_refusal_is_named(
    engine: Kernel, historian: Historian, agent: str, token: str, error: str
) -> None:
    historian.kept["analyst"] = []
    source = HistorySource(url=historian.url, token=token)
    pulled = pull(engine, agent, source.fetch, scope=SCOPE)
    assert pulled.error is not None
    assert pulled.error.startswith(error)


def test_a_history_nobody_serves_is_named(engine: Kernel) -> None:
    pulled = pulled_from(engine, HistorySource(url="http://127.0.0.1:9/history"))
    assert pulled.error is not None
    assert "reached" in pulled.error
    with pytest.raises(InvalidRequest):
        HistorySource(url="file:///etc/passwd")


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def pod(historian: Historian, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment `claw up` makes; returns the home."""
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path))
    monkeypatch.setenv("CLAW_HISTORY_URL", historian.url)
    monkeypatch.setenv("CLAW_HISTORY_TOKEN", TOKEN)
    monkeypatch.setenv("CLAW_HISTORY_AGENT_IDS", "a-0, a-1")
    historian.kept = {"a-0": [line(1, "I prefer tea.")], "a-1": [line(2, "I prefer milk.")]}
    return tmp_path


def known(home: Path, *scopes: tuple[str, str]) -> None:
    """Turns of these agents and pods are there already."""
    engine = bootstrap.build(settings.at_home(home))
    for agent, pod in scopes:
        engine.record(scope_of(agent, pod), Record(id="live", user="I prefer water."))
    engine.close()


def turns(home: Path, agent: str, pod: str) -> int:
    engine = bootstrap.build(settings.at_home(home))
    try:
        return len(engine.turns(scope_of(agent, pod), TurnsRequest(10)))
    finally:
        engine.close()


def test_the_command_pulls_every_agent_the_pod_names(
    pod: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plane", "pull", "--pod", "desk", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["data"]
    assert [(one["agent"], one["stored"]) for one in told] == [("a-0", 1), ("a-1", 1)]
    monkeypatch.setenv("SCRUBJAY_PLANE_PODS", "desk")
    assert run(["plane", "pull"]) == 0
    assert "a-0: 0 new, 1 known" in capsys.readouterr().out
    monkeypatch.delenv("CLAW_HISTORY_URL")
    assert run(["plane", "pull"]) != 0


def test_the_three_variables_alone_rebuild_the_scope_the_live_turns_went_to(
    pod: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known(pod, ("a-0", "desk"), ("a-1", "desk"))
    assert run(["plane", "pull"]) == 0
    assert (turns(pod, "a-0", "desk"), turns(pod, "a-1", "desk")) == (2, 2)


def test_an_agent_of_two_pods_or_of_none_is_not_guessed_at(
    pod: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known(pod, ("a-0", "desk"), ("a-0", "lab"))
    assert run(["plane", "pull"]) == 1
    told = capsys.readouterr().err
    assert "a-0 is known in more than one pod. Say which it belongs to: --pod NAME" in told
    assert "a-1 is known in no pod yet." in told
    assert (turns(pod, "a-0", "desk"), turns(pod, "a-0", "lab")) == (1, 1)


def test_an_address_that_lacks_the_path_of_the_history_is_told_so(
    pod: Path,
    historian: Historian,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CLAW_HISTORY_URL", historian.url.removesuffix("/history"))
    assert run(["plane", "pull", "--pod", "desk"]) == 1
    assert "its path is /, not /history" in capsys.readouterr().err


def test_what_goes_wrong_with_one_agent_does_not_keep_the_others_waiting(
    pod: Path, historian: Historian, capsys: pytest.CaptureFixture[str]
) -> None:
    del historian.kept["a-0"]
    assert run(["plane", "pull", "--pod", "desk"]) == 1
    told = capsys.readouterr()
    assert "a-0: broken off, not_found: The pod keeps no history of a-0." in told.err
    assert "a-1: 1 new" in told.out


def test_the_descriptor_of_the_example_is_the_one_the_command_writes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plane", "describe"]) == 0
    example = Path(__file__).parents[3] / "examples" / "clawdapus" / ".claw-describe.json"
    assert capsys.readouterr().out == example.read_text()
