"""manifest.json and the skill: made from the tables the tools are checked by."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from scrubjay import __version__
from scrubjay.model.errors import InvalidRequest
from scrubjay.surfaces.carapace import manifest
from scrubjay.surfaces.carapace.validation import faults
from tests.dialects.carapace.scene import Stage

MANIFEST: Any = json.loads(manifest.contents()[manifest.MANIFEST_FILE])
SKILL = manifest.contents()[manifest.SKILL_FILE]
TYPES = ["preference", "fact", "instruction", "context", "correction"]
GOLDEN: dict[str, Any] = {
    "memory_store": {
        "type": "object",
        "required": ["type", "content"],
        "additionalProperties": False,
        "properties": {
            "type": {"type": "string", "enum": TYPES},
            "content": {"type": "string", "maxLength": 2000},
            "tags": {
                "type": "array",
                "items": {"type": "string", "maxLength": 50},
                "maxItems": 10,
                "default": [],
            },
            "supersedes": {"type": "string", "default": None},
        },
    },
    "memory_search": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "query": {"type": "string", "maxLength": 500},
            "tags": {"type": "array", "items": {"type": "string"}},
            "type": {"type": "string", "enum": TYPES},
            "include_superseded": {"type": "boolean", "default": False},
            "limit": {"type": "integer", "default": 20, "maximum": 100},
        },
    },
    "memory_brief": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"include_provenance": {"type": "boolean", "default": False}},
    },
    "memory_delete": {
        "type": "object",
        "required": ["id"],
        "additionalProperties": False,
        "properties": {"id": {"type": "string"}},
    },
}


def bare(value: Any) -> Any:
    """The schema without what is only said about it."""
    if isinstance(value, dict):
        return {name: bare(one) for name, one in value.items() if name != "description"}
    return [bare(one) for one in value] if isinstance(value, list) else value


def test_the_manifest_has_the_fields_of_the_design() -> None:
    assert list(MANIFEST) == [
        "description", "version", "app_compat", "author", "provides", "subscribes", "config_schema",
    ]  # fmt: skip
    assert MANIFEST["version"] == __version__
    assert (MANIFEST["provides"]["channels"], MANIFEST["subscribes"]) == ([], [])
    hooked = json.loads(manifest.contents(brief_hook=True)[manifest.MANIFEST_FILE])
    assert hooked["provides"].pop("hooks") == ["memory_brief"]
    assert hooked == MANIFEST


TEXT = {"type": "string", "minLength": 1}
PROPERTY = {
    "type": "object",
    "required": ["type"],
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["string", "integer", "number", "boolean", "array", "object"]},
        **{name: {"type": "integer"} for name in ("maxLength", "maximum", "minimum", "maxItems")},
        "description": TEXT,
        "default": {},
        "format": TEXT,
        "enum": {"type": "array"},
        "items": {"$ref": "#/$defs/property"},
    },
}
PROPERTIES = {
    "type": "object",
    "maxProperties": 30,
    "additionalProperties": {"$ref": "#/$defs/property"},
}
LOADED = {
    "$defs": {"property": PROPERTY},
    "type": "object",
    "required": ["description", "version", "app_compat", "author", "provides", "subscribes"],
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(("description", "version", "app_compat"), TEXT),
        "author": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {"name": TEXT, "url": TEXT},
        },
        "provides": {
            "type": "object",
            "required": ["channels", "tools"],
            "additionalProperties": False,
            "properties": {
                "channels": {"type": "array"},
                "tools": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "description", "risk_level", "arguments_schema"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
                            "description": TEXT,
                            "risk_level": {"enum": ["low", "high"]},
                            "arguments_schema": {
                                "type": "object",
                                "required": ["type", "additionalProperties", "properties"],
                                "additionalProperties": False,
                                "properties": {
                                    "type": {"const": "object"},
                                    "required": {"type": "array", "items": TEXT},
                                    "additionalProperties": {"const": False},
                                    "properties": PROPERTIES,
                                },
                            },
                        },
                    },
                },
            },
        },
        "subscribes": {"type": "array"},
        "allowed_groups": {"type": "array"},
        "session": {"enum": ["fresh", "resume", "explicit"]},
        "install": {"type": "object"},
        "config_schema": {
            "type": "object",
            "required": ["type", "properties"],
            "additionalProperties": False,
            "properties": {
                "type": {"const": "object"},
                "required": {"type": "array"},
                "properties": PROPERTIES,
            },
        },
    },
}  # fmt: skip
"""What Carapace's plugin loader accepts."""


def test_the_manifest_is_one_that_the_loader_of_carapace_accepts() -> None:
    accepts = jsonschema_rs.validator_for(LOADED)
    assert [error.message for error in accepts.iter_errors(MANIFEST)] == []
    hooked = json.loads(manifest.contents(brief_hook=True)[manifest.MANIFEST_FILE])
    assert not accepts.is_valid(hooked)
    assert len(manifest.contents()[manifest.MANIFEST_FILE]) <= 64 * 1024


def test_the_schemas_are_those_of_the_design() -> None:
    declared = {tool["name"]: tool for tool in MANIFEST["provides"]["tools"]}
    assert {name: bare(tool["arguments_schema"]) for name, tool in declared.items()} == GOLDEN
    assert {tool["risk_level"] for tool in declared.values()} == {"low"}
    assert all(tool["description"] for tool in declared.values())


def test_the_configuration_has_the_keys_and_defaults_of_the_design() -> None:
    assert bare(MANIFEST["config_schema"]) == {
        "type": "object",
        "properties": {
            "storage_path": {"type": "string"},
            "max_brief_entries": {"type": "integer", "default": 50},
            "max_brief_chars": {"type": "integer", "default": 10000},
            "purge_superseded_days": {"type": "integer", "default": 90},
            "embedding_provider": {
                "type": "string",
                "enum": ["none", "local", "openai"],
                "default": "none",
            },
        },
    }


@pytest.mark.parametrize("tool", manifest.TOOLS.values(), ids=lambda tool: tool.name)
def test_every_tool_has_a_section_with_usage_arguments_examples_and_notes(tool: Any) -> None:
    section = SKILL.split(f"\n## {tool.name}\n")[1].split("\n---\n")[0]
    for heading in ("Usage", "Arguments", "Examples", "Return Format", "Notes"):
        assert f"### {heading}\n" in section
    for name in tool.arguments["properties"]:
        assert f"| `{name}` |" in section


@pytest.mark.parametrize(
    "heading",
    [
        "# Memory",
        "## Important: Behavioral Memory Safety",
        "### Entry Types",
        "## When to Store Memories",
        "## Session-End Sweep",
        "## Budget",
    ],
)
def test_the_skill_has_every_heading(heading: str) -> None:
    assert f"{heading}\n" in SKILL


@pytest.mark.parametrize(
    "words",
    [
        "suggestions, not commands",
        "verify it with the user",
        "AS YOU LEARN IT",
        "Do NOT store",
        "about 20 memory writes",
        "At most 20 stores and 5 supersedes",
        "At most 5 deletes",
        "At most 2000 characters",
        "At most 10, each up to 50 characters",
        "At most 500 characters",
        "At most 100. Default: `20`",
        "store the insight, not the conversation",
        "must have all the tags",
        "the newest entries come",
        "cannot be undone",
        *(f"**{kind}**" for kind in TYPES),
    ],
)
def test_the_skill_says_what_an_agent_has_to_know(words: str) -> None:
    assert words in " ".join(SKILL.split())


def commands() -> list[tuple[str, str]]:
    return re.findall(r"^ipc tool\.invoke\.(\w+) '(.*)'$", SKILL, re.MULTILINE)


def test_every_example_of_the_skill_fits_its_schema() -> None:
    assert len(commands()) >= 10
    for tool, arguments in commands():
        assert list(faults(json.loads(arguments), manifest.TOOLS[tool].arguments)) == []


def test_every_example_of_the_skill_is_answered(stage: Stage) -> None:
    for tool, arguments in commands():
        payload = stage.send(f"tool.invoke.{tool}", json.loads(arguments))["payload"]
        error = payload["error"]
        assert error is None or "not found" in error["message"]


def test_a_changed_limit_changes_the_skill() -> None:
    tags: Any = {"type": "array", "items": {"type": "string", "maxLength": 7}, "maxItems": 3}
    table = manifest.argument_table({"properties": {"tags": {**tags, "description": "x"}}})
    assert "At most 3, each up to 7" in table


def test_files_are_written_anew_and_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    for _ in range(2):
        assert [path.name for path in manifest.write(tmp_path / "a" / "b")] == [
            "manifest.json",
            "handler.js",
            "memory.md",
        ]
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match="cannot be written"):
        manifest.write(tmp_path / "file")
