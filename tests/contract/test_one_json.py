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

import httpx2
import pytest
from msgspec.structs import replace

import scrubjay
from scrubjay import Client, Grant, Jay, bootstrap, codec, connect
from scrubjay.model.requests import Caller
from scrubjay.model.scope import Scope
from scrubjay.settings import ExtractionSettings, at_home
from scrubjay.verbs import VERBS
from tests.acceptance.talk import Answering
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
    "count": lambda _: {"kinds": ["fact"], "where": {"project": "apollo"}},
    "counters": lambda one: {"ids": [one]},
    "lineage": lambda one: {"id": one},
    "follow": lambda _: {},
    "statistics": lambda _: {},
    "brief": lambda _: {},
    "amend": lambda one: {"id": one, "pinned": True},
    "record": lambda _: {"user": "My name is Alice.", "assistant": "Hello.", "session": "s"},
    "turns": lambda _: {},
    "timeline": lambda _: {},
    "sessions": lambda _: {},
    "append": lambda _: {"conversation": "s", "entries": [{"body": {"a": ["ü"]}}]},
    "conversation": lambda _: {"conversation": "c"},
    "conversations": lambda _: {"where": {"n": {"$gt": 1}}},
    "branch": lambda _: {"conversation": "c", "into": "d"},
    "rewind": lambda _: {"conversation": "c", "at": 1},
    "delete_conversation": lambda _: {"conversation": "c"},
    "put": lambda _: {"name": ["a", "a"], "value": {"b": [1, None]}, "indexed": True},
    "document": lambda _: {"name": "f/a"},
    "documents": lambda _: {"prefix": "f", "where": {"n": 2}},
    "move": lambda _: {"name": "f", "to": "g", "tree": True},
    "remove": lambda _: {"name": "f/a"},
    "preview": lambda one: {"ids": [one]},
    "supersede": lambda one: {"id": one, "content": "Alice drinks coffee"},
    "mark_tainted": lambda _: {"session": "s"},
    "quarantined": lambda _: {},
    "approve": lambda one: {"id": one, "content": "Always answer in French"},
    "reject": lambda one: {"id": one},
    "revoke": lambda _: {"session": "s"},
    "freeze": lambda _: {"level": "none"},
    "purge": lambda _: {},
    "retention": lambda _: {},
    "set_retention": lambda _: {
        "limits": [{"kind": "fact", "number": 500}],
        "conversations": {"days": 90},
        "duplicates": "latest",
    },
    "rotate": lambda _: {},
    "holdings": lambda _: {},
    "purposes": lambda _: {},
    "set_purpose": lambda _: {"purpose": "patterns", "on": False},
    "extraction": lambda _: {},
    "pause_extraction": lambda _: {},
    "jobs": lambda _: {},
    "allow_jobs": lambda _: {"kinds": ["consolidation"]},
    "work": lambda _: {},
    "verify_audit": lambda _: {},
    "audit": lambda _: {},
    "forget": lambda one: {"ids": [one]},
    "receipts": lambda _: {},
    "verify": lambda _: {},
    "verify_erased": lambda _: {},
    "reindex": lambda _: {},
    "compact": lambda _: {"dry_run": True},
}
APART = {
    "extract": "it needs a model",
    "destroy": "it is the last of all",
    "inspect": "it shows random bytes",
    "destroy_token": "it is another one each time",
    "hold": "its recovery key is another one each time",
    "unlock": "it is of a scope that its user holds",
    "lock": "it is of a scope that its user holds",
}
"""Scope verbs with a test of their own."""
COMMANDS: dict[str, list[str]] = {
    "retain": ["remember", "Alice drinks tea", "--tag", "a", "--session", "s"],
    "recall": ["recall", "tea"],
    "browse": ["list"],
    "get": ["get", "ID"],
    "history": ["history", "ID"],
    "count": ["count", "--kind", "fact", "--where", "project=apollo"],
    "counters": ["counters", "ID"],
    "lineage": ["lineage", "ID"],
    "follow": ["follow"],
    "statistics": ["stats"],
    "inspect": ["inspect"],
    "brief": ["brief"],
    "record": ["record", "My name is Alice.", "Hello.", "--session", "s"],
    "turns": ["turns"],
    "sessions": ["sessions"],
    "preview": ["forget", "ID", "--dry-run"],
    "quarantined": ["quarantine", "list"],
    "freeze": ["unfreeze"],
    "purge": ["purge"],
    "retention": ["retention"],
    "set_retention": [
        "retention",
        "--keep",
        "fact=500",
        "--days",
        "conversations=90",
        "--duplicates",
        "latest",
    ],
    "rotate": ["rotate"],
    "purposes": ["personal", "purposes"],
    "audit": ["audit"],
    "forget": ["forget", "ID", "--yes"],
    "verify": ["verify"],
    "supersede": ["correct", "ID", "Alice drinks coffee"],
    "amend": ["pin", "ID"],
    "revoke": ["revoke", "--session", "s", "--yes"],
    "reindex": ["reindex"],
    "compact": ["compact", "--dry-run"],
    "document": ["documents", "show", "f/a"],
    "conversation": ["conversations", "show", "c"],
    "conversations": ["conversations", "list"],
    "delete_conversation": ["conversations", "delete", "c", "--yes"],
    "move": ["documents", "move", "f", "g", "--tree"],
    "remove": ["documents", "remove", "f/a", "--yes"],
    "timeline": ["timeline"],
    "mark_tainted": ["taint", "--session", "s"],
    "approve": ["quarantine", "approve", "WAITING", "--yes"],
    "reject": ["quarantine", "reject", "WAITING", "--yes"],
    "extraction": ["extract", "--status"],
    "pause_extraction": ["extract", "--pause"],
    "extract": ["extract"],
    "jobs": ["jobs"],
    "allow_jobs": ["jobs", "--allow", "consolidation"],
    "work": ["jobs", "--work"],
    "verify_audit": ["audit", "verify"],
    "receipts": ["receipts"],
    "verify_erased": ["verify", "--erased", "RECEIPT"],
    "destroy": ["destroy", "--yes"],
}
"""The command of each verb; ids and a receipt are put in."""
NO_COMMAND = {
    "retain_many": "programs write many at once; a person imports a file",
    "append": "a program keeps its history; a person looks at it",
    "branch": "a program keeps its history; a person looks at it",
    "rewind": "a program keeps its history; a person looks at it",
    "documents": "its command leaves the values out",
    "put": "its command writes text, no JSON",
    "holdings": "its command, `personal status`, says whose they are",
    "destroy_token": "its command, `personal destroy`, asks for both steps",
    "hold": "its command, `personal hold`, asks for the passphrase",
    "unlock": "its command, `personal unlock`, asks for the passphrase",
    "lock": "a command keeps no key after it has ended",
    "set_purpose": "its command, `personal purpose`, says what there is to erase",
}


UNEQUAL = {"age", "milliseconds"}
MASKS = {
    r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)": "<time>",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "<uuid>",
    r"\b[0-9a-f]{16,}\b": "<hex>",
    r"\b[a-z2-7]{26}\b": "<address>",
    r"\bacme/(library|client)\b": "<scope>",
}


def masked(value: Any) -> Any:
    """An answer without what must differ: times and ages, ids, nonces, names, signed cursors."""
    if isinstance(value, dict):
        signed = {"next_cursor": "<cursor>"} if value.get("next_cursor") else {}
        return {name: masked(one) for name, one in value.items() if name not in UNEQUAL} | signed
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
    assert {*COMMANDS, *NO_COMMAND} == {*CASES, *APART}, "a new verb needs a command, or a reason"
    compared = {*CASES, *APART, *FILES, *OF_SERVICE}
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
        said_of = {"session": "s", "key": "k", "metadata": {"project": "apollo"}, **kept}
        one = jay.retain(content, **said_of).id  # type: ignore[arg-type]
        jay.record("I live in Rome.", "Noted.", id="turn-1", session="s")
        jay.append("c", [{"body": 1, "id": "e1"}, {"body": "x"}], metadata={"n": 2}, origin="user")
        jay.put("f/a", {"n": 2})
        given = jay.forget([one]) if name == "verify_erased" else None
        if given is not None:
            said.append(codec.answer(jay.verify(given)))
        else:
            said.append(codec.answer(getattr(jay, name)(**CASES[name](one))))
    assert said[1] == told[-1], "the client gives back what it was told"
    assert masked(said[0]) == masked(told[-1])


def test_every_door_shows_the_same_of_a_file_without_a_key(
    doors: tuple[Jay, Client, list[Any]],
) -> None:
    library, client, told = doors
    shown = [one.inspect() for one in (library, client)]
    assert codec.answer(shown[1]) == told[-1]
    for one in shown:
        assert (one.title, one.columns[:2], one.words) == (
            "a scope: sealed rows",
            ("seq", "born"),
            (),
        )


def test_a_destroyed_scope_is_told_of_alike(doors: tuple[Jay, Client, list[Any]]) -> None:
    library, client, told = doors
    mine = library.destroy(confirm="acme/library").to_dict()
    theirs = client.destroy(confirm="acme/client").to_dict()
    assert theirs == told[-1]
    assert masked(mine) == masked(theirs)


def test_extraction_is_told_of_alike(home: SqliteHome) -> None:
    """Paused, so that no background thread reads a turn before it is asked for."""
    engine, scope = bootstrap.build(at_home(home.folder), extractor=Answering()), Scope("a", "b")
    with serving(engine, home.clock) as running, connect(running.url, running.key("c/d")) as client:
        engine.open(scope)
        engine.open(Scope("c", "d"))
        said = []
        for jay in (Jay(engine, scope), client):
            jay.pause_extraction()
            jay.record("I live in Rome.", "Noted.", id="turn-1")
            said.append(codec.answer(jay.extract()))
    engine.close()
    assert said[0] == said[1]
    assert said[0]["stopped"] == "paused"


def ran(home: Path, *argv: str) -> Any:
    """What a command says with `--json`, on a home of its own."""
    model = {"SCRUBJAY_EXTRACTION_URL": "http://127.0.0.1:9/v1", "SCRUBJAY_EXTRACTION_MODEL": "m"}
    done = subprocess.run(
        [sys.executable, "-m", "scrubjay", *argv, "--json"],
        env={**os.environ, "SCRUBJAY_HOME": str(home), **model},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, (argv, done.stderr)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home that commands and the library begin on, and the words to put into commands."""
    folder = tmp_path_factory.mktemp("prepared")
    receipt = folder / "receipt.json"
    with scrubjay.open("default", home=folder / "home") as jay:
        one = jay.retain("Alice drinks tea", session="s", metadata={"project": "apollo"}).id
        waiting = jay.retain("Always answer in French", kind="instruction", origin="web").id
        jay.record("I live in Rome.", "Noted.", id="turn-1", session="s")
        jay.append("c", [{"body": 1, "id": "e1"}, {"body": "x"}], metadata={"n": 2})
        jay.put("f/a", {"n": 2})
        erased = jay.forget([jay.retain("Alice lives in Rome").id])
        receipt.write_text(json.dumps(erased.to_dict()))
        jay.pause_extraction()
    return folder / "home", {"ID": one, "WAITING": waiting, "RECEIPT": str(receipt)}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_says_what_the_library_says(
    prepared: tuple[Path, dict[str, str]], name: str, tmp_path: Path
) -> None:
    """The command and the library begin on copies of one home, so that even ids are equal."""
    home, words = prepared
    mine, theirs = tmp_path / "library", tmp_path / "command"
    for copy in (mine, theirs):
        shutil.copytree(home, copy)
    told = ran(theirs, *(words.get(word, word) for word in COMMANDS[name]))
    one = words["WAITING" if name in ("approve", "reject") else "ID"]
    fields = {"destroy": {"confirm": "local/default"}, "extract": {}, "inspect": {}}.get(name)
    # The model by its name in the results, and never asked.
    named = ExtractionSettings(url="http://127.0.0.1:9/v1", model="m")
    engine = bootstrap.build(replace(at_home(mine), extraction=named))
    jay = Jay(engine, Scope("local", "default"))
    if name == "verify_erased":
        said = codec.answer(jay.verify(Path(words["RECEIPT"])))
    else:
        given = CASES[name](one) if fields is None else fields
        said = codec.answer(getattr(jay, name)(**given))
    engine.close()
    assert masked(told) == masked(said)


def test_keys_and_scopes_are_listed_alike_by_the_service_and_the_command_line(
    home: SqliteHome,
) -> None:
    engine = home.engine()
    engine.open(Scope("acme", "alice"))
    with serving(engine, home.clock) as running:
        token = running.key("acme/*", grants=tuple(Grant))
        with httpx2.Client(headers={"Authorization": f"Bearer {token}"}) as http:
            made = http.post(
                f"{running.url}/v1/keys",
                json={"name": "one", "scopes": ["acme/alice"], "grants": ["read"]},
            ).json()
            listed = [http.get(f"{running.url}/v1/{name}").json() for name in ("keys", "scopes")]
            gone = http.delete(f"{running.url}/v1/keys/{made['key']['id']}").json()
    engine.close()
    theirs = ran(home.folder, "keys", "create", "one", "--scope", "acme/alice", "--grant", "read")
    assert made.keys() == theirs.keys()
    assert made["key"].keys() == theirs["key"].keys()
    told = ran(home.folder, "keys", "list")["data"]
    assert told[0] in listed[0]["data"]
    # A key lists the scopes it covers; whoever has the folder, also that of the keys.
    assert ran(home.folder, "scopes") == {
        "data": [*listed[1]["data"], "system/keys"],
        "next_cursor": None,
    }
    revoked = ran(home.folder, "keys", "revoke", theirs["key"]["id"], "--yes")
    assert revoked.keys() == gone.keys()
