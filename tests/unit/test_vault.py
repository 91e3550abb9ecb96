"""What the vault promises: what is sealed opens at its place, and nowhere else."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as some

from scrubjay import vault
from scrubjay.model.errors import SealBroken
from scrubjay.model.scope import Scope
from scrubjay.ports import SystemClock
from scrubjay.testing.clock import FakeClock
from scrubjay.vault import CHUNK_BYTES, OVERHEAD, Purpose, Sealer

SECRET = bytes(range(32))
ALICE = Scope("acme", "alice")
ROW = bytes(16)
NONCE = bytes(12)

names = some.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,8}", fullmatch=True)
scopes = some.builds(Scope, names, names)
keys = some.binary(min_size=32, max_size=32)
nonces = some.binary(min_size=12, max_size=12)
epochs = some.integers(0, 2**32 - 1)
versions = some.integers(0, 2**63)
parts = some.one_of(some.text(max_size=6), some.binary(max_size=6), some.integers(0, 2**64 - 1))


def sealer(secret: bytes = SECRET, epoch: int = 3) -> Sealer:
    return Sealer(secret, Purpose.CELL, ALICE, "memory", epoch)


class TestCells:
    @given(
        secret=keys,
        scope=scopes,
        epoch=epochs,
        row_id=some.binary(max_size=32),
        version=versions,
        nonce=nonces,
        plaintext=some.binary(max_size=300),
    )
    def test_what_was_sealed_is_unsealed(
        self,
        *,
        secret: bytes,
        scope: Scope,
        epoch: int,
        row_id: bytes,
        version: int,
        nonce: bytes,
        plaintext: bytes,
    ) -> None:
        cells = Sealer(secret, Purpose.CELL, scope, "memory", epoch)
        cell = cells.seal(plaintext, row_id=row_id, version=version, nonce=nonce)
        assert cells.unseal(cell, row_id=row_id, version=version) == plaintext
        assert len(cell) == len(plaintext) + OVERHEAD
        assert vault.epoch_of(cell) == epoch
        assert vault.nonce_of(cell) == nonce

    @given(plaintext=some.binary(max_size=80), bit=some.integers(0, 10**6))
    def test_no_cell_opens_with_any_bit_changed(self, plaintext: bytes, bit: int) -> None:
        cell = bytearray(sealer().seal(plaintext, row_id=ROW, version=1, nonce=NONCE))
        cell[bit // 8 % len(cell)] ^= 1 << bit % 8
        with pytest.raises(SealBroken):
            sealer().unseal(bytes(cell), row_id=ROW, version=1)

    @given(forged=some.binary(max_size=200))
    def test_no_made_up_bytes_open(self, forged: bytes) -> None:
        with pytest.raises(SealBroken):
            sealer().unseal(forged, row_id=ROW, version=1)

    @given(row_id=some.binary(max_size=20), version=versions, other=scopes, epoch=epochs)
    def test_a_cell_opens_at_no_other_place(
        self, row_id: bytes, version: int, other: Scope, epoch: int
    ) -> None:
        cell = sealer().seal(b"acorn", row_id=ROW, version=1, nonce=NONCE)
        moved = Sealer(SECRET, Purpose.CELL, other, "memory", epoch)
        if (row_id, version, other, epoch) != (ROW, 1, ALICE, 3):
            with pytest.raises(SealBroken):
                moved.unseal(cell, row_id=row_id, version=version)

    def test_the_plaintext_is_nowhere_in_the_cell(self) -> None:
        cell = sealer().seal(b"The jay hid an acorn.", row_id=ROW, version=1, nonce=NONCE)
        assert b"acorn" not in cell

    def test_a_broken_seal_says_nothing_of_the_content(self) -> None:
        cell = sealer().seal(b"acorn", row_id=ROW, version=1, nonce=NONCE)
        with pytest.raises(SealBroken) as raised:
            sealer().unseal(cell, row_id=ROW, version=2)
        assert "acorn" not in raised.value.message + raised.value.hint


class TestJoin:
    @given(one=some.lists(parts, max_size=4), two=some.lists(parts, max_size=4))
    def test_lists_join_alike_only_when_their_bytes_are_equal(
        self, one: list[str | bytes | int], two: list[str | bytes | int]
    ) -> None:
        raw_one, raw_two = [as_bytes(part) for part in one], [as_bytes(part) for part in two]
        assert (vault.join(*one) == vault.join(*two)) == (raw_one == raw_two)

    @given(some.lists(some.binary(max_size=6), max_size=5))
    def test_the_parts_can_be_told_apart_again(self, raw: list[bytes]) -> None:
        joined, found = vault.join(*raw), []
        while joined:
            size = int.from_bytes(joined[:4])
            found.append(joined[4 : 4 + size])
            joined = joined[4 + size :]
        assert found == raw


def as_bytes(part: str | bytes | int) -> bytes:
    if isinstance(part, str):
        return part.encode()
    return part.to_bytes(8) if isinstance(part, int) else part


class TestPadding:
    @given(some.binary(max_size=200))
    def test_what_was_padded_is_unpadded(self, plaintext: bytes) -> None:
        padded = vault.pad(plaintext)
        assert vault.unpad(padded) == plaintext
        assert len(padded) % 64 == 0
        assert 1 <= len(padded) - len(plaintext) <= 64

    @given(some.integers(0, 1000))
    def test_sizes_fall_into_buckets_of_64(self, size: int) -> None:
        assert len(vault.pad(bytes(size))) == (size // 64 + 1) * 64

    @pytest.mark.parametrize("wrong", [b"", bytes(64), b"acorn", b"acorn\x00", b"\x80\x01"])
    def test_what_was_not_padded_is_refused(self, wrong: bytes) -> None:
        with pytest.raises(SealBroken):
            vault.unpad(wrong)


class TestStreams:
    @pytest.mark.parametrize(
        "size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]
    )
    def test_what_was_sealed_is_unsealed(self, size: int) -> None:
        body = FakeClock().random(size)
        stream = seal_stream(body)
        assert b"".join(sealer().unseal_stream(stream, row_id=ROW, version=1)) == body
        assert len(list(vault.stream_nonces(stream))) == max(1, -(-size // CHUNK_BYTES))

    def test_a_cut_at_any_length_is_found(self) -> None:
        stream = seal_stream(bytes(CHUNK_BYTES + 100))
        edges = {*range(300), *range(CHUNK_BYTES, len(stream))}
        for size in sorted(edges):
            with pytest.raises(SealBroken):
                list(sealer().unseal_stream(stream[:size], row_id=ROW, version=1))

    def test_a_changed_bit_in_any_chunk_is_found(self) -> None:
        stream = seal_stream(bytes(2 * CHUNK_BYTES + 100))
        for at in range(0, len(stream), 997):
            changed = stream[:at] + bytes([stream[at] ^ 0x10]) + stream[at + 1 :]
            with pytest.raises(SealBroken):
                list(sealer().unseal_stream(changed, row_id=ROW, version=1))

    def test_a_stream_of_one_chunk_is_not_a_cell(self) -> None:
        with pytest.raises(SealBroken):
            sealer().unseal(seal_stream(b"acorn"), row_id=ROW, version=1)
        cell = sealer().seal(b"acorn", row_id=ROW, version=1, nonce=NONCE)
        with pytest.raises(SealBroken):
            list(sealer().unseal_stream(cell, row_id=ROW, version=1))

    def test_chunks_of_two_versions_do_not_mix(self) -> None:
        old = seal_stream(bytes(2 * CHUNK_BYTES), version=1)
        new = seal_stream(bytes(2 * CHUNK_BYTES), version=2)
        cut = CHUNK_BYTES + OVERHEAD
        with pytest.raises(SealBroken):
            list(sealer().unseal_stream(new[:cut] + old[cut:], row_id=ROW, version=2))


def seal_stream(body: bytes, version: int = 1) -> bytes:
    random = FakeClock(version).random
    return sealer().seal_stream(body, row_id=ROW, version=version, random=random)


class TestSlots:
    @given(wrapping=keys, key=keys, nonce=nonces)
    def test_what_was_wrapped_is_unwrapped(self, wrapping: bytes, key: bytes, nonce: bytes) -> None:
        slot = vault.wrap(wrapping, key, address="scope", purpose="lookup", nonce=nonce)
        assert vault.unwrap(wrapping, slot, address="scope", purpose="lookup") == key

    @given(wrapping=keys, other=keys)
    def test_only_the_key_that_wrapped_it_unwraps_it(self, wrapping: bytes, other: bytes) -> None:
        slot = vault.wrap(wrapping, SECRET, address="scope", purpose="lookup", nonce=NONCE)
        if wrapping != other:
            with pytest.raises(SealBroken, match="another key"):
                vault.unwrap(other, slot, address="scope", purpose="lookup")


class TestHashes:
    @given(key=some.binary(max_size=130), messages=some.lists(some.binary(max_size=200)))
    def test_a_mac_is_the_hmac_of_the_standard_library(
        self, key: bytes, messages: list[bytes]
    ) -> None:
        mac = vault.Mac(key)
        expected = [hmac.digest(key, message, "sha256") for message in messages]
        assert [mac.digest(message) for message in messages] == expected

    @given(key=keys, message=some.text())
    def test_a_keyed_hash_is_the_same_for_a_text_and_its_bytes(
        self, key: bytes, message: str
    ) -> None:
        assert vault.Mac(key).short(message) == vault.keyed_hash(key, message.encode())

    def test_a_keyed_hash_depends_on_key_and_message(self) -> None:
        pairs = [(key, text) for key in (SECRET, bytes(32)) for text in (b"a", b"b")]
        assert len({vault.keyed_hash(key, text) for key, text in pairs}) == 4

    def test_a_link_depends_on_everything_before_it(self) -> None:
        links = {
            vault.chain(vault.Mac(key), previous, count, cell)
            for key in (SECRET, bytes(32))
            for previous in (bytes(32), SECRET)
            for count in (1, 2)
            for cell in (b"a", b"b")
        }
        assert len(links) == 16


def test_a_million_cells_share_no_nonce(more: bool) -> None:
    """A hundred thousand by default, a million with --more."""
    count = 1_000_000 if more else 100_000
    cells, random = sealer(), SystemClock().random
    seen = {
        vault.nonce_of(cells.seal(b"", row_id=ROW, version=1, nonce=random(12)))
        for _ in range(count)
    }
    assert len(seen) == count
