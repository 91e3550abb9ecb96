#!/usr/bin/env python3
"""Read a scope without scrubjay: the standard library and `cryptography`, nothing else.

    python tools/read_scope.py HOME tenant/owner      prints one memory per line, as JSON

It is written from docs/format.md alone and shares no code with the package: whoever has the data
folder and the keys folder has the memories, whatever becomes of us. It reads; it never writes.
"""

import base64
import hmac
import json
import sqlite3
import sys
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

LABEL = "scrubjay/1"
HEADER, NONCE, TAG, CHUNK = 6, 12, 16, 65536


def join(*parts):
    """Every part behind its length, four bytes; numbers are eight bytes; big-endian."""
    raws = [p.encode() if isinstance(p, str) else p for p in parts]
    raws = [r.to_bytes(8, "big") if isinstance(r, int) else r for r in raws]
    return b"".join(len(raw).to_bytes(4, "big") + raw for raw in raws)


def derive(secret, purpose, tenant="", owner="", epoch=0):
    """The sub-key of a secret for one purpose."""
    info = join(LABEL, purpose, tenant, owner, epoch)
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)


def unseal(secret, cell, purpose, *, collection, row_id, version=0, scope=("", ""), epoch=0):
    """The plaintext of one cell, or an exception."""
    tenant, owner = scope
    key = derive(secret, purpose, tenant, owner, epoch)
    aad = join(LABEL, purpose, tenant, owner, collection) + join(row_id, epoch, version)
    nonce, body = cell[HEADER : HEADER + NONCE], cell[HEADER + NONCE :]
    return AESGCM(key).decrypt(nonce, body, aad)


def unpad(plaintext):
    """Without the zeros and the 0x80 that fill a cell up."""
    return plaintext.rstrip(b"\0")[:-1]


class Home:
    """A data folder and a keys folder, opened with the key file."""

    def __init__(self, data, keys):
        self.data, self.slots = data, keys / "slots"
        # The last word but the checksum; before it may stand the number of the generation.
        files = [keys / "key", *sorted(keys.glob("key.*"))]
        self.roots = [bytes.fromhex(path.read_text().split()[-2]) for path in files]
        self.installation = self.slot("installation", "root")

    def slot(self, address, purpose):
        """The key in a slot: a commitment of 16 bytes, then a cell."""
        raw = (self.slots / address / purpose).read_bytes()
        name = purpose.encode()
        root = next(one for one in self.roots if derive(one, "commit")[:16] == raw[:16])
        return unseal(root, raw[16:], "wrap", collection=address, row_id=name)

    def address(self, tenant, owner, generation):
        """The name of the scope's file."""
        key = derive(self.installation, "address")
        name = hmac.digest(key, join(tenant, owner, generation), "sha256")[:16]
        return base64.b32encode(name).decode().rstrip("=").lower()

    def scope_file(self, tenant, owner):
        """The file of the scope's latest life; each destroy begins another generation."""
        generation = 1
        while True:
            address = self.address(tenant, owner, generation)
            path = self.data / "scopes" / f"{address}.sqlite"
            if path.exists():
                return address, path
            if generation > 1000:
                sys.exit(f"There is no scope {tenant}/{owner} here.")
            generation += 1

    def memories(self, tenant, owner):
        """Every memory that is not erased, in the order of creation."""
        address, path = self.scope_file(tenant, owner)
        keys = {}
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        query = "SELECT id, born, version, epoch, cell, blob FROM memory WHERE NOT erased"
        for row_id, _, version, epoch, cell, blob in database.execute(query + " ORDER BY born"):
            if epoch not in keys:
                keys[epoch] = self.slot(address, f"memory.{epoch}")
            place = {"collection": "memory", "version": version, "epoch": epoch}
            place["scope"] = (tenant, owner)
            body = unpad(unseal(keys[epoch], cell, "cell", row_id=row_id, **place))
            if blob is not None:
                stream = (self.data / "blobs" / address / blob).read_bytes()
                body = b"".join(read_stream(keys[epoch], stream, join(row_id, blob), place))
            yield json.loads(body)


def read_stream(key, stream, row_id, place):
    """The chunks of a long body: cells that know their place and whether they are the last."""
    step = CHUNK + HEADER + NONCE + TAG
    cells = [stream[at : at + step] for at in range(0, len(stream), step)]
    for index, cell in enumerate(cells):
        chunk = join(row_id, index, int(index == len(cells) - 1))
        yield unseal(key, cell, "blob", row_id=chunk, **place)


def main():
    """Print the memories of one scope."""
    if len(sys.argv) != 3 or "/" not in sys.argv[2]:
        sys.exit(__doc__)
    home = Path(sys.argv[1])
    for memory in Home(home / "data", home / "keys").memories(*sys.argv[2].split("/", 1)):
        print(json.dumps(memory, ensure_ascii=False))


if __name__ == "__main__":
    main()
