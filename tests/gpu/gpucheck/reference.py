# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: on the CPU as the reference of every number here, on CUDA as a peer where its provider is installed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime

CUDA_PROVIDER = "CUDAExecutionProvider"
QUIET = 3


def session_of(model: "onnx.ModelProto | str", provider: str = "CPUExecutionProvider", threads: int = 0) -> Any:
    """Returns an ONNX Runtime session; on CUDA with float32 as float32 (no TF32). No number of threads is its own."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = QUIET
    source = model if isinstance(model, str) else model.SerializeToString()
    providers: list[Any] = [provider]
    if provider == CUDA_PROVIDER:
        providers = [(provider, {"use_tf32": "0"}), "CPUExecutionProvider"]
    return onnxruntime.InferenceSession(source, settings, providers=providers)


def outputs_of(session: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a session's outputs by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


def cuda_session(model: "onnx.ModelProto | str") -> tuple[Any, str]:
    """Returns a session on CUDA, or None and why there is none."""
    if CUDA_PROVIDER not in onnxruntime.get_available_providers():
        return None, "this ONNX Runtime has no CUDA provider (onnxruntime-gpu has)"
    try:
        session = session_of(model, CUDA_PROVIDER)
    except Exception as err:  # a library that is missing, in many classes
        return None, " ".join(str(err).split())[:200]
    if CUDA_PROVIDER not in session.get_providers():  # it falls back to the CPU without a word
        return None, "its CUDA provider does not load here"
    return session, ""


_TYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8,
    "tensor(bool)": np.bool_,
}  # fmt: skip


def random_inputs(session: Any, seed: int = 0) -> dict[str, Any]:
    """Returns values for a session's inputs: standard normal or small integers; a free size is 1."""
    random = np.random.default_rng(seed)
    found = {}
    for wanted in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in wanted.shape]
        dtype = np.dtype(_TYPES[wanted.type])
        if dtype.kind == "f":
            found[wanted.name] = random.standard_normal(shape).astype(dtype)
        else:
            found[wanted.name] = random.integers(0, 2 if dtype.kind == "b" else 9, shape).astype(dtype)
    return found
