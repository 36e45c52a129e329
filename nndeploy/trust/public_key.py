# SPDX-License-Identifier: Apache-2.0
"""Public keys of ed25519: their files, their names, and whether a signature is theirs.

A key's id is the SHA-256 of its SubjectPublicKeyInfo in DER, so `openssl pkey -pubin -outform DER | sha256sum` names
the same key. The mathematics are those of the `cryptography` package.

Source: RFC 8032 (ed25519), RFC 8410 (its SubjectPublicKeyInfo), RFC 7468 (PEM).
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import DataError
from nndeploy.files.whole_files import read_regular

RAW_BYTES, SIGNATURE_BYTES = 32, 64
MAX_PEM_BYTES = 16 << 10
_DER_HEAD = bytes.fromhex("302a300506032b6570032100")
_BEGIN, _END = "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key, as the 32 bytes that it is."""

    raw: bytes

    @property
    def id(self) -> str:
        """64 hexadecimal digits that name the key."""
        return hashlib.sha256(self.der).hexdigest()

    @property
    def der(self) -> bytes:
        """The key as a SubjectPublicKeyInfo."""
        return _DER_HEAD + self.raw

    @property
    def pem(self) -> str:
        """The key as the text of a PEM file."""
        return f"{_BEGIN}\n{base64.b64encode(self.der).decode('ascii')}\n{_END}\n"

    def is_signature(self, signature: bytes, message: bytes) -> bool:
        """Returns whether the owner of this key signed a message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def public_key_from_pem(text: str) -> PublicKey:
    """Returns the key that a PEM text says.

    Raises:
        DataError: it says none, or one of another algorithm.
    """
    lines = text.strip().splitlines()
    if len(lines) < 3 or lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        private = "PRIVATE KEY" in text
        raise DataError(
            "a private key, but a public key is required" if private else "no public key in PEM form",
            hint="nndeploy key new writes both; NAME.pub is the public key",
        )
    try:
        der = base64.b64decode("".join(line.strip() for line in lines[1:-1]), validate=True)
    except (binascii.Error, ValueError) as err:
        raise DataError(f"no public key in PEM form: {err}") from err
    if len(der) != len(_DER_HEAD) + RAW_BYTES or not der.startswith(_DER_HEAD):
        raise DataError(
            "not a key of ed25519", hint="nndeploy key new makes one; so does openssl genpkey -algorithm ed25519"
        )
    return PublicKey(der[len(_DER_HEAD) :])


def read_public_key(path: Path) -> PublicKey:
    """Returns the key in a PEM file.

    Raises:
        MissingInputError: there is no such file.
        DataError: it holds no key of ed25519.
    """
    data = read_regular(path, MAX_PEM_BYTES)
    try:
        return public_key_from_pem(data.decode("ascii"))
    except UnicodeDecodeError as err:
        raise DataError("no public key in PEM form", where=str(path)) from err
    except DataError as err:
        err.within(str(path))
        raise
