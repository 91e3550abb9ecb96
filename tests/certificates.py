"""Certificates that were made just now, which nobody vouches for."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def certificate_for_localhost(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate for localhost and of its key."""
    return certificate_for(x509.DNSName("localhost"), folder)


def certificate_for_address(address: str, folder: Path) -> tuple[Path, Path]:
    """The files of a certificate for an address and of its key."""
    return certificate_for(x509.IPAddress(ip_address(address)), folder)


def certificate_for(named: x509.GeneralName, folder: Path) -> tuple[Path, Path]:
    """The files of a certificate and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin.replace(year=2099))
        .add_extension(x509.SubjectAlternativeName([named]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(plain)
    return folder / "cert.pem", folder / "key.pem"
