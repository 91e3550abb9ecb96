"""The table of commands, and how a run of one begins and ends.

A run loads the module of the one command it was asked for and builds that command's options only:
all of them together would take longer than most commands do.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from msgspec import Struct

from scrubjay import __version__, settings
from scrubjay.cli import parser
from scrubjay.cli.exits import Declined, Exit, complain, exit_code, hint
from scrubjay.cli.parser import COMMANDS, PROGRAM, Command, WrongUsage
from scrubjay.cli.render import Output, drop_output, say
from scrubjay.model.errors import ScrubjayError

_HELP: Final = "Memory for AI agents: sealed at rest, forgotten for good."
COMPLETE: Final = "_SCRUBJAY_COMPLETE"
"""Environment variable by which a shell asks for the words that may come next."""


class Theme(Struct, frozen=True):
    """Commands that belong together: a heading of the help, and a module."""

    title: str
    module: str
    names: str

    def load(self) -> None:
        """Import the module, which declares its commands."""
        import_module(f"scrubjay.cli.{self.module}")


THEMES: Final = (
    Theme("Remember", "memories", "remember correct pin unpin archive unarchive"),
    Theme("Remember", "turns", "record"),
    Theme(
        "Search and list", "memories", "recall list count get history counters lineage follow brief"
    ),
    Theme("Search and list", "turns", "turns sessions timeline"),
    Theme("Conversations and documents", "turns", "conversations documents"),
    Theme("Search and list", "statistics", "stats inspect"),
    Theme("Erase", "erasure", "forget purge destroy rotate"),
    Theme("Trust", "erasure", "revoke taint quarantine"),
    Theme("Export and backup", "files", "files"),
    Theme("Export and backup", "transfer", "export import backup restore"),
    Theme("Maintain", "maintenance", "freeze unfreeze retention compact reindex verify"),
    Theme("Maintain", "maintenance", "audit receipts scopes"),
    Theme("Export and backup", "cluster", "migrate shards"),
    Theme("Maintain", "turns", "extract jobs"),
    Theme("Maintain", "maintenance", "doctor"),
    Theme("Set up", "setup", "vault config completion"),
    Theme("Carapace", "carapace", "tool carapace"),
    Theme("Serve", "serve", "serve keys plane mcp"),
    Theme("Agents", "agents", "init chat run memory"),
    Theme("Personal memory", "personal", "personal privacy"),
    Theme("Measure", "evaluation", "eval"),
)
SUMMARIES: Final = Path(__file__).with_name("overview.txt")
"""The first sentence of every command; made of the code, so that no help loads every command."""
GROUPS: Final = {
    "conversations": "Conversations: message histories of agents.",
    "files": "Memory as files: CLAUDE.md, preferences.json, transcripts.",
    "documents": "Documents: text and JSON under paths.",
    "quarantine": "Quarantine: untrusted memories that steer agents and wait for review.",
    "vault": "Keyring: what opens the keys, a key file or a passphrase.",
    "config": "Settings, and where each value comes from.",
    "keys": "API keys of the service: create, list, revoke.",
    "carapace": "Carapace: serve and set up its memory.",
    "memory": "Memory of a role file: list, clear, export, import, consolidate, reembed.",
    "shards": "Shards: which database has a scope, and moving it while it is in use.",
    "personal": "Memory of a person: see, correct, restrict, export and destroy it.",
    "privacy": "Privacy of an installation: records of processing, notices to recipients.",
    "plane": "Memory plane of a Clawdapus pod.",
}
"""Commands that are only made of others, with their help."""


_OTHER_WORDS: Final = {
    "remember": "retain add store save note put new",
    "recall": "search find query ask grep",
    "list": "browse ls dump",
    "get": "show cat read view",
    "correct": "supersede edit update change",
    "forget": "delete del rm remove erase",
    "destroy": "drop wipe reset",
    "freeze": "lock pause",
    "serve": "server start run http",
    "doctor": "check status health",
    "stats": "statistics",
    "taint": "mark-tainted",
}
"""What else people call a command, and what they are told then."""


def names() -> Iterator[str]:
    """Every command there is, those within others apart."""
    return (name for theme in THEMES for name in theme.names.split())


def inner_names(group: str) -> list[str]:
    """The commands within one, once its module is loaded."""
    return [name.removeprefix(f"{group} ") for name in COMMANDS if name.startswith(f"{group} ")]


def find(words: Sequence[str]) -> tuple[Command | None, Sequence[str]]:
    """The command that words name, and the words after it; None where they ask for help."""
    if not words or words[0] == "--help":
        return None, words
    name, *rest = words
    theme = next((one for one in THEMES if name in one.names.split()), None)
    if theme is None:
        others = {word: ours for ours, words in _OTHER_WORDS.items() for word in words.split()}
        known = [*names(), "--help", "--version"]
        sort = "option" if name.startswith("-") else "command"
        near = parser.did_you_mean(name, known, others)
        raise WrongUsage(
            f"There is no {sort} {name}{near}",
            hint=f"See `{PROGRAM} --help`.",
        )
    theme.load()
    if rest and f"{name} {rest[0]}" in COMMANDS:
        return COMMANDS[f"{name} {rest[0]}"], rest[1:]
    if name not in GROUPS:
        return COMMANDS[name], rest
    if rest and rest[0] != "--help":
        near = parser.did_you_mean(rest[0], inner_names(name))
        raise WrongUsage(
            f"There is no command {name} {rest[0]}{near}", hint=f"See `{PROGRAM} {name} --help`."
        )
    return None, words


def overview(group: str | None = None) -> str:
    """The help of a group of commands, or of the program: every command with its first sentence."""
    if group is not None:
        inner = [(name, COMMANDS[f"{group} {name}"].summary) for name in inner_names(group)]
        usage = f"Usage: {PROGRAM} {group} COMMAND [OPTIONS]"
        return "\n\n".join((usage, GROUPS[group], parser.listed("Commands", inner))) + "\n"
    parts = [f"Usage: {PROGRAM} COMMAND [OPTIONS]", _HELP]
    titles: dict[str, list[tuple[str, str]]] = {}
    lines = SUMMARIES.read_text("utf-8").splitlines()
    summaries = {name: text for name, _, text in (one.partition(" ") for one in lines)}
    for theme in THEMES:
        shown = [(name, summaries[name]) for name in theme.names.split()]
        titles.setdefault(theme.title, []).extend(shown)
    parts += [parser.listed(title, pairs) for title, pairs in titles.items()]
    parts.append(
        parser.listed(
            "Options", [("--version", "Print the version."), ("--help", "Show this text.")]
        )
    )
    return "\n\n".join(parts) + "\n"


def candidates(words: Sequence[str]) -> list[str]:
    """Shell completion: the commands and options that may follow these words."""
    if not words:
        return [*names(), "--help", "--version"]
    try:
        command, _ = find(words)
    except WrongUsage:
        return []
    inner = inner_names(words[0]) if len(words) == 1 else []
    if command is None:
        return [*inner, "--help"]
    last = next((one for one in command.options if words[-1] in one.names), None)
    if last is not None and last.type is not bool:
        return last.choices
    flags = [
        flag for one in command.options if not one.positional for flag in (*one.names, one.off)
    ]
    return [*inner, *filter(None, flags), "--help"]


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error is one sentence and a hint on stderr, and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    logging.getLogger(PROGRAM).addHandler(logging.NullHandler())  # no log lines on the terminal
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what its encoding lacks is printed as an escape
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _perform(words)
        sys.stdout.flush()
    except ScrubjayError as error:
        complain(error.code, error.message, hint(error), as_json=as_json)
        return exit_code(error)
    except Declined:
        say("Nothing was done.")
        return Exit.FAILURE
    except EOFError:
        said = "The input ended before it was answered."
        complain("aborted", said, "Nothing was done.", as_json=as_json)
        return Exit.FAILURE
    except BrokenPipeError:  # whoever read the output has enough
        drop_output()
        return Exit.FAILURE
    except OSError as error:  # of a file that somebody named; anything else is a fault of ours
        if error.filename is None:
            raise
        said = f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}."
        advice = "Check the path, and that the user who runs this may read and write there."
        complain("invalid_request", said, advice, as_json=as_json)
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPT
    return code


def _perform(words: list[str]) -> int:
    if settings.variable(COMPLETE):
        sys.stdout.write("".join(f"{word}\n" for word in candidates(words)))
        return Exit.OK
    if words[:1] == ["--version"]:
        sys.stdout.write(f"{PROGRAM} {__version__}\n")
        return Exit.OK
    command, rest = find(words)
    if not gc.isenabled():  # `main` left this to us
        gc.freeze()
        gc.enable()
    if command is not None:
        given = command.parse(rest)
        if given is not None:
            as_json = given.pop("as_json", False)
            done = command.function(**given)
            return done.emit(as_json=as_json) if isinstance(done, Output) else done or Exit.OK
        sys.stdout.write(command.help())
        return Exit.OK
    asked = "--help" in words
    group = words[0] if words and words[0] in GROUPS else None
    (sys.stdout if asked else sys.stderr).write(overview(group))
    return Exit.OK if asked else Exit.USAGE
