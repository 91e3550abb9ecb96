"""The records of processing say what the live configuration is (G20)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrubjay.cli.personal import _recipients
from scrubjay.settings import EmbedderName, ExtractionSettings, OpenAISettings, at_home
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


def test_g20_everybody_who_is_given_anything_is_in_it_and_no_password() -> None:
    """Databases, objects, keys, embedder, model and recipients of notices."""
    found = replace(
        at_home(Path("home")),
        store="postgresql://jay:hunter2@db.example.com/jay",
        shards="b=postgresql://jay:hunter2@shard.example.com/jay c=postgresql://jay:hunter2@/jay",
        blobs="s3://objects?region=eu-south-1&endpoint=https://s3.example.com",
        root_key="kms://scrubjay?region=eu-central-1",
        recipients="https://crm.example.com/notices",
        embedder=EmbedderName.OPENAI,
        openai=OpenAISettings(url="https://vectors.example.com/v1"),
        extraction=ExtractionSettings(url="https://model.example.com/v1"),
    )
    told = [(one["who"], one["where"]) for one in _recipients(found)]
    assert told == [
        ("hosting", "db.example.com"),
        ("hosting", "shard.example.com"),
        ("hosting", "postgresql"),
        ("hosting", "objects (eu-south-1)"),
        ("key service", "scrubjay (eu-central-1)"),
        ("embedder", "vectors.example.com"),
        ("model", "model.example.com"),
        ("recipient", "crm.example.com"),
    ]
    token = "pkcs11:token=main;object=jay?module-path=/m.so"
    kept = [one for one in _recipients(replace(found, root_key=token)) if "key" in one["who"]]
    assert [one["where"] for one in kept] == ["pkcs11:token=main;object=jay"]
    own = _recipients(replace(found, root_key="derived:file"))
    assert "key service" not in {one["who"] for one in own}


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
