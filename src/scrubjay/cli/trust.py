"""revoke and quarantine: what came from where nobody vouches for it."""

from __future__ import annotations

from typing import Annotated

import typer

from scrubjay.cli import options, render
from scrubjay.cli.confirm import confirm
from scrubjay.cli.erase import deliver
from scrubjay.cli.exits import Exit
from scrubjay.cli.opening import opened

quarantine = typer.Typer(
    help="What tells an agent how to act, and waits for a person to look at it.",
    no_args_is_help=True,
)


def revoke(
    *,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="All that this conversation wrote.")
    ] = None,
    channel: Annotated[
        str | None, typer.Option(metavar="NAME", help="All that came by this channel.")
    ] = None,
    receipt: options.ReceiptFile = None,
    yes: options.Yes = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Undo what one session or channel wrote, with everything derived from it.

    What it had corrected is as it was before.

    Example: scrubjay revoke --session browsing --yes
    """
    with opened(scope) as jay:
        whose = f"session {session}" if session else f"channel {channel}"
        deed = f"This erases everything that the {whose} wrote, and what was derived from it."
        if (session is None) != (channel is None) and not confirm(deed, yes=yes):
            raise typer.Exit(Exit.FAILURE)
        deliver(jay.revoke(session=session, channel=channel), receipt, as_json=as_json)


@quarantine.command("list")
def waiting(*, scope: options.ScopeName = None, as_json: options.AsJson = False) -> None:
    """Show what waits, oldest first.

    Example: scrubjay quarantine list
    """
    with opened(scope) as jay:
        found = jay.quarantined()
    told = {"memories": [render.as_object(memory) for memory in found]}
    render.emit(told, lambda: render.memories(found), as_json=as_json)


@quarantine.command()
def approve(
    id: options.Id,
    *,
    yes: options.Yes = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Let a memory out of quarantine, after it was shown as it is.

    Example: scrubjay quarantine approve mem-3f0c
    """
    with opened(scope) as jay:
        memory = jay.get(id)
        render.say(render.plain(memory.content))
        if not confirm(f"This lets {id}, of origin {memory.origin}, steer agents.", yes=yes):
            raise typer.Exit(Exit.FAILURE)
        approved = jay.approve(id, memory.content)
    render.emit(render.as_object(approved), lambda: render.say("Approved."), as_json=as_json)


@quarantine.command()
def reject(
    id: options.Id,
    *,
    receipt: options.ReceiptFile = None,
    yes: options.Yes = False,
    scope: options.ScopeName = None,
    as_json: options.AsJson = False,
) -> None:
    """Erase a memory that is in quarantine, for good.

    Example: scrubjay quarantine reject mem-3f0c --yes
    """
    with opened(scope) as jay:
        if not confirm(f"This erases {id} for good.", yes=yes):
            raise typer.Exit(Exit.FAILURE)
        deliver(jay.reject(id), receipt, as_json=as_json)
