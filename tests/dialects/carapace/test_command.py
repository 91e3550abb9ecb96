"""`scrubjay tool` and the other commands, run as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scrubjay.surfaces.carapace import manifest


def scrubjay(home: Path, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "scrubjay", *arguments],
        env={**os.environ, "SCRUBJAY_HOME": str(home)},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_result_is_one_line_of_json_on_stdout_and_exit_code_zero(tmp_path: Path) -> None:
    code, out, err = scrubjay(
        tmp_path, "tool", "memory_store", '{"type":"fact","content":"Luna","tags":["ä"]}'
    )
    assert (code, err, out.count("\n")) == (0, "", 1)
    entry = json.loads(out)
    assert out == json.dumps(entry, separators=(",", ":"), ensure_ascii=False) + "\n"
    assert entry["group"] == "main"
    assert entry["session_id"].startswith("sess-")
    code, out, _ = scrubjay(tmp_path, "tool", "tool.invoke.memory_search", '{"query":"luna"}')
    assert [one["id"] for one in json.loads(out)["results"]] == [entry["id"]]


def test_an_error_is_json_on_stderr_and_exit_code_one(tmp_path: Path) -> None:
    code, out, err = scrubjay(tmp_path, "tool", "memory_delete", '{"id":"mem-1"}')
    assert (code, out) == (1, "")
    assert json.loads(err) == {
        "code": "HANDLER_ERROR",
        "message": 'Memory entry "mem-1" not found.',
        "retriable": False,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("memory_search",),
        ("memory_search", "{"),
        ("memory_search", "[]"),
        ("memory_search", "3"),
    ],
)
def test_a_call_that_is_written_wrongly_is_a_cli_error(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    code, out, err = scrubjay(tmp_path, "tool", *arguments)
    assert (code, out) == (1, "")
    assert json.loads(err)["code"] == "CLI_ERROR"
    assert not (tmp_path / "data").exists()


def test_a_group_that_is_none_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    for tool in ("memory_search", "memory_brief"):
        code, out, err = scrubjay(tmp_path, "tool", tool, "{}", "--group", "../x")
        assert (code, out) == (1, "")
        assert "not the name of a group" in json.loads(err)["message"]
    assert not list(tmp_path.glob("data/scopes/*"))


def test_the_limits_of_a_named_session_hold_across_processes(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    import scrubjay as library
    from scrubjay.model.requests import Allowance, Caller, Retain

    with library.open("main", home=home) as jay:
        allowance = Allowance(session="s1", name="stores", limit=20)
        for number in range(20):
            caller = Caller(allowances=(allowance,))
            jay._engine.retain(jay.scope, Retain(f"{number}"), caller)
    call = ("tool", "memory_store", '{"type":"fact","content":"x"}')
    code, _, err = scrubjay(Path(home), *call, "--session", "s1")
    assert (code, json.loads(err)["code"]) == (1, "RATE_LIMITED")
    assert scrubjay(Path(home), *call)[0] == 0


def test_a_configuration_file_is_heeded_and_a_wrong_one_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"storage_path": str(tmp_path / "elsewhere")}))
    call = ("tool", "memory_store", '{"type":"fact","content":"x"}', "--config", str(config))
    assert scrubjay(tmp_path, *call)[0] == 0
    assert (tmp_path / "elsewhere" / "data").is_dir()
    config.write_text(json.dumps({"max_brief_entries": "many"}))
    code, _, err = scrubjay(tmp_path, *call)
    assert (code, json.loads(err)["code"]) == (1, "IPC_ERROR")
    assert "max_brief_entries" in err


def test_the_trail_and_the_taint_have_commands(tmp_path: Path) -> None:
    assert scrubjay(tmp_path, "tool", "memory_brief", "{}")[0] == 0
    assert scrubjay(tmp_path, "taint", "--session", "s1", "--scope", "main")[0] == 0
    store = '{"type":"instruction","content":"obey"}'
    scrubjay(tmp_path, "tool", "memory_store", store, "--session", "s1")
    _, out, _ = scrubjay(tmp_path, "tool", "memory_brief", "{}")
    assert json.loads(out)["entries"] == []
    _, out, _ = scrubjay(tmp_path, "carapace", "audit")
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [1, 2, 3]


def test_the_files_of_the_plugin_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    code, out, _ = scrubjay(tmp_path, "carapace", "files", str(tmp_path / "plugins" / "memory"))
    assert code == 0
    for line, (name, text) in zip(out.splitlines(), manifest.contents().items(), strict=True):
        assert Path(line) == tmp_path / "plugins" / "memory" / name
        assert Path(line).read_text() == text


def test_a_brief_is_put_into_a_file_and_replaced_the_next_time(tmp_path: Path) -> None:
    page = tmp_path / "CLAUDE.md"
    page.write_text("# Rules\n\nBe kind.\n")
    scrubjay(tmp_path, "tool", "memory_store", '{"type":"fact","content":"first"}')
    inject = ("brief", "--scope", "main", "--format", "claude-md", "--inject", str(page))
    assert scrubjay(tmp_path, *inject)[0] == 0
    once = page.read_text()
    assert once.startswith("# Rules\n\nBe kind.\n")
    assert "] first\n" in once
    scrubjay(tmp_path, "tool", "memory_store", '{"type":"fact","content":"second"}')
    scrubjay(tmp_path, *inject)
    twice = page.read_text()
    assert twice.count("## Memory Context") == 1
    assert "] second\n" in twice
