# SPDX-License-Identifier: Apache-2.0
"""Who can sign: a key in a file, a token that keeps its key to itself, or a command of the operator's.

A message comes in, 64 bytes of ed25519 go out. Laws: a key file is made for its owner alone, and is not read where
others may; what a token or a command gave is checked against the public key before it is used.
"""

import os
import shlex
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nndeploy.errors import CannotCreateError, DataError, PolicyError, UnavailableError, UsageError
from nndeploy.files.whole_files import not_created, open_regular, opened_folder, reading, temporary_file
from nndeploy.trust.public_key import MAX_PEM_BYTES, SIGNATURE_BYTES, PublicKey
from nndeploy.version import install_command

COMMAND_SECONDS = 120
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Signer(Protocol):
    """Signs for one key."""

    @property
    def public(self) -> PublicKey: ...

    def sign(self, message: bytes) -> bytes: ...


@dataclass(frozen=True)
class FileSigner:
    """Signs by a private key that was read from a file."""

    public: PublicKey
    _private: Any = field(repr=False)

    def sign(self, message: bytes) -> bytes:
        """Returns the signature of a message; the same for the same message."""
        signature: bytes = self._private.sign(message)
        return signature


@dataclass(frozen=True)
class CommandSigner:
    """Signs by a command: it reads the message on standard input and writes 64 bytes on standard output."""

    public: PublicKey
    command: str

    def sign(self, message: bytes) -> bytes:
        """Returns the signature that the command gives.

        Raises:
            UnavailableError: it cannot be run, fails, or gives another thing than this key's signature.
            UsageError: it is no command.
        """
        try:
            words = shlex.split(self.command)
        except ValueError as err:
            raise UsageError(f"no command: {err}", where=self.command) from err
        if not words:
            raise UsageError("the signing command is empty")
        try:
            done = subprocess.run(words, input=message, capture_output=True, timeout=COMMAND_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as err:
            raise UnavailableError(f"the signing command cannot be run: {err}", where=words[0]) from err
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise UnavailableError(
                f"the signing command ended with {done.returncode}: {' '.join(last)}", where=words[0]
            )
        return checked_signature(self.public, done.stdout, message, words[0])


@dataclass(frozen=True)
class TokenSigner:
    """Signs by a key that a PKCS#11 token keeps to itself."""

    public: PublicKey
    library: str
    token: str
    label: str
    pin: str = field(repr=False)

    def sign(self, message: bytes) -> bytes:
        """Returns the signature that the token gives.

        Raises:
            UnavailableError: the token is not there, refuses the PIN, has no such key, or the extra is not installed.
        """
        try:
            import pkcs11
        except ImportError as err:
            raise UnavailableError("the PKCS#11 package is not installed", hint=install_command("pkcs11")) from err
        where = f"{self.library}: {self.token}"
        try:
            token = pkcs11.lib(self.library).get_token(token_label=self.token)
            with token.open(user_pin=self.pin) as session:
                key: Any = session.get_key(object_class=pkcs11.ObjectClass.PRIVATE_KEY, label=self.label)
                signature = bytes(key.sign(message, mechanism=pkcs11.Mechanism.EDDSA))
        except (pkcs11.PKCS11Error, RuntimeError, OSError) as err:
            reason = str(err) or type(err).__name__
            raise UnavailableError(f"the token does not sign with {self.label!r}: {reason}", where=where) from err
        return checked_signature(self.public, signature, message, where)


def checked_signature(public: PublicKey, signature: bytes, message: bytes, where: str) -> bytes:
    """Returns a signature that is one of a message by a key.

    Raises:
        UnavailableError: it is none.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise UnavailableError(f"gave {len(signature)} bytes, where a signature has {SIGNATURE_BYTES}", where=where)
    if not public.is_signature(signature, message):
        raise UnavailableError(f"gave a signature that is not of the key {public.id:.16}", where=where)
    return signature


def new_key(path: Path) -> FileSigner:
    """Makes a key in a new file that its owner alone may read.

    Raises:
        CannotCreateError: the file is there, or cannot be made.
        InputOutputError: the disk is full or failed.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(path, text)
    return _signer(private)


def write_private(path: Path, text: bytes) -> None:
    """Makes a new file that its owner alone may read.

    Raises:
        CannotCreateError: the file is there, or cannot be made.
        InputOutputError: the disk is full or failed.
    """
    try:
        with opened_folder(path.parent) as folder:
            _write_new(folder, path.name, text)
            os.fsync(folder)
    except FileExistsError as err:
        raise CannotCreateError("is there already; a key is never overwritten", where=str(path)) from err
    except OSError as err:
        raise not_created(err, path) from err


def _write_new(folder: int, name: str, text: bytes) -> None:
    temporary, descriptor = temporary_file(folder, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)  # whole, and never over another
    finally:
        os.unlink(temporary, dir_fd=folder)


def read_key(path: Path) -> FileSigner:
    """Returns the key in a PEM file of PKCS#8, without a password.

    Raises:
        MissingInputError: there is no such file.
        PolicyError: others than its owner may read it.
        DataError: it holds no private key of ed25519.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    with reading(path), open_regular(path, MAX_PEM_BYTES) as file:
        mode, data = os.fstat(file.fileno()).st_mode, file.read()
    try:
        private = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as err:
        raise DataError("holds no private key in PEM form without a password", where=str(path)) from err
    if not isinstance(private, Ed25519PrivateKey):
        raise DataError("not a key of ed25519", where=str(path))
    if mode & _OTHERS:
        raise PolicyError("other users can read this private key", where=str(path), hint=f"chmod 600 {path}")
    return _signer(private)


def _signer(private: Any) -> FileSigner:
    return FileSigner(PublicKey(private.public_key().public_bytes_raw()), private)
