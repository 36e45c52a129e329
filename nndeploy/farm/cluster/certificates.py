# SPDX-License-Identifier: Apache-2.0
"""Certificates of a cluster: an authority of its own, and what the scheduler, the workers and who sends jobs show.

    <folder>/ca.pem  ca-key.pem        scheduler.pem  scheduler-key.pem   worker...   client...

Comes in: a folder. Goes out: certificates in it, or where those of a role are. Laws: a private key is for its owner
alone, and none is overwritten; a client's certificate cannot stand for a scheduler or a worker.
"""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nndeploy.errors import MissingInputError, PolicyError
from nndeploy.files.whole_files import write_file
from nndeploy.trust.signers import write_private
from nndeploy.trust.trust_store import make_private_folder

SCHEDULER, WORKER, CLIENT = "scheduler", "worker", "client"
ROLES = (SCHEDULER, WORKER, CLIENT)
AUTHORITY = "ca"
VALID_DAYS = 365
_OTHERS = 0o077
_SETTLED = dt.timedelta(hours=1)
"""Clocks of machines differ."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM form: the authority's certificate, one that it signed, and the private key of that."""

    ca: Path
    cert: Path
    key: Path

    def checked(self) -> "Certificates":
        """Returns these.

        Raises:
            MissingInputError: a file is not there.
            PolicyError: others than its owner may read the key.
        """
        for path in (self.ca, self.cert, self.key):
            if not path.is_file():
                hint = "create them with nndeploy farm ca; a machine needs ca.pem and the two files of its role"
                raise MissingInputError("no such file", where=str(path), hint=hint)
        if self.key.stat().st_mode & _OTHERS:
            raise PolicyError(
                "other users can read this private key", where=str(self.key), hint=f"chmod 600 {self.key}"
            )
        return self


def certificates_in(folder: Path, role: str) -> Certificates:
    """Returns the certificates of a role that lie in a folder.

    Raises:
        MissingInputError: a file is not there.
        PolicyError: others than its owner may read the key.
    """
    names = (f"{AUTHORITY}.pem", f"{role}.pem", f"{role}-key.pem")
    return Certificates(*(folder / name for name in names)).checked()


def make_certificates(folder: Path, days: int = VALID_DAYS) -> list[Path]:
    """Makes an authority in a folder and a certificate for each role; returns the files.

    Raises:
        CannotCreateError: one is there already, or they cannot be made.
    """
    make_private_folder(folder)
    authority = _Signer(folder, days)
    for role in ROLES:
        authority.sign(role)
    names = (AUTHORITY, *ROLES)
    return [folder / file for name in names for file in (f"{name}.pem", f"{name}-key.pem")]


class _Signer:
    """An authority, which signs for as many days; its key and certificate are in the folder."""

    def __init__(self, folder: Path, days: int) -> None:
        from cryptography import x509

        self._folder = folder
        self._until = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
        self._key = self._new_key(AUTHORITY)
        self._name = _name("authority")
        usage = _key_usage(x509, key_cert_sign=True, crl_sign=True)
        builder = self._builder(self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._write(AUTHORITY, builder.add_extension(usage, critical=True))

    def sign(self, role: str) -> None:
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        builder = self._builder(_name(role), self._new_key(role))
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(x509, digital_signature=True), critical=True)
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]  # a scheduler and a worker call each other
        purposes += [] if role == CLIENT else [ExtendedKeyUsageOID.SERVER_AUTH]
        self._write(role, builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False))

    def _new_key(self, name: str) -> Any:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        write_private(self._folder / f"{name}-key.pem", key.private_bytes(*form))
        return key

    def _builder(self, name: Any, key: Any) -> Any:
        from cryptography import x509

        of_authority = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(dt.datetime.now(dt.UTC) - _SETTLED)
            .not_valid_after(self._until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(of_authority), critical=False)
        )

    def _write(self, name: str, builder: Any) -> None:
        from cryptography.hazmat.primitives import hashes, serialization

        text = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        write_file(self._folder / f"{name}.pem", lambda file: file.write(text))


def _name(role: str) -> Any:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"nndeploy farm {role}")])


def _key_usage(x509: Any, **wanted: bool) -> Any:
    usages = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: wanted.get(name, False) for name in usages})
