"""Importing scrubjay costs next to nothing, and everything public is there."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import scrubjay

HEAVY = {
    "apsw", "cryptography", "numpy", "rich", "typer", "dataclasses", "inspect", "json", "logging",
    "pathlib", "sqlite3", "asyncio", "typing_extensions", "pydantic", "datetime",
}  # fmt: skip


def modules_after(statement: str) -> set[str]:
    """The modules a fresh interpreter has loaded after a statement, beyond those it starts with."""
    script = (
        "import sys\nbefore = set(sys.modules)\n"
        f"{statement}\nprint('\\n'.join(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    loaded = modules_after("import scrubjay")
    assert not {name.split(".")[0] for name in loaded} & HEAVY
    assert {name for name in loaded if name.startswith("scrubjay")} == {"scrubjay"}


def test_an_error_is_had_without_a_library_behind_it() -> None:
    loaded = modules_after("import scrubjay; scrubjay.NotFound")
    assert not {name.split(".")[0] for name in loaded} & {"apsw", "cryptography", "numpy", "rich"}


@pytest.mark.parametrize("name", scrubjay.__all__)
def test_every_public_name_resolves(name: str) -> None:
    value = getattr(scrubjay, name)
    assert value.__name__ == name
    assert value.__module__.startswith("scrubjay.")


def test_public_names_are_listed_once_and_in_order() -> None:
    assert list(scrubjay.__all__) == sorted(set(scrubjay.__all__))
    assert dir(scrubjay) == scrubjay.__all__


def test_every_lazy_name_is_public() -> None:
    assert sorted(scrubjay._NAMES) == list(scrubjay.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="mem0"):
        _ = scrubjay.mem0


def test_the_version_is_that_of_the_package() -> None:
    assert scrubjay.__version__ == version("scrubjay")
