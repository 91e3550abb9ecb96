"""A file that a person names and that cannot be used is one sentence with a hint; no traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CommandLine

SENTENCE = re.compile(r"error: [^\n]+[.?]\nhint: [^\n]+\n")
COMMANDS = {
    "backup": "backup {bad}",
    "backup of all": "backup --all {bad}",
    "backup with keys": "backup --all {good} --keys {bad}",
    "export": "export -o {bad}",
    "export as a bundle": "export --format bundle -o {bad}",
    "export as Markdown": "export --format markdown -o {bad}",
    "import": "import {bad}",
    "restore": "restore {bad}",
    "inspect": "inspect {bad}",
    "charts": "stats --svg {bad}",
    "a receipt": "verify --erased {bad}",
    "a brief": "brief --inject {bad}",
    "files": "files sync {bad} --yes",
    "evaluation": "eval {bad}",
    "a plot": "eval {empty} --plot {bad}",
    "a role": "init --template memory -o {bad}",
    "personal export": "personal export -o {bad}",
    "key file": "serve --port 0 --key-file {bad}",
    "certificate": "serve --port 0 --tls-cert {bad} --tls-key {bad}",
}
"""Commands with a file of each kind; what is in braces is put in."""


@pytest.mark.parametrize("below", ["file/name", "file/folder/name"])
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_path_through_a_file_is_one_sentence_with_a_hint(
    cli: CommandLine, tmp_path: Path, words: str, below: str
) -> None:
    cli.remember("tea")
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    named = {"bad": tmp_path / below, "good": tmp_path / "good", "empty": tmp_path / "empty"}
    done = cli(*(word.format(**named) for word in words.split()))
    assert done.code in (2, 3), done
    assert SENTENCE.fullmatch(done.err), done.err


def test_keys_of_backups_go_to_a_file_of_their_owner_alone(
    cli: CommandLine, tmp_path: Path
) -> None:
    for owner in ("alice", "bob"):
        cli.remember("tea", "--scope", f"acme/{owner}")
    keys, copies = tmp_path / "keys.tsv", tmp_path / "copies"
    done = cli.good("backup", "--all", copies, "--keys", keys)
    assert done.out == ""
    assert keys.stat().st_mode & 0o777 == 0o600
    first = {line.split("\t")[0]: line.split("\t")[2] for line in keys.read_text().splitlines()}
    assert set(first) == {"acme/alice", "acme/bob"}
    before = keys.read_bytes()
    assert cli("backup", "--all", copies, "--keys", keys).code == 2  # nobody there to confirm it
    assert keys.read_bytes() == before
    told = cli.good("backup", "--all", copies, "--keys", keys, "--yes", "--json").out
    assert json.loads(told)
    second = {line.split("\t")[0]: line.split("\t")[2] for line in keys.read_text().splitlines()}
    assert set(second) == set(first)
    assert not any(key in told for key in second.values())
    for scope, key in second.items():
        cli.good("restore", copies / f"{scope}.backup", "--scope", scope, "--key", key, "--yes")


def test_keys_of_the_backups_that_were_made_are_kept_if_another_fails(
    cli: CommandLine, tmp_path: Path
) -> None:
    for scope in ("acme/alice", "zoo/bob"):
        cli.remember("tea", "--scope", scope)
    keys, copies = tmp_path / "keys.tsv", tmp_path / "copies"
    cli.good("backup", "--all", copies, "--keys", keys)
    before = dict(line.rpartition("\t")[::2] for line in keys.read_text().splitlines())
    (copies / "zoo" / "bob.backup").unlink()
    (copies / "zoo").rmdir()
    (copies / "zoo").write_text("in the way")
    assert cli("backup", "--all", copies, "--keys", keys, "--yes").code == 2
    after = dict(line.rpartition("\t")[::2] for line in keys.read_text().splitlines())
    changed = [name for name in before if before[name] != after[name]]
    assert [name.partition("\t")[0] for name in changed] == ["acme/alice"]
    assert set(after) == set(before)


def test_keys_of_a_single_backup_are_printed(cli: CommandLine, tmp_path: Path) -> None:
    cli.remember("tea")
    assert cli("backup", tmp_path / "copy", "--keys", tmp_path / "keys").code == 2
    assert not (tmp_path / "keys").exists()
