"""From a command to the library: settings, the passphrase if one is needed, the open handle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from scrubjay import bootstrap
from scrubjay import handle as library
from scrubjay import settings as reading
from scrubjay.cli import confirm
from scrubjay.cli.installation import Installation
from scrubjay.handle import Jay
from scrubjay.model.errors import NotFound
from scrubjay.model.scope import Scope
from scrubjay.settings import Settings


def settings() -> Settings:
    """The settings, with the passphrase a person types if the keys are locked by one."""
    found = reading.read()
    if found.passphrase is None and confirm.interactive() and bootstrap.has_passphrase(found):
        return replace(found, passphrase=confirm.ask_secret("Passphrase: "))
    return found


def superseded_days() -> int:
    """How long the settings have purge leave what was superseded."""
    return reading.read().superseded_days


def scope_of(name: str | None, found: Settings) -> Scope:
    """The scope a command means."""
    return Scope.parse(name or found.scope)


@contextmanager
def opened(name: str | None, *, create: bool = False, anew: bool = False) -> Iterator[Jay]:
    """The handle on a scope; only what writes makes one that is not there."""
    found = settings()
    scope = str(scope_of(name, found))
    if not create and not found.data.exists():
        # Asking the library would make the keys folder of an installation nobody wanted.
        raise NotFound(f"There is no scope {scope}.", hint="It is made by the first write.")
    with library.open(scope, passphrase=found.passphrase, create=create, anew=anew) as jay:
        yield jay


@contextmanager
def installed(*, create: bool = False) -> Iterator[Installation]:
    """The handle on all scopes together; only what writes makes a home that is not there."""
    with Installation(settings(), create=create) as installation:
        yield installation
