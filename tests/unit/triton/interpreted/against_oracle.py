# SPDX-License-Identifier: Apache-2.0
"""Small models through the kernels against the oracle, in float64, and how far they may be off.

The bounds are of the kind |error| <= c * epsilon * sum of |products|, which holds for any order of summation.
Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from gpu_on_numpy import model_of, run_on_gpu
from oracle.evaluator import evaluate

Arrays = Mapping[str, np.ndarray]
EPSILON = {"float16": 2.0**-11, "float32": 2.0**-24}
SMALLEST = {"float16": 2.0**-24, "float32": 2.0**-126}
ACTIVATIONS = ("Relu", "Clip", "HardSwish", "HardSigmoid", "Swish", "Sigmoid", "LeakyRelu", "Tanh", "")
"""Swish is spelled out in the models as x * Sigmoid(x). All have slopes below 1.2."""


def check(
    body: str, inputs: Arrays, constants: Arrays | None = None, *, outputs: str = "y", opset: int = 20,
    num_launches: int | None = None, tiny_tiles: bool = False, exact: bool = False, steps: float = 2,
    magnitude: float | str | np.ndarray = 1.0, depth: int = 0,
) -> None:  # fmt: skip
    """Runs the nodes of `body` and holds their outputs against the oracle's.

    `magnitude` bounds what was summed, and `depth` says how many terms; the name of a value stands for what the oracle
    makes of it where nothing has a sign. `steps` is how many units in the last place are allowed beside. NaN and what
    is infinite or overflows must match. `exact` allows nothing, and asks the oracle in the types of the model.
    """
    constants = constants or {}
    model = model_of(text_of(body, {**inputs, **constants}, outputs, opset), constants)
    found = run_on_gpu(model, inputs, tiny_tiles=tiny_tiles, num_launches=num_launches)
    wanted = evaluated(body, {**inputs, **constants}, outputs, opset, is_exact=exact)
    for name, want in wanted.items():
        got, allowed = found[name], magnitude
        assert got.shape == want.shape
        if exact or got.dtype.kind != "f":
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
            continue
        if isinstance(magnitude, str):
            unsigned = {key: abs(a) if a.dtype.kind == "f" else a for key, a in {**inputs, **constants}.items()}
            allowed = evaluated(body, unsigned, magnitude, opset)[magnitude]
            allowed = allowed if magnitude == name else (allowed + 4) * (1 + abs(want))  # x * sigmoid(x) scales by x
        assert_close(got, want, (depth + 16) * EPSILON["float32"] * allowed, steps)


def assert_close(got: np.ndarray, want: np.ndarray, allowed: np.ndarray | float, steps: float = 2) -> None:
    with np.errstate(over="ignore"):
        rounded = want.astype(got.dtype)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    allowed = allowed + steps * EPSILON[got.dtype.name] * abs(want) + SMALLEST[got.dtype.name]
    with np.errstate(invalid="ignore"):
        far = abs(got.astype(np.float64) - want) / allowed
    assert np.max(far[finite], initial=0) <= 1


def evaluated(body: str, arrays: Arrays, outputs: str, opset: int = 20, *, is_exact: bool = False) -> Arrays:
    """Returns what the oracle makes of nodes, in float64 where not `is_exact`."""
    given = {k: a if is_exact or a.dtype.kind != "f" else a.astype(np.float64) for k, a in arrays.items()}
    return evaluate(onnx.parser.parse_model(text_of(body, given, outputs, opset)), given)


def text_of(body: str, arrays: Arrays, outputs: str, opset: int) -> str:
    """Returns a model as text whose inputs have the types and sizes of arrays."""
    names = {"float32": "float", "float64": "double"}
    inputs = []
    for name, array in arrays.items():
        sizes = f"[{','.join(map(str, array.shape))}]" if array.ndim else ""
        inputs.append(f"{names.get(array.dtype.name, array.dtype.name)}{sizes} {name}")
    return f'<ir_version: 10, opset_import: ["": {opset}]> g ({", ".join(inputs)}) => ({outputs}) {{ {body} }}'


def activation_text(name: str, source: str, target: str) -> str:
    """Returns the lines of a model that apply an activation; `zero` and `six` are constants of it."""
    if name == "Swish":
        return f"{target}_gate = Sigmoid({source}) {target} = Mul({source}, {target}_gate)"
    if name == "Clip":
        return f"{target} = Clip({source}, zero, six)"
    return f"{target} = {name or 'Identity'}({source})"


def bounds(dtype: str) -> dict[str, np.ndarray]:
    """Returns the constants that `activation_text` names."""
    return {"zero": np.array(0, dtype), "six": np.array(6, dtype)}


def random_values(seed: int, dtype: str, *shape: int) -> np.ndarray:
    """Returns values around 0 that are the same for a seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def reals(*shape: int, seed: int = 0) -> np.ndarray:
    return random_values(seed, "float32", *shape)


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)
