"""HTTP client: a `Jay` for a scope of a remote service.

    with scrubjay.connect("https://memory.example.com", key) as jay:
        jay.retain("Alice prefers green tea", kind="preference")

It has every verb of `Jay` and the same results, because it is one: its engine sends each verb to
the service and builds the result from the answer.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

from msgspec import Struct
from msgspec.structs import fields, replace

try:
    import httpx2
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "scrubjay.connect needs more: pip install 'scrubjay[server]'.", name=error.name
    ) from error

from scrubjay import bootstrap, codec
from scrubjay.access import LOCAL_ID, Key, OpenRequest, VerifyErased
from scrubjay.engine import Kernel
from scrubjay.engine.transfer import bundle
from scrubjay.handle import Jay
from scrubjay.model import errors
from scrubjay.model.batches import BatchReceipt, RetainedMany, RetainMany
from scrubjay.model.compaction import Compact, Compacted
from scrubjay.model.errors import (
    Busy,
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    ScrubjayError,
    StoreError,
)
from scrubjay.model.requests import NOTHING, Backup, Caller, Export, NoFields
from scrubjay.model.results import BackedUp, Erasure, Exported, Reindexed, Report
from scrubjay.model.scope import Scope
from scrubjay.model.turns import Record, Recorded
from scrubjay.ports import Deliver, Progress
from scrubjay.service.rest import BY_NAME, MEMORIES, Operation
from scrubjay.vault import KEY_BYTES

SECONDS: Final = 60.0
_PIECE_BYTES: Final = 256 * 1024
_PART_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of the part of a batch in one call, so that it ends well before the timeout."""
_BY_STATUS: Final[Mapping[int, type[ScrubjayError]]] = {
    401: Forbidden, 403: Forbidden, 409: Conflict, 412: Conflict, 413: InvalidRequest,
    415: InvalidRequest, 429: LimitReached, 503: Busy,
}  # fmt: skip


_BY_CODE: Final[Mapping[str, type[ScrubjayError]]] = {"in_progress": Busy}


def connect(
    url: str,
    key: str | None = None,
    *,
    scope: str | None = None,
    create: bool = False,
    anew: bool = False,
    warm: bool = False,
    seconds: float = SECONDS,
) -> Client:
    """The handle on a scope of a service.

    Without `scope` it is the one the key is for. The first write makes a scope that is not there;
    `create` makes it now, `anew` one that was destroyed, and `warm` loads its index, too.
    """
    _check_address(url)
    remote = RemoteEngine(url, key, seconds=seconds)
    try:
        named = Scope.parse(scope) if scope else _scope_of(remote.own_key())
        if create or anew or warm:
            remote.open(named, OpenRequest(anew=anew, warm=warm))
    except BaseException:  # seam: no connection may stay open when connecting fails
        remote.close()
        raise
    return Client(remote, named)


def _check_address(url: str) -> None:
    """Refuse what is no address of a service; it is not repeated, for it may hold a password."""
    how = "Write it like http://127.0.0.1:8377."
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise InvalidRequest("This is no address of a service.", hint=how)
    if parts.path.rstrip("/").endswith("/v1"):
        raise InvalidRequest("Give the address without /v1.", hint=how)


class Client(Jay):
    """One scope of a service and all verbs on it; closed by `with` or `close`."""

    def __init__(self, remote: RemoteEngine, scope: Scope) -> None:
        remote.scope = scope
        # It is asked for exactly what the table of verbs has; the contract tests see to it.
        super().__init__(cast(Kernel, remote), scope)


class RemoteEngine:
    """Stand-in for the kernel under a `Jay`: it sends every verb to the service."""

    def __init__(self, url: str, key: str | None, *, seconds: float = SECONDS) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # Where there is no TLS there is nothing to verify, and reading all certificates takes long.
        tls = not url.startswith("http://")
        self._clock = bootstrap.clock()
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=seconds, verify=tls)
        self.scope: Scope | None = None
        """The scope of a verb that names none."""

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._http.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in BY_NAME:
            raise AttributeError(name)
        return partial(self._send, BY_NAME[name])

    # -- what takes more than a request; who acts is the key's to say ------------------------

    def record(self, scope: Scope, request: Record, _caller: Caller) -> Recorded:
        """Write a turn; the client chooses its id, so that a retry changes nothing."""
        known = request if request.id else replace(request, id=f"turn-{self._clock.new_id()}")
        recorded: Recorded = self._send(BY_NAME["record"], scope, known)
        return recorded

    def retain_many(self, scope: Scope, request: RetainMany, _caller: Caller) -> RetainedMany:
        """Write many memories, by several calls if that is too long for one; atomic by one."""
        parts: list[list[Mapping[str, Any]]] = [[]]
        left = _PART_BYTES
        for item in request.fields:
            size = len(codec.to_json(item))
            if size > left and parts[-1] and not request.atomic:
                parts.append([])
                left = _PART_BYTES
            parts[-1].append(item)
            left -= size
        receipts: list[BatchReceipt] = []
        for part in parts:
            receipts += self._send(BY_NAME["retain_many"], scope, replace(request, items=part))
        return RetainedMany.of(receipts)

    def verify_erased(self, scope: Scope, receipt: Erasure) -> Report:
        """Prove an erasure by its receipt."""
        asked = VerifyErased(receipt)
        report: Report = self._send(BY_NAME["verify_erased"], scope, asked)
        return report

    def compact(self, scope: Scope, request: Compact, _caller: Caller, **_: Progress) -> Compacted:
        """Compact older episodes into summaries; there is no progress to see."""
        compacted: Compacted = self._send(BY_NAME["compact"], scope, request)
        return compacted

    def reindex(self, scope: Scope, request: NoFields, _caller: Caller, **_: Progress) -> Reindexed:
        """Make the index again; how far it has come is not told over HTTP."""
        reindexed: Reindexed = self._send(BY_NAME["reindex"], scope, request)
        return reindexed

    def backup(
        self, scope: Scope, request: Backup, _caller: Caller, *, deliver: Callable[[bytes], None]
    ) -> tuple[bytes, BackedUp]:
        """A sealed copy of the scope under its own key; `deliver` puts it away."""
        content, receipt = self._send(BY_NAME["backup"], scope, request)
        deliver(content)
        return content, receipt

    def export(
        self, scope: Scope, request: Export, _caller: Caller, *, deliver: Deliver | None = None
    ) -> Exported:
        """The file of an export; without a passphrase a sealed one opens with a key made here."""
        key = None
        if request.sealed and request.passphrase is None:
            key = bundle.print_key(self._clock.random(KEY_BYTES))
            request = replace(request, passphrase=key)
        exported: Exported = self._send(BY_NAME["export"], scope, request, deliver=deliver)
        return replace(exported, key=key)

    # -- there and back --------------------------------------------------------------------

    def _send(
        self,
        operation: Operation,
        scope: Scope | None = None,
        request: Struct = NOTHING,
        _caller: Caller | None = None,
        *,
        deliver: Deliver | None = None,
    ) -> Any:
        headers = {"X-Scrubjay-Scope": str(scope)} if scope else {}
        if operation.conditional:
            headers["If-Match"] = "*"
        if operation.keyed:
            headers["Idempotency-Key"] = self._clock.new_id()
        left = {
            one.name: codec.plain(value)
            for one in fields(request)
            if (value := getattr(request, one.name)) != codec.default_of(one)
        }
        path = operation.path
        for name in operation.path_names:
            path = path.replace(f"{{{name}}}", quote(str(left.pop(name)), safe=""))
        if operation.in_query:
            left |= {name: json.dumps(one) for name, one in left.items() if isinstance(one, dict)}
        how: dict[str, Any] = {"params": left} if operation.in_query else {"json": left}
        sent = self._http.build_request(operation.method, f"/v1{path}", headers=headers, **how)
        response = self._ask(operation, sent, stream=deliver is not None)
        if deliver is None or response.is_error:
            response.read()
            return self._receive(operation, response)
        with closing(response):
            deliver(_pieces(response))
            return Exported(content=b"", memories=int(response.headers[MEMORIES]))

    def _ask(
        self, operation: Operation, request: httpx2.Request, *, stream: bool
    ) -> httpx2.Response:
        """Send a request; one retry after a broken connection, if that cannot write twice."""
        if self._http.is_closed:
            raise StoreError("This client is closed.", hint="Connect again.")
        try:
            try:
                return self._http.send(request, stream=stream)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                if operation.writes and not (operation.idempotent or operation.keyed):
                    raise
                return self._http.send(request, stream=stream)
        except httpx2.TimeoutException as error:
            raise _too_late(operation) from error
        except httpx2.HTTPError as error:
            if isinstance(error.__context__, ssl.SSLError) or "SSL" in str(error):
                raise StoreError(
                    "No safe connection to the service: TLS failed.",
                    hint="Check its certificate, whether this machine trusts it, and the name in "
                    "the address.",
                ) from error
            told = f"The service at {self._http.base_url.netloc.decode()} cannot be reached."
            raise StoreError(told, hint="Check the address, and that it runs.") from error

    def _receive(self, operation: Operation, response: httpx2.Response) -> Any:
        if operation.gives is Exported and response.is_success:
            number = response.headers.get(MEMORIES, "")
            if not number.isdecimal():
                raise StoreError("The answer of the service is no export.")
            return Exported(content=response.content, memories=int(number))
        try:
            answer = response.json()
        except ValueError as error:
            if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:  # by a balancer
                raise Busy("No node of the service is available.") from error
            raise StoreError(
                f"The answer of the service is not JSON; its status is {response.status_code}."
            ) from error
        if response.is_error:
            raise _error(response.status_code, answer)
        return codec.build(operation.gives, codec.unwrapped(operation.gives, answer))


def _pieces(response: httpx2.Response) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes(_PIECE_BYTES)
    except httpx2.HTTPError as error:
        raise StoreError("The answer of the service was cut off.") from error


def _too_late(operation: Operation) -> Busy:
    if not operation.writes:
        return Busy("The service did not answer in time.")
    return Busy(
        "The service did not answer in time; the write may have been done all the same.",
        hint="Read the memory before you repeat the write, or give the write an idempotency key.",
    )


def _error(status: int, problem: Any) -> ScrubjayError:
    if not isinstance(problem, dict):
        return StoreError("The service refused the request without a reason.")
    code = str(problem.get("code"))
    kind = _codes().get(code) or _BY_CODE.get(code) or _BY_STATUS.get(status, StoreError)
    detail = str(problem.get("detail", "The service refused."))
    return kind(detail, hint=problem.get("hint"))


def _codes() -> dict[str, type[ScrubjayError]]:
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    return {one.code: one for one in kinds if issubclass(one, ScrubjayError)}


def _scope_of(key: Key) -> Scope:
    if (scope := key.only_scope) is not None:
        return scope
    if key.id == LOCAL_ID:
        return Scope.parse("default")
    raise InvalidRequest(
        "This key is for more than one scope.", hint='Name one: connect(…, scope="acme/alice").'
    )


__all__ = ["Client", "RemoteEngine", "connect"]
