"""Composition root: builds an engine from settings; the only module that names concrete classes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from scrubjay.adapters.blobs.files import FileBlobs
from scrubjay.adapters.disk import Disk
from scrubjay.adapters.keyrings.file import KEY_FILE, KEYCHAIN_FILE, DerivedWrapper, FileWrapper
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.passphrase import PassphraseWrapper
from scrubjay.adapters.stores.sqlite.store import SqliteStore
from scrubjay.engine import Kernel, Keyring, Policy, Ports
from scrubjay.engine.scope.keyring import INSTALLATION
from scrubjay.model.errors import InvalidRequest, KeyMissing, Locked, NotFound, StoreError
from scrubjay.model.purposes import UsePurpose
from scrubjay.model.results import FileInspection, Migrated
from scrubjay.model.scope import Quota, check_place
from scrubjay.model.turns import Piece, Turn
from scrubjay.ports import (
    AskModel,
    Blobs,
    Clock,
    Custody,
    Distiller,
    Embedder,
    Extractor,
    Progress,
    Reach,
    Slots,
    Store,
    SystemClock,
    Wrapper,
    no_progress,
    pass_by,
)
from scrubjay.settings import MEGABYTE, EmbedderName, OnEmbedderChange, Settings

Courier = Callable[[bytes, Mapping[str, str]], object]
"""Sends a body with headers; it returns once that was received, and raises otherwise."""
MOVED_FILE: Final = "moved"
"""In the data folder of a home whose memories were moved to a database: its address."""
DERIVED: Final = "derived:file"
"""The `root_key` of a home whose key file is a master: wrapping keys are derived, one per owner."""
ASKED_FIRST: Final = frozenset(UsePurpose) - {UsePurpose.FACTS}
"""Purposes that need consent where settings ask for it first."""
_COURIER_SECONDS: Final = 10.0
_FIRST_SLOTS: Final = 4
"""Of the first scope of all, whose making may have been cut off before the data folder was made."""
_ANSWER_BYTES: Final = 64 * 1024
_log = logging.getLogger(__name__)
logging.getLogger("scrubjay").addHandler(logging.NullHandler())  # a library is silent
_SET_DUMPABLE: Final = 4  # PR_SET_DUMPABLE of prctl(2)
_HEAP: Final = ((-8, 1), (-3, 4 << 20), (-1, 16 << 20))
"""For mallopt(3): one arena, and fixed sizes from which memory is mapped, and given back."""


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    reach: Reach = pass_by,
    policy: Policy | None = None,
    embedder: Embedder | None = None,
    extractor: Extractor | None = None,
    vfs: str | None = None,
) -> Kernel:
    """The engine on what the settings name: by default SQLite, files and a folder of keys."""
    clock = clock or SystemClock()
    store = make_store(settings, reach=reach, vfs=vfs)
    ports = Ports(
        store=store,
        blobs=make_blobs(settings),
        keyring=keyring(settings, clock, store),
        clock=clock,
        embedder=embedder or make_embedder(settings, clock),
        distiller=LazyRules(),
        extractor=extractor or make_extractor(settings, clock),
        custody=custody(settings),
        reach=reach,
        policy=policy or make_policy(settings),
    )
    return Kernel(ports)


def make_store(settings: Settings, *, reach: Reach = pass_by, vfs: str | None = None) -> Store:
    """The store the settings name: a database, or files in the data folder."""
    if not settings.store:
        if (settings.data / MOVED_FILE).exists():
            raise InvalidRequest(
                "The memories of this home were moved to a database.",
                hint=f"Name it as `store`; {settings.data / MOVED_FILE} says which.",
            )
        return _files(settings, reach=reach, vfs=vfs)
    with _needing("postgres"):
        from scrubjay.adapters.stores.postgres.store import PostgresStore

    def database(url: str) -> Store:
        return PostgresStore(
            url,
            reach=reach,
            lock_timeout=settings.lock_seconds,
            connections=settings.postgres.connections,
            pooler=settings.postgres.pooler,
            region=settings.region,
            keep_seconds=settings.postgres.keep_seconds,
        )

    if not settings.shards:
        return database(settings.store)
    from scrubjay.adapters.stores.shards import HOME, ShardedStore
    from scrubjay.engine.transfer.move import arrive

    named = [one.partition("=") for one in settings.shards.split()]
    others = {check_place("name of a shard", name): url for name, _, url in named}
    if len(others) < len(named) or HOME in others or not all(others.values()):
        raise InvalidRequest(
            "The shards are not name=postgres://… with a name of its own for each.",
            hint=f"The database of `store` is named {HOME}.",
        )
    more = {name: database(url) for name, url in others.items()}
    at_home = frozenset({INSTALLATION.address})
    return ShardedStore(database(settings.store), more, arrive=arrive, at_home=at_home)


def _files(settings: Settings, *, reach: Reach = pass_by, vfs: str | None = None) -> Store:
    return SqliteStore(
        settings.data,
        reach=reach,
        vfs=vfs,
        lock_timeout=settings.lock_seconds,
        ballast_bytes=settings.ballast_megabytes * MEGABYTE,
    )


def migrate(
    settings: Settings,
    *,
    store: str,
    blobs: str,
    progress: Progress = no_progress,
    step: Callable[[str], None] = lambda _: None,
) -> Migrated:
    """Move everything of a home to another store: a database, or the files of its folder.

    From its beginning on nobody opens the files of a home that is moved away from them.
    """
    from scrubjay.engine.transfer import move  # no other command needs it

    clock, there = SystemClock(), replace(settings, store=store, shards="", blobs=blobs)
    if (settings.store, settings.blobs) == (store, blobs):
        raise InvalidRequest("The home is there already.")
    if settings.shards:
        raise InvalidRequest(
            "A home on several databases is not migrated as one.",
            hint="Move its scopes to the database named home first, and leave the others out.",
        )
    marker = settings.data / MOVED_FILE
    source = make_store(settings) if settings.store else _files(settings)
    target = make_store(there) if store else _files(there)
    with closing(source), closing(target):
        ports = [
            Ports(
                store=one, blobs=make_blobs(at), keyring=keyring(at, clock, one), clock=clock,
                embedder=make_embedder(settings, clock), distiller=None, extractor=None,
                reach=pass_by, policy=make_policy(settings),
            )
            for one, at in ((source, settings), (target, there))
        ]  # fmt: skip
        move.check_target(*ports)
        if not settings.store:
            settings.data.mkdir(parents=True, exist_ok=True)
            marker.write_text(f"{store}\n")
        moved = move.migrate(
            *ports, to=store or "files", blobs_too=settings.blobs != blobs,
            progress=progress, step=step,
        )  # fmt: skip
    if not store:
        marker.unlink(missing_ok=True)
    return moved


def make_blobs(settings: Settings) -> Blobs:
    """The blobs the settings name: an object store, or files in the data folder."""
    if not settings.blobs:
        return FileBlobs(settings.data / "blobs")
    with _needing("s3"):
        from scrubjay.adapters.blobs.s3 import S3Blobs
    if "endpoint=" not in settings.blobs or "region=" in settings.blobs:
        _check_within(settings.region, settings.blobs)
    return S3Blobs(settings.blobs, region=settings.region)


def _check_within(region: str, address: str) -> None:
    """InvalidRequest unless an address names a region that is within that of the settings."""
    named = dict(parse_qsl(urlsplit(address).query)).get("region", "")
    if region and not f"{named}-".startswith(f"{region}-"):
        raise InvalidRequest(
            f"This process is labeled for region {region!r}, and an address is not within it.",
            hint=f"Name it there: …?region={region}, or one that begins with {region}-.",
        )


@contextmanager
def _needing(extra: str) -> Iterator[None]:
    """Context manager: a package that is missing is named by the extra that has it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"These settings need the package {error.name}, which is not installed.",
            hint=f"pip install 'scrubjay[{extra}]'",
        ) from error


def clock() -> Clock:
    """The clock of this machine."""
    return SystemClock()


class LazyRules:
    """The rules distiller, loaded at the first turn: most commands and many services see none."""

    @cached_property
    def _rules(self) -> Distiller:
        from scrubjay.adapters.distillers.rules import RulesDistiller

        return RulesDistiller()

    @property
    def identity(self) -> str:
        """Which rules these are."""
        return self._rules.identity

    def distill(self, turn: Turn) -> Sequence[Piece]:
        """The memories derived from a turn."""
        return self._rules.distill(turn)

    def words(self, turn: Turn) -> frozenset[str]:
        """Word set of a turn, for the comparison with another turn's."""
        return self._rules.words(turn)


def make_policy(settings: Settings) -> Policy:
    """The policy of the engine from the settings."""
    return Policy(
        drop_days=settings.drop_days,
        superseded_days=settings.superseded_days,
        root_days=settings.root_days,
        root_keep_days=settings.root_keep_days,
        shelf_bytes=settings.shelf_megabytes * MEGABYTE,
        idle_seconds=settings.idle_seconds,
        quota=Quota(
            memories=settings.scope_memories,
            megabytes=settings.scope_megabytes,
            scopes=settings.tenant_scopes,
        ),
        extract_seconds=settings.extraction.seconds,
        daily_tokens=settings.extraction.daily_tokens,
        consent=ASKED_FIRST if settings.consent else frozenset(),
        min_similarity=settings.min_similarity if settings.min_similarity >= 0 else None,
        raise_on_embedder_change=settings.on_embedder_change is OnEmbedderChange.RAISE,
    )


def make_embedder(settings: Settings, clock: Clock) -> Embedder:
    """The embedder the settings name; none of them loads numpy before it is asked."""
    match settings.embedder:
        case EmbedderName.NONE:
            from scrubjay.adapters.embedders.static import NoEmbedder

            return NoEmbedder()
        case EmbedderName.OPENAI:
            from scrubjay.adapters.embedders.openai import Endpoint, OpenAIEmbedder

            asked = settings.openai
            endpoint = Endpoint(
                base_url=asked.url,
                model=asked.model,
                dimensions=asked.dimensions,
                shorten=asked.shorten,
                api_key=asked.api_key,
            )
            return OpenAIEmbedder(endpoint, clock=clock, sleep=time.sleep)
        case EmbedderName.ENCODER:
            from scrubjay.adapters.embedders.encoder import EncoderEmbedder

            return EncoderEmbedder(clock)
        case EmbedderName.STATIC:
            from scrubjay.adapters.embedders.static import StaticEmbedder

            return StaticEmbedder(clock)


def make_extractor(settings: Settings, clock: Clock) -> Extractor | None:
    """The extractor of the configured language model; None if there is none."""
    asked = settings.extraction
    if not asked.url:
        return None
    from scrubjay.adapters.distillers.chat import ChatExtractor, ChatModel

    model = ChatModel(
        base_url=asked.url,
        name=asked.model,
        dialect=asked.dialect,
        api_key=asked.api_key,
        seconds=asked.seconds,
    )
    return ChatExtractor(model, clock=clock, sleep=time.sleep)


def make_couriers(settings: Settings, clock: Clock) -> dict[str, Courier]:
    """How each recipient of notices is reached, by its address."""
    from scrubjay.adapters.remote import Remote

    def courier(url: str) -> Courier:
        remote = Remote(
            url,
            name="recipient",
            seconds=_COURIER_SECONDS,
            attempts=1,
            clock=clock,
            sleep=time.sleep,
            log=_log,
        )
        return lambda body, headers: remote.post("", body, headers, most_bytes=_ANSWER_BYTES)

    return {url: courier(url) for url in settings.recipients.split()}


def called_extractor(ask: AskModel, name: str) -> Extractor:
    """The extractor over a model that the program calls itself."""
    from scrubjay.adapters.distillers.chat import CalledExtractor

    return CalledExtractor(ask, name=name)


# -- keys ----------------------------------------------------------------------------------


def keyring(settings: Settings, clock: Clock, store: Store | None = None) -> Keyring:
    """The keyring: by passphrase or the system's keyring, else by the key file of the folder.

    The slots lie beside the rows where the store has a place for them, else in the keys folder.
    """
    folder = keys_folder(settings, clock)
    slots = _slots(settings, folder, store)
    if settings.region:
        check_place("region", settings.region)
    if settings.root_key.startswith(("kms:", "pkcs11:")):
        _check_within(settings.region, settings.root_key)
    else:
        folder.check_region(settings.region)
    if settings.root_key:
        return Keyring(slots, _distant(settings, folder), clock)
    if in_keychain(settings):
        from scrubjay.adapters.keyrings.keychain import KeychainWrapper, system_backend

        return _moved(settings, Keyring(slots, KeychainWrapper(folder, system_backend()), clock))
    if not has_passphrase(settings):
        return Keyring(slots, FileWrapper(folder), clock)
    if settings.passphrase is None:
        raise Locked("The keyring is locked by a passphrase, and none was given.")
    wrapper = PassphraseWrapper(folder)
    wrapper.unlock(settings.passphrase)
    return _moved(settings, Keyring(slots, wrapper, clock))


def _distant(settings: Settings, folder: KeysFolder) -> Wrapper:
    """The wrapper of a key service; a key file is opened, too, until `rotate --root`."""
    if has_passphrase(settings) or in_keychain(settings):
        raise InvalidRequest(
            "The root key is under a passphrase or in the system's keyring, not in a key file.",
            hint="Only the keys of a key file can be moved to a key service.",
        )
    if settings.root_key == DERIVED:
        return DerivedWrapper(FileWrapper(folder))
    if settings.root_key.startswith("pkcs11:"):
        with _needing("pkcs11"):
            from scrubjay.adapters.keyrings import pkcs11
        return pkcs11.wrapper_of(settings.root_key, folder, settings.pkcs11_pin)
    with _needing("kms"):
        from scrubjay.adapters.keyrings import kms
    return kms.wrapper_of(settings.root_key, folder)


def custody(settings: Settings) -> Custody:
    """What the user of this process has at hand to open scopes of their own."""
    from scrubjay.adapters.keyrings.keychain import SystemCustody

    return SystemCustody(settings.user_passphrase)


def _moved(settings: Settings, opened: Keyring) -> Keyring:
    """The keyring that took the place of a key file; a move that was cut off is ended."""
    if has_key_file(settings):
        opened.retire()
    return opened


def _slots(settings: Settings, folder: KeysFolder, store: Store | None = None) -> Slots:
    if store is None and settings.store:
        store = make_store(settings)
    return folder if store is None or store.slots is None else store.slots


def in_keychain(settings: Settings) -> bool:
    """Whether the root key is in the keyring of the operating system."""
    return (settings.keys / KEYCHAIN_FILE).exists()


def check_data(settings: Settings) -> None:
    """StoreError if scopes have keys and the data folder knows of none: it is not mounted."""
    folder = keys_folder(settings, clock())
    held = [] if settings.store else folder.addresses("", 3)
    held = [one for one in held if one != INSTALLATION.address]
    if not held or (len(held) == 1 and len(folder.read(held[0])) <= _FIRST_SLOTS):
        return
    if settings.data.exists():
        with closing(make_store(settings)) as store:
            if store.catalog.entries(limit=1):
                return
    raise StoreError(
        f"The keys in {settings.keys} are of scopes that are not in {settings.data}.",
        hint="Mount the data folder; nothing was made or changed. If it is lost, restore a backup.",
    )


def has_passphrase(settings: Settings) -> bool:
    """Whether a passphrase locks the keys."""
    return PassphraseWrapper.present(settings.keys)


def has_key_file(settings: Settings) -> bool:
    """Whether a key file opens the keys."""
    return (settings.keys / KEY_FILE).exists()


def passphrase_wrapper(settings: Settings, clock: Clock) -> PassphraseWrapper:
    """Passphrase keyring, still locked."""
    return PassphraseWrapper(keys_folder(settings, clock))


def keys_folder(settings: Settings, clock: Clock) -> KeysFolder:
    """The keys folder of the settings."""
    return KeysFolder(settings.keys, clock, Disk(lock_seconds=settings.lock_seconds))


def put_under_passphrase(settings: Settings, clock: Clock, passphrase: str) -> str:
    """Lock the keys, those of a key file or none yet, by a passphrase; the recovery key."""
    adopting = has_key_file(settings)
    folder = _to_be_moved(settings, clock)
    wrapper, recovery = PassphraseWrapper.create(folder, passphrase, adopt=adopting)
    Keyring(_slots(settings, folder), wrapper, clock).retire()
    return recovery


def put_in_keychain(settings: Settings, clock: Clock) -> None:
    """Keep the root key, that of a key file or none yet, in the keyring of the system."""
    from scrubjay.adapters.keyrings.keychain import KeychainWrapper, system_backend

    backend, folder = system_backend(), _to_be_moved(settings, clock)
    wrapper = KeychainWrapper.create(folder, backend)
    Keyring(_slots(settings, folder), wrapper, clock).retire()


def _to_be_moved(settings: Settings, clock: Clock) -> KeysFolder:
    """A keys folder whose root key may be moved: its key file opens every slot, or nothing is."""
    folder = keys_folder(settings, clock)
    if has_key_file(settings):
        Keyring(_slots(settings, folder), FileWrapper(folder), clock).prove()
        return folder
    with closing(make_store(settings)) as store:
        if store.catalog.entries(limit=1):
            raise KeyMissing(f"The keys of this home are not in {settings.keys}; none were made.")
    return folder


# -- looking at files ------------------------------------------------------------------------


def forbid_core_dumps() -> None:
    """Let no crash of this process write keys and memories to a core dump, nor others trace it."""
    import ctypes
    import resource
    import sys

    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    if sys.platform == "linux":  # where a program that collects dumps does not ask for the limit
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def bound_heap() -> None:
    """Let all threads of this process share one heap, where the C library is glibc.

    It gives each thread a heap of its own, and the holes in one are of no use to another: a service
    that answers in many threads grew by 2 KB with every memory, half of it such holes.
    """
    import ctypes

    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        for option, value in _HEAP:
            mallopt(option, value)


def versions() -> dict[str, str]:
    """Versions of Python and the libraries, by name."""
    import platform

    import apsw

    return {"python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}


def strays(settings: Settings) -> list[str]:
    """What belongs to no scope of the catalog, or is missing from it, a sentence each."""
    with closing(make_store(settings)) as store:
        return list(store.strays())


def inspect(path: Path) -> FileInspection:
    """Inspect a file without a key: a file of the store, or any other by its bytes."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFound("There is no such file.", hint="Check the path.") from error
    except OSError as error:
        raise InvalidRequest(f"The file cannot be read: {error.strerror}.") from error
    from scrubjay.adapters.stores.sqlite import inspection

    shown = inspection.inspect(path, raw)
    return replace(shown, facts=(("size", f"{len(raw):,} bytes"), *shown.facts))
