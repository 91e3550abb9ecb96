"""The project keeps the rules of the house, and each rule is able to fail."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from tests import house
from tests.house import Module, Rule

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "scrubjay"


def test_no_module_outgrows_eight_hundred_lines() -> None:
    expect_kept(house.long_modules)


def test_no_function_outgrows_eighty_lines() -> None:
    expect_kept(house.long_functions)


def test_few_functions_are_long_and_the_usual_one_is_short() -> None:
    lengths = [house.length(function) for module in modules() for function in module.functions]
    expect_nothing(house.sizes_astray(lengths))


def test_names_say_what_a_thing_is() -> None:
    expect_kept(house.empty_names)


def test_only_settings_read_the_environment() -> None:
    expect_kept(house.environment)


def test_only_the_clock_tells_the_time_and_rolls_the_dice() -> None:
    expect_kept(house.time_and_chance)


def test_only_surfaces_know_a_framework() -> None:
    expect_kept(house.frameworks)


def test_only_surfaces_are_async() -> None:
    expect_kept(house.async_functions)


def test_only_stores_speak_sql() -> None:
    expect_kept(house.sql)
    files = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.sql")]
    expect_nothing(f"{file}: move it" for file in files if not file.startswith(house.SQL_HOMES))


def test_type_checking_imports_hide_no_layer() -> None:
    expect_kept(house.hidden_imports)


def test_the_model_needs_only_the_standard_library_and_msgspec() -> None:
    expect_kept(house.foreign_model_imports)


def test_everything_is_caught_only_at_a_marked_seam() -> None:
    expect_kept(house.broad_excepts)


def test_what_is_public_says_what_it_promises() -> None:
    expect_kept(house.silent_promises)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git which files are ours")
def test_no_file_names_a_machine_or_a_registry() -> None:
    expect_nothing(found for file, text in texts() for found in house.foreign_places(file, text))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git which files are ours")
def test_no_test_waits_for_a_child_that_its_failure_leaves_running() -> None:
    expect_nothing(found for file, text in texts() for found in house.waiting_blocks(file, text))


BREACHES: list[tuple[Rule, str, str]] = [
    (house.long_modules, "engine/verbs.py", "\n" * 801),
    (house.long_functions, "engine/verbs.py", "def f():" + "\n    x = 1" * 80),
    (house.empty_names, "engine/text_utils.py", ""),
    (house.empty_names, "engine/common/text.py", ""),
    (house.empty_names, "engine/verbs.py", "class KeyManager: ..."),
    (house.empty_names, "engine/verbs.py", "def _handle_turn(): ..."),
    (house.empty_names, "engine/verbs.py", "class A:\n    def recall_v2(self): ..."),
    (house.environment, "bootstrap.py", "import os\nhome = os.environ['HOME']"),
    (house.environment, "bootstrap.py", "from os import getenv as ask"),
    (house.time_and_chance, "engine/verbs.py", "import datetime as d\nd.datetime.now(d.UTC)"),
    (house.time_and_chance, "engine/verbs.py", "from datetime import datetime\ndatetime.utcnow()"),
    (house.time_and_chance, "engine/verbs.py", "def f():\n    import secrets"),
    (house.time_and_chance, "adapters/stores/sqlite.py", "import uuid\nnew = uuid.uuid4"),
    (house.frameworks, "engine/verbs.py", "from pydantic import BaseModel"),
    (house.async_functions, "engine/verbs.py", "async def recall(): ..."),
    (house.sql, "engine/verbs.py", "run('SELECT 1')"),
    (house.sql, "cli/app.py", "table = 'x'\nrun(f'DELETE FROM {table}')"),
    (house.hidden_imports, "vault.py", "if TYPE_CHECKING:\n    from scrubjay.engine import Kernel"),
    (house.foreign_model_imports, "model/memory.py", "import numpy as np"),
    (house.broad_excepts, "engine/verbs.py", "try: ...\nexcept: ..."),
    (house.broad_excepts, "engine/verbs.py", "try: ...\nexcept (KeyError, Exception): ..."),
    (house.broad_excepts, "engine/verbs.py", "try: ...\nexcept BaseException:  # seam:\n    raise"),
    (house.broad_excepts, "engine/verbs.py", "with contextlib.suppress(Exception): ..."),
    (house.silent_promises, "engine/verbs.py", "import os"),
    (house.silent_promises, "engine/verbs.py", "'''Verbs.'''\ndef recall(): ..."),
    (house.silent_promises, "ports.py", "class S(Protocol):\n  '''S.'''\n  def put(): ..."),
]

MANNERS: list[tuple[Rule, str, str]] = [
    (house.long_functions, "engine/verbs.py", "def f():\n    '''" + "\n" * 90 + "'''"),
    (house.empty_names, "model/memory.py", "class Metadata:\n    def with_data(self): ..."),
    (house.environment, "settings.py", "import os\nhome = os.environ['HOME']"),
    (house.time_and_chance, "ports.py", "import secrets"),
    (house.time_and_chance, "engine/verbs.py", "from uuid import UUID\nclock.random(16)"),
    (house.frameworks, "cli/render.py", "import rich"),
    (house.async_functions, "bridge.py", "async def cross(): ..."),
    (house.sql, "adapters/stores/sqlite/files.py", "run('BEGIN IMMEDIATE')"),
    (house.sql, "service/routes.py", "'''SELECT is not spoken here.'''\nmethod = 'DELETE'"),
    (house.hidden_imports, "__init__.py", "if TYPE_CHECKING:\n    from scrubjay.engine import Jay"),
    (house.broad_excepts, "surfaces/hooks.py", "try: ...\nexcept Exception: ...  # seam: the turn"),
    (house.silent_promises, "engine/verbs.py", "'''Verbs.'''\ndef _recall(): ..."),
]


@pytest.mark.parametrize(("rule", "path", "text"), BREACHES)
def test_a_rule_sees_its_breach(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Module(path, text)))


@pytest.mark.parametrize(("rule", "path", "text"), MANNERS)
def test_a_rule_leaves_good_code_alone(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Module(path, text)))


@pytest.mark.parametrize("lengths", [[5] * 18 + [41] * 2, [5] * 9 + [11] * 11])
def test_sizes_are_judged_together(lengths: list[int]) -> None:
    assert len(list(house.sizes_astray(lengths))) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("docs/quickstart.md", "cd /" + "root/scrubjay"),
        ("Makefile", "--find-links=/" + "work/wheels"),
        ("pyproject.toml", "url = 'https:/" + "/packages.example/simple/'"),
        ("requirements/dev.in", "-f wheels"),
        ("requirements/dev.txt", "--extra-index-url packages"),
        ("requirements/dev.txt", "scrubjay @ https:/" + "/example.org/scrubjay.whl"),
        ("requirements/dev.txt", "    # via -r /srv/dev.in"),
    ],
)
def test_a_foreign_place_is_seen(file: str, line: str) -> None:
    (found,) = house.foreign_places(file, f"first line\n{line}\n")
    assert str(found).startswith(f"{file}:2: ")


def test_a_block_that_waits_for_its_child_is_seen() -> None:
    text = "\nwith subprocess." + "Popen(command):"
    (found,) = house.waiting_blocks("tests/unit/test_a.py", text)
    assert str(found).startswith("tests/unit/test_a.py:2: ")


def expect_kept(rule: Rule) -> None:
    expect_nothing(found for module in modules() for found in rule(module))


def expect_nothing(findings: Iterable[object]) -> None:
    if lines := [str(found) for found in findings]:
        pytest.fail("\n".join(lines), pytrace=False)


@cache
def modules() -> list[Module]:
    paths = sorted(PACKAGE.rglob("*.py"))
    assert paths, f"no modules below {PACKAGE}"
    return [Module(path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8")) for path in paths]


def texts() -> Iterator[tuple[str, str]]:
    """Every text file that is in the repository, or would be with the next git add."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0"):
        if (ROOT / name).is_file():
            with suppress(UnicodeDecodeError):
                yield name, (ROOT / name).read_text("utf-8")
