# SPDX-License-Identifier: Apache-2.0
"""`nndeploy export`: a bundle as one program, module or page, for machines without Python."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.commands.loading import BUNDLE
from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.value_types import ANY_FILE, JSON_FILE
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.errors import UsageError

EXAMPLES = """\b
Examples:
  nndeploy export digits.nnd -o digits
  nndeploy export digits.nnd -o digits-arm --for aarch64
  nndeploy export digits.nnd -o digits.exe --for windows
  nndeploy export digits.nnd -o digits --decisions tuned.json
  nndeploy export digits.nnd -o digits.a --library
  nndeploy export digits.nnd -o digits.mjs --for wasm
  nndeploy export digits.nnd -o digits.html --for html
"""


class Form(click.Choice):  # type: ignore[type-arg] # generic in click 8.3 and later alone
    """What is written: a web form, for Windows, or for an architecture of Linux, by any of its names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the form's name; of an architecture what `uname -m` says."""
        from nndeploy.target.target import ARCHS

        return super().convert(ARCHS.get(str(value).lower(), value), param, ctx)


@click.command("export", epilog=EXAMPLES)
@BUNDLE
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="FILE", help="File to write.")
@click.option(
    "--for", "arch", type=Form(["x86_64", "aarch64", "windows", "wasm", "html"]),
    help="A program for Linux on an architecture (default: this machine's) or for Windows on x86-64 (windows), an ES "
    "module for Node and browsers (wasm), or a page that runs it offline (html).",
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
@click.option(
    "--decisions", type=JSON_FILE, metavar="FILE",
    help="Put what `nndeploy tune --decisions FILE` found into the program. It counts on machines of that kind.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON on standard output.")
def export(
    bundle: Path,
    output: Path,
    arch: str | None,
    runner: str | None,
    library: bool,
    keeps_goldens: bool,
    decisions: Path | None,
    as_json: bool,
) -> None:
    """Write a BUNDLE as one file that runs without Python.

    It is a static program, an ES module, or a page. Each submodel needs a variant of the backend `native` (compile with
    --backends native). The program takes arrays as NumPy files and gives the same results as `nndeploy run`; ./PROGRAM
    --help lists its options.
    """
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.runtime.exported_library import export_library
    from nndeploy.runtime.exported_program import WINDOWS, export_program
    from nndeploy.runtime.exported_web import export_module, export_page
    from nndeploy.values.amounts import size_text

    arch = arch or platform.machine()
    web = {"wasm": export_module, "html": export_page}
    of_programs = {"--runner": runner is not None, "--decisions": decisions is not None}
    others = {"--library": library, "--verify": keeps_goldens, **of_programs} if arch in web else of_programs
    if arch in web or library:
        for option in (option for option, is_given in others.items() if is_given):
            raise UsageError(f"{option} cannot be used with {f'--for {arch}' if arch in web else '--library'}")
    built_for = WINDOWS if arch == "windows" else arch
    with open_bundle(bundle) as opened:
        if arch in web:
            written = web[arch](opened, output)
        elif library:
            written = export_library(opened, output, built_for, keeps_goldens=keeps_goldens)
        else:
            path = None if runner is None else Path(runner)
            written = export_program(opened, output, built_for, path, keeps_goldens=keeps_goldens, decisions=decisions)
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
