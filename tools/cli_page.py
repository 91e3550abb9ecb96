#!/usr/bin/env python3
"""Make docs/cli.md of the code: every command with its options, the settings, the exit codes.

The first sentences of all commands are also kept beside the command line, which reads them for its
overview: to load every command for it would take twice as long.

python tools/cli_page.py            writes docs/cli.md and src/scrubjay/cli/overview.txt
python tools/cli_page.py --check    fails if one of them is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from scrubjay import settings
from scrubjay.cli import app, exits
from scrubjay.cli.parser import COMMANDS, PROGRAM, Command

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """# The command line

Every command is a thin call on the library. Data goes to stdout, messages to stderr. Tables, colors
and progress bars appear only on a terminal; in a pipe a table is tab-separated lines without a
heading. `NO_COLOR` turns colors off. This page is made by `tools/cli_page.py`.

**JSON.** With `--json` a command prints one object, the same that the service answers with under
`/v1` (a list is its `data`). An error is one object on stderr:
`{"ok": false, "error": {"code", "message", "hint"}}`.

**Scopes.** `--scope tenant/owner` selects the scope. `owner` alone means `local/owner`; the default
is `local/default`.

**Times.** An ISO date (`2026-05-01`, its first moment), an ISO time (`2026-05-01T18:30`, local time
unless it names a zone), or a duration: `12h`, `7d`, `2w`. A duration counts forward from now for
`--expires`, and back from now for every other option.

**Confirmation.** A command that cannot be undone shows what it will do and asks: destroy (type the
scope's name), forget by anything but ids, a restore into an existing scope, a new passphrase,
replacing a file. Without a terminal it refuses, unless `--yes` is given. `--dry-run` only shows
what would be done. `purge` does not ask: it deletes what is past the limits set below.

**Passphrase.** No process holds the keys between two commands. If the keys are locked by a
passphrase, each command takes it from `SCRUBJAY_PASSPHRASE` or asks on the terminal. `eval
"$(scrubjay vault unlock)"` sets the variable in one shell, where your other processes on this
machine could read it; `eval "$(scrubjay vault lock)"` removes it.

**Export formats.** `export` writes JSON, a sealed bundle, Markdown to read (it cannot be imported),
or an SQLite file with three tables: `memories` has a row for each memory with `id, kind, content,
said_at, recorded_at, origin, session, speaker, importance, pinned, superseded_by, expires_at` and
the whole `record` as JSON, `tags` has `id, tag`, and `about` describes the file. All formats but
the bundle are readable by anyone who has the file.
"""
SETTINGS = """## Settings

`$SCRUBJAY_HOME` is one folder for everything: the data, the keys (in a folder of their own) and
`config.toml`. If it is not set, the XDG folders are used: the data folder for the data, the
configuration folder for the keys and `scrubjay/config.toml`. `$SCRUBJAY_CONFIG` names another
configuration file. An environment variable overrides the file: `SCRUBJAY_` and the key in capitals,
with `_` for its dot (`SCRUBJAY_OPENAI_URL`). `scrubjay config show` prints each value's source.
"""
EXITS = {
    exits.Exit.OK: "success",
    exits.Exit.FAILURE: "failure; verify or doctor found a problem; the confirmation was declined",
    exits.Exit.USAGE: "usage error, or a confirmation is missing",
    exits.Exit.NOT_FOUND: "no such memory, scope or file",
    exits.Exit.FORBIDDEN: "permission denied for this origin, or a limit is reached",
    exits.Exit.CONFLICT: "conflict: it was changed in the meantime, or the scope was destroyed",
    exits.Exit.FROZEN: "the scope is frozen",
    exits.Exit.UNAVAILABLE: "unavailable: locked, key missing, disk full, busy, or no embedder",
    exits.Exit.INTERRUPT: "interrupted by Ctrl-C",
}


def render() -> str:
    """The page."""
    parts = [HEAD, "\n".join(_exit_codes()), "\n".join(_settings())]
    for theme in app.THEMES:
        theme.load()
    titles = dict.fromkeys(theme.title for theme in app.THEMES)
    for title in titles:
        parts.append(f"## {title}\n")
        names = [
            name for theme in app.THEMES if theme.title == title for name in theme.names.split()
        ]
        parts += [f"{section}" for name in names for section in _commands(name)]
    return "\n".join(parts)


def _summaries() -> Iterator[str]:
    """Each command with its first sentence, in the order of the overview, once all are loaded."""
    for name in app.names():
        yield f"{name} {app.GROUPS.get(name) or COMMANDS[name].summary}"


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n\n| code | means |\n|---|---|"
    yield from (f"| {int(code)} | {EXITS[code]} |" for code in exits.Exit)
    yield ""


def _settings() -> Iterator[str]:
    yield SETTINGS
    yield "| key | means | value | default |\n|---|---|---|---|"
    for key in settings.KEYS:
        default = "" if key.default is None else f"`{str(key.default).lower()}`"
        yield f"| `{key.name}` | {key.means} | {key.wants} | {default} |"
    yield ""


def _commands(name: str) -> Iterator[str]:
    """A section for a command; one for each of those it has of its own."""
    for known, command in COMMANDS.items():
        if known.split()[0] == name:
            yield _section(command)


def _section(command: Command) -> str:
    text, example = command.text
    shown = [one for one in command.options if one.keyword not in ("scope", "as_json", "json")]
    arguments = [one for one in shown if one.positional]
    words = [one.flags if one.required else f"[{one.flags}]" for one in arguments]
    usage = " ".join([PROGRAM, command.name, *words])
    lines = [f"### {command.name}\n", f"`{usage}`\n", f"{text}\n"]
    lines += [f"```\n{example}\n```\n"] if example else []
    if shown:
        lines.append("| option | |\n|---|---|")
        for one in shown:
            flags = ", ".join((*one.names, *filter(None, [one.off])))
            value = "" if one.positional else f" {one.value_name}"
            lines.append(f"| `{(flags + value).strip()}` | {one.explained} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Write the page, or say that it is old."""
    made = {PAGE: render(), app.SUMMARIES: "\n".join(_summaries()) + "\n"}
    if "--check" not in sys.argv[1:]:
        for path, text in made.items():
            path.write_text(text)
        return 0
    old = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in old:
        print(f"{path.name} is not up to date: run python tools/cli_page.py", file=sys.stderr)
    return len(old)


if __name__ == "__main__":
    sys.exit(main())
