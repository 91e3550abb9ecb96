"""Root keys in KMS and in a PKCS#11 token: what they open, and what is seen when they refuse."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier

import pytest
from msgspec.structs import replace

from scrubjay import Scope, bootstrap, settings
from scrubjay.adapters.keyrings.distant import DistantWrapper
from scrubjay.adapters.keyrings.file import KEY_FILE
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.kms import KmsWrapper
from scrubjay.adapters.keyrings.pkcs11 import Module, Pkcs11Wrapper, Token
from scrubjay.engine import Kernel
from scrubjay.model.errors import InvalidRequest, KeyMissing, KeyUnavailable, SealBroken
from scrubjay.model.requests import Browse, Forget, Retain
from scrubjay.ports import SlotPlace, SystemClock
from tests.support.key_services import MODULE, PIN, KeyService, Relay, SoftToken, relayed

ALICE = Scope("local", "alice")
PLACE = SlotPlace("alice-address", "lookup")
KEY = bytes(range(32))
_PROCESSES = 4
_LOGINS = 25
MakeWrapper = Callable[[], DistantWrapper]


@pytest.fixture(params=["pkcs11", "kms"])
def address(request: pytest.FixtureRequest) -> str:
    """The address of a root key in each key service."""
    service = request.getfixturevalue("token" if request.param == "pkcs11" else "kms")
    found: str = service.address()
    return found


@pytest.fixture
def home(tmp_path: Path, address: str) -> settings.Settings:
    at_home = settings.at_home(tmp_path / "home")
    return replace(at_home, root_key=address, pkcs11_pin=PIN)


@pytest.fixture
def wrapper(home: settings.Settings) -> DistantWrapper:
    return wrapper_of(home)


def wrapper_of(home: settings.Settings) -> DistantWrapper:
    folder = KeysFolder(home.keys, SystemClock())
    if home.root_key.startswith("pkcs11:"):
        return Pkcs11Wrapper(home.root_key, folder, PIN)
    return KmsWrapper(home.root_key, folder)


def remember(home: settings.Settings, text: str) -> None:
    engine = bootstrap.build(home)
    engine.open(ALICE)
    engine.retain(ALICE, Retain(content=text, id=text))
    engine.close()


def told(engine: Kernel) -> list[str]:
    return sorted(one.content for one in engine.browse(ALICE, Browse()))


# -- what they open ----------------------------------------------------------------------------


def test_a_slot_opens_at_its_place_alone(wrapper: DistantWrapper) -> None:
    wrapper.found()
    slot = wrapper.wrap(PLACE, KEY)
    assert wrapper.unwrap(PLACE, slot) == KEY
    assert KEY not in slot
    for other in (SlotPlace("bob-address", "lookup"), SlotPlace("alice-address", "memory.1")):
        with pytest.raises(SealBroken):
            wrapper.unwrap(other, slot)
    for broken in (b"", slot[:12], slot[:-1], bytes(100)):
        with pytest.raises(SealBroken):
            wrapper.unwrap(PLACE, broken)
    assert wrapper.unwrap(PLACE, slot) == KEY


def test_a_destroyed_generation_opens_nothing_and_the_next_one_does(
    wrapper: DistantWrapper,
) -> None:
    with pytest.raises(KeyMissing):
        wrapper.generations()
    wrapper.found()
    wrapper.found()
    old = wrapper.wrap(PLACE, KEY)
    assert wrapper.begin() == 2
    assert wrapper.generation_of(PLACE, old) == 1
    new = wrapper.rewrap(PLACE, old)
    assert wrapper.rewrap(PLACE, new) == new
    with pytest.raises(InvalidRequest):
        wrapper.destroy(2)
    wrapper.destroy(1)
    wrapper.destroy(1)
    assert wrapper.generations() == [2]
    assert wrapper.generation_of(PLACE, old) is None
    assert wrapper.unwrap(PLACE, new) == KEY
    with pytest.raises(SealBroken):
        wrapper.unwrap(PLACE, old)


def test_of_many_that_make_the_first_root_key_all_open_what_each_wrapped(
    home: settings.Settings,
) -> None:
    """Each as a node would: a token may then have several keys of one number."""
    nodes = [wrapper_of(home) for _ in range(4)]
    threads = [threading.Thread(target=node.make, args=(1,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    slots = [node.wrap(PLACE, KEY) for node in nodes]
    assert {node.unwrap(PLACE, slot) for node in nodes for slot in slots} == {KEY}
    nodes[0].begin()
    nodes[1].destroy(1)
    for slot in slots:
        with pytest.raises(SealBroken):
            nodes[2].unwrap(PLACE, slot)


def test_a_home_with_a_key_file_moves_its_root_key_by_a_rotation(home: settings.Settings) -> None:
    remember(replace(home, root_key=""), "tea")
    engine = bootstrap.build(home)
    assert told(engine) == ["tea"]
    assert (home.keys / KEY_FILE).exists()
    rotated = engine.rotate_root()
    assert rotated.unopened == 0
    assert not (home.keys / KEY_FILE).exists()
    assert told(engine) == ["tea"]
    engine.close()
    remember(home, "coffee")
    again = bootstrap.build(home)
    assert told(again) == ["coffee", "tea"]
    again.close()


def test_a_receipt_counts_the_days_in_which_a_destruction_could_be_undone(
    home: settings.Settings,
) -> None:
    remember(home, "tea")
    engine = bootstrap.build(home)
    receipt = engine.forget(ALICE, Forget(ids=("tea",)))
    rotated = engine.rotate_root()
    days = timedelta(days=7 if home.root_key.startswith("kms:") else 0)
    today = SystemClock().now().date()
    assert rotated.noise_from == today + days
    told_of = " ".join(engine.verify_erased(ALICE, receipt).seen)
    assert f"noise from {today + days}" in told_of
    engine.close()


def test_a_passphrase_and_a_key_service_are_not_mixed(home: settings.Settings) -> None:
    bootstrap.put_under_passphrase(
        replace(home, root_key=""), SystemClock(), "correct horse staple"
    )
    with pytest.raises(InvalidRequest, match="passphrase"):
        bootstrap.build(replace(home, passphrase="correct horse staple"))


@pytest.mark.parametrize(
    "address",
    [
        "kms://",
        "kms://name?region",
        "kms://name?colour=red",
        "kms://name?endpoint=http://kms.example",
        "kms://name with spaces",
        "kms://name?cache=-1",
        "kms://name?cache=soon",
        "vault://name",
        "pkcs11:token=a",
        "pkcs11:token=a;object=b",
        "pkcs11:token=a;object=b?module-path=/m.so&pin-value=1234",
        "pkcs11:token=a;object=b?module-path=/m.so&pin-source=/pin",
        "pkcs11:token=a;object=b?module-path=/m.so&pin-source=file:/nowhere",
        "pkcs11:token=a;object=b?module-path=/m.so",
    ],
)
def test_an_address_that_says_too_little_or_a_secret_is_refused(
    tmp_path: Path, address: str
) -> None:
    with pytest.raises(InvalidRequest):
        bootstrap.build(replace(settings.at_home(tmp_path / "home"), root_key=address))


# -- what is seen when they refuse -----------------------------------------------------------


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_KMS"])
def test_an_endpoint_that_only_the_environment_names_is_reached_over_tls_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "http://10.0.0.7:4566")
    folder = KeysFolder(tmp_path, SystemClock())
    with pytest.raises(InvalidRequest, match="https"):
        KmsWrapper("kms://root?region=eu-central-1", folder).numbers()


def test_a_key_that_is_disabled_or_waits_for_its_deletion_is_unavailable_not_broken(
    kms: KeyService, tmp_path: Path
) -> None:
    """Nothing is lost: enabled again, or with its deletion canceled, it opens every slot."""
    wrapper = KmsWrapper(kms.address(), KeysFolder(tmp_path / "keys", SystemClock()))
    wrapper.found()
    slot, client = wrapper.wrap(PLACE, KEY), wrapper._client
    key = {"KeyId": client.describe_key(KeyId=f"{wrapper._alias}-1")["KeyMetadata"]["KeyId"]}
    client.disable_key(**key)
    for call in (lambda: wrapper.unwrap(PLACE, slot), lambda: wrapper.wrap(PLACE, KEY)):
        with pytest.raises(KeyUnavailable, match="Disabled"):
            call()
    client.enable_key(**key)
    assert wrapper.unwrap(PLACE, slot) == KEY
    client.schedule_key_deletion(**key, PendingWindowInDays=7)
    for call in (lambda: wrapper.unwrap(PLACE, slot), lambda: wrapper.wrap(PLACE, KEY)):
        with pytest.raises(KeyUnavailable, match="InvalidState"):
            call()
    client.cancel_key_deletion(**key)
    client.enable_key(**key)
    assert wrapper.unwrap(PLACE, slot) == KEY


def throttle(relay: Relay) -> None:
    relay.refusing = "ThrottlingException"


def fall_silent(relay: Relay) -> None:
    relay.silent = True


def refuse(relay: Relay) -> None:
    relay.refusing = "AccessDeniedException"


@pytest.mark.parametrize("fail", [throttle, fall_silent, refuse])
def test_a_service_that_throttles_refuses_or_is_silent_costs_nothing_but_time(
    kms: KeyService, tmp_path: Path, fail: Callable[[Relay], None]
) -> None:
    with relayed(kms) as relay:
        folder = KeysFolder(tmp_path / "keys", SystemClock())
        address = kms.address(port=relay.port)
        wrapper = KmsWrapper(address, folder)
        wrapper.found()
        slot = wrapper.wrap(PLACE, KEY)
        fail(relay)
        before = relay.asked
        with pytest.raises(KeyUnavailable):
            KmsWrapper(address, folder, answer_seconds=0.2).unwrap(PLACE, slot)
        assert relay.asked - before <= 3, "it is asked again a few times at most"
        relay.refusing, relay.silent = "", False
        assert wrapper.unwrap(PLACE, slot) == KEY


def test_keys_that_were_unwrapped_last_for_a_while_and_no_longer(
    kms: KeyService, tmp_path: Path
) -> None:
    """A scope that is open goes on without its key service; a key that is withdrawn ends that."""
    with relayed(kms) as relay:
        home = settings.at_home(tmp_path / "home")
        long = replace(home, root_key=kms.address(port=relay.port))
        remember(long, "tea")
        engine = bootstrap.build(long)
        assert told(engine) == ["tea"]
        before = relay.asked
        for number in range(20):
            engine.retain(ALICE, Retain(content=f"note {number}"))
        assert relay.asked == before, "the key service is not asked at every write"
        relay.refusing = "DisabledException"
        engine.retain(ALICE, Retain(content="while it is disabled"))
        engine.close()
        short = replace(long, root_key=long.root_key.replace("cache=300.0", "cache=0"))
        engine = bootstrap.build(short)
        with pytest.raises(KeyUnavailable):
            told(engine)
        relay.refusing = ""
        assert len(told(engine)) == 22
        engine.close()


def test_a_wrong_pin_is_tried_once_because_tokens_lock(token: SoftToken, tmp_path: Path) -> None:
    address = token.address()
    code = f"""
from pathlib import Path
from scrubjay.ports import SystemClock
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.pkcs11 import Module, Pkcs11Wrapper, Token
from scrubjay.model.errors import KeyUnavailable
wrapper = Pkcs11Wrapper({address!r}, KeysFolder(Path("keys"), SystemClock()), "0000")
for _ in range(5):
    try:
        wrapper.generations()
    except KeyUnavailable as error:
        print(error, error.hint)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("PinIncorrect") == 5
    assert "tokens lock" in done.stdout
    assert Pkcs11Wrapper(address, KeysFolder(tmp_path / "keys", SystemClock()), PIN).numbers() == []


def test_processes_that_log_in_to_one_token_at_once_all_get_in(token: SoftToken) -> None:
    spawn = get_context("spawn")
    with spawn.Manager() as manager, ProcessPoolExecutor(_PROCESSES, mp_context=spawn) as pool:
        begun = manager.Barrier(_PROCESSES)
        answers = list(pool.map(_logins, [begun] * _PROCESSES))
    assert answers == [_LOGINS] * _PROCESSES


def test_a_session_from_before_its_module_began_again_is_not_used(token: SoftToken) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(_is_opened_again).result()


def _is_opened_again() -> bool:
    module = Module(str(MODULE))
    own = Token(module, "tests", PIN)
    before = own.ask(lambda session: session)
    module.restart()
    return own.ask(lambda session: session) is not before


def test_a_root_key_that_the_token_tells_nobody_of_is_found(
    token: SoftToken, tmp_path: Path
) -> None:
    """As when its file was half-written at the moment a session read it, which it never repeats."""
    wrapper, child = (tmp_path / "keys", token.address()), get_context("spawn")
    own = Pkcs11Wrapper(wrapper[1], KeysFolder(wrapper[0], SystemClock()), PIN)
    assert own.numbers() == []
    with token.silence(), ProcessPoolExecutor(1, mp_context=child) as pool:
        slot = pool.submit(_found_and_sealed, *wrapper).result()
    assert own.numbers() == [1]
    assert own.unseal(1, PLACE, slot) == KEY


def _found_and_sealed(keys: Path, address: str) -> bytes:
    """A key under a root key that another process made."""
    wrapper = Pkcs11Wrapper(address, KeysFolder(keys, SystemClock()), PIN)
    wrapper.found()
    return wrapper.seal(1, PLACE, KEY)


def _logins(begun: Barrier) -> int:
    """How often one process got in; runs beside others that log in, too."""
    module = Module(str(MODULE))
    begun.wait(300)
    own, done = Token(module, "tests", PIN), 0
    for _ in range(_LOGINS):
        done += own.ask(lambda _session: 1)
        own._restart()  # it may meet a token that is being written, too
    return done
