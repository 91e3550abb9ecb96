#!/usr/bin/env python3
"""Make docs/promises.md of docs/promises.toml: each promise, the test behind it, and a number.

python tools/promises.py            writes docs/promises.md
python tools/promises.py --check    says what is wrong instead: a test that is not there, a
                                    promise told twice, a page that is not up to date
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "promises.toml"
PAGE = ROOT / "docs" / "promises.md"
HEAD = """# The promises

What scrubjay promises, the test that fails when it breaks the promise, and the number behind it.
Figures of speed and size are in [bench/results.md](../bench/results.md). This page is made by
`tools/promises.py`; CI fails on a broken link.

| promise | test | number |
|---|---|---|
"""


def promises() -> list[dict[str, str]]:
    """The promises as they are written down."""
    found: list[dict[str, str]] = tomllib.loads(SOURCE.read_text())["promise"]
    return found


def render() -> str:
    """The page."""
    return HEAD + "".join(_row(promise) for promise in promises())


def _row(promise: dict[str, str]) -> str:
    path, _, name = promise["test"].partition("::")
    title = name.split("::")[-1].removeprefix("test_").replace("_", " ")
    return f"| {promise['says']} | [{title}](../{path}) | {promise['number']} |\n"


def problems() -> list[str]:
    """What is wrong, one sentence each."""
    found = [f"there is no test {p['test']}" for p in promises() if not _exists(p["test"])]
    tests = [promise["test"] for promise in promises()]
    found += [f"{test} stands for two promises" for test in set(tests) if tests.count(test) > 1]
    if not PAGE.exists() or PAGE.read_text() != render():
        found.append("docs/promises.md is not up to date: run python tools/promises.py")
    return found


def _exists(test: str) -> bool:
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file():
        return False
    tree = ast.parse((ROOT / path).read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return name.split("::")[-1] in names


def main() -> None:
    """Write the page, or check it."""
    if "--check" in sys.argv:
        sys.exit("\n".join(problems()) or 0)
    PAGE.write_text(render())


if __name__ == "__main__":
    main()
