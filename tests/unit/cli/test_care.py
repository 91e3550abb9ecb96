"""verify, audit, reindex, stats, doctor, config, completion: keeping an eye on things."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from scrubjay import bootstrap, settings
from scrubjay.cli import maintenance
from scrubjay.cli.home import installed
from scrubjay.engine import Policy
from scrubjay.model.requests import Forget
from scrubjay.model.scope import Scope
from tests.unit.cli.conftest import CommandLine


def test_verify_says_that_all_is_sound(cli: CommandLine) -> None:
    cli.remember("tea")
    told = cli.good("verify", "--json").json
    assert told["checked"] > 0
    assert told["problems"] == []


def test_the_audit_trail_names_verbs_and_is_whole(cli: CommandLine) -> None:
    id = cli.remember("tea")
    cli.good("pin", id)
    events = cli.good("audit", "--json").json["data"]
    assert [event["verb"] for event in events] == ["retain", "pin"]
    assert cli.good("audit", "--cursor", 1, "--json").json["data"] == events[1:]
    assert id not in cli.good("audit").out
    assert cli.good("audit", "verify", "--json").json["problems"] == []


def test_an_audit_trail_that_was_cut_fails(cli: CommandLine) -> None:
    cli.remember("tea")
    (file,) = (cli.home / "data" / "scopes").glob("*.sqlite")
    early = file.read_bytes()
    cli.remember("coffee")
    file.write_bytes(early)
    done = cli("audit", "verify", "--json")
    assert done.code == 1
    assert done.json["problems"]
    assert "problem" in cli("doctor").out


def test_reindex_counts_what_it_indexed(cli: CommandLine) -> None:
    cli.remember("tea")
    assert cli.good("reindex", "--json").json == {"memories": 1, "embedded": 0}


# -- stats -------------------------------------------------------------------------------------


def test_stats_count_what_is_there(cli: CommandLine) -> None:
    old = cli.remember("tea", "--kind", "preference", "--tag", "food", "--pin")
    cli.good("correct", old, "white tea")
    cli.remember("coffee", "--tag", "food", "--tag", "work", "--origin", "agent")
    told = cli.good("stats", "--json").json
    assert (told["live"], told["superseded"], told["pinned"]) == (2, 1, 1)
    assert told["kinds"] == {"preference": 1, "fact": 1}
    assert told["tags"] == {"food": 2, "work": 1}
    assert told["origins"] == {"agent": 1, "user": 1}
    assert len(told["weeks"]) == 12
    assert sum(told["weeks"].values()) == 3


def test_stats_draw_bars_in_proportion(cli: CommandLine) -> None:
    for text in ("tea", "coffee"):
        cli.remember(text)
    cli.remember("milk", "--kind", "context")
    lines = cli.good("stats").out.splitlines()
    bars = {line.split()[0]: line.count("█") for line in lines if "█" in line and line[2:3] != "·"}
    assert bars["fact"] == 2 * bars["context"] > 0


def test_stats_write_a_picture_that_is_valid_and_names_tags_safely(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.remember("tea", "--tag", "<script>&")
    file = tmp_path / "stats.svg"
    assert cli.good("stats", "--svg", file).out == ""
    root = ElementTree.fromstring(file.read_text())
    words = [element.text for element in root.iter() if element.text]
    assert "<script>&" in words
    assert not [element for element in root.iter() if element.tag.endswith("script")]


def test_stats_of_an_empty_or_frozen_scope_have_no_latency(cli: CommandLine) -> None:
    id = cli.remember("tea")
    assert "\nrecall: " in cli.good("stats").out
    cli.good("freeze", "--level", "all")
    assert "\nrecall: " not in cli.good("stats").out
    cli.good("forget", id)
    assert cli.good("stats", "--json").json["live"] == 0
    assert cli.good("stats").out.startswith("local/default: 0 memories")


# -- doctor ------------------------------------------------------------------------------------


def test_a_healthy_home_has_no_problem(cli: CommandLine) -> None:
    cli.remember("tea")
    findings = cli.good("doctor", "--json").json["findings"]
    assert {finding["state"] for finding in findings} == {"ok"}
    assert {"versions", "keys", "data", "embedder", "local/default"} <= {
        finding["check"] for finding in findings
    }


def test_an_embedder_is_suggested_where_most_is_not_english(cli: CommandLine) -> None:
    cli.remember("Alice lives in Lyon")
    assert "encoder" not in cli.good("doctor").out
    cli.remember("Ich wohne in Leipzig und arbeite in der Stadt.")
    cli.remember("我在儿童医院当护士。")
    findings = cli.good("doctor", "--json").json["findings"]
    (told,) = [one["finding"] for one in findings if "encoder" in one["finding"]]
    assert told.startswith("67% of it")
    cli.good("freeze", "--level", "all")
    assert "encoder" not in cli.good("doctor").out


def test_a_wrong_setting_is_a_problem_that_doctor_explains(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.remember("tea")
    monkeypatch.setenv("SCRUBJAY_EMBEDDER", "magic")
    done = cli("doctor", "--json")
    (found,) = [one for one in done.json["findings"] if one["state"] == "problem"]
    assert (done.code, found["check"]) == (1, "settings")
    assert found["finding"] == ("SCRUBJAY_EMBEDDER must be one of static, none, openai, encoder.")
    assert "static" in found["advice"]
    assert "config show" not in cli("config", "show").err  # which is what failed


def test_a_variable_that_is_no_setting_is_a_problem(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.remember("tea")
    monkeypatch.setenv("SCRUBJAY_OPENAI_API_KEY_VARIABLE", "SCRUBJAY_SECRET")
    monkeypatch.setenv("SCRUBJAY_SECRET", "x")
    cli.good("doctor")
    monkeypatch.setenv("SCRUBJAY_SCOPE_MEMORYS", "10")
    done = cli("doctor", "--json")
    (found,) = [one for one in done.json["findings"] if one["state"] == "problem"]
    assert (done.code, found["check"]) == (1, "settings")
    assert "SCRUBJAY_SCOPE_MEMORYS" in found["finding"]


@pytest.mark.parametrize("mounted", [False, True], ids=["no folder", "empty mount point"])
def test_keys_whose_data_is_gone_are_a_problem_and_nothing_is_served(
    cli: CommandLine, tmp_path: Path, *, mounted: bool
) -> None:
    cli.remember("tea", "--scope", "acme/alice")
    cli.good("keys", "create", "agent", "--scope", "acme/alice")
    data = cli.home / "data"
    data.rename(tmp_path / "away")
    if mounted:
        data.mkdir(mode=0o700)
    before = cli.files()
    done = cli("doctor", "--json")
    (found,) = [one for one in done.json["findings"] if one["state"] == "problem"]
    assert (done.code, found["check"]) == (1, "data")
    assert str(data) in found["finding"]
    refused = cli("serve", "--port", "0")
    assert refused.code == 1
    assert str(data) in refused.err
    assert "Mount" in refused.err
    assert cli.files() == before
    assert data.exists() == mounted
    if mounted:
        data.rmdir()
    (tmp_path / "away").rename(data)
    cli.good("doctor")


def test_a_first_scope_whose_making_was_cut_off_is_no_lost_data(cli: CommandLine) -> None:
    cli.remember("tea")
    shutil.rmtree(cli.home / "data")
    cli.good("doctor")
    cli.remember("tea")
    cli.good("doctor")


@pytest.mark.skipif(os.geteuid() != 0, reason="only a superuser gives files away")
@pytest.mark.parametrize("name", ["keys", "data"])
def test_a_file_of_another_user_is_named_with_its_owner(cli: CommandLine, name: str) -> None:
    """As a command that root ran on the home of a service leaves it."""
    cli.remember("tea")
    path = next(one for one in sorted((cli.home / name).rglob("*")) if one.is_file())
    os.chown(path, 12_345, -1)
    done = cli("doctor", "--json")
    (found,) = [one for one in done.json["findings"] if one["state"] == "problem"]
    assert (done.code, found["check"]) == (1, name)
    assert str(path) in found["finding"]
    assert "12345" in found["finding"]
    assert f"chown -R {os.geteuid()} {cli.home / name}" in found["advice"]


def test_rights_of_others_are_found_and_taken(cli: CommandLine) -> None:
    cli.remember("tea")
    (cli.home / "keys").chmod(0o755)
    done = cli("doctor", "--json")
    (found,) = [one for one in done.json["findings"] if one["state"] == "problem"]
    assert done.code == 1
    assert (found["check"], "chmod" in found["advice"]) == ("keys", True)
    cli.good("doctor", "--fix")
    assert (cli.home / "keys").stat().st_mode & 0o077 == 0
    cli.good("doctor")


def test_a_file_of_no_scope_and_a_scope_without_file_are_found(cli: CommandLine) -> None:
    cli.remember("tea")
    (file,) = (cli.home / "data" / "scopes").glob("*.sqlite")
    file.rename(file.with_name("abcdef.sqlite"))
    told = cli("doctor").out
    assert "belongs to no scope" in told
    assert "lost its data file" in told


def test_work_that_is_overdue_is_found_and_finished(cli: CommandLine) -> None:
    id, scope = cli.remember("tea"), Scope("local", "default")
    found = settings.at_home(cli.home)
    engine = bootstrap.build(found, policy=Policy(rotate_below=0, slice_seconds=0))
    engine.forget(scope, Forget(ids=(id,)))
    assert engine.head(scope).due
    engine.close()
    later = bootstrap.clock().now() + timedelta(days=2)
    for finding in maintenance.examine(found, later):
        if not finding.well:
            assert "due for 2 days" in finding.sentence
            assert "rotate" in finding.advice
            assert finding.repair is not None
            finding.repair()
            break
    else:
        pytest.fail("nothing was found")
    with installed(found) as engine:
        engine.open(scope, create=False)
        assert not engine.head(scope).due


def test_an_embedder_that_does_not_answer_is_found(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRUBJAY_EMBEDDER", "openai")
    # Nobody listens on port 1.
    monkeypatch.setenv("SCRUBJAY_OPENAI_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("SCRUBJAY_OPENAI_MODEL", "small")
    monkeypatch.setenv("SCRUBJAY_OPENAI_DIMENSIONS", "8")
    done = cli("doctor", "--json")
    assert done.code == 1
    assert [one["check"] for one in done.json["findings"] if one["advice"]] == ["embedder"]


# -- the program itself ------------------------------------------------------------------------


def test_config_show_says_where_each_value_comes_from(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text('scope = "acme/alice"\n')
    monkeypatch.setenv("SCRUBJAY_DROP_DAYS", "7")
    monkeypatch.setenv("SCRUBJAY_PASSPHRASE", "open sesame")
    done = cli.good("config", "show", "--json")
    told = {one["key"]: (one["value"], one["source"]) for one in done.json["values"]}
    assert told["scope"] == ("acme/alice", "file")
    assert told["drop_days"] == (7, "environment")
    assert told["shelf_megabytes"] == (256, "default")
    assert told["passphrase"] == ("set", "environment")
    assert "sesame" not in done.out + cli.good("config", "show").out


def test_a_wrong_value_is_shown_among_the_others_with_what_to_do(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("scoop = 1\ndrop_days = 'soon'\nidle_seconds = 60\n")
    monkeypatch.setenv("SCRUBJAY_EMBEDDER", "magic")
    done = cli("config", "show", "--json")
    told = {one["key"]: (one["value"], one["source"]) for one in done.json["values"]}
    assert done.code == 2
    assert told["idle_seconds"] == (60, "file")
    assert told["embedder"] == (None, "environment")
    assert told["drop_days"] == told["scoop"] == (None, "file")
    assert [one["key"] for one in done.json["problems"]] == ["scoop", "embedder", "drop_days"]
    assert "the default is static" in done.json["problems"][1]["advice"]
    lines = cli("config", "show").out.splitlines()
    (line,) = [one for one in lines if one.startswith("embedder\t")]
    assert "wrong: SCRUBJAY_EMBEDDER must be one of static, none, openai, encoder." in line
    assert "magic" not in line


def test_a_file_that_is_not_toml_is_shown_as_what_is_wrong_with_it(cli: CommandLine) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("scope = ?\n")
    done = cli("config", "show")
    (line,) = [one for one in done.out.splitlines() if one.startswith("config\t")]
    assert (done.code, "Correct the TOML" in line) == (2, True)
    assert "shelf_megabytes\t256" in done.out


def test_a_wrong_configuration_is_one_sentence(cli: CommandLine) -> None:
    cli.home.mkdir()
    (cli.home / "config.toml").write_text("scoop = 1\n")
    done = cli("list")
    assert done.code == 2
    assert "config.toml: there is no key scoop; did you mean scope?" in done.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(cli: CommandLine, shell: str) -> None:
    assert "_SCRUBJAY_COMPLETE" in cli.good("completion", shell).out


def test_a_week_begins_on_monday(cli: CommandLine) -> None:
    cli.remember("tea")
    for monday in cli.good("stats", "--json").json["weeks"]:
        assert date.fromisoformat(monday).weekday() == 0


def test_audit_shows_the_newest_events_and_with_a_cursor_the_oldest(cli: CommandLine) -> None:
    ids = [cli.remember(f"tea {number}") for number in range(6)]
    cli.good("pin", ids[0][:12])
    counts = [line.split("\t")[0] for line in cli.good("audit", "-n", 4).out.splitlines()]
    assert counts == ["4", "5", "6", "7"]
    assert cli.good("audit", "-n", 4).out.splitlines()[-1].split("\t")[2] == "pin"
    assert cli.good("audit", "-n", 1, "--cursor", 0).out.startswith("1\t")


# -- doctor and what runs beside it ----------------------------------------------------------------


class Probed(BaseHTTPRequestHandler):
    """A service that answers its readiness probe as the path of its address says."""

    def do_GET(self) -> None:
        late = timedelta(hours=1) if self.path.startswith("/late") else timedelta()
        self.send_response_only(503 if self.path.startswith("/busy") else 200)
        self.send_header("Date", format_datetime(datetime.now(UTC) - late, usegmt=True))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def probed() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Probed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        ("", 0, "is ready"),
        ("/busy", 1, "answers with status 503"),
        ("/late", 1, "s from the one here"),
    ],
)
def test_doctor_asks_the_service(
    cli: CommandLine, probed: str, path: str, code: int, says: str
) -> None:
    cli.remember("tea")
    done = cli("doctor", "--service", f"{probed}{path}")
    assert done.code == code
    assert says in next(line for line in done.out.splitlines() if line.startswith("service"))


def test_doctor_says_that_a_service_is_not_reached(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = cli("doctor", "--service", f"http://127.0.0.1:{port}")
    assert done.code == 1
    assert "is not reached" in done.out
    assert cli("doctor", "--service", "memory.example").code == 2


def test_doctor_reports_backups_that_are_overdue(cli: CommandLine, tmp_path: Path) -> None:
    cli.remember("tea")
    assert "last backup" not in cli.good("doctor").out
    assert "none is known" in cli("doctor", "--backup-days", 2).out
    cli.good("backup", tmp_path / "copy")
    assert "Its last backup: 2" in cli.good("doctor", "--backup-days", 2).out


def test_doctor_counts_no_backup_that_a_restored_home_was_not_part_of(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.remember("tea")
    cli.good("backup", tmp_path / "first")
    key = cli.good("backup", tmp_path / "copy").words
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "elsewhere"))
    cli.good("restore", tmp_path / "copy", "--key", key)
    assert "none is known" in cli("doctor", "--backup-days", 2).out
    cli.good("backup", tmp_path / "ours")
    assert "Its last backup: 2" in cli.good("doctor", "--backup-days", 2).out


def test_doctor_reports_a_disk_that_is_nearly_full(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.remember("tea")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=9_000_000))
    done = cli("doctor")
    assert done.code == 1
    assert "9 MB are free" in done.out
