"""Everyday surroundings of a secret: how tools, files and people write a line that has one."""

# ruff: noqa: RUF001 - punctuation of other scripts is meant.

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote

Context = Callable[[str, str], str]
"""From a line and the secret in it to a text that has the line in these surroundings."""


def wide(text: str) -> str:
    """The text in full-width forms."""
    letters = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
    return text.translate({**letters, 0x20: 0x3000})


def wrapped(text: str, secret: str, continuation: str = "\n") -> str:
    """The secret over two lines: broken at a space where it has some, else in the middle."""
    middle = len(secret) // 2
    at = secret.find(" ", middle)
    halves = (secret[:at], secret[at + 1 :]) if at >= 0 else (secret[:middle], secret[middle:])
    return text.replace(secret, continuation.join(halves)) + "\nafter"


def colored(text: str, secret: str) -> str:
    """As grep colors what it has found: within the secret."""
    return text.replace(secret, f"\x1b[01;31m\x1b[K{secret[:5]}\x1b[m\x1b[K{secret[5:]}")


CONTEXTS: dict[str, Context] = {
    "plain": lambda line, _: line,
    "ANSI color": lambda line, _: f"\x1b[93m{line}\x1b[0m",
    "ANSI color without its escape": lambda line, _: f"[93m{line}[0m",
    "ANSI color as JSON writes it": lambda line, _: f"\\u001b[93m{line}\\u001b[0m",
    "grep color inside": colored,
    "OSC link": lambda line, _: f"\x1b]8;;https://x.example/\x1b\\{line}\x1b]8;;\x1b\\",
    "JSON newline": lambda line, _: json.dumps(f"first\n{line}\nlast"),
    "JSON tab": lambda line, _: json.dumps(f"a\t{line}\tb", ensure_ascii=False),
    "JSON in JSON": lambda line, _: json.dumps({"log": json.dumps({"msg": f"x\n{line}\n"})}),
    "percent": lambda line, _: f"q%3D{line}%26x",
    "percent all": lambda line, _: f"https://x.example/?q={quote(line, safe='')}",
    "percent twice": lambda line, _: f"q%253D{line}",
    "unicode escape": lambda line, _: f"q\\u003d{line}\\u0026x",
    "hex escape": lambda line, _: f"q\\x3d{line}\\x0a",
    "prefix": lambda line, _: f"MY_{line}",
    "name": lambda line, _: f"MY_VALUE={line}",
    "two lines": wrapped,
    "two lines, indented": lambda line, secret: wrapped(line, secret, "\n    "),
    "two lines, backslash": lambda line, secret: wrapped(line, secret, "\\\n"),
    "full-width": lambda line, _: wide(line),
    "single quotes": lambda line, _: f"x = '{line}'",
    "double quotes": lambda line, _: f'x = "{line}"',
    "backticks": lambda line, _: f"x = `{line}`",
    "curly quotes": lambda line, _: f"he said \u201c{line}\u201d",
    "guillemets": lambda line, _: f"elle a dit «{line}»",
    "corner brackets": lambda line, _: f"彼は「{line}」と",
    "XML element": lambda line, _: f"<value>{line}</value>",
    "XML escaped": lambda line, _: f"<log>first&#10;{html.escape(line)}</log>",
    "YAML": lambda line, _: f"first: 1\nsecond:\n  - {line}\nthird: true",
    "YAML block": lambda line, _: f"script: |\n  {line}\n  exit 0",
    "shell export": lambda line, _: f"export VALUE={line}; run",
    "URL query": lambda line, _: f"https://x.example/?a=1&b={line}",
    "Markdown code": lambda line, _: f"Use `{line}` here.",
    "Markdown fence": lambda line, _: f"```\n{line}\n```",
    "Markdown table": lambda line, _: f"| name | {line} |",
    "Markdown bold": lambda line, _: f"**{line}**",
    "full stop": lambda line, _: f"It is {line}. Thanks.",
    "comma": lambda line, _: f"It is {line}, thanks",
    "brackets": lambda line, _: f"(it is {line})",
    "list": lambda line, _: f"[1, {line}, 2]",
    "diff": lambda line, _: f"@@ -1,2 +1,2 @@\n-old\n+{line}\n x",
    "comment": lambda line, _: f"# {line}\n// {line}",
    "log line": lambda line, _: f"2026-05-01T10:00:00Z INFO app[12]: {line} (3 ms)",
    "CSV": lambda line, _: f"id,value,note\n7,{line},ok",
    "carriage returns": lambda line, _: f"first\r\n{line}\r\nlast",
    "Chinese around": lambda line, _: f"他说{line}，谢谢",
}
