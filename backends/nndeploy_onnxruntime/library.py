# SPDX-License-Identifier: Apache-2.0
"""The onnxruntime library, loaded when first asked for and kept quiet, and the options that every session gets.

The Linux wheels report home unless a variable says no before the first import, so nothing else here imports it.
Providers are always named: the default list also holds one that uses the network.
"""

import importlib
import os
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

from nndeploy.errors import UnavailableError, one_line
from nndeploy.target.target import host_target
from nndeploy.version import install_command

PROVIDERS = ("CPUExecutionProvider",)
SLOWER_FUSIONS = ("SkipLayerNormFusion",)
"""Fusions that make models slower on CPUs.

Measured 2026-11-22, ONNX Runtime 1.31, AMD EPYC (Zen 4), one thread, a BERT of 4 layers of 256 at 128 words: 1.93 ms
without the kernel for a sum and its LayerNormalization, 2.23 ms with it. It is only found where all shapes are known,
which inference sees to here.
"""
HINT = install_command("cpu")

_FATAL_ONLY = 4  # messages come back as exceptions; the log would repeat them on stderr
_NO_FOLDER = "/dev/null"

EXACT = {
    "session.qdq_matmulnbits_accuracy_level": "1",
    "session.disable_double_qdq_remover": "1",
    "session.set_denormal_as_zero": "0",
    "optimization.enable_gelu_approximation": "0",
    "mlas.enable_gemm_fastmath_arm64_bfloat16": "0",
    "mlas.use_lut_gemm": "0",
}
"""What trades numbers for speed, told not to; by default the first two do (1.31).

A float MatMul of dequantised 4-bit weights would round its activations to 8 bits, and of two roundings one would be
left out.
"""
EXACT_PRODUCTS = "session.x64quantprecision"
"""Keeps sums of two products of 8 bits from saturating at 16 bits, by weights of uint8 in place of int8.

Set to "1" on processors that `saturates` speaks of; on others the sums are exact anyway, and products of uint8 take up
to twice as long. An optimised model that was saved with it keeps those weights, on every processor.
"""
VNNI = frozenset({"avx512_vnni", "avx_vnni"})
"""Linux's flags of x86 processors that add up products of 8 bits in 32 bits."""


@cache
def onnxruntime() -> ModuleType:
    """Returns the library.

    Raises:
        UnavailableError: it is not installed.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime as library
    except ImportError as err:
        raise UnavailableError(f"onnxruntime is not installed: {err}", hint=HINT) from err
    return library  # type: ignore[no-any-return]


def quantization(module: str) -> ModuleType:
    """Returns a module of `onnxruntime.quantization`.

    Raises:
        UnavailableError: the library is not installed, or lacks what its quantisation needs.
    """
    onnxruntime()
    try:
        return importlib.import_module(f"onnxruntime.quantization.{module}")
    except ImportError as err:
        raise UnavailableError(f"onnxruntime cannot quantise here: {err}", hint=HINT) from err


def session_options(threads: int | None, libraries: Sequence[str] = (), *, exact_products: bool | None = None) -> Any:
    """Returns options for a session with `threads` (None: one a core) that reads no file and leaves no thread spinning.

    `exact_products` says whether weights become uint8 (`EXACT_PRODUCTS`); None: where this processor needs it.

    Threads spin during a run, which makes small models up to twice as fast, and stop at its end: otherwise they take
    the cores from whatever runs next (measured in docs/reference/backends.md).

    Raises:
        UnavailableError: a library of custom operators cannot be loaded.
    """
    options = onnxruntime().SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = threads or 0
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", _NO_FOLDER)
    for key, value in exact_settings(exact_products).items():
        options.add_session_config_entry(key, value)
    for library in libraries:
        try:
            options.register_custom_ops_library(library)
        except Exception as err:  # the library's own initialisation may fail in any way
            raise UnavailableError(
                f"the operator library cannot be loaded: {one_line(str(err))}", where=library
            ) from err
    return options


def without_packing(options: Any) -> Any:
    """Returns the options with weights left as they are: a packed copy is for sessions that are called often."""
    options.add_session_config_entry("session.disable_prepacking", "1")
    return options


def exact_settings(exact_products: bool | None = None) -> dict[str, str]:
    """Returns the settings of a session that trades no numbers for speed, on this processor where nothing is said."""
    return {**EXACT, EXACT_PRODUCTS: str(int(saturates() if exact_products is None else exact_products))}


def saturates() -> bool:
    """Returns whether the library's products of uint8 and int8 are not exact on this processor.

    Source: Intel's manual, VPMADDUBSW, which ONNX Runtime uses where there is no VPDPBUSD.
    """
    host = host_target()
    return host.arch == "x86_64" and VNNI.isdisjoint(host.cpu_features)


def inference_session(model: bytes, options: Any) -> Any:
    """Returns a session over a model's bytes; it never retries with other providers and prints nothing."""
    return onnxruntime().InferenceSession(
        model, options, providers=list(PROVIDERS), enable_fallback=0, disabled_optimizers=list(SLOWER_FUSIONS)
    )
