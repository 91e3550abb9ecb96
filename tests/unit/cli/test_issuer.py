"""serve --oidc-…: whose tokens are good, as the operator says it."""

from __future__ import annotations

from typing import Any

import pytest

from scrubjay.access import Grant
from scrubjay.cli.serve import trusted
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.origin import Actor
from scrubjay.service.issuer import Trust

NOTHING: dict[str, Any] = {
    "issuer": None, "audience": None, "scope": None, "grants": None,
    "actor": Actor.USER, "resource": None,
}  # fmt: skip
GOOD = NOTHING | {
    "issuer": "https://issuer.example.com", "audience": "memory", "scope": "acme/{sub}",
}  # fmt: skip


def named(**options: Any) -> Trust:
    found = trusted(**GOOD | options)
    assert found is not None
    return found


def test_without_options_nobodys_tokens_are_good() -> None:
    assert trusted(**NOTHING) is None


def test_an_owner_may_do_everything_with_their_memory_but_administer_it() -> None:
    assert set(named().grants) == set(Grant) - {Grant.ADMIN, Grant.EXTRACT}


@pytest.mark.parametrize("grants", ["read,write", "write, read,", "read,write,read"])
def test_grants_are_listed_with_commas(grants: str) -> None:
    assert named(grants=grants).grants == (Grant.READ, Grant.WRITE)


@pytest.mark.parametrize("grants", ["", ",", "read,fly"])
def test_a_list_without_a_grant_is_refused(grants: str) -> None:
    with pytest.raises(InvalidRequest):
        named(grants=grants)


@pytest.mark.parametrize("missing", ["issuer", "audience", "scope"])
def test_an_issuer_an_audience_and_a_scope_belong_together(missing: str) -> None:
    with pytest.raises(InvalidRequest):
        trusted(**GOOD | {missing: None})
