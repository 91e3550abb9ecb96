"""Secrets in what tools print are found; what tools and people write without one stays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from scrubjay.guard.secrets import redact
from scrubjay.model.clean import clean
from tests.unit.guard.fifth_outputs import FIFTH_OUTPUTS
from tests.unit.guard.fourth_outputs import FOURTH_OUTPUTS
from tests.unit.guard.ordinary import ordinary
from tests.unit.guard.outputs import OUTPUTS, outputs
from tests.unit.guard.second_outputs import SECOND_OUTPUTS
from tests.unit.guard.third_outputs import THIRD_OUTPUTS


def test_the_outputs_are_as_many_and_as_different_as_promised() -> None:
    made = outputs()
    assert len({output.text for output in made}) >= 200
    assert len({output.tool for output in made}) >= 12


@pytest.mark.parametrize("templates", [OUTPUTS, SECOND_OUTPUTS], ids=["first", "second"])
def test_nineteen_of_twenty_secrets_in_what_tools_print_are_found(
    templates: dict[str, tuple[str, ...]], record_property: Callable[[str, object], None]
) -> None:
    missed, count = [], 0
    for output in outputs(templates):
        left = re.sub(r"\s+", "", redact(clean(output.text)).text)
        count += len(output.secrets)
        bare = (re.sub(r"\s+", "", secret) for secret in output.secrets)
        missed += [(output.tool, secret) for secret in bare if secret in left]
    record_property("recall", f"{1 - len(missed) / count:.4f} of {count}")
    assert len(missed) <= 0.05 * count, Counter(tool for tool, _ in missed)


@pytest.mark.parametrize(
    ("templates", "share"),
    [(THIRD_OUTPUTS, 0.85), (FOURTH_OUTPUTS, 0.89), (FIFTH_OUTPUTS, 0.95)],
    ids=["third", "fourth", "fifth"],
)
def test_of_tools_that_no_rule_was_made_for_most_secrets_are_found(
    templates: dict[str, tuple[str, ...]],
    share: float,
    record_property: Callable[[str, object], None],
) -> None:
    """Each set was committed before rules ran on it; what each showed is in the threat model."""
    found = count = 0
    for output in outputs(templates):
        left = re.sub(r"\s+", "", redact(clean(output.text)).text)
        count += len(output.secrets)
        found += sum(re.sub(r"\s+", "", secret) not in left for secret in output.secrets)
    record_property("recall", f"{found / count:.4f} of {count}")
    assert found >= share * count


def test_at_most_one_in_a_thousand_ordinary_messages_is_touched(
    record_property: Callable[[str, object], None],
) -> None:
    messages = set(ordinary())
    assert len(messages) >= 1_000
    touched = [text for text in messages if redact(clean(text)).found]
    record_property("touched", f"{len(touched)} of {len(messages)}")
    assert len(touched) <= len(messages) / 1_000, touched
