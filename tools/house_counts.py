#!/usr/bin/env python3
"""Count the source tree: sizes, helpers used once, importers, names, files a call passes.

python tools/house_counts.py [ROOT]    prints the table
    --trace    runs a service and a library on throw-away homes and lists the files of src in which
               a function is called in each of three recalls or retains, after others
    --cold     CPU time of `scrubjay list`, as a ratio to an interpreter that does nothing
    --check    instead: says what breaks a budget of [tool.scrubjay.house] in pyproject.toml, one
               sentence each, and fails if anything does
"""

from __future__ import annotations

import argparse
import ast
import http.client
import io
import itertools
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, cast
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
PACKAGE = "scrubjay"
APART = "testing"
"""The room whose code is for tests: sizes list it apart, the share of helpers leaves it out."""
DEEP = frozenset({"adapters", "engine", "surfaces"})
"""Rooms that are large enough to be told by their second level too."""
LONG_MODULE, LONG_FUNCTION, LONGISH_FUNCTION = 800, 80, 40
COLD_RUNS = 15
WARM_CALLS = 5
TRACED_CALLS = 3
_SETTLED = 0.5
"""Seconds after which the calls before have left nothing to do."""
_LOGGED = 0.05
"""Seconds after an answer within which its request is logged."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_PRIVATE_WORD = re.compile(r"\b_[a-z]\w+")
_TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore\b")
_VERBS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")


# -- one module ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A module: its path below the package, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, nested ones too."""
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @property
    def name(self) -> str:
        """The dotted name by which it is imported."""
        parts = [PACKAGE, *self.path.removesuffix(".py").split("/")]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """The first folder below the package, or the module itself where it has no folder."""
        return self.path.split("/")[0].removesuffix(".py")

    @property
    def chamber(self) -> str:
        """The second level of a deep room: `engine/recall`, `adapters/stores`."""
        return "/".join(self.path.removesuffix(".py").split("/")[:2])

    @property
    def budgeted(self) -> str:
        """What has a budget of its own: a room, or the second level of a deep one."""
        return self.chamber if self.room in DEEP else self.room

    @cached_property
    def code_lines(self) -> int:
        """Lines of code: no blanks, no comments, no docstrings, those of attributes included."""
        docstrings = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and _is_text(node.value)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            doc = token.type == tokenize.STRING and token.start[0] in docstrings
            if token.type not in _SILENT and not doc:
                lines.update(range(token.start[0], token.end[0] + 1))
        written = self.text.splitlines()
        return sum(1 for line in lines if written[line - 1].strip())

    @cached_property
    def used_once(self) -> list[str]:
        """Private functions defined once here whose name stands here once more, and no oftener."""
        words = Counter(_PRIVATE_WORD.findall(self.text))
        defined = Counter(
            function.name
            for function in self.functions
            if function.name.startswith("_") and not function.name.startswith("__")
        )
        return [name for name, times in defined.items() if times == 1 and words[name] == 2]

    @property
    def imports(self) -> Iterator[tuple[str, str | None]]:
        """Each import anywhere in it, as (module, name) or (module, None)."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names=names):
                    yield from ((alias.name, None) for alias in names)
                case ast.ImportFrom(module=str(origin), names=names, level=0):
                    yield from ((origin, alias.name) for alias in names)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


# -- the tree ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """The source tree of one checkout."""

    root: Path

    @property
    def package(self) -> Path:
        """The folder of the package."""
        return self.root / "src" / PACKAGE

    @cached_property
    def sources(self) -> list[Source]:
        """Every module."""
        paths = sorted(self.package.rglob("*.py"))
        return [Source(p.relative_to(self.package).as_posix(), p.read_text("utf-8")) for p in paths]

    @cached_property
    def data_files(self) -> dict[str, int]:
        """Files of the package that are no modules, with their size in bytes."""
        return {
            path.relative_to(self.package).as_posix(): path.stat().st_size
            for path in sorted(self.package.rglob("*"))
            if path.is_file() and path.suffix not in {".py", ".pyc"}
        }

    @cached_property
    def code_lines(self) -> dict[str, int]:
        """Lines of code by room, the second level of deep rooms, and `src` for all of it."""
        lines: Counter[str] = Counter()
        for source in self.sources:
            lines["src"] += source.code_lines
            lines[source.room] += source.code_lines
            if source.room in DEEP:
                lines[source.chamber] += source.code_lines
        return dict(lines)

    @property
    def rooms(self) -> set[str]:
        """What stands directly below the package."""
        return {source.room for source in self.sources}

    def functions(self, *, apart: bool = True) -> list[tuple[Source, Function]]:
        """Every function with its module; without those of `testing` where it is left apart."""
        kept = [source for source in self.sources if apart or source.room != APART]
        return [(source, function) for source in kept for function in source.functions]

    @cached_property
    def used_once(self) -> list[tuple[Source, str]]:
        """Private functions used once, `testing` left apart."""
        kept = (source for source in self.sources if source.room != APART)
        return [(source, name) for source in kept for name in source.used_once]

    @property
    def used_once_percent(self) -> float:
        """Their share of all functions."""
        return 100 * len(self.used_once) / max(1, len(self.functions(apart=False)))

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """For each module but `__init__` and `__main__`: the modules of src that import it.

        Imports inside functions and for type checkers count; a name loaded from a string does not.
        """
        known = {source.name for source in self.sources}
        found: dict[str, set[str]] = {
            source.name: set()
            for source in self.sources
            if source.path.rpartition("/")[2] not in {"__init__.py", "__main__.py"}
        }
        for source in self.sources:
            for origin, name in source.imports:
                whole = f"{origin}.{name}"
                target = whole if name is not None and whole in known else origin
                if target in found and target != source.name:
                    found[target].add(source.name)
        return found

    @property
    def lonely(self) -> list[str]:
        """Modules with at most one importer."""
        return sorted(name for name, users in self.importers.items() if len(users) <= 1)

    @cached_property
    def doubled_classes(self) -> dict[str, list[str]]:
        """Public class names used more than once, with the modules."""
        homes: dict[str, list[str]] = {}
        for source in self.sources:
            for node in ast.walk(source.tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(source.path)
        return {name: paths for name, paths in sorted(homes.items()) if len(paths) > 1}

    @property
    def doubled_outside(self) -> list[str]:
        """Those of them that are used more than once outside `testing`."""
        return [
            name
            for name, paths in self.doubled_classes.items()
            if sum(not path.startswith(f"{APART}/") for path in paths) > 1
        ]

    @property
    def type_ignores(self) -> int:
        """Comments that silence the type checker."""
        return sum(len(_TYPE_IGNORE.findall(source.text)) for source in self.sources)

    def long_modules(self, limit: int) -> list[tuple[int, str]]:
        """Modules of more lines than that, longest first; blanks and comments count."""
        sizes = ((len(source.text.splitlines()), source.path) for source in self.sources)
        return sorted((pair for pair in sizes if pair[0] > limit), reverse=True)

    def long_functions(self, limit: int) -> list[tuple[int, str]]:
        """Functions of more lines than that from def to end, longest first; docstrings count."""
        sizes = (
            (_length(function), f"{source.path}:{function.lineno} {function.name}")
            for source, function in self.functions()
        )
        return sorted((pair for pair in sizes if pair[0] > limit), reverse=True)


# -- the document of the service -----------------------------------------------------------------


def openapi_counts(document: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Properties with a description and operations with a tag, each with how many there are."""
    properties = list(_properties(document))
    operations = [
        operation
        for path in document.get("paths", {}).values()
        for verb, operation in path.items()
        if verb in _VERBS
    ]
    described = sum(1 for one in properties if one.get("description"))
    tagged = sum(1 for one in operations if one.get("tags"))
    return {
        "OpenAPI properties with a description": (described, len(properties)),
        "OpenAPI operations with a tag": (tagged, len(operations)),
    }


def _properties(node: object, *, named: bool = False) -> Iterator[Mapping[str, Any]]:
    """Each schema of a `properties` mapping; `named` where the keys are names, not keywords."""
    if isinstance(node, list):
        for item in node:
            yield from _properties(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in {"example", "examples", "default", "enum", "const"} and not named:
                continue
            names = key == "properties" and not named and isinstance(value, dict)
            if names:
                yield from (one for one in value.values() if isinstance(one, dict))
            yield from _properties(value, named=names)


# -- files a call passes -------------------------------------------------------------------------


def traced(root: Path) -> dict[str, list[str]]:
    """Call trace: the files in which a function is called during one call of each kind."""
    with tempfile.TemporaryDirectory(prefix="house-") as folder:
        found = _http(root, Path(folder, "service"))
        found["files a library recall passes"] = _library(root, Path(folder, "library"))
    return dict(sorted(found.items()))


def _http(root: Path, folder: Path) -> dict[str, list[str]]:
    """Windows of time around requests to a real service, laid over all calls it noted."""
    folder.mkdir()
    key, log = folder / "key", folder / "calls"
    words = ["serve", "--port", "0", "--json", "--key-file", str(key)]
    noted = folder / "service.log"
    with (
        noted.open("w") as errors,
        subprocess.Popen(
            [sys.executable, __file__, str(root), "--traced-to", str(log), *words],
            env={**_environment(root, folder), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as service,
    ):
        assert service.stdout is not None
        try:
            first = service.stdout.readline()
            if not first:
                raise SystemExit(f"The service did not begin: {noted.read_text()}")
            place = urlsplit(json.loads(first)["url"])
            ask = _Asking(f"{place.hostname}:{place.port}", key.read_text().strip())
            windows = {
                "files an HTTP retain passes": _windows(
                    lambda n: ask("/v1/memories", {"content": f"Alice drinks tea number {n}"})
                ),
                "files an HTTP recall passes": _windows(
                    lambda _: ask("/v1/recall", {"query": "What does Alice drink?"})
                ),
            }
        finally:
            service.send_signal(signal.SIGTERM)
    return {name: _within(each, log) for name, each in windows.items()}


def _library(root: Path, folder: Path) -> list[str]:
    """The same for `Jay.recall` in a process of its own."""
    folder.mkdir()
    log = folder / "calls"
    command = [sys.executable, __file__, str(root), "--traced-to", str(log), "library"]
    done = subprocess.run(
        command,
        env={**_environment(root, folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return _within(json.loads(done.stdout), log)


def recall_by_library() -> list[tuple[int, int]]:
    """Warm recalls of the library; when each began and ended."""
    import scrubjay

    with scrubjay.open("house") as jay:
        for number in range(WARM_CALLS):
            jay.retain(f"Alice drinks tea number {number}")
        return _windows(lambda _: jay.recall("What does Alice drink?"))


@dataclass(frozen=True)
class _Asking:
    """A client of the standard library, which passes no file of ours."""

    place: str
    key: str

    def __call__(self, path: str, body: Mapping[str, Any]) -> None:
        connection = http.client.HTTPConnection(self.place, timeout=30)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        told = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"{path} answered {answer.status}: {told.decode()}")


def _windows(call: Callable[[int], object]) -> list[tuple[int, int]]:
    """When each of a few calls began and ended, after others; its line in the log included."""
    for number in range(WARM_CALLS):
        call(number)
    windows = []
    for number in range(TRACED_CALLS):
        time.sleep(_SETTLED)
        begin = time.monotonic_ns()
        call(WARM_CALLS + number)
        time.sleep(_LOGGED)
        windows.append((begin, time.monotonic_ns()))
    return windows


def _within(windows: Sequence[tuple[int, int]], log: Path) -> list[str]:
    """The files of every call: what another thread does by its own schedule is in one of them."""
    calls = [line.split(" ", 1) for line in log.read_text().splitlines()]
    passed = ({file for at, file in calls if a <= int(at) <= b} for a, b in windows)
    return sorted(set.intersection(*passed))


def trace_to(log: Path, package: Path, work: Callable[[], object]) -> None:
    """Run the work in this process; note each call of a function below the package, and when."""
    seen: list[tuple[int, str]] = []
    prefix = f"{package}{os.sep}"

    def called(frame: Any, _event: str, _value: object) -> None:
        code = frame.f_code
        if code.co_name != "<module>" and code.co_filename.startswith(prefix):
            seen.append((time.monotonic_ns(), code.co_filename.removeprefix(prefix)))

    threading.settrace(called)
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(None)
        log.write_text("".join(f"{at} {file}\n" for at, file in list(seen)))


def _work(words: Sequence[str]) -> Callable[[], object]:
    if words[0] == "library":
        return lambda: print(json.dumps(recall_by_library()))
    sys.argv = [PACKAGE, *words]
    return lambda: runpy.run_module(PACKAGE, run_name="__main__")


def _environment(root: Path, home: Path) -> dict[str, str]:
    """Nothing that is set for somebody's own memory, and this checkout's package first."""
    left = ("SCRUBJAY_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    return {**kept, "SCRUBJAY_HOME": str(home), "PYTHONPATH": str(root / "src")}


# -- a cold start --------------------------------------------------------------------------------


def cold(root: Path) -> dict[str, float]:
    """CPU time, user and system, of `scrubjay list` and of an interpreter that does nothing."""
    module, _, name = _pyproject(root)["project"]["scripts"][PACKAGE].partition(":")
    script = f"import sys; from {module} import {name}; sys.exit({name}())"
    with tempfile.TemporaryDirectory(prefix="house-") as folder:
        env = {**_environment(root, Path(folder, "home")), "PYTHONPYCACHEPREFIX": folder}
        _cpu([sys.executable, "-c", script, "remember", "Alice drinks tea"], env)
        commands = {
            "list": [sys.executable, "-c", script, "list"],
            "nothing": [sys.executable, "-c", "pass"],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():  # writes the bytecode
            _cpu(command, env)
        for _, (name, command) in itertools.product(range(COLD_RUNS), commands.items()):
            taken[name].append(_cpu(command, env))
    ours, floor = (median(taken[name]) for name in commands)
    return {
        "CPU ms of scrubjay list": 1000 * ours,
        "CPU ms of python -c pass": 1000 * floor,
        "ratio": ours / floor,
    }


def _cpu(command: Sequence[str], env: Mapping[str, str]) -> float:
    quiet = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    child = os.posix_spawn(command[0], list(command), dict(env), file_actions=[quiet])
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


# -- budgets -------------------------------------------------------------------------------------


def budgets(root: Path) -> dict[str, Any]:
    """The table [tool.scrubjay.house] of pyproject.toml."""
    return cast(dict[str, Any], _pyproject(root)["tool"]["scrubjay"]["house"])


def _pyproject(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def breaches(tree: Tree, budget: Mapping[str, Any]) -> Iterator[str]:
    """What breaks a budget, one sentence each."""
    allowed: Mapping[str, int] = budget["code_lines"]
    for room in sorted(
        allowed.keys() | {source.budgeted for source in tree.sources if source.code_lines}
    ):
        if room not in allowed:
            yield f"{room} has no budget: give it one in [tool.scrubjay.house.code_lines]."
        elif room not in tree.code_lines:
            yield f"{room} has a budget and is not there: take the budget out."
        elif (lines := tree.code_lines[room]) > allowed[room]:
            yield f"{room} has {lines} lines of code; {allowed[room]} are allowed."
    if (percent := tree.used_once_percent) > budget["once_used_percent"]:
        most = budget["once_used_percent"]
        yield f"{percent:.1f} % of the functions are private and used once; {most} % are allowed."
    for lines, path in tree.long_modules(budget["module_lines"]):
        yield f"{path} has {lines} lines; {budget['module_lines']} are allowed."
    for lines, place in tree.long_functions(budget["function_lines"]):
        yield f"{place} has {lines} lines; {budget['function_lines']} are allowed."
    if budget["unique_class_names"]:
        for name, paths in tree.doubled_classes.items():
            yield f"The class name {name} is used in {' and '.join(paths)}; rename one."


# -- the table -----------------------------------------------------------------------------------


def rows(tree: Tree) -> Iterator[tuple[str, object]]:
    """The table: a measure and its value."""
    lines = tree.code_lines
    yield "code lines in src", lines["src"]
    yield f"  of them {APART}", lines.get(APART, 0)
    yield f"  without {APART}", lines["src"] - lines.get(APART, 0)
    for room in sorted(tree.rooms, key=lambda room: -lines[room]):
        yield f"  {room}", lines[room]
        inner = [name for name in lines if name.startswith(f"{room}/")]
        for name in sorted(inner, key=lambda name: -lines[name]):
            yield f"    {name}", lines[name]
    yield "data files, bytes", sum(tree.data_files.values())
    for path, size in tree.data_files.items():
        yield f"  {path}", size
    every = len(tree.functions())
    yield f"functions without {APART}", len(tree.functions(apart=False))
    yield f"functions with {APART}", every
    once = len(tree.used_once)
    yield "private functions used once", f"{once} = {tree.used_once_percent:.1f} %"
    once = sum(len(source.used_once) for source in tree.sources)
    yield f"  with {APART}", f"{once} = {100 * once / max(1, every):.1f} %"
    yield "modules", len(tree.sources)
    yield "modules with at most one importer", f"{len(tree.lonely)} of {len(tree.importers)}"
    yield "public class names used twice", len(tree.doubled_classes)
    yield f"  without {APART}", len(tree.doubled_outside)
    for name, paths in tree.doubled_classes.items():
        yield f"  {name}", ", ".join(paths)
    yield "type: ignore in src", tree.type_ignores
    yield from _listed(f"modules over {LONG_MODULE} lines", tree.long_modules(LONG_MODULE))
    yield from _listed(f"functions over {LONG_FUNCTION} lines", tree.long_functions(LONG_FUNCTION))
    longish = len(tree.long_functions(LONGISH_FUNCTION))
    share = f"{longish} = {100 * longish / max(1, every):.1f} %"
    yield f"functions over {LONGISH_FUNCTION} lines", share
    document = tree.root / "docs" / "openapi.json"
    if document.exists():
        for name, (some, of) in openapi_counts(json.loads(document.read_text("utf-8"))).items():
            yield name, f"{some} of {of}"


def _listed(title: str, found: Sequence[tuple[int, str]]) -> Iterator[tuple[str, object]]:
    yield title, len(found)
    for lines, place in found:
        yield f"  {place}", lines


def main() -> int:
    """Print the table, or what breaks a budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--trace", action="store_true", help="files a call passes")
    parser.add_argument("--cold", action="store_true", help="CPU time of a cold start")
    parser.add_argument("--check", action="store_true", help="compare with the budgets")
    parser.add_argument("--traced-to", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    tree = Tree(chosen.root.resolve())
    if chosen.traced_to:
        log, *words = chosen.traced_to
        trace_to(Path(log), tree.package, _work(words))
        return 0
    if chosen.check:
        found = list(breaches(tree, budgets(tree.root)))
        print("\n".join(found) or "The house keeps its budgets.")
        return 1 if found else 0
    for name, value in rows(tree):
        print(f"{name:<50} {value}")
    for name, files in (traced(tree.root) if chosen.trace else {}).items():
        print(f"{name:<50} {len(files)}", *files, sep="\n  ")
    for name, number in (cold(tree.root) if chosen.cold else {}).items():
        print(f"{name:<50} {number:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
