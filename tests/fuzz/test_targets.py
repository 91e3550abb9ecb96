"""The fuzzing targets in every test run: what they begin with, what was found, and some chance."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, seeds

FOUND = {
    "codec": [
        # Not UTF-8 within a string, which is no DecodeError of msgspec's.
        "DXsicXW9vb29ZXJ5IjogImdyZWVuIHRlYSJ9",
    ],
}
"""Inputs that broke a target once, in base64."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_what_it_begins_with_and_what_broke_it_once(name: str) -> None:
    for raw in (*seeds(name), *map(base64.b64decode, FOUND.get(name, ()))):
        TARGETS[name](raw)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_any_bytes(name: str) -> None:
    begun = seeds(name)

    @given(st.sampled_from(begun), st.binary(max_size=60), st.integers(0), st.integers(0, 40))
    def spoiled(seed: bytes, wrong: bytes, at: int, gone: int) -> None:
        at %= len(seed)
        TARGETS[name](seed[:at] + wrong + seed[at + gone :])

    spoiled()
