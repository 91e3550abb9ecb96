"""Wrapping keys derived from a master: published vectors, by an implementation of our own here."""

from __future__ import annotations

import hashlib
import hmac
from itertools import combinations
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest
from msgspec.structs import replace
from pkcs11 import Attribute, KeyType, ObjectClass

from scrubjay import vault
from scrubjay.adapters.keyrings.folder import KeysFolder
from scrubjay.adapters.keyrings.kms import wrapper_of as kms_wrapper_of
from scrubjay.adapters.keyrings.pkcs11 import token_of, wrapper_of
from scrubjay.bootstrap import DERIVED, build
from scrubjay.model.errors import ScrubjayError, SealBroken
from scrubjay.model.requests import Retain
from scrubjay.model.scope import Scope
from scrubjay.ports import SlotPlace, SystemClock
from scrubjay.settings import Settings
from scrubjay.vault import Purpose, derive
from tests.support.key_services import MODULE, PIN, KeyService, SoftToken

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


IN_TOKEN = {
    ("acme", "alice", 1): "48a81d96b60039f239ff77b222e267f38a3719dd04f7d207fe4be42f8bc8df24",
    ("acme", "alice", 2): "b679f9cfa30f1a6561b6c21d25067b786371fc55277ab2637471ff3fea8ba577",
    ("acmea", "lice", 1): "9fce4e7a875ddf2cbff52d1d06679f4d4cfdf29f210f8d0b060a48432b5458c2",
}
"""HKDF-Expand of the same master: what its MAC in a token gives, which gives no master out."""


@pytest.mark.parametrize(("tenant", "owner", "generation"), IN_TOKEN)
def test_a_wrapping_key_that_a_token_derives_is_the_published_one(
    token: SoftToken, tmp_path: Path, tenant: str, owner: str, generation: int
) -> None:
    """By RFC 5869, of a master that was put into SoftHSM; the slot opens under the vector."""
    wanted = bytes.fromhex(IN_TOKEN[tenant, owner, generation])
    parts = (b"scrubjay/1", b"root", tenant.encode(), owner.encode(), generation.to_bytes(8, "big"))
    info = b"".join(map(with_length, parts))
    assert hmac.digest(MASTER, info + b"\x01", hashlib.sha256) == wanted
    address = f"{token.address()}&derive=owner"
    label = f"{address.partition('object=')[2].partition('?')[0]}.{generation}"
    with_master(label)
    wrapper = wrapper_of(address, KeysFolder(tmp_path / "keys", SystemClock()), PIN)
    place = SlotPlace("a" * 26, "memory.1", Scope(tenant, owner))
    sealed = wrapper.seal(generation, place, bytes(32))
    assert vault.unwrap(wanted, sealed[16:], address=place.address, purpose=place.purpose) == bytes(
        32
    )
    assert wrapper.unseal(generation, place, sealed) == bytes(32)


def test_a_wrapping_key_of_kms_is_the_mac_of_its_master(kms: KeyService, tmp_path: Path) -> None:
    """By another client of KMS, over the same `info`; each owner has another one."""
    address = f"{kms.address()}&derive=owner"
    folder = KeysFolder(tmp_path / "keys", SystemClock())
    wrapper = kms_wrapper_of(address, folder)
    wrapper.make(1)
    name, keys = urlsplit(address).netloc + urlsplit(address).path, set[bytes]()
    client = boto3.client("kms", "eu-central-1", endpoint_url=f"http://127.0.0.1:{kms.port}")
    for tenant, owner in (("acme", "alice"), ("acmea", "lice")):
        parts = (b"scrubjay/1", b"root", tenant.encode(), owner.encode(), (1).to_bytes(8, "big"))
        asked = client.generate_mac(
            KeyId=f"alias/{name}-1",
            Message=b"".join(map(with_length, parts)) + b"\x01",
            MacAlgorithm="HMAC_SHA_256",
        )
        place = SlotPlace("a" * 26, "memory.1", Scope(tenant, owner))
        sealed = wrapper.seal(1, place, bytes(32))
        opened = vault.unwrap(asked["Mac"], sealed, address=place.address, purpose=place.purpose)
        assert opened == wrapper.unseal(1, place, sealed) == bytes(32)
        keys.add(asked["Mac"])
    assert len(keys) == 2
    wrapper.make(2)
    wrapper.end(1)
    with pytest.raises(SealBroken):
        wrapper.unseal(1, place, sealed)


def with_master(label: str) -> None:
    """Put the master of the vectors into the token."""
    token_of(str(MODULE), "tests", PIN).ask(
        lambda session: session.create_object(
            {
                Attribute.CLASS: ObjectClass.SECRET_KEY,
                Attribute.KEY_TYPE: KeyType.GENERIC_SECRET,
                Attribute.LABEL: label,
                Attribute.ID: b"0123456789abcdef",
                Attribute.VALUE: MASTER,
                Attribute.TOKEN: True,
                Attribute.SIGN: True,
                Attribute.SENSITIVE: True,
                Attribute.EXTRACTABLE: False,
            }
        )
    )


def test_a_home_with_a_key_file_moves_to_derived_keys_by_a_rotation(tmp_path: Path) -> None:
    """Slots from before open as they are, and are wrapped by keys of their owner from then on."""
    plain = Settings(data=tmp_path / "data", keys=tmp_path / "keys")
    engine = build(plain)
    engine.retain(Scope("acme", "alice"), Retain("likes tea"))
    engine.close()
    derived = replace(plain, root_key=DERIVED)
    engine = build(derived)
    assert engine.rotate_root().unopened == 0
    engine.close()
    engine = build(derived)
    assert [one.content for one in engine.browse(Scope("acme", "alice"))] == ["likes tea"]
    engine.close()
    engine = build(plain)
    with pytest.raises(ScrubjayError):
        engine.browse(Scope("acme", "alice"))
    engine.close()


def test_no_two_owners_share_a_key_however_their_names_are_cut() -> None:
    assert all(one != other for one, other in combinations(VECTORS.values(), 2))
