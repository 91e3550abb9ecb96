"""Wrapping keys derived from a master: published vectors, by an implementation of our own here."""

from __future__ import annotations

import hashlib
import hmac
from itertools import combinations

import pytest

from scrubjay.model.scope import Scope
from scrubjay.vault import Purpose, derive

MASTER = bytes(range(32))
VECTORS = {
    ("acme", "alice", 1): "f3087af5ff323984ff0456d991dcc7d577ffb37f8b20a5d82d66df1f3fefc2a4",
    ("acme", "alice", 2): "68b36599d08a800ec2380bb5ebc4744b954f1ea3c5498bd674fce7f296b1f06d",
    ("acme", "alice1", 1): "9f598ec108c405aea42efd858f265c199d5605e61c80e6f0be22cd3165f303e8",
    ("acmea", "lice", 1): "7745d6b46dfd88b99bdac296a5ee15d503eff4ca5e19e5e283bcfeb8af7f772f",
}


def with_length(part: bytes) -> bytes:
    """A part behind its length in four bytes."""
    return len(part).to_bytes(4, "big") + part


def hkdf(secret: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 without a salt (RFC 5869), 32 bytes."""
    extracted = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)


@pytest.mark.parametrize(("tenant", "owner", "generation"), VECTORS)
def test_a_wrapping_key_is_the_published_one(tenant: str, owner: str, generation: int) -> None:
    wanted = VECTORS[tenant, owner, generation]
    parts = (b"scrubjay/1", b"root", tenant.encode(), owner.encode(), generation.to_bytes(8, "big"))
    assert hkdf(MASTER, b"".join(map(with_length, parts))).hex() == wanted
    assert derive(MASTER, Purpose.ROOT, Scope(tenant, owner), generation).hex() == wanted


def test_no_two_owners_share_a_key_however_their_names_are_cut() -> None:
    assert all(one != other for one, other in combinations(VECTORS.values(), 2))
