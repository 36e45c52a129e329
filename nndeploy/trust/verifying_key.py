# SPDX-License-Identifier: Apache-2.0
"""Public keys that signatures of others are checked by: those of cosign (ECDSA on P-256 with SHA-256), and of ed25519.

A key's id is the SHA-256 of its SubjectPublicKeyInfo, as `PublicKey` has it. Nothing here says whom to trust: the file
of the key does, and who names it.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError
from nndeploy.files.whole_files import read_regular
from nndeploy.trust.public_key import MAX_PEM_BYTES


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key of either kind, and its id."""

    id: str
    _key: Any = field(repr=False)

    def is_signature(self, signature: bytes, message: bytes) -> bool:
        """Returns whether the owner of this key signed a message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256

        more = (ec.ECDSA(SHA256()),) if isinstance(self._key, ec.EllipticCurvePublicKey) else ()
        try:
            self._key.verify(signature, message, *more)
        except InvalidSignature:
            return False
        return True


def read_verifying_key(path: Path) -> VerifyingKey:
    """Returns the key in a PEM file.

    Raises:
        MissingInputError: there is no such file.
        DataError: it holds no public key, or one of another algorithm.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(read_regular(path, MAX_PEM_BYTES))
    except (ValueError, UnsupportedAlgorithm) as err:
        raise DataError("no public key in PEM form", where=str(path), hint="a file *.pub") from err
    is_p256 = isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)
    if not is_p256 and not isinstance(key, Ed25519PublicKey):
        raise DataError("a key of neither ECDSA on P-256 nor ed25519", where=str(path))
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return VerifyingKey(hashlib.sha256(der).hexdigest(), key)
