# SPDX-License-Identifier: Apache-2.0
"""`nndeploy push`: a bundle to a registry of containers; only the members that it lacks are sent."""

from pathlib import Path
from typing import Any

import click

from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.loading import BUNDLE
from nndeploy.cli.registry_options import registry_options, registry_options_given
from nndeploy.values.amounts import size_text

EXAMPLES = """\b
Examples:
  nndeploy push model.nnd oci://registry.example/vision/faces:1.4
  nndeploy push model.nnd oci://localhost:5000/faces:1.4 --json
"""


@click.command("push", epilog=EXAMPLES)
@BUNDLE
@click.argument("reference", metavar="oci://REGISTRY/REPOSITORY:TAG")
@registry_options
@click.option("--json", "as_json", is_flag=True, help="Print what was sent as JSON on standard output.")
def push(bundle: Path, reference: str, as_json: bool, **options: Any) -> None:
    """Put a BUNDLE into a registry of containers.

    Only what the registry does not have is sent. The first line that is printed names this very bundle for `pull`.
    """
    from nndeploy.registry.push import push as push_bundle

    pushed = push_bundle(bundle, reference, options=registry_options_given(options))
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
            }
        )
    else:
        print_line(str(pushed.reference))
        sent, present = size_text(pushed.sent_bytes), size_text(pushed.present_bytes)
        print_line(f"{bundle}: {pushed.num_members} members; {sent} were sent, {present} were there")
