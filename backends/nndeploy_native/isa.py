# SPDX-License-Identifier: Apache-2.0
"""The instruction sets that kernels are built for, and which of them suits a target.

`cpu_features` are Linux flag names that a host must show before a library built for the set is opened. Lanes, panel
and accumulators repeat c/vector.h: a test compiles that header for each row and compares.
"""

from dataclasses import dataclass

from nndeploy.target.target import X86_64_LEVELS, Target

_V3 = (*X86_64_LEVELS["x86-64-v2"], *X86_64_LEVELS["x86-64-v3"])
_V4 = tuple(sorted((*_V3, *X86_64_LEVELS["x86-64-v4"])))
_GLIBC = "linux-gnu.2.17"


@dataclass(frozen=True, slots=True)
class Isa:
    """One instruction set: `lanes` floats a vector, which is also the width of a channel block.

    The weights of `panel` vectors of output channels lie side by side, `accumulators` vectors of sums stay in
    registers. `precision` is that of the inner layout and of the weights of products: "fp32" or "bf16".
    """

    name: str
    arch: str
    cpu_features: tuple[str, ...]
    zig_target: str
    zig_cpu: str
    lanes: int
    panel: int
    accumulators: int
    precision: str = "fp32"

    @property
    def elem_bytes(self) -> int:
        """Bytes of an element of the inner layout."""
        return 2 if self.precision == "bf16" else 4

    @property
    def group(self) -> int:
        """Input channels whose weights lie side by side: what one multiply-add takes."""
        return 2 if self.precision == "bf16" else 1

    def blocks(self, channels: int) -> int:
        """Returns how many vectors hold `channels` channels."""
        return -(-channels // self.lanes)


ISAS = (
    Isa("x86-64-v4", "x86_64", _V4, f"x86_64-{_GLIBC}", "x86_64_v4", 16, 2, 28),
    Isa("x86-64-v3", "x86_64", tuple(sorted(_V3)), f"x86_64-{_GLIBC}", "x86_64_v3", 8, 2, 12),
    Isa("aarch64", "aarch64", ("asimd",), f"aarch64-{_GLIBC}", "generic", 4, 4, 20),
    Isa(
        "x86-64-v4-bf16", "x86_64", tuple(sorted((*_V4, "avx512_bf16"))), f"x86_64-{_GLIBC}", "x86_64_v4+avx512bf16",
        16, 2, 28, "bf16",
    ),
)  # fmt: skip
"""All sets of instructions, of each precision the widest first."""


def isa_for(target: Target, precision: str = "fp32") -> Isa | None:
    """Returns the widest instruction set of a precision that the target has, None where there is none for it."""
    have = set(target.cpu_features)
    fitting = (isa for isa in _isas(target, precision) if have.issuperset(isa.cpu_features))
    return next(fitting, None)


def no_isa_reason(target: Target, precision: str = "fp32") -> str:
    """Returns why there is no instruction set for a target, in one line."""
    known = _isas(target, precision)
    if not known:
        return f"no {precision} kernels for {target.arch}"
    missing = sorted(set(known[-1].cpu_features) - set(target.cpu_features))
    return f"the target lacks {', '.join(missing)}, which {known[-1].name} has"


def _isas(target: Target, precision: str) -> list[Isa]:
    return [isa for isa in ISAS if isa.arch == target.arch and isa.precision == precision]
