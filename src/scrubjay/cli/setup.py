"""Commands that set up the program: vault, config, completion.

No process holds the keys between two commands. `vault unlock` puts the passphrase into the shell
that evaluates what it prints, `vault lock` takes it out again.
"""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum

from msgspec.structs import replace

from scrubjay import bootstrap
from scrubjay import settings as reading
from scrubjay.cli import render
from scrubjay.cli.app import COMPLETE
from scrubjay.cli.exits import Exit
from scrubjay.cli.home import confirm, new_passphrase, secret_line, settings
from scrubjay.cli.parser import JSON, PROGRAM, YES, Option, command
from scrubjay.cli.render import Output
from scrubjay.model.errors import InvalidRequest, Locked, NotFound, ScrubjayError
from scrubjay.settings import GivenBy, Settings

_VARIABLE = "SCRUBJAY_PASSPHRASE"
_RENEW = Option(
    "--renew-recovery", "Replace the recovery key; the new one is printed.", name="renew"
)


# -- vault ---------------------------------------------------------------------------------------


@command("vault status", JSON)
def status() -> Output:
    """Show the kind of keyring, its folder, and whether it is unlocked.

    Example: scrubjay vault status
    """
    found = reading.read()
    if bootstrap.in_keychain(found):
        kind = "keyring of the system"
    elif bootstrap.has_passphrase(found):
        kind = "passphrase"
    else:
        kind = "key file" if bootstrap.has_key_file(found) else "none yet"
    opens = "the first write makes a key file"
    if kind != "none yet":
        try:
            bootstrap.keyring(found, bootstrap.clock()).purposes("installation")
            opens = "yes"
        except ScrubjayError as error:
            opens = f"no: {error.message}"
    told = {"kind": kind, "folder": str(found.keys), "opens": opens}
    return Output(told, lambda: render.facts(told))


@command("vault passphrase", _RENEW, YES, JSON)
def passphrase(*, renew: bool = False, yes: bool = False) -> Output:
    """Set or change the passphrase of the keyring. The first time a recovery key is printed.

    Without a terminal the new passphrase is the first line of stdin.

    Example: scrubjay vault passphrase
    """
    found, clock = settings(), bootstrap.clock()
    if not bootstrap.has_passphrase(found):
        deed = "From now on the keys open only with the passphrase or the recovery key."
        confirm(deed, yes=yes)
        return _changed(bootstrap.put_under_passphrase(found, clock, new_passphrase()))
    if found.passphrase is None:
        raise Locked("The present passphrase is needed to change it.")
    wrapper = bootstrap.passphrase_wrapper(found, clock)
    wrapper.unlock(found.passphrase)
    confirm("The present passphrase will open nothing any more.", yes=yes)
    wrapper.change_passphrase(new_passphrase())
    return _changed(wrapper.renew_recovery() if renew else None)


@command("vault keychain", YES, JSON)
def keychain(*, yes: bool = False) -> Output:
    """Move the root key into the keyring of the operating system (Secret Service, Keychain).

    Every slot is wrapped under a new root key, and the key file is destroyed. Running services have
    to be started again. Another machine or user opens nothing of it: keep a backup.

    Example: scrubjay vault keychain
    """
    found = settings()
    confirm("From now on the keys open only where this system's keyring is open.", yes=yes)
    bootstrap.put_in_keychain(found, bootstrap.clock())
    told = {"changed": True}
    return Output(told, lambda: render.say("The root key is in the keyring of the system."))


@command("vault recover", _RENEW, YES, JSON)
def recover(*, renew: bool = False, yes: bool = False) -> Output:
    """Set a new passphrase with the printed recovery key.

    Without a terminal the recovery key and the new passphrase are the first two lines of stdin.

    Example: scrubjay vault recover --renew-recovery
    """
    found = _locked_settings()
    confirm("The passphrase that was set will open nothing any more.", yes=yes)
    wrapper = bootstrap.passphrase_wrapper(found, bootstrap.clock())
    wrapper.unlock_with_recovery(secret_line("Recovery key: "))
    wrapper.change_passphrase(new_passphrase())
    return _changed(wrapper.renew_recovery() if renew else None)


def _locked_settings() -> Settings:
    found = reading.read()
    if not bootstrap.has_passphrase(found):
        raise NotFound("The keys are not locked by a passphrase.", hint="There is nothing to do.")
    return found


def _changed(recovery: str | None) -> Output:
    """The passphrase was set, and perhaps there is a recovery key to be told."""
    told = {"changed": True, "recovery": recovery}
    notes = ["The passphrase is set.", "The recovery key is the one you have."]
    if recovery:
        notes[1] = "Print the recovery key and put it away: without both, nothing opens the keys."
    return Output(told, lambda: sys.stdout.write(f"{recovery}\n" if recovery else ""), notes)


@command("vault unlock")
def unlock() -> None:
    """Print a shell line that exports the passphrase for later commands; checked first.

    Example: eval "$(scrubjay vault unlock)"
    """
    if sys.stdout.isatty():
        raise InvalidRequest(
            "This would show the passphrase on the screen.",
            hint='Write: eval "$(scrubjay vault unlock)"',
        )
    found = _locked_settings()
    given = secret_line("Passphrase: ")
    bootstrap.keyring(replace(found, passphrase=given), bootstrap.clock())
    render.line(f"export {_VARIABLE}={shlex.quote(given)}")


@command("vault lock")
def lock() -> None:
    """Print a shell line that unsets the passphrase.

    Example: eval "$(scrubjay vault lock)"
    """
    render.line(f"unset {_VARIABLE}")


# -- config and completion -----------------------------------------------------------------------


@command("config show", JSON)
def show() -> Output:
    """Show every setting with its source, and what is wrong with it; secrets only as set or not.

    Example: scrubjay config show
    """
    found, wrong = reading.survey()
    terminal = render.on_terminal()  # most values are defaults, which need no word there
    rows = list[tuple[str, ...]]()
    for key, one in found.items():
        value = "" if one.value is None else str(one.value)
        if key in wrong:
            value = f"wrong: {wrong[key].message} {wrong[key].hint}"
        if terminal:
            given = one.source is not GivenBy.DEFAULT
            rows.append((key, value + f" ({one.where or one.source})" * given))
        else:
            rows.append((key, value, f"{one.source} ({one.where})" if one.where else one.source))
    columns = ("key", "value") if terminal else ("key", "value", "from")
    problems = [
        {"key": key, "problem": error.message, "advice": error.hint} for key, error in wrong.items()
    ]
    return Output(
        {"values": list(found.values()), "problems": problems},
        lambda: render.table(columns, rows, lead=0 if terminal else -1),
        code=Exit.USAGE if wrong else Exit.OK,
    )


class Shell(StrEnum):
    """The shells there is completion for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {
    Shell.BASH: """\
_{program}() {{
    local words
    words=$({variable}=1 {program} "${{COMP_WORDS[@]:1:COMP_CWORD-1}}" 2>/dev/null)
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _{program} {program}""",
    Shell.ZSH: """\
_{program}() {{
    local -a found
    found=(${{(f)"$({variable}=1 {program} ${{words[2,CURRENT-1]}} 2>/dev/null)"}})
    compadd -a found || _files
}}
compdef _{program} {program}""",
    Shell.FISH: """\
complete -c {program} -a "({variable}=1 {program} (commandline -opc)[2..-1] 2>/dev/null)\"""",
}


@command("completion", Option("SHELL", "Shell to complete for.", Shell, required=True))
def completion(shell: Shell) -> None:
    """Print the completion script of a shell, for commands and options.

    Example: scrubjay completion bash >> ~/.bashrc
    """
    render.line(_SCRIPTS[shell].format(program=PROGRAM, variable=COMPLETE))
