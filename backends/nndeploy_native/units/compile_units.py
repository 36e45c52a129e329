# SPDX-License-Identifier: Apache-2.0
"""The compile half of units: the library of one instruction set."""

from pathlib import Path

from nndeploy.bundle.units_manifest import LIBRARY_NAME
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact
from nndeploy.target.target import Target, host_target, unmet
from nndeploy_native.isa import Isa, isa_for, no_isa_reason
from nndeploy_native.library import library_from_source, zig_version
from nndeploy_native.units.runtime import UnitLibrary
from nndeploy_native.units.unit_entries import unit_entries

SOURCE = '#include "units/library.h"\n'


def build_units(isa: Isa, workdir: Path) -> bytes:
    """Returns the shared library of all units; `workdir` is private.

    Raises:
        BuildRefusedError: there is no compiler.
    """
    return library_from_source(SOURCE, isa, workdir)


def units_artifact(target: Target, workdir: Path, *, measured: bool) -> Artifact:
    """Returns the library for a target's widest instruction set, its metadata as `units.json` has them.

    Raises:
        BuildRefusedError: there is no compiler or instruction set, or `measured` and this machine lacks the latter.
    """
    isa = isa_for(target)
    if isa is None:
        raise BuildRefusedError(no_isa_reason(target))
    requires = {"arch": isa.arch, "cpu_features": sorted(isa.cpu_features)}
    if measured and (why := unmet(requires, host_target())):
        raise BuildRefusedError(f"costs of {isa.name} cannot be measured here: it {why}")
    data = build_units(isa, workdir)
    library = None
    if measured:
        library = UnitLibrary(data)
        library.measure_costs()
    return Artifact(
        files={LIBRARY_NAME: data},
        metadata={"isa": isa.name, "units": unit_entries(isa, library), "tools": {"ziglang": zig_version()}},
        requires=requires,
        native_code=True,
    )
