"""Generations of the root key: every slot is wrapped anew, and the old root key is destroyed.

another generation begun → every slot under it → noted in the catalog → the old ones destroyed when
their time is over. A process may die at any arrow; the next rotation continues from there. From the
day on which a generation is destroyed, every older copy of slots and rows is noise: in a log, on a
replica, or in a backup that nobody remembers.

On a schedule the first process that writes on a day does what is due, and so does a service.
"""

from __future__ import annotations

import logging
from datetime import date, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from scrubjay import vault
from scrubjay.engine.scope.engine_ports import Ports
from scrubjay.engine.scope.installation import installation_key, scope_name
from scrubjay.engine.scope.keyring import INSTALLATION
from scrubjay.model.errors import ScrubjayError
from scrubjay.model.results import RootRotated
from scrubjay.ports import Failpoint, Progress, every_entry, no_progress
from scrubjay.vault import Purpose, Sealer

_LEASE: Final = "lease/root"
_LEASE_SECONDS: Final = 600.0
"""Who was cut off is replaced after that long; of two at work neither undoes what the other did."""
_log = logging.getLogger(__name__)


class RootNote(Struct, frozen=True, kw_only=True):
    """When a generation began, and when those before it end."""

    generation: int
    begun: date
    ends: date


def rotate(ports: Ports, *, progress: Progress = no_progress) -> RootRotated:
    """Begin another generation, wrap every slot under it, and destroy those that are due."""
    keyring = ports.keyring
    keyring.check_deletable()
    known, generations = notes(ports), keyring.wrapper.generations()
    # One that was begun and not noted was cut off: it is brought to its end.
    if len(generations) == 1 or any(note.generation == generations[-1] for note in known):
        keyring.wrapper.begin()
    ports.reach(Failpoint.ROOT_BEGUN)
    done, left = _rewrap(ports, progress)
    ports.reach(Failpoint.ROOT_REWRAPPED)
    today = ports.clock.now().date()
    ends = today + timedelta(days=ports.policy.root_keep_days)
    if promised := noise_from(ports):  # a rotation that is late does not put off what was said
        ends = min(ends, max(promised - _undo(ports), today))
    _note(ports, ends)
    _destroy_due(ports)
    return RootRotated(
        generation=keyring.generation,
        rewrapped=done,
        unopened=left,
        noise_from=ends + _undo(ports),
        recovery=keyring.wrapper.renewed,
    )


def keep_schedule(ports: Ports) -> None:
    """Rotate if the root key is due, and destroy those whose time is over; it never fails.

    One process of an installation at a time, under a lease in the shared state.
    """
    now, mine = ports.clock.now().timestamp(), ports.clock.random(16)
    exchange = ports.store.shared.exchange
    try:
        if exchange(_LEASE, None, mine, now=now, until=now + _LEASE_SECONDS):
            _keep(ports)
            exchange(_LEASE, mine, None, now=ports.clock.now().timestamp(), until=now)
    except ScrubjayError as error:
        _log.warning("root_key.left_due", extra={"code": error.code})


def _keep(ports: Ports) -> None:
    scheduled = bool(ports.policy.root_days) and not ports.keyring.wrapper.attended
    known, today = notes(ports), ports.clock.now().date()
    if scheduled and not known:
        _note(ports, today)  # the schedule begins
    elif scheduled and known[-1].begun + timedelta(days=ports.policy.root_days) <= today:
        rotate(ports)
    else:
        _destroy_due(ports)


def _note(ports: Ports, ends: date) -> None:
    today = ports.clock.now().date()
    note = RootNote(generation=ports.keyring.generation, begun=today, ends=ends)
    nonce, body = ports.clock.random(vault.NONCE_BYTES), vault.pad(msgspec.json.encode(note))
    cell = _sealer(ports).seal(body, row_id=b"root", version=0, nonce=nonce)
    ports.store.catalog.add_receipt(INSTALLATION.address, cell)


def _destroy_due(ports: Ports) -> None:
    """Destroy the generations whose time is over, unless a failover could need them still."""
    today, wrapper = ports.clock.now().date(), ports.keyring.wrapper
    past = max((one.generation - 1 for one in notes(ports) if one.ends <= today), default=0)
    if wrapper.generations()[0] > past:
        return
    keyring, lasting = ports.keyring, ports.store.lasting
    if keyring.slots.beside_rows:
        if not all(map(lasting, keyring.addresses())):
            return
        # After a failover what lasts may be an older copy, with slots of the past root key.
        if _rewrap(ports, no_progress)[0]:
            return
    wrapper.destroy(past)


def _rewrap(ports: Ports, progress: Progress) -> tuple[int, int]:
    """Wrap every slot under the present generation; how many were, and how many do not open."""
    key = installation_key(ports)
    owners = {entry.address: scope_name(key, entry) for entry in every_entry(ports.store.catalog)}
    return ports.keyring.rewrap(owners.get, progress=progress)


def noise_from(ports: Ports) -> date | None:
    """Day on which the present root key is destroyed by schedule; None if there is none."""
    if not ports.policy.root_days or ports.keyring.wrapper.attended:
        return None
    known = notes(ports)
    begun = known[-1].begun if known else ports.clock.now().date()
    kept = timedelta(days=ports.policy.root_days + ports.policy.root_keep_days)
    return begun + kept + _undo(ports)


def _undo(ports: Ports) -> timedelta:
    """How long a key service could still undo a destruction."""
    return timedelta(days=ports.keyring.wrapper.undo_days)


def notes(ports: Ports) -> list[RootNote]:
    """What is noted of the generations of the root key, oldest first."""
    sealer, found = _sealer(ports), []
    for cell in ports.store.catalog.receipts(INSTALLATION.address):
        body = vault.unpad(sealer.unseal(cell, row_id=b"root", version=0))
        found.append(msgspec.json.decode(body, type=RootNote))
    return found


def seen_of(ports: Ports, generation: int) -> str:
    """What can be said of copies from the time of a generation, in a sentence."""
    if not generation:
        return "The receipt is older than generations of the root key."
    if generation in ports.keyring.wrapper.generations():
        later = [note for note in notes(ports) if note.generation > generation]
        when = f"on {later[0].ends}" if later else "by the next rotation of the root key"
        return f"Root key {generation} is there: it is destroyed {when}, and older copies with it."
    ends = [note.ends for note in notes(ports) if note.generation > generation]
    when = f"from {min(ends) + _undo(ports)}" if ends else "by now"
    return f"Root key {generation} is destroyed: older copies are noise {when}."


def _sealer(ports: Ports) -> Sealer:
    return Sealer(installation_key(ports), Purpose.RECEIPT, None, "catalog")
