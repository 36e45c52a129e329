# SPDX-License-Identifier: Apache-2.0
"""`nndeploy sign`: signatures of keys, tokens and commands, added to a bundle."""

import os
from pathlib import Path

import click

from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.loading import BUNDLE
from nndeploy.cli.value_types import ANY_FILE
from nndeploy.errors import MissingInputError, UsageError

EXAMPLES = """\b
Examples:
  nndeploy sign model.nnd --key farm.key --release 1.4.0
  nndeploy sign model.nnd --signer-cmd 'sign-by-hsm' --public-key farm.pub
  nndeploy sign model.nnd --pkcs11 /usr/lib/softhsm/libsofthsm2.so --token farm --label release --public-key farm.pub
"""
PIN_VARIABLE = "NNDEPLOY_PKCS11_PIN"


@click.command("sign", epilog=EXAMPLES)
@BUNDLE
@click.option("--key", "keys", type=ANY_FILE, multiple=True, help="File of a private key, *.key (repeatable).")
@click.option("--signer-cmd", metavar="COMMAND", help="Command that reads a message and writes 64 bytes of ed25519.")
@click.option("--pkcs11", metavar="LIBRARY", help="Library of a PKCS#11 token; the PIN is in NNDEPLOY_PKCS11_PIN.")
@click.option("--token", help="The label of the token.")
@click.option("--label", help="The label of the key on the token.")
@click.option("--public-key", type=ANY_FILE, help="The public key of the command or token, *.pub.")
@click.option("--release", help="The release that is signed, as in 1.4.0. Default: the one that is signed already.")
@click.option("--json", "as_json", is_flag=True, help="Print who signed as JSON on standard output.")
def sign(
    bundle: Path,
    keys: tuple[str, ...],
    signer_cmd: str | None,
    pkcs11: str | None,
    token: str | None,
    label: str | None,
    public_key: str | None,
    release: str | None,
    as_json: bool,
) -> None:
    """Sign a BUNDLE: every member, its release, and how it was made.

    What was signed by others stays, unless they signed another release.
    """
    from nndeploy.installed.bundle_store import name_of
    from nndeploy.trust.public_key import read_public_key
    from nndeploy.trust.signers import CommandSigner, Signer, TokenSigner, read_key
    from nndeploy.trust.signing import sign_bundle
    from nndeploy.trust.statement import check_release

    if name_of(bundle) is not None:  # its name is the SHA-256 that it was checked with
        raise UsageError(
            "an installed bundle is not changed", where=str(bundle), hint="sign the file, and install that again"
        )
    if release is not None:
        check_release(release)
    signers: list[Signer] = [read_key(Path(path)) for path in keys]
    if (signer_cmd or pkcs11) and public_key is None:
        raise UsageError("whose signature the command or token gives is not said", hint="--public-key farm.pub")
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
    if not signers:
        raise UsageError("nobody is named who signs", hint="--key farm.key; nndeploy key new makes one")
    signed = sign_bundle(bundle, signers, release)
    if as_json:
        print_json({"bundle": str(bundle), "release": signed.release, "signatures": list(signed.key_ids)})
        return
    print_line(f"{bundle}: {signed}")
