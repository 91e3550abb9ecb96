"""A memory plugin of somebody else: a list per group, and nothing of scrubjay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BEHAVIORAL = {"preference", "instruction", "correction"}
_BREAKS = str.maketrans(dict.fromkeys("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", " "))
_NAMES = ("memory_store", "memory_search", "memory_brief", "memory_delete")


class Notebook:
    """Keeps everything in lists and finds by counting words."""

    name = "notebook"

    def __init__(self) -> None:
        self._pages: dict[str, list[dict[str, Any]]] = {}
        self._count = 0

    def manifest(self) -> Mapping[str, Any]:
        tools = [
            {"name": name, "risk_level": "low", "arguments_schema": {"type": "object"}}
            for name in _NAMES
        ]
        # The host forces additionalProperties to false, so every argument is declared.
        words = ("type", "content", "tags", "supersedes", "query", "include_superseded", "limit")
        for tool in tools:
            tool["arguments_schema"] = {
                "type": "object",
                "properties": {word: {} for word in (*words, "id", "include_provenance")},
            }
        return {"provides": {"hooks": ["memory_brief"], "tools": tools}}

    def initialize(self, group: str) -> None:
        self._pages.setdefault(group, [])

    def invoke(self, tool: str, arguments: Any, *, session: str, group: str) -> Any:
        if tool not in _NAMES:
            error = {"code": "HANDLER_ERROR", "message": "No such tool.", "retriable": False}
            return {"ok": False, "error": error}
        self.initialize(group)
        return getattr(self, f"_{tool.removeprefix('memory_')}")(arguments, session, group)

    # Each is called with all three, whether it needs them or not.
    # ruff: noqa: ARG002

    def _store(self, given: Any, session: str, group: str) -> Any:
        self._count += 1
        entry = {
            "id": f"note-{self._count}",
            "type": given["type"],
            "content": given["content"],
            "behavioral": given["type"] in _BEHAVIORAL,
            "tags": given.get("tags", []),
            "supersedes": given.get("supersedes"),
            "superseded_by": None,
            "session_id": session,
            "group": group,
            "created_at": "2026-01-01T00:00:00.000Z",
        }
        for old in self._pages[group]:
            if old["id"] == entry["supersedes"]:
                old["superseded_by"] = entry["id"]
        self._pages[group].append(entry)
        return {"ok": True, "result": dict(entry)}

    def _search(self, given: Any, session: str, group: str) -> Any:
        words = set(given.get("query", "").lower().split())
        results = []
        for entry in reversed(self._pages[group]):
            hidden = entry["superseded_by"] and not given.get("include_superseded")
            if hidden or not set(given.get("tags", [])) <= set(entry["tags"]):
                continue
            held = words & set(entry["content"].lower().replace(",", "").split())
            if held or not words:
                fields = ("id", "type", "content", "behavioral", "tags", "created_at")
                score = len(held) / len(words) if words else 0
                results.append({**{one: entry[one] for one in fields}, "relevance_score": score})
        results.sort(key=lambda one: -one["relevance_score"])
        return {"ok": True, "result": {"results": results[: given.get("limit", 20)]}}

    def _delete(self, given: Any, session: str, group: str) -> Any:
        page = self._pages[group]
        kept = [entry for entry in page if entry["id"] != given["id"]]
        if len(kept) == len(page):
            error = {"code": "HANDLER_ERROR", "message": "Not found.", "retriable": False}
            return {"ok": False, "error": error}
        self._pages[group] = kept
        return {"ok": True, "result": {"deleted": True, "id": given["id"]}}

    def _brief(self, given: Any, session: str, group: str) -> Any:
        return {"ok": True, "result": self.get_brief(group)}

    def get_brief(self, group: str) -> Any:
        page = [entry for entry in self._pages.get(group, []) if not entry["superseded_by"]]
        newest = page[::-1]
        entries = [
            {
                **{name: entry[name] for name in ("id", "type", "behavioral", "tags")},
                "content": entry["content"].translate(_BREAKS),
                "age_days": 0,
            }
            for entry in sorted(newest, key=lambda entry: not entry["behavioral"])
        ]
        return {
            "entries": entries,
            "generated_at": "2026-01-01T00:00:00.000Z",
            "entry_count": len(self._pages.get(group, [])),
            "brief_count": len(entries),
        }

    def shutdown(self) -> None: ...
