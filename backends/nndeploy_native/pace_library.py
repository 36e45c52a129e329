# SPDX-License-Identifier: Apache-2.0
"""The library of delays (c/pacing/) for an architecture: what sleeps between operators, whoever computes them."""

from dataclasses import replace
from pathlib import Path

from nndeploy.errors import BuildRefusedError
from nndeploy_native.isa import ISAS
from nndeploy_native.library import HEADERS, library_from_source

SOURCES = ("pace.c", "onnxruntime_operator.c")
_ANY_CPU = {"x86_64": "x86_64", "aarch64": "generic"}


def build_pace_library(arch: str, workdir: Path) -> bytes:
    """Returns the shared library, for any CPU of an architecture; `workdir` is private.

    Raises:
        BuildRefusedError: there is no compiler, or not for this architecture.
    """
    isa = next((isa for isa in ISAS if isa.arch == arch), None)
    if isa is None:
        raise BuildRefusedError(f"delays are not known for {arch}")
    sources = [(HEADERS / "pacing" / name).read_text(encoding="utf-8") for name in SOURCES]
    return library_from_source(sources, replace(isa, zig_cpu=_ANY_CPU[arch], precision="fp32"), workdir)
