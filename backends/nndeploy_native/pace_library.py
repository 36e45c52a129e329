# SPDX-License-Identifier: Apache-2.0
"""The library of delays (c/pacing/) for an architecture: what sleeps between operators, whoever computes them."""

from pathlib import Path

from nndeploy_native.library import SOURCES, library_from_source

NAMES = ("pace.c", "onnxruntime_operator.c")


def build_pace_library(arch: str, workdir: Path) -> bytes:
    """Returns the shared library, for any CPU of an architecture; `workdir` is private.

    Raises:
        BuildRefusedError: there is no compiler, or not for this architecture.
    """
    sources = [(SOURCES / "pacing" / name).read_text(encoding="utf-8") for name in NAMES]
    return library_from_source(sources, arch, workdir)
