"""What Carapace is told about the plugin: the tools and their arguments, limits, the manifest.

Validation, the manifest, the skill text and the tests all read these tables, so that none of
them can say something else than the code does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from scrubjay import __version__
from scrubjay.model.memory import Json, Kind

Schema = dict[str, Json]

TYPES: Final = (Kind.PREFERENCE, Kind.FACT, Kind.INSTRUCTION, Kind.CONTEXT, Kind.CORRECTION)
"""The types an agent may store, in the order Carapace lists them."""
PROVENANCE: Final = frozenset({"id", "behavioral", "session_id", "group", "created_at"})
"""What the host fills in; an agent that supplies one of these is refused, even if it is right."""
BRIEF_HOOK: Final = "memory_brief"
TOPIC: Final = "tool.invoke."

STORES, SUPERSEDES, DELETES = 20, 5, 5
"""How often one session may do each."""
CONTENT_CHARS: Final = 2000
TAG_CHARS: Final = 50
TAGS: Final = 10
QUERY_CHARS: Final = 500
SEARCH_LIMIT: Final = 100
SEARCH_DEFAULT: Final = 20
PAYLOAD_BYTES: Final = 1024 * 1024
"""The longest message either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool as the manifest declares it."""

    name: str
    description: str
    arguments: Schema
    risk: Literal["low", "high"] = "low"

    def declared(self) -> Schema:
        """The entry of the manifest."""
        return {
            "name": self.name,
            "description": self.description,
            "risk_level": self.risk,
            "arguments_schema": self.arguments,
        }


def _arguments(properties: dict[str, Json], required: list[Json] | None = None) -> Schema:
    needed: Schema = {"required": required} if required else {}
    return {
        "type": "object",
        **needed,
        "additionalProperties": False,
        "properties": properties,
    }


def _type(description: str) -> Schema:
    return {"type": "string", "enum": [kind.value for kind in TYPES], "description": description}


STORE: Final = Tool(
    name="memory_store",
    description="Remember one thing, as a typed entry",
    arguments=_arguments(
        {
            "type": _type("What kind of thing it is"),
            "content": {
                "type": "string",
                "maxLength": CONTENT_CHARS,
                "description": "What to remember, as a sentence that stands on its own",
            },
            "tags": {
                "type": "array",
                "items": {"type": "string", "maxLength": TAG_CHARS},
                "maxItems": TAGS,
                "default": [],
                "description": "Words to filter by later",
            },
            "supersedes": {
                "type": "string",
                "description": "The id of the entry that this one replaces",
                "default": None,
            },
        },
        ["type", "content"],
    ),
)
SEARCH: Final = Tool(
    name="memory_search",
    description="Find entries by words, tags or type",
    arguments=_arguments(
        {
            "query": {
                "type": "string",
                "maxLength": QUERY_CHARS,
                "description": "Words to look for; without any, the newest entries come",
            },
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only entries that have all of these tags",
            },
            "type": _type("Only entries of this type"),
            "include_superseded": {
                "type": "boolean",
                "default": False,
                "description": "Show entries that were replaced as well",
            },
            "limit": {
                "type": "integer",
                "default": SEARCH_DEFAULT,
                "maximum": SEARCH_LIMIT,
                "description": "How many at most",
            },
        }
    ),
)
BRIEF: Final = Tool(
    name="memory_brief",
    description="See again what was loaded at the start, brought up to date",
    arguments=_arguments(
        {
            "include_provenance": {
                "type": "boolean",
                "default": False,
                "description": "Say for each entry which session and group wrote it",
            }
        }
    ),
)
DELETE: Final = Tool(
    name="memory_delete",
    description="Erase one entry for good",
    arguments=_arguments(
        {"id": {"type": "string", "description": "The id of the entry to erase"}}, ["id"]
    ),
)
TOOLS: Final = (STORE, SEARCH, BRIEF, DELETE)
ARGUMENTS: Final = {tool.name: tool.arguments for tool in TOOLS}

CONFIG: Final[Schema] = {
    "type": "object",
    "properties": {
        "storage_path": {
            "type": "string",
            "description": "Folder for the sealed data and the keys (default: scrubjay's own)",
        },
        "max_brief_entries": {
            "type": "integer",
            "default": 50,
            "description": "Most entries of a brief",
        },
        "max_brief_chars": {
            "type": "integer",
            "default": 10000,
            "description": "Most characters of content in a brief",
        },
        "purge_superseded_days": {
            "type": "integer",
            "default": 90,
            "description": "Replaced entries older than this many days go at start-up",
        },
        "embedding_provider": {
            "type": "string",
            "enum": ["none", "local", "openai"],
            "default": "none",
            "description": "What gives entries a meaning to be found by, beside their words",
        },
    },
}


def manifest() -> Schema:
    """The plugin's manifest.json."""
    return {
        "description": "Sealed memory: stored, found and recalled across sessions",
        "version": __version__,
        "app_compat": ">=0.1.0",
        "author": {"name": "The scrubjay authors"},
        "provides": {
            "channels": [],
            "hooks": [BRIEF_HOOK],
            "tools": [tool.declared() for tool in TOOLS],
        },
        "subscribes": [],
        "config_schema": CONFIG,
    }
