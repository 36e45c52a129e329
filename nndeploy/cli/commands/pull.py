# SPDX-License-Identifier: Apache-2.0
"""`nndeploy pull`: a bundle from a registry of containers; only the members that are not here are fetched."""

from pathlib import Path
from typing import Any

import click

from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.registry_options import SIGNED_BY, registry_options, registry_options_given
from nndeploy.cli.options.value_types import BUNDLE_FILE
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.values.amounts import size_text

EXAMPLES = """\b
Examples:
  nndeploy pull oci://registry.example/vision/faces:1.4 -o faces.nnd
  nndeploy pull oci://registry.example/vision/faces:1.5 -o new.nnd --have faces.nnd
  nndeploy pull oci://registry.example/vision/faces:1.4 -o faces.nnd --signed-by farm.pub
  nndeploy pull oci://localhost:5000/faces:1.4 -o faces.nnd --json
"""


@click.command("pull", epilog=EXAMPLES)
@click.argument("reference", metavar="[oci://]REGISTRY/REPOSITORY:TAG")
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="BUNDLE", help="Bundle to write.")
@click.option(
    "--have", type=BUNDLE_FILE, multiple=True, metavar="BUNDLE",
    help="Local bundle whose members need not be downloaded again (repeatable), besides the one being replaced.",
)  # fmt: skip
@SIGNED_BY
@registry_options
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print what was fetched as JSON on standard output.")
def pull(
    reference: str, output: Path, have: tuple[Path, ...], signed_by: str | None, as_json: bool, **options: Any
) -> None:
    """Pull a bundle from a container registry.

    The file is byte for byte what was pushed. A digest after the tag, or instead of it (@sha256:...), pins one bundle.
    """
    from nndeploy.registry.pull import pull as pull_bundle

    registry = registry_options_given(options)
    pulled = pull_bundle(reference, output, have=have, signed_by=signed_by, options=registry)
    effect_is_made()
    if as_json:
        print_json(
            {
                "reference": str(pulled.reference),
                "digest": pulled.reference.digest,
                "bundle": str(output),
                "sha256": pulled.sha256,
                "size_bytes": pulled.size_bytes,
                "members": pulled.num_members,
                "fetched_bytes": pulled.fetched_bytes,
                "kept_bytes": pulled.kept_bytes,
                "local_bytes": pulled.local_bytes,
            }
        )
    else:
        print_line(str(pulled.reference))
        fetched, local = size_text(pulled.fetched_bytes), size_text(pulled.local_bytes + pulled.kept_bytes)
        print_line(f"{output}: {pulled.num_members} members; {fetched} were fetched, {local} were here")
