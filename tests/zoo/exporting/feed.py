# SPDX-License-Identifier: Apache-2.0
"""Inputs for a graph from its signature: the sizes of its symbols are given, the values are drawn by their roles."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime
from exporting.graphs import Array, Inputs

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


def feed_of(path: Path, sizes: Mapping[str, int], *, tokens: int = 64, seed: int = 0) -> Inputs:
    """Returns an array for every input of the file.

    Masks are ones, positions count on from `sizes["past_sequence_length"]`, flags are true, other integers are tokens
    below `tokens`, floats are normal numbers.
    """
    session = session_of(path)
    random = np.random.default_rng(seed)
    past = sizes.get("past_sequence_length", 0)
    return {
        one.name: _value(one.name, [_size(dim, sizes) for dim in one.shape], _TYPES[one.type], past, tokens, random)
        for one in session.get_inputs()
    }


def session_of(path: Path) -> onnxruntime.InferenceSession:
    """Returns a session of one thread on the CPU."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def _size(dim: int | str | None, sizes: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    if dim not in sizes:
        raise SystemExit(f"no size is given for the symbol {dim!r}")
    return sizes[dim]


def _value(name: str, shape: list[int], dtype: type, past: int, tokens: int, random: np.random.Generator) -> Array:
    if dtype is np.bool_:
        return np.ones(shape, dtype)
    if "mask" in name:
        return np.ones(shape, dtype)
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(shape).astype(dtype)
    if "position" in name:
        return np.broadcast_to(np.arange(past, past + shape[-1]), shape).astype(dtype)
    if "token_type" in name:
        return np.zeros(shape, dtype)
    return random.integers(0, tokens, shape).astype(dtype)
