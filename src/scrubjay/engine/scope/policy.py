"""Policy: the tuning of an engine."""

from __future__ import annotations

from msgspec import Struct

from scrubjay.model.purposes import UsePurpose
from scrubjay.model.scope import Quota
from scrubjay.vault import STRONG, Cost


class Policy(Struct, frozen=True, kw_only=True):
    """Tuning of the engine: sizes, budgets and waiting times."""

    rotate_below: int = 32 * 1024 * 1024
    """Scopes smaller than this rotate before forget returns."""
    slice_seconds: float = 0.05
    """How long a verb may work on what earlier verbs left due."""
    placeholder: str = "[REDACTED]"
    """Placeholder for a removed secret."""
    drop_days: int = 30
    """Days until the empty row of an erased memory is dropped."""
    root_days: int = 0
    """Days after which a root key is replaced by the first write; 0 for only when asked to.

    A passphrase has no schedule: its rotation makes a recovery key that a person has to keep.
    """
    root_keep_days: int = 0
    """Days for which a past root key is kept after a rotation; then older copies are noise."""
    superseded_days: int = 30
    """Days until purge deletes superseded memories."""
    segment_rows: int = 512
    """Memories without a segment at which one is written."""
    evicted_rows: int = 32
    """The same for an index that is evicted from the cache."""
    shelf_bytes: int = 256 * 1024 * 1024
    """Memory budget of the open indexes of all scopes."""
    idle_seconds: float = 3600.0
    """How long an unused scope stays open, with its keys, its index and what was decrypted."""
    kept_bytes: int = 8 * 1024 * 1024
    """Budget of the cache of decrypted memories, per scope."""
    embed_seconds: float = 10.0
    """Timeout of a retain for an embedder whose vectors are stored."""
    turn_embed_seconds: float = 1.5
    """The same for all memories of a turn: callers of record wait at most 2 s."""
    extract_seconds: float = 30.0
    """Timeout of the language model for one turn."""
    consent: frozenset[UsePurpose] = frozenset()
    """Purposes that are off until a person allows them."""
    quota: Quota = Quota()
    """Most that a scope and a tenant may hold; a write beyond it is refused."""
    min_similarity: float | None = None
    """Least similarity of surfaces that ask for one by default; None for that of the embedder."""
    daily_tokens: int = 0
    """Daily token limit of extraction per scope (UTC day); 0 for none."""
    passphrase_cost: Cost = STRONG
    """What a guess at the passphrase of a user-held scope costs."""
    raise_on_embedder_change: bool = False
    """Whether vectors of another embedder raise an error instead of being ignored."""
