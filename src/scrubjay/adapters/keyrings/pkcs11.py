"""Root keys in a PKCS#11 token: a hardware security module, a smart card, or SoftHSM.

Generation n is every AES key labeled `<object>.<n>`: a token allows several of one label, so of
nodes that make one at once each may. The least id among them wraps, and a sealed key names the id
of what sealed it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import pkcs11
from pkcs11 import (
    Attribute,
    GCMParams,
    KeyType,
    Mechanism,
    MechanismFlag,
    ObjectClass,
)
from pkcs11 import exceptions as refused

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
from scrubjay.model.errors import InvalidRequest, KeyMissing, KeyUnavailable, SealBroken
from scrubjay.ports import SlotPlace

_EXAMPLE: Final = (
    "It is pkcs11:token=NAME;object=KEY?module-path=/path/of/the/module.so, as in RFC 7512;"
    " the PIN is in SCRUBJAY_PKCS11_PIN or in the file that pin-source=file:… names."
)
_KNOWN: Final = frozenset({"module-path", "pin-source", "derive", "region"})
_ID_BYTES: Final = 16
_TAG_BITS: Final = 8 * vault.TAG_BYTES
_BROKEN: Final = (refused.EncryptedDataInvalid, refused.EncryptedDataLenRange, refused.DataInvalid)
_PIN: Final = (refused.PinIncorrect, refused.PinLocked, refused.PinExpired, refused.PinInvalid)
_REFUSED: Final = (refused.PKCS11Error, RuntimeError, OSError)
_PAUSES: Final = tuple(0.01 * 2**n for n in range(8))
_Answer = TypeVar("_Answer")


class _NotSeen(Exception):
    """A key that a session does not show."""


class Module:
    """A PKCS#11 module of this process; it serves one call at a time, of whichever token.

    Starting it again ends the sessions of every token, and their numbers may be given out anew:
    each session is kept beside the start that it belongs to.
    """

    def __init__(self, path: str) -> None:
        self.mutex = threading.Lock()
        self.starts = 0
        self._path = path
        self._process = os.getpid()

    def library(self) -> Any:
        """What was loaded; it does not survive a fork."""
        if self._process != os.getpid():
            self.restart()
        return pkcs11.lib(self._path)

    def restart(self) -> None:
        """Read its tokens anew."""
        self._process = os.getpid()
        self.starts += 1
        pkcs11.lib(self._path).reinitialize()


class Token:
    """One login of this process to one token; calls on its session come one after another."""

    def __init__(self, module: Module, label: str, pin: str) -> None:
        self._module = module
        self._label = label
        self._pin = pin
        self._session: Any = None
        self._start: int | None = None
        self._pin_refused = False

    def ask(self, call: Callable[[Any], _Answer]) -> _Answer:
        """The answer of a call on the session; one that broke is opened again, once.

        So is one that does not show a key. A token in files may overlook what another process has
        just made, for as long as the module runs.
        """
        with self._module.mutex:
            for last in (False, True):
                session = self._logged_in()
                try:
                    return call(session)
                except _NotSeen:
                    if last:
                        raise
                    self._restart()
                except _BROKEN as error:
                    raise SealBroken("A key slot does not open under its root key.") from error
                except _REFUSED as error:
                    self._leave()
                    if last:
                        raise _unavailable(error) from error
        raise AssertionError

    def _logged_in(self) -> Any:
        """The session, opened if there is none.

        A token in files cannot be read while another process writes to it, which every login does,
        and the module remembers what it read: it is started again after a pause.
        """
        for pause in (*_PAUSES, None):
            try:
                return self._opened()
            except _REFUSED as error:
                self._pin_refused |= isinstance(error, _PIN)
                of_token = isinstance(error, refused.PKCS11Error)
                if pause is None or self._pin_refused or not of_token:
                    raise _unavailable(error) from error
                time.sleep(pause)
                self._restart()
        raise AssertionError

    def _opened(self) -> Any:
        if self._pin_refused:  # a token locks after a few wrong ones
            raise refused.PinIncorrect
        library = self._module.library()
        if self._session is None or self._start != self._module.starts:
            token = library.get_token(token_label=self._label)
            self._session = token.open(rw=True, user_pin=self._pin)
            self._start = self._module.starts
        return self._session

    def _restart(self) -> None:
        with contextlib.suppress(*_REFUSED):  # seam: the next try says why
            self._module.restart()

    def _leave(self) -> None:
        session, self._session = self._session, None
        if self._start == self._module.starts:
            with contextlib.suppress(*_REFUSED):  # seam: it is broken already
                session.close()


_MODULES: Final[dict[str, Module]] = {}
_TOKENS: Final[dict[tuple[str, str], Token]] = {}
_OPENING: Final = threading.Lock()


def token_of(path: str, label: str, pin: str) -> Token:
    """The token of this process: PKCS#11 allows a process one login to each."""
    with _OPENING:
        module = _MODULES.setdefault(path, Module(path))
        known = _TOKENS.get((path, label))
        if known is None or known._pin != pin:
            known = _TOKENS[path, label] = Token(module, label, pin)
        return known


class Pkcs11Wrapper(DistantWrapper):
    """Wrapper in a PKCS#11 token, by AES-256-GCM with keys that cannot be read from it."""

    undo_days = 0

    def __init__(self, url: str, folder: KeysFolder, pin: str | None = None) -> None:
        module, label, self._label, source, seconds = _checked(url)
        super().__init__(folder, seconds)
        self._token = token_of(module, label, pin or _pin(source))

    def numbers(self) -> Sequence[int]:
        def call(session: Any) -> list[int]:
            labels = {getattr(key, "label", None) for key in _keys(session, {})}
            parts = (label.rpartition(".") for label in labels if label)
            own = (end for start, _, end in parts if start == self._label and end.isdigit())
            if not (found := sorted(map(int, own))):
                raise _NotSeen
            return found

        with contextlib.suppress(_NotSeen):
            return self._token.ask(call)
        return []

    def make(self, number: int) -> None:
        self._generate(number, KeyType.AES)

    def _generate(self, number: int, kind: KeyType, **form: object) -> None:
        """Make a key in the token that it can never give out."""
        template = {Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
        self._token.ask(
            lambda session: session.generate_key(
                kind,
                8 * vault.KEY_BYTES,
                id=self._folder.clock.random(_ID_BYTES),
                label=f"{self._label}.{number}",
                store=True,
                template=template,
                **form,
            )
        )

    def end(self, number: int) -> None:
        def destroy(session: Any) -> None:
            for key in self._all_of(session, number):
                key.destroy()

        self._token.ask(destroy)

    def seal(self, number: int, place: SlotPlace, key: bytes) -> bytes:
        nonce = self._folder.clock.random(vault.NONCE_BYTES)

        def call(first: Any) -> bytes:
            sealed = first.encrypt(key, **_gcm(nonce, place))
            return bytes(first.id) + nonce + bytes(sealed)

        return self._with_first(number, call)

    def unseal(self, number: int, place: SlotPlace, sealed: bytes) -> bytes:
        name, rest = sealed[:_ID_BYTES], sealed[_ID_BYTES:]
        nonce, cell = rest[: vault.NONCE_BYTES], rest[vault.NONCE_BYTES :]
        if len(cell) != vault.KEY_BYTES + vault.TAG_BYTES:
            raise SealBroken("A key slot is not as long as it was.")

        def call(key: Any) -> bytes:
            return bytes(key.decrypt(cell, **_gcm(nonce, place)))

        try:
            return self._with_named(number, name, call)
        except KeyUnavailable as error:
            # Modules have no error of their own for a tag that is wrong: does the key answer else?
            if isinstance(error.__cause__, refused.PKCS11Error) and self._opens(number, name):
                raise SealBroken("A key slot does not open under its root key.") from error
            raise

    def _opens(self, number: int, name: bytes) -> bool:
        """Whether the root key of a number seals and opens a key of chance."""
        place, nonce = SlotPlace("trial", "trial"), self._folder.clock.random(vault.NONCE_BYTES)
        trial = bytes(vault.KEY_BYTES)

        def call(key: Any) -> bool:
            sealed = key.encrypt(trial, **_gcm(nonce, place))
            return bytes(key.decrypt(sealed, **_gcm(nonce, place))) == trial

        return self._with_named(number, name, call)

    def _with_first(self, number: int, call: Callable[[Any], _Answer]) -> _Answer:
        """The answer of a call on the key of a number that wraps."""

        def ask(session: Any) -> _Answer:
            if not (found := self._all_of(session, number)):
                raise _NotSeen
            return call(min(found, key=lambda one: bytes(one.id)))

        try:
            return self._token.ask(ask)
        except _NotSeen as error:
            raise KeyMissing("The root key that wraps was destroyed meanwhile.") from error

    def _with_named(self, number: int, name: bytes, call: Callable[[Any], _Answer]) -> _Answer:
        """The answer of a call on the key that a slot names."""

        def ask(session: Any) -> _Answer:
            for key in self._all_of(session, number):
                if bytes(key.id) == name:
                    return call(key)
            raise _NotSeen

        try:
            return self._token.ask(ask)
        except _NotSeen as error:
            raise SealBroken("The root key of this key slot was destroyed.") from error

    def _all_of(self, session: Any, number: int) -> list[Any]:
        found = _keys(session, {Attribute.LABEL: f"{self._label}.{number}"})
        return [key for key in found if getattr(key, "id", None)]  # a half-written one has none


class DerivingPkcs11Wrapper(Pkcs11Wrapper):
    """Wrapper whose keys are derived from masters in a PKCS#11 token, one for each owner.

    A token gives no master out, so the wrapping key is its HMAC-SHA256 over the owner's name.
    """

    def make(self, number: int) -> None:
        self._generate(
            number,
            KeyType.GENERIC_SECRET,
            mechanism=Mechanism.GENERIC_SECRET_KEY_GEN,
            capabilities=MechanismFlag.SIGN,
        )

    def seal(self, number: int, place: SlotPlace, key: bytes) -> bytes:
        nonce, info = self._folder.clock.random(vault.NONCE_BYTES), derivation(number, place)

        def call(first: Any) -> tuple[bytes, bytes]:
            return bytes(first.id), bytes(first.sign(info, mechanism=Mechanism.SHA256_HMAC))

        name, secret = self._with_first(number, call)
        where = {"address": place.address, "purpose": place.purpose}
        return name + vault.wrap(secret, key, nonce=nonce, **where)

    def unseal(self, number: int, place: SlotPlace, sealed: bytes) -> bytes:
        name, slot, info = sealed[:_ID_BYTES], sealed[_ID_BYTES:], derivation(number, place)

        def call(key: Any) -> bytes:
            return bytes(key.sign(info, mechanism=Mechanism.SHA256_HMAC))

        secret = self._with_named(number, name, call)
        return vault.unwrap(secret, slot, address=place.address, purpose=place.purpose)


def wrapper_of(url: str, folder: KeysFolder, pin: str | None = None) -> Pkcs11Wrapper:
    """The wrapper that an address names: root keys that wrap, or masters that are derived from."""
    return (DerivingPkcs11Wrapper if derives(url) else Pkcs11Wrapper)(url, folder, pin)


def _keys(session: Any, wanted: dict[Attribute, Any]) -> list[Any]:
    return list(session.get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY, **wanted}))


def _gcm(nonce: bytes, place: SlotPlace) -> dict[str, Any]:
    bound = vault.join(*[part for pair in context(place) for part in pair])
    parameters = GCMParams(nonce, bound, tag_bits=_TAG_BITS)
    return {"mechanism": Mechanism.AES_GCM, "mechanism_param": parameters}


def _checked(url: str) -> tuple[str, str, str, str, float]:
    """Module, token, object, source of the PIN and cache seconds of an address."""
    parts = urlsplit(url)
    given = query_of(parts.query, _KNOWN, _EXAMPLE)
    pairs = [part.partition("=") for part in parts.path.split(";")]
    path = {name: unquote(value) for name, _, value in pairs}
    source = given.get("pin-source", "")
    named = path.keys() == {"token", "object"} and all(path.values()) and given.get("module-path")
    valid = named and given.get("derive", DERIVE) == DERIVE
    if parts.scheme != "pkcs11" or not valid or not (not source or source.startswith("file:")):
        raise InvalidRequest("The address of the root key is not a PKCS#11 URI.", hint=_EXAMPLE)
    return given["module-path"], path["token"], path["object"], source, cache_seconds(given)


def _pin(source: str) -> str:
    if not source:
        raise InvalidRequest("The token needs a PIN, and none was given.", hint=_EXAMPLE)
    try:
        return Path(source.removeprefix("file:")).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest("The file with the PIN cannot be read.", hint=_EXAMPLE) from error


def _unavailable(error: BaseException) -> KeyUnavailable:
    if isinstance(error, _PIN):
        hint = "Correct the PIN and start again: it is not tried twice, since tokens lock."
    else:
        hint = "Check the module, and that the token is there; then try again. Nothing is lost."
    return KeyUnavailable(f"The token refused: {type(error).__name__}.", hint=hint)
