# SPDX-License-Identifier: Apache-2.0
"""`nndeploy probe`: this machine as a target file, for a compile on another machine."""

from dataclasses import asdict, replace
from pathlib import Path

import click

from nndeploy.cli.console import print_json
from nndeploy.cli.options.output_file import OUTPUT_FILE

EXAMPLES = """\b
Examples:
  nndeploy probe
  nndeploy probe -o box.toml        then, elsewhere: nndeploy compile model.onnx -o model.nnd --target box.toml
"""


def _libraries() -> tuple[tuple[str, str], ...]:
    """Returns the version of the library of each backend that can run here."""
    from nndeploy.plugin.registry import backends_in_order
    from nndeploy.target.target import host_target

    probes = {plugin.name: plugin.probe(host_target()) for plugin in backends_in_order()}
    return tuple(sorted((name, probe.version) for name, probe in probes.items() if probe.can_run and probe.version))


@click.command("probe", epilog=EXAMPLES)
@click.option("-o", "--output", type=OUTPUT_FILE, help="File to write. Default: standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of TOML on standard output.")
def probe(output: Path | None, as_json: bool) -> None:
    """Describe this machine as a target file."""
    from nndeploy.files.named_outputs import write_output
    from nndeploy.target.target import host_target, target_to_toml

    target = replace(host_target(), libraries=_libraries())
    text = target_to_toml(target)
    if output is not None:
        write_output(output, lambda file: file.write(text.encode("utf-8")))
    if as_json:
        print_json(
            asdict(target) | {"level": target.level, "caches": dict(target.caches), "libraries": dict(target.libraries)}
        )
    elif output is None:
        click.echo(text, nl=False)
