# SPDX-License-Identifier: Apache-2.0
"""The compile half of units: the library of one instruction set."""

from pathlib import Path

from nndeploy_native.isa import Isa
from nndeploy_native.library import library_from_source

SOURCE = '#include "units/library.h"\n'


def build_units(isa: Isa, workdir: Path) -> bytes:
    """Returns the shared library of all units; `workdir` is private.

    Raises:
        BuildRefusedError: there is no compiler.
    """
    return library_from_source(SOURCE, isa, workdir)
