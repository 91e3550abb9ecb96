"""vault: what opens the keys, and changing it.

There is no process that holds the keys between two commands. `unlock` puts the passphrase into
the shell that evaluates what it prints, `lock` takes it out again.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from typing import Annotated

import typer

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.cli import opening, options, render
from scrubjay.cli.confirm import ask_secret, confirm, interactive
from scrubjay.model.errors import InvalidRequest, Locked, NotFound, ScrubjayError
from scrubjay.settings import Settings

vault = typer.Typer(help="What opens the keys: a key file, or a passphrase.", no_args_is_help=True)
_VARIABLE = "SCRUBJAY_PASSPHRASE"
Renew = Annotated[
    bool, typer.Option("--renew-recovery", help="Print a new recovery key; the old one dies.")
]


@vault.command()
def status(*, as_json: options.AsJson = False) -> None:
    """Say what opens the keys, where they are, and whether they can be opened now.

    Example: scrubjay vault status
    """
    found = reading.read()
    told = {"kind": _kind(found), "folder": str(found.keys), "opens": _opens(found)}
    render.emit(
        told,
        lambda: render.facts((name, str(value)) for name, value in told.items()),
        as_json=as_json,
    )


def _kind(found: Settings) -> str:
    if bootstrap.has_passphrase(found):
        return "passphrase"
    return "key file" if bootstrap.has_key_file(found) else "none yet"


def _opens(found: Settings) -> str:
    if _kind(found) == "none yet":
        return "the first write makes a key file"
    try:
        bootstrap.keyring(found, bootstrap.clock()).purposes("installation")
    except ScrubjayError as error:
        return f"no: {error.message}"
    return "yes"


@vault.command()
def passphrase(
    *, renew: Renew = False, yes: options.Yes = False, as_json: options.AsJson = False
) -> None:
    """Lock the keys by a passphrase, or change it. The first time a recovery key is printed.

    Without a terminal the new passphrase is the first line of stdin.

    Example: scrubjay vault passphrase
    """
    found, clock = opening.settings(), bootstrap.clock()
    if not bootstrap.has_passphrase(found):
        deed = "From now on the keys open only with the passphrase or the recovery key."
        if not confirm(deed, yes=yes):
            raise typer.Exit(1)
        recovery = bootstrap.put_under_passphrase(found, clock, _new_passphrase())
        _tell_recovery(recovery, as_json=as_json)
        return
    if found.passphrase is None:
        raise Locked("The present passphrase is needed to change it.")
    keyring = bootstrap.passphrase_keyring(found, clock)
    keyring.unlock(found.passphrase)
    if not confirm("The present passphrase will open nothing any more.", yes=yes):
        raise typer.Exit(1)
    keyring.change_passphrase(_new_passphrase())
    _tell_recovery(keyring.renew_recovery() if renew else None, as_json=as_json)


@vault.command()
def recover(
    *, renew: Renew = False, yes: options.Yes = False, as_json: options.AsJson = False
) -> None:
    """Set a new passphrase with the printed recovery key.

    Without a terminal the recovery key and the new passphrase are the first two lines of stdin.

    Example: scrubjay vault recover --renew-recovery
    """
    found = reading.read()
    if not bootstrap.has_passphrase(found):
        raise NotFound("The keys are not locked by a passphrase.", hint="There is nothing to do.")
    if not confirm("The passphrase that was set will open nothing any more.", yes=yes):
        raise typer.Exit(1)
    keyring = bootstrap.passphrase_keyring(found, bootstrap.clock())
    asked = interactive()
    keyring.unlock_with_recovery(ask_secret("Recovery key: ") if asked else _line())
    keyring.change_passphrase(_new_passphrase())
    _tell_recovery(keyring.renew_recovery() if renew else None, as_json=as_json)


def _new_passphrase() -> str:
    if not interactive():
        new = _line()
    else:
        new = ask_secret("New passphrase: ")
        if new != ask_secret("Once more: "):
            raise InvalidRequest("The two are not the same.", hint="Nothing was changed.")
    if not new:
        raise InvalidRequest("The passphrase is empty.", hint="Nothing was changed.")
    return new


def _line() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _tell_recovery(recovery: str | None, *, as_json: bool) -> None:
    told = {"changed": True, "recovery": recovery}
    render.emit(told, lambda: render.block(f"{recovery}\n" * bool(recovery)), as_json=as_json)
    if as_json:
        return
    render.say("The passphrase is set.")
    if recovery:
        render.say("Print the recovery key and put it away: without both, nothing opens the keys.")
    else:
        render.say("The recovery key is the one you have.")


@vault.command()
def unlock() -> None:
    """Print a shell line that sets the passphrase for the commands to come; checked first.

    Example: eval "$(scrubjay vault unlock)"
    """
    if sys.stdout.isatty():
        raise InvalidRequest(
            "This would show the passphrase on the screen.",
            hint='Write: eval "$(scrubjay vault unlock)"',
        )
    found = reading.read()
    if not bootstrap.has_passphrase(found):
        raise NotFound("The keys are not locked by a passphrase.", hint="There is nothing to do.")
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    given = ask_secret("Passphrase: ") if asked else _line()
    bootstrap.keyring(replace(found, passphrase=given), bootstrap.clock())
    render.line(f"export {_VARIABLE}={shlex.quote(given)}")


@vault.command()
def lock() -> None:
    """Print a shell line that makes the shell forget the passphrase.

    Example: eval "$(scrubjay vault lock)"
    """
    render.line(f"unset {_VARIABLE}")
