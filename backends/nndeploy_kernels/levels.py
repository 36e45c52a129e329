# SPDX-License-Identifier: Apache-2.0
"""The levels that the library is built for, from the least to the widest of each architecture and precision.

`cpu_features` are Linux flag names that a machine must show before the library of a level is mapped. Nothing but this
package is needed to read them; that they are those of nndeploy's targets is tested.
"""

from typing import NamedTuple

_V2 = ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")
_V3 = (*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
GLIBC = "2.17"
"""The least glibc that the libraries run with."""


def zig_target(arch: str) -> str:
    """Returns the platform of an architecture, as the compiler calls it."""
    return f"{arch}-linux-gnu.{GLIBC}"


def pace_library(arch: str) -> str:
    """Returns the file name of the library of delays for an architecture."""
    return f"libnndeploy_pace-{arch}.so"


def driver_stub(arch: str) -> str:
    """Returns the path of the stand-in for NVIDIA's driver, whose name is the driver's, below the other libraries."""
    return f"driver-{arch}/libcuda.so.1"


WEB_ARCH = "wasm32"
"""That of browsers and Node."""


WINDOWS_ARCH = "x86_64-windows"
"""That of Windows, whose program and library have the levels for float32."""


def runner(arch: str, precision: str = "fp32") -> str:
    """Returns the path of the program that runs bundles without Python, of `WEB_ARCH` of the npm package's folder.

    It is below the libraries. That of another precision than fp32 has the levels of that too.
    """
    if arch == WEB_ARCH:
        return f"runtime-{arch}"
    if arch == WINDOWS_ARCH:
        return f"runtime-{arch}/nndeploy-run.exe"
    return f"runtime-{arch}/nndeploy-run" + ("" if precision == "fp32" else f"-{precision}")


class Level(NamedTuple):
    """One build of the library; `precision` is that of channel blocks and of the weights of products."""

    name: str
    arch: str
    cpu_features: tuple[str, ...]
    zig_cpu: str
    precision: str = "fp32"

    @property
    def zig_target(self) -> str:
        """The platform, as the compiler calls it."""
        return zig_target(self.arch)

    @property
    def file_name(self) -> str:
        """The name of the shared library."""
        return f"libnndeploy_kernels-{self.name}.so"


LEVELS = (
    Level("x86-64-v2", "x86_64", tuple(sorted(_V2)), "x86_64_v2"),
    Level("x86-64-v3", "x86_64", tuple(sorted(_V3)), "x86_64_v3"),
    Level("x86-64-v4", "x86_64", tuple(sorted(_V4)), "x86_64_v4"),
    Level("x86-64-v4-bf16", "x86_64", tuple(sorted((*_V4, "avx512_bf16"))), "x86_64_v4+avx512bf16", "bf16"),
    Level("aarch64", "aarch64", ("asimd",), "generic"),
)

WASM_LEVELS = (
    Level("wasm32-simd128", WEB_ARCH, (), "generic+simd128"),
    Level("wasm32-relaxed-simd", WEB_ARCH, (), "generic+simd128+relaxed_simd"),
)
"""Those of WebAssembly, which is no target of a compile: it runs what is built for any. The second is for engines that
have its instructions."""


def wasm_module(level: Level, *, threads: bool = False) -> str:
    """Returns the file name of the WebAssembly module of a level; with `threads` of that whose memory is shared."""
    return f"nndeploy-{level.name.removeprefix(f'{WEB_ARCH}-')}{'-threads' if threads else ''}.wasm"


def precisions(arch: str) -> list[str]:
    """Returns the precisions of which an architecture has a level, fp32 first."""
    return list(dict.fromkeys(level.precision for level in LEVELS if level.arch == arch))


def least_machines(precision: str) -> list[dict[str, str | list[str]]]:
    """Returns the least machine of each architecture that has a level of a precision, as `Artifact.requires` has it."""
    least = {level.arch: level for level in reversed(LEVELS) if level.precision == precision}
    return [{"arch": arch, "cpu_features": list(level.cpu_features)} for arch, level in sorted(least.items())]
