"""The counts of the source tree: each measure by its definition, each budget able to fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools.house_counts import Source, Tree, breaches, openapi_counts

COUNTED = '''"""A module.

Of four lines that are no code.
"""

import os  # a comment beside code


class Value:
    name: str
    """An attribute's docstring."""

    # a comment
    text = """one

    two"""
'''
ENGINE = """from scrubjay.model import Value


def _once() -> None: ...
def _twice() -> None: ...
def run() -> None:
    from scrubjay import ports

    _once(), _twice(), _twice()
"""
BUDGET: dict[str, Any] = {
    "code_lines": {"engine/run": 7, "model": 5, "ports": 1},
    "once_used_percent": 34,
    "module_lines": 20,
    "function_lines": 4,
    "unique_class_names": True,
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A small source tree."""
    texts = {"model.py": COUNTED, "engine/run.py": ENGINE, "ports.py": "class Port: ...\n"}
    for path, text in texts.items():
        file = tmp_path / "src" / "scrubjay" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Tree(tmp_path)


def test_code_lines_are_no_blanks_comments_or_docstrings() -> None:
    assert Source("model.py", COUNTED).code_lines == 5


def test_a_room_has_the_lines_of_its_modules(tree: Tree) -> None:
    assert tree.code_lines == {"src": 12, "engine": 6, "engine/run": 6, "model": 5, "ports": 1}


def test_a_private_function_is_used_once_if_its_name_stands_there_once_more(tree: Tree) -> None:
    assert [name for _, name in tree.used_once] == ["_once"]
    assert tree.used_once_percent == pytest.approx(100 / 3)


def test_an_import_inside_a_function_makes_an_importer(tree: Tree) -> None:
    run = "scrubjay.engine.run"
    assert tree.importers == {run: set(), "scrubjay.model": {run}, "scrubjay.ports": {run}}


def test_properties_are_counted_where_they_are_declared() -> None:
    inner = {"properties": {"properties": {"description": "A name that is a keyword."}}}
    document = {
        "paths": {"/a": {"get": {"tags": ["a"]}, "post": {}, "parameters": []}},
        "components": {"schemas": {"A": {"properties": {"id": {}, "inner": inner}}}},
    }
    assert list(openapi_counts(document).values()) == [(1, 3), (1, 2)]


def test_a_tree_within_its_budgets_breaks_none(tree: Tree) -> None:
    assert list(breaches(tree, BUDGET)) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"code_lines": {**BUDGET["code_lines"], "model": 4}}, "model has 5 lines of code; 4 are"),
        ({"code_lines": {"engine/run": 7, "model": 5}}, "ports has no budget"),
        ({"code_lines": {**BUDGET["code_lines"], "gone": 1}}, "gone has a budget and is not"),
        ({"once_used_percent": 33}, "33.3 % of the functions are private and used once"),
        ({"module_lines": 15}, "model.py has 16 lines; 15 are allowed."),
        ({"function_lines": 3}, "engine/run.py:6 run has 4 lines; 3 are allowed."),
    ],
)
def test_a_broken_budget_is_one_sentence(
    tree: Tree, changed: dict[str, Any], sentence: str
) -> None:
    (found,) = breaches(tree, {**BUDGET, **changed})
    assert found.startswith(sentence)


def test_a_class_name_used_twice_is_a_breach(tree: Tree) -> None:
    (tree.package / "vault.py").write_text("class Port: ...\n")
    budget = {**BUDGET, "code_lines": {**BUDGET["code_lines"], "vault": 1}}
    (found,) = breaches(tree, budget)
    assert found == "The class name Port is used in ports.py and vault.py; rename one."
