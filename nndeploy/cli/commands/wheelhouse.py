# SPDX-License-Identifier: Apache-2.0
"""`nndeploy wheelhouse`: all wheels that a device needs, in a folder that is carried there."""

import sys
from pathlib import Path

import click

from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.options.value_types import BOX
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.values.amounts import counted, size_text

EXAMPLES = """\b
Examples:
  nndeploy wheelhouse --for aarch64 --find-links dist -o box
  nndeploy wheelhouse --for raspberry-pi-5 --with onnxruntime --with vision --find-links dist -o box
  nndeploy wheelhouse --for box.toml --find-links dist --python 3.13 --glibc 2.31 -o box
"""


@click.command("wheelhouse", epilog=EXAMPLES)
@click.option(
    "--for", "box", type=BOX, required=True, metavar="TARGET",
    help="Machine to download for: aarch64, x86_64, a target name, or a target file from `nndeploy probe`.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to create; its parent must exist."
)
@click.option(
    "--with", "names", multiple=True, metavar="NAME",
    help="Backend (onnxruntime) or extra (vision) to include (repeatable).",
)  # fmt: skip
@click.option(
    "--python", metavar="VERSION", help="Python version of the target machine. Default: the version in use here."
)
@click.option("--glibc", default="2.28", metavar="VERSION", help="Oldest glibc version that the wheels must support.")
@click.option(
    "--find-links", multiple=True, type=click.Path(path_type=Path), metavar="FOLDER",
    help="Folder of wheels, such as dist of `make wheel`, searched first for nndeploy's own wheels (repeatable).",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was gathered as JSON on standard output.")
def wheelhouse(
    box: str,
    output: Path,
    names: tuple[str, ...],
    python: str | None,
    glibc: str,
    find_links: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Download all wheels that an offline machine needs.

    Downloads with pip and pip's own settings, on a machine with network access. On the offline machine, a script in the
    folder installs the wheels and checks their hashes. Nothing is installed or run here.
    """
    from nndeploy.wheelhouse.here import check_can_gather

    check_can_gather()
    from nndeploy.wheelhouse.box import box_of
    from nndeploy.wheelhouse.gather import extras_of, gather

    asked = box_of(box, glibc, python or f"{sys.version_info.major}.{sys.version_info.minor}")
    found = gather(asked, extras_of(names), find_links, output)
    effect_is_made()
    sizes = [wheel.path.stat().st_size for wheel in found]
    if as_json:
        wheels = [
            {"name": wheel.name, "version": wheel.version, "size_bytes": size}
            for wheel, size in zip(found, sizes, strict=True)
        ]
        print_json({"folder": str(output), "box": str(asked), "wheels": wheels})
        return
    rows = [(wheel.name, wheel.version, size_text(size)) for wheel, size in zip(found, sizes, strict=True)]
    print_table("wheels", ("package", "version", "size"), rows, right=("size",))
    print_line(f"wrote {output}: {counted(len(found), 'wheel')}, {size_text(sum(sizes))}, for {asked}")
    print_line(f"on the target machine, with that folder: sh {output.name}/install.sh /opt/nndeploy")
