# SPDX-License-Identifier: Apache-2.0
"""`nndeploy sign`: signatures of keys, tokens and commands, added to a bundle."""

from pathlib import Path
from typing import Any

import click

from nndeploy.cli.commands.loading import BUNDLE
from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.options.signer_options import signer_options, signers_given
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.errors import UsageError

EXAMPLES = """\b
Examples:
  nndeploy sign model.nnd --key farm.key --release 1.4.0
  nndeploy sign model.nnd --signer-cmd 'sign-by-hsm' --public-key farm.pub
  nndeploy sign model.nnd --pkcs11 /usr/lib/softhsm/libsofthsm2.so --token farm --label release --public-key farm.pub
"""


@click.command("sign", epilog=EXAMPLES)
@BUNDLE
@signer_options
@click.option("--release", help="Release to sign, e.g. 1.4.0. Default: the release already signed.")
@click.option("--json", "as_json", is_flag=True, help="Print the signers as JSON on standard output.")
def sign(bundle: Path, release: str | None, as_json: bool, **options: Any) -> None:
    """Sign a BUNDLE: every member, its release and its provenance.

    Signatures by others are kept, unless they signed a different release.
    """
    from nndeploy.installed.bundle_store import name_of
    from nndeploy.trust.signing import sign_bundle
    from nndeploy.trust.statement import check_release

    if name_of(bundle) is not None:  # its name is the SHA-256 that it was checked with
        raise UsageError(
            "an installed bundle is not changed", where=str(bundle), hint="sign the file, and install that again"
        )
    if release is not None:
        check_release(release)
    signers = signers_given(options)
    if not signers:
        raise UsageError("no signer was given", hint="--key farm.key; nndeploy key new makes one")
    signed = sign_bundle(bundle, signers, release)
    effect_is_made()
    if as_json:
        print_json({"bundle": str(bundle), "release": signed.release, "signatures": list(signed.key_ids)})
        return
    print_line(f"{bundle}: {signed}")
