#!/usr/bin/env python3
"""Make docs/cli.md of the code: every command with its options, the settings, the exit codes.

python tools/cli_page.py            writes docs/cli.md
python tools/cli_page.py --check    fails if the page is not up to date
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

Every command is a thin call on the library. Data goes to stdout, messages to stderr; `--json`
prints one object, the one that the service answers with under `/v1` (a list is its `data`), and an
error then is one as well, on stderr: `{"ok": false, "error": {"code", "message", "hint"}}`. Tables,
colors and progress bars are for a terminal only; piped, a table is lines with tabs and no heading,
and `NO_COLOR` is heeded. This page is made by `tools/cli_page.py`.

**Scopes.** `--scope tenant/owner` says whose memory it is; `owner` alone means `local/owner`,
nothing means `local/default`.

**Times.** An ISO date (`2026-05-01`, its first moment), an ISO time (`2026-05-01T18:30`, where
you are unless it names a zone), or a duration: `12h`, `7d`, `2w`, ahead for `--expires`, back for
all others.

**What cannot be undone** is shown and asked: destroy (type the scope's name), forget by anything
but ids, a restore over a scope that is there, another passphrase, a file that would be replaced.
Without a terminal these refuse, unless `--yes` is there. `--dry-run` shows what would be done.
`purge` does not ask: it takes what is past the times set below.

**The passphrase.** No process holds the keys between two commands. Where a passphrase locks them,
a command takes it from `SCRUBJAY_PASSPHRASE` or asks on the terminal; `eval "$(scrubjay vault
unlock)"` sets the variable in one shell, which every process of yours on this machine could read
there, and `eval "$(scrubjay vault lock)"` removes it.

**Copies.** `export` writes JSON, a sealed bundle, Markdown to read (it cannot be imported), or a
plain SQLite file: `memories` has a row for each with `id, kind, content, said_at, recorded_at,
origin, session, speaker, importance, pinned, superseded_by, expires_at` and the whole `record` as
JSON, `tags` has `id, tag`, and `about` says what it is. All but the bundle are readable.
"""
SETTINGS = """## Settings

`$SCRUBJAY_HOME` holds the data, in a folder of its own the keys, and `config.toml`. Without it they
are in the XDG folders: data in the data one, keys and `scrubjay/config.toml` in the configuration
one. `$SCRUBJAY_CONFIG` names another file. A variable of the environment goes before the file;
`scrubjay config show` says where each value comes from.
"""
EXITS = {
    exits.Exit.OK: "it is done",
    exits.Exit.FAILURE: "it failed, or verify or doctor found a problem, or the answer was no",
    exits.Exit.USAGE: "the command was written wrongly, or was not confirmed",
    exits.Exit.NOT_FOUND: "no such memory, scope or file",
    exits.Exit.FORBIDDEN: "this origin may not do that, or a limit is reached",
    exits.Exit.CONFLICT: "somebody changed it first, or the scope was destroyed",
    exits.Exit.FROZEN: "the scope is frozen",
    exits.Exit.UNAVAILABLE: "locked, a key is missing, the disk is full, busy, or no embedder",
    exits.Exit.INTERRUPT: "Ctrl-C",
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


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n\n| code | means |\n|---|---|"
    yield from (f"| {int(code)} | {EXITS[code]} |" for code in exits.Exit)
    yield ""


def _settings() -> Iterator[str]:
    yield SETTINGS
    yield "| key | variable | means | default |\n|---|---|---|---|"
    for key in settings.KEYS:
        default = "" if key.default is None else f"`{str(key.default).lower()}`"
        yield f"| `{key.name}` | `{key.variable}` | {key.means}: {key.wants} | {default} |"
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
    made = render()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made)
        return 0
    if PAGE.exists() and PAGE.read_text() == made:
        return 0
    print("docs/cli.md is not up to date: run python tools/cli_page.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
