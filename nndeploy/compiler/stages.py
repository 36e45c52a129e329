# SPDX-License-Identifier: Apache-2.0
"""The stages of a compile in their order, by its options: for a progress that says how many are left.

Law: a compile announces no other stage, and these in this order. One that has to begin anew announces some twice; a
chain for GPUs that nobody can build is left out.
"""

from nndeploy.compiler.options import CompileOptions


def stages_of(options: CompileOptions, *, has_gpu: bool) -> tuple[str, ...]:
    """Returns the names of the stages that a compile announces; `has_gpu` says whether this machine has one."""
    prepared = ("load", "optimise", *(("quantise",) if options.quantise is not None else ()), "reference")
    if options.dry_run:
        return (*prepared, "partition")
    is_for_gpu = any(target.gpus for target in options.targets) if options.targets else has_gpu
    wanted = {
        "build": True,
        "float32": options.quantise is not None,
        "fallback": options.keep_fallback,
        "chains for GPUs": is_for_gpu,
        "targets": bool(options.targets),
        "check and write": True,
    }
    return (*prepared, *(name for name, is_wanted in wanted.items() if is_wanted))
