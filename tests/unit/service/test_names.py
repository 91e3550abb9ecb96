"""Names: what an issuer calls somebody is a name of ours, and nobody else's."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrubjay.model.errors import Forbidden, InvalidRequest
from scrubjay.model.scope import Scope
from scrubjay.service.issuer import ESCAPED, HASHED, LONGEST, Template, name_of

# Few letters, so that what looks alike is met often; any text, lone surrogates with it.
CLAIMS = st.text("ax-_h.@|7C5F", max_size=80) | st.text(st.characters(), max_size=200)


@pytest.mark.parametrize(
    "claim",
    ["alice", "alice@example.com", "4f9c1a52-7b1e-4d55-9a53-0c7d4d8f0e11", "user_2x", "X-1"],
)
def test_what_is_a_name_already_stays_as_it_is(claim: str) -> None:
    assert name_of(claim) == claim


@pytest.mark.parametrize(
    ("claim", "name"),
    [
        ("auth0|123", "x-auth0_7C123"),
        ("user_2|x", "x-user_5F2_7Cx"),
        ("-alice", "x--alice"),
        ("x-alice", "x-x-alice"),
        ("h-alice", "x-h-alice"),
        ("Zoë", "x-Zo_C3_AB"),
        ("a/b", "x-a_2Fb"),
        ("a\n", "x-a_0A"),
    ],
)
def test_what_is_no_name_is_escaped(claim: str, name: str) -> None:
    assert name_of(claim) == name


def test_what_is_too_long_is_hashed_by_the_documented_rule() -> None:
    claim = "alice@" + "example" * 20
    digest = hashlib.sha256(claim.encode()).digest()
    assert name_of(claim) == HASHED + base64.b32encode(digest).decode().lower().rstrip("=")


@given(CLAIMS.filter(bool))
@example("\ud800")
@example("x-" + "a" * 62)
def test_every_name_is_one_of_a_scope_and_leaves_room(claim: str) -> None:
    name = name_of(claim)
    assert str(Scope(name, name)) == f"{name}/{name}"
    assert len(name) <= LONGEST


@given(st.lists(CLAIMS.filter(bool), unique=True, min_size=2, max_size=40))
@example(["a|", "a_7C", "x-a_7C", "x-a_5F7C"])
@example(["Alice", "alice", "ALICE"])
@example(["\u00e9", "e\u0301", "\ud800", "?"])
def test_no_two_claims_have_the_same_name(claims: list[str]) -> None:
    assert len({name_of(claim) for claim in claims}) == len(claims)


@given(CLAIMS.filter(bool))
def test_no_claim_can_be_chosen_to_have_the_name_of_another(claim: str) -> None:
    """Whoever picks their own user name cannot pick the scope of somebody else's."""
    name = name_of(claim)
    if name != claim:
        assert name.startswith((ESCAPED, HASHED))
        assert name_of(name) != name


@given(*[st.tuples(CLAIMS.filter(bool), CLAIMS.filter(bool))] * 2)
@example(("a", "b/c"), ("a/b", "c"))
def test_who_differs_in_a_claim_that_is_named_has_another_scope(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    template = Template("org-{tid}/{sub}.people")
    first, second = (
        template.scope(dict(zip(("tid", "sub"), who, strict=True))) for who in (one, other)
    )
    assert (first == second) == (one == other)


def test_the_name_of_a_claim_may_be_an_address() -> None:
    template = Template("acme/{https://example.com/user}")
    assert template.scope({"https://example.com/user": "alice"}) == Scope("acme", "alice")


@pytest.mark.parametrize(
    "text",
    ["", "acme", "acme/alice", "{sub}", "{sub}/alice", "acme/{sub}{org}", "a/b/{sub}", "acme/{}",
     "acme/{sub", "acme/ {sub}", "/{sub}", "acme/" + "a" * 65 + "{sub}", "{a}{b}/{sub}"],
)  # fmt: skip
def test_a_template_in_which_two_could_share_a_scope_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        Template(text)


def test_no_template_is_for_our_own_tenant() -> None:
    with pytest.raises(Forbidden):
        Template("system/{sub}")


@pytest.mark.parametrize("claim", ["pod", "pod.desk"])
def test_no_claim_names_the_tenant_of_a_pod(claim: str) -> None:
    with pytest.raises(Forbidden):
        Template("{org}/{sub}").scope({"org": claim, "sub": "alice"})
    assert Template("pod.{org}/{sub}").scope({"org": claim, "sub": "a"}).tenant == f"pod.{claim}"
    assert Template("{org}/{sub}").scope({"org": "podium", "sub": "a"}).tenant == "podium"
