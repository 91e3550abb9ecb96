"""The way back: secrets out of every reply, with the places they were in."""

from __future__ import annotations

from typing import Any

import pytest

from scrubjay.conversation.outgoing import sanitize
from scrubjay.surfaces.carapace.call_audit import CallRecord, lines
from scrubjay.surfaces.carapace.host import Host
from scrubjay.testing.clock import FakeClock
from tests.dialects.carapace.oddity import Oddity, answer
from tests.dialects.carapace.scene import Stage

# Made up, and put together here, so that no file holds anything that looks like a key.
MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
SECRETS = {
    "bearer": f"Bearer {MIXED}",
    "github classic": "ghp" + f"_{MIXED[:36]}",
    "github oauth": "gho" + f"_{MIXED[:36]}",
    "github server": "ghs" + f"_{MIXED[:36]}",
    "github fine-grained": "github" + f"_pat_{MIXED[:22]}_{MIXED}{MIXED[:19]}",
    "google": "ya29" + f".{MIXED}",
    "stripe live": "sk" + f"_live_{MIXED[:24]}",
    "stripe test": "sk" + f"_test_{MIXED[:24]}",
    "openai of old": "sk" + f"-{MIXED}{MIXED[:8]}",
    "openai of today": "sk" + f"-proj-{MIXED}-{MIXED}",
    "anthropic": "sk" + f"-ant-api03-{MIXED}{MIXED}-{MIXED[:12]}AA",
    "aws": "AKIA" + "Q3EGRIVY7ZLTB5XD",
    "postgres": "postgres" + "://app:Tr0ub4dor3x@db.example.com:5432/shop",
    "mysql": "mysql" + "://app:Tr0ub4dor3x@db.example.com/shop",
    "mongodb": "mongodb" + "+srv://app:Tr0ub4dor3x@cluster0.example.net/shop",
    "redis": "redis" + "://:Tr0ub4dor3x9Qz@cache.example.com:6379/0",
    "amqp": "amqp" + "://app:Tr0ub4dor3x@mq.example.com/jobs",
    "header": f"x-api-key: {MIXED}",
    "parameter": f"api_key={MIXED}",
    "private key": "-----BEGIN RSA " + f"PRIVATE KEY-----\n{MIXED}\n{MIXED}\n-----END RSA "
    "PRIVATE KEY-----",
}
CORE = dict.fromkeys(SECRETS, MIXED[:16]) | {
    "aws": "Q3EGRIVY7ZLTB5XD",
    **dict.fromkeys(["postgres", "mysql", "mongodb", "redis", "amqp"], "Tr0ub4dor3x"),
}
"""What of each secret must not be seen."""


@pytest.mark.parametrize("name", SECRETS)
def test_every_kind_of_the_list_is_replaced(name: str) -> None:
    told, places = sanitize({"results": [{"content": f"it is {SECRETS[name]} so"}]})
    assert places == ["$.results[0].content"]
    assert CORE[name] not in str(told)
    assert "[REDACTED]" in str(told)


def test_what_is_given_is_left_as_it_is() -> None:
    given: Any = {"a": [SECRETS["aws"], {"b": SECRETS["aws"]}], "n": 1, "none": None, "yes": True}
    told, places = sanitize(given)
    assert given["a"][0] == SECRETS["aws"]
    assert places == ["$.a[0]", "$.a[1].b"]
    assert told == {"a": ["[REDACTED]", {"b": "[REDACTED]"}], "n": 1, "none": None, "yes": True}


def test_ids_and_times_of_entries_are_no_secrets(stage: Stage) -> None:
    entry = stage.call("memory_store", type="fact", content="plain", tags=["a-b", "c_d"])
    assert sanitize(entry) == (entry, [])


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_not_even_stored(stage: Stage, name: str) -> None:
    entry = stage.call("memory_store", type="fact", content=f"note: {SECRETS[name]}")
    assert CORE[name] not in entry["content"]
    assert "[REDACTED]" in entry["content"]


def test_a_reply_that_had_a_secret_is_recorded_as_sanitized() -> None:
    plugin = Oddity()
    plugin.reply = {"ok": True, "result": {"text": SECRETS["aws"]}}
    kept: list[CallRecord] = []
    careful = Host([plugin], FakeClock(), record=kept.append)
    assert answer(careful)["result"] == {"text": "[REDACTED]"}
    assert [record.verb for record in kept] == ["carapace.odd.sanitized"]


def test_a_message_of_an_error_is_scrubbed_too(stage: Stage) -> None:
    error = stage.fail("memory_delete", id=SECRETS["github classic"])
    assert MIXED[:16] not in error["message"]
    assert "not found" in error["message"]


def test_nothing_of_a_secret_is_in_the_trail(stage: Stage) -> None:
    stage.send(f"tool.invoke.{SECRETS['aws']}", {})
    stage.fail("memory_delete", id=SECRETS["aws"])
    assert "AKIA" not in str(list(lines(stage.engine, "main")))
