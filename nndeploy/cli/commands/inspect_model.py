# SPDX-License-Identifier: Apache-2.0
"""`nndeploy inspect MODEL`: what a model is, then who would run what; nothing is compiled, and nothing is written."""

import os
import sys
from pathlib import Path

from nndeploy.bundle.manifest_json import MANIFEST_NAME
from nndeploy.bundle.report import report_to_json
from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.views.compile_view import CompileProgress, print_report, print_warnings
from nndeploy.cli.views.model_view import overview_to_json, print_overview
from nndeploy.compiler.job import compile_in_child
from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.compiler.stages import stages_of
from nndeploy.frontend.model_overview import overview_of

ARCHIVE, TAIL_BYTES = b"PK\3\4", 1 << 16
"""How a bundle begins, and where the names of its members are at its end."""


def is_model(path: Path) -> bool:
    """Returns whether a file that does not end in .nnd is to be looked at as a model: it is there, and no bundle."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            is_archive = file.read(len(ARCHIVE)) == ARCHIVE
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return not (is_archive and MANIFEST_NAME.encode() in file.read())
    except OSError:
        return False


def inspect_model(path: Path, *, as_json: bool, verbose: bool) -> None:
    """Shows what a model file holds, and then what a dry compile of it says.

    Raises:
        MissingInputError: there is no such file.
        ModelError, PolicyError: it is no model, or one that cannot be compiled.
        UnavailableError: what reads models is not installed; what the file holds was shown.
    """
    found = overview_of(path)
    told = overview_to_json(path, found)
    if as_json:
        print_json(told)
    else:
        print_overview(path, found)
        sys.stdout.flush()  # who would run what takes a while
    with CompileProgress(stages_of(CompileOptions(dry_run=True), has_gpu=False)) as progress:
        report = compile_in_child(str(path.absolute()), None, {"dry_run": True}, CompileLimits(), progress)
    print_warnings(report)
    if as_json:
        print_json({**told, "report": report_to_json(report)})
        return
    print_report(report, verbose=verbose, dry_run=True)
    print_line(f"nothing was built: nndeploy compile {path}")
