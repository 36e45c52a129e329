# SPDX-License-Identifier: Apache-2.0
"""The library of delays for each architecture among a compile's targets, from whatever backend makes it."""

from collections.abc import Iterable

from nndeploy.errors import BuildRefusedError, UnavailableError
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.plugin.interface import PaceLibraryMaker
from nndeploy.plugin.registry import backends_in_order
from nndeploy.target.target import Target


def pace_libraries(targets: Iterable[Target]) -> dict[str, bytes]:
    """Returns the libraries by architecture.

    Raises:
        UnavailableError: nothing here makes one, or not for an architecture.
    """
    maker = next((one for one in backends_in_order() if isinstance(one, PaceLibraryMaker)), None)
    if maker is None:
        raise UnavailableError("no backend here makes the library of delays", hint="install the backend native")
    libraries = dict[str, bytes]()
    for arch in sorted({target.arch for target in targets}):
        with temporary_folder("pace") as workdir:
            try:
                libraries[arch] = maker.build_pace_library(arch, workdir)
            except BuildRefusedError as err:
                raise UnavailableError(f"no library of delays for {arch}: {err}") from err
    return libraries
