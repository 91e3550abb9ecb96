"""Files of the plugin: its manifest, its skill text, and `handler.js` for Carapace's core.

`manifest.json` beside this module is the one declaration of tools, arguments and configuration;
`skill.md` is the text an agent reads, a template whose tables of arguments are made from it. The
text cannot promise something the tools do not do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any, Final

import msgspec
from msgspec import Struct

from scrubjay import __version__
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Kind

Schema = Mapping[str, Any]

PROVENANCE: Final = frozenset({"id", "behavioral", "session_id", "group", "created_at"})
"""Fields the host fills in: an agent that supplies one is refused, even with the right value."""
BRIEF_HOOK: Final = "memory_brief"
TOPIC: Final = "tool.invoke."
STORES, SUPERSEDES, DELETES = 20, 5, 5
"""Limits per session."""
PAYLOAD_BYTES: Final = 1024 * 1024
"""The longest message either way."""


class Tool(Struct, frozen=True, rename={"arguments": "arguments_schema", "risk": "risk_level"}):
    """One tool as a manifest declares it."""

    name: str
    arguments: dict[str, Any]
    description: str = ""
    risk: Any = "high"
    """Whatever is not plainly low needs consent."""


def manifest() -> dict[str, Any]:
    """The plugin's manifest.json, with the version of this package."""
    return {**_MANIFEST, "version": __version__}


_MANIFEST: Final[dict[str, Any]] = json.loads(
    Path(__file__).with_name("manifest.json").read_text("utf-8")
)
CONFIG: Final[Schema] = _MANIFEST["config_schema"]
TOOLS: Final = {
    tool.name: tool for tool in msgspec.convert(_MANIFEST["provides"]["tools"], list[Tool])
}
_SEARCH: Final = TOOLS["memory_search"].arguments["properties"]
TYPES: Final = tuple(map(Kind, _SEARCH["type"]["enum"]))
"""The types an agent may store, in the order Carapace lists them."""
SEARCH_LIMIT: Final[int] = _SEARCH["limit"]["maximum"]
SEARCH_DEFAULT: Final[int] = _SEARCH["limit"]["default"]

# -- files ----------------------------------------------------------------------------------------

MANIFEST_FILE: Final = "manifest.json"
HANDLER_FILE: Final = "handler.js"
SKILL_FILE: Final = "skills/memory.md"


def contents(*, brief_hook: bool = False) -> dict[str, str]:
    """Every file by its name below the plugin's folder.

    Carapace's loader knows no hooks yet and refuses a manifest that declares one; `brief_hook` is
    for a core that does.
    """
    template = Template(Path(__file__).with_name("skill.md").read_text("utf-8"))
    skill = template.substitute(
        {name: argument_table(tool.arguments) for name, tool in TOOLS.items()},
        behavioral=", ".join(kind.value for kind in TYPES if kind.behavioral),
        facts=", ".join(kind.value for kind in TYPES if not kind.behavioral),
        stores=STORES,
        supersedes=SUPERSEDES,
        deletes=DELETES,
    )
    told = manifest()
    if not brief_hook:
        told["provides"] = {**_MANIFEST["provides"]}
        del told["provides"]["hooks"]
    return {
        MANIFEST_FILE: json.dumps(told, indent=2, ensure_ascii=False) + "\n",
        HANDLER_FILE: Path(__file__).with_name(HANDLER_FILE).read_text("utf-8"),
        SKILL_FILE: skill,
    }


def argument_table(arguments: Schema) -> str:
    """The arguments of a tool as a Markdown table, with every rule its schema has."""
    rows = ["| Argument | Type | Required | Description |", "|---|---|---|---|"]
    for name, schema in arguments["properties"].items():
        is_list = schema["type"] == "array"
        kind = f"{schema['items']['type']}[]" if is_list else schema["type"]
        needed = "Yes" if name in arguments.get("required", ()) else "No"
        rows.append(f"| `{name}` | {kind} | {needed} | {'. '.join(_rules(schema))}. |")
    return "\n".join(rows) + "\n"


def _rules(schema: Schema) -> Iterator[str]:
    yield schema["description"]
    if "enum" in schema:
        yield "One of " + ", ".join(f"`{choice}`" for choice in schema["enum"])
    if "maxLength" in schema:
        yield f"At most {schema['maxLength']} characters"
    if "maxItems" in schema:
        longest = schema["items"]["maxLength"]
        yield f"At most {schema['maxItems']}, each up to {longest} characters"
    if "maximum" in schema:
        yield f"At most {schema['maximum']}"
    if schema.get("default") is not None:
        yield f"Default: `{json.dumps(schema['default'])}`"


def write(folder: Path, *, brief_hook: bool = False) -> list[Path]:
    """Write them; files of these names are replaced."""
    written = []
    for name, text in contents(brief_hook=brief_hook).items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be written: {error.strerror}.") from error
        written.append(path)
    return written
