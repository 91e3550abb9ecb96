"""Every distiller keeps the contract of the port."""

from __future__ import annotations

import pytest

from scrubjay.adapters import distillers
from scrubjay.adapters.distillers.rules import RulesDistiller
from scrubjay.bootstrap import LazyRules
from scrubjay.ports import Distiller
from scrubjay.testing.distiller_contract import DistillerContract
from tests.support.registry import implementations


class TestRulesDistiller(DistillerContract):
    @pytest.fixture
    def distiller(self) -> Distiller:
        return RulesDistiller()


class TestLazyRules(DistillerContract):
    @pytest.fixture
    def distiller(self) -> Distiller:
        return LazyRules()


def test_no_distiller_is_left_without_its_contract() -> None:
    assert implementations(distillers, Distiller) == {RulesDistiller}
