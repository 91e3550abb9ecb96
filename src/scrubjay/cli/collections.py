"""Commands about conversations and documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scrubjay.cli import render
from scrubjay.cli.erasure import erased
from scrubjay.cli.home import confirm, scoped, text_of
from scrubjay.cli.parser import PAGING, RECEIPT, YES, Option, fields
from scrubjay.cli.render import Output, local, piece
from scrubjay.handle import Jay
from scrubjay.model.conversations import ReadConversation
from scrubjay.model.documents import Put

_NAME = Option("NAME", "Name of a conversation.", str, required=True)
_PATH = Option("PATH", "Path of a document, such as notes/tea.md.", str, required=True)
_TREE = Option("--tree", "Folder: all documents in it as well.")


def _said(value: Any) -> str:
    """A value as a person reads it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- conversations -------------------------------------------------------------------------------


@scoped("conversations list", PAGING)
def conversations(jay: Jay, **request: Any) -> Output:
    """List conversations, the last written first.

    Example: scrubjay conversations list --limit 20
    """
    found = jay.conversations(**request)
    rows = (
        (piece(one.name), local(one.updated_at), f"{one.entries:,}", piece(one.title))
        for one in found
    )
    return Output(found, lambda: render.table(("name", "written", "entries", "title"), rows))


@scoped("conversations show", _NAME, fields(ReadConversation, "limit -n", "cursor"))
def conversation(jay: Jay, name: str, **request: Any) -> Output:
    """Show the last entries of a conversation, oldest first.

    Example: scrubjay conversations show chat-7 --limit 20
    """
    found = jay.conversation(name, **request)
    rows = ((local(one.at), one.origin, piece(_said(one.body))) for one in found.entries)
    notes = [] if found.next_cursor is None else [f"Earlier ones: --cursor {found.next_cursor}"]
    return Output(found, lambda: render.table(("when", "origin", "entry"), rows), notes)


@scoped("conversations delete", _NAME, RECEIPT, YES)
def delete(jay: Jay, name: str, *, receipt: Path | None = None, yes: bool = False) -> Output:
    """Erase a conversation for good, with the entries that no other one shares.

    Example: scrubjay conversations delete chat-7 --yes
    """
    confirm(f"This erases the conversation {name} for good.", yes=yes)
    return erased(jay.delete_conversation(name), receipt)


# -- documents -----------------------------------------------------------------------------------


@scoped(
    "documents list",
    Option("FOLDER", "Folder to list; all without one.", str),
    PAGING,
)
def documents(jay: Jay, folder: str = "", **request: Any) -> Output:
    """List documents in the order of their names.

    Example: scrubjay documents list notes
    """
    found = jay.documents(folder, values=False, **request)
    rows = (
        (piece(one.path), local(one.updated_at), one.origin, "yes" if one.indexed else "")
        for one in found
    )
    return Output(found, lambda: render.table(("path", "written", "origin", "indexed"), rows))


@scoped("documents show", _PATH)
def document(jay: Jay, path: str) -> Output:
    """Print the value of a document.

    Example: scrubjay documents show notes/tea.md
    """
    found = jay.document(path)
    return Output(found, lambda: render.line(_said(found.value)))


@scoped(
    "documents put",
    _PATH,
    Option("TEXT", "Text of the document; - reads it from stdin.", str, required=True),
    fields(Put, "indexed", "session", "origin", "expected_revision"),
    create=True,
)
def put(jay: Jay, path: str, text: str, **request: Any) -> Output:
    """Write a document, new or in place of the one of that path.

    Example: scrubjay documents put notes/tea.md "Steep for three minutes."
    """
    stored = jay.put(path, text_of(text), **request)
    notes = render.redactions(stored.redacted)
    return Output(stored, lambda: render.line(stored.document.revision), notes)


@scoped(
    "documents move",
    _PATH,
    Option("TO", "The new path, which must be free.", str, required=True),
    _TREE,
)
def move(jay: Jay, path: str, to: str, *, tree: bool = False) -> Output:
    """Give a document another path.

    Example: scrubjay documents move notes/tea.md tea.md
    """
    moved = jay.move(path, to=to, tree=tree)
    return Output(moved, lambda: render.say(f"Moved {render.plural(len(moved), 'document')}."))


@scoped("documents remove", _PATH, _TREE, YES)
def remove(jay: Jay, path: str, *, tree: bool = False, yes: bool = False) -> Output:
    """Remove a document; the path may be used again.

    Example: scrubjay documents remove notes/tea.md --yes
    """
    confirm(f"This removes {path}.", yes=yes)
    done = jay.remove(path, tree=tree)
    return Output(done, lambda: render.say(f"Removed {render.plural(done.removed, 'document')}."))
