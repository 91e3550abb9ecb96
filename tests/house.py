"""The rules of the house: sizes, names, and which module may touch what.

A rule looks at one module and yields findings that say where, and what to do about it.
The layers are not here: they are import-linter contracts in pyproject.toml.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from tools.house_counts import Function, Source

MODULE_LINES = 800
FUNCTION_LINES = 80
LONG_FUNCTION_LINES = 40
LONG_FUNCTION_SHARE = 0.05
MEDIAN_FUNCTION_LINES = 10

EMPTY_WORDS = {"util", "utils", "helper", "helpers", "manager", "common", "data", "info"}
EMPTY_VERB = re.compile(r"_*(handle|process)_(?!async_request\b)")  # that one is what httpx calls
VERSIONED = re.compile(r".*(_v|[a-z]V)\d+$")

SQL = re.compile(r"\s*((SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|ALTER|DROP)\s|BEGIN\b)")
SQL_HOMES = ("adapters/stores/", "surfaces/imports/")
ASYNC_HOMES = ("surfaces/", "service/", "bridge.py", "handle.py", "testing/")

BROAD = {"Exception", "BaseException"}
SEAM = re.compile(r"# seam: \S")

MACHINE_PATH = re.compile(r"(?<![\w.~*-])/(?:work|root)/")
REGISTRY = re.compile(r"https?://\S*/simple\b")
WAITING_BLOCK = re.compile(r"\bwith subprocess\.Popen\(")
PIP_SOURCE = re.compile(r"://|\bpypi\.|^\s*(-i|-f|--\S*index\S*|--find-links)\b|(^|\s)/\w")


class Finding(NamedTuple):
    """One breach of one rule: where, and what to do about it."""

    file: str
    line: int
    advice: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.advice}"


class Module(Source):
    """One module, as the rules see it."""

    def lives_in(self, *homes: str) -> bool:
        return self.path.startswith(homes)

    def finding(self, line: int, advice: str) -> Finding:
        return Finding(f"src/scrubjay/{self.path}", line, advice)


Rule = Callable[[Module], Iterable[Finding]]


# Sizes


def long_modules(module: Module) -> Iterator[Finding]:
    lines = len(module.text.splitlines())
    if lines > MODULE_LINES:
        yield module.finding(lines, f"{lines} lines; {MODULE_LINES} at most: it is two things")


def long_functions(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if (lines := length(function)) > FUNCTION_LINES:
            advice = f"{function.name} has {lines} lines; {FUNCTION_LINES} at most: split it"
            yield module.finding(function.lineno, advice)


def length(function: Function) -> int:
    """Lines from def to the end; the docstring does not count."""
    has_docstring = ast.get_docstring(function) is not None
    return _span(function) - (_span(function.body[0]) if has_docstring else 0)


def sizes_astray(lengths: list[int]) -> Iterator[str]:
    """What is wrong with functions of these lengths, taken together."""
    share = sum(lines > LONG_FUNCTION_LINES for lines in lengths) / len(lengths)
    if share > LONG_FUNCTION_SHARE:
        allowed = f"at most {LONG_FUNCTION_SHARE:.0%} may"
        yield f"{share:.1%} of the functions have over {LONG_FUNCTION_LINES} lines; {allowed}"
    if median(lengths) > MEDIAN_FUNCTION_LINES:
        yield f"the median function has {median(lengths)} lines; {MEDIAN_FUNCTION_LINES} at most"


def _span(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


# Names


def empty_names(module: Module) -> Iterator[Finding]:
    for line, name, words in _names_given(module):
        if VERSIONED.match(name):
            yield module.finding(line, f"{name}: there is one of each thing; replace the old one")
        for word in EMPTY_WORDS.intersection(words):
            yield module.finding(line, f"{name}: '{word}' says nothing; name what it is")
    for function in module.functions:
        if EMPTY_VERB.match(function.name):
            yield module.finding(function.lineno, f"{function.name}: use a verb of the glossary")


def _names_given(module: Module) -> Iterator[tuple[int, str, list[str]]]:
    for part in module.path.removesuffix(".py").split("/"):
        yield 1, part, part.split("_")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            words = re.findall(r"[A-Z]?[a-z]+", node.name)
            yield node.lineno, node.name, [word.lower() for word in words]
        elif isinstance(node, Function):
            yield node.lineno, node.name, []


# Who may touch what


@dataclass(frozen=True)
class Reserved:
    """A rule: these names of other libraries belong to these modules alone."""

    names: tuple[str, ...]
    homes: tuple[str, ...]
    advice: str

    def __call__(self, module: Module) -> Iterator[Finding]:
        if module.lives_in(*self.homes):
            return
        for name, line in names_used(module.tree):
            if any(f"{name}.".startswith(f"{reserved}.") for reserved in self.names):
                yield module.finding(line, f"{name}: {self.advice}")


environment = Reserved(
    names=("os.environ", "os.environb", "os.getenv", "os.putenv"),
    homes=("settings.py",),
    advice="read it in settings.py and pass the value in",
)
time_and_chance = Reserved(
    names=(
        *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
        *("datetime.date.today", "time.time", "time.time_ns"),
        *("uuid.uuid1", "uuid.uuid4", "os.urandom", "random", "secrets", "numpy.random"),
    ),
    homes=("ports.py", "testing/"),
    advice="ask the Clock, so that one seed can drive a whole simulation",
)
frameworks = Reserved(
    names=("pydantic", "pydantic_core", "pydantic_ai", "rich", "starlette", "uvicorn", "mcp"),
    homes=("surfaces/", "cli/", "service/"),
    advice="only surfaces know a framework; translate there",
)


def names_used(tree: ast.AST) -> list[tuple[str, int]]:
    """Every imported name and every attribute of one, spelled in full, with its line."""
    imported = list(_imports(tree))
    bound = {local: name for local, name, _ in imported}
    used = {(name, line) for _, name, line in imported}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, _, rest = ast.unparse(node).partition(".")
            if root in bound:
                used.add((f"{bound[root]}.{rest}", node.lineno))
    return sorted(used, key=lambda use: use[1])


def _imports(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Yield (name bound here, name in full, line) for every import."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    whole = alias.name if alias.asname else alias.name.split(".")[0]
                    yield alias.asname or whole, whole, node.lineno
            case ast.ImportFrom(module=str(origin), names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, f"{origin}.{alias.name}", node.lineno


def sql(module: Module) -> Iterator[Finding]:
    prose = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in prose and SQL.match(text):
                if not module.lives_in(*SQL_HOMES):
                    yield module.finding(node.lineno, "SQL lives in adapters/stores; move it there")


def async_functions(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if isinstance(function, ast.AsyncFunctionDef) and not module.lives_in(*ASYNC_HOMES):
            advice = f"{function.name}: below surfaces nothing is async; cross in the bridge"
            yield module.finding(function.lineno, advice)


def hidden_imports(module: Module) -> Iterator[Finding]:
    """Imports for type checkers that cross a layer where import-linter does not look.

    The command line is the top layer: it may import everything, so it can hide nothing.
    """
    if module.room == "cli":
        return
    guards = [node for node in ast.walk(module.tree) if isinstance(node, ast.If)]
    for guard in guards:
        if not ast.unparse(guard.test).endswith("TYPE_CHECKING") or module.path == "__init__.py":
            continue
        for _, name, line in _imports(guard):
            if name.startswith("scrubjay.") and name.split(".")[1] != module.room:
                yield module.finding(line, f"{name}: import it at run time, where layers are seen")


def foreign_model_imports(module: Module) -> Iterator[Finding]:
    for _, name, line in _imports(module.tree) if module.lives_in("model/") else ():
        if name.split(".")[0] not in {*sys.stdlib_module_names, "msgspec", "scrubjay"}:
            yield module.finding(
                line, f"{name}: the model needs only the standard library and msgspec"
            )


# Manners


def broad_excepts(module: Module) -> Iterator[Finding]:
    lines = module.text.splitlines()
    for line in _lines_catching_everything(module.tree):
        if not SEAM.search(lines[line - 1]):
            advice = "catch what you expect; at a seam, say why on this line: # seam: <why>"
            yield module.finding(line, advice)


def _lines_catching_everything(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(type=None):
                yield node.lineno
            case ast.ExceptHandler(type=ast.expr() as caught) if _is_broad(caught):
                yield node.lineno
            case ast.Call(func=func, args=args) if ast.unparse(func).endswith("suppress"):
                yield from (node.lineno for caught in args if _is_broad(caught))


def _is_broad(caught: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id in BROAD for node in ast.walk(caught))


def silent_promises(module: Module) -> Iterator[Finding]:
    """Public modules, classes, functions and protocol methods without a docstring."""
    for name, node in _public(module):
        if ast.get_docstring(node) is None:
            advice = f"{name} needs a docstring: one sentence that says what it promises"
            yield module.finding(getattr(node, "lineno", 1), advice)


def _public(module: Module) -> Iterator[tuple[str, ast.Module | ast.ClassDef | Function]]:
    yield "the module", module.tree
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node.name, node
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases):
            yield from ((f"{node.name}.{m.name}", m) for m in node.body if isinstance(m, Function))


# The repository


def foreign_places(file: str, text: str) -> Iterator[Finding]:
    """Paths of one machine, and addresses packages are fetched from."""
    in_requirements = file.startswith("requirements/")
    for number, line in enumerate(text.splitlines(), start=1):
        if MACHINE_PATH.search(line):
            yield Finding(file, number, "a path of somebody's machine; write a relative one")
        if REGISTRY.search(line) or (in_requirements and PIP_SOURCE.search(line)):
            yield Finding(file, number, "where packages come from is each machine's own affair")


def waiting_blocks(file: str, text: str) -> Iterator[Finding]:
    """Children that a failed test would wait for: leaving `with Popen(…)` does not end them."""
    if not file.startswith("tests/") or file == "tests/processes.py":
        return
    for number, line in enumerate(text.splitlines(), 1):
        if WAITING_BLOCK.search(line):
            yield Finding(file, number, "use processes.running: it ends the child whatever happens")
