"""User-held scopes: one half of every key is with the user, and writes to a locked one wait."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine import Kernel, Policy, Ports
from scrubjay.engine.scope.quota import allowed
from scrubjay.engine.scope.scope_keys import USER_HELD
from scrubjay.model.conversations import Append, NewEntry, ReadConversation
from scrubjay.model.documents import Put, ReadDocument
from scrubjay.model.errors import (
    Conflict,
    Destroyed,
    Frozen,
    InvalidRequest,
    KeyMissing,
    LimitReached,
    ScrubjayError,
    SealBroken,
    UserLocked,
)
from scrubjay.model.origin import Actor, Origin
from scrubjay.model.purposes import SetPurpose
from scrubjay.model.requests import (
    Browse,
    Caller,
    Destroy,
    Export,
    Forget,
    FreezeRequest,
    Get,
    Recall,
    Restore,
    Retain,
    Supersede,
)
from scrubjay.model.results import Outcome
from scrubjay.model.rows import Collection, Freeze
from scrubjay.model.scope import Quota, Scope
from scrubjay.model.turns import Record
from scrubjay.model.user_keys import OPEN_SECONDS, Hold, Unlock
from scrubjay.ports import Failpoint
from scrubjay.vault import Cost
from tests.support.engines import MemoryHome, SimulatedCrash

ALICE = Scope("acme", "alice")
QUICK = Policy(passphrase_cost=Cost(memory_kib=64, passes=1, lanes=1))
WORDS = "three jays in one oak"
NEEDLE = "the heron nests at Quilltop"
AGENT = Caller(actor=Actor.AGENT, ceiling=Origin.AGENT, key="abcdefgh")


class Custody:
    """What a user has at hand, in memory."""

    def __init__(self, passphrase: str | None = None) -> None:
        self.words = passphrase
        self.kept: dict[str, bytes] = {}

    def passphrase(self) -> str | None:
        return self.words

    def keep(self, address: str, secret: bytes) -> None:
        self.kept[address] = secret

    def find(self, address: str) -> bytes | None:
        return self.kept.get(address)

    def drop(self, address: str) -> None:
        self.kept.pop(address, None)


class UserHome(MemoryHome):
    """An installation whose process may have something of its user at hand."""

    custody: Custody | None = None

    def ports(self, policy: Policy | None = None) -> Ports:
        return replace(super().ports(policy or QUICK), custody=self.custody)


@pytest.fixture
def home() -> UserHome:
    return UserHome("user keys")


@pytest.fixture
def engine(home: UserHome) -> Kernel:
    return home.engine()


def held(engine: Kernel, *texts: str) -> str:
    """A scope with these memories under keys of its user, locked; its recovery key."""
    for text in texts:
        engine.retain(ALICE, Retain(text))
    recovery = engine.hold(ALICE, Hold(passphrase=WORDS)).recovery
    engine.lock(ALICE)
    return recovery


def told(engine: Kernel) -> None:
    """Something in every collection that is asked for."""
    engine.retain(ALICE, Retain(NEEDLE, id="mem-known", session="chat"))
    engine.record(ALICE, Record(user="I prefer window seats.", assistant="Noted."))
    engine.set_purpose(ALICE, SetPurpose(purpose="patterns", on=False))
    engine.put(ALICE, Put("notes/heron.md", value=NEEDLE))
    engine.append(ALICE, Append("chat", entries=(NewEntry(body={"text": NEEDLE}),)))


def contents(engine: Kernel) -> set[str]:
    return {one.content for one in engine.browse(ALICE, Browse())}


READING: dict[str, Callable[[Kernel], object]] = {
    "recall": lambda engine: engine.recall(ALICE, Recall("where does the heron nest?")),
    "browse": lambda engine: engine.browse(ALICE),
    "brief": lambda engine: engine.brief(ALICE),
    "get": lambda engine: engine.get(ALICE, Get("mem-known")),
    "turns": lambda engine: engine.turns(ALICE),
    "document": lambda engine: engine.document(ALICE, ReadDocument(("notes", "heron.md"))),
    "conversation": lambda engine: engine.conversation(ALICE, ReadConversation("chat")),
    "sessions": lambda engine: engine.sessions(ALICE),
    "export": lambda engine: engine.export(ALICE, Export()),
    "backup": lambda engine: engine.backup(ALICE),
    "statistics": lambda engine: engine.statistics(ALICE),
    "purposes": lambda engine: engine.purposes(ALICE),
    "supersede": lambda engine: engine.supersede(ALICE, Supersede("mem-known", "x")),
}


@pytest.mark.parametrize("verb", READING)
def test_a_locked_scope_is_read_by_nobody(engine: Kernel, verb: str) -> None:
    """Every verb that reads says that its user has locked it."""
    told(engine)
    engine.recall(ALICE, Recall("where does the heron nest?"))  # index and plaintext are cached
    held(engine)
    with pytest.raises(UserLocked):
        READING[verb](engine)


@pytest.mark.parametrize("verb", READING)
def test_who_has_the_whole_disk_of_a_locked_scope_cannot_read_it(
    home: UserHome, engine: Kernel, verb: str
) -> None:
    """Rows, slots and the root key together are one half: another process opens nothing either."""
    told(engine)
    held(engine)
    with pytest.raises(UserLocked):
        READING[verb](home.engine())


def test_the_slots_of_a_user_held_scope_open_no_cell(home: UserHome, engine: Kernel) -> None:
    """Host and root key have every slot of the scope, and no key of its cells."""
    engine.retain(ALICE, Retain(NEEDLE))
    held(engine)
    address, state = next(iter(home.rows().items()))
    scope_slots = home.keyring.slots.read(address)
    assert not [name for name in scope_slots if name.startswith("memory.") and len(name) < 15]
    kept = home.keyring.get(address, f"memory.{USER_HELD}", ALICE)
    row = next(one for one in state.rows[Collection.MEMORY].values() if one.cell)
    sealer = vault.Sealer(kept, vault.Purpose.CELL, ALICE, "memory", row.epoch)
    with pytest.raises(SealBroken):
        sealer.unseal(row.cell or b"", row_id=row.id, version=row.version)


@pytest.mark.parametrize("way", ["passphrase", "recovery"])
def test_its_user_unlocks_it(home: UserHome, engine: Kernel, way: str) -> None:
    """By the passphrase or by the printed recovery key, in any process."""
    recovery = held(engine, NEEDLE)
    other = home.engine()
    by_words = way == "passphrase"
    other.unlock(ALICE, Unlock(passphrase=WORDS) if by_words else Unlock(recovery=recovery.lower()))
    assert contents(other) == {NEEDLE}
    with pytest.raises(UserLocked):
        contents(engine)


def test_a_wrong_passphrase_opens_nothing_and_is_audited(engine: Kernel) -> None:
    """The trail has every try that failed."""
    held(engine, NEEDLE)
    with pytest.raises(UserLocked):
        engine.unlock(ALICE, Unlock(passphrase="three jays in one elm"))
    with pytest.raises(UserLocked):
        contents(engine)
    assert "unlock.refused" in [one.verb for one in engine.audit(ALICE)]


def test_a_scope_that_is_not_used_locks_itself(home: UserHome, engine: Kernel) -> None:
    """After the time it was unlocked for, counted from its last use."""
    held(engine, NEEDLE)
    engine.unlock(ALICE, Unlock(passphrase=WORDS, seconds=60))
    home.clock.advance(timedelta(seconds=50))
    assert contents(engine)
    home.clock.advance(timedelta(seconds=50))
    assert contents(engine)
    home.clock.advance(timedelta(seconds=61))
    with pytest.raises(UserLocked):
        contents(engine)


def test_upkeep_drops_the_keys_of_a_scope_that_nobody_uses(home: UserHome, engine: Kernel) -> None:
    """Its half leaves the memory without a further call."""
    engine.retain(ALICE, Retain(NEEDLE))
    engine.hold(ALICE, Hold(passphrase=WORDS))
    home.clock.advance(timedelta(seconds=OPEN_SECONDS + 1))
    engine.upkeep()
    assert engine._opened[ALICE].keys.locked
    assert engine._opened[ALICE].kept.size == 0


def test_what_its_user_has_at_hand_opens_it_unasked(home: UserHome, engine: Kernel) -> None:
    """A passphrase that was given to the process, or the keyring of the system."""
    held(engine, NEEDLE)
    home.custody = Custody(WORDS)
    assert contents(home.engine()) == {NEEDLE}
    other = home.engine()
    other.hold(ALICE, Hold(keychain=True))
    home.custody.words = None
    assert contents(home.engine()) == {NEEDLE}
    home.custody.kept.clear()
    with pytest.raises(UserLocked):
        contents(home.engine())


def test_a_changed_passphrase_opens_it_and_the_old_one_does_not(engine: Kernel) -> None:
    """Nor does the old recovery key; two changes at once are one and a conflict."""
    recovery = held(engine, NEEDLE)
    with pytest.raises(UserLocked):
        engine.hold(ALICE, Hold(passphrase="mine now"))
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    renewed = engine.hold(ALICE, Hold(passphrase="two owls")).recovery
    engine.lock(ALICE)
    for way in (Unlock(passphrase=WORDS), Unlock(recovery=recovery)):
        with pytest.raises(UserLocked):
            engine.unlock(ALICE, way)
    engine.unlock(ALICE, Unlock(recovery=renewed))
    assert contents(engine) == {NEEDLE}


def test_a_rotation_and_a_forget_keep_it_user_held(home: UserHome, engine: Kernel) -> None:
    """Epochs only rise, and all from the first user-held one on have two halves."""
    held(engine, NEEDLE, "likes tea")
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    engine.forget(
        ALICE,
        Forget(query="likes tea", confirm=engine.preview(ALICE, Forget(query="likes tea")).token),
    )
    engine.rotate(ALICE)
    assert contents(engine) == {NEEDLE}
    assert all(
        int(name.rpartition(".")[2]) > USER_HELD
        for slots in home.slots().values()
        for name in slots
        if name.startswith("memory.")
    )
    engine.lock(ALICE)
    with pytest.raises(UserLocked):
        contents(engine)


def test_every_collection_is_user_held_also_those_not_used_yet(engine: Kernel) -> None:
    """So no key that the host makes alone ever seals a row of such a scope."""
    held(engine)
    head = engine.head(ALICE)
    assert all(head.at(one).epoch >= USER_HELD for one in Collection)


def test_another_process_that_had_it_open_seals_nothing_under_half_a_key(
    home: UserHome, engine: Kernel
) -> None:
    """It sees the epoch of the head, and leaves what it is told in the inbox."""
    engine.retain(ALICE, Retain("likes tea"))
    other = home.engine()
    assert contents(other) == {"likes tea"}
    held(engine)
    assert other.retain(ALICE, Retain(NEEDLE)).outcome is Outcome.WAITING
    with pytest.raises(UserLocked):
        contents(other)
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert contents(engine) == {"likes tea", NEEDLE}


# -- what the host can do ------------------------------------------------------------------------


def test_a_locked_scope_is_counted_frozen_audited_and_destroyed(engine: Kernel) -> None:
    """Acts of an administrator need no key of the user."""
    held(engine, NEEDLE)
    engine.retain(ALICE, Retain("waits"))
    found = engine.holdings(ALICE)
    assert (found.memories, found.user_held, found.locked, found.waiting) == (1, True, True, 1)
    engine.freeze(ALICE, FreezeRequest(Freeze.ALL))
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    assert len(engine.audit(ALICE)) > 3
    token = engine.destroy_token(ALICE).token
    receipt = engine.destroy(ALICE, Destroy(token=token))
    assert receipt.memories == 1
    with pytest.raises(Destroyed):
        engine.open(ALICE)


def test_a_rotation_of_the_root_key_does_not_open_it_nor_lose_it(
    home: UserHome, engine: Kernel
) -> None:
    """The host's half is wrapped anew; the user's opens it as before."""
    held(engine, NEEDLE)
    assert engine.rotate_root().unopened == 0
    other = home.engine()
    other.unlock(ALICE, Unlock(passphrase=WORDS))
    assert contents(other) == {NEEDLE}


def test_a_fingerprint_of_a_text_needs_the_half_of_its_user(engine: Kernel) -> None:
    """Who guesses a text cannot prove it by the lookup key, which the host has."""
    engine.retain(ALICE, Retain(NEEDLE, id="mem-known"))
    opened = engine._open(ALICE)
    memory = engine.get(ALICE, Get("mem-known"))
    before = opened.said_hash(memory)
    engine.hold(ALICE, Hold(passphrase=WORDS))
    assert opened.said_hash(memory) != before
    engine.lock(ALICE)
    with pytest.raises(UserLocked):
        opened.said_hash(memory)


# -- the inbox -------------------------------------------------------------------------------------


def test_a_locked_scope_takes_writes_and_its_user_finds_them(engine: Kernel) -> None:
    """A memory and a turn wait, sealed, and are carried out when it is unlocked."""
    held(engine)
    kept = engine.retain(ALICE, Retain(NEEDLE))
    said = engine.record(ALICE, Record(user="I prefer window seats.", assistant="Noted."))
    assert (kept.outcome, said.outcome) == (Outcome.WAITING, Outcome.WAITING)
    done = engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert (done.stored, done.waiting) == (2, 0)
    assert engine.get(ALICE, Get(kept.id)).content == NEEDLE
    assert engine.turns(ALICE).data[0].id == said.id
    assert engine.holdings(ALICE).waiting == 0


def test_the_time_of_a_write_that_waits_is_that_of_the_write(
    home: UserHome, engine: Kernel
) -> None:
    """Not that of the unlocking."""
    held(engine)
    at = home.clock.now()
    told = engine.retain(ALICE, Retain(NEEDLE))
    home.clock.advance(timedelta(seconds=86_400))
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert abs((engine.get(ALICE, Get(told.id)).said_at - at).total_seconds()) < 1


def test_nothing_in_the_inbox_can_be_read(home: UserHome, engine: Kernel) -> None:
    """Not in the store, not in the slots; and not by the lookup key."""
    held(engine)
    engine.retain(ALICE, Retain(NEEDLE, session="Quilltop talk", tags=("heron",)))
    state = next(iter(home.rows().values()))
    raw = repr(state).encode() + b"".join(state.values.values())
    for needle in (b"Quilltop", b"heron"):
        assert needle not in raw
    assert any(name.startswith("inbox.") for name in state.values)
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    state = next(iter(home.rows().values()))
    assert not any(name.startswith("inbox.") for name in state.values)


def test_the_origin_of_what_waits_is_capped_by_the_writers_key(engine: Kernel) -> None:
    """Whoever claims more in the inbox is no more trusted than the key it came by."""
    held(engine)
    engine.retain(ALICE, Retain(NEEDLE, id="mem-claim", origin=Origin.USER), AGENT)
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    kept = engine.get(ALICE, Get("mem-claim"))
    assert kept.origin is Origin.AGENT
    assert (kept.provenance.key_id, kept.provenance.actor) == ("abcdefgh", Actor.AGENT)


def test_tombstones_win_over_what_waits(engine: Kernel) -> None:
    """What was forgotten before stays forgotten, however often it is told to the inbox."""
    engine.retain(ALICE, Retain(NEEDLE, id="mem-gone", key="k"))
    engine.forget(ALICE, Forget(("mem-gone",)))
    held(engine)
    engine.retain(ALICE, Retain(NEEDLE, id="mem-gone"))
    engine.retain(ALICE, Retain(NEEDLE, key="k"))
    done = engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert (done.stored, done.forgotten) == (0, 2)
    assert contents(engine) == set()


def test_a_repeat_in_the_inbox_is_known(engine: Kernel) -> None:
    """Idempotency holds for what waits, too."""
    held(engine)
    for _ in range(2):
        engine.retain(ALICE, Retain(NEEDLE, key="once"))
    done = engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert (done.stored, done.known) == (1, 1)


def test_a_write_that_is_wrong_by_now_is_dropped_and_holds_up_no_other(
    home: UserHome, engine: Kernel
) -> None:
    """One has expired while it waited; the next is stored."""
    held(engine)
    soon = home.clock.now() + timedelta(hours=1)
    engine.retain(ALICE, Retain("late", expires_at=soon))
    engine.retain(ALICE, Retain(NEEDLE))
    home.clock.advance(timedelta(seconds=7_200))
    done = engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert (done.stored, done.refused) == (1, 1)


def test_a_frozen_scope_takes_nothing_in(engine: Kernel) -> None:
    """Its inbox is closed; what waits in it waits on until it is unfrozen."""
    held(engine)
    engine.retain(ALICE, Retain(NEEDLE))
    engine.freeze(ALICE, FreezeRequest(Freeze.WRITES))
    with pytest.raises(Frozen):
        engine.retain(ALICE, Retain("more"))
    assert engine.unlock(ALICE, Unlock(passphrase=WORDS)).waiting == 1
    engine.freeze(ALICE, FreezeRequest(Freeze.NONE))
    assert contents(engine) == {NEEDLE}


def test_an_inbox_has_an_end(engine: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer cannot fill the disk of a scope that nobody opens."""
    held(engine)
    monkeypatch.setattr("scrubjay.engine.ledger.inbox.MOST", 2)
    engine.retain(ALICE, Retain("one"))
    engine.retain(ALICE, Retain("two"))
    with pytest.raises(LimitReached):
        engine.retain(ALICE, Retain("three"))


def test_what_waits_counts_against_the_quota_of_its_writer(engine: Kernel) -> None:
    """Else a key would leave more than it may, or what was promised would be dropped."""
    held(engine)
    with allowed(Quota(memories=2)):
        engine.retain(ALICE, Retain("one"), AGENT)
        engine.record(ALICE, Record("two", "three"), AGENT)
        with pytest.raises(LimitReached):
            engine.retain(ALICE, Retain("four"), AGENT)
        with pytest.raises(LimitReached):
            engine.record(ALICE, Record("five", "six"), AGENT)
    engine.retain(ALICE, Retain("seven"))
    assert engine.unlock(ALICE, Unlock(passphrase=WORDS)).refused == 0


def test_what_waits_and_was_damaged_or_moved_is_refused(home: UserHome, engine: Kernel) -> None:
    """An entry opens at its number alone; the others are taken in."""
    held(engine)
    for text in ("one", "two", "three"):
        engine.retain(ALICE, Retain(text))
    values = next(iter(home.rows().values())).values
    assert isinstance(values, dict)
    values["inbox.0"] = values["inbox.1"]
    done = engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert (done.stored, done.refused) == (2, 1)
    assert contents(engine) == {"two", "three"}


def test_a_secret_is_removed_before_it_waits(engine: Kernel) -> None:
    """The receipt counts it, as that of any write does."""
    held(engine)
    told = engine.retain(ALICE, Retain("the token is ghp_" + "a1B2" * 9))
    assert sum(told.redacted.values()) == 1


def test_an_emptied_inbox_gets_another_key(home: UserHome, engine: Kernel) -> None:
    """So what was sealed to the one before opens no more once the next erasure has rotated."""
    held(engine)

    def public() -> bytes:
        opened = engine._open(ALICE)
        from scrubjay.engine.scope import user_keys

        state = opened.read(lambda view: user_keys.read(opened, view))
        assert state is not None
        return state.public

    before = public()
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert public() == before, "nothing waited"
    engine.lock(ALICE)
    engine.retain(ALICE, Retain(NEEDLE))
    engine.unlock(ALICE, Unlock(passphrase=WORDS))
    assert public() != before


# -- copies ----------------------------------------------------------------------------------------


def test_the_host_cannot_open_a_backup_of_it(home: UserHome, engine: Kernel) -> None:
    """The key of the backup is in the receipt alone, and in no slot."""
    engine.retain(ALICE, Retain(NEEDLE))
    engine.hold(ALICE, Hold(passphrase=WORDS))
    raw, receipt = engine.backup(ALICE)
    assert not [name for slots in home.slots().values() for name in slots if "backup" in name]
    engine.purge(ALICE)
    with pytest.raises(KeyMissing):
        engine.restore(ALICE, Restore(raw))
    assert engine.restore(ALICE, Restore(raw, key=receipt.key)).known == 1


def test_a_lost_file_is_restored_by_its_user(home: UserHome, engine: Kernel) -> None:
    """Disk and inbox were lost: what the user has at hand makes it whole, and still user-held."""
    engine.retain(ALICE, Retain(NEEDLE))
    recovery = engine.hold(ALICE, Hold(passphrase=WORDS)).recovery
    raw, receipt = engine.backup(ALICE)
    engine.close()
    home.rows().clear()
    other = home.engine()
    with pytest.raises(UserLocked):
        other.restore(ALICE, Restore(raw, key=receipt.key))
    home.custody = Custody(WORDS)
    assert home.engine().restore(ALICE, Restore(raw, key=receipt.key)).loaded == 1
    home.custody = None
    last = home.engine()
    with pytest.raises(UserLocked):
        contents(last)
    assert last.retain(ALICE, Retain("likes tea")).outcome is Outcome.WAITING
    last.unlock(ALICE, Unlock(recovery=recovery))
    assert contents(last) == {NEEDLE, "likes tea"}


# -- killed at every step --------------------------------------------------------------------------


def steps(
    work: Callable[[UserHome, Kernel], object], begin: Callable[[Kernel], object]
) -> list[Failpoint]:
    home = UserHome("steps")
    engine = home.engine()
    begin(engine)
    before = home.crashes.reached.copy()
    work(home, engine)
    return sorted(home.crashes.reached - before)


def _begin_hold(engine: Kernel) -> None:
    engine.retain(ALICE, Retain(NEEDLE, id="mem-known"))
    engine.record(ALICE, Record(user="I prefer window seats.", assistant="Noted."))


def _begin_drain(engine: Kernel) -> None:
    held(engine, "likes tea")
    for number in range(3):
        engine.retain(ALICE, Retain(f"{NEEDLE} {number}"))


def _drain(_: UserHome, engine: Kernel) -> None:
    engine.unlock(ALICE, Unlock(passphrase=WORDS))


def _hold(_: UserHome, engine: Kernel) -> None:
    engine.hold(ALICE, Hold(passphrase=WORDS))


HOLD_STEPS = steps(_hold, _begin_hold)
DRAIN_STEPS = steps(_drain, _begin_drain)


@pytest.mark.parametrize("step", HOLD_STEPS)
def test_a_hold_that_is_killed_happened_or_not(step: Failpoint) -> None:
    """Before its commit the scope is as it was; after it the rotation goes on once unlocked."""
    home = UserHome("killed hold")
    engine = home.engine()
    _begin_hold(engine)
    home.crashes.at(step)
    with pytest.raises(SimulatedCrash):
        _hold(home, engine)
    other = home.engine()
    if other.holdings(ALICE).user_held:
        other.unlock(ALICE, Unlock(passphrase=WORDS))
    else:
        other.hold(ALICE, Hold(passphrase=WORDS))
    other.finish_due(ALICE)
    assert NEEDLE in contents(other)
    plain = [
        name
        for slots in home.slots().values()
        for name in slots
        if name.rpartition(".")[2].isdecimal()
        and int(name.rpartition(".")[2]) < USER_HELD
        and name.startswith(("memory", "turn", "session"))
    ]
    assert plain == []


@pytest.mark.parametrize("visit", [1, 2, 3])
@pytest.mark.parametrize("step", DRAIN_STEPS)
def test_a_drain_that_is_killed_goes_on_to_the_same_end(step: Failpoint, visit: int) -> None:
    """Nothing that waited is lost, and nothing is stored twice."""
    home = UserHome("killed drain")
    engine = home.engine()
    _begin_drain(engine)
    home.crashes.at(step, visit=visit)
    with suppress(SimulatedCrash):  # the third visit of some steps never comes
        _drain(home, engine)
    other = home.engine()
    other.unlock(ALICE, Unlock(passphrase=WORDS))
    assert sorted(one.content for one in other.browse(ALICE)) == sorted(
        ["likes tea", *(f"{NEEDLE} {number}" for number in range(3))]
    )
    assert other.holdings(ALICE).waiting == 0


def test_every_step_of_a_drain_is_killed() -> None:
    """The list of steps has what is special about it."""
    assert Failpoint.INBOX_TAKEN in DRAIN_STEPS
    assert Failpoint.HOLD_COMMITTED in HOLD_STEPS
    assert Failpoint.ROTATE_BATCH_SEALED in HOLD_STEPS


WAYLESS: dict[str, Callable[[], object]] = {
    "hold by nothing": Hold,
    "unlock by nothing": Unlock,
    "unlock by two": lambda: Unlock(passphrase="a", recovery="b"),
    "for longer than a day": lambda: Unlock(passphrase="a", seconds=90_000),
}


@pytest.mark.parametrize("request_", WAYLESS)
def test_a_request_without_one_way_in_is_refused(request_: str) -> None:
    """And so is one for longer than a day."""
    with pytest.raises(InvalidRequest):
        WAYLESS[request_]()


def test_a_scope_that_no_user_holds_is_neither_locked_nor_unlocked(engine: Kernel) -> None:
    """The error says what puts it so."""
    engine.retain(ALICE, Retain(NEEDLE))
    for work in (
        lambda: engine.lock(ALICE),
        lambda: engine.unlock(ALICE, Unlock(passphrase=WORDS)),
    ):
        with pytest.raises(InvalidRequest):
            work()


def test_of_two_that_hold_a_scope_at_once_one_is_told_so(home: UserHome) -> None:
    """The loser keeps no half, and reads nothing with it."""
    first, second = home.engine(), home.engine()
    first.retain(ALICE, Retain(NEEDLE))
    assert contents(second) == {NEEDLE}
    opened = second._open(ALICE)
    first.hold(ALICE, Hold(passphrase=WORDS))
    from scrubjay.engine.scope import user_keys
    from scrubjay.model.requests import USER

    with pytest.raises((Conflict, ScrubjayError)):
        user_keys.hold(opened, Hold(passphrase="another"), USER)
    assert opened.keys.locked
    first.lock(ALICE)
    first.unlock(ALICE, Unlock(passphrase=WORDS))
    assert contents(first) == {NEEDLE}
