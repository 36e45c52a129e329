# SPDX-License-Identifier: Apache-2.0
"""`nndeploy push`: a bundle to a registry of containers; only the members that it lacks are sent."""

from pathlib import Path
from typing import Any

import click

from nndeploy.cli.commands.loading import BUNDLE
from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import sections_of
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.registry_options import registry_options, registry_options_given
from nndeploy.cli.options.signer_options import SIGNERS, signer_options, signers_given
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.registry.options import RegistryOptions
from nndeploy.values.amounts import size_text

EXAMPLES = """\b
Examples:
  nndeploy push model.nnd oci://registry.example/vision/faces:1.4
  nndeploy push model.nnd oci://registry.example/vision/faces:1.4 --key farm.key
  nndeploy push model.nnd oci://localhost:5000/faces:1.4 --json
"""
SECTIONS = sections_of({"Signature in the registry": SIGNERS}, RegistryOptions, {"Registry": ("password_stdin",)})


@click.command("push", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@BUNDLE
@click.argument("reference", metavar="[oci://]REGISTRY/REPOSITORY:TAG")
@signer_options
@registry_options
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print what was sent as JSON on standard output.")
def push(bundle: Path, reference: str, as_json: bool, **options: Any) -> None:
    """Push a BUNDLE to a container registry.

    Only what the registry lacks is uploaded. The first line printed is a reference by digest, for `pull`. With a key, a
    cosign signature is stored next to the bundle; `nndeploy sign` signs the bundle itself.
    """
    from nndeploy.registry.push import push as push_bundle

    signers, registry = signers_given(options), registry_options_given(options)
    pushed = push_bundle(bundle, reference, signers=signers, options=registry)
    effect_is_made()
    if as_json:
        print_json(
            {
                "reference": str(pushed.reference),
                "digest": pushed.reference.digest,
                "bundle": str(bundle),
                "sha256": pushed.sha256,
                "size_bytes": pushed.size_bytes,
                "members": pushed.num_members,
                "sent_bytes": pushed.sent_bytes,
                "present_bytes": pushed.present_bytes,
                "signatures": list(pushed.key_ids),
            }
        )
    else:
        print_line(str(pushed.reference))
        sent, present = size_text(pushed.sent_bytes), size_text(pushed.present_bytes)
        print_line(f"{bundle}: {pushed.num_members} members; {sent} were sent, {present} were there")
        if pushed.key_ids:
            print_line(f"signed beside it by {', '.join(f'{one:.16}' for one in pushed.key_ids)}")
