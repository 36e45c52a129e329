# SPDX-License-Identifier: Apache-2.0
"""What the kernels should give, in numpy with float64, and how far they may be off.

The bounds are of the kind |error| <= c * epsilon * sum of |products|, which holds for any order of summation.
Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1.
"""

import itertools

import numpy as np

EPSILON = {"float16": 2.0**-11, "float32": 2.0**-24}
SMALLEST = {"float16": 2.0**-24, "float32": 2.0**-126}


def assert_close(got: np.ndarray, want: np.ndarray, magnitude: np.ndarray | float, *, depth: int = 1) -> None:
    """Checks `got` against the float64 result; `magnitude` bounds what was summed, `depth` how many terms."""
    name = got.dtype.name
    allowed = (depth + 16) * EPSILON["float32"] * magnitude + 2 * EPSILON[name] * np.abs(want) + SMALLEST[name]
    assert got.shape == want.shape
    assert np.all(np.abs(got.astype(np.float64) - want) <= allowed), float(
        np.max(np.abs(got.astype(np.float64) - want) / allowed)
    )


def convolution(
    x: np.ndarray, weights: np.ndarray, strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0), dilations: tuple[int, int] = (1, 1), groups: int = 1,
) -> np.ndarray:  # fmt: skip
    """Returns the convolution of (N, C, H, W) with (M, C / groups, kH, kW); pads as ONNX writes them."""
    x, weights = x.astype(np.float64), weights.astype(np.float64)
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    outputs, channels, height, width = weights.shape
    out_h = (x.shape[2] - (height - 1) * dilations[0] - 1) // strides[0] + 1
    out_w = (x.shape[3] - (width - 1) * dilations[1] - 1) // strides[1] + 1
    result = np.zeros((x.shape[0], outputs, out_h, out_w))
    for i, j in itertools.product(range(height), range(width)):
        top, left = i * dilations[0], j * dilations[1]
        window = x[:, :, top : top + (out_h - 1) * strides[0] + 1 : strides[0]]
        window = window[:, :, :, left : left + (out_w - 1) * strides[1] + 1 : strides[1]]
        apart = window.reshape(x.shape[0], groups, channels, out_h, out_w)
        factors = weights[:, :, i, j].reshape(groups, outputs // groups, channels)
        result += np.einsum("ngchw,goc->ngohw", apart, factors).reshape(result.shape)
    return result


def transposed_convolution(
    x: np.ndarray, weights: np.ndarray, strides: tuple[int, int], pads: tuple[int, int, int, int],
    dilations: tuple[int, int], output_padding: tuple[int, int], groups: int,
) -> np.ndarray:  # fmt: skip
    """Returns the transposed convolution of (N, C, H, W) with (C, M / groups, kH, kW), by scattering."""
    x, weights = x.astype(np.float64), weights.astype(np.float64)
    n, channels, in_h, in_w = x.shape
    _, outputs, height, width = weights.shape
    full_h = strides[0] * (in_h - 1) + (height - 1) * dilations[0] + 1 + output_padding[0]
    full_w = strides[1] * (in_w - 1) + (width - 1) * dilations[1] + 1 + output_padding[1]
    full = np.zeros((n, groups * outputs, full_h, full_w))
    apart = x.reshape(n, groups, channels // groups, in_h, in_w)
    for i, j in itertools.product(range(height), range(width)):
        factors = weights[:, :, i, j].reshape(groups, channels // groups, outputs)
        part = np.einsum("ngchw,gco->ngohw", apart, factors).reshape(n, groups * outputs, in_h, in_w)
        top, left = i * dilations[0], j * dilations[1]
        rows = slice(top, top + (in_h - 1) * strides[0] + 1, strides[0])
        columns = slice(left, left + (in_w - 1) * strides[1] + 1, strides[1])
        full[:, :, rows, columns] += part
    return full[:, :, pads[0] : full_h - pads[2], pads[1] : full_w - pads[3]]


ACTIVATIONS = {
    "Relu": lambda x: np.maximum(x, 0), "Clip": lambda x: np.clip(x, 0, 6),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "Swish": lambda x: x / (1 + np.exp(-x)), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x), "Tanh": np.tanh, "": lambda x: x,
}  # fmt: skip
"""By name of the operator; Swish is spelled out in the models as x * Sigmoid(x). All have slopes below 1.2."""


def activation_text(name: str, source: str, target: str) -> str:
    """Returns the lines of a model that apply an activation; `zero` and `six` are constants of it."""
    if name == "Swish":
        return f"{target}_gate = Sigmoid({source}) {target} = Mul({source}, {target}_gate)"
    if name == "Clip":
        return f"{target} = Clip({source}, zero, six)"
    return f"{target} = {name or 'Identity'}({source})"


def random_values(seed: int, dtype: str, *shape: int) -> np.ndarray:
    """Returns values around 0 that are the same for a seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def onnx_shape(dtype: str, shape: tuple[int, ...] | list[int]) -> str:
    """Returns a tensor type as ONNX text writes it."""
    name = {"float16": "float16", "float32": "float", "bool": "bool"}.get(dtype, dtype)
    return f"{name}[{','.join(map(str, shape))}]" if shape else name
