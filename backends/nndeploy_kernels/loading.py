# SPDX-License-Identifier: Apache-2.0
"""The libraries for this machine; of kernels the widest level of a precision that the processor has."""

import ctypes
import threading
from collections.abc import Collection, Mapping
from pathlib import Path

from nndeploy_kernels.levels import LEVELS, Level, driver_stub, pace_library, precisions, runner

LIBRARIES = Path(__file__).with_name("lib")
API_VERSION = 8
"""That of nndeploy_kernels.h."""

_SIGNATURES: Mapping[str, tuple[type | None, tuple[type, ...]]] = {
    "nnd_api_version": (ctypes.c_int, ()),
    "nnd_model_open": (
        ctypes.c_void_p,
        (
            ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p,
            ctypes.c_int64,
        ),
    ),
    "nnd_model_close": (None, (ctypes.c_void_p,)),
    "nnd_model_num_steps": (ctypes.c_int64, (ctypes.c_void_p,)),
    "nnd_model_num_inputs": (ctypes.c_int64, (ctypes.c_void_p,)),
    "nnd_model_num_outputs": (ctypes.c_int64, (ctypes.c_void_p,)),
    "nnd_model_image_bytes": (ctypes.c_int64, (ctypes.c_void_p,)),
    "nnd_table_make": (
        ctypes.c_void_p,
        (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
            ctypes.c_char_p, ctypes.c_int64,
        ),
    ),
    "nnd_table_free": (None, (ctypes.c_void_p,)),
    "nnd_table_arena_bytes": (ctypes.c_int64, (ctypes.c_void_p,)),
    "nnd_table_scratch_bytes": (ctypes.c_int64, (ctypes.c_void_p,)),
    "nnd_table_output": (ctypes.c_int64, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)),
    "nnd_table_step_shape": (ctypes.c_int64, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)),
    "nnd_table_describe": (None, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64)),
    "nnd_table_step_bytes": (None, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)),
    "nnd_pool_make": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int)),
    "nnd_pool_free": (None, (ctypes.c_void_p,)),
    "nnd_run": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
    "nnd_suppress": (
        ctypes.c_int64,
        (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p,
            ctypes.c_int, ctypes.c_void_p, ctypes.c_int64,
        ),
    ),
    "nnd_probe": (ctypes.c_double, (ctypes.c_int, ctypes.c_int64, ctypes.c_int)),
}  # fmt: skip

_loaded: dict[Path, ctypes.CDLL] = {}
_lock = threading.Lock()


def missing(arch: str, cpu_features: Collection[str], precision: str = "fp32") -> str:
    """Returns why no level of a precision is for a machine, in one line; "" where one is."""
    known = [level for level in LEVELS if level.arch == arch and level.precision == precision]
    if not known:
        return f"no {precision} kernels for {arch}"
    lacking = sorted(set(known[0].cpu_features) - set(cpu_features))
    return f"the target lacks {', '.join(lacking)}, which {known[0].name} has" if lacking else ""


def installed(arch: str, cpu_features: Collection[str], precision: str = "fp32") -> Level | None:
    """Returns the widest level of a precision that a machine has and whose library is here, else that of float32."""
    have = set(cpu_features)
    fitting = [
        level
        for level in LEVELS
        if level.arch == arch and have.issuperset(level.cpu_features) and (LIBRARIES / level.file_name).exists()
    ]
    of_precision = [level for level in fitting if level.precision == precision]
    found = of_precision or [level for level in fitting if level.precision == "fp32"]
    return found[-1] if found else None


def pace_library_for(arch: str) -> Path | None:
    """Returns the library of delays for an architecture, None where it is not here."""
    path = LIBRARIES / pace_library(arch)
    return path if path.exists() else None


def driver_stub_for(arch: str) -> Path | None:
    """Returns the stand-in for libcuda.so.1 for an architecture, None where it is not here."""
    path = LIBRARIES / driver_stub(arch)
    return path if path.exists() else None


def runner_for(arch: str, precision: str) -> Path | None:
    """Returns the program that runs bundles without Python, for an architecture and plans of a precision.

    None where it is not here.
    """
    path = LIBRARIES / runner(arch, precision if precision in precisions(arch) else "fp32")
    return path if path.exists() else None


def load(level: Level) -> ctypes.CDLL:
    """Returns the library of a level, loaded once.

    Raises:
        OSError: it is not there, or of another version.
    """
    path = LIBRARIES / level.file_name
    with _lock:
        if path not in _loaded:
            library = ctypes.CDLL(str(path))
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(library, name, None)
                if function is None:
                    raise OSError(f"{path.name} has no {name}")
                function.restype, function.argtypes = result, arguments
            if library.nnd_api_version() != API_VERSION:
                raise OSError(f"{path.name} is of another version than this nndeploy")
            _loaded[path] = library
        return _loaded[path]
