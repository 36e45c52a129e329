# SPDX-License-Identifier: Apache-2.0
"""The options that say who signs: keys in files, a command, a token.

The PIN of a token comes from the environment, where no list of processes and no history of a shell shows it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.options.option_fields import Command
from nndeploy.cli.options.value_types import ANY_FILE
from nndeploy.errors import MissingInputError, UsageError

if TYPE_CHECKING:
    from nndeploy.trust.signers import Signer

SIGNERS = ("keys", "signer_cmd", "pkcs11", "token", "label", "public_key")
PIN_VARIABLE = "NNDEPLOY_PKCS11_PIN"
_OPTIONS = (
    click.option("--key", "keys", type=ANY_FILE, multiple=True, help="Private key file, *.key (repeatable)."),
    click.option(
        "--signer-cmd", metavar="COMMAND", help="Command that reads a message and writes its 64-byte Ed25519 signature."
    ),
    click.option(
        "--pkcs11", metavar="LIBRARY", help="PKCS#11 library of a token; the PIN is read from $NNDEPLOY_PKCS11_PIN."
    ),
    click.option("--token", help="Label of the token."),
    click.option("--label", help="Label of the key on the token."),
    click.option("--public-key", type=ANY_FILE, help="Public key of the command or token, *.pub."),
)


def signer_options(command: Command) -> Command:
    """Adds the options that say who signs."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def signers_given(parameters: Mapping[str, Any]) -> "list[Signer]":
    """Returns who signs as the user of a command says; nobody where nothing is said.

    Raises:
        UsageError: the options contradict each other.
        MissingInputError, DataError, PolicyError: a key cannot be read, or others may read it; there is no PIN.
    """
    from nndeploy.trust.public_key import read_public_key
    from nndeploy.trust.signers import CommandSigner, TokenSigner, read_key

    keys, signer_cmd, pkcs11, token, label, public_key = (parameters[name] for name in SIGNERS)
    signers: list[Signer] = [read_key(Path(path)) for path in keys]
    if (signer_cmd or pkcs11) and public_key is None:
        raise UsageError("the public key of the command or token is missing", hint="--public-key farm.pub")
    if signer_cmd and pkcs11:
        raise UsageError("--signer-cmd and --pkcs11 exclude each other", hint="sign twice: signatures add up")
    if public_key is not None and signer_cmd:
        signers.append(CommandSigner(read_public_key(Path(public_key)), signer_cmd))
    elif public_key is not None and pkcs11:
        if token is None or label is None:
            raise UsageError("--pkcs11 needs --token and --label")
        pin = os.environ.get(PIN_VARIABLE)
        if pin is None:
            raise MissingInputError(f"the PIN of the token is not in {PIN_VARIABLE}")
        signers.append(TokenSigner(read_public_key(Path(public_key)), pkcs11, token, label, pin))
    return signers
