# SPDX-License-Identifier: Apache-2.0
"""Runs cuDNN's own plans with numpy, on host memory that stands for the device's.

What a plan says of itself (its `operationGraph`: tensors with dims and strides, operations with attributes) is read
back and computed in float64 on raw addresses. So what is proven is all that nndeploy told cuDNN: which tensor is where,
with which strides, through which operation, and the memory plan. What cuDNN's kernels then do is not.
"""

import ctypes
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from nndeploy.cuda.current_driver import current_driver

DTYPES = {
    "CUDNN_DATA_FLOAT": np.dtype("f4"), "CUDNN_DATA_HALF": np.dtype("f2"), "CUDNN_DATA_BFLOAT16": ml_dtypes.bfloat16,
}  # fmt: skip
Array = np.ndarray[Any, Any]
Reader = Callable[[str], Array]
Tensors = Mapping[str, Any]
_erf = np.vectorize(math.erf, otypes=[float])

UNARY: dict[str, Callable[[Array], Array]] = {
    "SQRT": np.sqrt, "ABS": np.abs, "CEIL": np.ceil, "COS": np.cos, "EXP": np.exp, "FLOOR": np.floor, "LOG": np.log,
    "NEG": np.negative, "RSQRT": lambda x: 1 / np.sqrt(x), "SIN": np.sin, "TAN": np.tan, "ERF": _erf,
    "IDENTITY": lambda x: x, "RECIPROCAL": lambda x: 1 / x, "TANH_FWD": np.tanh,
    "SIGMOID_FWD": lambda x: 1 / (1 + np.exp(-x)), "GELU_FWD": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "GELU_APPROX_TANH_FWD": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
}  # fmt: skip
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add, "MUL": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "DIV": np.divide, "POW": np.power,
    "SUB": np.subtract,
}  # fmt: skip


class InterpretedPlan:
    """Stands for `nndeploy_cudnn.library.LoadedPlan`."""

    def __init__(self, text: bytes) -> None:
        self.graph = json.loads(text)["operationGraph"]
        self.workspace_bytes = 0


class InterpretedHandle:
    """Stands for `nndeploy_cudnn.library.Handle`: `execute` computes at once, and remembers what it was asked."""

    def __init__(self) -> None:
        self.streams: list[int] = []
        self.num_packs = 0
        self.num_executed = 0
        self.is_closed = False

    def set_stream(self, stream: int) -> None:
        self.streams.append(stream)

    def load(self, text: bytes) -> InterpretedPlan:
        return InterpretedPlan(text)

    def pack(self, uids: Sequence[int], pointers: Sequence[int], workspace: int) -> dict[int, int]:
        self.num_packs += 1
        return dict(zip(uids, pointers, strict=True))

    def execute(self, plan: InterpretedPlan, pack: Mapping[int, int]) -> None:
        assert not self.is_closed
        self.num_executed += 1
        current_driver().queue(self.streams[-1], lambda: run_graph(plan.graph, pack))

    def close(self) -> None:
        self.is_closed = True


def run_graph(graph: Mapping[str, Any], pointers: Mapping[int, int]) -> None:
    """Computes a plan's graph on the memory at `pointers`, by uid."""
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    real = {int(name) for name, tensor in tensors.items() if not tensor["isVirtual"]}
    assert real == set(pointers), f"the plan's tensors {sorted(real)} are not those that are bound {sorted(pointers)}"
    values: dict[str, Array] = {}

    def read(name: str) -> Array:
        if name not in values:
            values[name] = memory_of(tensors[name], pointers[int(name)]).astype(np.float64)
        return values[name]

    for node in graph["nodes"]:
        kind = node["operation"].removeprefix("CUDNN_BACKEND_OPERATION_").removesuffix("_DESCRIPTOR")
        name, value = RUNNERS[kind](node, read, tensors)
        expected = tuple(tensors[name]["dim"])
        assert value.shape == expected, f"{kind} makes {value.shape}, the plan says {expected}"
        values[name] = value.astype(np.float32).astype(np.float64) if tensors[name]["isVirtual"] else value
        if not tensors[name]["isVirtual"]:
            memory_of(tensors[name], pointers[int(name)])[...] = value.astype(DTYPES[tensors[name]["dataType"]])


def memory_of(tensor: Mapping[str, Any], pointer: int) -> Array:
    """Returns the elements of a tensor, as they lie in memory."""
    dtype = np.dtype(DTYPES[tensor["dataType"]])
    assert pointer % tensor["ptrAlignment"] == 0 or tensor["isByValue"], "an address is not aligned as the plan expects"
    size = 1 + sum((n - 1) * stride for n, stride in zip(tensor["dim"], tensor["stride"], strict=True))
    raw = (ctypes.c_char * (size * dtype.itemsize)).from_address(pointer)
    flat = np.frombuffer(raw, dtype)
    steps = [stride * dtype.itemsize for stride in tensor["stride"]]
    return np.lib.stride_tricks.as_strided(flat, tensor["dim"], steps, writeable=True)


Runner = Callable[[Mapping[str, Any], Reader, Tensors], tuple[str, Array]]


def _pointwise(node: Mapping[str, Any], read: Reader, _tensors: Tensors) -> tuple[str, Array]:
    mode = node["pointwiseMode"].removeprefix("CUDNN_POINTWISE_")
    assert (node["alpha1"], node["alpha2"]) == (1.0, 1.0)
    x = read(node["X"])
    with np.errstate(all="ignore"):
        if mode == "RELU_FWD":
            assert node["lowerClip"] == 0.0
            return node["Y"], np.where(x > 0, x, node["lowerClipSlope"] * x)
        if mode == "ELU_FWD":
            return node["Y"], np.where(x > 0, x, node["alpha"] * (np.exp(np.minimum(x, 0)) - 1))
        if mode in UNARY:
            return node["Y"], UNARY[mode](x)
        return node["Y"], BINARY[mode](x, read(node["B"]))


def _convolution(node: Mapping[str, Any], read: Reader, _tensors: Tensors) -> tuple[str, Array]:
    assert node["mode"] == "CUDNN_CROSS_CORRELATION"
    x, w = read(node["X"]), read(node["W"])
    padded = np.pad(x, [(0, 0), (0, 0), *_pads(node)])
    return node["Y"], node["alpha"] * correlate(padded, w, node["stride"], node["dilation"])


def _pads(node: Mapping[str, Any]) -> list[tuple[int, int]]:
    lower, upper = (node["pad"], node["pad"]) if "pad" in node else (node["pad_lower"], node["pad_upper"])
    return list(zip(lower, upper, strict=True))


def correlate(x: Array, w: Array, strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Returns the cross-correlation of a padded x (N, C, ...) with w (K, C / groups, ...)."""
    groups, filters = x.shape[1] // w.shape[1], w.shape[0] // (x.shape[1] // w.shape[1])
    sizes = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    for tap in np.ndindex(*w.shape[2:]):
        at = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilations, sizes, strides, strict=True)
        )
        seen = x[(slice(None), slice(None), *at)].reshape(x.shape[0], groups, w.shape[1], -1)
        taps = w[(slice(None), slice(None), *tap)].reshape(groups, filters, w.shape[1])
        y += np.einsum("ngcp,gkc->ngkp", seen, taps).reshape(y.shape)
    return y


def _convolution_backward_data(node: Mapping[str, Any], read: Reader, tensors: Tensors) -> tuple[str, Array]:
    y, w, dims = read(node["dY"]), read(node["W"]), tensors[node["dX"]]["dim"]
    pads = _pads(node)
    padded = np.zeros([*dims[:2], *(n + a + b for n, (a, b) in zip(dims[2:], pads, strict=True))])
    groups, filters = dims[1] // w.shape[1], w.shape[0] // (dims[1] // w.shape[1])
    spread = y.reshape(y.shape[0], groups, filters, -1)
    for tap in np.ndindex(*w.shape[2:]):
        at = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, node["dilation"], y.shape[2:], node["stride"], strict=True)
        )
        taps = w[(slice(None), slice(None), *tap)].reshape(groups, filters, w.shape[1])
        add = np.einsum("ngkp,gkc->ngcp", spread, taps).reshape(y.shape[0], dims[1], *y.shape[2:])
        padded[(slice(None), slice(None), *at)] += add
    inside = tuple(slice(a, a + n) for (a, _), n in zip(pads, dims[2:], strict=True))
    return node["dX"], padded[(slice(None), slice(None), *inside)]


def _matmul(node: Mapping[str, Any], read: Reader, _tensors: Tensors) -> tuple[str, Array]:
    return node["matC"], read(node["matA"]) @ read(node["matB"])


def _resample(node: Mapping[str, Any], read: Reader, _tensors: Tensors) -> tuple[str, Array]:
    x, mode = read(node["X"]), node["mode"]
    fill = -np.inf if "MAXPOOL" in mode else 0.0
    before, after, window, strides = (_whole(node[name]) for name in ("prePad", "postPad", "windowDim", "stride"))
    assert node["paddingMode"] == ("CUDNN_NEG_INF_PAD" if "MAXPOOL" in mode else "CUDNN_ZERO_PAD")
    pads = list(zip(before, after, strict=True))
    padded = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    counts = np.pad(np.ones(x.shape[2:]), pads)
    axes = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(padded, window, axis=axes)
    seen = np.lib.stride_tricks.sliding_window_view(counts, window)
    steps = tuple(slice(None, None, step) for step in strides)
    windows, seen = windows[(slice(None), slice(None), *steps)], seen[steps]
    inner = tuple(range(-len(axes), 0))
    if "MAXPOOL" in mode:
        return node["Y"], windows.max(axis=inner)
    divisor = seen.sum(axis=inner) if "EXCLUDE" in mode else math.prod(window)
    return node["Y"], windows.sum(axis=inner) / divisor


def _whole(fractions: Sequence[Sequence[int]]) -> list[int]:
    """Returns fractions that are whole numbers; 0 is written as 0/1."""
    assert all(numerator % denominator == 0 for numerator, denominator in fractions)
    return [numerator // denominator for numerator, denominator in fractions]


def _norm(node: Mapping[str, Any], read: Reader, _tensors: Tensors) -> tuple[str, Array]:
    assert node["fmode"] == "CUDNN_NORM_FWD_INFERENCE"
    x = read(node["X"])
    axes = (2, 3) if node["mode"] == "CUDNN_INSTANCE_NORM" else (1, 2, 3)
    mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + read(node["epsilonDesc"]))
    return node["Y"], normal * read(node["Scale"]) + read(node["Bias"])


RUNNERS: dict[str, Runner] = {
    "POINTWISE": _pointwise, "CONVOLUTION_FORWARD": _convolution,
    "CONVOLUTION_BACKWARD_DATA": _convolution_backward_data, "MATMUL": _matmul, "RESAMPLE_FWD": _resample,
    "NORM_FORWARD": _norm,
}  # fmt: skip
