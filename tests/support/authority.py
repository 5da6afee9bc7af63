"""A private authority, and a server's certificate that it signed, for the loopback address."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Certificate(NamedTuple):
    """PEM files: whom to trust, what the server shows, and its key."""

    ca: str
    chain: str
    key: str


def make(folder: Path) -> Certificate:
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name, name = _name("a private authority"), _name("localhost")
    ca = _begun(ca_name, ca_name, ca_key).add_extension(x509.BasicConstraints(True, None), True)
    ca = ca.add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False)
    here = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    own = _begun(name, ca_name, key).add_extension(here, False)
    own = own.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), False)
    content = {
        "ca.pem": ca.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM),
        "own.pem": own.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM),
        "own.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    }
    for file, data in content.items():
        (folder / file).write_bytes(data)
    return Certificate(*(str(folder / file) for file in content))


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=2))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
