"""Seal and unseal: the only module that knows an algorithm. The bytes are in docs/format.md.

Two verbs, no options. Every key is used for one purpose: sub-keys come from HKDF-SHA256, cells
are AES-256-GCM under a random nonce, and the associated data says where a cell belongs, so that
a cell moved to another row, scope, epoch or version does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from scrubjay.model.errors import InvalidRequest, SealBroken
from scrubjay.model.scope import Scope

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

FORMAT: Final = 1
AES_256_GCM: Final = 1
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
SALT_BYTES: Final = 16
TAG_BYTES: Final = 16
HASH_BYTES: Final = 16
HEADER_BYTES: Final = 6
OVERHEAD: Final = HEADER_BYTES + NONCE_BYTES + TAG_BYTES
PAD_TO: Final = 64
_EIGHT: Final = (8).to_bytes(4)
CHUNK_BYTES: Final = 64 * 1024
_LABEL: Final = "scrubjay/1"
_BLOCK: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))
Random = Callable[[int], bytes]


class Purpose(StrEnum):
    """What a sub-key is for; no key serves two of these."""

    CELL = "cell"
    VECTOR = "vector"
    BLOB = "blob"
    SEGMENT = "segment"
    ID = "id"
    KEY = "key"
    SESSION = "session"
    APPROVAL = "approval"
    AUDIT = "audit"
    CHAIN = "chain"
    RETENTION = "retention"
    COUNTERS = "counters"
    ADDRESS = "address"
    NAME = "name"
    RECEIPT = "receipt"
    ROOT = "root"
    WRAP = "wrap"
    COMMIT = "commit"
    BUNDLE = "bundle"
    USER = "user"
    HALF = "half"
    INBOX = "inbox"


def join(*parts: str | bytes | int) -> bytes:
    """The parts as one byte string, each behind its length, so that no two lists collide."""
    out = bytearray()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        raw = raw.to_bytes(8) if isinstance(raw, int) else raw
        out += len(raw).to_bytes(4) + raw
    return bytes(out)


def derive(secret: bytes, purpose: Purpose, scope: Scope | None = None, epoch: int = 0) -> bytes:
    """The sub-key of `secret` for one purpose in one scope and epoch."""
    info = derived_info(purpose, scope, epoch)
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


def derived_info(purpose: Purpose, scope: Scope | None = None, epoch: int = 0) -> bytes:
    """What a sub-key is derived over: every part behind its length."""
    tenant, owner = (scope.tenant, scope.owner) if scope else ("", "")
    return join(_LABEL, purpose.value, tenant, owner, epoch)


class Cost(Struct, frozen=True, kw_only=True):
    """Cost parameters of Argon2id."""

    memory_kib: int = 64 * 1024
    passes: int = 3
    lanes: int = 4

    @property
    def sane(self) -> bool:
        """Whether the parameters are within limits: at most 1 GiB, 32 passes, 16 lanes."""
        return (
            1 <= self.lanes <= 16
            and 1 <= self.passes <= 32
            and 8 * self.lanes <= self.memory_kib <= 1024 * 1024
        )


STRONG: Final = Cost()


def stretch(passphrase: str, salt: bytes, cost: Cost) -> bytes:
    """Derive a key from a passphrase with Argon2id; SealBroken if the cost is beyond the limits."""
    if not passphrase:
        raise InvalidRequest("The passphrase is empty.")
    if not cost.sane:
        raise SealBroken(
            "The Argon2id parameters in the file are beyond the limits.",
            hint="Use an undamaged copy of the file; nothing was changed.",
        )
    # Keyboards differ in how they compose an accented letter.
    raw = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    # Loaded here: only a passphrase asks for it, and every command loads this module.
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    return Argon2id(
        salt=salt,
        length=KEY_BYTES,
        iterations=cost.passes,
        lanes=cost.lanes,
        memory_cost=cost.memory_kib,
    ).derive(raw)


class Mac:
    """HMAC-SHA256 under one key; safe for several threads.

    The two halves of the key are absorbed once and copied for every message, which halves the
    cost of the three that each retain takes.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        short = key if len(key) <= _BLOCK else hashlib.sha256(key).digest()
        block = short.ljust(_BLOCK, b"\x00")
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def digest(self, message: bytes) -> bytes:
        """The full code of a message, 32 bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()

    def short(self, message: str) -> bytes:
        """A keyed hash of 16 bytes: equal only for equal messages."""
        return self.digest(message.encode())[:HASH_BYTES]


def keyed_hash(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256, cut to 16 bytes: equal only for equal messages under one key."""
    return Mac(key).digest(message)[:HASH_BYTES]


def chain(mac: Mac, previous: bytes, count: int, cell: bytes) -> bytes:
    """The next link of an audit chain: over `join` of the three, put together by hand."""
    sizes = len(previous).to_bytes(4), len(cell).to_bytes(4)
    return mac.digest(b"".join((sizes[0], previous, _EIGHT, count.to_bytes(8), sizes[1], cell)))


def pad(plaintext: bytes) -> bytes:
    """Lengthen to the next multiple of 64 bytes, so that a cell's size says little."""
    return plaintext + b"\x80" + bytes(-(len(plaintext) + 1) % PAD_TO)


def unpad(padded: bytes) -> bytes:
    """Undo `pad`."""
    plaintext = padded.rstrip(b"\x00")
    if not plaintext.endswith(b"\x80"):
        raise SealBroken("A cell opened, but its padding is wrong.")
    return plaintext[:-1]


def epoch_of(cell: bytes) -> int:
    """The epoch a cell says it was sealed in."""
    return int.from_bytes(cell[2:HEADER_BYTES])


def nonce_of(cell: bytes) -> bytes:
    """The nonce of a cell: random bytes that name it and nothing else."""
    return cell[HEADER_BYTES : HEADER_BYTES + NONCE_BYTES]


class Sealer:
    """Seals and unseals the cells of one purpose under one key; safe for several threads."""

    __slots__ = ("_aad", "_aad_epoch", "_cipher", "_header", "epoch")

    def __init__(
        self, secret: bytes, purpose: Purpose, scope: Scope | None, collection: str, epoch: int = 0
    ) -> None:
        tenant, owner = (scope.tenant, scope.owner) if scope else ("", "")
        self.epoch = epoch
        self._cipher = AESGCM(derive(secret, purpose, scope, epoch))
        self._header = bytes((FORMAT, AES_256_GCM)) + epoch.to_bytes(4)
        self._aad = join(_LABEL, purpose.value, tenant, owner, collection)
        self._aad_epoch = join(epoch)

    def _place(self, row_id: bytes, version: int) -> bytes:
        """The associated data of a cell: `join` of all eight parts, put together by hand."""
        size = len(row_id).to_bytes(4)
        return b"".join((self._aad, size, row_id, self._aad_epoch, _EIGHT, version.to_bytes(8)))

    def seal(self, plaintext: bytes, *, row_id: bytes, version: int, nonce: bytes) -> bytes:
        """The plaintext as a cell that opens only at this id and version."""
        aad = self._place(row_id, version)
        return self._header + nonce + self._cipher.encrypt(nonce, plaintext, aad)

    def unseal(self, cell: bytes, *, row_id: bytes, version: int) -> bytes:
        """The plaintext of a cell; SealBroken unless it is the one sealed at this place."""
        if len(cell) < OVERHEAD or cell[:HEADER_BYTES] != self._header:
            raise SealBroken("A cell is cut short or has an unknown header.")
        aad = self._place(row_id, version)
        body = cell[HEADER_BYTES + NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce_of(cell), body, aad)
        except InvalidTag as error:
            raise SealBroken(
                "A cell does not open: it was altered or moved, or the key is another one."
            ) from error

    def seal_stream(self, body: bytes, *, row_id: bytes, version: int, random: Random) -> bytes:
        """A long body as a row of cells, each bound to its place and to being the last or not."""
        cells = self.seal_pieces([body], row_id=row_id, version=version, random=random)
        return b"".join(cells)

    def seal_pieces(
        self, pieces: Iterable[bytes], *, row_id: bytes, version: int, random: Random
    ) -> Iterator[bytes]:
        """The cells of `seal_stream`, for a body that comes in pieces of any length."""
        left, index = bytearray(), 0
        for piece in pieces:
            left += piece
            while len(left) > CHUNK_BYTES:  # whole, and not the last
                place = join(row_id, index, False)
                chunk, index = bytes(left[:CHUNK_BYTES]), index + 1
                del left[:CHUNK_BYTES]
                yield self.seal(chunk, row_id=place, version=version, nonce=random(NONCE_BYTES))
        place = join(row_id, index, True)
        yield self.seal(bytes(left), row_id=place, version=version, nonce=random(NONCE_BYTES))

    def unseal_stream(self, stream: bytes, *, row_id: bytes, version: int) -> Iterator[bytes]:
        """The chunks of a long body, in order; SealBroken if one is altered, moved or missing.

        Nothing of it is to be used before the last chunk has come.
        """
        step = CHUNK_BYTES + OVERHEAD
        last = max(0, -(-len(stream) // step) - 1)
        for index in range(last + 1):
            place = join(row_id, index, index == last)
            cell = stream[index * step : (index + 1) * step]
            yield self.unseal(cell, row_id=place, version=version)


def stream_nonces(stream: bytes) -> Iterator[bytes]:
    """The nonces of the cells a stream is made of."""
    for at in range(0, len(stream), CHUNK_BYTES + OVERHEAD):
        yield nonce_of(stream[at:])


def wrap(wrapping_key: bytes, key: bytes, *, address: str, purpose: str, nonce: bytes) -> bytes:
    """A key as a slot: a commitment to the wrapping key, then the sealed key."""
    sealer = Sealer(wrapping_key, Purpose.WRAP, None, address)
    slot = sealer.seal(key, row_id=purpose.encode(), version=0, nonce=nonce)
    return commitment(wrapping_key) + slot


def commitment(wrapping_key: bytes) -> bytes:
    """The beginning of every slot that a key wrapped, because AES-GCM is not key-committing."""
    return derive(wrapping_key, Purpose.COMMIT)[:HASH_BYTES]


def unwrap(wrapping_key: bytes, slot: bytes, *, address: str, purpose: str) -> bytes:
    """The key in a slot; SealBroken if the wrapping key is another one or the slot was altered."""
    if not hmac.compare_digest(commitment(wrapping_key), slot[:HASH_BYTES]):
        raise SealBroken(
            "A key slot was wrapped by another key.",
            hint="Use the key file or passphrase that belongs to this keys folder.",
        )
    sealer = Sealer(wrapping_key, Purpose.WRAP, None, address)
    return sealer.unseal(slot[HASH_BYTES:], row_id=purpose.encode(), version=0)


# -- recovery keys -----------------------------------------------------------------------------

RECOVERY_BYTES: Final = 20
_CHECK_BYTES: Final = 5
_GROUP: Final = 5
_LOOKALIKES: Final = str.maketrans("018", "OIB", "- \t\r\n")


def recovery_text(secret: bytes) -> str:
    """The recovery key as it is printed: 40 letters and digits in groups of five."""
    letters = base64.b32encode(secret + _recovery_check(secret)).decode()
    return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))


def recovery_bytes(text: str) -> bytes:
    """Decode a printed recovery key, spaced in any way; InvalidRequest if mistyped."""
    try:
        raw = base64.b32decode(text.upper().translate(_LOOKALIKES))
    except (binascii.Error, ValueError):
        raw = b""
    secret, check = raw[:RECOVERY_BYTES], raw[RECOVERY_BYTES:]
    if not hmac.compare_digest(check, _recovery_check(secret)):
        raise InvalidRequest(
            "The recovery key has a typing error.",
            hint="It is eight groups of five letters and digits; compare each with the print.",
        )
    return secret


def _recovery_check(secret: bytes) -> bytes:
    return hashlib.sha256(b"scrubjay recovery key" + secret).digest()[:_CHECK_BYTES]


# -- what only its user opens ----------------------------------------------------------------------

_SEED_BYTES: Final = 64
_POINT_BYTES: Final = 32
INBOX_BYTES: Final = _SEED_BYTES + _POINT_BYTES
"""Length of the private key of an inbox."""


def with_half(half: bytes, kept: bytes) -> bytes:
    """A key of two halves: the user's, and the one that is kept in a slot."""
    return derive(half + kept, Purpose.HALF)


class Inbox:
    """Sealing to the holder of a private key: HPKE, base mode, ML-KEM-768 with X25519.

    Its imports cost a command line that has no use for them more than most of its own modules.
    """

    def __init__(self) -> None:
        from cryptography.hazmat.primitives import hpke
        from cryptography.hazmat.primitives.asymmetric import mlkem, x25519

        self._hpke, self._mlkem, self._x25519 = hpke, mlkem, x25519
        suite = (hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
        self._suite = hpke.Suite(*suite)

    def public(self, private: bytes) -> bytes:
        """The public key: ML-KEM-768, then X25519."""
        lattice, point = self._parts(private)
        return lattice.public_key().public_bytes_raw() + point.public_key().public_bytes_raw()

    def seal(self, public: bytes, plaintext: bytes, place: bytes) -> bytes:
        """Seal to a public key; it opens at this place alone. Its randomness is the system's."""
        key = self._hpke.MLKEM768X25519PublicKey(
            self._mlkem.MLKEM768PublicKey.from_public_bytes(public[:-_POINT_BYTES]),
            self._x25519.X25519PublicKey.from_public_bytes(public[-_POINT_BYTES:]),
        )
        return bytes(self._suite.encrypt(pad(plaintext), key, self._info(place)))

    def unseal(self, private: bytes, sealed: bytes, place: bytes) -> bytes:
        """The plaintext; SealBroken if it was altered, moved, or sealed to another key."""
        key = self._hpke.MLKEM768X25519PrivateKey(*self._parts(private))
        try:
            return unpad(self._suite.decrypt(sealed, key, self._info(place)))
        except (InvalidTag, ValueError) as error:
            raise SealBroken("What waits in the inbox does not open.") from error

    def _parts(self, private: bytes) -> tuple[MLKEM768PrivateKey, X25519PrivateKey]:
        seed, point = private[:_SEED_BYTES], private[_SEED_BYTES:]
        return (
            self._mlkem.MLKEM768PrivateKey.from_seed_bytes(seed),
            self._x25519.X25519PrivateKey.from_private_bytes(point),
        )

    @staticmethod
    def _info(place: bytes) -> bytes:
        return join(_LABEL, Purpose.INBOX.value, place)
