"""The operations on the command line, with the fields they have over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import CommandLine, cli

__all__ = ["cli"]
TEA = ("personal", "store", "Alice drinks tea", "-c", "preference", "--type", "preference")


def test_the_five_operations_answer_with_the_fields_of_the_seed(
    cli: CommandLine, tmp_path: Path
) -> None:
    made = cli.good(*TEA, "--json").json
    assert {"memory_id", "embedding_generated", "content_hash", "created_at"} <= made.keys()
    found = cli.good("personal", "retrieve", "tea", "--json").json
    assert {"memories", "total_searched", "query_time_ms"} <= found.keys()
    output = tmp_path / "alice.json"
    told = cli.good("personal", "export", "-o", output, "--json").json
    assert (told["record_count"], told["total_size_bytes"]) == (1, output.stat().st_size)
    gone = cli.good("personal", "forget", made["memory_id"], "--json").json
    assert {"deleted_count", "memory_ids", "audit_id"} <= gone.keys()
    gone = cli.good("personal", "destroy", "--yes", "--json").json
    wanted = {"destroyed", "records_deleted", "vectors_deleted", "blobs_deleted", "audit_id"}
    assert wanted <= gone.keys()


def test_a_range_of_time_holds_on_the_command_line(cli: CommandLine) -> None:
    cli.good(*TEA)
    for words, many in ((("--after", "2020-01-01"), 1), (("--before", "2020-01-01"), 0)):
        found = cli.good("personal", "retrieve", "tea", *words, "--json").json
        assert len(found["memories"]) == many


def test_an_export_without_metadata_has_the_fields_of_the_seed_alone(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.good(*TEA)
    output = tmp_path / "alice.json"
    cli.good("personal", "export", "-o", output, "--no-metadata")
    (record,) = json.loads(output.read_text())["categories"]["preference"]["records"]
    assert record["content"] == "Alice drinks tea"
    assert "more" not in record


def test_what_is_listed_stands_a_line_each(cli: CommandLine) -> None:
    cli.good(*TEA)
    for _ in range(2):
        cli.good("personal", "request", "access")
    cli.good("personal", "request", "erasure")
    lines = cli.good("personal", "requests").out.splitlines()
    assert [line.split()[1:3] for line in lines] == [["right", "access,"], ["right", "erasure,"]]
    assert all(line.startswith("req-") and "due_at" in line for line in lines)
    (line,) = cli.good("personal", "memories").out.splitlines()
    assert line.endswith("  Alice drinks tea")
    assert len(cli.good("personal", "purposes").out.splitlines()) == 4
