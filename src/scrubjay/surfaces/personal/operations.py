"""The table of operations: path, request, method and the verb whose rate and span each has.

The routes and the commands are loops over it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from scrubjay.model.user_keys import Hold, Unlock
from scrubjay.surfaces.personal import records as told
from scrubjay.surfaces.personal.memory import Personal
from scrubjay.verbs import VERBS


class PersonalOperation(Struct, frozen=True):
    """One operation of personal memory."""

    name: str
    method: Callable[[Personal, Any], Any]
    request: type[Struct]
    verb: str
    """The verb of the engine that it is, for rates, spans and whether it writes."""
    at: str = ""
    """Method and path over HTTP; by default `post /<name>`."""
    status: int = 200
    options: tuple[str, ...] = ()
    """The fields that a command takes, as options; empty if the command is made by hand."""

    @property
    def http(self) -> tuple[str, str]:
        """Method and path."""
        method, _, path = (self.at or f"post /{self.name}").partition(" ")
        return method.upper(), path

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return (self.method.__doc__ or "").strip()


def _verb(name: str) -> Callable[[Personal, Any], Any]:
    """The method of an operation that is a verb of the engine."""

    def method(personal: Personal, request: Any) -> Any:
        return personal.carry_out(name, request)

    method.__doc__ = VERBS[name].__doc__
    return method


OPERATIONS: Final = (
    PersonalOperation(
        "store", Personal.store, told.StoreMemory, "retain", status=201,
        options=(
            "content CONTENT", "category --category -c", "content_type --type",
            "session_id --session", "channel", "source_msg_id --message", "topic_tags --tag -t",
            "importance_score --importance", "ttl",
        ),
    ),
    PersonalOperation(
        "retrieve", Personal.retrieve, told.RetrieveMemory, "recall",
        options=(
            "query QUERY", "category_filter --category -c", "max_results --limit -n",
            "min_similarity",
        ),
    ),
    PersonalOperation("export", Personal.export, told.ExportMemories, "export", status=202),
    PersonalOperation(
        "exported", Personal.exported, told.ViewExport, "export", "get /exports/{export_id}"
    ),
    PersonalOperation("import", Personal.load, told.ImportMemories, "load"),
    PersonalOperation("forget", Personal.forget, told.ForgetMemories, "forget"),
    PersonalOperation("destroy", Personal.destroy, told.DestroyMemory, "destroy"),
    PersonalOperation(
        "rectify", Personal.rectify, told.RectifyMemory, "supersede",
        options=("memory_id ID", "content CONTENT", "reason"),
    ),
    PersonalOperation(
        "restrict", Personal.restrict, told.RestrictMemory, "freeze", options=("level",)
    ),
    PersonalOperation(
        "lift", Personal.lift, told.LiftRestriction, "freeze", options=("notice_id --notice",)
    ),
    PersonalOperation(
        "notices", Personal.read_notice, told.ViewStatus, "retention", "get /notices",
        options=("user_id --user",),
    ),
    PersonalOperation(
        "recipients", Personal.recipients, told.ViewStatus, "holdings", "get /recipients",
        options=("user_id --user",),
    ),
    PersonalOperation(
        "requests", Personal.requests, told.ViewStatus, "holdings", "get /requests",
        options=("user_id --user",),
    ),
    PersonalOperation(
        "request", Personal.file, told.FileRequest, "put", "post /requests", 201,
        options=("right RIGHT",),
    ),
    PersonalOperation(
        "answered", Personal.answered, told.AnswerRequest, "put", "post /requests/{request_id}",
        options=("request_id ID",),
    ),
    PersonalOperation(
        "purposes", _verb("purposes"), told.ViewStatus, "purposes", "get /purposes",
        options=("user_id --user",),
    ),
    PersonalOperation(
        "purpose", Personal.decide, told.DecidePurpose, "set_purpose", "post /purposes",
    ),
    PersonalOperation("hold", _verb("hold"), Hold, "hold"),
    PersonalOperation("unlock", _verb("unlock"), Unlock, "unlock"),
    PersonalOperation("lock", _verb("lock"), told.ViewStatus, "lock"),
    PersonalOperation(
        "memories", Personal.memories, told.ViewMemories, "browse", "get /memories",
        options=("categories --category -c", "limit -n", "cursor"),
    ),
    PersonalOperation(
        "audit", Personal.audit, told.ViewAudit, "audit", "get /audit",
        options=("limit -n", "cursor"),
    ),
    PersonalOperation(
        "status", Personal.status, told.ViewStatus, "holdings", "get /status",
        options=("user_id --user",),
    ),
)  # fmt: skip
