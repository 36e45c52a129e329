# SPDX-License-Identifier: Apache-2.0
"""The OpenVINO library, loaded when first asked for and without what it loads besides.

`import openvino` also imports its model converter, and that reports the import to its makers: it writes files under
the home folder, opens connections and takes 55 of 80 ms (measured, OpenVINO 2026.4.1). OpenVINO itself goes on
without the converter when that cannot be imported, so it is kept out for the moment of the first import. Who wants
the converter beside nndeploy imports openvino first, or `openvino.tools.ovc` later.
"""

import sys
import threading
from functools import cache
from types import ModuleType
from typing import Any

from nndeploy.errors import UnavailableError
from nndeploy.version import install_command

HINT = install_command("openvino")
DEVICE = "CPU"

_CONVERTER = "openvino.tools.ovc"
_importing = threading.Lock()


def openvino() -> ModuleType:
    """Returns the library.

    Raises:
        UnavailableError: it is not installed.
    """
    with _importing:
        return _import()


@cache
def _import() -> ModuleType:
    is_ours = "openvino" not in sys.modules
    if is_ours:
        sys.modules[_CONVERTER] = None  # type: ignore[assignment] # importing it now fails
    try:
        import openvino as library
    except ImportError as err:
        raise UnavailableError(f"openvino is not installed: {err}", hint=HINT) from err
    finally:
        if is_ours:
            del sys.modules[_CONVERTER]
    return library  # type: ignore[no-any-return]


@cache
def core() -> Any:
    """Returns the library's core object, one for the process; it reads and compiles models.

    Raises:
        UnavailableError: the library is not installed.
    """
    return openvino().Core()


_HINTS = {"fp32": "f32", "bf16": "bf16"}

EXACT: dict[str, Any] = {
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
    "KV_CACHE_PRECISION": "f32",
    "KEY_CACHE_PRECISION": "f32",
    "VALUE_CACHE_PRECISION": "f32",
    "CPU_DENORMALS_OPTIMIZATION": False,
    "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE": 1.0,
}
"""What trades numbers for speed, told not to; by default the first four do (2026.4.1).

Activations before 4-bit and 8-bit weights would be rounded to 8 bits in groups of 32, keys and values of attention to 8
bits.
"""


def configuration(threads: int | None, precision: str = "fp32") -> dict[str, Any]:
    """Returns how models are compiled: in "fp32" (the default may be bfloat16) or "bf16", one stream, no pinning."""
    settings: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
        "EXECUTION_MODE_HINT": "ACCURACY" if precision == "fp32" else "PERFORMANCE",
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
        **EXACT,
    }
    return settings if threads is None else {**settings, "INFERENCE_NUM_THREADS": threads}
