"""Root keys in AWS KMS: generation n is the key that the alias `alias/<name>-<n>` names."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from string import ascii_letters, digits
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from scrubjay import vault
from scrubjay.adapters.keyrings.distant import (
    DERIVE,
    DistantWrapper,
    cache_seconds,
    context,
    derivation,
    derives,
    query_of,
)
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.model.endpoints import is_loopback
from scrubjay.model.errors import InvalidRequest, KeyUnavailable, SealBroken
from scrubjay.ports import SlotPlace

_EXAMPLE: Final = "It is kms://name?region=eu-central-1; credentials are in AWS's variables."
_KNOWN: Final = frozenset({"endpoint", "region", "derive"})
_LETTERS: Final = frozenset(f"{ascii_letters}{digits}/_-")
_PENDING_DAYS: Final = 7  # the least that KMS takes
_TRIES: Final = 3
_BROKEN: Final = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})
_ENDED: Final = frozenset({"NotFoundException", "KMSInvalidStateException"})
_ADVICE: Final = {
    "DisabledException": "The root key is disabled: enable it again in KMS.",
    "KMSInvalidStateException": "The root key is disabled, or waits for its deletion: cancel it.",
    "AccessDeniedException": "The policy of the key must allow these credentials to use it.",
    "ThrottlingException": "KMS has too many requests; raise its quota, or try again.",
}


class KmsWrapper(DistantWrapper):
    """Wrapper in AWS KMS; the address and purpose of a slot are its encryption context.

    The alias of a destroyed generation goes at once, so nothing here opens its slots any more;
    KMS keeps the key for seven days, in which an administrator could cancel the deletion.
    """

    undo_days = _PENDING_DAYS
    key_form: ClassVar[Mapping[str, str]] = {}
    """What a root key is made for, in the words of KMS."""

    def __init__(self, url: str, folder: KeysFolder, *, answer_seconds: float = 3.0) -> None:
        self._name, self._endpoint, self._region, seconds = _checked(url)
        super().__init__(folder, seconds)
        self._answer_seconds = answer_seconds
        self._opened: tuple[int, Any] | None = None
        self._opening = threading.Lock()

    @property
    def _client(self) -> Any:
        # Made by the process that uses it: its connections do not survive a fork.
        with self._opening:
            if self._opened is None or self._opened[0] != os.getpid():
                config = Config(
                    connect_timeout=self._answer_seconds,
                    read_timeout=self._answer_seconds,
                    retries={"mode": "standard", "total_max_attempts": _TRIES},
                )
                session = boto3.session.Session()
                client = session.client(
                    "kms",
                    region_name=self._region or None,
                    endpoint_url=self._endpoint or None,
                    config=config,
                )
                _check_endpoint(client.meta.endpoint_url)  # AWS's variables may name one, too
                self._opened = os.getpid(), client
            return self._opened[1]

    def numbers(self) -> Sequence[int]:
        start, found = f"{self._alias}-", list[int]()
        with _failures():
            for page in self._client.get_paginator("list_aliases").paginate():
                names = [one["AliasName"] for one in page["Aliases"] if "TargetKeyId" in one]
                ends = [name.removeprefix(start) for name in names if name.startswith(start)]
                found += [int(end) for end in ends if end.isdecimal()]
        return sorted(found)

    def make(self, number: int) -> None:
        with _failures():
            about = f"scrubjay root key {self._name}-{number}"
            made = self._client.create_key(Description=about, **self.key_form)
            key = made["KeyMetadata"]["KeyId"]
            try:
                self._client.create_alias(AliasName=f"{self._alias}-{number}", TargetKeyId=key)
            except self._client.exceptions.AlreadyExistsException:  # another node was first
                self._delete(key)

    def end(self, number: int) -> None:
        alias = f"{self._alias}-{number}"
        with _failures():
            try:
                self._delete(alias)
                self._client.delete_alias(AliasName=alias)
            except self._client.exceptions.NotFoundException:
                return

    def seal(self, number: int, place: SlotPlace, key: bytes) -> bytes:
        with _failures():
            answer = self._client.encrypt(
                KeyId=f"{self._alias}-{number}",
                Plaintext=key,
                EncryptionContext=dict(context(place)),
            )
        return bytes(answer["CiphertextBlob"])

    def unseal(self, number: int, place: SlotPlace, sealed: bytes) -> bytes:
        with self._there(number):
            answer = self._client.decrypt(
                KeyId=f"{self._alias}-{number}",
                CiphertextBlob=sealed,
                EncryptionContext=dict(context(place)),
            )
        return bytes(answer["Plaintext"])

    @contextmanager
    def _there(self, number: int) -> Iterator[None]:
        """Context manager: SealBroken if what is asked inside needs a root key that is gone."""
        try:
            with _failures():
                yield
        except KeyUnavailable as error:
            if _code(error.__cause__) in _ENDED and number not in self.numbers():
                raise SealBroken("The root key of this key slot was destroyed.") from error
            raise

    @property
    def _alias(self) -> str:
        return f"alias/{self._name}"

    def _delete(self, key: str) -> None:
        if key.startswith("alias/"):
            key = self._client.describe_key(KeyId=key)["KeyMetadata"]["KeyId"]
        try:
            self._client.schedule_key_deletion(KeyId=key, PendingWindowInDays=_PENDING_DAYS)
        except self._client.exceptions.KMSInvalidStateException:
            return  # somebody did so before


class DerivingKmsWrapper(KmsWrapper):
    """Wrapper whose keys are derived from masters in KMS, one for each owner.

    KMS gives no master out, so the wrapping key is its HMAC-SHA256 over the owner's name.
    """

    key_form: ClassVar[Mapping[str, str]] = {
        "KeySpec": "HMAC_256",
        "KeyUsage": "GENERATE_VERIFY_MAC",
    }

    def seal(self, number: int, place: SlotPlace, key: bytes) -> bytes:
        nonce = self._folder.clock.random(vault.NONCE_BYTES)
        where = {"address": place.address, "purpose": place.purpose}
        return vault.wrap(self._secret(number, place), key, nonce=nonce, **where)

    def unseal(self, number: int, place: SlotPlace, sealed: bytes) -> bytes:
        secret = self._secret(number, place)
        return vault.unwrap(secret, sealed, address=place.address, purpose=place.purpose)

    def _secret(self, number: int, place: SlotPlace) -> bytes:
        with self._there(number):
            answer = self._client.generate_mac(
                KeyId=f"{self._alias}-{number}",
                Message=derivation(number, place),
                MacAlgorithm="HMAC_SHA_256",
            )
        return bytes(answer["Mac"])


def wrapper_of(url: str, folder: KeysFolder) -> KmsWrapper:
    """The wrapper that an address names: root keys that wrap, or masters that are derived from."""
    return (DerivingKmsWrapper if derives(url) else KmsWrapper)(url, folder)


def _checked(url: str) -> tuple[str, str, str, float]:
    """Name, endpoint, region and cache seconds of an address."""
    parts = urlsplit(url)
    given = query_of(parts.query, _KNOWN, _EXAMPLE)
    name = f"{parts.netloc}{parts.path}".strip("/").removeprefix("alias/")
    valid = name and set(name) <= _LETTERS and given.get("derive", DERIVE) == DERIVE
    if parts.scheme != "kms" or not valid:
        raise InvalidRequest("The address of the root key is not kms://name.", hint=_EXAMPLE)
    if endpoint := given.get("endpoint", ""):
        _check_endpoint(endpoint)
    return name, endpoint, given.get("region", ""), cache_seconds(given)


def _check_endpoint(endpoint: str) -> None:
    at = urlsplit(endpoint)
    if at.scheme != "https" and not (at.scheme == "http" and is_loopback(at.hostname or "")):
        raise InvalidRequest(
            "The key service is not reached over https.",
            hint="Use an https address; plain http works only to this machine.",
        )


def _code(error: BaseException | None) -> str:
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else ""


@contextmanager
def _failures() -> Iterator[None]:
    """Context manager: errors of KMS inside are raised as `ScrubjayError`, without their texts."""
    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code in _BROKEN:
            raise SealBroken("A key slot does not open under its root key.") from error
        raise KeyUnavailable(f"KMS refused: {code}.", hint=_ADVICE.get(code)) from error
    except BotoCoreError as error:
        raise KeyUnavailable(
            f"KMS does not answer: {type(error).__name__}.",
            hint="Check credentials, region and network, then try again. Nothing is lost.",
        ) from error
