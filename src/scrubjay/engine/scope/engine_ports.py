"""The adapters an engine stands on, and its policy."""

from __future__ import annotations

from msgspec import Struct

from scrubjay.engine.scope.keyring import Keyring
from scrubjay.engine.scope.policy import Policy
from scrubjay.ports import (
    Blobs,
    Clock,
    Custody,
    Distiller,
    Embedder,
    Extractor,
    Reach,
    Store,
    pass_by,
)


class Ports(Struct, frozen=True, kw_only=True):
    """The adapters an engine works with, one per port, and its policy."""

    store: Store
    blobs: Blobs
    keyring: Keyring
    clock: Clock
    embedder: Embedder
    distiller: Distiller | None = None
    """Derives memories from turns by rules; without one, turns are only stored."""
    extractor: Extractor | None = None
    """Extracts memories by a language model; without one, no turn leaves this machine."""
    custody: Custody | None = None
    """What a user has at hand to open scopes of their own; without one, `unlock` alone opens."""
    reach: Reach = pass_by
    policy: Policy = Policy()
    proven: set[bytes] = set()
    """Hashes of the installation keys that were seen to open this catalog."""
