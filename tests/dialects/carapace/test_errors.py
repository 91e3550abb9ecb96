"""Errors of the engine in Carapace's terms: whose fault it is, and whether to try again."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from scrubjay import bootstrap, settings
from scrubjay.model import errors
from scrubjay.model.errors import ScrubjayError
from scrubjay.settings import OpenAISettings
from scrubjay.surfaces.carapace.call_audit import AuditRecorder, CallOutcome, CallRecord
from scrubjay.surfaces.carapace.memory import Config, Provider, ScrubjayMemory
from scrubjay.surfaces.carapace.wire import ToolError
from tests.support.embedding_server import serve_embeddings

FACT: Any = {"type": "fact", "content": "kept"}


@pytest.mark.parametrize(
    ("kind", "code", "retriable"),
    [
        (errors.Busy, "PLUGIN_UNAVAILABLE", True),
        (errors.Full, "PLUGIN_UNAVAILABLE", True),
        (errors.StoreError, "PLUGIN_ERROR", False),
        (errors.Damaged, "PLUGIN_ERROR", False),
        (errors.SchemaTooNew, "PLUGIN_ERROR", False),
        (errors.SealBroken, "PLUGIN_ERROR", False),
        (errors.KeyMissing, "PLUGIN_ERROR", False),
        (errors.Locked, "PLUGIN_ERROR", False),
        (errors.EmbedderError, "PLUGIN_ERROR", False),
        (errors.InvalidRequest, "HANDLER_ERROR", False),
        (errors.Frozen, "HANDLER_ERROR", False),
        (errors.Destroyed, "HANDLER_ERROR", False),
        (errors.Conflict, "HANDLER_ERROR", False),
    ],
)
def test_every_error_has_a_code_and_says_what_to_do(
    kind: type[ScrubjayError], code: str, *, retriable: bool
) -> None:
    told = ToolError.of(kind("It failed.", hint="Do this.")).payload()
    assert told == {"code": code, "message": "It failed. Do this.", "retriable": retriable}


def _stored(memory: ScrubjayMemory) -> Any:
    return memory.invoke("memory_store", FACT, session="s", group="main")


def test_a_file_of_a_newer_version_is_refused_at_start_up_and_left_alone(tmp_path: Path) -> None:
    memory = ScrubjayMemory(bootstrap.build(settings.at_home(tmp_path)))
    _stored(memory)
    memory.shutdown()
    (path,) = (tmp_path / "data" / "scopes").glob("*.sqlite")
    file = apsw.Connection(str(path))
    file.execute("PRAGMA user_version = 9999")
    file.close()
    before = path.read_bytes()
    later = ScrubjayMemory(bootstrap.build(settings.at_home(tmp_path)))
    with pytest.raises(errors.SchemaTooNew):
        later.initialize("main")
    assert _stored(later)["error"]["code"] == "PLUGIN_ERROR"
    later.shutdown()
    assert path.read_bytes() == before


class FullDisk:
    """An engine that has no space left to note anything."""

    def note(self, *_: object, **__: object) -> None:
        raise errors.Full("No space is left.")


def test_a_full_disk_costs_the_record_and_not_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    record = CallRecord(group="main", session="s", tool="memory_search", outcome=CallOutcome.ROUTED)
    AuditRecorder(FullDisk())(record)  # type: ignore[arg-type]
    (line,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert (line.message, vars(line)["code"]) == ("carapace.not_recorded", "store_full")


def test_an_endpoint_gives_entries_their_vectors(tmp_path: Path) -> None:
    with serve_embeddings() as server:
        endpoint = OpenAISettings(url=server.base_url, model="m", dimensions=server.dimensions)
        found = replace(settings.at_home(tmp_path), openai=endpoint)
        memory = ScrubjayMemory.open(Config(embedding_provider=Provider.OPENAI), found)
        assert _stored(memory)["ok"] is True
        arguments: Any = {"query": "kept"}
        reply: Any = memory.invoke("memory_search", arguments, session="s", group="main")
        memory.shutdown()
    assert [one["content"] for one in reply["result"]["results"]] == ["kept"]
