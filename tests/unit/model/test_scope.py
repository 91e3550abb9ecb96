"""Scopes: whose memory it is, and how that is written."""

from __future__ import annotations

import pytest

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.scope import Scope

GOOD = ["a", "9", "alice", "Alice.B_c@example-1", "a" * 128]
BAD = ["", " ", "-a", ".a", "_a", "@a", "a b", "a\n", "ä", "a/", "/a", "a\x00", "a" * 129]


@pytest.mark.parametrize("name", GOOD)
def test_a_bare_name_belongs_to_the_local_tenant(name: str) -> None:
    assert Scope.parse(name) == Scope("local", name)


@pytest.mark.parametrize("name", GOOD)
def test_a_scope_reads_back_as_it_is_written(name: str) -> None:
    assert Scope.parse(str(Scope("acme", name))) == Scope("acme", name)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_owner_is_refused_in_either_form(name: str) -> None:
    for text in (name, f"acme/{name}"):
        with pytest.raises(InvalidRequest):
            Scope.parse(text)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_tenant_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="tenant"):
        Scope(name, "alice")


@pytest.mark.parametrize("text", ["a/b/c", "a//b", None, 7, b"alice", ("a", "b")])
def test_what_is_no_scope_at_all_is_refused(text: object) -> None:
    with pytest.raises(InvalidRequest):
        Scope.parse(text)  # type: ignore[arg-type]


def test_names_that_differ_in_case_are_different_scopes() -> None:
    assert Scope.parse("Alice") != Scope.parse("alice")
