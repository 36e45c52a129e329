# SPDX-License-Identifier: Apache-2.0
"""Networks of numbers -1, 0 and 1, whose sums are exact in any order and precision."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir
from native_models import Array, built, model_of

from nndeploy.plugin.interface import Artifact


def exact_network(
    seed: int, shape: Sequence[int], body: str, weights: Mapping[str, Sequence[int]]
) -> tuple[ir.Model, Artifact, dict[str, Array]]:
    """Returns a network that makes y of x of a shape, its plan, and inputs.

    `weights` are shapes; the body may read `low` and `high` too, bounds of a Clip.
    """
    numbers = np.random.default_rng(seed)
    constants = {"low": np.array(-3, np.float32), "high": np.array(9, np.float32)}
    for weight, size in weights.items():
        constants[weight] = numbers.choice([-1, 0, 0, 0, 1], size).astype(np.float32)
    used = {key: value for key, value in constants.items() if key in weights or key in body}
    sizes = ",".join("hijk"[: len(shape)])
    model = model_of(f"g (float[{','.join(map(str, shape))}] x) => (float[{sizes}] y) {{ {body} }}", used)
    return model, built(model), {"x": numbers.choice([-1, 0, 1], shape).astype(np.float32)}
