"""Unicode cleaning: of texts to store, and of lines for a prompt.

`clean` runs at every write and takes out only what nobody can see or nothing may hold; all else is
stored as written. `one_line` runs at every render and yields one line that cannot pass for another
one, for a heading or for a turn of the conversation.
"""

from __future__ import annotations

import re
import unicodedata

from scrubjay.model.text import lazy_pattern

MOST_MARKS = 4
"""Maximum number of combining marks on one letter; more would paint over other lines."""

_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that neither break a line nor space words
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, selectors
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"  # zero width, direction, format
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffc"  # variation selectors, byte order mark, annotation
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff"  # surrogates, private, noncharacters
)
_INVISIBLE_BEYOND = (
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # format of old scripts
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff"  # tags, further selectors, private planes
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(1, 15))
)
_ESCAPE_SEQUENCE = lazy_pattern(
    # ECMA-48. A string (OSC, DCS, SOS, PM, APC) whose end is missing loses only its introducer and
    # its numbers: the words behind it are the text. The `+` behind a repeat keeps time linear.
    "(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])"
    "(?:[^\x07\n\x1b\x90\x98\x9b-\x9f]*+(?:\x07|\x9c|\x1b\\\\)|[0-9;]*+)"
    "|(?:\x1b\\[|\x9b)[0-?]*+[ -/]*+[@-~]?"  # CSI: parameters, intermediates, the final byte
    "|\x1b(?:[ -/]++[0-~]?|[0-Z\\\\c|}~])"  # character sets, and functions of two characters
)
# Two classes instead of one: a class within the first plane is looked up, not searched.
_DELETED = lazy_pattern(f"[{_INVISIBLE}]")
_DELETED_BEYOND = lazy_pattern(f"[{_INVISIBLE_BEYOND}]")
_BEYOND = lazy_pattern("[\U00010000-\U0010ffff]")
_BREAK = lazy_pattern("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNIT_SEPARATOR = "\x1f"
_BRAILLE_BLANK = "\u2800"

_JOINERS = "\u200c\u200d"
_STYLES = "\ufe0e\ufe0f"
_JOINED = lazy_pattern(f"[{_JOINERS}{_STYLES}]+")
_KEYCAP = "\u20e3"
_EMOJI = lazy_pattern(
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf"
    "\u23e9-\u23f3\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff]"
)
# Scripts in which a joiner changes the shape of letters, and so belongs to the spelling: Arabic and
# its kin, Mongolian, and the scripts of South and Southeast Asia that stack consonants.
_JOINING = lazy_pattern(
    "[\u0600-\u07ff\u0840-\u086f\u0870-\u0dff\u0f00-\u109f\u1780-\u17ff\u1800-\u18af"
    "\u1a20-\u1aaf\u1b00-\u1bff\ua840-\ua87f\ua8e0-\ua8ff\ua980-\ua9df\ufb50-\ufdcf\ufdf0-\ufdff"
    "\ufe70-\ufefe\U00010a00-\U00010aff\U00010b80-\U00010baf\U00010d00-\U00010d3f"
    "\U00010f30-\U00010fff\U00011000-\U00011c6f\U0001e900-\U0001e95f]"
)
_MANY_MARKS = lazy_pattern(rf"[^\w\s!-~]{{{MOST_MARKS + 1}}}")
"""Where there may be too many combining marks: they are neither of a word nor printable ASCII."""

_MARKS = lazy_pattern(
    r"(?:>\ ?|[-*+](?:\ |$)|\#{1,6}(?:\ |$)|`{3,}\ ?|~{3,}\ ?|<!--\ ?|\|\ ?|(?:[-*_=]\ ?){3,}$)+",
    re.VERBOSE,
)
_NUMBERED = lazy_pattern(r"([0-9]{1,9})[.)](?= |$)")
_ROLE = lazy_pattern(r"(?i)((?:system|assistant|user|human|developer|tool|function|model|ai)\s?):")
# One character of each token is enough to break it. The look-arounds see only characters that are
# not themselves replaced, and so a second run finds nothing the first has made.
_TEMPLATE = lazy_pattern(
    r"(?i)<(?=\||/?(?:s|sys|start_of_turn|end_of_turn)>|/?mem-"
    r"|/?(?:memory|memories|system|assistant|user|human|tool|function)\b)|(?<=\|)>|\[(?=/?inst\])"
)
_HARMLESS = {"<": "\u2039", ">": "\u203a", "[": "("}
_SCHEME = lazy_pattern(r"(?i)\b(javascript|vbscript|data(?=:[a-z0-9.+/-]{0,100}[;,])):")
_COLON = "\u2236"
"""A ratio sign: reads as a colon, ends neither a role nor a scheme."""


def clean(text: str) -> str:
    """The text without invalid and invisible characters, with one kind of line break; idempotent.

    Terminal escape sequences (colors, titles, links) go as a whole, also where one is cut off.
    A joiner stays where a script or an emoji needs one, and so does the selector of an emoji.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = _BREAK.sub("\n", text).replace(_UNIT_SEPARATOR, " ")
    text = _DELETED.sub("", text)
    if _BEYOND.search(text):
        text = _DELETED_BEYOND.sub("", text)
    return _JOINED.sub(_needed, text)


def one_line(text: str, *, most: int | None = None) -> str:
    """The text as one line for a prompt, of at most `most` characters; idempotent.

    Spaces are collapsed, no mark of a list, heading, quote or fence leads it, and what would pass
    for a turn of the conversation is written with harmless look-alikes.
    """
    line = clean(text)
    if not line.isascii():
        if _MANY_MARKS.search(line):
            line = _JOINED.sub(_needed, _with_few_marks(line))
        line = line.replace(_BRAILLE_BLANK, " ")
    line = " ".join(line.split())
    if most is not None:
        line = _cut(line, most)
    if "<" in line or "|>" in line or "[" in line:  # no token of a chat template
        line = _TEMPLATE.sub(lambda token: _HARMLESS[token[0]], line)
    lowered = line.lower()  # a plain search is many times as fast, and nearly always the last word
    if "script:" in lowered or "data:" in lowered:  # no scheme that runs what follows it
        line = _SCHEME.sub(rf"\1{_COLON}", line)
    if marks := _MARKS.match(line):  # no mark that begins a block, a list or somebody's turn
        line = line[marks.end() :].lstrip(" ")
    if number := _NUMBERED.match(line):
        return number[1] + line[number.end() :]
    if role := _ROLE.match(line):
        return role[1] + _COLON + line[role.end() :]
    return line


def _needed(run: re.Match[str]) -> str:
    """Of a run of joiners and selectors, what its neighbors need."""
    text, (start, end) = run.string, run.span()
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    follows_emoji = bool(_EMOJI.match(before))
    is_styled = follows_emoji or (after == _KEYCAP and before and before in "0123456789#*")
    style = run[0][0] if is_styled and run[0][0] in _STYLES else ""
    joiners = [mark for mark in run[0] if mark in _JOINERS]
    if len(joiners) != 1:
        return style
    if follows_emoji and _EMOJI.match(after):
        return style + joiners[0]
    return joiners[0] if not style and _joins(before) and _joins(after) else style


def _joins(letter: str) -> bool:
    """Whether this is a letter, or a mark on one, of a script with joiners."""
    return bool(_JOINING.match(letter)) and unicodedata.category(letter)[0] in "LM"


def _with_few_marks(line: str) -> str:
    """The line with at most four marks on a letter; a joiner between them starts no new count."""
    kept, marks = [], 0
    for letter in line:
        kind = unicodedata.category(letter)
        if kind[0] == "M" and letter not in _STYLES:
            marks += 1
        elif kind != "Cf":
            marks = 0
        if not marks or marks <= MOST_MARKS or kind == "Cf":
            kept.append(letter)
    return "".join(kept)


def _cut(line: str, most: int) -> str:
    """At most `most` characters, and none torn from what is drawn onto it or joined to it."""
    end = most if len(line) > most else len(line)
    while 0 < end < len(line):
        before, after = line[end - 1], line[end]
        is_flag = all("\U0001f1e6" <= half <= "\U0001f1ff" for half in (before, after))
        is_skin = "\U0001f3fb" <= after <= "\U0001f3ff"
        is_joined = before in _JOINERS or after in _JOINERS
        if not (is_joined or is_skin or is_flag or unicodedata.category(after)[0] == "M"):
            break
        end -= 1
    return line if end == len(line) else line[:end].rstrip(" ")
