# SPDX-License-Identifier: Apache-2.0
"""`nndeploy units`: libraries of static units, which tables put together for any shape, in files of their own."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nndeploy.cli.console import print_json, print_line, size_text
from nndeploy.cli.output_file import OUTPUT_FILE
from nndeploy.cli.value_types import BOX, TABLES_FILE
from nndeploy.errors import BuildRefusedError, UnavailableError, UsageError
from nndeploy.version import __version__

if TYPE_CHECKING:
    from nndeploy.bundle.container import Buffer

EXAMPLES = """\b
Examples:
  nndeploy units build -o units.nnu                                this machine's instruction set
  nndeploy units build -o units-aarch64.nnu --target raspberry-pi-5
  nndeploy units build -o units.nnu --measure                      with the costs of this machine
  nndeploy inspect units.nnu
"""


@click.group("units", epilog=EXAMPLES)
def units() -> None:
    """Make a library of static units that several bundles share."""


@units.command("build", epilog=EXAMPLES)
@click.option("-o", "--output", required=True, type=OUTPUT_FILE, help="File to write, *.nnu.")
@click.option("--target", type=BOX, metavar="BOX", help="A box by name (x86-64-v3) or file. Default: this machine.")
@click.option("--measure", is_flag=True, help="Measure the units' costs here; the bytes then differ from run to run.")
@click.option("--tables", type=TABLES_FILE, help="A file of tables to pack too.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON on standard output.")
def build(output: Path, target: str | None, measure: bool, tables: Path | None, as_json: bool) -> None:
    """Build the library of units for a box's instruction set, as one file."""
    from nndeploy.bundle.units_file import SUFFIX, write_units
    from nndeploy.bundle.units_manifest import TABLES_NAME
    from nndeploy.bundle.writer import check_can_create
    from nndeploy.cli.inspect_units import MAX_TABLES_BYTES, checked_tables, units_maker
    from nndeploy.files.whole_files import read_regular
    from nndeploy.target.known_targets import target_of
    from nndeploy.target.target import host_target

    if output.suffix != SUFFIX:
        raise UsageError(f"a library of units is called *{SUFFIX}, not {output.name!r:.80}")
    check_can_create(output)
    box = host_target() if target is None else target_of(target)
    backend, maker = units_maker()
    members: dict[str, Buffer] = {}
    if tables is not None:
        members[TABLES_NAME] = data = read_regular(tables, MAX_TABLES_BYTES)
        checked_tables(maker, data, str(tables))
    with tempfile.TemporaryDirectory() as folder:
        try:
            artifact = maker.build_units(box, Path(folder), measured=measure)
        except BuildRefusedError as err:
            raise UnavailableError(f"no library of units for {box.name}: {err}") from err
    tools = {**artifact.metadata["tools"], "nndeploy": __version__}
    facts = {**artifact.metadata, **artifact.requires, "backend": backend, "tools": tools}
    manifest = write_units(output, facts, {**artifact.files, **members})
    size = output.stat().st_size
    if as_json:
        print_json({"units": str(output), "size_bytes": size, "isa": manifest.isa})
    else:
        print_line(f"{output}: {len(manifest.units)} units for {manifest.isa}, {size_text(size)}")
