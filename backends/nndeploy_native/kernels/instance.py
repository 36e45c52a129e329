# SPDX-License-Identifier: Apache-2.0
"""One step made from the templates, compiled and loaded into this process: for tests and measurements.

A step is `void nnd_step(const float *const *data, float *out, float *buffer, ptrdiff_t first, ptrdiff_t last)`; what
`data` holds is said where its text is made. Law: every array handed over is aligned to a cache line.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nndeploy_native.kernels.compiler import compile_library
from nndeploy_native.kernels.isa import Isa
from nndeploy_native.kernels.packing import Floats

ALIGNMENT_BYTES = 64
SIGNATURE = "void nnd_step(const float *const *data, float *out, float *buffer, ptrdiff_t first, ptrdiff_t last)"


class Instance:
    """A compiled step."""

    def __init__(self, text: str, isa: Isa, folder: Path, extra: tuple[str, ...] = ()) -> None:
        """Compiles `text` in `folder` and loads it; `extra` goes to the compiler."""
        source, library = folder / "step.c", folder / "step.so"
        source.write_text(text)
        compile_library(isa, source, library, extra)
        self.library_bytes = library.stat().st_size
        self._step = ctypes.CDLL(str(library)).nnd_step
        self._step.restype = None
        self._step.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_ssize_t] * 2

    def run(self, data: Sequence[Floats | None], out: Floats, buffer: Floats, first: int, last: int) -> None:
        """Runs the units [first, last) of the step."""
        pointers = (ctypes.c_void_p * len(data))(*(None if x is None else x.ctypes.data for x in data))
        self._step(pointers, out.ctypes.data, buffer.ctypes.data, first, last)


def aligned(x: Floats) -> Floats:
    """Returns a copy of `x` that begins at a cache line."""
    raw = np.empty(x.nbytes + ALIGNMENT_BYTES, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT_BYTES
    copy: Floats = raw[begin : begin + x.nbytes].view(np.float32).reshape(x.shape)
    copy[...] = x
    return copy


def cpu_features() -> set[str]:
    """Returns the feature flags of this processor as Linux names them; empty where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":", 1)[1].split()}
