"""Errors: one tree, at the package root, each with a code, a sentence and a hint."""

from __future__ import annotations

import inspect
import pickle
import re
import traceback
from pathlib import Path

import pytest

import scrubjay
from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError

Branch = dict[str, "Branch"]

TREE: Branch = {
    "ScrubjayError": {
        "InvalidRequest": {"WrongKey": {}},
        "NotFound": {},
        "Forbidden": {},
        "LimitReached": {},
        "Frozen": {"Restricted": {}},
        "NeedsConfirmation": {},
        "Conflict": {"Stale": {}},
        "Destroyed": {},
        "StoreError": {
            "Busy": {},
            "Full": {},
            "Damaged": {},
            "KeyUnavailable": {},
            "OutcomeUnknown": {},
            "SchemaTooNew": {},
        },
        "EmbedderError": {"Timeout": {}, "Changed": {}},
        "ExtractorError": {},
        "SealBroken": {},
        "KeyMissing": {},
        "Locked": {"UserLocked": {}},
    }
}
CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, ScrubjayError)
]


def branch(kind: type[ScrubjayError]) -> Branch:
    """A class and what is below it, by name; errors of a surface's own are not of the tree."""
    below = [one for one in kind.__subclasses__() if one.__module__ == errors.__name__]
    return {one.__name__: branch(one) for one in below}


def drawn(text: str) -> Branch:
    """The tree that the lines of a docstring draw."""
    root: Branch = {}
    path: list[Branch] = [root]
    for line in text.splitlines():
        if found := re.match(r"([│ ]*)(├── |└── )?(\w+)(\s{2,}.*)?$", line):
            indent, twig, name, _ = found.groups()
            depth = len(indent) // 4 + 1 if twig else 0
            path[depth + 1 :] = [path[depth].setdefault(name, {})]
    return root


def test_the_tree_is_the_one_people_were_promised() -> None:
    assert {"ScrubjayError": branch(ScrubjayError)} == TREE


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    lines = inspect.getdoc(errors) or ""
    picture = lines.split("\n\n")[1]
    assert drawn(picture) == TREE


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_is_at_the_package_root(kind: type[ScrubjayError]) -> None:
    assert getattr(scrubjay, kind.__name__) is kind
    assert kind.__name__ in scrubjay.__all__


def test_every_code_is_given_once() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes) == 27
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_says_what_happened_and_what_to_do(kind: type[ScrubjayError]) -> None:
    error = kind("The cat sat on it.")
    assert str(error) == error.message == "The cat sat on it."
    assert error.hint == kind.default_hint
    assert error.hint.endswith(".")
    assert kind("x", hint="Move the cat.").hint == "Move the cat."


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_pickling(kind: type[ScrubjayError]) -> None:
    error = pickle.loads(pickle.dumps(kind("The cat sat on it.", hint="Move the cat.")))
    assert type(error) is kind
    assert (error.message, error.hint, error.code) == (
        "The cat sat on it.",
        "Move the cat.",
        kind.code,
    )


@pytest.mark.parametrize("kind", CLASSES)
def test_a_traceback_shows_the_hint_once(kind: type[ScrubjayError]) -> None:
    for error in (kind("The cat sat on it.", hint="Move the cat."), kind("The cat sat on it.")):
        for one in (error, pickle.loads(pickle.dumps(error))):
            assert "".join(traceback.format_exception(one)).count(error.hint) == 1


def test_a_wrong_field_is_one_error_that_names_the_nearest(tmp_path: Path) -> None:
    with scrubjay.open("alice", home=tmp_path) as jay:
        wrong: dict[str, str] = {"tag": "tea"}
        with pytest.raises(scrubjay.InvalidRequest) as refused:
            jay.retain("Alice prefers green tea", **wrong)  # type: ignore[arg-type]
    assert str(refused.value) == "There is no field tag; did you mean tags?"
    assert "TypeError" not in "".join(traceback.format_exception(refused.value))


def test_a_timeout_is_ours_and_not_the_systems() -> None:
    """Who catches TimeoutError or OSError is not surprised by ours."""
    assert not issubclass(errors.Timeout, OSError)
    assert all(issubclass(kind, Exception) for kind in CLASSES)
