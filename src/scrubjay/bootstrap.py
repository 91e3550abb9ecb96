"""From settings to an engine: the only module that names concrete classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scrubjay.adapters.blobs.files import FileBlobs
from scrubjay.adapters.clock import SystemClock
from scrubjay.adapters.embedders.static import StaticEmbedder
from scrubjay.adapters.keyrings.file import FileKeyring
from scrubjay.adapters.keyrings.passphrase import PassphraseKeyring
from scrubjay.adapters.stores.sqlite import exhibit
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.domain.errors import InvalidRequest, Locked, NotFound
from scrubjay.domain.results import Exhibit
from scrubjay.engine import Engine, Policy, Ports
from scrubjay.ports import Clock, Embedder, Keyring, Reach, pass_by
from scrubjay.settings import Settings


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    reach: Reach = pass_by,
    policy: Policy | None = None,
    embedder: Embedder | None = None,
    vfs: str | None = None,
) -> Engine:
    """The engine on the embedded default: SQLite, files, and the keyring the keys folder has."""
    clock = clock or SystemClock()
    store = SqliteStore(
        settings.data,
        reach=reach,
        vfs=vfs,
        lock_timeout=settings.lock_seconds,
        ballast_bytes=settings.ballast_bytes,
    )
    ports = Ports(
        store=store,
        blobs=FileBlobs(settings.data / "blobs"),
        keyring=keyring(settings, clock),
        clock=clock,
        embedder=embedder or StaticEmbedder(clock),
        reach=reach,
        policy=policy or Policy(),
    )
    return Engine(ports)


def keyring(settings: Settings, clock: Clock) -> Keyring:
    """The keyring of the keys folder: by passphrase if it has one, else by key file."""
    if not PassphraseKeyring.present(settings.keys):
        return FileKeyring(settings.keys, clock)
    locked = PassphraseKeyring(settings.keys, clock)
    if settings.passphrase is None:
        raise Locked("The keyring is locked by a passphrase, and none was given.")
    locked.unlock(settings.passphrase)
    return locked


def inspect(path: Path) -> Exhibit:
    """What somebody without a key sees of a file: of the store, or any other by its bytes."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFound("There is no such file.", hint="Check the path.") from error
    except OSError as error:
        raise InvalidRequest(f"The file cannot be read: {error.strerror}.") from error
    if raw.startswith(exhibit.MAGIC):
        shown = exhibit.inspect(path)
    else:
        facts = (("first bytes", raw[:32].hex()),)
        shown = Exhibit(title="a file of bytes", facts=facts, words=exhibit.readable(raw))
    return replace(shown, facts=(("size", f"{len(raw):,} bytes"), *shown.facts))
