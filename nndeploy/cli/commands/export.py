# SPDX-License-Identifier: Apache-2.0
"""`nndeploy export`: a bundle as one program, for machines without Python."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.commands.loading import BUNDLE
from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.value_types import ANY_FILE
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.errors import UsageError

EXAMPLES = """\b
Examples:
  nndeploy export digits.nnd -o digits
  nndeploy export digits.nnd -o digits-arm --for aarch64
  nndeploy export digits.nnd -o digits.a --library
"""


class Architecture(click.Choice):  # type: ignore[type-arg] # generic in click 8.3 and later alone
    """An architecture by what `uname -m` says, or by what others call it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns what `uname -m` says."""
        from nndeploy.target.target import ARCHS

        return super().convert(ARCHS.get(str(value).lower(), value), param, ctx)


@click.command("export", epilog=EXAMPLES)
@BUNDLE
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="PROGRAM", help="Program to write.")
@click.option(
    "--for", "arch", type=Architecture(["x86_64", "aarch64"]),
    help="Architecture of the Linux machines that run it. Default: this machine's.",
)  # fmt: skip
@click.option(
    "--runner", type=ANY_FILE, metavar="FILE",
    help="Program nndeploy-run of that architecture, e.g. from its wheel. Default: the installed one.",
)  # fmt: skip
@click.option(
    "--library", is_flag=True, help="Write a static library FILE.a that holds the bundle, and FILE.h, for libnndeploy."
)
@click.option(
    "--verify", "keeps_goldens", is_flag=True, help="Keep the bundle's reference outputs, for PROGRAM --verify."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON on standard output.")
def export(
    bundle: Path, output: Path, arch: str | None, runner: str | None, library: bool, keeps_goldens: bool, as_json: bool
) -> None:
    """Write a BUNDLE as one static program that needs no Python.

    Each submodel needs a variant of the backend `native` (compile with --backends native). The program takes arrays as
    NumPy files and gives the same results as `nndeploy run`; ./PROGRAM --help lists its options.
    """
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.runtime.exported_library import export_library
    from nndeploy.runtime.exported_program import export_program
    from nndeploy.values.amounts import size_text

    arch = arch or platform.machine()
    if library and runner is not None:
        raise UsageError("--runner cannot be used with --library")
    with open_bundle(bundle) as opened:
        if library:
            written = export_library(opened, output, arch, keeps_goldens=keeps_goldens)
        else:
            path = None if runner is None else Path(runner)
            written = export_program(opened, output, arch, path, keeps_goldens=keeps_goldens)
    effect_is_made()
    if as_json:
        print_json({"program": str(output), "architecture": arch, **asdict(written)})
        return
    print_line(
        f"wrote {output} for {arch}, {size_text(written.num_bytes)}, of which the bundle is "
        f"{size_text(written.bundle_bytes)}"
    )
    if written.left_out:
        print_line(f"left out: {', '.join(written.left_out)}")
