# SPDX-License-Identifier: Apache-2.0
"""The instruction sets that kernels are built for, and which of them suits a target.

`cpu_features` are Linux flag names that a host must show before a library built for the set is opened.
"""

from dataclasses import dataclass

from nndeploy.target import X86_64_LEVELS, Target

_V3 = (*X86_64_LEVELS["x86-64-v2"], *X86_64_LEVELS["x86-64-v3"])


@dataclass(frozen=True, slots=True)
class Isa:
    """One instruction set: `lanes` floats a vector, which is also the width of a channel block.

    The weights of `panel` output channels lie side by side.
    """

    name: str
    arch: str
    lanes: int
    cpu_features: tuple[str, ...]
    zig_target: str
    zig_cpu: str
    panel: int


ISAS = (
    Isa(
        "x86-64-v4",
        "x86_64",
        16,
        tuple(sorted((*_V3, *X86_64_LEVELS["x86-64-v4"]))),
        "x86_64-linux-gnu.2.17",
        "x86_64_v4",
        32,
    ),
    Isa("x86-64-v3", "x86_64", 8, tuple(sorted(_V3)), "x86_64-linux-gnu.2.17", "x86_64_v3", 16),
    Isa("aarch64", "aarch64", 4, ("asimd",), "aarch64-linux-gnu.2.17", "generic", 16),
)
"""The widest first."""


def isa_for(target: Target) -> Isa | None:
    """Returns the widest instruction set that the target has, None where there is none for it."""
    have = set(target.cpu_features)
    return next((isa for isa in ISAS if isa.arch == target.arch and have.issuperset(isa.cpu_features)), None)


def no_isa_reason(target: Target) -> str:
    """Returns why there is no instruction set for a target, in one line."""
    known = [isa for isa in ISAS if isa.arch == target.arch]
    if not known:
        return f"no kernels for {target.arch}"
    missing = sorted(set(known[-1].cpu_features) - set(target.cpu_features))
    return f"the target lacks {', '.join(missing)}, which {known[-1].name} has"
