"""Origins: a strict order of trust, and the least of it is inherited."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.model.origin import Origin, lowest


def test_trust_falls_in_the_order_of_the_design() -> None:
    order = ["user", "operator", "agent", "import", "quoted", "other_agent", "tool", "web"]
    assert [origin.value for origin in Origin] == order
    assert all(higher.trust > lower.trust for higher, lower in pairwise(Origin))


@given(st.lists(st.sampled_from(Origin), min_size=1))
def test_the_lowest_is_one_of_them_and_none_is_lower(origins: list[Origin]) -> None:
    least = lowest(origins)
    assert least in origins
    assert all(least.trust <= origin.trust for origin in origins)


def test_nothing_has_no_lowest_origin() -> None:
    with pytest.raises(ValueError, match="empty"):
        lowest([])
