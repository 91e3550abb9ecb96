"""One JSON per verb: library, HTTP, client and command line say the same, field for field."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrubjay import Client, Jay, codec, connect
from scrubjay.model.requests import Caller
from scrubjay.model.scope import Scope
from scrubjay.verbs import VERBS
from tests.serving import serving
from tests.support.engines import SqliteHome

FILES = {"export", "load", "backup", "restore"}
"""They are about files, which each door has in its own way."""
OF_SERVICE = {"forget_one", "scopes", "open", "own_key", "list_keys", "create_key", "revoke_key"}
"""Only a service has these; the library has no keys."""
Fields = Callable[[str], dict[str, Any]]
CASES: dict[str, Fields] = {
    "retain": lambda _: {"content": "Alice drinks tea", "tags": ["a"], "session": "s"},
    "retain_many": lambda _: {"items": ["Alice drinks tea", {"content": ""}, {"content": "x"}]},
    "recall": lambda _: {"query": "tea"},
    "browse": lambda _: {},
    "get": lambda one: {"id": one},
    "history": lambda one: {"id": one},
    "brief": lambda _: {},
    "amend": lambda one: {"id": one, "pinned": True},
    "record": lambda _: {"user": "My name is Alice.", "assistant": "Hello.", "session": "s"},
    "turns": lambda _: {},
    "timeline": lambda _: {},
    "sessions": lambda _: {},
    "preview": lambda one: {"ids": [one]},
    "supersede": lambda one: {"id": one, "content": "Alice drinks coffee"},
    "mark_tainted": lambda _: {"session": "s"},
    "quarantined": lambda _: {},
    "approve": lambda one: {"id": one, "content": "Always answer in French"},
    "reject": lambda one: {"id": one},
    "revoke": lambda _: {"session": "s"},
    "freeze": lambda _: {"level": "none"},
    "purge": lambda _: {},
    "rotate": lambda _: {},
    "extraction": lambda _: {},
    "pause_extraction": lambda _: {},
    "verify_audit": lambda _: {},
    "audit": lambda _: {},
    "forget": lambda one: {"ids": [one]},
    "receipts": lambda _: {},
    "verify": lambda _: {},
    "verify_erased": lambda _: {},
    "reindex": lambda _: {},
}
WITHOUT = {"extract": "it needs a model", "destroy": "tested below, as the last of all"}
COMMANDS: dict[str, list[str]] = {
    "retain": ["remember", "Alice drinks tea", "--tag", "a", "--session", "s"],
    "recall": ["recall", "tea"],
    "browse": ["list"],
    "get": ["get", "ID"],
    "history": ["history", "ID"],
    "brief": ["brief"],
    "record": ["record", "My name is Alice.", "Hello.", "--session", "s"],
    "turns": ["turns"],
    "sessions": ["sessions"],
    "preview": ["forget", "ID", "--dry-run"],
    "quarantined": ["quarantine", "list"],
    "freeze": ["unfreeze"],
    "purge": ["purge"],
    "rotate": ["rotate"],
    "audit": ["audit"],
    "forget": ["forget", "ID", "--yes"],
    "verify": ["verify"],
    "supersede": ["correct", "ID", "Alice drinks coffee"],
    "amend": ["pin", "ID"],
    "revoke": ["revoke", "--session", "s", "--yes"],
    "reindex": ["reindex"],
}
"""The command of a verb, where there is one that says no more and no less."""


MASKS = {
    r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)": "<time>",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "<uuid>",
    r"\b[0-9a-f]{16,}\b": "<hex>",
    r"\b[a-z2-7]{26}\b": "<address>",
    r"\bacme/(library|client)\b": "<scope>",
}


def masked(value: Any) -> Any:
    """An answer without what must differ: times and ages, ids, nonces and names of scopes."""
    if isinstance(value, dict):
        return {name: masked(one) for name, one in value.items() if name != "age"}
    if isinstance(value, float):
        return round(value, 5)  # a score counts the age, too
    if isinstance(value, list):
        return [masked(one) for one in value]
    if isinstance(value, str):
        for pattern, mask in MASKS.items():
            value = re.sub(pattern, mask, value)
    return value


@pytest.fixture
def home(tmp_path: Path) -> SqliteHome:
    return SqliteHome(tmp_path / "home")


@pytest.fixture
def doors(home: SqliteHome) -> Iterator[tuple[Jay, Client, list[Any]]]:
    """The library and the client on scopes of their own, and what HTTP answered."""
    engine, scope = home.engine(), Scope("acme", "library")
    engine.open(scope)
    told: list[Any] = []

    def listen(response: Any) -> None:
        response.read()
        told.append(response.json())

    with serving(engine, home.clock) as running:
        key = running.key("acme/client")
        with connect(running.url, key, create=True) as client:
            client._engine._http.event_hooks = {"response": [listen]}  # type: ignore[attr-defined]
            library = Jay(engine, scope)
            library._caller = Caller(key=key.split("_")[1])  # stamped, as what comes by HTTP is
            yield library, client, told
    engine.close()


def test_every_verb_is_compared() -> None:
    compared = {*CASES, *WITHOUT, *FILES, *OF_SERVICE}
    assert set(VERBS) == compared, "a new verb needs a case here"


@pytest.mark.parametrize("name", CASES)
def test_library_http_and_client_say_the_same(
    doors: tuple[Jay, Client, list[Any]], name: str
) -> None:
    library, client, told = doors
    said = []
    for jay in (library, client):
        kept = {"kind": "instruction", "origin": "web"} if name in ("approve", "reject") else {}
        content = "Always answer in French" if kept else "Alice likes tea"
        one = jay.retain(content, session="s", key="k", **kept).id  # type: ignore[arg-type]
        jay.record("I live in Rome.", "Noted.", id="turn-1", session="s")
        given = jay.forget([one]) if name == "verify_erased" else None
        if given is not None:
            said.append(codec.answer(jay.verify(given)))
        else:
            said.append(codec.answer(getattr(jay, name)(**CASES[name](one))))
    assert said[1] == told[-1], "the client gives back what it was told"
    assert masked(said[0]) == masked(told[-1])


def test_a_destroyed_scope_is_told_of_alike(doors: tuple[Jay, Client, list[Any]]) -> None:
    library, client, told = doors
    mine = library.destroy(confirm="acme/library").to_dict()
    theirs = client.destroy(confirm="acme/client").to_dict()
    assert theirs == told[-1]
    assert masked(mine) == masked(theirs)


def test_the_command_line_says_what_the_library_says(tmp_path: Path) -> None:
    """Each command and the library begin on copies of one home, so that even ids are equal."""
    import scrubjay

    prepared = tmp_path / "prepared"
    with scrubjay.open("default", home=prepared) as jay:
        one = jay.retain("Alice drinks tea", session="s").id
        jay.record("I live in Rome.", "Noted.", id="turn-1", session="s")
    for name, words in COMMANDS.items():
        mine, theirs = tmp_path / f"{name}-library", tmp_path / f"{name}-command"
        for copy in (mine, theirs):
            shutil.copytree(prepared, copy)
        argv = [one if word == "ID" else word for word in words]
        ran = subprocess.run(
            [sys.executable, "-m", "scrubjay", *argv, "--json"],
            env={**os.environ, "SCRUBJAY_HOME": str(theirs)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == 0, (name, ran.stderr)
        with scrubjay.open("default", home=mine) as jay:
            said = codec.answer(getattr(jay, name)(**CASES[name](one)))
        assert masked(json.loads(ran.stdout)) == masked(said), name
