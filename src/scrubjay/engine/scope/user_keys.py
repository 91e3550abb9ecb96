"""User-held scopes: one half of every key is in a slot, and the other with the user.

The user's half is random. A passphrase, a recovery key and the keyring of a system each wrap it, in
a value of the scope that is sealed under the lookup key. So the host can count, freeze and destroy,
and without the user it cannot read. A scope that is locked takes writes in its inbox.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrubjay import vault
from scrubjay.engine.scope import rotate
from scrubjay.engine.scope.open_scope import OpenScope
from scrubjay.engine.scope.scope_keys import USER_HELD
from scrubjay.engine.scope.scope_values import ScopeValues
from scrubjay.model.errors import Conflict, InvalidRequest, SealBroken, UserLocked
from scrubjay.model.requests import Caller
from scrubjay.model.rows import Collection, Due
from scrubjay.model.user_keys import OPEN_SECONDS, Held, Hold, Unlock
from scrubjay.ports import Custody, Failpoint, Tx, View
from scrubjay.vault import Cost, Purpose

STATE: Final = "user"
_NOTE: Final = "inbox"
_PHRASE: Final = "user.phrase"
_RECOVERY: Final = "user.recovery"
_KEYCHAIN: Final = "user.keychain"


class UserKey(Struct, frozen=True, kw_only=True):
    """What wraps the user's half, and the inbox: its public key, and the numbers that wait."""

    public: bytes
    recovery: bytes
    phrase: bytes | None = None
    salt: bytes = b""
    cost: Cost = vault.STRONG
    keychain: bytes | None = None
    first: int = 0
    end: int = 0

    @property
    def waiting(self) -> int:
        """How many writes wait in the inbox."""
        return self.end - self.first


# -- the state -------------------------------------------------------------------------------------


def read(opened: OpenScope, view: View) -> UserKey | None:
    """The state of a user-held scope; None if no user holds it."""
    cell = view.value(STATE)
    if cell is None:
        return None
    body = vault.unpad(_sealer(opened).unseal(cell, row_id=STATE.encode(), version=0))
    return msgspec.msgpack.decode(body, type=UserKey)


def write(opened: OpenScope, tx: Tx, state: UserKey) -> None:
    """Replace the state."""
    body, nonce = msgspec.msgpack.encode(state), opened.ports.clock.random(vault.NONCE_BYTES)
    cell = _sealer(opened).seal(vault.pad(body), row_id=STATE.encode(), version=0, nonce=nonce)
    tx.set_value(STATE, cell)


def carried(opened: OpenScope, view: View) -> bytes | None:
    """The state as a backup carries it, without what waits."""
    state = read(opened, view)
    return None if state is None else msgspec.msgpack.encode(replace(state, first=0, end=0))


def adopt(opened: OpenScope, tx: Tx, backed_up: bytes) -> None:
    """Take over the state of a backup, in a file that was lost, with a fresh inbox."""
    if read(opened, tx) is None:
        state = msgspec.msgpack.decode(backed_up, type=UserKey)
        write(opened, tx, renew(opened, tx, state))


def _sealer(opened: OpenScope) -> vault.Sealer:
    return vault.Sealer(opened.keys.lookup, Purpose.USER, opened.scope, STATE)


# -- hold ------------------------------------------------------------------------------------------


def hold(opened: OpenScope, request: Hold, caller: Caller) -> Held:
    """Put a scope under keys of its user, or change what opens it; the recovery key.

    The new epochs are made with both halves; the rotation that follows ends those before.
    """
    if opened.user_held:
        return _change(opened, request, caller)
    random, half = opened.ports.clock.random, opened.ports.clock.random(vault.KEY_BYTES)
    private = random(vault.INBOX_BYTES)
    state, recovery = _wrapped(opened, half, request, vault.Inbox().public(private))
    opened.keys.take_half(half, OPEN_SECONDS)

    def store(tx: Tx) -> None:
        if read(opened, tx) is not None:
            raise Conflict(f"{opened.scope} was put under keys of its user meanwhile.")
        for collection in Collection:
            opened.raise_epoch(tx, collection, USER_HELD)
        opened.leave_due(tx, Due.ROTATE)
        write(opened, tx, state)
        _keep_private(opened, tx, private)
        opened.trail.record(tx, "hold", caller.actor)

    try:
        opened.write(store, frozen_too=True, erasing=True)
    except BaseException:  # seam: whatever kept it from being held, its half opens nothing
        opened.lock()
        raise
    opened.ports.reach(Failpoint.HOLD_COMMITTED)
    resealed = rotate.finish(opened)
    opened.ports.store.settle(opened.address)
    opened.copy_audit_head()
    return Held(recovery=recovery, resealed=resealed)


def _change(opened: OpenScope, request: Hold, caller: Caller) -> Held:
    """Other ways in, in place of those before: they open nothing any more."""
    before = cast(UserKey, opened.read(lambda view: read(opened, view)))
    state, recovery = _wrapped(opened, opened.keys.half, request, before.public)

    def store(tx: Tx) -> None:
        now = cast(UserKey, read(opened, tx))
        if now.recovery != before.recovery:
            raise Conflict("Another process has changed what opens it meanwhile.")
        write(opened, tx, replace(state, first=now.first, end=now.end, public=now.public))
        opened.trail.record(tx, "hold", caller.actor)

    opened.write(store, frozen_too=True, erasing=True)
    if state.keychain is None and before.keychain is not None and opened.ports.custody is not None:
        opened.ports.custody.drop(opened.address)
    return Held(recovery=recovery)


def _wrapped(opened: OpenScope, half: bytes, request: Hold, public: bytes) -> tuple[UserKey, str]:
    """The half, wrapped for every way in, and the recovery key as it is printed."""
    random, cost = opened.ports.clock.random, opened.ports.policy.passphrase_cost
    recovery, salt = random(vault.RECOVERY_BYTES), random(vault.SALT_BYTES)

    def wrap(secret: bytes, purpose: str) -> bytes:
        nonce = random(vault.NONCE_BYTES)
        return vault.wrap(secret, half, address=opened.address, purpose=purpose, nonce=nonce)

    state = UserKey(public=public, recovery=wrap(recovery, _RECOVERY), cost=cost)
    if request.passphrase:
        secret = vault.stretch(request.passphrase, salt, cost)
        state = replace(state, phrase=wrap(secret, _PHRASE), salt=salt)
    if request.keychain:
        secret = random(vault.KEY_BYTES)
        _custody(opened).keep(opened.address, secret)
        state = replace(state, keychain=wrap(secret, _KEYCHAIN))
    return state, vault.recovery_text(recovery)


def _custody(opened: OpenScope) -> Custody:
    if (found := opened.ports.custody) is None:
        raise InvalidRequest("There is no keyring of an operating system here.")
    return found


# -- unlock ----------------------------------------------------------------------------------------


def unlock(opened: OpenScope, request: Unlock, caller: Caller) -> None:
    """Take the user's half in; Locked if the passphrase or the recovery key is wrong."""
    state = opened.read(lambda view: read(opened, view))
    if state is None:
        raise InvalidRequest("No user holds a half of its keys.", hint="`hold` puts it so.")
    try:
        if request.recovery is not None:
            secret = vault.recovery_bytes(request.recovery)
            half = _unwrap(opened, secret, state.recovery, _RECOVERY)
        else:
            half = _by_passphrase(opened, state, request.passphrase or "")
    except UserLocked:
        opened.note_read("unlock.refused", caller.actor)
        opened.flush_reads()
        raise
    opened.keys.take_half(half, request.seconds)
    opened.note_read("unlock", caller.actor)


def unlock_by_custody(opened: OpenScope, backed_up: bytes | None = None) -> bool:
    """Take the half in by what the user has at hand; whether there was such a thing.

    Locked if a passphrase was given, and is wrong. A file that was lost has no state: then the one
    in its backup is asked.
    """
    custody, state = opened.ports.custody, opened.read(lambda view: read(opened, view))
    if state is None and backed_up is not None:
        state = msgspec.msgpack.decode(backed_up, type=UserKey)
    if custody is None or state is None:
        return False
    half = None
    if state.keychain is not None and (secret := custody.find(opened.address)) is not None:
        half = _unwrap(opened, secret, state.keychain, _KEYCHAIN)
    elif state.phrase is not None and (passphrase := custody.passphrase()) is not None:
        half = _by_passphrase(opened, state, passphrase)
    if half is not None:
        opened.keys.take_half(half, OPEN_SECONDS)
    return half is not None


def _by_passphrase(opened: OpenScope, state: UserKey, passphrase: str) -> bytes:
    if state.phrase is None:
        raise UserLocked("No passphrase opens it.", hint="Use the recovery key.")
    secret = vault.stretch(passphrase, state.salt, state.cost)
    return _unwrap(opened, secret, state.phrase, _PHRASE)


def _unwrap(opened: OpenScope, secret: bytes, slot: bytes, purpose: str) -> bytes:
    try:
        return vault.unwrap(secret, slot, address=opened.address, purpose=purpose)
    except SealBroken as error:
        raise UserLocked(
            "That does not open it.", hint="Nothing was changed; try again."
        ) from error


# -- the inbox's key -------------------------------------------------------------------------------


def private_key(opened: OpenScope, view: View) -> bytes:
    """The private key of the inbox; UserLocked while it is locked."""
    return bytes.fromhex(str(ScopeValues(opened, view).get(_NOTE)))


def renew(opened: OpenScope, tx: Tx, state: UserKey) -> UserKey:
    """The state with another key of the inbox.

    With the rotation after the next erasure what was sealed to the one before opens no more.
    """
    private = opened.ports.clock.random(vault.INBOX_BYTES)
    _keep_private(opened, tx, private)
    return replace(state, public=vault.Inbox().public(private))


def _keep_private(opened: OpenScope, tx: Tx, private: bytes) -> None:
    values = ScopeValues(opened, tx)
    values.put(_NOTE, private.hex())
    values.write(tx)
