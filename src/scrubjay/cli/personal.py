"""`scrubjay personal`: the memory of a person, with the operations it has over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from scrubjay import bootstrap, codec, files
from scrubjay.cli import render
from scrubjay.cli.home import (
    confirm,
    confirm_replace,
    installed,
    new_passphrase,
    scope_of,
    secret_line,
    settings,
)
from scrubjay.cli.parser import JSON, SCOPE, YES, Option, command, fields
from scrubjay.cli.render import Output, say
from scrubjay.model.errors import NotFound
from scrubjay.model.pages import Page
from scrubjay.model.purposes import UsePurpose
from scrubjay.service.outbox import SIGNATURE, outbox_of
from scrubjay.settings import EmbedderName, Settings
from scrubjay.surfaces.personal import records as told
from scrubjay.surfaces.personal.categories import Category
from scrubjay.surfaces.personal.library import PersonalMemory
from scrubjay.surfaces.personal.operations import OPERATIONS, PersonalOperation

_EXAMPLES = {
    "store": 'scrubjay personal store "Prefers tea" -c preference --type preference',
    "retrieve": 'scrubjay personal retrieve "What does Alice drink?" -c preference',
    "rectify": 'scrubjay personal rectify mem_… "Prefers coffee" --reason "asked to"',
    "restrict": "scrubjay personal restrict --level writes",
    "request": "scrubjay personal request access",
    "answered": "scrubjay personal answered req-…",
    "audit": "scrubjay personal audit -n 20",
}


@contextmanager
def _memory(scope: str | None, *, create: bool = False) -> Iterator[PersonalMemory]:
    found = settings()
    whose = str(scope_of(scope, found))
    with installed(found, create=create) as engine, PersonalMemory(whose, engine=engine) as me:
        yield me


def _perform(operation: PersonalOperation, *, scope: str | None = None, **given: Any) -> Output:
    with _memory(scope, create=operation.name == "store") as me:
        result = me.do(operation, **given)
    return Output(result, lambda: _show(result))


def _show(result: Any) -> None:
    """The fields of an answer, and its entries a line each."""
    shown = codec.answer(result)
    listed = next((name for name in ("data", "memories") if isinstance(shown.get(name), list)), "")
    for one in shown.pop(listed, ()):
        id = next((value for name, value in one.items() if name.endswith("id")), "")
        said = (one.get(name) for name in ("content", "text", "operation"))
        told = (f"{name} {value}" for name, value in one.items() if value is not None)
        text = next(
            filter(None, said), ", ".join(part for part in told if id not in part or not id)
        )
        render.line(f"{id}  {render.piece(text)}".strip())
    if not isinstance(result, Page):
        render.facts({name: one for name, one in shown.items() if not isinstance(one, dict)})


_RANGE = (
    Option("--after", "Only what was said from this time on.", datetime),
    Option("--before", "Only what was said before this time.", datetime),
)


def _declare(operation: PersonalOperation) -> None:
    def run(
        *, after: datetime | None = None, before: datetime | None = None, **given: Any
    ) -> Output:
        if after or before:
            given["time_range"] = {"after": after, "before": before}
        return _perform(operation, **given)

    example = _EXAMPLES.get(operation.name, f"scrubjay personal {operation.name}")
    run.__doc__ = f"{operation.about}\n\nExample: {example}"
    timed = _RANGE if "time_range" in operation.request.__struct_fields__ else ()
    named = fields(operation.request, *operation.options)
    command(f"personal {operation.name}", named, *timed, SCOPE, JSON)(run)


for _operation in OPERATIONS:
    if _operation.options:
        _declare(_operation)
_BY_NAME = {one.name: one for one in OPERATIONS}


@command(
    "personal purpose",
    Option("PURPOSE", "What is done with the words.", UsePurpose, required=True),
    Option("--off", "Withdraw it, instead of allowing it."),
    fields(told.DecidePurpose, "basis", "note"),
    SCOPE,
    JSON,
)
def purpose(
    *, purpose: UsePurpose, off: bool = False, scope: str | None = None, **given: Any
) -> Output:
    """Allow a purpose, or withdraw it: it holds at once, in every process.

    Example: scrubjay personal purpose patterns --off
    """
    with _memory(scope, create=True) as me:
        result = me.purpose(purpose=purpose, on=not off, **given)
    notes = [f"Derived for it: {len(result.memory_ids):,}; `personal forget ID…` erases them."]
    sentence = f"{purpose}: {'off' if off else 'on'}, {result.state.basis}."
    return Output(result, partial(say, sentence), notes if result.memory_ids else [])


@command(
    "personal export",
    Option("--output -o", "File to write.", Path, required=True),
    fields(told.ExportMemories, "format -f", "categories --category -c", "recipient"),
    Option("--portable", "Leave out what was inferred (Art. 20)."),
    Option("--no-metadata", "Only texts and categories; an import needs the rest.", name="bare"),
    Option("--passphrase", "Ask for a passphrase that seals it; without a terminal, on stdin."),
    YES,
    SCOPE,
    JSON,
)
def export(
    *,
    output: Path,
    portable: bool = False,
    bare: bool = False,
    passphrase: bool = False,
    yes: bool = False,
    scope: str | None = None,
    **given: Any,
) -> Output:
    """Export everything, or some categories, to a file; a recipient or passphrase seals it.

    Example: scrubjay personal export -o alice.age --recipient age1…
    """
    confirm_replace(output, yes=yes)
    words = new_passphrase() if passphrase else None
    with _memory(scope) as me, render.progress("Exporting") as progress:
        given |= {"passphrase": words, "inferred": not portable, "include_metadata": not bare}
        number = me.export(output, progress=progress, **given)
    readable = words is None and "recipient" not in given
    sentence = f"Exported {render.plural(number, 'memory')}"
    sentence += ", readable by anyone." if readable else ", sealed."
    size = output.stat().st_size
    facts = {"file": str(output), "record_count": number, "total_size_bytes": size}
    return Output(facts, partial(say, sentence))


@command(
    "personal import",
    Option("FILE", "File that export wrote.", Path, required=True),
    Option("--identity", "File with the age identity that opens it.", Path),
    Option("--passphrase", "Ask for the passphrase that opens it; on stdin without a terminal."),
    SCOPE,
    JSON,
)
def load(
    file: Path,
    *,
    identity: Path | None = None,
    passphrase: bool = False,
    scope: str | None = None,
) -> Output:
    """Import an export, all of it or nothing; what was forgotten here stays forgotten.

    Example: scrubjay personal import alice.age --identity key.txt
    """
    opening = {"passphrase": secret_line("The passphrase of the file: ")} if passphrase else {}
    if identity is not None:
        lines = files.read(identity).decode(errors="replace").splitlines()
        named = (line for line in lines if line.startswith("AGE-SECRET-KEY-"))
        opening["identity"] = next(named, "")
    with _memory(scope, create=True) as me:
        result = me.import_(content=files.read(file), **opening)
    sentence = f"Imported {render.plural(result.loaded, 'memory')}; {result.known:,} were known."
    return Output(result, partial(say, sentence))


@command(
    "personal forget",
    Option("ID…", "Ids of the memories to erase.", str, name="memory_ids", many=True),
    Option("--session", "Session to erase.", str, name="session_id", metavar="NAME"),
    Option(
        "--tag -t", "Tag to erase by: memories that have all of them.", str, name="topic_tags",
        metavar="TAG", many=True,
    ),
    Option("--before", "Erase what was said before this time.", datetime),
    Option("--query -q", "Erase what a search finds; shown first.", str),
    YES,
    SCOPE,
    JSON,
)  # fmt: skip
def forget(*, yes: bool = False, scope: str | None = None, **target: Any) -> Output:
    """Erase memories for good, with all that was derived from them.

    What a query finds is listed first, and has to be confirmed.

    Example: scrubjay personal forget --query "green tea"
    """
    with _memory(scope) as me:
        gone = me.forget(target=target)
        if gone.confirmation_token is not None:
            for one in gone.matches:
                say(f"  {one.memory_id}  {render.piece(one.content)}")
            number = render.plural(len(gone.matches), "memory")
            copies = f", and {gone.copies:,} more that say the same" * bool(gone.copies)
            confirm(f"This erases {number} for good{copies}.", yes=yes)
            target |= {"confirm_matches": True}
            gone = me.forget(target=target, confirmation_token=gone.confirmation_token)
    sentence = f"Erased {render.plural(gone.deleted_count, 'memory')}: {gone.audit_id}."
    notes = [f"{gone.copies:,} of them said the same, or had it cut out."] if gone.copies else []
    return Output(gone, partial(say, sentence), notes)


@command("personal destroy", YES, SCOPE, JSON)
def destroy(*, yes: bool = False, scope: str | None = None) -> Output:
    """Destroy the whole memory of a person, its keys first.

    Example: scrubjay personal destroy --scope acme/alice
    """
    with _memory(scope) as me:
        name = str(me.personal.scope)
        token = me.destroy().confirmation_token
        confirm(f"This destroys everything of {name}, for good.", yes=yes, word=name)
        with render.progress("destroy") as me.personal.progress:
            gone = me.destroy(confirmation_token=token)
    return Output(gone, partial(say, f"Destroyed {gone.records_deleted:,} records of {name}."))


# -- keys of its owner -----------------------------------------------------------------------------


@command(
    "personal hold",
    Option("--keychain", "Keep the key in the keyring of the operating system."),
    YES,
    SCOPE,
    JSON,
)
def hold(*, keychain: bool = False, yes: bool = False, scope: str | None = None) -> Output:
    """Put the memory under keys of its owner, or change what opens it; prints a recovery key.

    Without a terminal the passphrase is the first line of stdin.

    Example: scrubjay personal hold --scope acme/alice
    """
    confirm("Without the passphrase or the recovery key nobody reads it again.", yes=yes)
    words = None if keychain else new_passphrase()
    with _memory(scope, create=True) as me:
        held = me.hold(passphrase=words, keychain=keychain)
    lines = [f"Recovery key: {held.recovery}", "Print it and keep it apart: it is not shown again."]
    return Output(held, lambda: render.line("\n".join(lines)))


@command(
    "personal unlock",
    Option("--recovery", "Ask for the recovery key, instead of the passphrase."),
    SCOPE,
    JSON,
)
def unlock(*, recovery: bool = False, scope: str | None = None) -> Output:
    """Take in what waits in the inbox of a memory that its owner holds.

    Other commands take the passphrase from SCRUBJAY_USER_PASSPHRASE, or the key from the keyring.

    Example: scrubjay personal unlock --scope acme/alice
    """
    asked = "recovery" if recovery else "passphrase"
    words = secret_line("Recovery key: " if recovery else "Passphrase of this memory: ")
    with _memory(scope) as me:
        done = me.unlock(**{asked: words})
    sentence = f"Took in {render.plural(done.stored, 'write')}; {done.waiting:,} wait on."
    return Output(done, partial(say, sentence))


# -- who is told -----------------------------------------------------------------------------------


@command("privacy notify", JSON)
def notify() -> Output:
    """Send the pending notices of corrections, erasures and restrictions now (Art. 19).

    A running service does that by itself. The keys with which notices are signed are shown, for the
    recipients to check them by.

    Example: scrubjay privacy notify
    """
    found, clock = settings(), bootstrap.clock()
    with installed(found) as engine:
        outbox = outbox_of(engine, clock, bootstrap.make_couriers(found, clock))
        told = {one.url: one.key.hex() for one in outbox.recipients}
        waiting = outbox.send()
    advice = "" if told else " The setting `recipients` names them."
    sentence = f"{render.plural(len(told), 'recipient')}; {waiting:,} notices wait.{advice}"
    notes = [
        f"{url} is sent notices under {SIGNATURE}, HMAC-SHA256 by {key}"
        for url, key in told.items()
    ]
    return Output({"recipients": told, "waiting": waiting}, partial(say, sentence), notes)


# -- records of processing -------------------------------------------------------------------------


@command("privacy report", SCOPE, JSON)
def report(*, scope: str | None = None) -> Output:
    """Show the records of processing (Art. 30), made from the live configuration.

    Example: scrubjay privacy report --scope acme/alice
    """
    found = settings()
    told: dict[str, Any] = {
        "purposes": _purposes(found, scope),
        "data": [one.value for one in Category],
        "recipients": _recipients(found),
        "retention": {
            "erased_rows_days": found.drop_days,
            "superseded_days": found.superseded_days,
            "root_key_days": found.root_days,
        },
        "security": "AES-256-GCM; a key per scope and collection, wrapped apart from the data",
    }
    shown = {name: codec.to_json(one).decode() for name, one in told.items()}
    return Output(told, lambda: render.facts(shown))


def _recipients(found: Settings) -> list[dict[str, str]]:
    """Who is given anything, as it is configured now."""
    shards = (one.partition("=")[2] for one in found.shards.split())
    named = [
        ("hosting", "ciphertext", found.store or str(found.data)),
        *(("hosting", "ciphertext", url) for url in shards),
        ("hosting", "ciphertext of long texts and of the index", found.blobs),
        ("key service", "wrapped keys", found.root_key.removeprefix(bootstrap.DERIVED)),
        ("embedder", "text of memories and questions", found.openai.url),
        ("model", "turns and memories", found.extraction.url),
        *(("recipient", "notices of rights", url) for url in found.recipients.split()),
    ]
    if found.embedder is not EmbedderName.OPENAI:
        named = [one for one in named if one[0] != "embedder"]
    return [{"who": who, "gets": gets, "where": _place(at)} for who, gets, at in named if at]


def _place(address: str) -> str:
    """The host of an address, or the folder, with its region; nothing that may be a secret."""
    parts = urlsplit(address)
    host = parts.hostname or (parts.scheme if parts.netloc else address.partition("?")[0])
    region = dict(parse_qsl(parts.query)).get("region")
    return host if region is None else f"{host} ({region})"


def _purposes(found: Settings, scope: str | None) -> list[Any]:
    """Each purpose as it is in a scope; without one that exists, as it is by default."""
    try:
        with _memory(scope) as me:
            return [codec.plain(one) for one in me.purposes()]
    except NotFound:
        asked = bootstrap.ASKED_FIRST if found.consent else frozenset[UsePurpose]()
        return [{"purpose": one.value, "on": one not in asked} for one in UsePurpose]
