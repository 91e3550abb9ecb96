"""The records of processing say what the live configuration is (G20)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import CommandLine


def report(cli: CommandLine) -> Any:
    """The report of the default scope."""
    return json.loads(cli.good("privacy", "report", "--json").out)


def test_g20_the_recipients_are_those_that_are_configured(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one["who"] for one in report(cli)["recipients"]] == ["hosting"]
    monkeypatch.setenv("SCRUBJAY_EXTRACTION_URL", "https://model.example.com/v1")
    monkeypatch.setenv("SCRUBJAY_EXTRACTION_MODEL", "m")
    told = {one["who"]: one["where"] for one in report(cli)["recipients"]}
    assert told["model"] == "model.example.com"


def test_g20_the_purposes_are_those_of_the_scope(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def states() -> dict[str, bool]:
        return {one["purpose"]: one["on"] for one in report(cli)["purposes"]}

    assert all(states().values())
    cli.good("personal", "purpose", "patterns", "--off")
    assert states() == {"facts": True, "patterns": False, "model": True, "embedding": True}
    monkeypatch.setenv("SCRUBJAY_CONSENT", "true")
    assert states() == {"facts": True, "patterns": False, "model": False, "embedding": False}
