"""The table of verbs: what each takes, gives, needs and changes; it knows nothing of HTTP.

A verb is one line: the handles inherit it (`jay.retain(…)`, `await jay.retain(…)`), and routes, the
OpenAPI document and the client are loops over `VERBS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast, overload

from msgspec import Struct

from scrubjay import access, codec
from scrubjay.access import Access, Grant
from scrubjay.engine import Kernel
from scrubjay.model import conversations as talks
from scrubjay.model import documents as papers
from scrubjay.model import requests
from scrubjay.model.batches import RetainMany
from scrubjay.model.compaction import Compact
from scrubjay.model.errors import InvalidRequest
from scrubjay.model.filters import Filter
from scrubjay.model.jobs import AllowJobs, Work
from scrubjay.model.pages import Paged
from scrubjay.model.purposes import SetPurpose
from scrubjay.model.requests import AuditRequest, Caller, NoFields
from scrubjay.model.retention import SetRetention
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record
from scrubjay.model.user_keys import Hold, Unlock

if TYPE_CHECKING:
    from inspect import Signature

P = ParamSpec("P")
Q = TypeVar("Q", bound=Struct)
R = TypeVar("R")


class Handle:
    """Base class of handles: one scope, and the caller."""

    def _carry_out(self, verb: Verb[..., Any], request: Struct) -> Any:
        raise NotImplementedError


class AsyncHandle:
    """Base class of handles for `await`."""

    def _carry_out(self, verb: Verb[..., Any], request: Struct) -> Any:
        raise NotImplementedError


class Verb(Generic[P, R]):
    """One verb: a method of every handle, with the signature of its request and its engine's help.

    Effects: `writes` is never abandoned; `idempotent` may be retried; `heavy` works on a whole
    scope: it runs one at a time, and a service limits its rate apart from that of reads and
    writes; `creates` creates a missing scope; `beyond` works on a destroyed scope.
    """

    name: str

    def __init__(
        self,
        request: Callable[P, Q],
        method: Callable[[Any, Scope, Q, Caller], R],
        grant: Grant | None = Grant.READ,
        *,
        writes: bool = False,
        idempotent: bool | None = None,
        heavy: bool = False,
        creates: bool = False,
        beyond: bool = False,
        scoped: bool = True,
    ) -> None:
        self.request = cast(type[Struct], request)
        self.method: Callable[..., R] = method
        self.grant = grant
        self.writes = writes
        self.idempotent = not writes if idempotent is None else idempotent
        self.heavy = heavy
        self.creates = creates
        self.beyond = beyond
        self.scoped = scoped
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.__name__ = name
        self.__qualname__ = f"{owner.__qualname__}.{name}"
        VERBS[name] = self

    @cached_property
    def gives(self) -> Any:
        """The type of the result."""
        return codec.hints(self.method)["return"]

    @cached_property
    def conditional(self) -> bool:
        """Whether it takes an optimistic lock: the editions the memory may be in."""
        return "expected" in codec.hints(self.method)

    @cached_property
    def __signature__(self) -> Signature:
        import inspect  # costs a command line that never asks more than most of its own modules

        fields = inspect.signature(self.request).parameters.values()
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        return inspect.Signature([own, *fields])

    @overload
    def __get__(self, handle: None, owner: type) -> Verb[P, R]: ...
    @overload
    def __get__(self, handle: Handle, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, handle: AsyncHandle, owner: type) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, handle: Handle | AsyncHandle | None, owner: type) -> object:
        return self if handle is None else MethodType(self, handle)

    def __call__(self, handle: Handle | AsyncHandle, /, *args: P.args, **fields: P.kwargs) -> R:
        """Perform it on a handle; InvalidRequest if a field is wrong, unknown or given twice."""
        named: dict[str, Any] = fields
        if args:
            names = self.request.__match_args__
            if len(args) > len(names):
                raise InvalidRequest(
                    f"{self.name} takes {' and '.join(names) or 'nothing'} by position.",
                    hint="Give every other field by its name.",
                )
            given = dict(zip(names, args, strict=False))
            if twice := given.keys() & fields.keys():
                raise InvalidRequest(f"{min(twice)}: it is given by position and by name.")
            named = given | fields
        result: R = handle._carry_out(self, codec.request(self.request, named))
        return result


VERBS: Final[dict[str, Verb[..., Any]]] = {}
"""Every verb by its name."""


class Verbs:
    """The verbs on one scope."""

    retain = Verb(requests.Retain, Kernel.retain, Grant.WRITE, writes=True, creates=True)
    retain_many = Verb(
        RetainMany, Kernel.retain_many, Grant.WRITE, writes=True, heavy=True, creates=True
    )
    recall = Verb(requests.Recall, Kernel.recall)
    browse = Verb(requests.Browse, Kernel.browse)
    get = Verb(requests.Get, Kernel.get)
    count = Verb(Filter, Kernel.count)
    history = Verb(requests.History, Kernel.history)
    counters = Verb(requests.CountersRequest, Kernel.counters)
    lineage = Verb(requests.LineageRequest, Kernel.lineage)
    follow = Verb(Paged, Kernel.follow)
    statistics = Verb(requests.StatisticsRequest, Kernel.statistics)
    inspect = Verb(NoFields, Kernel.inspect, Grant.ADMIN, heavy=True)
    brief = Verb(requests.BriefRequest, Kernel.brief)
    supersede = Verb(requests.Supersede, Kernel.supersede, Grant.WRITE, writes=True)
    amend = Verb(requests.Amend, Kernel.amend, Grant.WRITE, writes=True, idempotent=True)
    record = Verb(Record, Kernel.record, Grant.WRITE, writes=True, creates=True, idempotent=True)
    turns = Verb(requests.TurnsRequest, Kernel.turns)
    timeline = Verb(Paged, Kernel.timeline)
    sessions = Verb(Paged, Kernel.sessions)
    append = Verb(talks.Append, Kernel.append, Grant.WRITE, writes=True, creates=True)
    conversation = Verb(talks.ReadConversation, Kernel.conversation)
    conversations = Verb(talks.ListConversations, Kernel.conversations)
    branch = Verb(talks.Branch, Kernel.branch, Grant.WRITE, writes=True)
    rewind = Verb(talks.Rewind, Kernel.rewind, Grant.WRITE, writes=True)
    delete_conversation = Verb(
        talks.DeleteConversation, Kernel.delete_conversation, Grant.FORGET, writes=True
    )
    put = Verb(papers.Put, Kernel.put, Grant.WRITE, writes=True, creates=True)
    document = Verb(papers.ReadDocument, Kernel.document)
    documents = Verb(papers.ListDocuments, Kernel.documents)
    move = Verb(papers.Move, Kernel.move, Grant.WRITE, writes=True)
    remove = Verb(papers.Remove, Kernel.remove, Grant.WRITE, writes=True)
    forget = Verb(requests.Forget, Kernel.forget, Grant.FORGET, writes=True, idempotent=True)
    preview = Verb(requests.Forget, Kernel.preview, Grant.FORGET)
    revoke = Verb(requests.Revoke, Kernel.revoke, Grant.FORGET, writes=True, idempotent=True)
    mark_tainted = Verb(
        requests.MarkTainted, Kernel.mark_tainted, Grant.WRITE, writes=True, idempotent=True
    )
    quarantined = Verb(Paged, Kernel.quarantined)
    approve = Verb(requests.Approve, Kernel.approve, Grant.WRITE, writes=True, idempotent=True)
    reject = Verb(requests.Reject, Kernel.reject, Grant.FORGET, writes=True)
    freeze = Verb(requests.FreezeRequest, Kernel.freeze, Grant.ADMIN, writes=True, idempotent=True)
    purge = Verb(
        requests.Purge, Kernel.purge, Grant.ADMIN, writes=True, idempotent=True, heavy=True
    )
    retention = Verb(NoFields, Kernel.retention)
    set_retention = Verb(
        SetRetention, Kernel.set_retention, Grant.ADMIN, writes=True, idempotent=True, heavy=True
    )
    purposes = Verb(NoFields, Kernel.purposes, Grant.ADMIN)
    set_purpose = Verb(
        SetPurpose, Kernel.set_purpose, Grant.ADMIN, writes=True, idempotent=True, creates=True
    )
    hold = Verb(Hold, Kernel.hold, Grant.FORGET, writes=True, heavy=True, creates=True)
    unlock = Verb(Unlock, Kernel.unlock, Grant.FORGET, writes=True, heavy=True)
    lock = Verb(NoFields, Kernel.lock, Grant.FORGET, writes=True, idempotent=True)
    rotate = Verb(NoFields, Kernel.rotate, Grant.ADMIN, writes=True, heavy=True)
    extract = Verb(requests.Extract, Kernel.extract, Grant.EXTRACT, writes=True, heavy=True)
    extraction = Verb(NoFields, Kernel.extraction, Grant.ADMIN)
    pause_extraction = Verb(
        requests.PauseExtraction,
        Kernel.pause_extraction,
        Grant.ADMIN,
        writes=True,
        idempotent=True,
    )
    work = Verb(Work, Kernel.work, Grant.EXTRACT, writes=True, heavy=True)
    jobs = Verb(NoFields, Kernel.jobs, Grant.ADMIN)
    allow_jobs = Verb(AllowJobs, Kernel.allow_jobs, Grant.ADMIN, writes=True, idempotent=True)
    verify_audit = Verb(NoFields, Kernel.verify_audit, Grant.ADMIN, heavy=True)
    receipts = Verb(Paged, Kernel.receipts, beyond=True)
    audit = Verb(AuditRequest, Kernel.audit)
    holdings = Verb(NoFields, Kernel.holdings, Grant.ADMIN)
    destroy_token = Verb(NoFields, Kernel.destroy_token, Grant.ADMIN)
    destroy = Verb(
        requests.Destroy,
        Kernel.destroy,
        Grant.ADMIN,
        writes=True,
        idempotent=True,
        heavy=True,
        beyond=True,
    )


class FileVerbs:
    """Verbs that a handle implements by hand: with a file, a receipt or a progress bar."""

    export = Verb(requests.Export, Kernel.export, Grant.EXPORT, heavy=True)
    load = Verb(
        requests.Load,
        Kernel.load,
        Grant.ADMIN,
        writes=True,
        idempotent=True,
        heavy=True,
        creates=True,
    )
    backup = Verb(requests.Backup, Kernel.backup, Grant.EXPORT, writes=True, heavy=True)
    restore = Verb(
        requests.Restore,
        Kernel.restore,
        Grant.ADMIN,
        writes=True,
        idempotent=True,
        heavy=True,
        beyond=True,
    )
    reindex = Verb(NoFields, Kernel.reindex, Grant.ADMIN, writes=True, idempotent=True, heavy=True)
    compact = Verb(Compact, Kernel.compact, Grant.EXTRACT, writes=True, heavy=True)
    verify = Verb(NoFields, Kernel.verify, Grant.ADMIN, heavy=True)
    verify_erased = Verb(
        access.VerifyErased, Access.verify_erased, Grant.FORGET, heavy=True, beyond=True
    )


class ServiceVerbs:
    """Verbs of a service with keys: its scopes, and the keys themselves."""

    forget_one = Verb(
        requests.Reject, Access.forget_one, Grant.FORGET, writes=True, idempotent=True
    )
    scopes = Verb(Paged, Access.scopes, scoped=False)
    open = Verb(
        access.OpenRequest, Access.open, Grant.WRITE, writes=True, idempotent=True, beyond=True
    )
    own_key = Verb(NoFields, Access.own_key, None, scoped=False)
    list_keys = Verb(Paged, Access.list_keys, Grant.ADMIN, scoped=False)
    create_key = Verb(access.CreateKey, Access.create_key, Grant.ADMIN, writes=True, scoped=False)
    revoke_key = Verb(
        access.RevokeKey,
        Access.revoke_key,
        Grant.ADMIN,
        writes=True,
        idempotent=True,
        scoped=False,
    )


def perform(
    reach: Access, verb: Verb[..., Any], scope: Scope, fields: Mapping[str, Any], **beside: Any
) -> Any:
    """Perform a verb for the holder of a key; what the key decides is not a field."""
    asked = codec.request(verb.request, reach.admitted(verb.request, fields))
    return getattr(reach, verb.name)(scope, asked, reach.caller, **beside)
