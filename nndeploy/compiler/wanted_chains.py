# SPDX-License-Identifier: Apache-2.0
"""The chains that a bundle is to have, and who builds each: the portable one, then one for each target with GPUs.

Comes in: options and this machine. Goes out: backends in order for each chain. Law: every backend, library and pin that
the user named is of use to some chain, or the compile ends before any work.
"""

from dataclasses import replace

from nndeploy.compiler.chains.backend_order import (
    TargetBackends,
    backends_for,
    check_all_used,
    check_known,
    check_libraries,
    with_points_first,
)
from nndeploy.compiler.compilation import Compilation
from nndeploy.plugin.registry import broken_backends


def wanted_chains(compilation: Compilation) -> list[TargetBackends]:
    """Returns who builds for the portable chain, then for each target with GPUs: those asked for, or this box's.

    Raises:
        UsageError: an option names what builds for no chain.
        UnavailableError: a backend that was named cannot build here, or none is left for a CPU.
    """
    options, here = compilation.options, compilation.here
    names, without = options.backends, options.without
    if names is None:
        compilation.warnings += [reason for name, reason in broken_backends().items() if name not in without]
    check_libraries(options.targets)
    targets = options.targets or ((here,) if here.gpus else ())
    wanted = [compilation.host, *(target for target in targets if target.gpus)]
    found = [backends_for(target, names, without) for target in wanted]
    check_all_used(names, without, found)
    check_known("--require", options.require, found)
    check_known("--pin", [name for _, name in options.pins], found)
    compilation.warnings += found[0].warnings
    if options.pace and names is None:
        found[0] = replace(found[0], backends=with_points_first(found[0].backends))
    return found
