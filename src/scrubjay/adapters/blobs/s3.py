"""Blobs as objects of an S3 bucket: `<prefix>/<address>/<name>`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import (
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from scrubjay.model.endpoints import check_region, is_loopback
from scrubjay.model.errors import Busy, InvalidRequest, NotFound, StoreError
from scrubjay.model.scope import check_place

_KNOWN: Final = frozenset({"endpoint", "region"})
_LABEL: Final = "region"
_SECONDS: Final = timedelta(seconds=30)


class S3Blobs:
    """Blobs in an S3 bucket, for many nodes; an object is complete once it is listed.

    Credentials are those that AWS's own variables name. Nothing relies on conditional requests,
    which not every server knows: a name is random, and its content never changes. The bucket must
    not keep versions, or what was deleted stays there, sealed. Where a region is named, the object
    `region` beside the scopes has the label of whoever came first.
    """

    def __init__(self, url: str, *, region: str = "") -> None:
        self._url = url
        self._region = region
        self._parts = _checked(url)
        self._opened: tuple[int, S3Store] | None = None

    @property
    def _store(self) -> S3Store:
        # Made by the process that uses it: its threads do not survive a fork.
        if self._opened is None or self._opened[0] != os.getpid():
            bucket, prefix, endpoint, region = self._parts
            with _failures():
                made = S3Store(
                    bucket,
                    prefix=prefix or None,
                    endpoint=endpoint or None,
                    region=region or "us-east-1",
                    virtual_hosted_style_request=not endpoint,
                    client_options={
                        "allow_http": endpoint.startswith("http:"),
                        "timeout": _SECONDS,
                    },
                    retry_config={"max_retries": 5, "retry_timeout": _SECONDS},
                )
            if self._region:
                check_region("bucket", _label(made, self._region), self._region)
            self._opened = os.getpid(), made
        return self._opened[1]

    def put(self, address: str, name: str, content: bytes) -> None:
        """Write an object in one request: it is there as a whole, or not at all."""
        with _failures():
            obstore.put(self._store, _path(address, name), content, use_multipart=False)

    def get(self, address: str, name: str) -> bytes:
        """Read a blob; NotFound if it is not there."""
        with _failures():
            return bytes(obstore.get(self._store, _path(address, name)).bytes())

    def delete(self, address: str, name: str) -> None:
        """Delete a blob; an absent one is fine."""
        self._delete([_path(address, name)])

    def names(self, address: str) -> Sequence[str]:
        """The names of a scope's blobs, sorted."""
        return sorted(path.rpartition("/")[2] for path, _ in self._listed(address))

    def size(self, address: str) -> int:
        """Bytes of a scope's blobs."""
        return sum(size for _, size in self._listed(address))

    def raw(self, address: str) -> Iterator[tuple[str, bytes]]:
        """Every byte kept for the scope as (place, bytes)."""
        for name in self.names(address):
            yield f"{address}/{name}", self.get(address, name)

    def remove(self, address: str) -> None:
        """Delete every blob of a scope; none is fine."""
        self._delete([path for path, _ in self._listed(address)])

    def _listed(self, address: str) -> list[tuple[str, int]]:
        prefix = check_place("address", address)
        with _failures():
            pages = obstore.list(self._store, prefix=f"{prefix}/")
            return [(str(one["path"]), int(one["size"])) for page in pages for one in page]

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            try:
                with _failures():
                    obstore.delete(self._store, path)
            except NotFound:
                continue


def _label(store: S3Store, region: str) -> str:
    """The region a bucket is labeled for; one without a label gets this one."""
    with _failures():
        try:
            return bytes(obstore.get(store, _LABEL).bytes()).decode("utf-8", "replace")
        except (NotFoundError, FileNotFoundError):
            obstore.put(store, _LABEL, region.encode(), use_multipart=False)
            return region


def _path(address: str, name: str) -> str:
    return f"{check_place('address', address)}/{check_place('blob name', name)}"


def _checked(url: str) -> tuple[str, str, str, str]:
    """Bucket, prefix, endpoint and region of an address."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    if parts.scheme != "s3" or not parts.hostname or "@" in parts.netloc or given.keys() - _KNOWN:
        raise InvalidRequest(
            "The address of the blobs is not s3://bucket/prefix.",
            hint="After it may come ?endpoint=https://…&region=…; keys are in AWS's variables.",
        )
    endpoint = given.get("endpoint", "")
    at = urlsplit(endpoint)
    safe = at.scheme == "https" or (at.scheme == "http" and is_loopback(at.hostname or ""))
    if endpoint and not safe:
        raise InvalidRequest(
            "The object store is not reached over https.",
            hint="Use an https address; plain http works only to this machine.",
        )
    return parts.netloc, parts.path.strip("/"), endpoint, given.get("region", "")


@contextmanager
def _failures() -> Iterator[None]:
    """Context manager: errors of the object store inside are raised as `ScrubjayError`."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise NotFound("There is no such blob.") from error
    except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
        raise StoreError(
            "The object store refuses these credentials.",
            hint="They are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        ) from error
    except (BaseError, OSError) as error:
        raise Busy(
            "The object store does not answer.",
            hint="Try again; if it persists, check its address and the network.",
        ) from error
