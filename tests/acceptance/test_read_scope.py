"""Whoever has the files and the key has the memories: the reader that shares no code with us."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Any

import scrubjay

READER = Path(__file__).parents[2] / "tools" / "read_scope.py"


def test_the_reader_shows_what_the_library_shows(tmp_path: Path) -> None:
    with scrubjay.open("acme/alice", home=tmp_path) as jay:
        tea = jay.retain("Alice prefers green tea", kind="preference", tags=["food", "thé"])
        jay.retain("long ".ljust(65_000, "x"), metadata={"filler": "y" * 4_000}, session="s1")
        gone = jay.retain("Alice's phone number", key="phone")
        jay.retain("Alice lives in Lyon\nand works there", speaker="alice", importance=0.9)
        assert_shown(jay, tmp_path)
        jay.supersede(tea.id, "Alice prefers white tea", reason="she said so")
        assert_shown(jay, tmp_path)
        jay.rotate()
        assert_shown(jay, tmp_path)
        jay.forget([gone.id])
        shown = assert_shown(jay, tmp_path)
    assert len(shown) == 4
    assert read(tmp_path, "acme/alice") == shown, "after it was closed"


def test_the_reader_shows_the_latest_life_of_a_scope(tmp_path: Path) -> None:
    with scrubjay.open("alice", home=tmp_path) as jay:
        jay.retain("of the first life")
        jay.destroy(confirm="local/alice")
    with scrubjay.open("alice", home=tmp_path, anew=True) as jay:
        jay.retain("of the second life")
        assert [memory["content"] for memory in assert_shown(jay, tmp_path)] == [
            "of the second life"
        ]


def test_the_reader_needs_the_standard_library_and_cryptography_alone() -> None:
    tree = ast.parse(READER.read_text())
    names = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    names += [node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "cryptography"}


def test_the_reader_is_short_enough_to_be_read() -> None:
    assert lines_of_code(READER.read_text()) <= 100


def lines_of_code(text: str) -> int:
    """Lines that hold more than a comment or a docstring."""
    prose = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {token.start[0] for token in tokens if token.type not in prose and token.string}
    return len(code - docstrings)


def assert_shown(jay: scrubjay.Jay, home: Path) -> list[dict[str, Any]]:
    """What the reader prints, which is what the library exports."""
    exported = json.loads(jay.export().content)["memories"]
    wanted = [
        {name: value for name, value in memory.items() if name not in ("number", "version")}
        for memory in exported
    ]
    shown = read(home, str(jay.scope))
    assert shown == wanted
    return shown


def read(home: Path, scope: str) -> list[dict[str, Any]]:
    """What the reader prints."""
    command = [sys.executable, "-I", str(READER), str(home), scope]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
