"""Requests and results about scopes whose user holds one half of every key."""

from __future__ import annotations

from typing import Annotated, Final

from scrubjay.model.errors import InvalidRequest
from scrubjay.model.memory import Result
from scrubjay.model.text import CheckedRequest, Positive, doc

Passphrase = Annotated[str | None, doc("The passphrase; None if another way is used.")]
OPEN_SECONDS: Final = 900
"""How long a scope that was unlocked stays open when it is not used."""
_WAYS = "Give a passphrase, or the recovery key, and not both."


class Hold(CheckedRequest, frozen=True, kw_only=True):
    """Put a scope under keys of its user, or change what opens one that is."""

    passphrase: Passphrase = None
    keychain: Annotated[
        bool, doc("Whether the keyring of the operating system opens it, for this user there.")
    ] = False

    def __post_init__(self) -> None:
        """InvalidRequest unless there is a way in beside the recovery key."""
        if not self.passphrase and not self.keychain:
            raise InvalidRequest(
                "Nothing would open the scope but its recovery key.",
                hint="Give a passphrase, or keep the key in the keyring of the system.",
            )


class Unlock(CheckedRequest, frozen=True, kw_only=True):
    """Open a scope that its user locked, and take in what waits in its inbox."""

    passphrase: Passphrase = None
    recovery: Annotated[str | None, doc("The printed recovery key.")] = None
    seconds: Annotated[
        Positive, doc("For how long it stays open when it is not used, at most a day.")
    ] = OPEN_SECONDS

    def __post_init__(self) -> None:
        """InvalidRequest unless there is one way in, and the time is at most a day."""
        if (self.passphrase is None) is (self.recovery is None):
            raise InvalidRequest("There is one way in.", hint=_WAYS)
        if self.seconds > 86_400:
            raise InvalidRequest("It stays open for a day at most.")


class Held(Result, frozen=True, kw_only=True):
    """Receipt of a scope that was put under keys of its user."""

    recovery: Annotated[str, doc("The recovery key, shown only here: print it, and keep it apart.")]
    resealed: Annotated[int, doc("How many rows were encrypted under the new keys.")] = 0


class Unlocked(Result, frozen=True, kw_only=True):
    """What became of what waited in the inbox of a scope."""

    stored: Annotated[int, doc("How many writes were stored.")] = 0
    known: Annotated[int, doc("How many were known already.")] = 0
    forgotten: Annotated[int, doc("How many had been forgotten, and stay so.")] = 0
    refused: Annotated[int, doc("How many were refused, and dropped.")] = 0
    waiting: Annotated[int, doc("How many still wait, for example because it is frozen.")] = 0
