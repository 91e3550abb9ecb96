"""config, completion: how the program itself is set up."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from scrubjay import settings as reading
from scrubjay.cli import options, render
from scrubjay.settings import Settings, Value

config = typer.Typer(help="The settings and where they come from.", no_args_is_help=True)


@config.callback()
def _config() -> None:
    """The settings and where they come from."""


@config.command()
def show(*, as_json: options.AsJson = False) -> None:
    """Show every value and where it comes from; secrets only as set or not set.

    Example: scrubjay config show
    """
    found = reading.read()
    values = [*found.values, *_secrets(found)]
    told = {
        "values": [
            {"key": one.key, "value": one.value, "source": one.source.value, "where": one.where}
            for one in values
        ]
    }
    columns = ("key", "value", "from")
    render.emit(told, lambda: render.table(columns, map(_row, values)), as_json=as_json)


def _secrets(found: Settings) -> list[Value]:
    source = reading.GivenBy
    secrets = (("passphrase", found.passphrase), ("openai.api_key", found.openai.api_key))
    return [
        Value(
            key=key,
            value="set" if secret else "not set",
            source=source.ENVIRONMENT if secret else source.DEFAULT,
        )
        for key, secret in secrets
    ]


def _row(one: Value) -> tuple[str, ...]:
    value = "" if one.value is None else str(one.value)
    return one.key, value, f"{one.source} ({one.where})" if one.where else one.source.value


class Shell(StrEnum):
    """The shells Typer completes for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell to complete for.")],
) -> None:
    """Print the script that lets a shell complete commands and options.

    Example: scrubjay completion bash >> ~/.bashrc
    """
    from typer.completion import (  # type: ignore[attr-defined]  # Typer means its own script
        get_completion_script,
    )

    render.line(
        get_completion_script(
            prog_name="scrubjay", complete_var="_SCRUBJAY_COMPLETE", shell=shell.value
        )
    )
