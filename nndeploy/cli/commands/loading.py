# SPDX-License-Identifier: Apache-2.0
"""A bundle loaded for a person who waits: that it takes a while is shown, and what was passed over."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nndeploy.cli.console import note, warn
from nndeploy.cli.options.value_types import BUNDLE_FILE
from nndeploy.cli.views.progress import Heartbeat

if TYPE_CHECKING:
    from nndeploy.runtime.load_options import LoadOptions
    from nndeploy.runtime.program import Program
    from nndeploy.stream.run.options import Pace

BUNDLE = click.argument("bundle", type=BUNDLE_FILE)


def load_silently(path: Path, options: "LoadOptions", *, pace: "Pace" = None) -> "Program":
    """Returns the program of a bundle as `load` does, and tells nothing of it; it raises what `load` does."""
    from nndeploy.runtime.program import load_bundle

    with Heartbeat(f"loading {path}"):
        return load_bundle(path, options, pace=pace)


def load(path: Path, options: "LoadOptions", *, pace: "Pace" = None) -> "Program":
    """Returns the program of a bundle, paced where that is asked; tells which submodels did not get their best variant.

    Raises:
        MissingInputError: the bundle is missing.
        UnavailableError: a submodel has no variant that can run here.
    """
    program = load_silently(path, options, pace=pace)
    for line in program.warnings:
        warn(line)
    isolated = [choice.submodel for choice in program.choices if choice.is_isolated]
    if isolated and not options.isolates_always:
        note(f"{path} was not compiled here and no trusted key signed it: isolated {', '.join(isolated)}")
    return program
