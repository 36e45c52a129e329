# SPDX-License-Identifier: Apache-2.0
"""A library of units from its file (.nnu): nothing of it is mapped as code before all of it was checked."""

from pathlib import Path

from nndeploy.bundle.units_file import open_units
from nndeploy.errors import BundleError, UnavailableError
from nndeploy.target.target import host_target, unmet
from nndeploy_native.isa import ISAS
from nndeploy_native.units.runtime import UnitLibrary
from nndeploy_native.units.unit_entries import check_units, set_costs

BACKEND = "native"


def load_units(path: str | Path) -> UnitLibrary:
    """Returns the library at `path`, loaded, with the costs that the file has.

    Raises:
        MissingInputError: there is no such file.
        BundleError: the file is no library of units, is damaged, or of a newer format.
        UnavailableError: this machine lacks an instruction that the units use, or they are another nndeploy's.
    """
    file = open_units(path)
    manifest = file.manifest
    isa = next((isa for isa in ISAS if isa.name == manifest.isa), None)
    if manifest.backend != BACKEND or isa is None:
        raise UnavailableError(f"units of {manifest.backend} for {manifest.isa}, unknown here", where=str(path))
    if manifest.arch != isa.arch or set(manifest.cpu_features) != set(isa.cpu_features):
        raise BundleError(f"its instructions are not those of {isa.name}", where=str(path))
    if why := unmet({"arch": manifest.arch, "cpu_features": list(manifest.cpu_features)}, host_target()):
        raise UnavailableError(
            f"these units {why}", where=str(path), hint="nndeploy units build makes them for this machine"
        )
    try:
        check_units(manifest, isa)
    except UnavailableError as err:
        err.within(str(path))
        raise
    library = UnitLibrary(bytes(file.library))
    set_costs(library, manifest.units)
    return library
